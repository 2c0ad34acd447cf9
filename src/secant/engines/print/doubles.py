"""Floating-point arithmetic for an engine that raises where IEEE arithmetic gives infinity, zero or NaN.

In: operands as SQL text, with what is known of their size. Out: SQL text whose value is IEEE's on every input and
that never raises. Where the size of the operands already rules out overflow and underflow the text is the plain
operation. PostgreSQL raises if a finite sum, product or quotient overflows, if a product or a quotient of numbers
other than zero is zero, and if a function leaves the numbers. NaN is above infinity there.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable

from secant.records import frozen

INFINITY = "float8 'Infinity'"
NAN = "float8 'NaN'"
LARGE, SMALL = 1e150, 1e-150
_MANY = 1e290
"""So far below the largest double that no number of rows reaches it."""
_DEAR = re.compile(r"SELECT|CASE|exp|ln|log|power|sqrt|numeric|text|NULLIF|greatest|least")
_SHORT = 160
_NUDGE = 1e-140
"""Added to an exponent it changes nothing, but a product with it is not zero."""
Alias = Callable[[], str] | None
"""Gives a fresh name for a subselect. None where none may stand: an aggregate would belong to the subselect."""


@frozen
class Operand:
    """An expression as text, the largest magnitude of its finite values, and a step they are multiples of."""

    text: str
    most: float | None = None
    step: float | None = None
    low: float | None = None
    high: float | None = None


def number(value: float) -> str:
    """Write a constant exactly."""
    return f"float8 '{value!r}'"


def bound(texts: list[str], alias: Alias, body: Callable[..., str]) -> str:
    """Write a formula that names its operands often; a dear operand is computed once, in a subselect.

    A subselect takes as long as some twenty plain operations.
    """
    if alias is None or all(len(x) <= _SHORT and not _DEAR.search(_plain(x)) for x in texts):
        return f"({body(*texts)})"
    name = alias()
    names = [f"{name}.v{i}" for i in range(len(texts))]
    columns = ", ".join(f"{text} AS v{i}" for i, text in enumerate(texts))
    # OFFSET 0 keeps the planner from putting the operands back in everywhere.
    return f"(SELECT {body(*names)} FROM (SELECT {columns} OFFSET 0) AS {name})"


def _plain(text: str) -> str:
    """Leave out names, which may look like anything."""
    return re.sub(r'"[^"]*"', "", text)


def plus(a: Operand, b: Operand, op: str, alias: Alias) -> str:
    """Write a sum or a difference."""
    if a.most is not None and b.most is not None and a.most + b.most < 1e307:
        return f"({a.text} {op} {b.text})"
    apart = "<>" if op == "+" else "="  # of opposite effect: such a sum cannot overflow

    def body(x: str, y: str) -> str:
        plain = f"{x} {op} {y}"
        halves = f"abs({x}) * {number(0.5)} + abs({y}) * {number(0.5)}"
        return (
            f"CASE WHEN abs({x}) <= {number(8e307)} AND abs({y}) <= {number(8e307)} THEN {plain} "
            f"WHEN abs({x}) >= {INFINITY} OR abs({y}) >= {INFINITY} OR abs({x}) < {number(1e290)} "
            f"OR abs({y}) < {number(1e290)} OR ({x} < 0) {apart} ({y} < 0) THEN {plain} "
            f"WHEN {halves} >= {number(2.0**1023)} THEN sign({x}) * {INFINITY} ELSE {plain} END"
        )

    return bound([a.text, b.text], alias, body)


def times(a: Operand, b: Operand, alias: Alias) -> str:
    """Write a product."""
    no_overflow = a.most is not None and b.most is not None and a.most * b.most < 1e307
    no_underflow = a.step is not None and b.step is not None and a.step * b.step > 1e-300
    no_underflow = no_underflow or _from_one_on(a) or _from_one_on(b)
    if no_overflow and no_underflow:
        return f"({a.text} * {b.text})"

    def body(x: str, y: str) -> str:
        u, v = f"abs({x})", f"abs({y})"
        fast = [f"{u} >= {number(SMALL)}", f"{v} >= {number(SMALL)}"]
        if not no_overflow:
            fast += [f"{u} <= {number(LARGE)}", f"{v} <= {number(LARGE)}"]
        shrunk = f"({u} * {number(2.0**-512)}) * ({v} * {number(2.0**-512)})"
        grown = f"({u} * {number(2.0**537)}) * ({v} * {number(2.0**537)})"
        return (
            f"CASE WHEN {' AND '.join(fast)} THEN {x} * {y} "
            f"WHEN {x} = 0 OR {y} = 0 OR {u} >= {INFINITY} OR {v} >= {INFINITY} THEN {x} * {y} "
            f"WHEN {u} >= 1 AND {v} >= 1 THEN CASE WHEN {shrunk} >= 1 "
            f"THEN sign({x}) * sign({y}) * {INFINITY} ELSE {x} * {y} END "
            f"WHEN {u} < 1 AND {v} < 1 THEN CASE WHEN {grown} > {number(0.5)} THEN {x} * {y} "
            f"ELSE sign({x}) * sign({y}) * {number(0.0)} END ELSE {x} * {y} END"
        )

    return bound([a.text, b.text], alias, body)


def _from_one_on(a: Operand) -> bool:
    """Whether the magnitude of every finite value is at least one."""
    return (a.low is not None and a.low >= 1) or (a.high is not None and a.high <= -1)


def divide(a: Operand, b: Operand, alias: Alias) -> str:
    """Write a quotient; by zero it is infinite, or NaN."""
    if a.most is not None and a.step is not None and b.most is not None and b.step is not None:
        apart = (b.low is not None and b.low > 0) or (b.high is not None and b.high < 0)
        apart = apart and b.step > 0 and b.most > 0  # the least doubles vanish on the way
        if apart and a.most / b.step < 1e307 and a.step / b.most > 1e-300:
            return f"({a.text} / {b.text})"

    def body(x: str, y: str) -> str:
        u, v = f"abs({x})", f"abs({y})"
        sizes = " AND ".join(f"{z} >= {number(SMALL)} AND {z} <= {number(LARGE)}" for z in (u, v))
        infinite = f"sign({x}) * sign({y}) * {INFINITY}"
        negative_zero = f"CASE WHEN CAST({y} AS text) = '-0' THEN -{INFINITY} ELSE {INFINITY} END"
        return (
            f"CASE WHEN {sizes} THEN {x} / {y} "
            f"WHEN {y} = 0 THEN CASE WHEN {x} = 0 OR {x} = {NAN} THEN {x} * {NAN} "
            f"ELSE sign({x}) * {negative_zero} END "
            f"WHEN {x} = 0 OR {u} >= {INFINITY} OR {v} >= {INFINITY} THEN {x} / {y} "
            f"WHEN {v} < 1 AND {u} >= 1 THEN CASE WHEN ({u} * {number(2.0**-600)}) / ({v} * {number(2.0**600)}) "
            f">= {number(2.0**-176)} THEN {infinite} ELSE {x} / {y} END "
            f"WHEN {v} < 1 AND {u} >= {number(SMALL)} THEN CASE WHEN {u} / ({v} * {number(2.0**537)}) "
            f">= {number(2.0**487)} THEN {infinite} ELSE {x} / {y} END "
            f"WHEN {v} >= 1 AND {u} < 1 THEN CASE WHEN ({u} * {number(2.0**537)}) / ({v} * {number(2.0**-537)}) "
            f"> {number(0.5)} THEN {x} / {y} ELSE sign({x}) * sign({y}) * {number(0.0)} END ELSE {x} / {y} END"
        )

    return bound([a.text, b.text], alias, body)


def total(a: Operand, distinct: str) -> str:
    """Write a sum. Numbers of which a few could overflow are summed apart, made smaller."""
    if a.most is not None and a.most < _MANY:
        return f"sum({distinct}{a.text})"
    x, down, up = a.text, number(2.0**-1000), number(2.0**1000)
    huge = f"abs({x}) > {number(_MANY)} AND abs({x}) < {INFINITY}"
    usual = f"sum({distinct}CASE WHEN {huge} THEN NULL ELSE {x} END)"
    large = f"sum({distinct}CASE WHEN {huge} THEN {x} * {down} END)"
    added = f"CASE WHEN abs({usual}) > 1 THEN {usual} * {down} ELSE {number(0.0)} END"
    both = f"({large} + {added})"
    return (
        f"CASE WHEN {large} IS NULL THEN {usual} WHEN abs({both}) >= {number(2.0**24)} "
        f"THEN sign({both}) * {INFINITY} ELSE {both} * {up} END"
    )


def mean(summed: str, rows: str) -> str:
    """Write a sum over a number of rows, both aggregates: only underflow can happen."""
    small = f"(abs({summed}) * {number(2.0**537)}) / ({rows} * {number(2.0**-537)}) > {number(0.5)}"
    return (
        f"CASE WHEN {summed} = 0 OR abs({summed}) >= {number(1e-290)} THEN {summed} / {rows} "
        f"WHEN {small} THEN {summed} / {rows} WHEN {summed} IS NOT NULL THEN {number(0.0)} END"
    )


def middle(low: str, high: str) -> str:
    """Write the number half way between two aggregates."""
    far = f"abs({low}) > {number(8e307)} AND abs({high}) > {number(8e307)} AND abs({low}) < {INFINITY}"
    halves = f"{low} * {number(0.5)} + {high} * {number(0.5)}"  # their distance may overflow
    gap = plus(Operand(high), Operand(low), "-", None)
    half = f"CASE WHEN {gap} > {number(1e-300)} THEN {gap} * {number(0.5)} ELSE {number(0.0)} END"
    return (
        f"CASE WHEN {low} = {high} THEN {low} WHEN {far} AND abs({high}) < {INFINITY} THEN {halves} "
        f"ELSE {low} + {half} END"
    )


def exponential(a: Operand, alias: Alias) -> str:
    """Write exp. Below the normal numbers the engine raises, so the last stretch is a product."""
    if a.low is not None and a.high is not None and a.low > -708 and a.high < 709:
        return f"exp({a.text})"
    tail = number(math.exp(-50))
    return bound(
        [a.text],
        alias,
        lambda x: (
            f"CASE WHEN {x} >= -708 AND {x} <= {number(709.782712893384)} THEN exp({x}) "
            f"WHEN {x} = {NAN} THEN {x} WHEN {x} > 0 THEN {INFINITY} "
            f"WHEN {x} >= {number(-745.1332)} THEN exp({x} + 50) * {tail} "
            f"WHEN {x} < 0 THEN {number(0.0)} END"
        ),
    )


def ramp(a: Operand, alias: Alias) -> str:
    """Write the step that is one unit wide; NULL stays NULL, NaN is above everything."""
    return bound(
        [a.text],
        alias,
        lambda x: (
            f"CASE WHEN {x} >= {number(0.5)} THEN {number(1.0)} WHEN {x} <= {number(-0.5)} THEN {number(0.0)} "
            f"ELSE {x} + {number(0.5)} END"
        ),
    )


def sigmoid(a: Operand, slope: Operand, alias: Alias) -> str:
    """Write the logistic step. By an infinite number one may divide."""
    one = number(1.0)
    return f"({one} / ({one} + {exponential(_product(a, slope, alias, '- '), alias)}))"


def tauoid(a: Operand, slope: Operand, alias: Alias) -> str:
    """Write the soft equality."""
    up, down = (exponential(_product(a, slope, alias, sign), alias) for sign in ("", "- "))
    return f"({number(2.0)} / ({up} + {down}))"


def _product(a: Operand, slope: Operand, alias: Alias, sign: str) -> Operand:
    """Write an exponent. Next to nothing may be added to it, and then it cannot underflow."""
    size = None if a.most is None or slope.most is None else a.most * slope.most
    if size is None or size >= 1e307 or slope.step is None or slope.step <= 1e-150:
        return Operand(f"({sign}{times(slope, a, alias)})")
    shifted = a.text if a.step is not None and a.step > _NUDGE else f"({a.text} + {number(_NUDGE)})"
    return Operand(f"({sign}({slope.text} * {shifted}))", low=-size, high=size)


def logarithm(name: str, a: Operand, alias: Alias) -> str:
    """Write ln or log: of zero minus infinity, of negative numbers NaN."""
    if a.low is not None and a.low > 0:
        return f"{name}({a.text})"
    return bound(
        [a.text],
        alias,
        lambda x: (
            f"CASE WHEN {x} > 0 THEN {name}({x}) WHEN {x} = 0 THEN -{INFINITY} WHEN {x} < 0 THEN {NAN} END"
        ),
    )


def root(a: Operand, alias: Alias) -> str:
    """Write a square root: NaN for negative numbers."""
    if a.low is not None and a.low >= 0:
        return f"sqrt({a.text})"
    return bound(
        [a.text],
        alias,
        lambda x: f"CASE WHEN {x} >= 0 THEN sqrt({x}) WHEN {x} < 0 THEN {NAN} END",
    )


def power(a: Operand, b: Operand, constant: float | None, alias: Alias) -> str:
    """Write a power with all of IEEE's special cases; `constant` is the exponent if it is written in the query."""
    if constant is not None and _tame(a, constant):
        return f"power({a.text}, {number(constant)})"

    def body(x: str, y: str) -> str:
        halved = f"{y} * {number(0.5)}"  # raises for the smallest numbers, which are not whole
        odd = f"CASE WHEN floor({y}) = {y} THEN floor({halved}) <> {halved} ELSE FALSE END"
        whole = f"abs({y}) >= {number(2.0**53)} OR floor({y}) = {y}"
        # Larger exponents are even, so are infinite ones.
        sign = f"CASE WHEN {x} < 0 AND abs({y}) < {number(2.0**53)} AND {odd} THEN -1 ELSE 1 END"
        size = f"{y} * ln(abs({x}))"
        half = f"power(abs({x}), {y} * {number(0.5)})"
        shrunk = f"({half} * {number(2.0**-512)}) * ({half} * {number(2.0**-512)})"
        grown = f"({half} * {number(2.0**537)}) * ({half} * {number(2.0**537)})"
        return (
            f"CASE WHEN {x} IS NULL OR {y} IS NULL THEN NULL "
            f"WHEN {y} = 0 OR {x} = 1 THEN {number(1.0)} WHEN {y} = 1 THEN {x} "
            f"WHEN {x} = {NAN} OR {y} = {NAN} THEN {NAN} "
            f"WHEN {x} = 0 AND {y} < 0 THEN CASE WHEN CAST({x} AS text) = '-0' AND abs({y}) < {number(2.0**53)} "
            f"AND {odd} THEN -{INFINITY} ELSE {INFINITY} END "
            f"WHEN abs({x}) = {INFINITY} AND floor({y}) <> {y} THEN power(abs({x}), {y}) "
            f"WHEN {x} = 0 OR abs({x}) = {INFINITY} OR abs({y}) = {INFINITY} THEN power({x}, {y}) "
            f"WHEN {x} < 0 AND NOT ({whole}) THEN {NAN} "
            f"WHEN abs({y}) < {number(1e-290)} THEN {number(1.0)} "
            f"WHEN abs({y}) > {number(1e290)} THEN CASE WHEN abs({x}) = 1 THEN {number(1.0)} "
            f"WHEN (abs({x}) > 1) = ({y} > 0) THEN {INFINITY} ELSE {number(0.0)} END "
            f"WHEN abs({size}) <= 708 THEN power({x}, {y}) "
            f"WHEN {size} > 711 THEN ({sign}) * {INFINITY} "
            f"WHEN {size} < -747 THEN ({sign}) * {number(0.0)} "
            f"WHEN {size} > 0 THEN CASE WHEN {shrunk} >= 1 THEN ({sign}) * {INFINITY} "
            f"ELSE ({sign}) * ({half} * {half}) END "
            f"WHEN {grown} > {number(0.5)} THEN ({sign}) * ({half} * {half}) ELSE ({sign}) * {number(0.0)} END"
        )

    return bound([a.text, b.text], alias, body)


