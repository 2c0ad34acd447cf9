"""What the other random searches draw, counted by the same recorder as the slot search.

In: seeds. Out: for each grammar, what its questions hold as they are read. Nothing is bounded or run here.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import derivative_drawn
import derivative_worlds
import drawn_queries
import drawn_worlds
import joins_queries
import joins_worlds
from slot_coverage import Coverage, keys_of, wanted

from secant.errors import SecantError
from secant.schema import types as t
from secant.schema.catalog import Catalog, Table, catalog
from secant.sql.bind import from_sql

sys.path.append(str(Path(__file__).parent.parent / "backends"))

import random_queries

KINDS = {"int": t.INTEGER, "text": t.TEXT, "float": t.DOUBLE, "decimal": t.decimal(12, 2), "date": t.DATE,
         "bool": t.BOOLEAN, "time": t.TIMESTAMP}  # fmt: skip
READ = (
    "node",
    "slot",
    "function",
    "aggregate",
    "join",
    "set",
    "operator",
    "part",
    "cast",
    "limit",
    "sort",
)
"""What a plan holds before it is bounded."""


def _drawn(count: int) -> Iterator[str]:
    for seed in range(count):
        draw = random.Random(seed)
        world = drawn_worlds.draw_world(draw)
        yield drawn_queries.Questions(draw, drawn_worlds.favored_tables(world)).question()


def _statements(count: int) -> Iterator[str]:
    writer = random_queries.Writer(0)
    for _ in range(count):
        yield writer.statement()


def recorded(count: int) -> dict[str, Coverage]:
    """Give what each grammar draws with so many seeds."""
    small = {
        name: tuple((c, KINDS[kind]) for c, kind in columns.items())
        for name, columns in random_queries.COLUMNS.items()
    }
    joins = (joins_queries.Questions(random.Random(i)).question() for i in range(count))
    derivative = (derivative_drawn.drawn_query(random.Random(i)) for i in range(count))
    return {
        "drawn_queries": _counted(
            _drawn(count), _catalog(drawn_worlds.COLUMNS), lambda x: x not in ("place", "other")
        ),
        "joins_queries": _counted(
            joins, joins_worlds.world().catalog, lambda x: x not in ("p", "o")
        ),
        "derivative_drawn": _counted(
            derivative, derivative_worlds.small_world().catalog, lambda x: x != "u"
        ),
        "random_queries": _counted(_statements(count), _catalog(small), lambda x: x != "nothing"),
    }


def _catalog(columns: dict[str, tuple[tuple[str, t.Type], ...]]) -> Catalog:
    return catalog(*(Table(name, named) for name, named in columns.items()))


def _counted(texts: Iterable[str], known: Catalog, protected: Callable[[str], bool]) -> Coverage:
    found = Coverage()
    for text in texts:
        try:
            plan = from_sql(text, known)
        except SecantError:
            continue
        found.note(keys_of(plan, protected), accepted=False)
    return found


def table(grammars: dict[str, Coverage]) -> str:
    """Show for each slot how often each grammar draws it."""
    lines = [f"{'slot':<72}" + "".join(f"{name:>18}" for name in grammars)]
    for key in sorted(x for x in wanted() if x.startswith(READ)):
        lines.append(f"{key:<72}" + "".join(f"{c.drawn[key]:>18}" for c in grammars.values()))
    return "\n".join(lines)
