"""The types of a plan: of every scalar, and of the columns of every relation.

In: nodes. Out: `type_of` and `fields_of`, or `Mistyped` for what makes no sense. Never here:
whether a column exists where it is used; that is `verify`. The rules are DuckDB's where engines
have a choice. Nodes are settled from the leaves up with a stack of our own, so a deep plan cannot
exhaust Python's. A node remembers what it means: it never changes, so it is settled once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeAlias

from secant.plan import nodes as n
from secant.plan.evaluate.values import CASTABLE
from secant.plan.functions.aggregates import QUANTILES, SPREAD
from secant.plan.functions.scalar import AGGREGATES, FUNCTIONS
from secant.plan.functions.windows import window_type
from secant.plan.rewrites.steps import as_product
from secant.plan.rule_table import RuleTable
from secant.schema import types as t
from secant.schema.types import Type

Fields: TypeAlias = tuple[n.Field, ...]
Meaning: TypeAlias = Type | Fields
Typed: TypeAlias = n.Scalar | n.Branch | n.Named | n.SortKey | n.Aggregation | n.WindowCall
"""What has one type."""

EXTRACT_PARTS = (
    "year", "quarter", "month", "week", "day", "dow", "doy", "hour", "minute", "second", "epoch", "isodow", "isoyear",
    "decade", "century",
)  # fmt: skip


class Mistyped(ValueError):  # noqa: N818 - reads as the verdict that it is
    """A plan or a query in which types do not fit. The message names types only, never a value."""

    def __init__(self, message: str, node: n.Node) -> None:
        super().__init__(message)
        self.node = node


SCALAR_TYPES: RuleTable[Callable[..., Type]] = RuleTable("type_of")
RELATION_FIELDS: RuleTable[Callable[..., Fields]] = RuleTable("fields_of")


def type_of(scalar: Typed) -> Type:
    """Give the type of a scalar, or of the result of an aggregate or a window call, whose parts all fit together."""
    try:
        return scalar._meaning  # type: ignore[return-value]
    except AttributeError:
        return settle(scalar)  # type: ignore[return-value]


def fields_of(relation: n.Relation) -> Fields:
    """Give the names and types of a relation's columns."""
    try:
        return relation._meaning  # type: ignore[return-value]
    except AttributeError:
        return settle(relation)  # type: ignore[return-value]


def settle(root: n.Node) -> Meaning:
    """Find the type or the fields of any node, and of all that it rests on."""
    pending = [root]
    while pending:
        node = pending[-1]
        missing = [part for part in _needed(node) if not hasattr(part, "_meaning")]
        if missing:
            pending += missing
            continue
        pending.pop()
        if not hasattr(node, "_meaning"):  # one that two others rest on is pending twice
            settle_one(node)
    return root._meaning


def settle_one(node: n.Node) -> None:
    """Find the type or the fields of a node that rests on settled ones only."""
    rule: Callable[..., Meaning] | None = SCALAR_TYPES.find(node) or RELATION_FIELDS.find(node)
    if rule is None:
        raise Mistyped(f"{type(node).__name__} has no type", node)
    object.__setattr__(node, "_meaning", rule(node))


def _needed(node: n.Node) -> Iterable[n.Node]:
    """Give the parts whose types the type of the node rests on."""
    if not isinstance(node, n.Relation) or isinstance(node, n.Window):
        return n.children(node)
    if isinstance(node, n.Project):
        return node.items
    if isinstance(node, n.Aggregate):
        return (*node.keys, *node.aggregations)
    return [part for part in n.children(node) if isinstance(part, n.Relation)]


# ── scalars ──────────────────────────────────────────────────────────────────────────────────────

scalar = SCALAR_TYPES.rule


@scalar(n.Column, n.Outer, n.Literal)
def _stated(node: n.Column | n.Outer | n.Literal) -> Type:
    return node.type


for _leaf in (n.Column, n.Outer, n.Literal):  # what is stated is remembered from the beginning
    setattr(_leaf, "_meaning", vars(_leaf)["type"])  # noqa: B010 - the very slot, not a value


@scalar(n.Arithmetic)
def _arithmetic(node: n.Arithmetic) -> Type:
    left, right = type_of(node.left), type_of(node.right)
    result = arithmetic_type(node.op, left, right)
    if result is None:
        raise Mistyped(f"{left} {node.op} {right} makes no sense", node)
    return result


