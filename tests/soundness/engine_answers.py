"""Databases in a real engine, and whether its answers to a release are those that `evaluate` gives.

In: tables with the catalog's types, rows for them, releases. Out: rows and measures in whole steps from DuckDB as
Secant locks it, and how they differ from the interpreter's. Never here: what is claimed about neighbors.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any

import duckdb
from neighbor_check import Database, Findings, Target, World, _Runner, prepared_for

from secant.engines.dialect import DUCKDB, constant, quote, type_name
from secant.engines.duckdb.session import DuckDBSession, lock
from secant.engines.print.print_sql import lower
from secant.errors import BackendError
from secant.plan import nodes as n
from secant.plan.evaluate.evaluate import evaluate
from secant.plan.evaluate.values import Failure, same_key
from secant.plan.rewrites.enforce import MeasuredAggregate
from secant.plan.rewrites.measures import Measure
from secant.policy.policy import USUAL
from secant.schema import types as t
from secant.schema.catalog import catalog
from secant.sensitivity.portfolio import CertifiedRelease

Columns = Mapping[str, Sequence[tuple[str, t.Type]]]
Steps = Mapping[tuple[Any, ...], tuple[Fraction, ...]]

HOSTILE: Mapping[str, tuple[Any, ...]] = {
    "TEXT": ("", "'", "a'b", '"', "é", "\u202e", "𝔘", "a%", "_", "A", " a", "a ", "\n", "ß", "-1"),
    "INTEGER": (2**63 - 1, -(2**63), 2**62, 2**62 + 1, -(2**62) - 1, 2**53 + 1, 0, -1),
    "DOUBLE": (math.nan, math.inf, -math.inf, -0.0, 0.0, 1e308, -1e308, 5e-324, 2.0**63, 0.1, 1 / 3),
    "DECIMAL": tuple(Decimal(x) for x in ("999999.99", "-999999.99", "0.01", "-0.01", "0.00")),
}  # fmt: skip


class Engine:
    """DuckDB with some tables, locked down as for a release; their rows can be changed from here only."""

    def __init__(self, tables: Columns, stored: Mapping[str, str] | None = None) -> None:
        self.tables = tables
        self.stored = stored or {}
        """Column -> the engine's own type, where it is not the one that the plan's type is written as."""
        self._connection = duckdb.connect(":memory:")
        for name, columns in tables.items():
            written = ", ".join(f"{quote(c)} {self._type(c, kind)}" for c, kind in columns)
            self._connection.execute(f"CREATE TABLE {quote(name)} ({written})")
        lock(self._connection, [], 1)
        self.backend = DuckDBSession(self._connection, catalog, lambda: None, USUAL)
        self._loaded: dict[str, str] = dict.fromkeys(tables, "[]")

    def _type(self, column: str, kind: t.Type) -> str:
        return self.stored.get(column) or type_name(DUCKDB, kind)

    def load(self, database: Database) -> None:
        """Put exactly these rows into the tables."""
        for name, columns in self.tables.items():
            rows = [tuple(row[c] for c, _ in columns) for row in database[name]]
            if repr(rows) == self._loaded[name]:  # as written: -0.0 is not 0.0
                continue
            self._connection.execute(f"DELETE FROM {quote(name)}")
            if rows:
                written = ", ".join(f"({self._written(row, columns)})" for row in rows)
                self._connection.execute(f"INSERT INTO {quote(name)} VALUES {written}")
            self._loaded[name] = repr(rows)

    def _written(self, row: Sequence[Any], columns: Sequence[tuple[str, t.Type]]) -> str:
        # Given as text and cast by the engine: the ends of time, which Python has no value for, and -0.0.
        return ", ".join(
            f"TRY_CAST({constant(DUCKDB, None if value is None else str(value), t.TEXT)} "
            f"AS {self._type(c, kind)})"
            for value, (c, kind) in zip(row, columns, strict=True)
        )

    def takes(self, plan: n.Relation) -> bool:
        """Whether the engine binds the statement, which it is asked before anything is spent."""
        try:
            self.backend.check(lower(plan))
        except BackendError:
            return False
        return True

    def rows(self, plan: n.Relation, database: Database) -> list[tuple[Any, ...]]:
        """Answer a plan on a database as a release would; an error of the engine is a Failure."""
        return self.answers(plan)(database)

    def answers(self, plan: n.Relation) -> Callable[[Database], list[tuple[Any, ...]]]:
        """Give what the interpreter's `prepare` gives, from the engine."""
        statement = lower(plan)

        def run(database: Database) -> list[tuple[Any, ...]]:
            self.load(database)
            try:
                return self.backend.rows(statement)
            except BackendError:
                raise Failure from None

        return run

    def close(self) -> None:
        self._connection.close()


def in_steps(release: MeasuredAggregate, rows: Sequence[Sequence[Any]]) -> Steps:
    """Read the rows of a release: keys, and measures as numbers of steps."""
    width = len(release.exact.keys)
    found: dict[tuple[Any, ...], tuple[Fraction, ...]] = {}
    for row in rows if release.measures else ():
        key = tuple(map(same_key, row[:width]))
        assert key not in found, "one row for each group"
        pairs = zip(row[width:], release.measures, strict=True)
        found[key] = tuple(_steps(value, measure) for value, measure in pairs)
    return found


def _steps(value: Any, measure: Measure) -> Fraction:
    if value is None:
        return Fraction(0)
    return Fraction(value) if measure.type.kind == "DOUBLE" else Fraction(value) / measure.step


FAILED = "the engine fails"


def difference(engine: Engine, release: MeasuredAggregate, database: Database) -> str | None:
    """Say how the engine's answer to a release differs from the interpreter's; None if it does not."""
    try:
        got = in_steps(release, engine.rows(release.exact, database))
        for ranked in release.ranked:
            counted = engine.rows(ranked.cells, database), evaluate(ranked.cells, database)
            mine, meant = (sorted((*map(str, map(same_key, r)),) for r in x) for x in counted)
            if mine != meant:
                return f"cells {mine} instead of {meant} of {ranked.words}"
    except Failure:
        return FAILED
    want = in_steps(release, evaluate(release.exact, database))
    if any(value.denominator != 1 for row in got.values() for value in row):
        return f"broken steps: {got}"
    keys = [k for k in {**want, **got} if got.get(k) != want.get(k)]
    if not keys:
        return None
    told = "; ".join(f"{k}: {got.get(k)} instead of {want.get(k)}" for k in keys)
    return f"{told} of {[m.words for m in release.measures]}"


def releases_of(text: str, world: World) -> tuple[CertifiedRelease, ...]:
    """Give the bounded releases of a query; none if it is refused."""
    prepared = prepared_for(text, world)
    return () if prepared is None else tuple(prepared.bounded)


def target_on(engine: Engine, text: str, world: World, findings: Findings) -> Target:
    """Give a query as a target whose answers come from the engine."""
    found = releases_of(text, world)
    runners = tuple(
        _Runner(
            b,
            engine.answers(b.release.exact),
            tuple(engine.answers(r.cells) for r in b.release.ranked),
        )
        for b in found
    )
    return Target(text, world, runners, findings)


def made_hostile(
    draw: random.Random, database: Database, tables: Columns, share: float
) -> dict[str, list[dict[str, Any]]]:
    """Put values that engines stumble over in the place of some."""
    found: dict[str, list[dict[str, Any]]] = {}
    for name, rows in database.items():
        found[name] = [dict(row) for row in rows]
        for row in found[name]:
            for column, kind in tables[name]:
                if draw.random() < share:
                    row[column] = draw.choice((*HOSTILE[kind.kind], None))
    return found
