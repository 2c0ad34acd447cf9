"""Limits chosen privately hold when one person is missing, and the checker notices when they do not."""

from dataclasses import replace

import pytest
from joins_units import Findings, attack_units

from chance import LONG
from secant.plan import nodes as n
from secant.sensitivity.truncation import analysis, clipping, tallying

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
    keys = tuple(n.Named(k.name, clipping.column_of(rows, k.name)) for k in a.keys)
    calls = tuple(
        n.Aggregation(c.name, "sum", clipping.column_of(rows, c.name))
        for c in a.calls
        if c.name in limits
    )
    return n.Aggregate(rows, keys, calls)


def every_row_counts(a, limits):
    """Count every unit twice."""
    return replace(right_above(a, limits), plan=_twice(right_above(a, limits).plan))


def _twice(plan):
    two = n.Values((n.Field("two.times", clipping.t.INTEGER),), ((1,), (2,)))
    return n.Aggregate(n.Join("cross", plan.input, two, None), plan.keys, plan.aggregations)


def other_buckets(a, limits):
    """Let the buckets of what is summed lie between twice the limits: a unit is cut down to a limit that it passed."""
    doubled = right_at_once(a, {c: tuple(2 * x for x in several) for c, several in limits.items()})
    return replace(doubled, limits=limits)


def nothing_lies_below(column, bucket, inside, signed):
    """Leave units that add NULL below all limits, as if they took away."""
    return bucket


right_above, right_at_once = tallying.above_limits, tallying.at_once


@pytest.mark.parametrize(
    ("where", "name", "wrong"),
    [
        (analysis, "cut_down", not_cut),
        (analysis, "above_limits", every_row_counts),
        (analysis, "at_once", other_buckets),
        (tallying, "_bucket_value", nothing_lies_below),
    ],
)
def test_a_planted_fault_is_noticed(where, name, wrong, monkeypatch):
    monkeypatch.setattr(where, name, wrong)
    findings = Findings()
    for seed in range(300):
        attack_units(seed, findings, databases=2)
        if findings.violations:
            break
    assert findings.violations
