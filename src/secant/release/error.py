"""How far may a shown number be from the true one? Intervals that hold with the asked level, from public facts.

Each noisy measure lies within t of its true value with a known probability; an output that rests on k measures takes
each at level 1 - (1 - level)/k, so that all hold together, and interval arithmetic does the rest. Sound, and a little
wide for quotients. Where an output passes through something that has no rule, its error is not stated.
"""

from __future__ import annotations

import datetime
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from decimal import Decimal

from secant.plan import nodes as n
from secant.plan.rewrite import columns_of, substitute
from secant.plan.rules import RuleTable
from secant.plan.typing import fields_of

Span = tuple[float, float]
Env = Mapping[str, "Span | None"]
ERRORS: RuleTable[Callable[..., Span | None]] = RuleTable("error intervals")


@dataclass(frozen=True, slots=True)
class Traced:
    """A plan that also returns the measures its outputs rest on, and how each output is made of them."""

    plan: n.Relation
    outputs: tuple[str, ...]
    carried: tuple[str, ...]
    made_of: Mapping[str, n.Scalar | None]
    """Output -> expression over carried and other columns; None if that is not known."""


def trace(plan: n.Relation, noisy: frozenset[str]) -> Traced:
    """Follow every output column down to released measures, and carry those along."""
    outputs = tuple(f.name for f in fields_of(plan))
    made = {name: scalar for name, scalar in _definitions(plan).items() if name in outputs}
    wanted = {c for s in made.values() if s is not None for c in columns_of(s) & noisy}
    # Names of carried columns must survive a top-level rename of outputs.
    carried_plan, carried = _carry(plan, frozenset(wanted))
    kept = tuple(c for c in sorted(carried) if c not in outputs)
    known = carried | set(outputs)
    for name, scalar in made.items():
        if scalar is not None and not (columns_of(scalar) & noisy) <= known:
            made[name] = None
    return Traced(carried_plan, outputs, kept, made)


def _definitions(relation: n.Relation) -> dict[str, n.Scalar | None]:
    if isinstance(relation, (n.Filter, n.Sort, n.Limit)):
        return _definitions(relation.input)
    if isinstance(relation, n.Project):
        below = _definitions(relation.input)
        return {i.name: _over(i.expression, below) for i in relation.items}
    if isinstance(relation, n.Join) and relation.kind != "left":
        return {**_definitions(relation.left), **_definitions(relation.right)}
    if isinstance(relation, (n.Released, n.Scan, n.Values)):
        return {f.name: n.Column(f.name, f.type) for f in fields_of(relation)}
    return {f.name: None for f in fields_of(relation)}


def _over(scalar: n.Scalar, below: Mapping[str, n.Scalar | None]) -> n.Scalar | None:
    names = columns_of(scalar)
    if any(below.get(c) is None for c in names) or n.has_subquery(scalar):
        return None
    known = {c: s for c in names if (s := below[c]) is not None}
    if sum(1 for s in known.values() for _ in n.walk(s)) > 2_000:
        return None  # an expression that repeats itself would grow without end
    return substitute(scalar, known)


def _carry(relation: n.Relation, wanted: frozenset[str]) -> tuple[n.Relation, set[str]]:
    if isinstance(relation, (n.Filter, n.Sort, n.Limit)):
        inner, found = _carry(relation.input, wanted)
        return replace(relation, input=inner), found
    if isinstance(relation, n.Project):
        inner, found = _carry(relation.input, wanted)
        kinds = {f.name: f.type for f in fields_of(inner)}
        names = {i.name for i in relation.items}
        extra = tuple(n.Named(c, n.Column(c, kinds[c])) for c in sorted(found) if c not in names)
        return n.Project(inner, relation.items + extra), found
    if isinstance(relation, n.Join) and relation.kind != "left":
        left, a = _carry(relation.left, wanted)
        right, b = _carry(relation.right, wanted)
        return replace(relation, left=left, right=right), a | b
    if isinstance(relation, n.Released):
        return relation, {f.name for f in relation.columns} & wanted
    return relation, set()


def half_width(
    scalar: n.Scalar,
    value: object,
    measured: Mapping[str, tuple[float, float]],
    row: Mapping[str, object],
) -> float | None:
    """Give e such that the true output lies within e of `value` whenever every measure is within its error."""
    env: dict[str, Span | None] = {}
    for name in columns_of(scalar):
        if name in measured:
            center, error = measured[name]
            env[name] = (center - error, center + error)
        else:
            number = _number(row.get(name))
            env[name] = None if number is None else (number, number)
    found = span_of(scalar, env)
    shown = _number(value)
    if found is None or shown is None:
        return None
    width = max(found[1] - shown, shown - found[0], 0.0)
    return width if math.isfinite(width) else None