def arithmetic_type(op: str, left: Type, right: Type) -> Type | None:
    """Give the type of `left op right`, or None where it makes no sense."""
    if op not in ("+", "-", "*", "/", "//", "%"):
        return None
    if left.numeric and right.numeric:
        return _number_type(op, left, right)
    if op in ("+", "-", "*"):
        return _TIME.get((op, left.kind, right.kind))
    return None


def _number_type(op: str, left: Type, right: Type) -> Type | None:
    kinds = (left.kind, right.kind)
    if op == "/":
        return t.DOUBLE
    if op == "//":  # the engine divides floats without cutting them: that is not what the sign says
        return t.INTEGER if set(kinds) <= {"INTEGER", "NULL"} else None
    unified = t.unify(left, right)
    if unified is None or unified.kind != "DECIMAL" or "NULL" in kinds or op == "%":
        return unified
    if op == "*":
        (p, s), (q, r) = _digits(left), _digits(right)
        return t.decimal(p + q, s + r) if s + r <= t.MAX_PRECISION else None
    return t.decimal(unified.precision + 1, unified.scale)


def _digits(exact: Type) -> tuple[int, int]:
    return (19, 0) if exact.kind == "INTEGER" else (exact.precision, exact.scale)


_TIME: dict[tuple[str, str, str], Type] = {
    ("+", "DATE", "INTEGER"): t.DATE,
    ("+", "INTEGER", "DATE"): t.DATE,
    ("-", "DATE", "INTEGER"): t.DATE,
    ("-", "DATE", "DATE"): t.INTEGER,
    ("+", "DATE", "INTERVAL"): t.TIMESTAMP,
    ("+", "INTERVAL", "DATE"): t.TIMESTAMP,
    ("-", "DATE", "INTERVAL"): t.TIMESTAMP,
    ("+", "TIMESTAMP", "INTERVAL"): t.TIMESTAMP,
    ("+", "INTERVAL", "TIMESTAMP"): t.TIMESTAMP,
    ("-", "TIMESTAMP", "INTERVAL"): t.TIMESTAMP,
    ("-", "TIMESTAMP", "TIMESTAMP"): t.INTERVAL,
    ("-", "TIMESTAMP", "DATE"): t.INTERVAL,
    ("-", "DATE", "TIMESTAMP"): t.INTERVAL,
    ("+", "INTERVAL", "INTERVAL"): t.INTERVAL,
    ("-", "INTERVAL", "INTERVAL"): t.INTERVAL,
    ("*", "INTERVAL", "INTEGER"): t.INTERVAL,
    ("*", "INTEGER", "INTERVAL"): t.INTERVAL,
    # NULL beside a moment: the value is NULL whatever the NULL was to be.
    ("+", "DATE", "NULL"): t.DATE,
    ("-", "DATE", "NULL"): t.NULL,
    ("+", "NULL", "DATE"): t.DATE,
    ("+", "TIMESTAMP", "NULL"): t.TIMESTAMP,
    ("-", "TIMESTAMP", "NULL"): t.NULL,
    ("+", "NULL", "TIMESTAMP"): t.TIMESTAMP,
}


@scalar(n.Negate)
def _negate(node: n.Negate) -> Type:
    operand = type_of(node.operand)
    if not operand.numeric and operand.kind != "INTERVAL":
        raise Mistyped(f"a {operand} has no negative", node)
    return operand


@scalar(n.Compare, n.SameValue)
def _compare(node: n.Compare | n.SameValue) -> Type:
    _comparable(type_of(node.left), type_of(node.right), node)
    if isinstance(node, n.Compare) and node.op not in ("=", "<>", "<", "<=", ">", ">="):
        raise Mistyped("the comparison is unknown", node)
    return t.BOOLEAN


def _comparable(left: Type, right: Type, node: n.Node) -> None:
    if not t.comparable(left, right):
        raise Mistyped(f"{left} cannot be compared with {right}", node)


@scalar(n.And, n.Or)
def _logic(node: n.And | n.Or) -> Type:
    for operand in node.operands:
        _condition(operand)
    return t.BOOLEAN


