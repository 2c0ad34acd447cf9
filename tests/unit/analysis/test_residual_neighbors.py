"""The residual room against all neighbors of small databases, and its faults, planted."""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Iterator, Mapping
from fractions import Fraction
from typing import Any

import pytest

from secant.analysis.certificate import Certificate, Surveyed
from secant.analysis.interface import Request
from secant.analysis.residual import room as room_module
from secant.analysis.residual import rules, triangle
from secant.analysis.residual.room import ResidualRoom
from secant.plan import nodes as n
from secant.plan.domains import Listed
from secant.plan.enforce import Release, enforce
from secant.plan.evaluate import prepare
from secant.plan.from_sql import from_sql
from secant.plan.rewrite import normalize
from secant.terms import types as t
from secant.terms.catalog import Catalog, Table, catalog
from secant.terms.policy import ColumnFacts, Policy, Protection, TableFacts

BETAS = (Fraction(1, 20), Fraction(1, 2), Fraction(2))
COLUMNS = {"r": ("a", "b"), "s": ("b", "c"), "p": ("c", "d"), "e": ("src", "dst")}
VALUES = (1, 2, 3, None)
Database = Mapping[str, tuple[tuple[Any, ...], ...]]


def catalog_of(unique: Mapping[str, tuple[str, ...]]) -> Catalog:
    return catalog(
        *(
            Table(
                name,
                tuple((c, t.INTEGER) for c in columns),
                (unique[name],) if name in unique else (),
            )
            for name, columns in COLUMNS.items()
        )
    )


def policy_of(declared: Mapping[str, tuple[str, ...]]) -> Policy:
    facts = {
        name: TableFacts(
            declared.get(name, ()),
            {},
            {c: ColumnFacts(range=(Fraction(-1), Fraction(2)), values=(1, 2)) for c in columns},
        )
        for name, columns in COLUMNS.items()
    }
    rows = Protection("rows", "rows", Fraction(1), Fraction(1, 1000), tables=("r", "s", "e"))
    return Policy("", facts, (rows,))


class Case:
    """One question, asked once, and read on databases."""

    def __init__(
        self,
        text: str,
        unique: Mapping[str, tuple[str, ...]] | None = None,
        declared: Mapping[str, tuple[str, ...]] | None = None,
    ) -> None:
        self.unique = unique or {}
        known, policy = catalog_of(self.unique), policy_of(declared or {})
        plan = normalize(from_sql(text, known))
        aggregate = next(x for x in n.walk(plan) if isinstance(x, n.Aggregate))
        release = enforce(aggregate, "release1", policy, policy.protections, known)
        assert isinstance(release, Release), release
        self.tables = sorted({x.table.lower() for x in n.walk(aggregate) if isinstance(x, n.Scan)})
        outcome = ResidualRoom().bound(Request(release, policy, policy.protections[0], known))
        assert isinstance(outcome, Certificate), outcome
        self.certificate, self.release = outcome, release
        self.exact = prepare(release.exact)
        (self.column,) = (m.column for m in release.measures)
        bound = outcome.bounds[self.column]
        assert isinstance(bound, Surveyed)
        self.bound = bound
        (self.survey,) = bound.surveys
        self.runs = [prepare(statement) for statement in self.survey.statements]
        self.width = len(release.exact.keys)
        self.groups = list(
            itertools.product(*(d.values for d in release.domains if isinstance(d, Listed)))
        )
        self.known: dict[Any, Any] = {}

    def read(self, database: Database) -> dict[tuple[Any, ...], tuple[Fraction, ...]]:
        """Give each group's measure and smooth bounds."""
        key = tuple(database[name] for name in self.tables)
        if key not in self.known:
            self.known[key] = self._read(database)
        found: dict[tuple[Any, ...], tuple[Fraction, ...]] = self.known[key]
        return found

    def _read(self, database: Database) -> dict[tuple[Any, ...], tuple[Fraction, ...]]:
        step = self.release.measures[0].step
        measured = {row[: self.width]: row[self.width] for row in self.exact(database)}
        answers = [run(database) for run in self.runs]
        found = {}
        for group in self.groups:
            figures = tuple(
                tuple(r[self.width :] for r in rows if r[: self.width] == group)
                if keyed
                else tuple(rows)
                for rows, keyed in zip(answers, self.survey.keyed, strict=True)
            )
            smooth = tuple(self.survey.rows(beta, figures) for beta in BETAS)
            found[group] = (Fraction(measured.get(group) or 0) / step, *smooth)
        return found

    def neighbors(self, database: Database) -> Iterator[Database]:
        for name in self.tables:
            if name == "p":
                continue
            rows = database[name]
            for i in range(len(rows)):
                yield {**database, name: rows[:i] + rows[i + 1 :]}
            for row in itertools.product((*VALUES, 4), repeat=2):
                if self._fits(name, rows, row):
                    yield {**database, name: tuple(sorted((*rows, row), key=repr))}

    def _fits(self, name: str, rows: tuple[tuple[Any, ...], ...], row: tuple[Any, ...]) -> bool:
        places = [COLUMNS[name].index(c) for c in self.unique.get(name, ())]
        key = [row[i] for i in places]
        return not places or all([r[i] for i in places] != key for r in rows)

    def drawn(self, draw: random.Random) -> Database:
        found: dict[str, tuple[tuple[Any, ...], ...]] = dict.fromkeys(COLUMNS, ())
        most = 6 if len(self.tables) == 1 else 4
        for name in self.tables:
            rows: tuple[tuple[Any, ...], ...] = ()
            for _ in range(draw.randrange(most)):
                row = (draw.choice(VALUES), draw.choice(VALUES))
                if self._fits(name, rows, row):
                    rows = tuple(sorted((*rows, row), key=repr))
            found[name] = rows
        return found

    def faults(self, draw: random.Random, databases: int) -> list[str]:
        """Walk through neighbors; give every promise that does not hold."""
        found = []
        for _ in range(databases):
            database = self.drawn(draw)
            for _ in range(3):
                others = list(self.neighbors(database))
                for other in others:
                    found += self._compare(database, other)
                database = draw.choice(others)
        return found

    def _compare(self, one: Database, two: Database) -> list[str]:
        before, after = self.read(one), self.read(two)
        found, moved = [], 0
        for group in self.groups:
            (x, *left), (y, *right) = before[group], after[group]
            moved += (x, *left) != (y, *right)
            for beta, low, high in zip(BETAS, left, right, strict=True):
                low, high = min(low, high), max(low, high)
                if abs(x - y) > self.bound.each * low:
                    found.append(f"moves {abs(x - y)} > {float(low)} at {beta}: {one} {two}")
                if high > low * Fraction(math.exp(beta)) * (1 + Fraction(1, 2**40)):
                    found.append(f"leaps {float(low)} {float(high)} at {beta}: {one} {two}")
        if moved > self.bound.groups:
            found.append(f"{moved} groups move: {one} {two}")
        return found


