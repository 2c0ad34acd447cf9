"""From what an engine says of its tables to a catalog, and to the way in which each column is read.

In: tables with columns, each with how it is offered, or why not. Out: the catalog, and the dialect that reads these
very tables. A conversion never fails on a value: it would tell of the row. One that may make two stored values one
ends the uniqueness that the engine keeps.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import field, replace

from secant.engines.dialect import Dialect
from secant.engines.generated import with_inputs
from secant.records import frozen
from secant.schema.catalog import Catalog, Computed, StoredView, Table, Tie, catalog
from secant.schema.parts import Elements, elements_named, part_named
from secant.schema.types import Type


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
    found = catalog(*map(_table, tables), views=seen, missing=withheld, schemas=schemas)
    return with_inputs(found), reading


def _apart(views: list[StoredView], tables: list[str]) -> tuple[list[StoredView], dict[str, str]]:
    """Leave out views whose names differ in case only from others: tables are more."""
    names = Counter(name.lower() for name in (*tables, *(view.name for view in views)))
    clear = [view for view in views if names[view.name.lower()] == 1]
    reason = "it is a view, and another name differs from its own in case only"
    left = {view.name for view in views if view not in clear}
    known = {table.lower() for table in tables}
    return clear, {name: reason for name in left if name.lower() not in known}


def _unmistakable(table: Stored) -> Stored:
    """Withhold columns whose parts or elements another column is called like."""
    taken = {p.column for name in table.columns if (p := part_named(name)) is not None}
    taken |= {name for name in table.columns if Elements(table.name, name).element in table.columns}
    clash = Offer(reason="another column is called like a part of it")
    return replace(
        table,
        columns={
            name: clash if name in taken and offer.part else offer
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
        comments=tuple(_told(table.comments)),
        not_null=table.not_null,
    )


def _told(comments: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Give comments as one short line each."""
    for name, comment in comments.items():
        line = " ".join(comment.split())
        yield name, line if len(line) <= 200 else line[:197] + "..."
