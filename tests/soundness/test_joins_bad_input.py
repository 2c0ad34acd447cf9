"""Bad input of joins: every analysis bounds it, and the bound holds, or refuses it with a reason and a hint."""

from fractions import Fraction

import pytest
from joins_cases import BAD
from joins_check import ANALYSES, BETAS, analysis_of

from chance import LONG

ONE_BETA = (Fraction(1),)
BOUNDED = {"elastic": 30, "residual": 20, "multiplicity": 20, "smt": 1}
"""Cases that an analysis bounds, at least; it refuses the others in words, which `asked` checks."""


@pytest.mark.parametrize("name", ANALYSES)
def test_bad_input_is_bounded_or_refused(name):
    analysis, bounded = analysis_of(name), 0
    for case in BAD.values():
        steps, betas = (None, BETAS) if LONG else (0, ONE_BETA)
        findings = case.findings(analysis, steps=steps, betas=betas)
        assert findings.accepted or findings.refusals, case.text
        assert [str(v) for v in findings.violations[:1]] == []
        bounded += bool(findings.accepted)
    assert bounded >= BOUNDED[name]
