"""Values of a policy in the types of the columns that they speak of, and the words for names that mean nothing.

In: what is declared, and the catalog. Out: the same with every value as the Python type of its column. A source knows
more than a policy says: the labels of an enum are its declared values.
"""

from __future__ import annotations

import datetime
from dataclasses import replace
from decimal import Decimal

from secant.errors import meant
from secant.policy.beliefs import whole_range
from secant.policy.policy import ColumnFacts, Policy, TableFacts
from secant.policy.values import moment_of
from secant.schema.catalog import Catalog, Table
from secant.schema.parts import ELEMENTS, OF, Elements, elements_named, part_named, why
from secant.schema.types import Type


def no_table(catalog: Catalog, name: str) -> str:
    """Say why there is no table of a name."""
    if name in catalog.stored_views:
        return f"{name} is a view: declare facts and protections of the tables that it reads"
    reason = catalog.missing.get(name)
    if reason:
        return f"the table {name} is not offered: {reason}"
    return f"there is no table {name}{meant(name, catalog.tables, '; ')}"


def elements_of(table: str) -> str | None:
    """Give the table whose arrays a table holds the elements of."""
    elements = elements_named(table)
    return None if elements is None else elements.table


def element_tables(policy: Policy, catalog: Catalog) -> dict[str, TableFacts]:
    """Give the facts of the tables of elements: the owner of an element is that of the row that holds it.

    Rests on owner.elements.

    The rows of the table of units refer to their unit themselves. No key: a row has many elements.
    """
    units = {p.unit for p in policy.protections if p.unit is not None}
    tables: dict[str, TableFacts] = {}
    for name, table in catalog.tables.items():
        facts = policy.facts(name)
        own = {unit[1]: unit for unit in units if unit[0] == name}
        for column, kind in table.parts:
            if kind in ELEMENTS:
                spread = Elements(name, column.lower()).name
                columns = {**facts.columns, **policy.facts(spread).columns}
                references = {**facts.references, **own}
                tables[spread] = TableFacts(references=references, columns=columns)
    return tables


def withheld_in(catalog: Catalog) -> dict[str, str]:
    """Give the tables and columns that are not offered, or only in parts, each with the reason."""
    reasons = dict(catalog.missing)
    for name, table in catalog.tables.items():
        reasons |= {f"{name}.{column}": reason for column, reason in untaken(table).items()}
    return reasons


def untaken(table: Table) -> dict[str, str]:
    """Give the columns of a table that cannot be taken whole, each with the reason."""
    return dict(table.missing) | {c: why(c, kind) for c, kind in table.parts}


def no_column(table: Table, column: str) -> str:
    """Say why there is no column of a name."""
    reason = {c.lower(): reason_left_out for c, reason_left_out in untaken(table).items()}.get(
        column
    )
    if reason:
        return f"{column} is not offered: {reason}"
    columns = [name.lower() for name, _ in table.columns]
    # Names are no secret of the owner's own policy.
    near = meant(column, columns, "; ") or f"; there are: {', '.join(sorted(columns)[:40])}"
    return f"there is no column {column}{near}"


def types_in(table: Table, facts: TableFacts) -> dict[str, Type]:
    """Give the types of a table's columns, and of the parts of columns that are declared, by lower-cased name."""
    types = {column.lower(): type_ for column, type_ in table.columns}
    parted = {column.lower(): kind for column, kind in table.parts}
    for column in facts.columns:
        part = part_named(column)
        if column not in types and part is not None and parted.get(part.column) in OF[part.way]:
            types[column] = part.type
    return types


def ends_of(facts: ColumnFacts, type_: Type) -> tuple[object, object]:
    """Give the range; one that a belief suggests is made whole for whole numbers."""
    assert facts.range is not None
    return whole_range(facts.range) if facts.assumed and type_.kind == "INTEGER" else facts.range


def family(type_: Type) -> str:
    """Name what may be compared with each other."""
    if type_.numeric:
        return "number"
    return "temporal" if type_.temporal else type_.kind


def fits(value: object, type_: Type) -> bool:
    """Whether a value of the policy can stand in a column of the type, once it is fitted."""
    if isinstance(value, bool):
        return type_.kind == "BOOLEAN"
    if isinstance(value, (int, Decimal)):
        return type_.numeric and (type_.kind != "INTEGER" or value == int(value))
    if isinstance(value, str) and type_.temporal:
        try:
            value = moment_of(value)
        except ValueError:
            return False
    if isinstance(value, datetime.datetime):
        return type_.kind == "TIMESTAMP"
    return type_.temporal if isinstance(value, datetime.date) else type_.kind == "TEXT"


def fit_table(facts: TableFacts, table: Table) -> TableFacts:
    """Give the facts of a table with values of the right types, and labels of enums where no values are declared."""
    types = types_in(table, facts)
    columns = {column: _fit_column(old, types[column]) for column, old in facts.columns.items()}
    for column, labels in table.labels:
        column_facts = columns.get(column.lower(), ColumnFacts())
        if column_facts.values is None and column_facts.total is None:
            columns[column.lower()] = replace(column_facts, values=labels)
    return replace(facts, columns=columns)


def _fit_column(facts: ColumnFacts, type_: Type) -> ColumnFacts:
    ends = facts.range and ends_of(facts, type_)
    limits = ends and (_fit_value(ends[0], type_), _fit_value(ends[1], type_))
    values = facts.values and tuple(_fit_value(value, type_) for value in facts.values)
    step = facts.step if facts.step is None else _fit_value(facts.step, type_)
    return replace(facts, range=limits, values=values, step=step)


def _fit_value(value: object, type_: Type) -> object:
    """Give a value that `fits` as the Python type of the column."""
    if isinstance(value, str) and type_.temporal:
        value = moment_of(value)
    if type_.kind == "TIMESTAMP" and type(value) is datetime.date:
        return datetime.datetime.combine(value, datetime.time())
    if type_.kind == "INTEGER" and isinstance(value, Decimal):
        return int(value)
    return value
