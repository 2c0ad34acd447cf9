"""Small databases under an owner's schema, in which everything collides.

In: a catalog, a policy, the constants of a question, a source of luck. Out: lists of rows. Declared facts about
protected tables are broken now and then, since bounds must not rest on them; what the engine keeps unique and declared
keys of public tables hold, since they are checked before a release.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterable
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from fractions import Fraction
from typing import Any

from secant.audit.neighbors import Database, Row
from secant.plan import nodes as n
from secant.plan.evaluate.values import same_key
from secant.policy.policy import Policy
from secant.records import frozen
from secant.schema.catalog import Catalog, Table
from secant.schema.types import Type

MOST_ROWS = 5
LARGEST = 12
"""Rows of a table of which a unit may have several: a limit is met, and passed."""
IDS = (1, 1, 1, 1, 2, 3)
"""What identifies and refers: few numbers, so that rows meet."""
FULL = 0.6
"""How often a table has as many rows as are drawn at most."""
NOTHING = 0.08
"""How often a value is NULL."""
WILD = 0.06
"""How often a value lies outside of all that is declared."""
_DAY = date(2025, 1, 1)
_MIDNIGHT = datetime.combine(_DAY, time())
_POOLS: dict[str, tuple[Any, ...]] = {
    "INTEGER": (0, 1, 2, 3, -4, 2**53 + 1),
    "DOUBLE": (0.0, 0.5, 1.5, -3.25, 1e300, math.nan, math.inf),
    "TEXT": ("a", "b", "ab"),
    "BOOLEAN": (False, True),
    "DATE": (_DAY, _DAY + timedelta(days=1), _DAY + timedelta(days=200)),
    "TIMESTAMP": tuple(_MIDNIGHT + timedelta(hours=h) for h in (0, 1, 30)),
}


@frozen
class Drawing:
    """Draws databases of some tables."""

    catalog: Catalog
    policy: Policy
    tables: tuple[str, ...]
    constants: tuple[object, ...]
    """What the question compares with."""
    public: frozenset[str]
    """Tables whose declared keys hold."""

    def database(self, draw: random.Random) -> Database:
        """Draw all tables, more often full than not: limits are met only where there are many rows."""
        database = {}
        for table in self.tables:
            most = self._most(table)
            count = most if draw.random() < FULL else draw.randint(0, most)
            database[table] = self._with_distinct_keys(
                table, [self.row(table, draw) for _ in range(count)]
            )
        return database

    def changed(self, database: Database, draw: random.Random) -> Database:
        """Change one table a little: a row more, a row less, a row twice, or another value."""
        table = draw.choice(self.tables)
        rows = [dict(r) for r in database[table]]
        what = draw.random()
        if what < 0.35 or not rows:
            rows.append(dict(self.row(table, draw)))
        elif what < 0.5:
            rows.append(dict(draw.choice(rows)))
        elif what < 0.65:
            rows.pop(draw.randrange(len(rows)))
        else:
            row = draw.choice(rows)
            column, kind = draw.choice(self._table(table).columns)
            row[column.lower()] = self.value(table, column.lower(), kind, draw)
        return {**database, table: self._with_distinct_keys(table, rows)}

    def pool(self, draw: random.Random) -> dict[str, list[Row]]:
        """Draw rows that may come or take the place of others."""
        return {t: [self.row(t, draw) for _ in range(3)] for t in self.tables}

    def row(self, table: str, draw: random.Random) -> Row:
        """Draw one row."""
        return {
            c.lower(): self.value(table, c.lower(), kind, draw)
            for c, kind in self._table(table).columns
        }

    def value(self, table: str, column: str, kind: Type, draw: random.Random) -> object:
        """Draw one value."""
        chance = draw.random()
        if chance < NOTHING:
            return None
        facts = self.policy.column(table, column)
        if self._identifies(table, column) and not facts.values:
            return as_kind(draw.choice(IDS), kind)
        values: list[object] = []
        if chance > 1 - WILD:
            values = list(_POOLS.get(kind.kind, ()))
        elif facts.values:
            values = list(facts.values[:2])  # few, so that rows meet in groups
        elif facts.range:
            low, high = facts.range
            values = [low, high, high, *[x for x in self.constants if _within(x, low, high)]]
        else:
            values = [x for x in self.constants if as_kind(x, kind) is not None]
            values += _POOLS.get(kind.kind, ())
        usable = [x for x in (as_kind(f, kind) for f in values) if x is not None]
        return draw.choice(usable) if usable else as_kind(draw.choice(IDS), kind)

    def _most(self, table: str) -> int:
        """Give how many rows are drawn at most."""
        limits = [p.limits[table] for p in self.policy.protections if table in p.limits]
        return min(LARGEST, max([MOST_ROWS, *(limit + 2 for limit in limits)]))

    def _table(self, name: str) -> Table:
        table = self.catalog.table(name)
        assert table is not None, "tables of the catalog are drawn"
        return table

    def _identifies(self, table: str, column: str) -> bool:
        """Whether a column is a key or a reference: rows must meet in it."""
        facts = self.policy.facts(table)
        targets = {x for t in self.policy.tables.values() for x in t.references.values()}
        units = {p.unit for p in self.policy.protections}
        return (
            column in facts.key or column in facts.references or (table, column) in targets | units
        )

    def _with_distinct_keys(self, table: str, rows: list[Any]) -> list[Row]:
        """Give other ids to rows that the engine, or the check of a public key, would not let be."""
        keys = [tuple(c.lower() for c in key) for key in self._table(table).unique]
        if table in self.public and self.policy.facts(table).key:
            keys.append(self.policy.facts(table).key)
        kinds = {c.lower(): kind for c, kind in self._table(table).columns}
        distinct: list[Row] = []
        seen: dict[tuple[str, ...], set[Any]] = {key: set() for key in keys}
        for row in map(dict, rows):
            for key in keys:
                for other in range(1, LARGEST + 2):
                    if _key_values(row, key) not in seen[key]:
                        break
                    row[key[-1]] = as_kind(other, kinds[key[-1]])
            if all(_key_values(row, key) not in seen[key] for key in keys):
                distinct.append(row)
                for key in keys:
                    seen[key].add(_key_values(row, key))
        return distinct


def _key_values(row: Row, key: tuple[str, ...]) -> tuple[Any, ...]:
    return tuple(same_key(row[c]) for c in key)


def constants_of(plans: Iterable[n.Node]) -> tuple[object, ...]:
    """Give what plans compare with, and the whole numbers beside."""
    constants: list[object] = []
    for plan in plans:
        for node in n.walk(plan):
            if (
                isinstance(node, n.Literal)
                and node.value is not None
                and not isinstance(node.value, bool)
            ):
                constants.append(node.value)
                if isinstance(node.value, (int, Decimal)):
                    constants += [node.value + 1, node.value - 1]
    return tuple(dict.fromkeys(x for x in constants if not isinstance(x, tuple)))[:60]


def as_kind(value: object, kind: Type) -> Any:
    """Give a value as one of a type; None where it is none."""
    try:
        if isinstance(value, bool) or kind.kind == "BOOLEAN":
            return value if isinstance(value, bool) and kind.kind == "BOOLEAN" else None
        if kind.kind == "INTEGER" and isinstance(value, (int, Decimal, float, Fraction)):
            return int(value) if -(2**62) < value < 2**62 else None
        if kind.kind == "DOUBLE" and isinstance(value, (int, Decimal, float, Fraction)):
            return float(value)
        if kind.kind == "DECIMAL" and isinstance(value, (int, Decimal, Fraction)):
            number = (
                Decimal(Fraction(value).numerator) / Decimal(Fraction(value).denominator)
            ).quantize(Decimal(1).scaleb(-kind.scale))
            return number if abs(number) < Decimal(10) ** (kind.precision - kind.scale) else None
        if kind.kind == "TEXT" and isinstance(value, (str, int)):
            return str(value)
        if kind.kind == "DATE" and isinstance(value, date):
            return value.date() if isinstance(value, datetime) else value
        if kind.kind == "DATE" and isinstance(value, int):
            return _DAY + timedelta(days=value)
        if kind.kind == "TIMESTAMP" and isinstance(value, date):
            return value if isinstance(value, datetime) else datetime.combine(value, time())
        if kind.kind == "TIMESTAMP" and isinstance(value, int):
            return _MIDNIGHT + timedelta(hours=value)
    except (OverflowError, ValueError, ArithmeticError):
        return None
    return None


def _within(value: object, low: object, high: object) -> bool:
    try:
        return bool(low <= value <= high)  # type: ignore[operator]
    except TypeError:
        return False
