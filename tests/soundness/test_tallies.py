"""Units counted in buckets tell for every limit what one count and one sum for that limit alone would tell.

Rests on truncation.tally. The old form, a CASE for each limit, is written down here once more, and both are computed by
`evaluate` and by DuckDB from drawn rows: with NULL, without a unit, of both signs, on limits and one step beside them.
"""

from __future__ import annotations

import random
from decimal import Decimal
from fractions import Fraction

import duckdb
import pytest

import chance
from secant.engines.print.print_sql import lower
from secant.plan import nodes as n
from secant.plan.evaluate.evaluate import evaluate
from secant.plan.rewrites.measures import Measure
from secant.plan.verify import verify
from secant.release.tallies import read_tallies
from secant.schema import types as t
from secant.sensitivity.truncation import tallying
from secant.sensitivity.truncation.clipping import Additions, amount, column_of, totals

CENT = Fraction(1, 100)
MONEY = t.decimal(12, 2)
FIELDS = (
    n.Field("u", t.INTEGER),
    n.Field("x", t.INTEGER),
    n.Field("m", MONEY),
    n.Field("k", t.INTEGER),
)
U, X, M, K = (n.Column(f.name, f.type) for f in FIELDS)
POSITIVE = n.Clamp(X, n.Literal(0, t.INTEGER), n.Literal(9, t.INTEGER))
CALLS = {
    "c": n.Aggregation("c", "count", X),
    "s": n.Aggregation("s", "sum", X),
    "p": n.Aggregation("p", "sum", POSITIVE),
    "d": n.Aggregation("d", "sum", M),
}
MEASURES = {
    "c": Measure("c", Fraction(1), t.INTEGER, 1.0, "c"),
    "s": Measure("s", Fraction(1), t.INTEGER, 1.0, "s"),
    "p": Measure("p", Fraction(1), t.INTEGER, 1.0, "p"),
    "d": Measure("d", CENT, t.decimal(38, 2), 1.0, "d"),
}
NULL = n.Literal(None, t.INTEGER)
Rows = list[tuple[object, ...]]


def drawn_rows(draw: random.Random) -> Rows:
    def cents() -> Decimal | None:
        return None if draw.random() < 0.2 else Decimal(draw.randint(-9, 9)).scaleb(-2)

    whole = [None, *range(-9, 10)]
    return [
        (draw.choice((None, 1, 2, 3, 4)), draw.choice(whole), cents(), draw.randint(1, 2))
        for _ in range(draw.randint(0, 12))
    ]


def by_evaluate(plan: n.Relation) -> Rows:
    verify(plan)
    return list(evaluate(plan, {}))


def by_duckdb(plan: n.Relation) -> Rows:
    return duckdb.execute(lower(plan)).fetchall()


def one_count_for_each(a: Additions, limits, run) -> dict[str, list[int]]:
    """The old form: a CASE for each limit, over the size of what each unit adds."""
    sizes = totals(a.each, a)
    calls = []
    for name, several in limits.items():
        size = column_of(sizes, f"{name}.total")
        for i, limit in enumerate(several):
            more = n.Compare(">", size, amount(limit, a.measures[name], size.type))
            one = n.Case((n.Branch(more, n.Literal(1, t.INTEGER)),), NULL)
            calls.append(n.Aggregation(f"{name}.above{i}", "count", one))
    return _by_name(limits, run(n.Aggregate(sizes, (), tuple(calls))))


def one_sum_for_each(a: Additions, limits, run) -> dict[str, list[int]]:
    """The old form: what each unit adds, clamped to each limit; rows of nobody as they are."""
    each, calls = a.each, []
    for name, several in limits.items():
        added, measure = column_of(each, name), a.measures[name]
        for i, limit in enumerate(several):
            ends = (amount(x, measure, added.type) for x in (-limit, limit))
            value: n.Scalar = n.Clamp(added, *ends)
            if a.alone:
                nobodys = n.IsNull(column_of(each, "u.adds"))
                value = n.Case((n.Branch(nobodys, added),), value)
            calls.append(n.Aggregation(f"{name}.limit{i}", "sum", value))
    (row,) = run(n.Aggregate(each, (), tuple(calls)))
    return _by_name(limits, [row])


