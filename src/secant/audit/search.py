"""The search: small databases, all their neighbors, and how far each measure really moves beside what is certified.

In: a question under an owner's policy. Out: for each claim the largest ratio of what was found to what is certified,
with the pair of databases that gave it. Above 1, the claim is refuted. What is read is what a release reads.
"""

from __future__ import annotations

import math
import random
import time
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from fractions import Fraction
from functools import partial
from typing import Any

import duckdb

from secant.audit.databases import Drawing, as_kind, constants_of
from secant.audit.neighbors import Database, neighbors, rank_distance
from secant.engine import Connection, bind_question
from secant.engines.backend import Session
from secant.engines.dialect import DUCKDB, Dialect, quote
from secant.engines.duckdb.session import DuckDBSession
from secant.engines.print.print_sql import lower
from secant.errors import SecantError, UsageError
from secant.noise.query_plan import Units, Weighed, numbered
from secant.noise.smooth import SLACK
from secant.plan import nodes as n
from secant.plan.facts.reads import tables_read
from secant.policy.coverage import is_open
from secant.policy.policy import Limits, Protection
from secant.records import frozen
from secant.release.inspection import Unsealed, unsealed
from secant.release.measured import comparable, in_steps
from secant.release.print import check_statements
from secant.release.release_plan import Keys, ReleasePlan, released_fields
from secant.release.staged_tables import stage
from secant.release.tallies import Tally, read_tallies
from secant.schema.catalog import Catalog
from secant.schema.types import Type
from secant.sensitivity.bound import CertifiedRelease
from secant.sensitivity.bounds import GlobalBound
from secant.sensitivity.certificate import Certificate, ClippedContribution
from secant.sql.query_context import query_context
from secant.stages.ask import ask
from secant.stages.open import open_snapshot

STEPS = 8
"""Small changes of the worst database before a new one is drawn."""
LEVEL = 0.95
"""Errors are not compared; a question has a level all the same."""
ZERO = Fraction(0)


@frozen
class Claim:
    """One thing that a certificate says of two neighbors, in whole steps or rows."""

    protection: str
    measure: str
    what: str
    """`bound`, `length`, `limit`, `units`, `smooth`, `smoothness`, `ranks`, `groups` or `key`."""


@dataclass(slots=True)
class Worst:
    """The largest ratio that was found for a claim."""

    certified: Fraction
    found: Fraction
    ratio: Fraction
    before: Database
    after: Database


@dataclass(slots=True)
class Found:
    """What a search has seen."""

    databases: int = 0
    pairs: int = 0
    worst: dict[Claim, Worst] = field(default_factory=dict)
    not_searched: list[str] = field(default_factory=list)

    @property
    def refuted(self) -> list[Claim]:
        """Give the claims that some pair refutes."""
        return [claim for claim, worst in self.worst.items() if worst.ratio > 1]


def audit(
    connection: Connection,
    text: str,
    *,
    epsilon: Any = 1,
    delta: Any = None,
    protection: str | None = None,
    databases: int = 100,
    seconds: float = 20.0,
    seed: int | None = None,
) -> Found:
    """Search neighbors of small databases under the policy and the schema of a connection. Reads none of its rows."""
    if not (databases >= 1 and seconds > 0):
        raise UsageError("USE-001", "an audit draws a database at least, and takes some time")
    engine = DrawnEngine(connection.catalog, connection.policy.limits)
    drawn = Connection(engine, connection.policy, ":memory:")
    numbers = (epsilon, delta, protection)
    search = _Search(drawn, engine, text, numbers, random.Random(seed), Found())  # noqa: S311 - no noise is drawn by it
    try:
        search.run(databases, time.monotonic() + seconds)
    finally:
        drawn.close()
    return search.found


