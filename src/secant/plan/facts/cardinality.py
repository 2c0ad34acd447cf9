"""How many rows will a join have, roughly? A guess from public facts that every engine shares.

In: rows that public conditions decide, the policy, and the number of rows of tables. Out: a number, good
to about a factor of ten, which is all that choosing the width of a ramp needs. An engine's own planner
knows better, and differently from engine to engine: the same question would get different answers.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

from secant.numeric.interval import EVERYTHING, Interval, meet
from secant.plan import nodes as n
from secant.plan.facts.lineage import origins_of
from secant.plan.facts.ranges import declared, ranges_of
from secant.plan.facts.reads import scans
from secant.plan.facts.regions import conditions_on
from secant.plan.rewrites.rewrite import columns_of
from secant.policy.policy import Policy

EQUAL, OTHER = 0.1, 0.5
"""Shares of rows that pass an equality, and any other condition, where nothing better is known."""
ONE_VALUE = Fraction(1, 1000)
"""The share of a range that one value of it is taken for: a single value is not no value."""
FEWEST = 1e-15
"""A guess says no less than this: fewer rows than any table has. Readers divide by it."""


def expected_rows(
    relation: n.Relation, policy: Policy, count: Callable[[str], int | None]
) -> int | None:
    """Give the rows that a relation may have; None where the number of rows of no table is known."""
    used = scans(relation)
    counts = {s.alias: rows_of(s.table.lower(), policy, count) for s in used}
    present = [c for c in counts.values() if c is not None]
    if not present:
        return None
    tables = origins_of(relation)
    share = 1.0
    for condition in conditions_on(relation):
        share *= _share(condition, tables, policy, count)
    # Lookups by key keep the rows of the largest table; everything else thins them out.
    return max(1, round(max(present) * share))


Fan = Callable[[str, tuple[str, ...]], int | None]
"""Rows of a table that agree in some public columns, at most."""


def expected_share(
    relation: n.Relation,
    policy: Policy,
    count: Callable[[str], int | None],
    fan: Fan = lambda table, columns: None,
) -> float:
    """Give the share of rows that pass all conditions, roughly, if values lie evenly in declared ranges.

    `fan` says how often one value of a public column occurs at most, where that is worth a look.
    """
    ranges = ranges_of(relation, policy, lambda inner: None)

    def known(column: str) -> Interval:
        return declared(policy, *ranges.origins[column]) if column in ranges.origins else EVERYTHING

    share = 1.0
    for condition in conditions_on(relation):
        column = _between(condition)
        if column is None or not known(column).bounded:
            share *= _share(condition, ranges.origins, policy, count, fan)
    for column, interval in ranges.filtered.items():
        whole = known(column)
        both = meet(whole, interval)
        if whole.bounded:
            share *= _part(whole.ends(), None if both is None else both.ends())
    return max(FEWEST, share)


def _part(whole: tuple[Fraction, Fraction], inside: tuple[Fraction, Fraction] | None) -> float:
    """Give which part of a declared range a filter keeps; the only value of a range is all of it."""
    width = whole[1] - whole[0]
    overlap = Fraction(0) if inside is None else inside[1] - inside[0]
    if not width:
        return 1.0 if inside is not None else float(ONE_VALUE)
    return float((overlap / width + ONE_VALUE) / (1 + ONE_VALUE))


def expected_size(
    relation: n.Relation,
    policy: Policy,
    count: Callable[[str], int | None],
    fan: Fan = lambda table, columns: None,
) -> float | None:
    """Give about how many rows pass all conditions; None unless the size of every table is declared or public."""
    sizes = [rows_of(s.table.lower(), policy, count) for s in scans(relation)]
    present = [s for s in sizes if s is not None]
    if not present or len(present) < len(sizes):
        return None
    # Lookups by key keep the rows of the largest table.
    return max(present) * expected_share(relation, policy, count, fan)


def one_table_rows(
    relation: n.Relation, policy: Policy, count: Callable[[str], int | None]
) -> int | None:
    """Give the rows of the one table that is read, before any condition, if their number is declared or public."""
    while isinstance(relation, (n.Project, n.Filter)):
        relation = relation.input
    return rows_of(relation.table.lower(), policy, count) if isinstance(relation, n.Scan) else None


def _between(condition: n.Scalar) -> str | None:
    """Give the column that a condition compares with a constant, by order or equality."""
    if isinstance(condition, n.Compare) and condition.op != "<>":
        for a, b in ((condition.left, condition.right), (condition.right, condition.left)):
            if isinstance(a, n.Column) and isinstance(b, n.Literal):
                return a.name
    return None


def rows_of(table: str, policy: Policy, count: Callable[[str], int | None]) -> int | None:
    """Give about how many rows a table has: as declared, else as counted where that is public."""
    declared = policy.facts(table).rows
    return declared if declared is not None else count(table)


def _share(
    condition: n.Scalar,
    tables: dict[str, tuple[str, str]],
    policy: Policy,
    count: Callable[[str], int | None],
    fan: Fan = lambda table, columns: None,
) -> float:
    if isinstance(condition, n.And):
        share = 1.0
        for part in condition.operands:
            share *= _share(part, tables, policy, count, fan)
        return share
    if isinstance(condition, n.Or):
        return min(
            1.0, sum(_share(part, tables, policy, count, fan) for part in condition.operands)
        )
    if isinstance(condition, n.Not):
        if isinstance(condition.operand, n.IsNull):
            return 1.0
        # shares of the parts of an OR are added: their sum may be all, and some rows be left all the same
        return max(float(ONE_VALUE), 1.0 - _share(condition.operand, tables, policy, count, fan))
    if isinstance(condition, n.Compare) and condition.op == "=":
        return _equality(condition, tables, policy, count, fan)
    if isinstance(condition, n.Compare) and condition.op == "<>":
        return 1.0 - EQUAL
    if isinstance(condition, n.InList):
        one = _one_of(condition.operand, tables, policy, count, fan)
        return min(1.0, one * len(condition.items))
    return EQUAL if isinstance(condition, n.Like) else OTHER


def _equality(
    condition: n.Compare,
    tables: dict[str, tuple[str, str]],
    policy: Policy,
    count: Callable[[str], int | None],
    fan: Fan = lambda table, columns: None,
) -> float:
    sides = [s for s in (condition.left, condition.right) if columns_of(s)]
    if len(sides) == 2:
        places = [tables.get(s.name) for s in sides if isinstance(s, n.Column)]
        if any(p is not None and policy.facts(p[0]).key == (p[1],) for p in places):
            return 1.0  # a lookup: every row finds its one partner
        keyed = any(p is not None and p[1] in policy.facts(p[0]).key for p in places)
        return 1.0 if keyed else EQUAL
    return _one_of(sides[0], tables, policy, count, fan) if sides else OTHER


def _one_of(
    scalar: n.Scalar,
    tables: dict[str, tuple[str, str]],
    policy: Policy,
    count: Callable[[str], int | None],
    fan: Fan = lambda table, columns: None,
) -> float:
    """Give the share of rows that has one given value: keys and declared values tell."""
    origin = tables.get(scalar.name) if isinstance(scalar, n.Column) else None
    if origin is None:
        return EQUAL
    table, column = origin
    values = policy.column(table, column).values
    if values:
        return 1.0 / len(values)
    target = policy.facts(table).references.get(column)
    owner = (
        target[0]
        if target is not None
        else (table if policy.facts(table).key == (column,) else None)
    )
    rows = rows_of(owner, policy, count) if owner is not None else None
    if rows:
        return 1.0 / rows
    most, whole = fan(table, (column,)), rows_of(table, policy, count)
    if most is not None and whole:
        return min(1.0, most / whole)
    return max(EQUAL, 1.0 / whole) if whole else EQUAL
