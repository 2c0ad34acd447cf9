"""Expressions for Spark: each has the value that the plan means, which is DuckDB's, and none raises on a row.

In: nodes of a plan. Out: SQL text, for sessions with ANSI mode off (`spark.py`), where what fails is NULL or wraps
around; whatever would wrap is tried, or asked first. Spark's own names and texts are spelled by the session. What
Spark computes differently and cannot be told to is refused (BAK-003).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction

from secant.engines.dialect import Dialect, Pass, Windows, constant
from secant.engines.dialect import text as quoted
from secant.engines.print.blocks import Env, Writer
from secant.engines.print.failures import conditions
from secant.engines.print.print_sql import SCALARS, write
from secant.engines.spark import casts, times
from secant.engines.spark.casts import number, refused
from secant.engines.spark.functions import TEMPLATES, call
from secant.engines.spark.operands import (
    alike,
    as_type,
    double,
    met,
    nothing,
    opposite,
    unknown,
    whole,
)
from secant.plan import nodes as n
from secant.plan.functions.aggregates import SPREAD
from secant.plan.functions.scalar import AGGREGATES, FUNCTIONS
from secant.plan.rewrites.null_on_error import WHOLE, fails_itself
from secant.plan.rewrites.rewrite import transform
from secant.plan.rule_table import RuleTable
from secant.plan.typing import fields_of, type_of
from secant.schema import types as t
from secant.schema.types import Type

RULES: RuleTable[Callable[..., str]] = RuleTable("write for Spark")
rule = RULES.rule
rule(n.Call)(call)
FEW = WHOLE // 10**12
"""Whole numbers of which no number of rows that an engine goes through reaches 64 bits."""


@rule(n.Literal)
def _literal(w: Writer, node: n.Literal, env: Env) -> str:
    if node.type.kind == "INTERVAL":
        raise refused("interval outside of a sum with a date")
    return constant(w.dialect, node.value, node.type)


# ── arithmetic ───────────────────────────────────────────────────────────────────────────────────

_TRIED = {"+": "try_add", "-": "try_subtract", "*": "try_multiply"}


@rule(n.Arithmetic)
def _arithmetic(w: Writer, node: n.Arithmetic, env: Env) -> str:
    result = type_of(node)
    if unknown(w, node.left, node.right):
        return nothing(w, result)
    if result.kind == "DOUBLE":
        if node.op == "%":
            raise refused("remainder of floating-point numbers")
        left, right = double(w, node.left, env), double(w, node.right, env)
        return _quotient(w, node, left, right) if node.op == "/" else f"({left} {node.op} {right})"
    sides = type_of(node.left).kind, type_of(node.right).kind
    if {"DATE", "TIMESTAMP", "INTERVAL"} & {*sides, result.kind}:
        return times.shifted(w, node, env)
    if result.kind == "INTEGER":
        return _whole_result(w, node, env)
    left, right = write(w, node.left, env), write(w, node.right, env)
    if result.kind != "DECIMAL" or node.op == "//":
        raise refused(f"{node.op} of these numbers")
    return f"CAST(({left} {node.op} {right}) AS {casts.name(result)})"


def _whole_result(w: Writer, node: n.Arithmetic, env: Env) -> str:
    left, right = whole(w, node.left, env), whole(w, node.right, env)
    if node.op in _TRIED:
        if w.reach.within(node, -WHOLE - 1, WHOLE):
            return f"({left} {node.op} {right})"
        return f"{_TRIED[node.op]}({left}, {right})"
    value = f"({left} {'div' if node.op == '//' else '%'} {right})"  # by zero it is NULL
    if isinstance(node.right, n.Literal) and node.right.value != -1:
        return value
    return f"CASE WHEN {left} = {-WHOLE - 1} AND {right} = -1 THEN NULL ELSE {value} END"


def _quotient(w: Writer, node: n.Arithmetic, left: str, right: str) -> str:
    """By zero a quotient is infinite, or NaN; Spark's own is NULL."""
    low, high = w.reach.of(node.right).low, w.reach.of(node.right).high
    if (low is not None and low > 10**-290) or (high is not None and high < -(10**-290)):
        return f"({left} / {right})"
    endless = number(float("inf"))
    if not _one_zero(node.right):
        endless = f"CASE WHEN CAST({right} AS STRING) = '-0.0' THEN -{endless} ELSE {endless} END"
    return f"CASE WHEN {right} = 0D THEN {left} * {endless} ELSE {left} / {right} END"


def _one_zero(scalar: n.Scalar) -> bool:
    """Whether a divisor cannot be -0.0."""
    if isinstance(scalar, n.Cast):
        return True
    ends = (scalar.left, scalar.right) if isinstance(scalar, n.Arithmetic) else ()
    added = [e for e in ends if isinstance(e, n.Literal) and isinstance(e.value, float)]
    return bool(added) and isinstance(scalar, n.Arithmetic) and scalar.op == "+"


