"""Keys chosen by units that weigh less the more keys they have: the shape of the statement, and the threshold.

In: the statement of a release's keys, what its certificate claims of it, a threshold. Out: nothing, or Wrong, or
NotKnown. A unit with t keys adds at most PARTS / sqrt(t) to each of them, and there are no more than the statement
keeps of it.
"""

from __future__ import annotations

from fractions import Fraction
from math import isqrt
from typing import Any

from secant.verifier.noise import CLOSE, Paid, chance_shown
from secant.verifier.plans import Node, NotKnown, Wrong, number, tables_in_subqueries, unsorted
from secant.verifier.rows import Setting

PARTS = 2**20
MARGIN = 1 - Fraction(1, 2**40)
"""What a weight must be multiplied by, at most, for roots and quotients of doubles not to make it too large."""


def check_weights(setting: Setting, node: Node, column: str, claim: dict[str, Any]) -> int:
    """Check that units weigh no more than is claimed; give how many keys a unit weighs in at most."""
    if tables_in_subqueries(node) & setting.varying:
        raise NotKnown("a subquery looks at rows of units")
    (call,) = node.several("aggregations")
    rows = unsorted(node.one("input"))
    if call.held("name") != column or call.held("function") != "sum" or call.held("distinct"):
        raise NotKnown("keys are chosen by something else than added weights")
    if rows.kind != "Project" or call.one("argument").kind != "Column":
        raise NotKnown("weights are computed in another way")
    items = {i.held("name"): i.one("expression") for i in rows.several("items")}
    join = unsorted(rows.one("input"))
    if join.kind != "Join" or join.held("kind") != "inner":
        raise NotKnown("weights are computed in another way")
    each, numbers = unsorted(join.one("left")), unsorted(join.one("right"))
    most = _check_each(setting, node, each, items)
    number_of_keys = _check_numbers(join, each, numbers)
    largest = _weight(items[call.one("argument").held("name")], number_of_keys)
    if largest > PARTS * MARGIN:
        raise Wrong("a unit may weigh more than its part of one")
    size = Fraction(claim["bounds"][column]["value"])
    squared = Fraction(claim["squares"][column])
    if squared < PARTS**2 or size**2 < PARTS**2 * most:
        raise Wrong("units weigh more in all their keys together than is claimed")
    return most


def _check_each(setting: Setting, node: Node, each: Node, items: dict[str, Node]) -> int:
    """Check that a unit has one row for each of its keys, and no more of them than are kept."""
    if each.kind != "Truncate":
        raise NotKnown("how many keys a unit weighs in is not limited")
    different = unsorted(each.one("input"))
    owner = each.held("owner")
    if different.kind != "Distinct" or len(owner) != 1 or owner[0] not in setting.own(different):
        raise NotKnown("whether rows are pairs of a unit and a key is not known here")
    named = unsorted(different.one("input"))
    names = {i.held("name") for i in named.several("items")} if named.kind == "Project" else set()
    keys = [k.one("expression") for k in node.several("keys")]
    places = [items.get(k.held("name")) for k in keys if k.kind == "Column"]
    read = {p.held("name") for p in places if p is not None and p.kind == "Column"}
    # With fewer columns than the pairs have, rows of one unit would meet in a group.
    if len(places) != len(keys) or None in places or read | {owner[0]} != names:
        raise NotKnown("groups are not those of the keys that units weigh in")
    return int(each.held("limit"))


def _check_numbers(join: Node, each: Node, numbers: Node) -> str:
    """Check that each row meets the number of keys of its own unit; give the column of that."""
    if numbers.kind != "Aggregate" or unsorted(numbers.one("input")) != each:
        raise NotKnown("keys of other rows are counted")
    (key,), (call,) = numbers.several("keys"), numbers.several("aggregations")
    condition = join.one("condition")
    ends = {condition.one(side).held("name") for side in ("left", "right")}
    owner = each.held("owner")[0]
    if condition.kind != "Compare" or condition.held("op") != "=":
        raise NotKnown("rows meet numbers of keys in another way")
    if key.one("expression").held("name") != owner or ends != {owner, key.held("name")}:
        raise NotKnown("rows meet numbers of keys of other units")
    if call.held("function") != "count" or call.maybe("argument") is not None:
        raise NotKnown("keys are not counted")
    return str(call.held("name"))


def _weight(value: Node, number_of_keys: str) -> Fraction:
    """Read floor(c / sqrt(number of keys)); give c."""
    whole = value.one("operand") if value.kind == "Cast" else value
    if whole.kind != "Call" or whole.held("function") != "floor":
        raise NotKnown("weights are not rounded down")
    (share,) = whole.several("arguments")
    root = share.one("right") if share.kind == "Arithmetic" and share.held("op") == "/" else share
    if root.kind != "Call" or root.held("function") != "sqrt":
        raise NotKnown("units do not weigh one over a root")
    (inner,) = root.several("arguments")
    inner = inner.one("operand") if inner.kind == "Cast" else inner
    if inner.kind != "Column" or inner.held("name") != number_of_keys:
        raise NotKnown("units weigh by something else than the number of their keys")
    return number(share.one("left"))


def check_weighed_threshold(choice: dict[str, Any], most: int) -> Paid:
    """Check that keys that one unit alone has are shown with a chance of delta at most, however many it has."""
    noise, delta = choice["weighed"]["noise"], float(Fraction(choice["delta"]))
    for keys in range(1, most + 1):
        far = int(choice["threshold"]) - isqrt(PARTS**2 // keys)
        chance = chance_shown(noise, far, keys)
        if chance > delta * (1 + CLOSE):
            raise Wrong(f"one of {keys} keys of one unit is shown with chance {chance:.3g}")
    return Paid(keys=Fraction(choice["delta"]))
