"""Rows whose unit is NULL: each counts like a unit of its own, and moves nothing by more than a limit.

Rests on truncation.nobody.
"""

from __future__ import annotations

import random
from dataclasses import replace
from fractions import Fraction

import duckdb
import pytest

import chance
import secant
from secant.plan import nodes as n
from secant.plan.evaluate.evaluate import evaluate
from secant.plan.rewrites.measures import Measure
from secant.release.tallies import Tally, read_tallies
from secant.schema import types as t
from secant.sensitivity.truncation import analysis, clipping, tallying

MOST = 5
"""What one row adds to the sum at most."""
UNIT, KEY, VALUE = (n.Column(c, t.INTEGER) for c in ("u", "k", "x"))
CALLS = (n.Aggregation("c", "count", None), n.Aggregation("s", "sum", VALUE))
MEASURES = {c: Measure(c, Fraction(1), t.INTEGER, 1.0, c) for c in ("c", "s")}
FIELDS = tuple(n.Field(c.name, t.INTEGER) for c in (UNIT, KEY, VALUE))


def additions(rows, *, keyed, together) -> clipping.Additions:
    keys = (n.Named("k", KEY),) if keyed else ()
    family = (frozenset(("c", "s")),) if together else ()
    return clipping.Additions(
        n.Values(FIELDS, tuple(rows)), "u", keys, CALLS, MEASURES, family, alone=True
    )


def cut(rows, limits, **how) -> dict[object, tuple]:
    plan = clipping.cut_down(additions(rows, **how), limits)
    return {row[:-2]: row[-2:] for row in evaluate(plan, {})}


def above(rows, limits, **how) -> list[list[int]]:
    tallies = tallying.above_limits(additions(rows, **how), limits)
    found = read_tallies(tallies, evaluate(tallies.plan, {}), lambda _, value: value or 0)
    return [tally.above for tally in found.values()]


def at_once(rows, limits) -> dict[str, Tally]:
    tallies = tallying.at_once(additions(rows, keyed=False, together=False), limits)
    return read_tallies(tallies, evaluate(tallies.plan, {}), lambda _, value: value or 0)


def moved(one, other, place) -> int:
    return sum(
        abs((one.get(k, (0, 0))[place] or 0) - (other.get(k, (0, 0))[place] or 0))
        for k in {*one, *other}
    )


def drawn_rows(draw: random.Random) -> list[tuple]:
    size = draw.randint(1, 9)
    units = [None, None, 1, 2]
    return [
        (draw.choice(units), draw.randint(1, 2), draw.randint(-MOST, MOST)) for _ in range(size)
    ]


def findings(seed: int, least: int, rounds: int = 60) -> list[str]:
    """Take away one row of nobody, and one unit; see whether anything moves by more than its limit."""
    draw, found = random.Random(seed), []
    for _ in range(rounds):
        rows = drawn_rows(draw)
        how = {"keyed": draw.random() < 0.5, "together": draw.random() < 0.5}
        limits = {"c": draw.randint(1, 4), "s": draw.randint(least, least + 6)}
        lists = {c: (limit, 2 * limit) for c, limit in limits.items()}
        whole, counted = cut(rows, limits, **how), above(rows, lists, **how)
        nobodys = [i for i, row in enumerate(rows) if row[0] is None]
        others = [rows[:i] + rows[i + 1 :] for i in nobodys]
        for less in others:
            found += ["above"] if above(less, lists, **how) != counted else []
            one, two = at_once(rows, lists), at_once(less, lists)
            found += [f"above by buckets, {c}" for c in lists if one[c].above != two[c].above]
        others += [[r for r in rows if r[0] != unit] for unit in (1, 2)]
        for less in others:
            after = cut(less, limits, **how)
            found += [c for i, c in enumerate(("c", "s")) if moved(whole, after, i) > limits[c]]
            by_buckets = at_once(rows, lists), at_once(less, lists)
            for c, several in lists.items():
                pairs = zip(several, *(x[c].cut for x in by_buckets), strict=True)
                found += [f"{c} by buckets" for limit, a, b in pairs if abs(a - b) > limit]
    return found


