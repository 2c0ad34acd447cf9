"""From rows that differ to how far a number moves: what one row more or less can add.

In: an aggregation, how many rows of its input differ. Out: the least bound that a rule here gives, in whole steps.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from math import ceil, floor, prod

from secant.verifier.plans import Node, NotKnown, ends, tables_in_subqueries, unsorted
from secant.verifier.rows import Setting, identifying


def each_row(call: Node, step: Fraction) -> tuple[Fraction, Fraction]:
    """Give the least and the most that one row adds, nothing among them, in whole steps rounded outward."""
    if call.held("function") == "count":
        return Fraction(0), Fraction(1)
    if call.held("function") != "sum":
        raise NotKnown(f"{call.held('function')} has no rule here")
    argument = call.one("argument")
    low, high = ends(argument)
    # A clamp of a whole number counts steps already; all else is in the unit of the column.
    inner = argument.one("operand") if argument.kind == "Clamp" else argument
    scaled = argument.kind == "Clamp" and inner.kind == "Cast" and inner.held("type") == "INTEGER"
    unit = Fraction(1) if scaled else step
    least, most = min(Fraction(0), low) / unit, max(Fraction(0), high) / unit
    return Fraction(floor(least)), Fraction(ceil(most))


def groups_of_unit(
    setting: Setting, aggregate: Node, rows: int | None, listed: list[int | None]
) -> int:
    """Give how many groups one unit reaches at most."""
    if not aggregate.several("keys"):
        return 1
    limits = [] if rows is None else [rows]
    node = unsorted(aggregate.one("input"))
    while node.kind in ("Truncate", "TruncateGroups"):
        if node.kind == "TruncateGroups" and node.held("owner")[0] in setting.own(
            node.one("input")
        ):
            limits.append(int(node.held("limit")))
        node = unsorted(node.one("input"))
    sizes = [size for size in listed if size is not None]
    if len(sizes) == len(listed):
        limits.append(max(1, prod(sizes)))
    if not limits:
        raise NotKnown("how many groups a unit reaches is not limited")
    return min(limits)


def counts_units(setting: Setting, aggregate: Node, call: Node) -> bool:
    """Whether a call counts different units."""
    argument = call.maybe("argument")
    return (
        call.held("function") == "count"
        and bool(call.held("distinct"))
        and argument is not None
        and argument.kind == "Column"
        and argument.held("name") in setting.own(aggregate.one("input"))
    )


def change_of_measure(
    setting: Setting,
    aggregate: Node,
    call: Node,
    rows: int | None,
    step: Fraction,
    listed: list[int | None],
    *,
    replaced: bool,
) -> Fraction:
    """Give how far a measure moves, all groups together, in whole steps."""
    if tables_in_subqueries(aggregate) & setting.varying:
        raise NotKnown("a subquery looks at rows that may differ")
    if counts_units(setting, aggregate, call):
        return Fraction(groups_of_unit(setting, aggregate, rows, listed))
    if rows is None:
        raise NotKnown("nothing bounds how many rows differ")
    low, high = each_row(call, step)
    if replaced and not aggregate.several("keys") and row_by_row(aggregate.one("input")):
        if (
            call.held("function") == "count"
            and call.maybe("argument") is None
            and not call.held("distinct")
        ):
            return Fraction(0) if _keeps_all(aggregate.one("input")) else Fraction(rows, 2)
        return Fraction(rows, 2) * (high - low)
    return rows * max(high, -low)


def row_by_row(node: Node) -> bool:
    """Whether each row becomes so many rows or fewer by itself: then as many go as come."""
    node = unsorted(node)
    while node.kind in ("Filter", "Project"):
        node = unsorted(node.one("input"))
    if node.kind == "Union" and node.held("all"):
        return row_by_row(node.one("left")) and row_by_row(node.one("right"))
    return node.kind == "Scan"


def squared_length(
    setting: Setting,
    aggregate: Node,
    call: Node,
    step: Fraction,
    rows: int,
    groups: int,
    *,
    replaced: bool,
) -> Fraction | None:
    """Give the squared length of a move over the groups, where a rule says that it is less than the size squared.

    So many rows differ, in so many groups at most.
    """
    if counts_units(setting, aggregate, call):
        return Fraction(groups)  # once in each group
    low, high = each_row(call, step)
    if replaced:
        if not row_by_row(aggregate.one("input")):
            return None
        # One group loses what it had, another one gets what comes, or it is one group.
        return Fraction(rows, 2) ** 2 * max(2 * max(high, -low) ** 2, (high - low) ** 2)
    return max(high, -low) ** 2 * min(rows, groups) if one_in_group(setting, aggregate) else None


def one_in_group(setting: Setting, aggregate: Node) -> bool:
    """Whether a unit has one row in a group at most: its id and the keys tell all rows apart, whatever the data."""
    keys = {
        k.one("expression").held("name")
        for k in aggregate.several("keys")
        if k.one("expression").kind == "Column"
    }
    apart = identifying(replace(setting, keys={}), aggregate.one("input"))
    own = setting.own(aggregate.one("input"))
    return any(key <= keys | {unit} for key in apart for unit in own)


def _keeps_all(node: Node) -> bool:
    node = unsorted(node)
    while node.kind == "Project":
        node = unsorted(node.one("input"))
    if node.kind == "Union" and node.held("all"):
        return _keeps_all(node.one("left")) and _keeps_all(node.one("right"))
    return node.kind == "Scan"
