"""The group of NULL is a group like the others: bounds hold with it, by brute force, and it is shown on every engine.

Keys with declared values, whole-number ranges and dates, padded by left joins, computed, and several together; rows and
units come and go, values move. The planted fault does not count the group of NULL among those that a unit can reach.
"""

import itertools
import random
from fractions import Fraction

import pytest
from neighbor_check import Findings, World, check, rows_like

from secant.plan.evaluate.evaluate import prepare as compiled
from secant.plan.facts.domains import Listed
from secant.plan.rewrites.enforce import MeasuredAggregate
from secant.plan.rewrites.rewrite import normalize
from secant.policy.policy import ColumnFacts, Policy, Protection, TableFacts
from secant.release.measured import in_steps
from secant.schema import types as t
from secant.schema.catalog import Table, catalog
from secant.sensitivity.bounds import GlobalBound
from secant.sensitivity.portfolio import Decomposition, prepare
from secant.sql.bind import from_sql

P = (("id", t.INTEGER), ("k", t.TEXT), ("h", t.INTEGER), ("v", t.INTEGER))
Q = (("id", t.INTEGER), ("pid", t.INTEGER), ("j", t.TEXT), ("w", t.INTEGER))
CATALOG = catalog(Table("p", P), Table("q", Q))
FACTS = {
    "p": TableFacts(
        ("id",),
        columns={
            "k": ColumnFacts(values=("a", "b")),
            "h": ColumnFacts(range=(0, 2)),
            "v": ColumnFacts(range=(0, 3)),
        },
    ),
    "q": TableFacts(
        ("id",),
        references={"pid": ("p", "id")},
        columns={"j": ColumnFacts(values=("x",)), "w": ColumnFacts(range=(-2, 2))},
    ),
}
KINDS = {
    "rows": Protection("kept", "rows", Fraction(1), tables=("p", "q")),
    "replaced": Protection("kept", "rows", Fraction(1), tables=("p", "q"), replace=True),
    "unit": Protection("kept", "unit", Fraction(1), unit=("p", "id"), limits={"q": 3}),
    "groups": Protection("kept", "unit", Fraction(1), unit=("p", "id"), limits={"q": 3}, groups=1),
}
QUERIES = (
    "SELECT k, count(*) FROM p GROUP BY k",
    "SELECT k, sum(v), avg(v) FROM p GROUP BY k",
    "SELECT h, count(v) FROM p GROUP BY h",
    "SELECT k, h, count(*), sum(v) FROM p GROUP BY k, h",
    "SELECT k IS NULL, count(*) FROM p GROUP BY 1",
    "SELECT nullif(k, 'a'), count(*) FROM p GROUP BY 1",
    "SELECT h + 1, max(v) FROM p GROUP BY 1",
    "SELECT j, count(*), sum(w) FROM q GROUP BY j",
    "SELECT j, count(DISTINCT pid) FROM q GROUP BY j",
    "SELECT j, k, count(*) FROM q JOIN p ON q.pid = p.id GROUP BY j, k",
    "SELECT k, count(DISTINCT q.pid), sum(w) FROM q JOIN p ON q.pid = p.id GROUP BY k",
    "SELECT j, count(*) FROM p LEFT JOIN q ON q.pid = p.id GROUP BY j",
    "SELECT k, j, sum(w) FROM p LEFT JOIN q ON q.pid = p.id GROUP BY k, j",
    "SELECT k, count(*) FROM (SELECT k FROM p UNION ALL SELECT j FROM q) GROUP BY k",
)
KEYS, NUMBERS = ("a", "z", None), (0, 2, 9, None)


def world(kind: str) -> World:
    return World(CATALOG, Policy("", FACTS, (KINDS[kind],)))


def databases(count: int):
    """Give small databases with many NULLs among keys; one unit has rows in every group that there is."""
    draw = random.Random(31)
    columns = {"p": P, "q": Q}
    yield rows_like(
        columns,
        p=[(1, "a", 0, 3), (2, None, None, 2), (3, "z", 9, 1)],
        q=[(1, 1, "x", 2), (2, 1, None, -2), (3, 1, "y", 1)],
    )
    for _ in range(count):
        p = [
            (i, draw.choice(KEYS), draw.choice(NUMBERS), draw.choice((0, 3, 7, None)))
            for i in (1, 2)
        ]
        q = [
            (
                i,
                draw.choice((1, 2, None)),
                draw.choice(("x", "y", None)),
                draw.choice((-2, 2, None)),
            )
            for i in (1, 2, 3)
        ]
        yield rows_like(columns, p=p, q=q)


def pool():
    p = [(5, k, h, 3) for k, h in itertools.product(KEYS, (0, None))]
    q = [(5, pid, j, 2) for pid, j in itertools.product((1, 5), ("x", None))]
    return rows_like({"p": P, "q": Q}, p=p, q=q)


def searched(kind: str, texts=QUERIES, count=60) -> Findings:
    found = Findings()
    for text in texts:
        check(text, world(kind), list(databases(count)), found, pool())
    return found


@pytest.mark.parametrize("kind", KINDS)
def test_bounds_hold_with_the_group_of_null(kind):
    found = searched(kind)
    assert not found.violations, found.violations[0]
    assert found.accepted >= 9
    assert found.triples > 1000


def test_values_that_move_keep_to_their_bounds_in_the_group_of_null():
    """Under `cells` rows stay, and so do their keys: what a value moves, it moves in the one group of its row."""
    cells = Protection("kept", "cells", Fraction(1), distance={"p": "v"})
    policy = Policy("", FACTS, (cells,), public=("q",))
    for text in (QUERIES[1], QUERIES[3]):
        outcome = prepare(normalize(from_sql(text, CATALOG)), policy, (cells,), CATALOG)
        assert isinstance(outcome, Decomposition)
        (b,) = outcome.bounded
        run, width = compiled(b.release.exact), len(b.release.exact.keys)
        for database, place in itertools.product(databases(20), range(2)):
            row = database["p"][place]
            if row["v"] is None or row["v"] >= 3:
                continue
            moved = {**database, "p": [*database["p"]]}
            moved["p"][place] = {**row, "v": row["v"] + 1}
            before, after = ({r[:width]: r[width:] for r in run(d)} for d in (database, moved))
            assert before.keys() == after.keys()
            for at, measure in enumerate(b.release.measures):
                bound = b.certificates[0].bounds[measure.column]
                most = bound.value if isinstance(bound, GlobalBound) else bound.cap
                steps = [{k: in_steps(x[k][at], measure) for k in x} for x in (before, after)]
                assert sum(abs(steps[1][k] - steps[0][k]) for k in before) <= most


def test_a_group_of_null_that_is_not_counted_is_found(monkeypatch):
    """A unit reaches the group of NULL besides all that are listed."""

    def without(self):
        sizes = {
            d.key: len([v for v in d.values if v is not None])
            for d in self.domains
            if isinstance(d, Listed)
        }
        return tuple(sizes.get(k.name) for k in self.exact.keys)

    text = "SELECT j, count(DISTINCT pid) FROM q GROUP BY j"
    assert not searched("unit", (text,)).violations
    monkeypatch.setattr(MeasuredAggregate, "listed_values", property(without))
    assert searched("unit", (text,)).violations
