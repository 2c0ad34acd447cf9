"""How far may a shown number be from the true one? Intervals that hold with the asked level, from public facts.

In: what an output is made of, the noisy numbers, and the laws of their noise. Out: two ends. Sums of noisy numbers and
quotients of such sums follow an exact law (noise.sum, noise.quotient); what is made of several of them takes each at a
level at which all hold together, and interval arithmetic does the rest. Where an output passes through something that
has no rule, nothing is stated.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from typing import Any, Protocol

from secant.noise.mechanisms.sums import quotient_ends, sum_error, whole_sum_error
from secant.plan import nodes as n
from secant.plan.rewrites.rewrite import columns_of
from secant.plan.rule_table import RuleTable
from secant.records import frozen
from secant.runtime.work import spend

MOST_INVERTED = 40
"""A quotient of more noisy numbers takes each side by itself: every step of the inversion has another law."""
Span = tuple[float, float]
Env = Mapping[str, "Span | None"]
ERRORS: RuleTable[Callable[..., Span | None]] = RuleTable("error intervals")


class Joint(Protocol):
    """Numbers that are made of the same noises."""

    def error(self, weights: Mapping[Any, float], level: Fraction) -> float:
        """Give how far a weighted sum of them is from the true one."""
        ...


@frozen
class NoisyNumber:
    """A released number, and what is public about its noise."""

    value: float
    error: Callable[[Fraction], float | None]
    """For a level, how far the true number is at most; None where the data decide."""
    scale: float | None = None
    """Of discrete Laplace or normal noise, in the number's own unit; None for another law."""
    step: float = 0.0
    """What the noise is a whole multiple of."""
    left_out: Span = (0.0, 0.0)
    """How much was left out before the noise came on, at least and at most; below zero: taken away too little."""
    part: Span | None = None
    """Of what was left out of the measure, what was left out of this number; None where that may be all of it."""
    measure: str = ""
    """What it is a number of: what was left out of one measure is that much in all of its numbers together."""
    sign: int = 0
    """1 if the true number is never below zero, -1 if it is never above."""
    normal: bool = False
    """Whether the noise is normal: `scale` is its deviation then."""
    joint: tuple[Joint, Any] | None = None
    """Where numbers are made of the same noises: what knows the law of their sums, and which of them it is."""

    about: tuple[str, float] | None = None
    """Where the number is another one times a center, and beyond that what the noise is on: which, and the center."""
    estimate: Callable[[float], tuple[float, Span]] | None = None
    """Where what was left out is estimated: how much of it a number of this size usually lacks, and how far from that
    the truth may be, down and up."""
    lacked: float = 0.0
    """What of the value is such an estimate."""

    def at(self, value: float) -> NoisyNumber:
        """Give the same noise about another number."""
        if self.estimate is None:
            return replace(self, value=value)
        middle, part = self.estimate(value)
        return replace(self, value=value + middle, part=part, lacked=middle)


@frozen
class Affine:
    """A constant and a weighted sum of noisy numbers."""

    constant: float
    weights: Mapping[str, float]
    alone: Alone | None = None
    """What is known of the sum if nothing is added to it or divided by it."""


@frozen
class Alone:
    """One number that was made of several noisy ones, as it is shown, with an error of its own."""

    shown: float
    error: Callable[[Fraction], float | None]
    sign: int
    whole: bool
    """Whether it counts rows."""


@frozen
class Quotient:
    """One weighted sum over another."""

    above: Affine
    below: Affine


_SUMMED_A_STEP = 8
"""Noisy numbers of one sum that count as a step of planning."""
OR_MORE, OR_LESS = ABSENT = ("or more", "or less")
"""What a number that may be missing means for the least, and for the greatest, of several."""
Noisy = Mapping[str, NoisyNumber]
Row = Mapping[str, object]
Pieces = Mapping[int, "Affine | Quotient"]


