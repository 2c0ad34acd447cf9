"""Random search for neighbors that refute what an analysis, or all of them together, say of joins.

The default profile tries some hundred thousand comparisons, the long one (SECANT_PROFILE=long) more than two million.
Counts are asserted, so that a grammar that is refused too often cannot pass unnoticed.
"""

from fractions import Fraction

import pytest
from joins_check import BETAS, Findings, analysis_of, smallest
from joins_search import attack

from chance import LONG, seeds

SEEDS = {"elastic": 35, "residual": 25, "multiplicity": 20, "smt": 20, "portfolio": 12}
MORE = 15
"""So many times as many questions in a long run."""
CHECKS = {"elastic": 900, "residual": 600, "multiplicity": 150, "smt": 25, "portfolio": 200}
"""Comparisons for each question, at least: far below what is usual, because most of a few questions may be refused."""
FEW_BETAS = (Fraction(1, 10), Fraction(1))


def search(name, drawn, betas, *, replaced=False):
    analysis, findings = analysis_of(name), Findings()
    for seed in drawn:
        attack(analysis, seed, findings, replaced=replaced, betas=betas)
        assert [str(smallest(v, analysis)) for v in findings.violations[:1]] == []
    print(
        f"{name}: {findings.checks} checks, {findings.pairs} pairs, "
        f"{findings.accepted} of {findings.asked} releases accepted"
    )
    return findings


@pytest.mark.parametrize("name", SEEDS)
def test_no_neighbor_refutes_a_analysis(name, record_property):
    drawn = seeds(SEEDS[name] * (MORE if LONG else 1))
    few = name in ("multiplicity", "portfolio")
    findings = search(name, drawn, FEW_BETAS if few else BETAS)
    record_property("checks", findings.checks)
    assert findings.checks >= CHECKS[name] * len(drawn)


def test_no_replaced_row_refutes_all_analyses_together(record_property):
    drawn = seeds(120 if LONG else 10)
    findings = search("portfolio", drawn, FEW_BETAS, replaced=True)
    record_property("checks", findings.checks)
    assert findings.checks >= 100 * len(drawn)
