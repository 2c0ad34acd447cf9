"""Expressions as terms: one rule a node, three-valued.

In: a scalar and the values of the columns that it names. Out: a Value. Never here: rows and relations. What has no
exact reading becomes an unknown function of what it reads, and a function of values that are equal without being
the same becomes an unknown value: both let the solver do more than the engine could, so bounds stay bounds.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from secant.plan import nodes as n
from secant.plan.evaluate.evaluate import evaluate
from secant.plan.evaluate.values import Failure
from secant.plan.functions.scalar import FUNCTIONS
from secant.plan.rewrites.steps import as_product
from secant.plan.rule_table import RuleTable
from secant.plan.show import show_scalar
from secant.plan.typing import type_of
from secant.records import frozen
from secant.sensitivity.certificate import CannotBound
from secant.sensitivity.smt.language import EXACT, Language, Value


@frozen
class Scope:
    """Where an expression stands: the values of its columns, and which relations may differ."""

    language: Language
    columns: Mapping[str, Value]
    differs: Callable[[n.Relation], bool]

    def value(self, scalar: n.Scalar) -> Value:
        """Give the value of an expression (smt.scalar)."""
        if not isinstance(scalar, n.Literal) and _is_constant(scalar):
            return self._computed(scalar)
        rule = SCALARS.find(scalar)
        if rule is None:
            word = type(scalar).__name__
            raise CannotBound("smt.unknown", scalar, f"{word} has no rule", "rewrite the query")
        return rule(self, scalar)

    def holds(self, condition: n.Scalar | None) -> object:
        """Give the formula that a condition is true; no condition always is."""
        if condition is None:
            return self.language.truth(True)
        return self.language.is_true(self.value(condition))

    def _computed(self, scalar: n.Scalar) -> Value:
        kind = type_of(scalar)
        one_row = n.Project(n.Values((), ((),)), (n.Named("value", scalar),))
        try:
            ((row,),) = evaluate(one_row, {})
        except Failure:
            return self.language.nothing(kind.kind)  # the statement fails, or an Attempt gives NULL
        return self.language.constant(row, kind)

    def opaque(self, scalar: n.Scalar, name: str) -> Value:
        """Give the value of a node as an unknown function of its parts; NULL if one of them is."""
        parts = [p for p in n.children(scalar) if isinstance(p, n.Scalar)]
        kinds = ", ".join(str(type_of(p)) for p in parts)
        result = type_of(scalar)
        values = [self.value(p) for p in parts]
        value = self.language.opaque(f"{name}({kinds}) {result}", values, result.kind)
        if isinstance(scalar, n.Call) and FUNCTIONS[scalar.function].null_safe:
            return value
        null = self.language.any_of([value.null, *(x.null for x in values)])
        return Value(value.kind, value.term, null)


SCALARS: RuleTable[Callable[..., Value]] = RuleTable("smt scalars")
rule = SCALARS.rule


def _is_constant(scalar: n.Scalar) -> bool:
    return not any(isinstance(p, (n.Column, n.Outer, n.Relation)) for p in n.walk(scalar))


@rule(n.Column)
def _column(s: Scope, node: n.Column) -> Value:
    return s.columns[node.name]


@rule(n.Literal)
def _literal(s: Scope, node: n.Literal) -> Value:
    return s.language.constant(node.value, node.type)


# ── numbers ──────────────────────────────────────────────────────────────────────────────────────


@rule(n.Arithmetic)
def _arithmetic(s: Scope, node: n.Arithmetic) -> Value:
    result = type_of(node).kind
    left, right = s.value(node.left), s.value(node.right)
    exact = {left.kind, right.kind} <= set(EXACT) and result in EXACT and node.op in "+-*"
    z3 = s.language.z3
    straight = any(z3.is_rational_value(x.term) or z3.is_int_value(x.term) for x in (left, right))
    if not exact or (node.op == "*" and not straight):
        return s.opaque(node, node.op)
    a, b = s.language.convert(left, result).term, s.language.convert(right, result).term
    term = {"+": lambda: a + b, "-": lambda: a - b, "*": lambda: a * b}[node.op]()
    return Value(result, term, s.language.any_of([left.null, right.null]))


@rule(n.Negate)
def _negate(s: Scope, node: n.Negate) -> Value:
    operand = s.value(node.operand)
    if operand.kind not in EXACT:
        return s.opaque(node, "negate")
    return Value(operand.kind, -operand.term, operand.null)


@rule(n.Clamp)
def _clamp(s: Scope, node: n.Clamp) -> Value:
    kind = type_of(node).kind
    parts = (node.operand, node.low, node.high)
    operand, low, high = (s.language.convert(s.value(p), kind) for p in parts)
    choose = s.language.choose
    raised = choose(operand.term < low.term, low.term, operand.term)
    return Value(kind, choose(raised > high.term, high.term, raised), operand.null)


@rule(n.Quantize)
def _quantize(s: Scope, node: n.Quantize) -> Value:
    return s.value(as_product(node))


@rule(n.Cast)
def _cast(s: Scope, node: n.Cast) -> Value:
    operand, source, target = s.value(node.operand), type_of(node.operand), node.type
    wider = {
        ("INTEGER", "DECIMAL"), ("INTEGER", "DOUBLE"), ("DECIMAL", "DOUBLE"), ("DATE", "TIMESTAMP"),
    }  # fmt: skip
    if source == target or (source.kind, target.kind) in wider or source.kind == "NULL":
        return s.language.convert(operand, target.kind)
    if source.kind == target.kind == "DECIMAL" and target.scale >= source.scale:
        return operand
    return s.opaque(node, "cast")


@rule(n.Call)
def _call(s: Scope, node: n.Call) -> Value:
    kind = type_of(node).kind
    if node.function == "coalesce":
        *first, last = (s.language.convert(s.value(a), kind) for a in node.arguments)
        for value in reversed(first):
            last = _either(s, s.language.no(value.null), value, last)
        return last
    if node.function == "abs" and kind in EXACT:
        operand = s.value(node.arguments[0])
        low = operand.term < 0
        return Value(kind, s.language.choose(low, -operand.term, operand.term), operand.null)
    return s.opaque(node, node.function)


@rule(n.Extract)
def _extract(s: Scope, node: n.Extract) -> Value:
    return s.opaque(node, f"extract {node.part}")


@rule(n.Like)
def _like(s: Scope, node: n.Like) -> Value:
    return s.opaque(node, f"like {node.escape}".rstrip())


@rule(n.Attempt)
def _attempt(s: Scope, node: n.Attempt) -> Value:
    """The value, or NULL where computing fails, which is up to what the expression reads."""
    value = s.value(node.operand)
    read = {p.name for p in n.walk(node) if isinstance(p, n.Column)}
    arguments = [s.columns[name] for name in sorted(read)]
    name = f"fails {s.language.index(show_scalar(node.operand))}"
    fails = s.language.opaque(name, arguments, "BOOLEAN").term
    return Value(value.kind, value.term, s.language.any_of([value.null, fails]))


# ── conditions ───────────────────────────────────────────────────────────────────────────────────


@rule(n.Compare)
def _compare(s: Scope, node: n.Compare) -> Value:
    return s.language.compare(node.op, s.value(node.left), s.value(node.right))


@rule(n.SameValue)
def _same(s: Scope, node: n.SameValue) -> Value:
    same = s.language.same(s.value(node.left), s.value(node.right))
    return Value("BOOLEAN", same, s.language.truth(False))


@rule(n.And)
def _and(s: Scope, node: n.And) -> Value:
    return _conjunction(s.language, [_boolean(s, o) for o in node.operands])


@rule(n.Or)
def _or(s: Scope, node: n.Or) -> Value:
    flipped = [_flipped(s.language, _boolean(s, o)) for o in node.operands]
    return _flipped(s.language, _conjunction(s.language, flipped))


@rule(n.Not)
def _not(s: Scope, node: n.Not) -> Value:
    return _flipped(s.language, _boolean(s, node.operand))


def _boolean(s: Scope, scalar: n.Scalar) -> Value:
    return s.language.convert(s.value(scalar), "BOOLEAN")


def _flipped(language: Language, value: Value) -> Value:
    return Value("BOOLEAN", language.no(value.term), value.null)


def _conjunction(language: Language, values: list[Value]) -> Value:
    """False if one operand is false, else unknown if one is unknown."""
    holds = language.all_of([language.is_true(x) for x in values])
    false = language.any_of(
        [language.all_of([language.no(x.term), language.no(x.null)]) for x in values]
    )
    return Value("BOOLEAN", holds, language.all_of([language.no(holds), language.no(false)]))


@rule(n.IsNull)
def _is_null(s: Scope, node: n.IsNull) -> Value:
    return Value("BOOLEAN", s.value(node.operand).null, s.language.truth(False))


@rule(n.InList)
def _in_list(s: Scope, node: n.InList) -> Value:
    operand = s.value(node.operand)
    tests = [s.language.compare("=", operand, s.value(item)) for item in node.items]
    unequal = [_flipped(s.language, test) for test in tests]
    return _flipped(s.language, _conjunction(s.language, unequal))


@rule(n.Case)
def _case(s: Scope, node: n.Case) -> Value:
    kind = type_of(node).kind
    result = s.language.convert(s.value(node.default), kind)
    for branch in reversed(node.branches):
        value = s.language.convert(s.value(branch.value), kind)
        result = _either(s, s.holds(branch.condition), value, result)
    return result


def _either(s: Scope, condition: object, yes: Value, no: Value) -> Value:
    choose = s.language.choose
    return Value(
        yes.kind, choose(condition, yes.term, no.term), choose(condition, yes.null, no.null)
    )


# ── subqueries ───────────────────────────────────────────────────────────────────────────────────


@rule(n.ScalarSubquery, n.InSubquery, n.Exists)
def _subquery(s: Scope, node: n.ScalarSubquery | n.InSubquery | n.Exists) -> Value:
    """What does not differ gives one row the same value on both sides, and nothing more is used."""
    if s.differs(node.relation):
        raise CannotBound(
            "smt.subquery",
            node,
            "a subquery looks at protected rows",
            "join on a key instead of using a subquery",
        )
    outer = {p.name for p in n.walk(node.relation) if isinstance(p, n.Outer)}
    read = [s.columns[name] for name in sorted(outer) if name in s.columns]
    if isinstance(node, n.InSubquery):
        read.append(s.value(node.operand))
    return s.language.opaque(f"subquery {s.language.index(node)}", read, type_of(node).kind)