def pieces_of(scalar: n.Scalar, noisy: Noisy, row: Row) -> Pieces:
    """Give, by identity, the largest parts of an expression that an exact law covers."""
    pieces: dict[int, Affine | Quotient] = {}
    _find(scalar, noisy, row, pieces)
    return pieces


def ends_of(
    scalar: n.Scalar, noisy: Noisy, row: Row, level: Fraction, pieces: Pieces | None = None
) -> Span | None:
    """Give two ends between which the true output lies at the level.

    `row` has exact numbers, spans that are known to hold, and sums; `pieces` those of the expression, if read before.
    """
    pieces = pieces_of(scalar, noisy, row) if pieces is None else pieces
    each = 1 - (1 - level) / max(1, len(pieces))
    env: dict[str, Span | None] = {}
    exact = {part: _ends(piece, noisy, each) for part, piece in pieces.items()}
    for name in columns_of(scalar):
        cell = row.get(name)
        number = number_of(cell)
        env[name] = None if number is None or name in noisy else (number, number)
        if isinstance(cell, tuple):
            env[name] = cell
    span = span_of(scalar, _Environment(env, exact))
    if span is None or any(map(math.isnan, span)) or all(map(math.isinf, span)):
        return None
    return span


class _Environment(dict[str, "Span | None"]):
    """Columns and, by identity, the parts of an expression whose ends follow from an exact law."""

    def __init__(self, columns: Env, exact: Mapping[int, Span | None]) -> None:
        super().__init__(columns)
        self.exact = exact


def _find(scalar: n.Node, noisy: Noisy, row: Row, pieces: dict[int, Affine | Quotient]) -> None:
    """Collect, by identity, the largest parts of an expression that an exact law covers."""
    if isinstance(scalar, n.Scalar):
        whole = affine_of(scalar, noisy, row) or _quotient(scalar, noisy, row)
        if whole is not None:
            if isinstance(whole, Quotient) or whole.weights:
                pieces[id(scalar)] = whole
            return
    for child in n.children(scalar):
        _find(child, noisy, row, pieces)


def affine_of(
    scalar: n.Scalar, noisy: Noisy, row: Row, *, sure: bool = False, below: bool = False
) -> Affine | None:
    """Read a weighted sum. `sure` also reads through limits that the true value keeps to anyway, `below` a quotient."""
    if isinstance(scalar, n.Column):
        if isinstance(value := row.get(scalar.name), Affine):
            return value
        if scalar.name in noisy:
            return _named(scalar.name, noisy)
        number = number_of(row.get(scalar.name))
        return None if number is None else Affine(number, {})
    if isinstance(scalar, n.Literal):
        number = number_of(scalar.value)
        return None if number is None else Affine(number, {})
    if isinstance(scalar, n.Attempt):
        return affine_of(scalar.operand, noisy, row, sure=sure, below=below)
    if isinstance(scalar, n.Cast) and scalar.type.kind == "DOUBLE":
        return affine_of(scalar.operand, noisy, row, sure=sure, below=below)
    if isinstance(scalar, n.Negate):
        inner = affine_of(scalar.operand, noisy, row, sure=sure)
        return None if inner is None else _scaled(inner, -1.0)
    if isinstance(scalar, n.Call) and sure and scalar.function in ("greatest", "least"):
        return _one_sided(scalar, noisy, row, below=below)
    if isinstance(scalar, n.Arithmetic):
        a = affine_of(scalar.left, noisy, row, sure=True)
        b = affine_of(scalar.right, noisy, row, sure=True)
        if a is None or b is None:
            return None
        if scalar.op in "+-":
            return _added(a, b if scalar.op == "+" else _scaled(b, -1.0))
        if scalar.op == "*" and not (a.weights and b.weights):
            return _scaled(a, b.constant) if not b.weights else _scaled(b, a.constant)
        if scalar.op == "/" and not b.weights and b.constant:
            return _scaled(a, 1 / b.constant)
    return None


def _named(name: str, noisy: Noisy) -> Affine | None:
    """Read a number; one that lies about another (`about`) is so much of that, and what lies beyond."""
    about = noisy[name].about
    if about is None:
        return Affine(0.0, {name: 1.0})
    other, center = about
    return Affine(0.0, {name: 1.0, other: center}) if other in noisy else None


