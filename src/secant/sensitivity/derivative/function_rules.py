"""Derivatives of the functions that a query may call, of CASE, and of the soft shapes that filters become.

In: calls over protected columns. Out: bounds, in the calculus' own table. The shapes themselves and
their smallest smooth bounds stand in `shapes` and `filters_shapes`; here they meet their arguments.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction

from secant.numeric import interval as iv
from secant.numeric.powers import power_range
from secant.numeric.quick import quick, ratio
from secant.plan import nodes as n
from secant.plan.facts.ranges import as_number, as_text
from secant.sensitivity.certificate import CannotBound
from secant.sensitivity.derivative import shapes
from secant.sensitivity.derivative.calculus import (
    CALCULUS,
    Bound,
    Calculus,
    chain,
    composed,
    coordinate,
    double,
    gradient_key,
    limited,
    most_of,
    plain_variable,
    power_of_measured,
)
from secant.sensitivity.derivative.lengths import length_bound
from secant.sensitivity.derivative.smooth_terms import (
    ONE,
    ZERO,
    Term,
    constant_term,
    faded,
    fading,
    higher,
    largest,
    least,
    product,
)
from secant.sensitivity.derivative.soften import filter_shapes as filters_shapes
from secant.sensitivity.derivative.space import Key, Variable
from secant.sensitivity.later import Later

UNIT = iv.interval(0, 1)


@CALCULUS.rule(n.Call, id="derivative.call")
def _call(calculus: Calculus, node: n.Call) -> Bound:
    if node.function not in _CALLS:
        raise CannotBound(
            "derivative.call",
            node,
            f"{node.function} of a protected value has no derivative here",
            "use exp, ln, sqrt, power, abs, least or greatest",
        )
    name, rule = _CALLS[node.function]
    calculus.rules[node] = name
    return rule(calculus, node)


# ── smooth functions ─────────────────────────────────────────────────────────────────────────────


def _absolute(calculus: Calculus, node: n.Call) -> Bound:
    """derivative.abs: the size stays, and no value moves further."""
    inner = calculus.of(node.arguments[0])
    return replace(inner, range=iv.absolute(inner.range))


def _exponential(calculus: Calculus, node: n.Call) -> Bound:
    """derivative.exp."""
    inner, x = calculus.of(node.arguments[0]), double(node.arguments[0])
    ends = inner.range
    if ends.high is None or ends.high > shapes.LARGEST_EXPONENT:
        raise CannotBound(
            "derivative.exp",
            node,
            "the exponential may overflow",
            "declare ranges that keep its argument small",
        )
    range_ = iv.exponential(ends)
    cap = most_of(range_) if range_.bounded else range_.high
    size = composed(
        calculus, inner, lambda a: shapes.exponent_size(x, quick(1), a, ends.low, ends.high), cap
    )
    if size is None:
        raise _unbounded("derivative.exp", node)
    return chain(calculus, inner, range_, size, size)


def _logarithm(calculus: Calculus, node: n.Call) -> Bound:
    """derivative.ln: only where the argument keeps away from 0."""
    inner, x = calculus.of(node.arguments[0]), double(node.arguments[0])
    ends = inner.range
    if ends.low is None or ends.low <= 0:
        raise CannotBound(
            "derivative.ln",
            node,
            "the logarithm's argument may touch 0",
            "declare a range with a positive lower end",
        )
    plain = plain_variable(calculus, node.arguments[0])
    range_ = iv.logarithm(ends)
    cap = most_of(range_)
    size = composed(
        calculus, inner, lambda a: shapes.logarithm_size(x, a, ends.low, ends.high), cap
    )
    if size is None:
        raise _unbounded("derivative.ln", node)
    if plain is not None and plain.measure == "ln":
        weight = calculus.space.dual(plain.role, {plain: quick(1)})
        return Bound(range_, limited(size, range_), {plain: ONE}, {plain.role: weight})
    root = plain if plain is not None and plain.measure == "sqrt" else None
    if root is not None:
        x, inner = coordinate(calculus, node.arguments[0], root, ends, positive=True)
        ends = inner.range
    low, high = ends.low, ends.high
    slope = composed(
        calculus,
        inner,
        lambda a: shapes.logarithm_slope(x, a, low, high),
        1 / low if low else None,
    )
    if slope is None:
        raise _unbounded("derivative.ln", node)
    if root is not None:  # ln x = 2·ln w
        slope = product(constant_term(quick(2)), slope)
    return chain(calculus, inner, range_, size, slope)


def _root(calculus: Calculus, node: n.Call) -> Bound:
    """derivative.power with exponent 1/2, or derivative.length for sqrt(x*x + y*y)."""
    length = length_bound(calculus, node)
    return length if length is not None else _powered(calculus, node, ratio(1, 2))


def _power(calculus: Calculus, node: n.Call) -> Bound:
    exponent = node.arguments[1]
    value = as_number(exponent.value) if isinstance(exponent, n.Literal) else None
    if value is None:
        raise CannotBound(
            "derivative.power",
            node,
            "the exponent is not a constant",
            "write the exponent as a number",
        )
    length = length_bound(calculus, node)
    return length if length is not None else _powered(calculus, node, value)


def _powered(calculus: Calculus, node: n.Call, exponent: Fraction) -> Bound:
    """derivative.power."""
    inner, x = calculus.of(node.arguments[0]), double(node.arguments[0])
    ends = inner.range
    variable = plain_variable(calculus, node.arguments[0])
    if variable is not None and variable.measure != "x" and exponent != 0:
        return power_of_measured(calculus, node.arguments[0], variable, ends, exponent)
    whole = exponent.denominator == 1 and exponent >= 0
    if not whole and (ends.low is None or ends.low <= 0):
        raise CannotBound(
            "derivative.power",
            node,
            "a power of a value that may be 0 or negative is not bounded",
            "declare a range with a positive lower end, or use a whole exponent of at least 1",
        )
    range_ = power_range(ends, exponent)
    size = composed(
        calculus,
        inner,
        lambda a: shapes.power_size(x, exponent, a, ends.low, ends.high),
        most_of(range_),
    )
    steepest = most_of(power_range(iv.absolute(ends), exponent - 1)) if exponent != 0 else quick(0)
    slope = composed(
        calculus,
        inner,
        lambda a: shapes.power_slope(x, exponent, a, ends.low, ends.high),
        None if steepest is None else abs(exponent) * steepest,
    )
    if size is None or slope is None:
        raise _unbounded("derivative.power", node)
    return chain(calculus, inner, range_, size, slope)


def _unbounded(rule: str, node: n.Node) -> CannotBound:
    return CannotBound(
        rule, node, "no smooth bound follows from what is declared", "declare ranges of its columns"
    )


def _days(calculus: Calculus, node: n.Call) -> Bound:
    """derivative.days: the days between two dates move as the dates do."""
    part, start, end = node.arguments
    if as_text(part) != "day" or calculus.moves(start):
        raise CannotBound("derivative.days", node, "whole months and years jump", "count days")
    inner = calculus.of(end)
    offset = calculus.ranges.of(start)
    range_ = iv.add(inner.range, iv.negate(offset))
    alpha = calculus.alpha(inner)
    ends = range_.low, range_.high
    if alpha is None:
        raise _unbounded("derivative.days", node)

    def size() -> Term:
        x = double(node)
        term = composed(
            calculus, inner, lambda a: shapes.identity_size(x, a, *ends), most_of(range_)
        )
        if term is None:
            raise _unbounded("derivative.days", node)
        return term

    return replace(inner, range=range_, sized=Later(size) if shapes.has_size(alpha) else size())


@CALCULUS.rule(n.Extract, id="derivative.days")
def _seconds(calculus: Calculus, node: n.Extract) -> Bound:
    """derivative.days: seconds since 1970 move as the moment does, which is measured in days."""
    if node.part != "epoch":
        raise CannotBound(
            "derivative.days", node, f"the {node.part} of a moment jumps", "compare moments"
        )
    inner = calculus.of(node.operand)
    day = quick(86_400)
    each = constant_term(day)
    magnitudes = {r: None if v is None else day * v for r, v in inner.reach.items()}
    slopes = {k: product(each, x) for k, x in inner.slopes.items()}
    range_ = iv.multiply(inner.range, iv.point(day))
    return Bound(range_, Later(lambda: product(each, inner.size)), slopes, magnitudes)


# ── choices ──────────────────────────────────────────────────────────────────────────────────────


def _extreme(calculus: Calculus, node: n.Call) -> Bound:
    """derivative.extreme: at each point one argument decides, so the largest slope bounds; variables may repeat."""
    parts = [calculus.of(a) for a in node.arguments]
    join = iv.smaller if node.function in ("least", "lowest") else iv.larger
    range_ = parts[0].range
    for part in parts[1:]:
        both = join(range_, part.range)
        # LEAST and GREATEST skip what is empty, so any argument alone may decide.
        skips = node.function in ("least", "greatest")
        range_ = iv.hull(iv.hull(both, range_), part.range) if skips else both
    slopes: dict[Key, Term] = {}
    magnitudes: dict[str, Fraction | None] = {}
    for role in dict.fromkeys(r for p in parts for r in p.reach):
        touching = [p for p in parts if role in p.reach]
        values = [p.reach[role] for p in touching]
        magnitudes[role] = None if None in values else max(v for v in values if v is not None)
        key = gradient_key([k for p in touching for k in p.slopes], role)
        if isinstance(key, Variable):
            slopes[key] = largest([p.slopes[key] for p in touching])
        else:
            slopes[key] = largest([_dual(calculus, p, role) for p in touching])
    size = Later(lambda: limited(largest([p.size for p in parts]), range_))
    return Bound(range_, size, slopes, magnitudes)


def _dual(calculus: Calculus, part: Bound, role: str) -> Term:
    """Give a part's whole motion in one role as one term."""
    mine = {k: x for k, x in part.slopes.items() if k.role == role}
    rates: dict[Key, Fraction] = {}
    for term in mine.values():
        rates = dict(higher(rates, term.rates))
    expression = calculus.space.dual_expression(role, {k: x.expression for k, x in mine.items()})
    magnitude = part.reach[role]
    # The reach may be below what the slopes add up to: the expression must not exceed its cap.
    return (
        Term(expression, rates, None)
        if magnitude is None
        else least(Term(expression, rates, None), magnitude)
    )