@dataclass(slots=True)
class _Search:
    connection: Connection
    engine: DrawnEngine
    text: str
    numbers: tuple[Any, Any, str | None]
    draw: random.Random
    found: Found

    def run(self, most: int, until: float) -> None:
        drawing = self._drawing()
        current: Database | None = None
        best, left = Fraction(-1), 0
        while self.found.databases < most and (time.monotonic() < until or not self.found.pairs):
            if current is None or left == 0:
                current, best, left = None, Fraction(-1), STEPS
                database = drawing.database(self.draw)
            else:
                database = drawing.changed(current, self.draw)
            left -= 1
            ratio = self._tried(database, drawing, until)
            if ratio >= best:
                best, current = ratio, database

    def _drawing(self) -> Drawing:
        """Compile once on empty tables, to know what is read and compared with."""
        policy, catalog = self.connection.policy, self.connection.catalog
        with self._settled() as (job, _, _):
            if not job.prepared.bounded:
                raise UsageError(
                    "USE-001",
                    "the question reads nothing that is protected: there is nothing to audit",
                )
            plans = [x for r in job.readings.values() for x in r.relations().values()]
            read = {t for plan in plans for t in tables_read(plan)} & set(catalog.tables)
            for b in job.prepared.bounded:
                self.found.not_searched += [
                    f"{c.protection}: neighbors of this kind of protection are not drawn"
                    for c in b.certificates
                    if self._protection(c).kind not in ("rows", "unit")
                    and f"{c.protection}:" not in str(self.found.not_searched)
                ]
        parents = {p for t in read for p, _ in policy.facts(t).references.values()}
        used = tuple(sorted((read | parents) & set(catalog.tables)))
        public = frozenset(t for t in used if is_open(policy, t))
        return Drawing(catalog, policy, used, constants_of(plans), public)

    @contextmanager
    def _settled(self) -> Iterator[tuple[ReleasePlan, Mapping[str, Keys | None], Session]]:
        """Give the question as it would be released, checked, with the session that would answer it."""
        epsilon, delta, protection = self.numbers
        drawn = self.connection
        with query_context(self.text):
            question = ask(
                self.text, drawn.policy, epsilon=epsilon, delta=delta, level=LEVEL,
                protection=protection,
            )  # fmt: skip
            plan = bind_question(question, drawn.catalog)
            with open_snapshot(plan, drawn._source) as snapshot:
                release = drawn._planned(question, plan, snapshot)
                check_statements(release, snapshot.session)
                yield release, release.keys, snapshot.session

    def _protection(self, certificate: Certificate) -> Protection:
        named = self.connection.policy.protection(certificate.protection)
        assert named is not None, "a certificate speaks of a protection of the policy"
        return named

    def _tried(self, database: Database, drawing: Drawing, until: float) -> Fraction:
        """Try all neighbors of a database; give the largest ratio."""
        everywhere = {t: database.get(t, []) for t in self.connection.catalog.tables}
        self.engine.put(everywhere)
        pool = drawing.pool(self.draw)
        self.found.databases += 1
        most = ZERO
        try:
            with self._settled() as (job, keys, session):
                before = _read(job, keys, session)
                for name in dict.fromkeys(
                    c.protection for b in job.prepared.bounded for c in b.certificates
                ):
                    protection = self.connection.policy.protection(name)
                    assert protection is not None
                    if protection.kind not in ("rows", "unit"):
                        continue
                    for other in neighbors(
                        database, drawing.policy, drawing.catalog, protection, pool
                    ):
                        if time.monotonic() > until and self.found.pairs:
                            return most
                        self.engine.put(other)
                        after = _read(job, keys, session)
                        self.found.pairs += 1
                        for claim, certified, change in _claims(job, name, before, after):
                            most = max(most, self._noted(claim, certified, change, database, other))
                    self.engine.put(everywhere)
        except SecantError as error:
            if error.code not in (
                "POL-004",
                "REF-101",
            ):  # a public table that was drawn does not fit the policy
                raise
        return most

    def _noted(
        self, claim: Claim, certified: Fraction, change: Fraction, before: Database, after: Database
    ) -> Fraction:
        ratio = change / certified if certified else Fraction(2 if change else 0)
        worst = self.found.worst.get(claim)
        if worst is None or ratio > worst.ratio:
            self.found.worst[claim] = Worst(certified, change, ratio, before, after)
        return ratio


