"""Units counted in buckets of what they add: each once for each measure, and between the very limits that are claimed.

In: one statement. Out: nothing, or Wrong, or NotKnown. What follows for each limit is added up outside of the engine:
who lies beyond it, and, with sums of buckets, what is left where every unit is cut down to it.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any

from secant.verifier.measures import each_row
from secant.verifier.plans import Node, NotKnown, Wrong, number, renamed, unsorted
from secant.verifier.rows import Setting


@dataclass(frozen=True, slots=True)
class Tally:
    """Where a statement counts the units of one measure."""

    statement: Node
    units: Node
    """The rows that are counted: one for each unit."""
    bucket: Node
    nobodys: Node | None
    """The bucket of rows without a unit, if they are told apart."""
    nothing: Node | None
    """The bucket of units that add NULL, if they are told apart."""
    place: int | None
    """Which of several measures it is."""
    column: str


def tally_of(setting: Setting, node: Node, column: str) -> Tally | None:
    """Find where a statement counts units by what they add to a measure."""
    keys = node.several("keys")
    if not keys or not str(keys[-1].held("name")).endswith(".bucket"):
        return None
    units, places = node.one("input"), keys[:-1]
    choices: list[tuple[int | None, Node]] = [(None, keys[-1].one("expression"))]
    if places:
        units = _rows_of_buckets(node, places)
        choices = list(_buckets_by_measure(keys[-1].one("expression"), places))
    for index, bucket in choices:
        if _of_another(bucket, column):
            continue
        nobodys = nothing = None
        while bucket.kind == "Case":
            (branch,) = bucket.several("branches")
            condition = branch.one("condition")
            if condition.kind != "IsNull":
                raise NotKnown("units are put into buckets in another way")
            tested = str(condition.one("operand").held("name"))
            if tested == column:
                nothing = branch.one("value")
            elif nobodys is None:
                check_nobody(setting, unsorted(units), condition)
                nobodys = branch.one("value")
            bucket = bucket.one("default")
        if bucket.kind != "Bucket" or bucket.one("operand").kind != "Column":
            raise NotKnown("units are put into buckets in another way")
        return Tally(node, units, bucket, nobodys, nothing, index, column)
    return None


def _of_another(bucket: Node, column: str) -> bool:
    """Whether units are put into buckets by what they add to another measure."""
    while bucket.kind == "Case":
        bucket = bucket.one("default")
    if bucket.kind != "Bucket" or bucket.one("operand").kind != "Column":
        return False
    return bucket.one("operand").held("name") not in (column, f"{column}.total")


def _rows_of_buckets(node: Node, places: list[Node]) -> Node:
    """Give the rows that stand once beside the place of each measure."""
    join = node.one("input")
    if len(places) != 1 or join.kind != "Join" or join.held("kind") != "cross":
        raise NotKnown("units are counted for several measures in another way")
    which, values = places[0].one("expression"), join.one("right")
    if values.kind != "Values" or which.kind != "Column":
        raise NotKnown("units are counted for several measures in another way")
    if [c["name"] for c in values.held("columns")] != [which.held("name")]:
        raise NotKnown("units are counted by something else than the place of a measure")
    if values.held("rows") != [[i] for i in range(len(values.held("rows")))]:
        raise Wrong("a unit is counted several times for one measure")
    return join.one("left")


def _buckets_by_measure(bucket: Node, places: list[Node]) -> list[tuple[int | None, Node]]:
    """Give the buckets by the place of their measure: CASE WHEN place = 0 THEN … WHEN … ELSE the last one's END."""
    if bucket.kind != "Case":
        raise NotKnown("the buckets of several measures are told apart in another way")
    branches: list[tuple[int | None, Node]] = []
    for at, branch in enumerate(bucket.several("branches")):
        if _measure_index(branch.one("condition"), places[0]) != at:
            raise NotKnown("the buckets of several measures are told apart in another way")
        branches.append((at, branch.one("value")))
    return [*branches, (len(branches), bucket.one("default"))]


def _measure_index(condition: Node, bucket: Node) -> int | None:
    if condition.kind != "Compare" or condition.held("op") != "=":
        return None
    if condition.one("left") != bucket.one("expression"):
        return None
    return int(number(condition.one("right")))