def _tame(a: Operand, exponent: float) -> bool:
    """Whether a power with this exponent is an ordinary number for every finite base (NaN passes unharmed)."""
    if a.most is None or (not exponent.is_integer() and not (a.low is not None and a.low >= 0)):
        return False
    if exponent < 0 or exponent > 300:
        return False
    if exponent == 0:
        return True
    largest = exponent * math.log(max(a.most, 1.0))
    smallest = exponent * math.log(min(a.step or 0.0, 1.0)) if a.step else -math.inf
    return largest < 700 and smallest > -700


def rounded(a: Operand, digits: int, alias: Alias) -> str:
    """Write rounding to digits: halves go away from zero, as one multiplies, rounds and divides."""
    if digits > 308:
        return a.text
    step = 10.0 ** min(abs(digits), 308)

    def body(x: str) -> str:
        # From 2^53 on there are no digits behind the point; shortened by a power of ten it is the same.
        if digits >= 0:
            scaled, back, usual = f"abs({x}) * {number(step)}", f"/ {number(step)}", 2.0**53 / step
            beyond = x
        else:
            scaled, back, usual = f"abs({x}) / {number(step)}", f"* {number(step)}", 1e307
            lost = f"CASE WHEN abs({x}) >= {INFINITY} THEN {x} ELSE {number(0.0)} END"
            beyond = x if step < 1e290 else lost
        away = f"(floor({scaled}) + CASE WHEN {scaled} - floor({scaled}) >= {number(0.5)} THEN 1 ELSE 0 END)"
        tiny = f"WHEN abs({x}) < {number(step / 100)} THEN {number(0.0)} " if digits < 0 else ""
        return f"CASE {tiny}WHEN abs({x}) <= {number(usual)} THEN sign({x}) * ({away} {back}) ELSE {beyond} END"

    return bound([a.text], alias, body)