# ── what a release reads ─────────────────────────────────────────────────────────────────────────


@frozen
class _Figures:
    """What one release reads of one database."""

    values: Unsealed
    cut: Mapping[tuple[str, int], Mapping[Any, Fraction]]
    """(measure, limit) -> group -> the measure with units cut down to the limit, in whole steps."""
    above: Mapping[str, tuple[int, ...]]
    """Measure -> for each limit, how many units add more."""


def _read(
    job: ReleasePlan, keys: Mapping[str, Keys | None], engine: Session
) -> dict[str, _Figures]:
    """Read all releases; later ones read constants, the same ones of all databases (workflow.staged)."""
    figures = {}
    session = stage(engine, _constants(job))
    for b in job.prepared.bounded:
        cut: dict[tuple[str, int], Mapping[Any, Fraction]] = {}
        above: dict[str, tuple[int, ...]] = {}
        for index, units in enumerate(job.readings[b.release.name].units.values()):
            _read_units(b, job, units, index, session, cut, above)
        for statement, weighed in job.readings[b.release.name].weighed.items():
            _read_weights(job, statement, weighed, session, cut, above)
        figures[b.release.name] = _Figures(
            unsealed(b, job, keys[b.release.name], session), cut, above
        )
    return figures


def _constants(job: ReleasePlan) -> dict[str, n.Values]:
    """Give one row for each earlier release that later ones read."""
    return {
        b.release.name: n.Values(f, (tuple(as_kind(1, column.type) for column in f),))
        for b in job.prepared.bounded
        for f in (released_fields(b),)
    }