def _coalesced(calculus: Calculus, node: n.Call) -> Bound:
    """derivative.null: whether a cell is empty is public, so is which argument counts."""
    parts = [_filled(calculus.of(a)) for a in node.arguments]
    range_ = parts[0].range
    for part in parts[1:]:
        range_ = iv.hull(range_, part.range)
    return _largest_of(calculus, parts, range_)


def _filled(part: Bound) -> Bound:
    """An argument that is empty is not the one that counts: nothing of it moves then."""
    zero = shapes.number(0.0)

    def filled(term: Term) -> Term:
        if isinstance(term.expression, n.Literal):
            return term
        return Term(shapes.call("coalesce", term.expression, zero), term.rates, term.cap)

    slopes = {k: filled(x) for k, x in part.slopes.items()}
    return replace(part, sized=Later(lambda: filled(part.size)), slopes=slopes)


@CALCULUS.rule(n.Case, id="derivative.case")
def _case(calculus: Calculus, node: n.Case) -> Bound:
    """With public conditions one branch counts, whatever moves."""
    for branch in node.branches:
        if calculus.moves(branch.condition):
            raise CannotBound(
                "derivative.case",
                branch.condition,
                "a condition on protected values jumps",
                "move it to WHERE",
            )
    values = [b.value for b in node.branches] + [node.default]
    parts = [calculus.of(v) for v in values if not (isinstance(v, n.Literal) and v.value is None)]
    range_ = parts[0].range
    for part in parts[1:]:
        range_ = iv.hull(range_, part.range)
    bound = _largest_of(calculus, parts, range_)
    if len(parts) < len(values):
        return bound
    conditions = [b.condition for b in node.branches]

    def chosen(terms: list[Term], joined: Term) -> Term:
        """Write the branch's own bound: never above the largest of all."""
        branches = tuple(
            n.Branch(c, x.expression) for c, x in zip(conditions, terms[:-1], strict=True)
        )
        return replace(joined, expression=n.Case(branches, terms[-1].expression))

    slopes = {k: chosen([p.slopes.get(k, ZERO) for p in parts], x) for k, x in bound.slopes.items()}
    size = Later(lambda: chosen([p.size for p in parts], bound.size))
    return replace(bound, sized=size, slopes=slopes)