def check_counted(setting: Setting, tally: Tally) -> None:
    """What chooses the limit counts units: all counts move by one at most, and all the same way."""
    call = tally.statement.several("aggregations")[0]
    plain = call.held("function") == "count" and call.held("argument") is None
    if not plain or call.held("distinct"):
        raise Wrong("what chooses a limit is no count of units")
    if setting.at_most(tally.units) != 1:
        raise NotKnown("whether each unit is counted once is not known here")


def check_summed(setting: Setting, tally: Tally, limits: list[int], step: Fraction) -> bool:
    """Check that sums of buckets are of what units add, between the limits that are claimed; False without sums."""
    column, operand = tally.column, tally.bucket.one("operand")
    calls = {str(c.held("name")): c for c in tally.statement.several("aggregations")}
    call = calls.get(f"{column}.sum")
    if call is None:
        return False
    if operand.held("name") != column or not _sums(call, tally):
        raise Wrong(f"the buckets of {column} are not those of what is summed")
    each = unsorted(tally.units)
    inner = next(c for c in each.several("aggregations") if c.held("name") == column)
    low, _ = each_row(inner, step)
    unit = step if str(operand.held("type")).startswith("DECIMAL") else Fraction(1)
    bucket_limits = [_amount(x) / unit for x in tally.bucket.held("limits")]
    # Units up to the least limit may be counted apart from those that add nothing.
    edges = [0, *limits] if 0 in bucket_limits else limits
    both = [Fraction(-x - 1) for x in reversed(edges)] + [Fraction(x) for x in edges]
    signed = bucket_limits == both
    if not signed and (bucket_limits != [Fraction(x) for x in edges] or low < 0):
        raise Wrong(f"the buckets of {column} do not lie between its limits")
    middle = len(edges) if signed else 0
    if signed and tally.nothing is None:
        raise Wrong("units that add nothing are counted as if they took away")
    for apart in (tally.nobodys, tally.nothing):
        if apart is not None and number(apart) != middle:
            raise Wrong("rows that no limit cuts are counted beyond one")
    if tally.nobodys is not None:
        check_alone(each, column, step, Fraction(limits[0]))
    return True


def sums_what_is_counted(tally: Tally) -> bool:
    """Whether a statement sums, bucket by bucket, what its buckets tell apart."""
    calls = [
        c
        for c in tally.statement.several("aggregations")
        if c.held("name") == f"{tally.column}.sum"
    ]
    return len(calls) == 1 and _sums(calls[0], tally)


def _sums(call: Node, tally: Tally) -> bool:
    """Whether a call sums what units add to the measure, in the rows that stand beside its place."""
    if call.held("function") != "sum" or call.held("distinct"):
        return False
    value = call.one("argument")
    if tally.place is not None:
        (branch,) = value.several("branches") if value.kind == "Case" else (None,)
        if branch is None or value.one("default").held("value") is not None:
            return False
        key = tally.statement.several("keys")[0]
        if _measure_index(branch.one("condition"), key) != tally.place:
            return False
        value = branch.one("value")
    return value == tally.bucket.one("operand")


def _amount(value: Any) -> Fraction:
    return Fraction(Decimal(value["decimal"])) if isinstance(value, dict) else Fraction(value)


def check_nobody(setting: Setting, each: Node, condition: Node) -> None:
    """An exception may be made for the rows that belong to nobody, and for no others."""
    names = renamed(each, "keys") if each.kind == "Aggregate" else {}
    own = {new for c in setting.own(each.one("input")) for new in names.get(c, ())}
    if condition.kind != "IsNull" or condition.one("operand").held("name") not in own:
        raise NotKnown("an exception is made for other rows than those of nobody")


def check_alone(each: Node, name: str, step: Fraction, limit: Fraction) -> None:
    """A row of nobody counts like a unit: it must not add more than the limit."""
    call = next(c for c in each.several("aggregations") if c.held("name") == name)
    low, high = each_row(call, step)
    if max(high, -low) > limit:
        raise Wrong("a row without a unit adds more than the limit")