@scalar(n.Not)
def _not(node: n.Not) -> Type:
    _condition(node.operand)
    return t.BOOLEAN


def _condition(node: n.Scalar) -> None:
    kind = type_of(node)
    if kind.kind not in ("BOOLEAN", "NULL"):
        raise Mistyped(f"a condition must be true or false, not {kind}", node)


@scalar(n.IsNull, n.Exists)
def _boolean(node: n.IsNull | n.Exists) -> Type:
    return t.BOOLEAN


@scalar(n.Like)
def _like(node: n.Like) -> Type:
    for part in (node.operand, node.pattern):
        if type_of(part).kind not in ("TEXT", "NULL"):
            raise Mistyped(f"LIKE takes text, not {type_of(part)}", node)
    return t.BOOLEAN


@scalar(n.InList)
def _in_list(node: n.InList) -> Type:
    for item in node.items:
        _comparable(type_of(node.operand), type_of(item), node)
    return t.BOOLEAN


@scalar(n.Branch)
def _branch(node: n.Branch) -> Type:
    _condition(node.condition)
    return type_of(node.value)


@scalar(n.Case)
def _case(node: n.Case) -> Type:
    values = (*(type_of(b) for b in node.branches), type_of(node.default))
    return _unified(values, "the branches of CASE", node)


def _unified(parts: tuple[Type, ...], what: str, node: n.Node) -> Type:
    result = parts[0]
    for part in parts[1:]:
        wider = t.unify(result, part)
        if wider is None:
            raise Mistyped(f"{what} are {result} and {part}, which have no common type", node)
        result = wider
    return result


@scalar(n.Cast)
def _cast(node: n.Cast) -> Type:
    source = type_of(node.operand)
    if node.type.kind not in CASTABLE[source.kind]:
        raise Mistyped(f"{source} cannot be cast to {node.type}", node)
    return node.type


@scalar(n.Call)
def _call(node: n.Call) -> Type:
    function = FUNCTIONS.get(node.function)
    if function is None:
        raise Mistyped("the function is unknown", node)
    if not function.least <= len(node.arguments) <= function.most:
        raise Mistyped(f"{function.name} takes another number of arguments", node)
    arguments = tuple(type_of(argument) for argument in node.arguments)
    result = function.result(arguments)
    if result is None:
        shown = ", ".join(map(str, arguments))
        raise Mistyped(f"{function.name} does not take ({shown})", node)
    if function.name == "round" and len(arguments) == 2 and result.kind == "DECIMAL":
        return _rounded(node, result)
    part = node.arguments[0]
    if function.parts and not (isinstance(part, n.Literal) and part.value in function.parts):
        raise Mistyped(f"{function.name} takes one of {', '.join(function.parts)}", node)
    return result


def _rounded(node: n.Call, operand: Type) -> Type:
    """Rounding a decimal sets its scale, so the number of digits must be written in the query."""
    digits = node.arguments[1]
    if not isinstance(digits, n.Literal) or not isinstance(digits.value, int):
        raise Mistyped("round needs a written number of digits for a DECIMAL", node)
    return t.decimal(operand.precision, min(max(digits.value, 0), operand.scale))


@scalar(n.Extract)
def _extract(node: n.Extract) -> Type:
    operand = type_of(node.operand)
    if node.part not in EXTRACT_PARTS:
        raise Mistyped("EXTRACT takes " + ", ".join(EXTRACT_PARTS), node)
    if not operand.temporal and operand.kind != "NULL":
        raise Mistyped(f"EXTRACT takes a date or a timestamp, not {operand}", node)
    return t.DOUBLE if node.part == "epoch" else t.INTEGER


@scalar(n.Attempt)
def _attempt(node: n.Attempt) -> Type:
    return type_of(node.operand)


@scalar(n.Clamp)
def _clamp(node: n.Clamp) -> Type:
    operand, low, high = (type_of(part) for part in (node.operand, node.low, node.high))
    result = _unified((operand, low, high), "value and limits", node)
    if not result.numeric and not result.temporal:
        raise Mistyped(f"a {result} cannot be clamped", node)
    # Limits that the operand's type can hold leave it alone, so a clamp can go in anywhere.
    if result.kind == operand.kind and result.scale == operand.scale:
        return operand
    return result


