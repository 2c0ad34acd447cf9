"""Parameters as they must be before anything happens: exact, finite, in range.

In: what a caller typed. Out: exact rationals. A float is taken for exactly what it is; nothing is
rounded here, and nothing is read from data.
"""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from numbers import Rational, Real

from secant.errors import UsageError
from secant.numeric.quick import quick, ratio

Number = int | float | Decimal | Fraction | str

# Outside this range a parameter is a slip of the pen, and exact arithmetic would be slow on it.
_SMALLEST = Fraction(1, 1 << 512)
_LARGEST = Fraction(1 << 512)
EPSILON_SMALLEST = Fraction(1, 10**12)
EPSILON_LARGEST = Fraction(10**6)
_MOST_BITS = 6000
_EXAMPLES = {
    "USE-002": "write a number such as 0.5; smaller hides more",
    "USE-003": "write a number such as 1e-6, or 0",
    "USE-004": "write 0.95 for 95 %",
}


def exact(value: object, what: str, code: str = "USE-001") -> Fraction:
    """Give the number that `value` denotes, unrounded; a float is the binary number that it is."""
    try:
        number = _fraction(value)
    except (ValueError, ArithmeticError):
        number = None
    if number is None:
        raise UsageError(code, f"{what} must be a finite number", hint=_EXAMPLES.get(code, ""))
    # What cannot be written as text and read again must not enter a ledger.
    if max(abs(number.numerator), number.denominator).bit_length() > _MOST_BITS:
        raise UsageError(code, f"{what} is out of range")
    return number


def _fraction(value: object) -> Fraction | None:
    if isinstance(value, Fraction):
        return quick(value)
    if isinstance(value, bool):
        return None
    if isinstance(value, Rational):
        return ratio(int(value.numerator), int(value.denominator))
    if isinstance(value, str) and "/" not in value:
        value = Decimal(value)
    if isinstance(value, Decimal) and value.is_finite() and abs(value.adjusted()) >= _MOST_BITS:
        return Fraction(1 << (_MOST_BITS + 1))  # out of range; its digits would fill the memory
    if isinstance(value, (str, float, Decimal)):
        return quick(Fraction(value))
    if isinstance(value, Real) and hasattr(value, "as_integer_ratio"):  # numpy's other floats
        return ratio(*map(int, value.as_integer_ratio()))
    return None


def positive(value: Number, name: str) -> Fraction:
    """Give a positive number of sane magnitude as an exact rational."""
    number = exact(value, name)
    if not number > 0:
        raise UsageError("USE-001", f"{name} must be positive")
    if not _SMALLEST <= number <= _LARGEST:
        raise UsageError("USE-001", f"{name} is out of range")
    return number


def epsilon_of(value: Number, name: str = "epsilon") -> Fraction:
    """Give ε as an exact rational between 1e-12 and 1e6."""
    number = exact(value, name, "USE-002")
    if not EPSILON_SMALLEST <= number <= EPSILON_LARGEST:
        hint = _EXAMPLES["USE-002"]
        raise UsageError("USE-002", f"{name} must lie between 1e-12 and 1e6", hint=hint)
    return number


def delta_of(value: Number, *, positive: bool = False) -> Fraction:
    """Give δ as an exact rational in [0, 1), or in (0, 1) where a mechanism needs it."""
    number = exact(value, "delta", "USE-003")
    if not 0 <= number < 1:
        hint = _EXAMPLES["USE-003"]
        raise UsageError("USE-003", "delta must be at least 0 and less than 1", hint=hint)
    if positive and number < _SMALLEST:
        raise UsageError("USE-003", "this mechanism needs a positive delta")
    return number


def level_of(value: Number) -> Fraction:
    """Give a confidence level strictly between 0 and 1 as an exact rational."""
    number = exact(value, "level", "USE-004")
    if not 0 < number < 1:
        hint = _EXAMPLES["USE-004"]
        raise UsageError("USE-004", "a level must lie strictly between 0 and 1", hint=hint)
    return number


def count_of(value: int, name: str) -> int:
    """Give a whole number that is at least one."""
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise UsageError("USE-001", f"{name} must be a whole number of at least 1")
    return value
