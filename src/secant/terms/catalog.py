"""What the engine says about tables: names and types of columns. Never a value.

The catalog is public. It is read once when a connection opens.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from secant.errors import BackendError
from secant.terms.types import Type


@dataclass(frozen=True, slots=True)
class Table:
    """A base table: its name, its columns in order, and the column sets that the engine keeps unique."""

    name: str
    columns: tuple[tuple[str, Type], ...]
    unique: tuple[tuple[str, ...], ...] = ()

    def type_of(self, column: str) -> Type | None:
        """Give the type of a column, or None if there is none of that name."""
        return dict(self.columns).get(column)


@dataclass(frozen=True, slots=True)
class Catalog:
    """All base tables by lower-cased name. SQL names are matched without case, as the engines do."""

    tables: Mapping[str, Table]

    def table(self, name: str) -> Table | None:
        """Give the table of that name, or None."""
        return self.tables.get(name.lower())


def catalog(*tables: Table) -> Catalog:
    """Build a catalog from its tables; two whose names differ in case only would hide one another."""
    found: dict[str, Table] = {}
    for table in tables:
        other = found.setdefault(table.name.lower(), table)
        if other is not table:
            raise BackendError(
                "BAK-001",
                f"the names of the tables {other.name} and {table.name} differ in case only",
                hint="rename one: names do not distinguish case",
            )
    return Catalog(found)