@rule(n.Negate)
def _negate(w: Writer, node: n.Negate, env: Env) -> str:
    if type_of(node).kind == "INTEGER":
        value = whole(w, node.operand, env)
        if not w.reach.within(node.operand, -WHOLE, WHOLE):
            return f"try_subtract(CAST(0 AS BIGINT), {value})"
        return f"(- {value})"
    if type_of(node).kind == "INTERVAL":
        raise refused("interval that is computed")
    value = write(w, node.operand, env)
    return opposite(w, node.operand, value) if type_of(node).kind == "DECIMAL" else f"(- {value})"


# ── comparisons ──────────────────────────────────────────────────────────────────────────────────


@rule(n.Compare)
def _compare(w: Writer, node: n.Compare, env: Env) -> str:
    if unknown(w, node.left, node.right):
        return nothing(w, t.BOOLEAN)
    kind = met(w, (node.left, node.right))
    return f"({alike(w, node.left, kind, env)} {node.op} {alike(w, node.right, kind, env)})"


@rule(n.SameValue)
def _same_value(w: Writer, node: n.SameValue, env: Env) -> str:
    kind = met(w, (node.left, node.right))
    return f"({alike(w, node.left, kind, env)} <=> {alike(w, node.right, kind, env)})"


@rule(n.InList)
def _in_list(w: Writer, node: n.InList, env: Env) -> str:
    kind = met(w, (node.operand, *node.items))
    items = ", ".join(alike(w, i, kind, env) for i in node.items)
    return f"({alike(w, node.operand, kind, env)} IN ({items}))"


def _escaped(pattern: str, escape: str) -> str:
    """Write a pattern for Spark, where a backslash stands before %, _ and itself, and before nothing else."""
    text, after = "", False
    for character in pattern:
        if character == escape and not after:
            after = True
            continue
        signs = "%_\\" if after else "\\"
        text += f"\\{character}" if character in signs else character
        after = False
    return text


@rule(n.Like)
def _like(w: Writer, node: n.Like, env: Env) -> str:
    if unknown(w, node.operand, node.pattern):
        return nothing(w, t.BOOLEAN)
    # A backslash would have a meaning here, and raise at the end of a pattern.
    if isinstance(node.pattern, n.Literal):
        pattern = quoted(_escaped(str(node.pattern.value), node.escape))
    else:
        pattern = rf"replace({write(w, node.pattern, env)}, '\', '\\')"
    return f"({write(w, node.operand, env)} LIKE {pattern})"


@rule(n.Case)
def _case(w: Writer, node: n.Case, env: Env) -> str:
    kind = type_of(node)
    branches = "".join(
        f" WHEN {write(w, b.condition, env)} THEN {as_type(w, b.value, kind, env)}"
        for b in node.branches
    )
    return f"CASE{branches} ELSE {as_type(w, node.default, kind, env)} END"


@rule(n.Cast)
def _cast(w: Writer, node: n.Cast, env: Env) -> str:
    return casts.converted(write(w, node.operand, env), type_of(node.operand), node.type)


# ── what fails ───────────────────────────────────────────────────────────────────────────────────


@rule(n.Attempt)
def _attempt(w: Writer, node: n.Attempt, env: Env) -> str:
    """Every part that fails is NULL: where NULL makes the whole NULL, that is all."""
    text = write(w, node.operand, env)
    if all(_strict(part) for part in n.walk(node.operand)):
        return text
    failures = conditions(w, node.operand, env, _own)
    if not failures:
        return text
    branches = " ".join(f"WHEN {c} THEN NULL" for c in failures)
    return f"CASE {branches} ELSE {text} END"


_STRICT = (n.Column, n.Outer, n.Literal, n.Arithmetic, n.Negate, n.Cast, n.Extract, n.Compare)


def _strict(node: n.Node) -> bool:
    if isinstance(node, n.Call):
        return not FUNCTIONS[node.function].null_safe
    return isinstance(node, _STRICT)


def _own(w: Writer, node: n.Node, env: Env) -> list[str]:
    """A node failed if it is NULL though no part of it is."""
    if not isinstance(node, n.Scalar) or not fails_itself(node):
        return []
    if isinstance(node, n.Call) and FUNCTIONS[node.function].null_safe:
        return []  # its parts may be NULL, and Spark's types hold what meets in it
    parts = [
        c for c in n.children(node) if isinstance(c, n.Scalar) and not isinstance(c, n.Literal)
    ]
    there = "".join(f" AND {write(w, part, env)} IS NOT NULL" for part in parts)
    return [f"({write(w, node, env)} IS NULL{there})"]