def _largest_of(calculus: Calculus, parts: list[Bound], range_: iv.Interval) -> Bound:
    keys = dict.fromkeys(k for p in parts for k in p.slopes)
    slopes = {k: largest([p.slopes[k] for p in parts if k in p.slopes]) for k in keys}
    magnitudes: dict[str, Fraction | None] = {}
    for role in dict.fromkeys(r for p in parts for r in p.reach):
        values = [p.reach[role] for p in parts if role in p.reach]
        magnitudes[role] = None if None in values else max(v for v in values if v is not None)
    return Bound(range_, Later(lambda: largest([p.size for p in parts])), slopes, magnitudes)


# ── soft steps ───────────────────────────────────────────────────────────────────────────────────


def _ramp(calculus: Calculus, node: n.Call) -> Bound:
    """derivative.ramp: min(1, max(0, u + 1/2)); its motion fades with the distance from the ramp (derivative.floor)."""
    inner, x = calculus.of(node.arguments[0]), node.arguments[0]
    alpha = calculus.alpha(inner)
    if alpha is None:
        raise _unbounded("derivative.ramp", node)
    slower = min(alpha, quick(1))
    along = calculus.along(inner, quick(1))
    one = quick(1)

    def size() -> Term:
        below = fading(n.Arithmetic("-", shapes.number(0.5), x), slower, calculus.floor)
        return faded(below, None, {k: slower * v for k, v in along.items()}, one)

    outside = fading(
        n.Arithmetic("-", shapes.call("abs", x), shapes.number(0.5)), alpha, calculus.floor
    )
    motion = faded(outside, None, {k: alpha * v for k, v in along.items()}, one)
    # The argument's own motion enters as a constant: the fading part carries all that varies.
    slopes = {k: product(constant_term(v), motion) for k, v in along.items()}
    return Bound(UNIT, Later(size), slopes, dict(inner.reach))