def _one_sided(scalar: n.Call, noisy: Noisy, row: Row, *, below: bool) -> Affine | None:
    """Read greatest(x, 0) of a number that is truly not below zero, least(x, 0) of one that is not above.

    And greatest(count, 1) below a quotient: where the true count is less, there is no quotient.
    """
    number, *limits = scalar.arguments
    if not isinstance(number, n.Column) or len(limits) != 1:
        return None
    value = row.get(number.name)
    affine = value if isinstance(value, Affine) and value.alone else None
    limit = number_of(limits[0].value) if isinstance(limits[0], n.Literal) else None
    if limit is None or (affine is None and number.name not in noisy):
        return None
    if affine is not None and affine.alone is not None:
        sign, whole = affine.alone.sign, affine.alone.whole
    else:
        sign, whole = noisy[number.name].sign, noisy[number.name].step == 1
    above = scalar.function == "greatest"
    if sign != (1 if above else -1):
        return None
    most = 1.0 if below and above and whole else 0.0
    form = affine or _named(number.name, noisy)
    if form is None:
        return None
    return form if (limit <= most if above else limit >= 0) else None


def _scaled(a: Affine, factor: float) -> Affine:
    return Affine(a.constant * factor, {c: w * factor for c, w in a.weights.items()})


def _added(a: Affine, b: Affine) -> Affine:
    weights = {
        c: a.weights.get(c, 0.0) + b.weights.get(c, 0.0) for c in sorted({*a.weights, *b.weights})
    }
    return Affine(a.constant + b.constant, weights)


def _quotient(scalar: n.Scalar, noisy: Noisy, row: Row) -> Quotient | None:
    if not isinstance(scalar, n.Arithmetic) or scalar.op != "/":
        return None
    above = affine_of(scalar.left, noisy, row, sure=True)
    below = affine_of(scalar.right, noisy, row, sure=True, below=True)
    if above is None or below is None or not below.weights:
        return None
    if any(noisy[c].scale is None for c in (*above.weights, *below.weights)):
        return None
    return Quotient(above, below)


def _ends(piece: Affine | Quotient, noisy: Noisy, level: Fraction) -> Span | None:
    if isinstance(piece, Affine):
        if piece.alone is not None and (own := piece.alone.error(level)) is not None:
            return piece.alone.shown - own, piece.alone.shown + own
        center = _value(piece, noisy)
        error = _error(piece.weights, noisy, level)
        low, high = _left_out(piece.weights, noisy)
        if error is None:
            return None
        if any(noisy[c].estimate is not None for c in piece.weights):
            # Two independent errors that hold usually: rarely are both large, and to the same side.
            return center - math.hypot(error, low), center + math.hypot(error, high)
        return center - error + low, center + error + high
    above, below, known = piece.above, piece.below, 0.0
    if any(noisy[c].about is not None for c in above.weights):
        above, known = _beyond(above, below)
    ends = _quotient_ends(above, below, noisy, level)
    return None if ends is None else (ends[0] + known, ends[1] + known)


def _beyond(above: Affine, below: Affine) -> tuple[Affine, float]:
    """Take off what the divisor itself makes up: A / B = t + (A - t B) / B."""
    if len(below.weights) != 1:
        return above, 0.0
    ((count, weight),) = below.weights.items()
    times = above.weights.get(count, 0.0) / weight
    remaining = {c: w for c, w in above.weights.items() if c != count}
    return Affine(above.constant - times * below.constant, remaining), times