def _read_units(
    b: CertifiedRelease,
    job: ReleasePlan,
    units: Units,
    index: int,
    session: Session,
    cut: dict[tuple[str, int], Mapping[Any, Fraction]],
    above: dict[str, tuple[int, ...]],
) -> None:
    contributions, measures = units.made, {m.column: m for m in b.release.measures}
    name = b.release.name
    tallies: Mapping[str, Tally] = {}

    def steps(column: str, value: Any) -> int:
        return in_steps(value, measures[column])

    if contributions.at_once is not None:
        fetched = session.rows(job.statements[numbered(f"{name} units", index)])
        tallies = read_tallies(contributions.at_once, fetched, steps)
        for column in units.clipped:
            edges = contributions.at_once.limits[column]
            for limit, value in zip(edges, tallies[column].cut, strict=True):
                cut[column, limit] = {(): Fraction(value)}
    else:
        if contributions.above is not None:
            fetched = session.rows(job.statements[numbered(f"{name} above", index)])
            tallies = read_tallies(contributions.above, fetched, steps)
        parts = {c: x.bound.limits for c, x in units.clipped.items()}
        for part in range(4 if parts else 0):
            chosen = {c: x[(len(x) - 1) * part // 3] for c, x in parts.items()}
            plan = contributions.clipped(chosen)
            width = len(plan.keys)
            rows = session.rows(lower(plan, session.dialect))
            for i, call in enumerate(plan.aggregations):
                fine = units.clipped[call.name].bound.fine
                cut[call.name, chosen[call.name]] = {
                    comparable(row[:width]): Fraction(
                        in_steps(row[width + i], measures[call.name]), fine
                    )
                    for row in rows
                }
    for column in units.clipped:
        above[column] = tuple(tallies[column].above) if column in tallies else ()


def _read_weights(
    job: ReleasePlan,
    statement: str,
    weighed: Weighed,
    session: Session,
    cut: dict[tuple[str, int], Mapping[Any, Fraction]],
    above: dict[str, tuple[int, ...]],
) -> None:
    """Read what the rows of units weigh, cell by cell, for some of the limits that may be chosen."""
    limits, column = weighed.bound.limits, weighed.column
    tallies = weighed.bound.contributions.above
    above[column] = ()
    if tallies is not None:
        fetched = session.rows(job.statements[f"{statement} above"])
        above[column] = tuple(read_tallies(tallies, fetched, lambda *_: 0)[column].above)
    for part in range(4):
        limit = limits[(len(limits) - 1) * part // 3]
        rows = session.rows(lower(weighed.cut(limit), session.dialect))
        cut[column, limit] = {
            comparable(row[:-1]): Fraction(int(str(row[-1] or 0)), weighed.bound.fine)
            for row in rows
        }


# ── claims ───────────────────────────────────────────────────────────────────────────────────────


def _claims(
    job: ReleasePlan, protection: str, before: Mapping[str, _Figures], after: Mapping[str, _Figures]
) -> Iterator[tuple[Claim, Fraction, Fraction]]:
    """Give each claim about a pair of neighbors: what is certified, and what is so."""
    for b in job.prepared.bounded:
        certificate = next(c for c in b.certificates if c.protection == protection)
        one, two = before[b.release.name], after[b.release.name]
        for m in b.release.measures:
            bound = certificate.bounds[m.column]
            about = m.words

            def claim(what: str, about: str = about) -> Claim:
                return Claim(protection, about, what)

            if isinstance(bound, ClippedContribution):
                yield from _cut_claims(bound, m.column, one, two, claim)
                continue
            if isinstance(bound, GlobalBound):
                changes = _changes(one.values, two.values, m.column)
                yield claim("bound"), bound.value, sum((abs(x) for x in changes), ZERO)
                yield (
                    claim("length"),
                    certificate.squared(m.column),
                    sum((x * x for x in changes), ZERO),
                )
                if m.column == b.release.selector:
                    yield (
                        claim("key"),
                        Fraction(certificate.contribution),
                        max(map(abs, changes), default=ZERO),
                    )
                    reached = Fraction(sum(x != 0 for x in changes))
                    yield claim("groups"), Fraction(certificate.groups), reached
            else:
                yield from _smooth_claims(job, m.column, one, two, claim)
        weighed = b.release.weighed
        if weighed is not None:
            changes = _changes(one.values, two.values, weighed.column)
            size, length = sum(map(abs, changes), ZERO), sum((x * x for x in changes), ZERO)
            yield Claim(protection, "weights of units", "bound"), weighed.size, size
            yield Claim(protection, "weights of units", "length"), weighed.squared, length
            reached = Fraction(sum(x != 0 for x in changes))
            yield Claim(protection, "weights of units", "groups"), Fraction(weighed.most), reached
        for r in b.release.ranked:
            bound = certificate.bounds[r.column]
            if isinstance(bound, ClippedContribution):
                made = partial(Claim, protection, r.words)
                yield from _cut_claims(bound, r.counted.name, one, two, made)
                continue
            assert isinstance(bound, GlobalBound), "ranks have public bounds"
            apart = _ranks_apart(r, one.values, two.values)
            yield Claim(protection, r.words, "ranks"), bound.value, apart


def _changes(one: Unsealed, two: Unsealed, column: str) -> list[Fraction]:
    a, b = one.values[column], two.values[column]
    return [Fraction(a.get(k, 0)) - Fraction(b.get(k, 0)) for k in {**a, **b}]


def _cut_claims(
    bound: ClippedContribution, column: str, one: _Figures, two: _Figures, claim: Any
) -> Iterator[tuple[Claim, Fraction, Fraction]]:
    """Units above a limit are one fewer at most, all counts alike; sums that are cut down move by the limit."""
    moves = [
        a - b for a, b in zip(one.above.get(column, ()), two.above.get(column, ()), strict=True)
    ]
    if moves:
        both_ways = min(moves) < 0 < max(moves)
        yield claim("units"), Fraction(1), Fraction(2 if both_ways else max(map(abs, moves)))
    for (name, limit), values in one.cut.items():
        if name == column:
            others = two.cut[name, limit]
            apart = [abs(values.get(k, ZERO) - others.get(k, ZERO)) for k in {**values, **others}]
            yield claim("limit"), Fraction(limit), sum(apart, ZERO)
            yield claim("length"), bound.squared(limit), sum((x * x for x in apart), ZERO)


def _smooth_claims(
    job: ReleasePlan, column: str, one: _Figures, two: _Figures, claim: Any
) -> Iterator[tuple[Claim, Fraction, Fraction]]:
    """A smooth bound holds on either side, and does not leap."""
    noise = job.noise.noise[column]
    beta = float(getattr(noise, "beta", 0))
    widening = getattr(noise, "widening", ZERO)
    a, b = one.values.smooth[column], two.values.smooth[column]
    for key in {**a, **b}:
        if key not in a or key not in b:
            continue
        (x, here), (y, there) = a[key], b[key]
        yield claim("smooth"), min(here, there) + widening, Fraction(abs(x - y))
        if here and there:
            most = Fraction(math.exp(beta)) * (1 + 4 * SLACK)
            yield claim("smoothness"), most, max(here / there, there / here)


def _ranks_apart(ranked: Any, one: Unsealed, two: Unsealed) -> Fraction:
    apart = ZERO
    first, second = one.cells[ranked.column], two.cells[ranked.column]
    for key in {**first, **second}:
        cells = dict(first.get(key, ())), dict(second.get(key, ()))
        near = {i + d for i in {*cells[0], *cells[1]} for d in (-1, 0, 1)}
        points = [i for i in near if 0 <= i < ranked.grid.count]
        moves = [
            rank_distance(ranked.fraction, cells[1], i)
            - rank_distance(ranked.fraction, cells[0], i)
            for i in points
        ]
        apart += Fraction(max(moves) - min(moves)) if moves else ZERO
    return apart


# ── an engine in memory that holds a drawn database, with the owner's names and types ──────────────


class DrawnEngine:
    """Tables that are filled anew for each database."""

    dialect: Dialect = DUCKDB

    def __init__(self, catalog: Catalog, limits: Limits) -> None:
        self._catalog, self._limits = catalog, limits
        self._engine = duckdb.connect(":memory:")
        self._held: Database = {}
        for table in catalog.tables.values():
            columns = ", ".join(f"{quote(c)} {_written(kind)}" for c, kind in table.columns)
            self._engine.execute(f"CREATE TABLE {quote(table.name)} ({columns})")

    def put(self, database: Database) -> None:
        """Hold these rows, and no others; tables that are the same stay."""
        for name, rows in database.items():
            if self._held.get(name) is rows:
                continue
            table = self._catalog.tables[name]
            self._engine.execute(f"DELETE FROM {quote(table.name)}")
            if rows:
                places = ", ".join("?" for _ in table.columns)
                values = [[row[c.lower()] for c, _ in table.columns] for row in rows]
                self._engine.executemany(
                    f"INSERT INTO {quote(table.name)} VALUES ({places})", values
                )
        self._held = {**self._held, **database}

    def catalog(self) -> Catalog:
        """Give the owner's catalog."""
        return self._catalog

    @contextmanager
    def session(self, tables: Collection[str] = ()) -> Iterator[DuckDBSession]:
        """Begin a question."""
        yield DuckDBSession(self._engine, self.catalog, lambda: None, self._limits)

    def close(self) -> None:
        """Let go of the engine."""
        self._engine.close()


def _written(kind: Type) -> str:
    return str(kind) if kind.kind == "DECIMAL" else DUCKDB.types[kind.kind]
