"""Directed cases: self-joins, triangles, sets, groups, public tables, rounded keys, put to every analysis.

The default profile takes a share of the cases for each analysis and two betas; the long one takes all, and walks on.
"""

from fractions import Fraction

import pytest
from joins_cases import MERGED, OTHERS
from joins_check import ANALYSES, BETAS, analysis_of
from joins_operators import OPERATORS, RESIDUALS

from chance import LONG

EVERY = 1 if LONG else 6
FEW_BETAS = (Fraction(1, 2), Fraction(3))


@pytest.mark.parametrize("name", ANALYSES)
def test_no_neighbor_refutes_a_directed_case(name):
    analysis, checks = analysis_of(name), 0
    cases = list(OTHERS.values())[sorted(ANALYSES).index(name) % EVERY :: EVERY]
    for case in (*cases, *MERGED.values()):
        steps, betas = (None, BETAS) if LONG else (0, FEW_BETAS)
        findings = case.findings(analysis, steps=steps, betas=betas)
        checks += findings.checks
        assert [str(v) for v in findings.violations[:1]] == []
    assert checks > (500 if name == "smt" else 5_000)


@pytest.mark.parametrize(("name", "cases"), [("elastic", OPERATORS), ("residual", RESIDUALS)])
def test_no_neighbor_refutes_what_an_analysis_is_made_of(name, cases):
    """Every case is accepted, and tried around the empty database and drawn ones; in the long profile, farther away."""
    analysis, checks = analysis_of(name), 0
    for text, case in cases.items():
        steps, betas = (None, BETAS) if LONG else (0, FEW_BETAS)
        findings = case.findings(analysis, steps=steps, betas=betas)
        assert findings.accepted, text
        assert [str(v) for v in findings.violations[:1]] == []
        checks += findings.checks
    assert checks > 4_000