@rule(n.Clamp)
def _clamp(w: Writer, node: n.Clamp, env: Env) -> str:
    # least and greatest skip NULL; NaN is above everything for them too.
    x, low, high = (write(w, part, env) for part in (node.operand, node.low, node.high))
    return f"CASE WHEN {x} IS NOT NULL THEN least(greatest({x}, {low}), {high}) END"


# ── subqueries ───────────────────────────────────────────────────────────────────────────────────


@rule(n.InSubquery)
def _in_subquery(w: Writer, node: n.InSubquery, env: Env) -> str:
    """Spark's own is false where SQL says NULL, unless rows are kept by it alone: then it makes no difference."""
    if _alone(w, node):
        plain = SCALARS.find(node)
        assert plain is not None
        return plain(w, node, env)
    (column,) = fields_of(node.relation)
    own = n.Column(column.name, column.type)
    equal = n.Exists(n.Filter(node.relation, n.Compare("=", own, node.operand)))
    empty = n.Exists(n.Filter(node.relation, n.IsNull(own)))
    unknown = n.Or((empty, n.And((n.IsNull(node.operand), n.Exists(node.relation)))))
    return (
        f"CASE WHEN {write(w, equal, env)} THEN TRUE "
        f"WHEN {write(w, unknown, env)} THEN NULL ELSE FALSE END"
    )


def _alone(w: Writer, sought: n.InSubquery) -> bool:
    """Whether every place of a subquery is a condition of its own, as it is or denied."""
    if w.plan is None:
        return False
    places = sum(node == sought for node in n.walk(w.plan))
    alone = 0
    for node in n.walk(w.plan):
        if isinstance(node, n.Filter):
            parts = n.conjuncts(node.predicate)
            alone += sum(
                part == sought or (isinstance(part, n.Not) and part.operand == sought)
                for part in parts
            )
    return places == alone


@rule(n.Extract)
def _extract(w: Writer, node: n.Extract, env: Env) -> str:
    if unknown(w, node.operand):
        return nothing(w, type_of(node))
    return times.extract(node.part, write(w, node.operand, env), type_of(node.operand))


# ── aggregates ───────────────────────────────────────────────────────────────────────────────────


@rule(n.Aggregation)
def _aggregation(w: Writer, node: n.Aggregation, env: Env) -> str:
    assert node.argument is not None
    argument, kind = node.argument, type_of(node.argument)
    distinct = "DISTINCT " if node.distinct else ""
    if kind.kind == "NULL" and node.function != "count":
        result = AGGREGATES[node.function].result(t.NULL)
        return f"max({nothing(w, t.TEXT if result in (None, t.NULL) else result)})"
    if node.function in ("count", "min", "max"):
        return f"{node.function}({distinct}{write(w, argument, env)})"
    if node.function == "sum":
        return f"sum({distinct}{_summed(w, argument, env)})"
    if node.function == "avg" and kind.kind == "DOUBLE":
        return f"avg({distinct}{write(w, argument, env)})"
    if node.function == "avg":
        x = _summed(w, argument, env)
        return f"(CAST(sum({distinct}{x}) AS DOUBLE) / count({distinct}{x}))"
    if node.function == "mode":
        return f"mode({write(w, argument, env)}, true)"  # of several, the least
    if node.fraction is not None or node.function == "median":
        return _quantile(w, node, kind, env)
    if node.function == "array_agg":
        return f"nullif(collect_list({double(w, argument, env)}), array())"
    if node.second is not None:
        return f"{node.function}({double(w, argument, env)}, {double(w, node.second, env)})"
    if node.function in SPREAD:
        return f"{node.function}({distinct}{double(w, argument, env)})"
    raise refused(node.function)


def _summed(w: Writer, argument: n.Scalar, env: Env) -> str:
    """Write what is summed: whole numbers so wide that no sum of them wraps around."""
    text = write(w, argument, env)
    if type_of(argument).kind != "INTEGER":
        return text
    if w.reach.within(argument, -FEW, FEW):
        return f"CAST({text} AS BIGINT)"
    return f"CAST({text} AS DECIMAL({26}, 0))"


def _quantile(w: Writer, node: n.Aggregation, kind: Type, env: Env) -> str:
    """Spark's own quantiles are doubles: those between two values may be, and others are picked from the values."""
    assert node.argument is not None
    which = Fraction(1, 2) if node.fraction is None else node.fraction
    if node.distinct or which.denominator > _FINEST:
        raise refused(f"{node.function} like this")
    if node.function != "quantile_disc":
        if kind.kind not in ("DOUBLE", "INTEGER"):
            raise refused(f"{node.function} of these values")
        x = double(w, node.argument, env)
        return f"percentile_cont({float(which)!r}D) WITHIN GROUP (ORDER BY {x})"
    x = write(w, node.argument, env)
    position = f"(count({x}) * {which.numerator} + {which.denominator - 1}) div {which.denominator}"
    return f"element_at(array_sort(collect_list({x})), CAST(greatest({position}, 1) AS INT))"


