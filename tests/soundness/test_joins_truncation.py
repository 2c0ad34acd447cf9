"""Limits chosen privately hold when one person is missing, and the checker notices when they do not."""

import pytest
from joins_units import Findings, attack_units

from chance import LONG
from secant.analysis.truncation import analysis, clipping
from secant.plan import nodes as n

SEEDS = 3_000 if LONG else 250


def test_no_missing_person_refutes_a_limit(record_property):
    findings = Findings()
    for seed in range(SEEDS):
        attack_units(seed, findings)
        assert findings.violations[:1] == []
    record_property("checks", findings.checks)
    print(f"{findings.checks} checks, {findings.accepted} releases accepted")
    assert findings.checks >= 5 * SEEDS


def not_cut(a, limits):
    """Add up as if there were no limit."""
    each = clipping.each_unit(a)
    kept = tuple(n.Named(f.name, n.Column(f.name, f.type)) for f in clipping.fields_of(each))
    rows = n.Project(each, kept)
    keys = tuple(n.Named(k.name, clipping._column(rows, k.name)) for k in a.keys)
    calls = tuple(
        n.Aggregation(c.name, "sum", clipping._column(rows, c.name))
        for c in a.calls
        if c.name in limits
    )
    return n.Aggregate(rows, keys, calls)


def every_row_counts(a, limits):
    """Count rows above a limit instead of units."""
    found = right_above(a, limits)
    doubled = tuple(
        n.Aggregation(c.name, "sum", n.Case((n.Branch(n.Not(n.IsNull(c.argument)), TWO),), NONE))
        for c in found.aggregations
    )
    return n.Aggregate(found.input, (), doubled)


right_above = clipping.above_limits
TWO, NONE = n.Literal(2, clipping.t.INTEGER), n.Literal(0, clipping.t.INTEGER)


@pytest.mark.parametrize(
    ("name", "wrong"), [("cut_down", not_cut), ("above_limits", every_row_counts)]
)
def test_a_planted_fault_is_noticed(name, wrong, monkeypatch):
    monkeypatch.setattr(analysis, name, wrong)
    findings = Findings()
    for seed in range(300):
        attack_units(seed, findings, databases=2)
        if findings.violations:
            break
    assert findings.violations