ORDERED = "a.src = c.src AND a.dst = b.src AND b.dst = c.dst AND a.src < a.dst AND b.src < b.dst"
CASES: tuple[tuple[str, dict[str, tuple[str, ...]], dict[str, tuple[str, ...]]], ...] = (
    ("SELECT count(*) FROM r", {}, {}),
    ("SELECT count(*) FROM r, s WHERE r.b = s.b", {}, {}),
    ("SELECT sum(r.a) FROM r, s WHERE r.b = s.b AND s.c > 1", {}, {}),
    ("SELECT count(*) FROM r, s WHERE r.b = s.b AND r.a < s.c", {}, {}),
    ("SELECT count(*) FROM r CROSS JOIN s", {}, {}),
    ("SELECT count(*) FROM r, s, p WHERE r.b = s.b AND s.c = p.c", {}, {}),
    ("SELECT count(*) FROM r, s, p WHERE r.b = s.b AND s.c = p.c", {"s": ("b",)}, {}),
    ("SELECT count(*) FROM r, s, p WHERE r.b = s.b AND s.c = p.c", {}, {"s": ("b",), "p": ("c",)}),
    ("SELECT count(*) FROM r, s, p WHERE r.b = s.b AND s.c = p.c AND p.d = r.a", {}, {"r": ("b",)}),
    ("SELECT count(*) FROM r x, r y WHERE x.b = y.b", {}, {}),
    ("SELECT count(*) FROM r x, r y WHERE x.b = y.a", {}, {}),
    ("SELECT count(*) FROM r x, r y WHERE x.b = y.b AND x.a < y.a", {}, {}),
    ("SELECT count(*) FROM r x, r y, r z WHERE x.b = y.b AND y.b = z.b", {}, {}),
    ("SELECT count(*) FROM r x, r y, s WHERE x.b = y.b AND s.b = y.b AND x.a < y.a", {}, {}),
    ("SELECT count(*) FROM r x, r y, s WHERE x.b = s.b AND y.a = s.c", {"r": ("a",)}, {}),
    ("SELECT count(*) FROM r JOIN s ON r.b = s.b OR r.a = s.c", {}, {}),
    ("SELECT count(*) FROM (SELECT DISTINCT b FROM r) AS q, s WHERE q.b = s.b AND s.b > 1", {}, {}),
    ("SELECT a, count(*) FROM (SELECT y.a FROM r x, r y WHERE x.b = y.b AND x.a < y.a) AS q GROUP BY a", {}, {}),
    ("SELECT b, count(*) FROM (SELECT r.b FROM r, s WHERE r.b = s.b) AS q GROUP BY b", {}, {}),
    ("SELECT d, count(*) FROM (SELECT p.d FROM r, p WHERE r.b = p.c) AS q GROUP BY d", {}, {}),
    ("SELECT x, count(*) FROM (SELECT f.a AS x FROM r f, r g WHERE f.a = g.b) AS q GROUP BY x", {}, {}),
    ("SELECT count(*) FROM e a, e b, e c WHERE a.dst = b.src AND b.dst = c.src AND c.dst = a.src", {}, {}),
    (f"SELECT count(*) FROM e a, e b, e c WHERE {ORDERED}", {"e": ("src", "dst")}, {}),
    (f"SELECT count(*) FROM e a, e b, e c WHERE {ORDERED}", {}, {}),
    (
        (
            "WITH w AS (SELECT DISTINCT src, dst FROM e) SELECT count(*) FROM w a, w b, w c "
            "WHERE a.dst = b.src AND b.dst = c.src AND c.dst = a.src "
            "AND a.src < b.src AND a.src < c.src AND b.src <> c.src"
        ),
        {},
        {},
    ),
    (
        (
            "SELECT count(*) FROM e a, e b, e c WHERE a.dst = b.src AND b.dst = c.src "
            "AND c.dst = a.src AND a.src <> a.dst AND b.src <> b.dst AND c.src <> c.dst"
        ),
        {"e": ("src", "dst")},
        {},
    ),
)  # fmt: skip