def _by_name(limits, rows) -> dict[str, list[int]]:
    values = iter(rows[0])
    return {name: [steps(name, next(values)) for _ in several] for name, several in limits.items()}


def steps(name: str, value) -> int:
    whole = Fraction(value or 0) / (CENT if isinstance(value, Decimal) and name == "d" else 1)
    assert whole.denominator == 1
    return whole.numerator


def differences(draw: random.Random, run) -> list[str]:
    """Draw rows, measures and limits; name what buckets tell otherwise than a statement for each limit."""
    names = draw.sample(sorted(CALLS), draw.randint(1, 4))
    limits = {c: tuple(sorted(draw.sample(range(1, 15), draw.randint(1, 5)))) for c in names}
    rows = n.Values(FIELDS, tuple(drawn_rows(draw)))
    keys = (n.Named("k", K),) if draw.random() < 0.5 else ()
    calls = tuple(CALLS[c] for c in names)
    a = Additions(rows, "u", keys, calls, MEASURES, alone=draw.random() < 0.5)
    found = []
    tallies = tallying.above_limits(a, limits)
    counted = read_tallies(tallies, run(tallies.plan), steps)
    wanted = one_count_for_each(a, limits, run)
    found += [f"above {c}" for c in names if counted[c].above != wanted[c]]
    if not keys:
        tallies = tallying.at_once(a, limits)
        once = read_tallies(tallies, run(tallies.plan), steps)
        cut = one_sum_for_each(a, limits, run)
        found += [f"above at once {c}" for c in names if once[c].above != wanted[c]]
        found += [f"cut {c}" for c in names if once[c].cut != cut[c]]
    return found


@pytest.mark.parametrize(("run", "rounds"), [(by_evaluate, 400), (by_duckdb, 60)])
def test_buckets_tell_what_each_limit_tells(run, rounds):
    draw = random.Random(chance.fresh_seed())
    for _ in range(rounds):
        assert differences(draw, run) == []


def test_values_have_buckets_too():
    """Units by how many different values they have, the count of which is cut down."""
    draw = random.Random(chance.fresh_seed())
    for _ in range(200):
        rows = drawn_rows(draw)
        call = n.Aggregation("c", "count", X, True)
        a = Additions(n.Values(FIELDS, tuple(rows)), "u", (), (call,), MEASURES)
        tallies = tallying.above_values(a, (1, 2, 4))
        counted = read_tallies(tallies, by_evaluate(tallies.plan), steps)
        sizes = [len({r[1] for r in rows if r[0] == u and r[1] is not None}) for u in (1, 2, 3, 4)]
        assert counted["c"].above == [sum(size > x for size in sizes) for x in (1, 2, 4)]


def _limit_counts_as_beyond(size, limits, measure):
    """Planted: a unit that adds just the limit lies beyond it."""
    return n.Bucket(size, tuple(amount(x - 1, measure, size.type).value for x in limits))


def _null_lies_below(column, bucket, inside, signed):
    """Planted: a unit that adds NULL lies below all limits."""
    return bucket


@pytest.mark.parametrize(
    ("name", "wrong", "seen"),
    [
        ("_bucket", _limit_counts_as_beyond, "above"),
        ("_bucket_value", _null_lies_below, "cut"),
        ("unless_nobodys", lambda each, a, nobodys, units: units, "cut"),
        ("never_negative", lambda call: True, "cut"),
    ],
)
def test_a_planted_fault_is_noticed(name, wrong, seen, monkeypatch):
    monkeypatch.setattr(tallying, name, wrong)
    draw = random.Random(1)
    found = [what for _ in range(200) for what in differences(draw, by_evaluate)]
    assert any(what.startswith(seen) for what in found)
