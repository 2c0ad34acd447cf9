"""Which columns follow from others of their row, so that they are computed in a question and never read.

In: a policy and what the catalog says of a table. Out: what is computed in the place of which column, and which
columns are not offered under this policy, since nobody can tell what they follow from (I3). Owners say it by `derived`;
engines by generated columns. Never here: SQL is not read, the catalog already knows what a formula names.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from secant.policy.coverage import moving_columns
from secant.policy.policy import Policy
from secant.schema.catalog import Catalog, Computed, Formula, Table, View

_BARE = re.compile(r"[A-Za-z0-9_-]+\Z")


def naming(policy: Policy, catalog: Catalog) -> Catalog:
    """Give the engine's tables as this policy offers them, with its views and all columns that follow from others."""
    tables = {name: _offered(policy, table) for name, table in catalog.tables.items()}
    formulas = {name: formulas_of(policy, table) for name, table in catalog.tables.items()}
    derived = {
        name: formula_columns for name, formula_columns in formulas.items() if formula_columns
    }
    views = {name: View(text) for name, text in policy.views.items()}
    return replace(catalog, tables=tables, derived=derived).knowing(views)


def moving(policy: Policy, table: str) -> frozenset[str]:
    """Give the columns of a table that a norm of any protection names, chosen or not."""
    return frozenset[str]().union(*(moving_columns(p, table) for p in policy.protections))


def has_distance(policy: Policy, table: str) -> bool:
    """Whether values of a table move under some protection."""
    return any(table in p.distance for p in policy.protections)


def formulas_of(policy: Policy, table: Table) -> dict[str, Formula]:
    """Give what is computed in the place of columns (workflow.derived)."""
    name = table.name.lower()
    formulas = {column: Formula(text) for column, text in policy.facts(name).derived.items()}
    for computed in _left(policy, table):
        if computed.inputs is not None and _must_follow(policy, name, computed):
            formulas[computed.column.lower()] = computed.formula
    return formulas


def withheld_of(policy: Policy, table: Table) -> dict[str, str]:
    """Give the columns that are not offered under the policy, since what they follow from is not understood."""
    name = table.name.lower()
    return {
        computed.column: _not_understood(name, computed)
        for computed in _left(policy, table)
        if computed.inputs is None and _must_follow(policy, name, computed)
    }


def following(policy: Policy, table: Table) -> frozenset[str]:
    """Give the columns that are not read as they are stored, lower-cased."""
    withheld = (column.lower() for column in withheld_of(policy, table))
    return frozenset((*formulas_of(policy, table), *withheld))


def sources_of(policy: Policy, table: Table, column: str) -> frozenset[str]:
    """Give the stored columns that an engine computes a column from; none if it does not."""
    inputs = {c.column.lower(): c.inputs or frozenset() for c in _left(policy, table)}
    return inputs.get(column, frozenset())


def _left(policy: Policy, table: Table) -> Iterator[Computed]:
    """Give the columns that the engine computes and of which the owner does not say how."""
    declared = policy.facts(table.name).derived
    return (c for c in table.computed if c.column.lower() not in declared)


def _must_follow(policy: Policy, table: str, computed: Computed) -> bool:
    """Whether what is stored in a column must not be read: it would move with others, or fail on a row."""
    if computed.virtual:
        return True
    if computed.inputs is None:
        return has_distance(policy, table)
    return not moving(policy, table).isdisjoint(computed.inputs)


def _not_understood(table: str, computed: Computed) -> str:
    why = (
        "it is computed when it is read, and that may fail on a row"
        if computed.virtual
        else "it is computed from other columns, and may move as they do"
    )
    name = computed.column if _BARE.match(computed.column) else f'"{computed.column}"'
    return f'{why}; if you know how, write in [tables.{table}]: derived = {{ {name} = "..." }}'


def _offered(policy: Policy, table: Table) -> Table:
    withheld = withheld_of(policy, table)
    if not withheld:
        return table
    columns = tuple((name, kind) for name, kind in table.columns if name not in withheld)
    parts = tuple((name, kind) for name, kind in table.parts if name not in withheld)
    unique = tuple(key for key in table.unique if not withheld.keys() & {*key})
    missing = (*table.missing, *withheld.items())
    return replace(table, columns=columns, parts=parts, unique=unique, missing=missing)
