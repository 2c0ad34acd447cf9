"""Does a row pass a condition always, never or perhaps, and which values may a column still have?

In: an expression and what is known of its columns (`Ranges`). Out: which of true, false and unknown a condition can
be, and finite sets of values, or None for "any value". All of it rests on declared facts, so it is a wish: whoever
uses it clamps. Never here: data; values that are tried come from the policy and the query.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import product
from typing import TYPE_CHECKING

from secant.numeric import interval as iv
from secant.plan import nodes as n
from secant.plan.evaluate.evaluate import evaluate
from secant.plan.evaluate.values import Failure, conform
from secant.plan.facts.equalities import exactly_comparable
from secant.plan.functions.scalar import FUNCTIONS
from secant.plan.rewrites.rewrite import columns_of
from secant.plan.show import same
from secant.plan.typing import type_of
from secant.records import frozen

if TYPE_CHECKING:
    from secant.plan.facts.ranges import Ranges

MOST_TRIED = 512
"""So many combinations of values are tried at most; beyond, any value is possible."""
MOST_NESTED = 2
"""Branches inside branches are seen under so many conditions at most: each asks everything anew."""
FLIPPED = {"=": "=", "<>": "<>", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
Values = tuple[object, ...]


@frozen
class Outcomes:
    """Which of the three truth values a condition can have."""

    true: bool = True
    false: bool = True
    unknown: bool = True

    @property
    def always(self) -> bool:
        """Whether every row passes."""
        return not self.false and not self.unknown

    @property
    def never(self) -> bool:
        """Whether no row passes."""
        return not self.true

    @property
    def word(self) -> str:
        """One of always, never, perhaps; a condition without outcome meets no row, and never passes."""
        return "never" if self.never else "always" if self.always else "perhaps"


ANY = Outcomes()


def judge(r: Ranges, condition: n.Scalar) -> Outcomes:
    """Say how a condition can turn out on a row that declared facts allow (range.filter)."""
    if isinstance(condition, n.Literal):
        value = condition.value
        return Outcomes(value is True, value is False, value is None)
    if isinstance(condition, n.And):
        parts = [judge(r, part) for part in condition.operands]
        return Outcomes(
            all(p.true for p in parts) and _together_true(r, condition.operands),
            any(p.false for p in parts),
            any(p.unknown for p in parts) and all(p.true or p.unknown for p in parts),
        )
    if isinstance(condition, n.Or):
        opposite = judge(r, n.And(tuple(n.Not(part) for part in condition.operands)))
        return Outcomes(opposite.false, opposite.true, opposite.unknown)
    if isinstance(condition, n.Not):
        inner = judge(r, condition.operand)
        return Outcomes(inner.false, inner.true, inner.unknown)
    if n.has_subquery(condition):
        return ANY
    if isinstance(condition, n.IsNull):
        absent = may_be_null(r, condition.operand)
        return Outcomes(absent, True, False)
    tried = _tried(r, condition)
    if tried is not None:
        return Outcomes(True in tried, False in tried, None in tried)
    if isinstance(condition, n.Compare):
        return _compared(r, condition)
    if isinstance(condition, n.InList):
        return _listed(r, condition)
    return ANY


def _together_true(r: Ranges, parts: tuple[n.Scalar, ...]) -> bool:
    """Whether conditions can be true at once: each is judged where those before it hold."""
    if r.nested >= MOST_NESTED or any(isinstance(p, (n.And, n.Or, n.Not, n.Case)) for p in parts):
        return True
    for index, part in enumerate(parts[1:], start=1):
        if any(columns_of(part) & columns_of(other) for other in parts[:index]):
            before = n.conjunction(parts[:index])
            assert before is not None
            if judge(r.under(before), part).never:
                return False
    return True


def _compared(r: Ranges, node: n.Compare) -> Outcomes:
    unknown = may_be_null(r, node.left) or may_be_null(r, node.right)
    if same(node.left, node.right):
        holds = node.op in ("=", "<=", ">=")
        return Outcomes(holds, not holds, unknown)
    kinds = {type_of(node.left).kind, type_of(node.right).kind}
    if "TIMESTAMP" in kinds or not _ordered(kinds):
        return Outcomes(True, True, unknown)
    left, right = r.of(node.left), r.of(node.right)
    if columns_of(node.left) & columns_of(node.right) and "DATE" not in kinds:
        # x <= x + 1: the sides move together, so their difference says more than both ranges.
        left, right = r.of(n.Arithmetic("-", node.left, node.right)), iv.point(0)
    if node.op in (">", ">="):
        left, right = right, left
    if node.op in ("=", "<>"):
        apart = _below(left, right, strict=True) or _below(right, left, strict=True)
        one = left.bounded and left == right and left.low == left.high
        equal = Outcomes(not apart, not one, unknown)
        return equal if node.op == "=" else Outcomes(equal.false, equal.true, unknown)
    strict = node.op in ("<", ">")
    return Outcomes(
        not _below(right, left, strict=not strict), not _below(left, right, strict=strict), unknown
    )


def _ordered(kinds: set[str]) -> bool:
    return kinds <= {"INTEGER", "DECIMAL", "DOUBLE"} or kinds == {"DATE"}


def _below(a: iv.Interval, b: iv.Interval, *, strict: bool) -> bool:
    """Whether every number of `a` is below (or, if not strict, at most) every number of `b`."""
    if a.high is None or b.low is None:
        return False
    return a.high < b.low if strict else a.high <= b.low


def _listed(r: Ranges, node: n.InList) -> Outcomes:
    parts = [_compared(r, n.Compare("=", node.operand, item)) for item in node.items]
    return Outcomes(
        any(p.true for p in parts),
        all(p.false or p.unknown for p in parts),
        any(p.unknown for p in parts),
    )


def may_be_null(r: Ranges, scalar: n.Scalar) -> bool:
    """Whether an expression can be NULL on a row that passed all conditions so far."""
    return _may_be_null(r, scalar, {})


def _may_be_null(r: Ranges, scalar: n.Scalar, done: dict[n.Scalar, bool]) -> bool:
    if scalar not in done:
        done[scalar] = _may_itself(r, scalar, done)
    return done[scalar]


def _may_itself(r: Ranges, scalar: n.Scalar, done: dict[n.Scalar, bool]) -> bool:
    if isinstance(scalar, n.Literal):
        return scalar.value is None
    if isinstance(scalar, n.Column):
        return scalar.name not in r.present
    if isinstance(scalar, n.IsNull):
        return False
    if isinstance(scalar, n.Call) and scalar.function == "coalesce":
        return all(_may_be_null(r, part, done) for part in scalar.arguments)
    if _strict(scalar):
        parts = (part for part in n.children(scalar) if isinstance(part, n.Scalar))
        return any(_may_be_null(r, part, done) for part in parts)
    return True


def _strict(scalar: n.Node) -> bool:
    """Whether a value is NULL exactly if a part is."""
    if isinstance(scalar, n.Arithmetic):
        return scalar.op in ("+", "-", "*")
    if isinstance(scalar, n.Call):
        return FUNCTIONS[scalar.function].never_null
    if isinstance(scalar, n.Cast):
        return scalar.type.kind == "DOUBLE" and type_of(scalar.operand).numeric
    return isinstance(scalar, (n.Negate, n.Compare, n.Like))


def present_after(conditions: Iterable[n.Scalar]) -> frozenset[str]:
    """Give the columns that cannot be NULL on a row for which all these conditions are true."""
    names: set[str] = set()
    for condition in conditions:
        stack: list[n.Node] = []
        if isinstance(condition, (n.Compare, n.Like)):
            stack += n.children(condition)
        elif isinstance(condition, n.InList):
            stack.append(condition.operand)
        elif isinstance(condition, n.Not):
            inner = condition.operand
            if isinstance(inner, (n.IsNull, n.InList)):
                stack.append(inner.operand)
            elif isinstance(inner, (n.Compare, n.Like)):
                stack += n.children(inner)
        nodes = (node for part in stack for node in n.reached(part, _strict))
        names |= {node.name for node in nodes if isinstance(node, n.Column)}
    return frozenset(names)


# ── sets of values ───────────────────────────────────────────────────────────────────────────────


def values_of(r: Ranges, scalar: n.Scalar) -> Values | None:
    """Give all values that an expression may have, without NULL; None for any value (range.values)."""
    if isinstance(scalar, n.Literal):
        return () if scalar.value is None else (scalar.value,)
    if isinstance(scalar, n.Column):
        return _column_values(r, scalar)
    if n.has_subquery(scalar):
        return None
    if isinstance(scalar, n.Case):
        return _case_values(r, scalar)
    tried = _tried(r, scalar)
    return None if tried is None else tuple(v for v in tried if v is not None)


def _column_values(r: Ranges, column: n.Column) -> Values | None:
    if column.name not in r.sets:
        values = _find_values(r, column)
        if r.asking:  # some columns were not asked, so another time more may be known
            return values
        r.sets[column.name] = values
    return r.sets[column.name]


def _find_values(r: Ranges, column: n.Column) -> Values | None:
    own = _own_values(r, column)
    for condition in r.conditions:
        if columns_of(condition) != {column.name} or n.has_subquery(condition):
            continue
        if own is None:
            own = _named_values(condition)
        if own is not None:
            own = _passing(column, own, condition)
    if len(r.asking) < 3:
        for op, other in r.relations.get(column.name, ()):
            if op != "=" or other.name in r.asking or not exactly_comparable(column, other):
                continue
            r.asking.add(column.name)
            theirs = _column_values(r, other)
            r.asking.discard(column.name)
            if theirs is not None:
                own = theirs if own is None else tuple(v for v in own if v in theirs)
    return own


def _own_values(r: Ranges, column: n.Column) -> Values | None:
    if column.name in r.listed:
        return r.listed[column.name]
    if column.name in r.origins:
        return r.policy.column(*r.origins[column.name]).values
    if column.name in r.merged:
        sides = [values_of(r, side) for side in r.merged[column.name]]
        present = [side for side in sides if side is not None]
        return _together(present) if len(present) == len(sides) else None
    inner = r.definitions.get(column.name)
    return None if inner is None else values_of(r, inner)


def _together(sets: Iterable[Values]) -> Values:
    return tuple(dict.fromkeys(value for values in sets for value in values))


def _named_values(condition: n.Scalar) -> Values | None:
    """Read the values that a condition on one column names: x = 'a', x IN ('a', 'b'), or an OR of such."""
    if isinstance(condition, n.Or):
        parts = [_named_values(part) for part in condition.operands]
        present = [part for part in parts if part is not None]
        return _together(present) if len(present) == len(parts) else None
    if isinstance(condition, n.InList) and isinstance(condition.operand, n.Column):
        items = [i.value for i in condition.items if isinstance(i, n.Literal)]
        return tuple(dict.fromkeys(items)) if len(items) == len(condition.items) else None
    if isinstance(condition, n.Compare) and condition.op == "=":
        for a, b in ((condition.left, condition.right), (condition.right, condition.left)):
            if isinstance(a, n.Column) and isinstance(b, n.Literal):
                return (b.value,)
    return None


def _passing(column: n.Column, values: Values, condition: n.Scalar) -> Values:
    """Keep the values for which a condition on this column alone is true."""
    try:
        typed = tuple((conform(value, column.type),) for value in values)
        rows = n.Values((n.Field(column.name, column.type),), typed)
        return tuple(row[0] for row in evaluate(n.Filter(rows, condition), {}))
    except Failure:
        return values


def _case_values(r: Ranges, node: n.Case) -> Values | None:
    """Only branches that can be reached count."""
    by_branch: list[Values] = []
    for branch in node.branches:
        outcome = judge(r, branch.condition)
        if outcome.never:
            continue
        values = values_of(r, branch.value)
        if values is None:
            return None
        by_branch.append(values)
        if outcome.always:
            return _together(by_branch)
    values = values_of(r, node.default)
    return None if values is None else _together([*by_branch, values])


def _tried(r: Ranges, scalar: n.Scalar) -> Values | None:
    """Compute an expression for every combination of its columns' values; None if they are not few."""
    columns = {part.name: part for part in n.walk(scalar) if isinstance(part, n.Column)}
    if len(columns) > 3 or any(isinstance(part, n.Outer) for part in n.walk(scalar)):
        return None
    choices: list[Values] = []
    combinations = 1
    for column in columns.values():
        values = _column_values(r, column)
        if values is None:
            return None
        if column.name not in r.present:
            values = (*values, None)
        choices.append(values)
        combinations *= len(values)
        if combinations > MOST_TRIED:
            return None
    fields = tuple(n.Field(name, column.type) for name, column in columns.items())
    try:
        typed = [
            [conform(value, f.type) for value in values]
            for f, values in zip(fields, choices, strict=True)
        ]
        rows = n.Values(fields, tuple(product(*typed)))
        evaluated = evaluate(n.Project(rows, (n.Named("value", scalar),)), {})
    except Failure:
        return None
    return tuple(dict.fromkeys(row[0] for row in evaluated))
