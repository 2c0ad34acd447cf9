"""Affine forms: ranges of expressions that remember which variable moved them.

In: bounded intervals of variables. Out: center + Σ coefficient·ε + error, ε in [-1, 1] for each
variable, so that x − x is 0 and x·(1 − x) is not torn apart. All numbers are exact rationals or are
rounded outward; a range is never narrower than the truth. None says that no bounded form exists.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field
from fractions import Fraction
from itertools import combinations, pairwise

from secant.errors import InternalError, UsageError
from secant.numeric import interval as plain
from secant.numeric.interval import Interval
from secant.numeric.powers import power as power_of
from secant.numeric.quick import quick, ratio
from secant.records import frozen

_MOST_BITS = 512  # longer coefficients are cut, and what is cut off is added to the error
_KEPT_BITS = 128
_FINEST_BITS = 4096
_ZERO = quick(0)


@frozen
class Affine:
    """All numbers center + Σ terms[v]·ε_v + e with ε_v in [-1, 1], |e| ≤ error, and within `within`."""

    center: Fraction
    terms: Mapping[str, Fraction] = field(default_factory=dict)
    error: Fraction = _ZERO
    within: Interval = plain.EVERYTHING
    """What interval arithmetic says of the same expression; a form is never wider than it."""

    @property
    def radius(self) -> Fraction:
        """How far values can be from the center, by the form alone."""
        return sum((abs(term) for term in self.terms.values()), self.error)

    def range(self) -> Interval:
        """Give an interval that holds all values (affine.affine)."""
        own = plain.interval(self.center - self.radius, self.center + self.radius)
        both = plain.meet(own, self.within)
        if both is None:
            raise InternalError("BUG-001", "two ranges of one expression do not meet")
        return both


def constant(value: Fraction | int) -> Affine:
    """Give the form of a number."""
    return Affine(quick(value), within=plain.point(value))


def variable(name: str, limits: Interval) -> Affine:
    """Give the form of a variable between two finite limits.

    >>> variable("x", plain.interval(0, 3)).terms
    {'x': Fraction(3, 2)}
    """
    low, high = limits.ends()
    terms = {name: (high - low) / 2} if high > low else {}
    return Affine((low + high) / 2, terms, within=limits)


def add(a: Affine, b: Affine) -> Affine:
    """Give all sums."""
    terms = {name: a.terms.get(name, _ZERO) + b.terms.get(name, _ZERO) for name in _names(a, b)}
    within = plain.add(a.range(), b.range())
    return _trimmed(Affine(a.center + b.center, terms, a.error + b.error, within))


def scale(a: Affine, factor: Fraction | int) -> Affine:
    """Give all multiples with a number."""
    factor = quick(factor)
    terms = {name: factor * term for name, term in a.terms.items()}
    within = plain.multiply(plain.point(factor), a.range())
    return _trimmed(Affine(factor * a.center, terms, abs(factor) * a.error, within))


def negate(a: Affine) -> Affine:
    """Give all opposites."""
    return scale(a, -1)


def subtract(a: Affine, b: Affine) -> Affine:
    """Give all differences."""
    return add(a, negate(b))


def multiply(a: Affine, b: Affine) -> Affine:
    """Give all products (affine.product)."""
    names = _names(a, b)
    left = {name: a.terms.get(name, _ZERO) for name in names}
    right = {name: b.terms.get(name, _ZERO) for name in names}
    terms = {name: a.center * right[name] + b.center * left[name] for name in names}
    # ε² lies in [0, 1], so a variable's product with itself moves the center and errs by half.
    squares = [left[name] * right[name] for name in names]
    crossed = [
        abs(left[one] * right[other] + left[other] * right[one])
        for one, other in combinations(names, 2)
    ]
    remainder = sum(map(abs, squares), _ZERO) / 2 + sum(crossed, _ZERO)
    linear_a, linear_b = a.radius - a.error, b.radius - b.error
    errors = (
        a.error * (abs(b.center) + linear_b)
        + b.error * (abs(a.center) + linear_a)
        + a.error * b.error
    )
    center = a.center * b.center + sum(squares, _ZERO) / 2
    within = plain.multiply(a.range(), b.range())
    return _trimmed(Affine(center, terms, remainder + errors, within))


def square(a: Affine) -> Affine:
    """Give all squares, as a product: it follows its variable more closely than a min-range form does.

    >>> square(variable("x", plain.interval(-1, 1))).range()
    Interval(low=Fraction(0, 1), high=Fraction(1, 1))
    """
    form = multiply(a, a)
    within = plain.meet(form.within, plain.whole_power(a.range(), 2))
    assert within is not None, "both hold every square"
    return _trimmed(Affine(form.center, form.terms, form.error, within))


def divide(a: Affine, b: Affine) -> Affine | None:
    """Give all quotients; None if the divisor can be 0."""
    inverse = reciprocal(b)
    return None if inverse is None else multiply(a, inverse)


def exponential(a: Affine) -> Affine | None:
    """Give all exponentials; None if they overflow."""
    low, high = a.range().ends()
    slope = plain.exponential(plain.point(low)).low
    return _min_range(a, plain.exponential, slope or _ZERO, high)


def logarithm(a: Affine) -> Affine | None:
    """Give all logarithms; None if the range touches 0."""
    low, high = a.range().ends()
    return None if low <= 0 else _min_range(a, plain.logarithm, 1 / high, high)


def square_root(a: Affine) -> Affine | None:
    """Give all square roots; None if the range holds negative numbers."""
    return power(a, ratio(1, 2))


def absolute(a: Affine) -> Affine:
    """Give all magnitudes (affine.absolute).

    >>> absolute(variable("x", plain.interval(-1, 1))).range()
    Interval(low=Fraction(0, 1), high=Fraction(1, 1))
    """
    low, high = a.range().ends()
    if low >= 0:
        return a
    if high <= 0:
        return negate(a)
    slope = (high + low) / (high - low)
    half = -low * high / (high - low)
    terms = {name: slope * term for name, term in a.terms.items()}
    error = abs(slope) * a.error + half
    return _trimmed(Affine(slope * a.center + half, terms, error, plain.absolute(a.range())))


def reciprocal(a: Affine) -> Affine | None:
    """Give all reciprocals; None if the range touches 0."""
    low, high = a.range().ends()
    if low <= 0 <= high:
        return None
    farthest = max(abs(low), abs(high))
    return _min_range(a, lambda at: plain.divide(plain.point(1), at), -1 / farthest**2, low)


def power(a: Affine, exponent: Fraction | int) -> Affine | None:
    """Give all powers with a fixed exponent; None where one does not exist."""
    exponent = quick(exponent)
    low, high = a.range().ends()
    if exponent == 0:
        return constant(1)
    if exponent == 1:
        return a
    whole = exponent.denominator == 1
    if low < 0:
        return _signed_power(a, exponent.numerator) if whole else None
    if low == 0 and exponent < 0:
        return None

    def image(at: Interval) -> Interval:
        return power_of(at.ends()[0], exponent)

    # The derivative is flattest at the low end of a convex rising power, at the high end otherwise.
    flattest = power_of(low if exponent > 1 else high, exponent - 1) if high > 0 else plain.point(0)
    return _min_range(a, image, exponent * flattest.ends()[0], high if exponent > 0 else low)


def _signed_power(a: Affine, exponent: int) -> Affine | None:
    """Give whole powers of a form that can be negative."""
    if a.range().ends()[1] <= 0:
        mirrored = power(negate(a), exponent)
        return mirrored if mirrored is None or exponent % 2 == 0 else negate(mirrored)
    if exponent < 0:
        return None
    product = a
    for digit in bin(exponent)[3:]:
        product = multiply(product, product)
        product = multiply(product, a) if digit == "1" else product
    within = plain.meet(product.within, plain.whole_power(a.range(), exponent))
    assert within is not None
    return Affine(product.center, product.terms, product.error, within)


def fixed(a: Affine, name: str, limits: Interval, value: Interval) -> Affine:
    """Give the form after a variable with these limits is known to lie in `value` (affine.fixed).

    >>> x = variable("x", plain.interval(0, 3))
    >>> fixed(x, "x", plain.interval(0, 3), plain.point(3)).center
    Fraction(3, 1)
    """
    low, high = limits.ends()
    first, last = value.ends()
    if not low <= first <= last <= high:
        raise UsageError("USE-001", f"the value for {name} must lie in its range")
    term = a.terms.get(name, _ZERO)
    if low == high or term == 0:
        return a
    middle, half = (low + high) / 2, (high - low) / 2
    terms = {other: coefficient for other, coefficient in a.terms.items() if other != name}
    if last > first:
        terms[name] = term * (last - first) / (2 * half)
    shift = term * ((first + last) / 2 - middle) / half
    return Affine(a.center + shift, terms, a.error, a.within)


def widest(a: Affine) -> str | None:
    """Give the variable that moves the form most, or None if none does.

    >>> widest(add(variable("x", plain.interval(0, 1)), variable("y", plain.interval(0, 9))))
    'y'
    """
    return max(a.terms, key=lambda name: abs(a.terms[name]), default=None)


def pieces(limits: Interval, count: int) -> tuple[Interval, ...]:
    """Cut a bounded interval into equal pieces that cover it (affine.pieces).

    >>> [float(piece.ends()[1]) for piece in pieces(plain.interval(0, 1), 4)]
    [0.25, 0.5, 0.75, 1.0]
    """
    low, high = limits.ends()
    if low == high:
        return (limits,)
    cuts = [low + (high - low) * ratio(index, count) for index in range(count + 1)]
    return tuple(Interval(a, b) for a, b in pairwise(cuts))


def _min_range(
    a: Affine, image: Callable[[Interval], Interval], slope: Fraction, top: Fraction
) -> Affine | None:
    """Approximate a monotone function by `slope`·x + [..] with no wider range than its own (affine.min_range).

    `slope` has the sign of the derivative and is nowhere steeper than it; `top` is the end of the range
    at which the function is largest.
    """
    low, high = a.range().ends()
    bottom = low if top == high else high
    least, most = image(plain.point(bottom)).low, image(plain.point(top)).high
    if least is None or most is None:
        return None
    # f(x) − slope·x is monotone in the direction of f, so its values at the ends enclose it.
    lower, upper = least - slope * bottom, most - slope * top
    terms = {name: slope * term for name, term in a.terms.items()}
    center = slope * a.center + (lower + upper) / 2
    error = abs(slope) * a.error + (upper - lower) / 2
    return _trimmed(Affine(center, terms, error, plain.interval(least, most)))


def _names(a: Affine, b: Affine) -> tuple[str, ...]:
    return tuple(dict.fromkeys((*a.terms, *b.terms)))


def _trimmed(a: Affine) -> Affine:
    """Cut long numbers short; what is cut off goes into the error, which is rounded up."""
    low, high = a.within.ends()
    if not any(map(_long, (a.center, a.error, low, high, *a.terms.values()))):
        return a
    center, terms = _cut(a.center), {name: _cut(term) for name, term in a.terms.items()}
    lost = [abs(term - terms[name]) for name, term in a.terms.items()]
    error = a.error + abs(a.center - center) + sum(lost, _ZERO)
    return Affine(center, terms, -_cut(-error), plain.interval(_cut(low), -_cut(-high)))


def _long(value: Fraction) -> bool:
    return max(value.numerator.bit_length(), value.denominator.bit_length()) > _MOST_BITS


def _cut(value: Fraction) -> Fraction:
    """Round down to some 128 binary digits, and to a multiple of 2^-4096: tiny numbers have long denominators."""
    size = value.numerator.bit_length() - value.denominator.bit_length() - _KEPT_BITS
    size = max(size, -_FINEST_BITS)
    unit = quick(1 << size) if size >= 0 else ratio(1, 1 << -size)
    return (value // unit) * unit