def _number(value: object) -> float | None:
    if isinstance(value, (bool, str, datetime.date)) or value is None:
        return None
    return float(value) if isinstance(value, (int, float, Decimal)) else None


def span_of(scalar: n.Scalar, env: Env) -> Span | None:
    """Give the interval of an expression, or None where no rule gives one."""
    rule = ERRORS.find(scalar)
    return None if rule is None else rule(scalar, env)


@ERRORS.rule(n.Column)
def _column(node: n.Column, env: Env) -> Span | None:
    return env.get(node.name)


@ERRORS.rule(n.Literal)
def _literal(node: n.Literal, env: Env) -> Span | None:
    number = _number(node.value)
    return None if number is None else (number, number)


@ERRORS.rule(n.Attempt)
def _attempt(node: n.Attempt, env: Env) -> Span | None:
    return span_of(node.operand, env)


@ERRORS.rule(n.Negate)
def _negate(node: n.Negate, env: Env) -> Span | None:
    a = span_of(node.operand, env)
    return None if a is None else (-a[1], -a[0])


@ERRORS.rule(n.Arithmetic)
def _arithmetic(node: n.Arithmetic, env: Env) -> Span | None:
    a, b = span_of(node.left, env), span_of(node.right, env)
    if a is None or b is None:
        return None
    if node.op == "+":
        return a[0] + b[0], a[1] + b[1]
    if node.op == "-":
        return a[0] - b[1], a[1] - b[0]
    if node.op == "/" and not b[0] <= 0 <= b[1]:
        b = 1 / b[1], 1 / b[0]
    elif node.op != "*":
        return None
    corners = [x * y for x in a for y in b]
    return min(corners), max(corners)


@ERRORS.rule(n.Cast)
def _cast(node: n.Cast, env: Env) -> Span | None:
    a = span_of(node.operand, env)
    if a is None or not node.type.numeric:
        return None
    if node.type.kind == "DOUBLE":
        return a
    half = 0.5 * 10.0**-node.type.scale  # rounding to the type's step
    return a[0] - half, a[1] + half


@ERRORS.rule(n.Clamp)
def _clamp(node: n.Clamp, env: Env) -> Span | None:
    a, low, high = (span_of(part, env) for part in (node.operand, node.low, node.high))
    if low is None or high is None:
        return None
    if a is None:
        return low[0], high[1]  # whatever it is, it was moved in here
    moved = min(max(a[0], low[0]), high[0]), max(min(a[1], high[1]), low[1])
    half = min((a[1] - a[0]) / 2, high[1] - low[0])
    if moved[1] - moved[0] >= half:
        return moved
    # The noise went far beyond a limit. Showing the limit as certain would be true at this level and
    # mislead all the same: the interval keeps half of its width, inward.
    return (moved[1] - half, moved[1]) if a[0] > low[0] else (moved[0], moved[0] + half)


@ERRORS.rule(n.Call)
def _call(node: n.Call, env: Env) -> Span | None:
    parts = [span_of(a, env) for a in node.arguments]
    if any(p is None for p in parts):
        return None
    known = [p for p in parts if p is not None]
    half = max(p[1] - p[0] for p in known) / 2  # as in a clamp, never narrower than this
    if node.function == "greatest":
        bottom = max(p[0] for p in known)
        return bottom, max(bottom + half, *(p[1] for p in known))
    if node.function == "least":
        top = min(p[1] for p in known)
        return min(top - half, *(p[0] for p in known)), top
    a = known[0]
    if node.function == "abs":
        low = 0.0 if a[0] <= 0 <= a[1] else min(abs(a[0]), abs(a[1]))
        return low, max(abs(a[0]), abs(a[1]))
    if node.function == "sqrt":
        return math.sqrt(max(a[0], 0.0)), math.sqrt(max(a[1], 0.0))
    if node.function == "coalesce":
        return a
    if node.function == "exp":
        return math.exp(min(a[0], 700.0)), math.exp(min(a[1], 700.0))
    if node.function == "round":
        digits = int(known[1][0]) if len(known) > 1 else 0
        half = 0.5 * 10.0**-digits
        return a[0] - half, a[1] + half
    return None
