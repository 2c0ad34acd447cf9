"""Sums about a center: units counted by their own average, and what they add beyond a center cut down to a limit.

In: the statements of a release. Out: nothing, or Wrong, or NotKnown. About another center only a constant differs, so
one statement of each kind is checked. What a unit adds beyond a center may be rounded in any way: it is the unit's own.
But it must be counted once, and be whole where it is cut down. Amounts are in parts of a step.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from secant.verifier.limits import check_totals, scaled
from secant.verifier.plans import Node, NotKnown, Wrong, number, tables_in_subqueries, unsorted
from secant.verifier.rows import Setting
from secant.verifier.tallies import check_counted, sums_what_is_counted, tally_of


def check_centered(
    setting: Setting, statements: dict[str, Node], column: str, bound: dict[str, Any]
) -> set[str]:
    """Check every statement that reads a measure about a center; give their names."""
    limits = [int(x) * int(bound["fine"]) for x in bound["limits"]]
    used: dict[str, str] = {}
    for statement, node in statements.items():
        if node.kind == "Aggregate":
            kind = _kind(setting, node, column, limits)
            if kind:
                used[statement] = kind
                if tables_in_subqueries(node) & setting.varying:
                    raise NotKnown("a subquery looks at rows of units")
    kinds = set(used.values())
    if "places" not in kinds:
        raise Wrong(f"a center of {column} is chosen by numbers that no statement computes")
    if "tally" not in kinds:
        raise Wrong(f"no statement computes {column}")
    return set(used)


def _kind(setting: Setting, node: Node, column: str, limits: list[int]) -> str:
    keys = node.several("keys")
    if len(keys) == 1 and keys[0].held("name") == f"{column}.place":
        _check_places(setting, node)
        return "places"
    tally = tally_of(setting, node, column) if keys else None
    if tally is not None:
        check_counted(setting, tally)
        bounds = [Fraction(str(x)) for x in tally.bucket.held("limits")]
        both = [*(-x - 1 for x in reversed(limits)), *limits]
        signed = bounds == both
        if not signed and bounds != limits:
            raise Wrong(f"the buckets of {column} do not lie between its limits")
        if tally.nobodys is not None:
            raise NotKnown("rows of nobody are measured about a center")
        if signed:
            if tally.nothing is None or number(tally.nothing) != len(limits):
                raise Wrong("units that add nothing are counted beyond a limit")
            if not sums_what_is_counted(tally):
                raise Wrong(f"the buckets of {column} are not those of what is summed")
        return "tally"
    calls = [c for c in node.several("aggregations") if c.held("name") == column]
    rows = unsorted(node.one("input"))
    if not calls or rows.kind != "Project" or rows.one("input").kind != "Join":
        return ""
    _check_cut(setting, calls[0], rows, limits)
    return "cut"


def _check_places(setting: Setting, node: Node) -> None:
    """Each unit lies in one place, and is counted there once."""
    (call,) = node.several("aggregations")
    if (
        call.held("function") != "count"
        or call.held("argument") is not None
        or call.held("distinct")
    ):
        raise Wrong("what chooses a center is no count of units")
    if setting.at_most(node.one("input")) != 1:
        raise NotKnown("whether each unit is counted once is not known here")


def _check_cut(setting: Setting, call: Node, rows: Node, limits: list[int]) -> None:
    """What a unit adds, all groups together, is scaled down to one of the limits."""
    if call.held("function") != "sum" or call.held("distinct"):
        raise NotKnown(f"{call.held('function')} cut down to a limit is not known here")
    argument, join = call.one("argument"), unsorted(rows.one("input"))
    items = {i.held("name"): i.one("expression") for i in rows.several("items")}
    if argument.kind != "Column" or join.held("kind") != "inner":
        raise NotKnown("a statement of another shape is not known here")
    each, sizes = unsorted(join.one("left")), unsorted(join.one("right"))
    owner = check_totals(setting, join, each, sizes)
    limit = scaled(each, sizes, owner, items[argument.held("name")], Fraction(1), 1)
    if limit not in limits:
        raise Wrong(f"a statement cuts a sum down to {limit}, which is not in the list")
