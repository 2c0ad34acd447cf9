"""Numbers and values as a person reads them, and as a program does.

In: exact values. Out: text, or plain JSON values. What was spent is rounded up, what remains is
rounded down (I4); a released number is shown to the digits that its error leaves meaningful.
"""

from __future__ import annotations

import datetime
import math
from collections.abc import Mapping, Sequence
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Decimal, localcontext
from fractions import Fraction

SHOWN_DIGITS = 6


def spent_text(value: Fraction | float) -> str:
    """Print an amount that was spent, or that a guarantee names: never less than it is."""
    return _amount(value, ROUND_CEILING)


def remaining_text(value: Fraction | float) -> str:
    """Print an amount that is left: never more than it is."""
    return _amount(value, ROUND_FLOOR)


def _amount(value: Fraction | float, rounding: str) -> str:
    # A float is meant as it prints: 1e-8 is not the binary number a little above it.
    exact = Fraction(repr(value)) if isinstance(value, float) else Fraction(value)
    with localcontext() as context:
        context.prec, context.rounding = SHOWN_DIGITS, rounding
        shown = Decimal(exact.numerator) / Decimal(exact.denominator)
    return _plain(shown.normalize())


def _plain(value: Decimal) -> str:
    return f"{value:f}" if value == 0 or -6 < value.adjusted() < 15 else f"{value:e}"


def value_text(value: object, error: object = None) -> str:
    """Print one released value, with its digits cut where the error drowns them."""
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (datetime.date, datetime.time)):
        return value.isoformat()
    if isinstance(value, (int, float, Decimal, Fraction)):
        return _number(value, error)
    # A text may hold control characters that a terminal would obey.
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in str(value))


def _number(value: float | Decimal | Fraction, error: object) -> str:
    exact = _decimal(value)
    if not exact.is_finite():
        return str(exact)
    noise = _finite(error)
    if noise and not isinstance(value, int):
        exact = _cut(exact, noise.adjusted() - 1, ROUND_HALF_EVEN)  # two digits of the error
    elif isinstance(value, (float, Fraction)):
        exact = Decimal(f"{float(exact):.10g}")
    return _grouped(exact)


def error_text(error: object) -> str:
    """Print an error to two digits, rounded up."""
    noise = _finite(error)
    if noise is None:
        return "error not known"
    if noise == 0:
        return "exact"
    return f"±{_grouped(_cut(noise, noise.adjusted() - 1, ROUND_CEILING))}"


def ends_text(value: object, low: object, high: object, noise: object) -> str:
    """Print two ends as one error where they lie evenly; else the ends that there are, and the noise apart."""
    center, below, above = (_as_decimal(x) for x in (value, low, high))
    if center is not None and below is not None and above is not None:
        down, up = center - below, above - center
        if abs(up - down) * 20 <= up + down:
            return error_text(max(up, down))
    if below is None:
        shown = "" if above is None else f"≤ {value_text(high, noise)}"
    elif above is None:
        shown = f"≥ {value_text(low, noise)}"
    else:
        shown = f"{value_text(low, noise)} to {value_text(high, noise)}"
    apart = "" if _finite(noise) is None else f"noise {error_text(noise)}"
    return ", ".join(x for x in (shown, apart) if x) or error_text(None)


def _as_decimal(value: object) -> Decimal | None:
    numeric = isinstance(value, (int, float, Decimal, Fraction)) and not isinstance(value, bool)
    return _decimal(value) if numeric else None  # type: ignore[arg-type]


def _cut(value: Decimal, exponent: int, rounding: str) -> Decimal:
    """Cut digits right of the point only: a whole number keeps all its digits."""
    with localcontext() as context:
        context.prec = 1000  # wider than any float; the digits are cut by the exponent alone
        return value.quantize(Decimal((0, (1,), min(exponent, 0))), rounding)


def _grouped(value: Decimal) -> str:
    return f"{value:,f}" if value == 0 or -7 < value.adjusted() < 21 else f"{value:.6e}"


def _finite(error: object) -> Decimal | None:
    if isinstance(error, bool) or not isinstance(error, (int, float, Decimal, Fraction)):
        return None
    noise = abs(_decimal(error))
    return noise if noise.is_finite() else None


def _decimal(value: float | Decimal | Fraction) -> Decimal:
    if isinstance(value, Fraction):
        with localcontext() as context:
            context.prec = 28
            return Decimal(value.numerator) / Decimal(value.denominator)
    return Decimal(repr(value)) if isinstance(value, float) else Decimal(value)


def plain(value: object) -> object:
    """Give a value as JSON can carry it."""
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, Decimal) and not value.is_finite():
        return str(value)
    if isinstance(value, (Decimal, Fraction)):
        return int(value) if value == int(value) else float(value)
    if isinstance(value, (datetime.date, datetime.time)):
        return value.isoformat()
    if isinstance(value, Mapping):
        return {str(key): plain(entry) for key, entry in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, (bytes, bytearray)):
        return [plain(entry) for entry in value]
    return str(value)
