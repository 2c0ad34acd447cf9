"""What is known by name: the engine's tables with the types of their columns, views over them, released tables.

The catalog is public. What the engine says is read once when a connection opens, and never holds a value; a released
table holds the numbers that were drawn for it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

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
class View:
    """A query with a name: it stands wherever its name does (W-VIEW)."""

    text: str
    columns: tuple[str, ...] = ()
    """Names of its columns, where it was given some."""
    placed: bool = False
    """Whether places in its text are places in the text of the question, so that errors can point to them."""


@dataclass(frozen=True, slots=True)
class Constants:
    """A table that was released before: later questions read its rows as constants (W-RELEASE)."""

    columns: tuple[tuple[str, Type], ...]
    rows: tuple[tuple[object, ...], ...]


@dataclass(frozen=True, slots=True)
class Catalog:
    """All base tables by lower-cased name. No two names of tables, or of columns of a table, differ in case only."""

    tables: Mapping[str, Table]
    views: Mapping[str, View | Constants] = field(default_factory=dict)
    """By lower-cased name; none is that of a base table."""
    derived: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """Table -> column -> the expression that stands for it, over the other columns (W-DERIVED)."""

    def knowing(self, views: Mapping[str, View | Constants]) -> Catalog:
        """Give the catalog with further views."""
        return replace(self, views={**self.views, **views})

    def table(self, name: str) -> Table | None:
        """Give the table of that name, or None."""
        return self.tables.get(name.lower())

    def spelled(self, table: str, columns: Iterable[str] = ()) -> tuple[str, list[str]]:
        """Give names as the engine has them: where it minds case, another spelling may be another table or a view."""
        found = self.tables[table.lower()]
        exact = {name.lower(): name for name, _ in found.columns}
        return found.name, [exact[column.lower()] for column in columns]


def catalog(*tables: Table) -> Catalog:
    """Build a catalog from its tables; refuse names that a policy, which does not mind case, cannot tell apart."""
    _distinct("tables", [table.name for table in tables])
    for table in tables:
        _distinct(f"columns of {table.name},", [name for name, _ in table.columns])
    return Catalog({table.name.lower(): table for table in tables})


def _distinct(what: str, names: list[str]) -> None:
    seen: dict[str, str] = {}
    for name in names:
        other = seen.setdefault(name.lower(), name)
        if other is not name:
            raise BackendError(
                "BAK-001",
                f"the names of the {what} {other} and {name} differ in case only",
                hint="rename one of them, or take the right to read it from this user",
            )
