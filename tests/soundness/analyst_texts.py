"""What analysts write, three ways: the engine on the text, the engine on the plan that was made of it, `evaluate`.

In: an engine with the schema of `analyst_worlds`. Out: how the three differ. Texts that the engine itself does not
take, or that fail there on a row, have no answer to be compared; the plan's two ways are compared all the same.
"""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

from analyst_questions import Analyst
from analyst_search import named
from analyst_worlds import COLUMNS, SPREAD, draw_database, inserts, read_catalog
from neighbor_check import Database, World

from secant.engines.dialect import Dialect
from secant.engines.print.print_sql import lower
from secant.errors import BackendError, SqlError
from secant.plan import nodes as n
from secant.plan.evaluate.evaluate import evaluate
from secant.plan.evaluate.values import Failure
from secant.plan.rewrites.null_on_error import make_total
from secant.plan.rewrites.rewrite import normalize
from secant.policy.policy import Policy
from secant.schema.catalog import Catalog
from secant.sql.bind import from_sql

OPEN = Policy("", {}, ())
"""Nothing is protected: rows need not keep any key."""
Rows = list[Sequence[object]]


@dataclass(frozen=True)
class Engine:
    """An engine with the tables, and how it is spoken to."""

    catalog: Catalog
    dialect: Dialect
    errors: type[Exception]
    """What the engine raises."""
    ask: Callable[[str], Rows]
    """Answers a text."""
    run: Callable[[str], Rows]
    """Answers a printed plan, as Secant runs it."""
    fill: Callable[[Iterable[str]], None]
    """Empties all tables, then runs statements."""
    name: str

    def shapes(self, plan: n.Relation) -> list[tuple[n.Relation, bool]]:
        """Give the plans to print, and whether they mean what the text does whatever the rows hold.

        PostgreSQL gets what cannot fail only, which leaves out numbers whose squares are none.
        """
        total = (make_total(plan), False)
        return [(plan, True), total] if self.name == "duckdb" else [total]


@dataclass
class Compared:
    """What was compared, and what differed."""

    asked: int = 0
    planned: int = 0
    texts: int = 0
    """Texts whose own answer was compared."""
    used: Counter[str] = field(default_factory=Counter)
    spoken: Counter[str] = field(default_factory=Counter)
    """Constructs of the texts that the engine took itself."""
    differences: list[str] = field(default_factory=list)


def compare(engine: Engine, seed: int, found: Compared, databases: int = 2) -> None:
    """Draw a question from a seed and ask it three ways on some databases."""
    draw = random.Random(seed)
    analyst = Analyst(draw, tuple(COLUMNS), exact=True)
    text = analyst.question()
    found.asked += 1
    try:
        plan = from_sql(text, engine.catalog)
    except SqlError:
        return
    found.planned += 1
    found.used.update(analyst.used)
    world = World(read_catalog(False), OPEN, SPREAD)
    answered = False
    for _ in range(databases):
        database = draw_database(draw, world, named(text))
        engine.fill(inserts(database))
        told, spoke = _difference(engine, text, plan, database)
        answered = answered or spoke
        if told is not None:
            found.differences.append(f"seed {seed}: {told}\n  {text}\n  {_shown(database)}")
            return
    if answered:
        found.texts += 1
        found.spoken.update(analyst.used)


def _difference(
    engine: Engine, text: str, plan: n.Relation, database: Database
) -> tuple[str | None, bool]:
    try:
        want = engine.ask(text)
    except engine.errors:
        want = None
    for shape, plain in engine.shapes(normalize(plan)):
        try:
            meant = evaluate(shape, database)
        except Failure:
            return None, False  # over public rows an expression may fail
        try:
            got = engine.run(lower(shape, engine.dialect))
        except BackendError:
            continue
        except engine.errors as error:
            if want is None:
                continue
            return f"the printed plan fails where the text does not: {error}", True
        if not alike(got, meant):
            return f"printed {_sorted(got)} instead of {_sorted(meant)}", want is not None
        # What cannot fail means something else where the engine goes on with infinite numbers: log2(0), 1e300 squared.
        holds = plain or (engine.name == "postgres" and _finite(database))
        if want is not None and holds and not alike(want, meant):
            return f"the text gives {_sorted(want)}, the plan {_sorted(meant)}", True
    return None, want is not None


def _finite(database: Database) -> bool:
    reals = (
        v for rows in database.values() for r in rows for v in r.values() if isinstance(v, float)
    )
    return all(abs(v) < 1e100 for v in reals)


def alike(one: Iterable[Sequence[object]], two: Iterable[Sequence[object]]) -> bool:
    """Whether two answers are the same bag of rows; reals to nine digits, no number for NaN."""
    mine, left = _sorted(one), _sorted(two)
    if mine == left or len(mine) != len(left):
        return mine == left
    # Two reals that agree in nine digits may be written differently, where the tenth is near a half.
    for row in mine:
        found = next((x for x in left if all(map(_near, row, x))), None)
        if found is None:
            return False
        left.remove(found)
    return True


def _near(one: str, two: str) -> bool:
    try:
        return one == two or math.isclose(float(one), float(two), rel_tol=1e-8)
    except ValueError:  # no numbers
        return False


def _sorted(rows: Iterable[Sequence[object]]) -> list[tuple[str, ...]]:
    return sorted(tuple(map(_written, row)) for row in rows)


def _written(value: object) -> str:
    if isinstance(value, UUID):
        value = str(value)
    if isinstance(value, datetime) and value.tzinfo is not None:
        value = value.astimezone(UTC).replace(tzinfo=None)
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, bool) or not isinstance(value, (int, float, Decimal)):
        return repr(value)
    if isinstance(value, float) and math.isnan(value):
        return "None"  # statistics of pairs that do not vary: NULL here, NaN or NULL there
    return f"{0.0 if abs(value) < 1e-12 else float(value):.9g}"


def _shown(database: Database) -> Any:
    return {name: [tuple(r.values()) for r in rows] for name, rows in database.items() if rows}