def test_no_row_of_nobody_and_no_unit_moves_more_than_a_limit():
    assert findings(chance.fresh_seed(), MOST) == []


def test_a_limit_below_one_row_is_seen():
    """Planted: rows of nobody are added up also where a limit is smaller than what one row can add."""
    assert "s" in findings(1, 1)


def test_rows_of_nobody_scaled_down_together_are_seen(monkeypatch):
    """Planted: all rows without a unit are taken as one unit, so one of them can push others down."""
    monkeypatch.setattr(clipping, "unless_nobodys", lambda each, a, nobodys, units: units)
    assert findings(1, MOST)


def test_rows_of_nobody_in_one_bucket_beyond_a_limit_are_seen(monkeypatch):
    """Planted: the same where units are counted in buckets: one row of nobody decides about all of them."""
    monkeypatch.setattr(tallying, "unless_nobodys", lambda each, a, nobodys, units: units)
    assert "above by buckets, s" in findings(1, MOST)


# ── from a question to its answer ────────────────────────────────────────────────────────────────

POLICY = """
[database]
source = "duckdb:log.duckdb"
[tables.hits.columns]
width = {{ range = [0, 100] }}
day = {{ values = [0, 1, 2], null = false }}
[protections.people]
kind = "unit"
unit = "hits.person"
epsilon = 1000
{limits}
"""
LIMITED = "limits = { hits = 40 }"
FIXED = f'{LIMITED}\ntruncation = "fixed"'
TEXTS = (
    "SELECT count(*) FROM hits",
    "SELECT sum(width) FROM hits",
    "SELECT count(*), sum(width) FROM hits",
    "SELECT day, count(*) FROM hits GROUP BY day ORDER BY day",
    "SELECT day, sum(width) FROM hits GROUP BY day ORDER BY day",
    "SELECT count(DISTINCT day) FROM hits",
)


@pytest.fixture(scope="module")
def log(tmp_path_factory):
    folder = tmp_path_factory.mktemp("log")
    with duckdb.connect(str(folder / "log.duckdb")) as db:
        db.execute(
            "CREATE TABLE hits AS SELECT CASE WHEN i % 3 > 0 THEN i % 50 END AS person, "
            "CAST(i % 3 AS INTEGER) AS day, CAST(i % 101 AS INTEGER) AS width FROM range(600) AS r(i)"
        )
    return folder


def shown_and_true(log, name, limits, text):
    path = log / f"{name}.toml"
    path.write_text(POLICY.format(limits=limits))
    with secant.connect(policy=path, ledger=log / f"{name}.ledger") as db:
        shown = db.inspect(text, epsilon=1)
        left = db.sql(text, epsilon=1).error["leaves_out"]
    return [
        pair
        for row in shown
        for pair in zip(_all(row["softened"]), _all(row["exact"]), strict=True)
    ], left


def _all(values) -> list:
    return values if isinstance(values, list) else [values]


@pytest.mark.parametrize("text", TEXTS)
def test_rows_of_nobody_count(log, text):
    pairs, left = shown_and_true(log, "log", FIXED, text)
    assert pairs
    assert all(a == pytest.approx(b) for a, b in pairs)
    assert not left["rows_without_unit"]


def test_it_is_said_where_rows_of_nobody_go(log):
    """A limit that is chosen for a sum may be smaller than what one row adds."""
    for name, text, left_out in (("sum", TEXTS[1], True), ("count", TEXTS[0], False)):
        _, left = shown_and_true(log, name, "", text)
        assert left["rows_without_unit"] == left_out


def test_rows_of_nobody_that_go_are_seen(log, monkeypatch):
    """Planted: they are left out, as they were, and nothing is said."""
    honest = analysis.Additions
    monkeypatch.setattr(analysis, "Additions", lambda *parts: replace(honest(*parts), alone=False))
    pairs, _ = shown_and_true(log, "planted", FIXED, TEXTS[0])
    assert any(a != pytest.approx(b) for a, b in pairs)