def _quotient_ends(above: Affine, below: Affine, noisy: Noisy, level: Fraction) -> Span | None:
    many = len({*above.weights, *below.weights}) > MOST_INVERTED
    if many or any(_left_out(side.weights, noisy) != (0.0, 0.0) for side in (above, below)):
        half = 1 - (1 - level) / 2
        return _divided(_ends(above, noisy, half), _ends(below, noisy, half))
    scales: dict[bool, list[tuple[float, float]]] = {False: [], True: []}
    for c in sorted({*above.weights, *below.weights}):
        scale = noisy[c].scale
        assert scale is not None
        both = above.weights.get(c, 0.0) * scale, below.weights.get(c, 0.0) * scale
        scales[noisy[c].normal].append(both)
    return quotient_ends(
        (_value(above, noisy), _steps(above, noisy)),
        (_value(below, noisy), _steps(below, noisy)),
        scales[False],
        float(level),
        scales[True],
    )


def _left_out(weights: Mapping[str, float], noisy: Noisy) -> Span:
    """Add up what was left out of a weighted sum: of one measure, so much of all its numbers together."""
    extents: dict[str, tuple[float, float, Span]] = {}
    parts: dict[str, Span] = {}
    for c, w in weights.items():
        one = noisy[c]
        if w and one.left_out != (0.0, 0.0):
            name = one.measure or c
            least, most, _ = extents.get(name, (0.0, 0.0, one.left_out))
            extents[name] = min(least, w), max(most, w), one.left_out
            least_part, most_part = sorted(w * end for end in one.part or (-math.inf, math.inf))
            low, high = parts.get(name, (0.0, 0.0))
            parts[name] = low + least_part, high + most_part
    low = high = 0.0
    for name, (least, most, ends) in extents.items():
        corners = [w * end for w in (least, most) if w for end in ends if end]
        low += max(min(0.0, *corners), parts[name][0])
        high += min(max(0.0, *corners), parts[name][1])
    return low, high


def _divided(a: Span | None, b: Span | None) -> Span | None:
    """Divide intervals; None where the denominator may be zero."""
    if a is None or b is None or b[0] <= 0 <= b[1]:
        return None
    corners = [x / y for x in a for y in b if not (math.isinf(x) and math.isinf(y))]
    if len(corners) < 4:
        return None
    return min(corners), max(corners)


def _value(a: Affine, noisy: Noisy) -> float:
    return a.constant + sum(w * _own(c, noisy) for c, w in a.weights.items())


def _own(name: str, noisy: Noisy) -> float:
    """Give a number less what it is of another one."""
    one = noisy[name]
    if one.about is None:
        return one.value
    other, center = one.about
    return one.value - center * (noisy[other].value - noisy[other].lacked)


def _steps(a: Affine, noisy: Noisy) -> float:
    """Give how far whole-step noise is from the real-valued law, at most: a step each (noise.sum)."""
    return sum(abs(w) * noisy[c].step for c, w in a.weights.items() if noisy[c].scale)


def _error(weights: Mapping[str, float], noisy: Noisy, level: Fraction) -> float | None:
    """Give how far a weighted sum is from the true one: by the law of the sum if all its noise is Laplace or normal."""
    spend(
        len(weights) // _SUMMED_A_STEP
    )  # each group's share of all of them: foreseen before it is paid for
    nonzero = {c: w for c, w in weights.items() if w}
    if len(nonzero) == 1:
        ((column, weight),) = nonzero.items()
        one = noisy[column].error(level)
        return None if one is None else abs(weight) * one
    together = {c: j for c in nonzero if (j := noisy[c].joint) is not None}
    if together:
        return _joint_error(nonzero, together, noisy, level)
    if any(noisy[c].scale is None for c in nonzero):
        each = 1 - (1 - level) / max(1, len(nonzero))
        error = 0.0
        for c, w in nonzero.items():
            part = noisy[c].error(each)
            if part is None:
                return None
            error += abs(w) * part
        return error
    scales = [abs(w) * (noisy[c].scale or 0.0) for c, w in nonzero.items() if not noisy[c].normal]
    normals = [abs(w) * (noisy[c].scale or 0.0) for c, w in nonzero.items() if noisy[c].normal]
    units = {abs(w) * noisy[c].step for c, w in nonzero.items() if noisy[c].scale}
    if not normals and len(units) == 1 and (unit := units.pop()) > 0:
        return unit * whole_sum_error([s / unit for s in scales], float(level))
    error = sum_error(scales, float(level), normals)
    return error + _steps(Affine(0.0, nonzero), noisy)


