"""The checker tells right smooth bounds from misprints of papers and from faults of public systems."""

import random

import pytest
from joins_cases import USUAL
from joins_check import Findings, targets_of
from joins_textbook import RIGHT, WRONG
from joins_worlds import draw_database, world


def found(analysis):
    findings, place, draw = Findings(), world(), random.Random(3)
    for target in targets_of(analysis.text, place, analysis, findings):
        for start in (*USUAL, *(draw_database(draw, target.tables, place) for _ in range(3))):
            target.walk(start, draw, 1)
    return findings


@pytest.mark.parametrize("analysis", RIGHT, ids=lambda r: r.what)
def test_a_right_bound_is_not_refuted(analysis):
    findings = found(analysis)
    assert findings.checks > 500
    assert [str(v) for v in findings.violations[:1]] == []


@pytest.mark.parametrize("analysis", WRONG, ids=lambda r: r.what)
def test_a_misprint_is_refuted(analysis):
    assert found(analysis).violations