@pytest.mark.parametrize(("text", "unique", "declared"), CASES)
def test_no_neighbor_moves_more(text, unique, declared):
    assert Case(text, unique, declared).faults(random.Random(5), 2) == []


def caught(text: str, unique: Mapping[str, tuple[str, ...]] | None = None) -> bool:
    case = Case(text, unique)
    return any(case.faults(random.Random(seed), 2) for seed in range(4))


def test_a_row_that_counts_for_one_copy_only_is_caught(monkeypatch):
    some = rules.subsets
    monkeypatch.setattr(
        rules, "subsets", lambda items, least=0: [x for x in some(items, least) if len(x) == least]
        if least else some(items)
    )  # fmt: skip
    assert caught("SELECT count(*) FROM r x, r y WHERE x.b = y.b")


def test_rows_that_do_not_grow_are_caught(monkeypatch):
    monkeypatch.setattr(rules.Residuals, "_manageable", lambda *_: True)
    whole = rules.Residuals._grown
    monkeypatch.setattr(rules.Residuals, "_grown", lambda self, a, b: whole(self, a, b)[:1])
    assert caught("SELECT count(*) FROM r, s WHERE r.b = s.b")


def test_every_copy_charged_by_itself_is_caught(monkeypatch):
    # papers.md, error 7: one row more is one row more of every copy
    def charged(growth: Any, tables: int) -> Any:
        whole = room_module.polynomial

        def smooth(beta: Fraction, values: list[int]) -> Fraction:
            found = whole(growth, tables, values)
            # s changes of the table as s / 2 of each of two copies
            best = max(
                math.exp(-beta * k) * sum(c * (k / 2) ** sum(p) for p, c in found.items())
                for k in range(200)
            )
            return Fraction(best)

        return smooth

    monkeypatch.setattr(room_module, "_smoother", charged)
    assert caught("SELECT count(*) FROM r x, r y, r z WHERE x.b = y.b AND y.b = z.b")


def test_changes_up_to_the_number_of_rows_only_are_caught(monkeypatch):
    # papers.md, error 11
    monkeypatch.setattr(
        room_module,
        "largest_split",
        lambda found, beta, last: Fraction(found.get((0,) * len(last), 0)),
    )
    monkeypatch.setattr(room_module, "largest_discounted", lambda at, beta, degree: Fraction(at(0)))
    assert caught("SELECT count(*) FROM r, s WHERE r.b = s.b")


def test_an_edge_that_is_there_twice_is_caught(monkeypatch):
    monkeypatch.setattr(triangle, "_simple", lambda side, unique: True)
    assert caught(f"SELECT count(*) FROM e a, e b, e c WHERE {ORDERED}")


def test_loops_are_caught(monkeypatch):
    monkeypatch.setattr(triangle, "_HOLDS", {**triangle._HOLDS, "<=": lambda a, b: a < b})
    text = f"SELECT count(*) FROM e a, e b, e c WHERE {ORDERED}".replace("<", "<=")
    assert caught(text, {"e": ("src", "dst")})


def test_common_neighbors_that_do_not_grow_are_caught(monkeypatch):
    monkeypatch.setattr(room_module, "largest_discounted", lambda at, beta, degree: Fraction(at(0)))
    assert caught(f"SELECT count(*) FROM e a, e b, e c WHERE {ORDERED}", {"e": ("src", "dst")})


def test_unkeyed_figures_with_one_group_are_caught(monkeypatch):
    whole = room_module.grouping_of

    def forgetful(release: Release, shape: Any) -> Any:
        found = whole(release, shape)
        return type(found)({}, found.types, found.groups, found.words)

    monkeypatch.setattr(room_module, "grouping_of", forgetful)
    assert caught("SELECT b, count(*) FROM (SELECT r.b FROM r, s WHERE r.b = s.b) AS q GROUP BY b")