def _joint_error(
    weights: Mapping[str, float],
    together: Mapping[str, tuple[Joint, Any]],
    noisy: Noisy,
    level: Fraction,
) -> float | None:
    """Take numbers that are made of the same noises together, and all others at a level at which all hold."""
    sums: dict[int, tuple[Joint, dict[Any, float]]] = {}
    for c, (joint, position) in together.items():
        sums.setdefault(id(joint), (joint, {}))[1][position] = weights[c]
    remaining = {c: w for c, w in weights.items() if c not in together}
    each = 1 - (1 - level) / (len(sums) + bool(remaining))
    other = _error(remaining, noisy, each) if remaining else 0.0
    return None if other is None else other + sum(j.error(w, each) for j, w in sums.values())


def number_of(value: object) -> float | None:
    """Give a number as a float; None for anything else, truth values too."""
    if isinstance(value, bool) or not isinstance(value, (int, float, Decimal)):
        return None
    return float(value)


def span_of(scalar: n.Scalar, env: Env) -> Span | None:
    """Give the interval of an expression, or None where no rule gives one."""
    if isinstance(env, _Environment) and id(scalar) in env.exact:
        return env.exact[id(scalar)]
    rule = ERRORS.find(scalar)
    return None if rule is None else rule(scalar, env)


@ERRORS.rule(n.Column)
def _column(node: n.Column, env: Env) -> Span | None:
    return env.get(node.name)


@ERRORS.rule(n.Literal)
def _literal(node: n.Literal, env: Env) -> Span | None:
    number = number_of(node.value)
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
    if node.op == "/":
        return _divided(a, b)
    if node.op != "*":
        return None
    corners = [x * y for x in a for y in b]
    return None if any(map(math.isnan, corners)) else (min(corners), max(corners))


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
    clamped = min(max(a[0], low[0]), high[0]), max(min(a[1], high[1]), low[1])
    half = min((a[1] - a[0]) / 2, high[1] - low[0])
    if clamped[1] - clamped[0] >= half:
        return clamped
    # The noise went far beyond a limit. Showing the limit as certain would be true at this level and
    # mislead all the same: the interval keeps half of its width, inward.
    return (clamped[1] - half, clamped[1]) if a[0] > low[0] else (clamped[0], clamped[0] + half)


@ERRORS.rule(n.Call)
def _call(node: n.Call, env: Env) -> Span | None:
    parts = [span_of(a, env) for a in node.arguments]
    if any(p is None for p in parts):
        return None
    spans = [p for p in parts if p is not None]
    # As in a clamp, never narrower than this.
    half = max((w for p in spans if math.isfinite(w := p[1] - p[0])), default=0.0) / 2
    if node.function == "greatest":
        bottom = max(p[0] for p in spans)
        return bottom, max(bottom + half, *(p[1] for p in spans))
    if node.function == "least":
        top = min(p[1] for p in spans)
        return min(top - half, *(p[0] for p in spans)), top
    a = spans[0]
    if node.function in ABSENT:
        return (a[0], math.inf) if node.function == OR_MORE else (-math.inf, a[1])
    if node.function == "abs":
        low = 0.0 if a[0] <= 0 <= a[1] else min(abs(a[0]), abs(a[1]))
        return low, max(abs(a[0]), abs(a[1]))
    if node.function == "sqrt":
        return math.sqrt(max(a[0], 0.0)), math.sqrt(max(a[1], 0.0))
    if node.function in ("coalesce", "nullif"):
        return a
    if node.function == "exp":
        return math.exp(min(a[0], 700.0)), math.exp(min(a[1], 700.0))
    if node.function == "round":
        digits = int(spans[1][0]) if len(spans) > 1 else 0
        half = 0.5 * 10.0**-digits
        return a[0] - half, a[1] + half
    return None
