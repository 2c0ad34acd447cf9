"""What is known by name: the engine's tables with types, keys, labels and comments, views over them, released tables.

The catalog is public. What the engine says is read once when a connection opens, and never holds a value; a released
table holds the numbers that were drawn for it. What a source has and Secant does not offer is here, too, with the
reason: a column that cannot be asked for must not look as if it were not there.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import field, replace

from secant.errors import BackendError
from secant.records import frozen
from secant.schema.parts import ELEMENTS, Elements, elements_named
from secant.schema.types import Type


@frozen
class Formula:
    """An expression over columns of one row."""

    text: str
    dialect: str = "duckdb"
    """In which SQL the text is."""


@frozen
class Computed:
    """A column that the engine computes from others of its row."""

    column: str
    formula: Formula
    virtual: bool
    """Whether it is computed when it is read, which may fail on a row: it is never read then."""
    inputs: frozenset[str] | None = None
    """The columns that it is computed from, lower-cased; None if the formula is not understood."""


@frozen
class Tie:
    """Something of the source by which what is stored in a table can follow from what is stored elsewhere."""

    kind: str
    """`trigger`, `rule`, `row policy`, `check`, `foreign key` or `function`."""
    name: str
    columns: tuple[str, ...] = ()
    """The columns of the table that it is about, lower-cased; none if it is about whole rows."""
    targets: tuple[tuple[str, str], ...] = ()
    """For a foreign key: table and column for each of the columns, lower-cased."""
    reaches: tuple[str, ...] | None = None
    """The other tables that it can read or write, lower-cased; None if nobody can tell."""


@frozen
class Table:
    """A base table: its name, its columns in order, and the column sets that the engine keeps unique."""

    name: str
    columns: tuple[tuple[str, Type], ...]
    unique: tuple[tuple[str, ...], ...] = ()
    labels: tuple[tuple[str, tuple[str, ...]], ...] = ()
    """Columns of enums, each with all values that the engine lets it have."""
    references: tuple[tuple[str, str, str], ...] = ()
    """Foreign keys that the engine keeps: column, table, its column."""
    missing: tuple[tuple[str, str], ...] = ()
    """Columns that are not offered, each with the reason."""
    parts: tuple[tuple[str, str], ...] = ()
    """Columns of which only parts can be asked for, each with what it is."""
    computed: tuple[Computed, ...] = ()
    """Columns that the engine computes from others of their row."""
    ties: tuple[Tie, ...] = ()
    """What can carry values of other places into rows of the table, or from them to other places."""
    not_null: tuple[str, ...] = field(default=(), compare=False)
    """Columns that the engine keeps from being NULL."""
    comments: tuple[tuple[str, str], ...] = field(default=(), compare=False)
    """What the owner of the database wrote about columns; "" is the table itself."""

    def type_of(self, column: str) -> Type | None:
        """Give the type of a column, or None if there is none of that name."""
        return dict(self.columns).get(column)


@frozen
class View:
    """A query with a name: it stands wherever its name does (workflow.view)."""

    text: str
    columns: tuple[str, ...] = ()
    """Names of its columns, where it was given some."""
    placed: bool = False
    """Whether places in its text are places in the text of the question, so that errors can point to them."""


@frozen
class Constants:
    """A table that was released before: later questions read its rows as constants (workflow.release)."""

    columns: tuple[tuple[str, Type], ...]
    rows: tuple[tuple[object, ...], ...]


@frozen
class StoredView:
    """A view of the source: a query that is written out where the view is named, and then bounded like any other."""

    name: str
    text: str
    dialect: str
    """In which SQL the text is."""
    columns: tuple[str, ...]


_USUAL = frozenset({"main", "public"})
"""What engines call the schema that a name without one is in."""


@frozen
class Catalog:
    """All base tables by lower-cased name. No two names of tables, or of columns of a table, differ in case only.

    Tables of the first schema are called by their name alone, those of others `schema.table`.
    """

    tables: Mapping[str, Table]
    views: Mapping[str, View | Constants] = field(default_factory=dict)
    """By lower-cased name; none is that of a base table."""
    derived: Mapping[str, Mapping[str, Formula]] = field(default_factory=dict)
    """Table -> column -> the expression that stands for it, over the other columns (workflow.derived)."""

    stored_views: Mapping[str, StoredView] = field(default_factory=dict)
    """Views of the source, by lower-cased name."""
    missing: Mapping[str, str] = field(default_factory=dict)
    """Tables that are not offered, each with the reason."""
    schemas: tuple[str, ...] = ()
    """Names that may stand before that of a table; the first is that of tables that need none."""

    def knowing(self, views: Mapping[str, View | Constants]) -> Catalog:
        """Give the catalog with further views."""
        return replace(self, views={**self.views, **views})

    def table(self, name: str) -> Table | None:
        """Give the table of that name, also one of elements of an array, or None."""
        table = self.tables.get(name.lower())
        spread = elements_named(name) if table is None else None
        base = self.tables.get(spread.table.lower()) if spread is not None else None
        if spread is None or base is None:
            return table
        for column, kind in base.parts:
            if column.lower() == spread.column.lower() and kind in ELEMENTS:
                own = Elements(base.name, column)
                columns = (*base.columns, (own.element, ELEMENTS[kind]))
                return Table(
                    own.name, columns, labels=base.labels, parts=base.parts, not_null=base.not_null
                )
        return None

    def in_schema(self, schema: str, name: str) -> str:
        """Give the name in this catalog of what a query calls `schema.name`."""
        offered = [s.lower() for s in self.schemas]
        first = set(offered[:1])
        if not first or first & _USUAL:  # clients of PostgreSQL say public where DuckDB says main
            first |= _USUAL - set(offered[1:])
        return name if not schema or schema.lower() in first else f"{schema}.{name}"

    def spelled(self, table: str, columns: Iterable[str] = ()) -> tuple[str, list[str]]:
        """Give names as the engine has them: where it minds case, another spelling may be another table or a view."""
        stored = self.table(table)
        assert stored is not None, f"{table} is in the catalog"
        exact = {name.lower(): name for name, _ in stored.columns}
        return stored.name, [exact[column.lower()] for column in columns]


def catalog(
    *tables: Table,
    views: Iterable[StoredView] = (),
    missing: Mapping[str, str] | None = None,
    schemas: tuple[str, ...] = (),
) -> Catalog:
    """Build a catalog from its tables; refuse names that a policy, which does not mind case, cannot tell apart."""
    seen = tuple(views)
    _distinct("tables", [*(table.name for table in tables), *(view.name for view in seen)])
    for table in tables:
        names = [name for name, _ in (*table.columns, *table.missing, *table.parts)]
        _distinct(f"columns of {table.name},", names)
    return Catalog(
        {table.name.lower(): table for table in tables},
        stored_views={view.name.lower(): view for view in seen},
        missing={name.lower(): reason for name, reason in (missing or {}).items()},
        schemas=schemas,
    )


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
