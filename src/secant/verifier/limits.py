"""Measures with what each unit adds cut down to a limit: the shapes of statements in which a unit adds no more.

In: the statements of a release. Out: nothing, or Wrong, or NotKnown. Three shapes are known: one row for each unit,
clamped; rows of units in groups, scaled by limit over total; and units counted in buckets (`tallies`). Amounts are in
whole steps, or in parts of a step.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from secant.verifier.measures import counts_units, each_row, one_in_group
from secant.verifier.plans import (
    Node,
    NotKnown,
    Wrong,
    columns,
    number,
    tables_in_subqueries,
    unsorted,
)
from secant.verifier.rows import Setting
from secant.verifier.tallies import check_alone, check_counted, check_nobody, check_summed, tally_of

HELD = 2**62
"""Where additions are clamped so that they fit into 64 bits: above every limit."""
MARGIN = 1 - Fraction(1, 2**40)
"""What a scaled part must be multiplied by, at most, for rounded quotients of doubles to stay below the limit."""


def check_cut(
    setting: Setting,
    statements: dict[str, Node],
    column: str,
    bound: dict[str, Any],
    step: Fraction,
) -> set[str]:
    """Check that every statement that computes a measure cuts each unit down to a limit; give their names."""
    limits = [int(x) for x in bound["limits"]]
    checked = chosen = False
    used = set()
    for statement, node in statements.items():
        if node.kind == "Distinct" and bound.get("assigned"):
            _check_pairs(setting, node)
            checked = chosen = True
            used.add(statement)
            continue
        if node.kind != "Aggregate":
            continue
        if tables_in_subqueries(node) & setting.varying:
            raise NotKnown("a subquery looks at rows of units")
        tally = tally_of(setting, node, column)
        if tally is not None:
            check_counted(setting, tally)
            chosen = True
            used.add(statement)
            checked = check_summed(setting, tally, limits, step) or checked
            continue
        for call in node.several("aggregations"):
            name = str(call.held("name"))
            if name == column or name.startswith(f"{column}.limit"):
                limit = _limit_of(setting, node, call, step, int(bound["fine"]))
                at = name.removeprefix(f"{column}.limit")
                if limit > (limits[int(at)] if at != name else limits[-1]):
                    raise Wrong(
                        f"a statement lets a unit add {limit} to {column}, more than claimed"
                    )
                if limit not in limits:
                    raise Wrong(
                        f"a statement cuts {column} down to {limit}, which is not in the list"
                    )
                checked = True
                used.add(statement)
    if not checked:
        raise Wrong(f"no statement computes {column}")
    if len(limits) > 1 and not chosen and not bound["race"]:
        raise Wrong(f"a limit of {column} is chosen by numbers that no statement computes")
    return used


def _check_pairs(setting: Setting, node: Node) -> None:
    """Each unit with each of its values: without a unit its pairs go, and no others come or go."""
    if tables_in_subqueries(node) & setting.varying:
        raise NotKnown("a subquery looks at rows of units")
    names = [name for name, _ in columns(node)]
    if len(names) != 2:
        raise NotKnown("values are told apart by something else than themselves and their unit")
    if names[0] not in setting.own(node) or not setting.local(node):
        raise NotKnown("whether values stand beside their own unit is not known here")


def most_in_group(setting: Setting, node: Node, call: Node, step: Fraction) -> Fraction:
    """Give what one unit adds to one group at most, in whole steps, where it has one row there; a cut adds nothing."""
    each = node if call.held("function") == "count" else unsorted(node.one("input"))
    while each.kind in ("Project", "Join", "Truncate"):
        each = unsorted(each.one("left" if each.kind == "Join" else "input"))
    if each.kind != "Aggregate":
        raise NotKnown("what a unit adds to one group is not known here")
    if each == node:
        inner = call
    else:
        named = str(call.held("name")).partition(".limit")[0]
        inner = next(c for c in each.several("aggregations") if c.held("name") == named)
    if counts_units(setting, each, inner):
        return Fraction(1)
    if not one_in_group(setting, each):
        raise NotKnown("whether a unit has one row in a group is not known here")
    low, high = each_row(inner, step)
    return max(high, -low)


def _limit_of(setting: Setting, node: Node, call: Node, step: Fraction, fine: int) -> Fraction:
    """Give what one unit adds at most, all groups together, in whole steps."""
    rows = node.one("input")
    if call.held("function") == "count" and call.held("distinct"):
        differ = setting.count(rows)  # as many values as rows
        if differ is None:
            raise NotKnown("how many values a unit brings in is not known here")
        return Fraction(differ)
    if call.held("function") != "sum" or call.held("distinct"):
        raise NotKnown(f"{call.held('function')} cut down to a limit is not known here")
    argument = call.one("argument")
    if argument.kind == "Column" and rows.kind == "Project":
        items = {i.held("name"): i.one("expression") for i in rows.several("items")}
        return _projected(setting, rows.one("input"), items[argument.held("name")], step, fine)
    if setting.at_most(rows) != 1:
        raise NotKnown("whether a unit has one row is not known here")
    return _clamped(setting, unsorted(rows), argument, step)


def _clamped(setting: Setting, each: Node, value: Node, step: Fraction) -> Fraction:
    """One row for each unit, its addition clamped; rows of nobody are not cut, since each adds no more alone."""
    added = value
    alone = value.kind == "Case"
    if alone:
        (branch,) = value.several("branches")
        check_nobody(setting, each, branch.one("condition"))
        added = value.one("default")
    if added.kind != "Clamp" or added.one("operand").kind != "Column":
        raise NotKnown("a unit's addition is not clamped")
    name = added.one("operand").held("name")
    unit = step if str(added.one("operand").held("type")).startswith("DECIMAL") else Fraction(1)
    low, high = number(added.one("low")), number(added.one("high"))
    limit = max(high, -low) / unit
    if alone:
        if branch.one("value") != added.one("operand"):
            raise NotKnown("rows of nobody are added in another way")
        check_alone(each, name, step, limit)
    return limit


def _projected(setting: Setting, rows: Node, value: Node, step: Fraction, fine: int) -> Fraction:
    """Additions of units, group by group or in one row, in parts of a step."""
    rows = unsorted(rows)
    if rows.kind == "Aggregate":
        if setting.at_most(rows) != 1:
            raise NotKnown("whether a unit has one row is not known here")
        if value.kind == "Case" and value.several("branches")[0].one("condition").kind != "IsNull":
            (unit,) = rows.several("keys")
            return scaled(rows, None, str(unit.held("name")), value, step, fine)
        inner = value if fine == 1 else _part(value, fine)
        return _clamped(setting, rows, inner, step)
    if rows.kind != "Join" or rows.held("kind") not in ("inner", "left"):
        raise NotKnown("a statement of another shape is not known here")
    each, sizes = unsorted(rows.one("left")), unsorted(rows.one("right"))
    owner = check_totals(setting, rows, each, sizes)
    return scaled(each, sizes, owner, value, step, fine)


def _part(value: Node, fine: int) -> Node:
    if value.kind != "Arithmetic" or value.held("op") != "*" or number(value.one("right")) != fine:
        raise NotKnown("an addition is not counted in parts of a step")
    return value.one("left")


def check_totals(setting: Setting, join: Node, each: Node, sizes: Node) -> str:
    """Check that each row meets the totals of its own unit; give the column of the unit."""
    if (
        each.kind not in ("Aggregate", "Project")
        or sizes.kind != "Aggregate"
        or unsorted(sizes.one("input")) != each
    ):
        raise NotKnown("totals of other rows are not known here")
    condition, owners = join.one("condition"), setting.own(each)
    (key,) = sizes.several("keys")
    unit = key.one("expression")
    if unit.kind != "Column" or unit.held("name") not in owners:
        raise NotKnown("totals of something else than units")
    sides = (
        {condition.one(s).held("name") for s in ("left", "right")}
        if condition.kind == "Compare"
        else set()
    )
    if condition.held("op") != "=" or sides != {unit.held("name"), key.held("name")}:
        raise NotKnown("rows do not meet the totals of their unit")
    return str(unit.held("name"))


def scaled(
    each: Node, sizes: Node | None, owner: str, value: Node, step: Fraction, fine: int
) -> Fraction:
    """CASE WHEN total <= limit [AND …] THEN added ELSE ± floor(|added| * margin * least(limit / total, …)) END."""
    if value.kind != "Case":
        raise NotKnown("an addition is scaled in another way")
    (branch,) = value.several("branches")
    added = branch.one("value") if fine == 1 else _part(branch.one("value"), fine)
    inside, added = added, _unheld(added)
    if added.kind != "Column":
        raise NotKnown("an addition is scaled in another way")
    name, decimal = added.held("name"), str(added.held("type")).startswith("DECIMAL")
    condition = branch.one("condition")
    tests = condition.several("operands") if condition.kind == "And" else [condition]
    own: list[tuple[Node, Node]] = []
    for test in tests:
        if test.kind != "Compare" or test.held("op") != "<=":
            raise NotKnown("an addition is kept under another condition")
        if _total(sizes, owner, test.one("left")) == name:
            own.append((test.one("left"), test.one("right")))
    if not own:
        raise Wrong("an addition is kept although its own total may exceed the limit")
    limit = min(number(most) for _, most in own)
    if inside is not added and number(inside.one("high")) < limit:
        raise Wrong("an addition within its limit is cut down")
    sign, positive = value.one("default"), value.one("default")
    if sign.kind == "Case":
        (negative,) = sign.several("branches")
        positive = sign.one("default")
        if (
            negative.one("value").kind != "Negate"
            or negative.one("value").one("operand") != positive
        ):
            raise NotKnown("an addition is signed in another way")
    unit = step if decimal else Fraction(1)
    _check_share(positive, added, own, unit, fine, limit)
    if any(size.kind == "Case" for size, _ in own):
        check_alone(each, name, step, limit / unit)
    return limit / unit


def _total(sizes: Node | None, owner: str, size: Node) -> str:
    """Give the measure whose total over a unit's groups a size is; nobody's rows have none."""
    if size.kind == "Case":
        (branch,) = size.several("branches")
        condition = branch.one("condition")
        if condition.kind != "IsNull" or condition.one("operand").held("name") != owner:
            raise NotKnown("an exception is made for other rows than those of nobody")
        size = size.one("default")
    if sizes is None:  # a unit has one row
        return _sized(size)
    calls = {c.held("name"): c for c in sizes.several("aggregations")}
    call = calls.get(size.held("name")) if size.kind == "Column" else None
    if call is None or call.held("function") != "sum" or call.held("distinct"):
        raise NotKnown("a total is computed in another way")
    inner = call.one("argument")
    if inner.kind == "Case":
        (branch,) = inner.several("branches")
        condition = branch.one("condition")
        if condition.kind != "IsNull" or condition.one("operand").held("name") != owner:
            raise NotKnown("an exception is made for other rows than those of nobody")
        inner = inner.one("default")
    return _sized(inner)


def _sized(size: Node) -> str:
    """Give the column whose size is taken."""
    if size.kind != "Call" or size.held("function") != "abs":
        raise NotKnown("a total is of something else than sizes")
    (argument,) = size.several("arguments")
    argument = _unheld(argument)
    if argument.kind != "Column":
        raise NotKnown("a total is of something else than sizes")
    return str(argument.held("name"))


def _unheld(added: Node) -> Node:
    """Give an addition without the clamp that keeps it to 64 bits, the same on both sides: its total stays large."""
    if added.kind != "Clamp" or added.one("operand").kind != "Column":
        return added
    if number(added.one("low")) != -HELD or number(added.one("high")) != HELD:
        raise NotKnown("an addition is clamped before its size is taken")
    return added.one("operand")


def _check_share(
    value: Node,
    added: Node,
    own: list[tuple[Node, Node]],
    unit: Fraction,
    fine: int,
    limit: Fraction,
) -> None:
    """Find floor(|added| * c * share) inside, with c no more than the margin allows and the own share among them."""
    while value.kind == "Cast" or (value.kind == "Arithmetic" and value.held("op") == "*"):
        if value.kind == "Arithmetic":
            if number(value.one("right")) != unit:
                raise NotKnown("a scaled addition is counted in another unit")
            value = value.one("left")
        else:
            value = value.one("operand")
    if value.kind != "Call" or value.held("function") != "floor":
        raise NotKnown("a scaled addition is not rounded toward zero")
    (product,) = value.several("arguments")
    parts, share = product.one("left"), product.one("right")
    size = parts.one("left")
    size = size.one("operand") if size.kind == "Cast" else size
    if product.held("op") != "*" or parts.held("op") != "*" or size.kind != "Call":
        raise NotKnown("a scaled addition is computed in another way")
    if size.held("function") != "abs" or [_unheld(x) for x in size.several("arguments")] != [added]:
        raise NotKnown("something else than the addition is scaled")
    if number(parts.one("right")) > MARGIN * fine / unit * (1 + Fraction(1, 2**50)):
        raise Wrong("scaled additions of a unit may come to more than the limit")
    several = share.kind == "Call" and share.held("function") == "least"
    shares = share.several("arguments") if several else [share]
    if not any(_is_share(x, own, limit) for x in shares):
        raise Wrong("an addition is not scaled by its own limit")


def _is_share(share: Node, own: list[tuple[Node, Node]], limit: Fraction) -> bool:
    """Whether it is limit / greatest(total, limit), in doubles, of the own total that was tested."""
    if share.kind != "Arithmetic" or share.held("op") != "/":
        return False
    top, bottom = (share.one(s) for s in ("left", "right"))
    top, bottom = (x.one("operand") if x.kind == "Cast" else x for x in (top, bottom))
    if bottom.kind != "Call" or bottom.held("function") != "greatest":
        return False
    arguments = bottom.several("arguments")
    sizes = [size for size, most in own if most == top]
    return (
        number(top) == limit
        and len(arguments) == 2
        and arguments[0] in sizes
        and arguments[1] == top
    )
