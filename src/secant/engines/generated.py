"""Columns that an engine computes from others of their row: what they are computed from, as far as it is understood.

In: a catalog, and the expressions of its generated columns as the engine tells them. Out: the same catalog with the
columns that each of them names. An expression is understood if it could be asked for, over stored columns of its own
row, and has the type that the column has; what cannot be asked for has no inputs that anybody could name (I3).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from secant.engines.dialect import quote
from secant.errors import SecantError
from secant.plan import nodes as n
from secant.plan.facts.lineage import stored_column
from secant.plan.typing import type_of
from secant.schema.catalog import Catalog, Computed, Table
from secant.schema.parts import part_named
from secant.sql.bind import from_sql


def with_inputs(catalog: Catalog) -> Catalog:
    """Give the catalog with what is understood of its generated columns."""
    found = {
        name: replace(table, computed=_understood(table))
        for name, table in catalog.tables.items()
        if table.computed
    }
    return replace(catalog, tables={**catalog.tables, **found}) if found else catalog


def _understood(table: Table) -> tuple[Computed, ...]:
    """Say what generated columns are computed from: those over stored columns first, then those over these."""
    inputs: dict[str, frozenset[str]] = {}
    left = list(table.computed)
    while left:
        known = {c.column: _inputs(table, c, inputs) for c in left}
        more = {column: found for column, found in known.items() if found is not None}
        if not more:
            break
        inputs |= more
        left = [c for c in left if c.column not in more]
    return tuple(replace(c, inputs=inputs.get(c.column)) for c in table.computed)


def _inputs(
    table: Table, computed: Computed, known: Mapping[str, frozenset[str]]
) -> frozenset[str] | None:
    """Give the stored columns that a generated column is computed from; None if it is not understood."""
    wanted = (*known, computed.column)
    hidden = {c.column for c in table.computed} - {*wanted}
    alone = replace(
        table,
        columns=tuple((c, kind) for c, kind in table.columns if c not in hidden),
        parts=tuple((c, kind) for c, kind in table.parts if c not in hidden),
    )
    name = table.name.lower()
    formulas = {c.column.lower(): c.formula for c in table.computed if c.column in wanted}
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