_FINEST = 10**6
"""Shares are of so many parts at most: more rows than that are counted in 64 bits all the same."""


def _typed_conditions(plan: n.Relation) -> n.Relation:
    """Give NULL that stands for a condition the type of one."""

    def change(node: n.Node) -> n.Node:
        if not isinstance(node, n.Branch) or not isinstance(node.condition, n.Literal):
            return node
        null = node.condition.type == t.NULL
        return n.Branch(n.Literal(None, t.BOOLEAN), node.value) if null else node

    return transform(plan, change, n.Branch)


def conditions_after_joins(plan: n.Relation) -> n.Relation:
    """Move conditions with a subquery out of joins, where Spark takes none, to the rows that the join gives."""

    def change(node: n.Node) -> n.Node:
        if not isinstance(node, n.Join) or node.kind == "left" or node.condition is None:
            return node
        parts = n.conjuncts(node.condition)
        later = [part for part in parts if n.has_subquery(part)]
        if not later:
            return node
        conjuncts = [part for part in parts if part not in later]
        joined = replace(node, condition=_all(conjuncts) if conjuncts else None)
        return n.Filter(joined, _all(later))

    return transform(plan, change, n.Join)


def _all(parts: list[n.Scalar]) -> n.Scalar:
    return parts[0] if len(parts) == 1 else n.And(tuple(parts))


_SAME = ("BOOLEAN", "INTEGER", "TEXT", "DATE", "TIMESTAMP")
"""Kinds of which equal values are one value: zeros of two signs are not, nor decimals of two scales."""


def seen_from_near(plan: n.Relation) -> n.Relation:
    """Let subqueries look one level out, as Spark wants, where a row in between has the value they look for.

    `EXISTS (… v.a = p.a AND EXISTS (… p.a …))` keeps rows of v only where the two are equal: the inner one reads v.a.
    """

    def change(node: n.Node) -> n.Node:
        if not isinstance(node, n.Filter):
            return node
        parts = n.conjuncts(node.predicate)
        near = {far.name: own for part in parts for own, far in _equated(part)}
        if not near or not any(map(n.has_subquery, parts)):
            return node
        return replace(node, predicate=_all([_nearer(part, near) for part in parts]))

    return transform(plan, change, n.Filter)


def _equated(part: n.Scalar) -> list[tuple[n.Column, n.Outer]]:
    """Give the own column and the outer one that a condition sets equal."""
    if not isinstance(part, n.Compare) or part.op != "=":
        return []
    sides = ((part.left, part.right), (part.right, part.left))
    return [
        (own, far)
        for own, far in sides
        if isinstance(own, n.Column) and isinstance(far, n.Outer) and own.type == far.type
        if own.type.kind in _SAME
    ]


def _nearer(part: n.Scalar, near: dict[str, n.Column]) -> n.Scalar:
    """Put columns of a filter in the place of outer ones, inside of its subqueries only."""
    relations = [node for node in n.walk(part) if isinstance(node, n.Relation)]
    names = {field.name for relation in relations for field in fields_of(relation)}

    def change(node: n.Node) -> n.Node:
        own = near.get(node.name) if isinstance(node, n.Outer) else None
        if own is None or own.name in names:
            return node
        return n.Outer(own.name, own.type)

    @n.once
    def visit(node: n.Node) -> n.Node:
        return transform(node, change) if isinstance(node, n.Relation) else n.rebuild(node, visit)

    rewritten = visit(part)
    assert isinstance(rewritten, n.Scalar)
    return rewritten


OPTIMIZE: tuple[Pass, ...] = (
    _typed_conditions,  # a NULL in the place of a condition has to have the type of one
    seen_from_near,  # a subquery sees columns of the query right around it, of none further out
    conditions_after_joins,  # a join takes no condition with a subquery
)
"""What Spark needs to take a plan at all."""

SPARK = Dialect(
    name="spark",
    types={
        "BOOLEAN": "BOOLEAN", "INTEGER": "BIGINT", "DOUBLE": "DOUBLE", "TEXT": "STRING", "DATE": "DATE",
        "TIMESTAMP": "TIMESTAMP_NTZ", "INTERVAL": "INTERVAL",
    },
    functions=TEMPLATES,
    attempt=None,
    rules=RULES,
    # Sums of whole numbers are decimals of 36 digits: the plan's own decimals are shown with two more.
    shown={"DECIMAL": "CAST({0} AS DECIMAL(38, {scale}))"},
    whole="CAST({0} AS BIGINT)",
    windows=Windows(counter="INT", whole="DECIMAL(26, 0)", averages=False, groups=False),
    kept="",
    optimize=OPTIMIZE,
)  # fmt: skip
