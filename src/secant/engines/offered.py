"""From what an engine says of its tables to a catalog, and to the way in which each column is read.

In: tables with columns, each with how it is offered, or why not. Out: the catalog, and the dialect that reads these
very tables. A conversion never fails on a value: it would tell of the row. One that may make two stored values one
ends the uniqueness that the engine keeps.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import field, replace

from secant.engines.dialect import Dialect, quote
from secant.errors import SecantError
from secant.plan import nodes as n
from secant.plan.facts.lineage import stored_column
from secant.plan.typing import type_of
from secant.records import frozen
from secant.schema.catalog import Catalog, Computed, StoredView, Table, Tie, catalog
from secant.schema.parts import Elements, elements_named, part_named
from secant.schema.types import Type
from secant.sql.bind import from_sql


@frozen
class Offer:
    """How a column is offered: as a value of a type, in parts, or not at all."""

    type: Type | None = None
    template: str | None = None
    """How it is read, where the kind of its type does not say."""
    merges: bool = False
    """Whether two stored values can become one."""
    part: str = ""
    """What it is, where only parts of it can be read."""
    reason: str = ""
    """Why it is not offered."""
    labels: tuple[str, ...] = ()


@frozen
class Stored:
    """A table as the engine has it."""

    name: str
    """As queries and policies call it."""
    place: str
    """As statements must write it."""
    columns: Mapping[str, Offer]
    unique: tuple[tuple[str, ...], ...] = ()
    references: tuple[tuple[str, str, str], ...] = ()
    comments: Mapping[str, str] = field(default_factory=dict)
    computed: tuple[Computed, ...] = ()
    """Columns that the engine computes from others of their row."""
    ties: tuple[Tie, ...] = ()
    not_null: tuple[str, ...] = ()
    """Columns that the engine keeps from being NULL."""


def offered(
    stored: Iterable[Stored],
    dialect: Dialect,
    views: Iterable[StoredView] = (),
    missing: Mapping[str, str] | None = None,
    schemas: tuple[str, ...] = (),
) -> tuple[Catalog, Dialect]:
    """Give the catalog of tables, and the dialect that knows where they are and how their columns are read."""
    tables = [_unmistakable(table) for table in stored if elements_named(table.name) is None]
    own = {
        (table.name, name): offer
        for table in tables
        for name, offer in table.columns.items()
        if offer.template is not None or offer.part
    }
    reading = replace(
        dialect,
        places={table.name: table.place for table in tables},
        columns={at: offer.template for at, offer in own.items() if offer.template is not None},
        parted={at: offer.part for at, offer in own.items() if offer.part},
    )
    seen, alike = _apart(list(views), [table.name for table in tables])
    withheld = {**(missing or {}), **alike}
    offered_catalog = catalog(*map(_table, tables), views=seen, missing=withheld, schemas=schemas)
    return with_inputs(offered_catalog), reading


def _apart(views: list[StoredView], tables: list[str]) -> tuple[list[StoredView], dict[str, str]]:
    """Leave out views whose names differ in case only from others: tables are more."""
    names = Counter(name.lower() for name in (*tables, *(view.name for view in views)))
    clear = [view for view in views if names[view.name.lower()] == 1]
    reason = "it is a view, and another name differs from its own in case only"
    left = {view.name for view in views if view not in clear}
    table_names = {table.lower() for table in tables}
    return clear, {name: reason for name in left if name.lower() not in table_names}


def _unmistakable(table: Stored) -> Stored:
    """Withhold columns whose parts or elements another column is called like."""
    part_names = {p.column for name in table.columns if (p := part_named(name)) is not None}
    part_names |= {
        name for name in table.columns if Elements(table.name, name).element in table.columns
    }
    clash = Offer(reason="another column is called like a part of it")
    return replace(
        table,
        columns={
            name: clash if name in part_names and offer.part else offer
            for name, offer in table.columns.items()
        },
    )


def _table(table: Stored) -> Table:
    merged = {name for name, offer in table.columns.items() if offer.merges or offer.type is None}
    return Table(
        table.name,
        tuple((name, o.type) for name, o in table.columns.items() if o.type is not None),
        tuple(key for key in table.unique if merged.isdisjoint(key)),
        labels=tuple((name, o.labels) for name, o in table.columns.items() if o.labels),
        references=table.references,
        missing=tuple((name, o.reason) for name, o in table.columns.items() if o.reason),
        parts=tuple((name, o.part) for name, o in table.columns.items() if o.part),
        computed=table.computed,
        ties=tuple(dict.fromkeys(table.ties)),
        comments=tuple(_comment_lines(table.comments)),
        not_null=table.not_null,
    )


def _comment_lines(comments: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Give comments as one short line each."""
    for name, comment in comments.items():
        line = " ".join(comment.split())
        yield name, line if len(line) <= 200 else line[:197] + "..."


# ── generated columns ────────────────────────────────────────────────────────────────────────────
#
# What an engine computes from other columns of the row is understood if it could be asked for, over stored columns of
# its own row, and has the type that the column has. What cannot be asked for has no inputs that could be named (I3).


def with_inputs(catalog: Catalog) -> Catalog:
    """Give the catalog with what is understood of its generated columns."""
    tables = {
        name: replace(table, computed=_understood(table))
        for name, table in catalog.tables.items()
        if table.computed
    }
    return replace(catalog, tables={**catalog.tables, **tables}) if tables else catalog


def _understood(table: Table) -> tuple[Computed, ...]:
    """Say what generated columns are computed from: those over stored columns first, then those over these."""
    inputs: dict[str, frozenset[str]] = {}
    left = list(table.computed)
    while left:
        inputs_of = {c.column: _inputs(table, c, inputs) for c in left}
        more = {column: columns for column, columns in inputs_of.items() if columns is not None}
        if not more:
            break
        inputs |= more
        left = [c for c in left if c.column not in more]
    return tuple(replace(c, inputs=inputs.get(c.column)) for c in table.computed)


def _inputs(
    table: Table, computed: Computed, inputs_of: Mapping[str, frozenset[str]]
) -> frozenset[str] | None:
    """Give the stored columns that a generated column is computed from; None if it is not understood."""
    available = (*inputs_of, computed.column)
    hidden = {c.column for c in table.computed} - {*available}
    alone = replace(
        table,
        columns=tuple((c, kind) for c, kind in table.columns if c not in hidden),
        parts=tuple((c, kind) for c, kind in table.parts if c not in hidden),
    )
    name = table.name.lower()
    formulas = {c.column.lower(): c.formula for c in table.computed if c.column in available}
    catalog = Catalog({name: alone}, derived={name: formulas})
    try:
        plan = from_sql(f"SELECT {quote(computed.column)} FROM {quote(table.name)}", catalog)
    except SecantError:
        return None
    for node in n.walk(plan):
        if isinstance(node, n.Project) and isinstance(node.input, n.Scan):
            scan = node.input
            items = {item.name: item.expression for item in node.items}
            scalar = items[f"{scan.alias}.{computed.column}'"]
            if type_of(scalar) != table.type_of(computed.column):
                return None
            read = {stored_column(scan, c.name) for c in n.walk(scalar) if isinstance(c, n.Column)}
            return frozenset((p.column if (p := part_named(c)) else c).lower() for c in read)
    return None