Shape = Callable[[n.Scalar, Fraction, Fraction], shapes.Smooth]


def _soft(
    size_of: Shape, slope_of: Shape, steepest: Fraction
) -> Callable[[Calculus, n.Call], Bound]:
    def rule(calculus: Calculus, node: n.Call) -> Bound:
        inner, x = calculus.of(node.arguments[0]), double(node.arguments[0])
        parameter = node.arguments[1]
        slope_parameter = as_number(parameter.value) if isinstance(parameter, n.Literal) else None
        if slope_parameter is None or slope_parameter <= 0:
            raise CannotBound(
                "derivative.sigmoid", node, "the slope is not a positive constant", "write it"
            )
        a = slope_parameter
        size = composed(calculus, inner, lambda alpha: size_of(x, a, alpha), quick(1))
        slope = composed(calculus, inner, lambda alpha: slope_of(x, a, alpha), a * steepest)
        if size is None or slope is None:
            raise _unbounded("derivative.sigmoid", node)
        return chain(calculus, inner, UNIT, size, slope)

    return rule


_CALLS: dict[str, tuple[str, Callable[[Calculus, n.Call], Bound]]] = {
    "abs": ("derivative.abs", _absolute),
    "date_diff": ("derivative.days", _days),
    "exp": ("derivative.exp", _exponential),
    "ln": ("derivative.ln", _logarithm),
    "sqrt": ("derivative.power", _root),
    "power": ("derivative.power", _power),
    "least": ("derivative.extreme", _extreme),
    "lowest": ("derivative.extreme", _extreme),
    "highest": ("derivative.extreme", _extreme),
    "greatest": ("derivative.extreme", _extreme),
    "coalesce": ("derivative.null", _coalesced),
    "ramp": ("derivative.ramp", _ramp),
    "sigmoid": (
        "derivative.sigmoid",
        _soft(filters_shapes.sigmoid_size, filters_shapes.sigmoid_slope, ratio(1, 4)),
    ),
    "tauoid": (
        "derivative.tauoid",
        _soft(filters_shapes.tauoid_size, filters_shapes.tauoid_slope, ratio(1, 2)),
    ),
}
"""By function: the rule, which derivations name, and what it gives."""