@scalar(n.Quantize)
def _quantize(node: n.Quantize) -> Type:
    return type_of(as_product(node))


@scalar(n.Bucket)
def _bucket(node: n.Bucket) -> Type:
    operand = type_of(node.operand)
    if operand.kind not in ("INTEGER", "DECIMAL"):
        raise Mistyped(f"a {operand} lies in no bucket", node)
    return t.INTEGER


@scalar(n.ScalarSubquery)
def _scalar_subquery(node: n.ScalarSubquery) -> Type:
    return _only(node.relation, node)


@scalar(n.InSubquery)
def _in_subquery(node: n.InSubquery) -> Type:
    _comparable(type_of(node.operand), _only(node.relation, node), node)
    return t.BOOLEAN


def _only(relation: n.Relation, node: n.Node) -> Type:
    fields = fields_of(relation)
    if len(fields) != 1:
        raise Mistyped("the subquery must have one column", node)
    return fields[0].type


# ── pieces of relations ──────────────────────────────────────────────────────────────────────────


@scalar(n.Named, n.SortKey)
def _expression(node: n.Named | n.SortKey) -> Type:
    return type_of(node.expression)


@scalar(n.Aggregation)
def _aggregation(node: n.Aggregation) -> Type:
    aggregator = AGGREGATES.get(node.function)
    if aggregator is None:
        raise Mistyped("the aggregate function is unknown", node)
    if node.argument is None:
        if node.function != "count" or node.distinct:
            raise Mistyped("only count takes no argument", node)
        return t.INTEGER
    if (node.function in QUANTILES) != (node.fraction is not None):
        raise Mistyped("a quantile, and nothing else, takes a fraction", node)
    if aggregator.pairs != (node.second is not None):
        count = "two arguments" if aggregator.pairs else "one argument"
        raise Mistyped(f"{node.function} takes {count}", node)
    for part in (node.argument, *(() if node.second is None else (node.second,))):
        argument = type_of(part)
        result = aggregator.result(argument)
        if result is None:
            raise Mistyped(f"{node.function} does not take {argument}", node)
    assert result is not None
    return result


@scalar(n.WindowCall)
def _window_call(node: n.WindowCall) -> Type:
    arguments = tuple(type_of(argument) for argument in node.arguments)
    result = window_type(node.function, arguments)
    if result is None:
        shown = ", ".join(map(str, arguments))
        raise Mistyped(f"{node.function} does not take ({shown}) over a window", node)
    return result


# ── relations ────────────────────────────────────────────────────────────────────────────────────

relation = RELATION_FIELDS.rule


@relation(n.Scan, n.Values, n.Released, n.Union, n.Intersect, n.Except)
def _declared(node: n.Scan | n.Values | n.Released | n.Union | n.Intersect | n.Except) -> Fields:
    return node.columns


for _declaring in (n.Scan, n.Values, n.Released):
    setattr(_declaring, "_meaning", vars(_declaring)["columns"])  # noqa: B010


@relation(n.Filter, n.Distinct, n.Sort, n.Limit, n.Truncate, n.TruncateGroups)
def _passing(
    node: n.Filter | n.Distinct | n.Sort | n.Limit | n.Truncate | n.TruncateGroups,
) -> Fields:
    return fields_of(node.input)


@relation(n.Project)
def _project(node: n.Project) -> Fields:
    return tuple(n.Field(item.name, type_of(item)) for item in node.items)


@relation(n.Join)
def _join(node: n.Join) -> Fields:
    return fields_of(node.left) + fields_of(node.right)


@relation(n.Aggregate)
def _aggregate(node: n.Aggregate) -> Fields:
    keys = tuple(n.Field(key.name, type_of(key)) for key in node.keys)
    return keys + tuple(n.Field(a.name, type_of(a)) for a in node.aggregations)


@relation(n.Window)
def _window(node: n.Window) -> Fields:
    calls = tuple(n.Field(call.name, type_of(call)) for call in node.calls)
    return fields_of(node.input) + calls


def follows_order(call: n.WindowCall) -> bool:
    """Whether an engine's answer depends on the order in which it adds: sums of reals, and spreads."""
    if call.function in ("sum", "avg"):
        return type_of(call.arguments[0]).kind == "DOUBLE"
    return call.function in SPREAD
