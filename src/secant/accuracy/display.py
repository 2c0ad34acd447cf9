"""What is shown of a number whose truth has limits: counts not below zero, averages inside their range (noise.shown).

In: numbers as noise and formulas left them, and their ends. Out: numbers and ends moved to where the truth can lie, and
beside them the numbers as noise made them: sums and means of many answers are to be taken of those. Costs nothing, and
reads released numbers only.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from decimal import Decimal

from secant.accuracy.trace import Traced
from secant.noise.intervals import Span, number_of
from secant.plan import nodes as n

Rows = list[tuple[object, ...]]
Ends = list[list["Span | None"]]
Number = int | float | Decimal


def displayed(
    traced: Traced, names: tuple[str, ...], rows: Rows, *several: Ends
) -> tuple[Rows, Rows, tuple[Ends, ...]]:
    """Give the rows to show, the raw ones, and the ends of the shown ones; `rows` have what they carry, too."""
    width = len(traced.outputs)
    expressions = [traced.made.get(output) for output in traced.outputs]
    floors = [s is not None and never_negative(s, traced) for s in expressions]
    limited = [s if s is not None and _limited(s) else None for s in expressions]
    shown: Rows = []
    raw: Rows = []
    for row in rows:
        cells = row[:width]
        carried = dict(zip(names, row, strict=True)) if any(limited) else {}
        shown.append(tuple(_floored(v) if f else v for v, f in zip(cells, floors, strict=True)))
        raw.append(tuple(_raw(v, s, carried) for v, s in zip(cells, limited, strict=True)))
    above_zero = tuple(
        [[_above_zero(x) if f else x for x, f in zip(row, floors, strict=True)] for row in ends]
        for ends in several
    )
    return shown, raw, above_zero


def defined(traced: Traced, rows: Rows, noisy: Sequence[bool]) -> tuple[Rows, tuple[str, ...]]:
    """Show NULL where noise left no number, as below a division by 0, and tell in which outputs that happened."""
    undefined: dict[str, None] = {}
    shown: Rows = []
    for row in rows:
        cells = list(row)
        for index, (value, is_noisy) in enumerate(zip(row, noisy, strict=True)):
            lost = is_noisy and isinstance(value, float) and not math.isfinite(value)
            if lost:
                cells[index] = None
            output = traced.outputs[index]
            if lost or (is_noisy and value is None and _divides(traced.made.get(output))):
                undefined[output] = None
        shown.append(tuple(cells))
    return shown, tuple(undefined)


def _divides(scalar: n.Scalar | None) -> bool:
    return scalar is not None and any(
        isinstance(x, n.Arithmetic) and x.op in ("/", "//", "%") for x in n.walk(scalar)
    )


def _floored(value: object) -> object:
    """Move a number below zero up to it; it keeps its type."""
    number = number_of(value)
    return type(value)(0) if number is not None and number < 0 else value  # type: ignore[call-arg]


def _above_zero(span: Span | None) -> Span | None:
    """Move ends above zero, and keep half of their distance: a limit is not shown as if it were certain."""
    if span is None or span[0] >= 0:
        return span
    return 0.0, max(span[1], (span[1] - span[0]) / 2)


def never_negative(scalar: n.Scalar, traced: Traced) -> bool:
    """Whether the true value of an expression is not below zero, whatever the data."""
    if isinstance(scalar, n.Column):
        if scalar.name in traced.drawn:
            return traced.drawn[scalar.name].sign == 1
        gathered = traced.gathered.get(scalar.name)
        if gathered is None:
            return False
        return gathered.argument is None or never_negative(gathered.argument, traced)
    if isinstance(scalar, n.Literal):
        number = number_of(scalar.value)
        return number is not None and number >= 0
    if isinstance(scalar, n.Attempt) or (isinstance(scalar, n.Cast) and scalar.type.numeric):
        return never_negative(scalar.operand, traced)
    if isinstance(scalar, n.Clamp):
        return never_negative(scalar.low, traced)
    if isinstance(scalar, n.Arithmetic):
        sides = (scalar.left, scalar.right)
        return scalar.op in "+*/" and all(never_negative(s, traced) for s in sides)
    if isinstance(scalar, n.Case):
        values = (*(b.value for b in scalar.branches), scalar.default)
        return all(_is_null(v) or never_negative(v, traced) for v in values)
    if isinstance(scalar, n.Call) and scalar.function == "greatest":
        return any(never_negative(a, traced) for a in scalar.arguments)
    return False


def _is_null(scalar: n.Scalar) -> bool:
    return isinstance(scalar, n.Literal) and scalar.value is None


def _limited(scalar: n.Scalar) -> bool:
    return any(
        isinstance(node, n.Clamp)
        or (isinstance(node, n.Call) and node.function in ("greatest", "least"))
        for node in n.walk(scalar)
    )


def _raw(value: object, scalar: n.Scalar | None, row: Mapping[str, object]) -> object:
    """Give a number without the limits of formulas; the shown one where they cannot be taken off."""
    if scalar is None or number_of(value) is None:
        return value
    unlimited = unlimited_value(scalar, row)
    return value if unlimited is None else unlimited


def unlimited_value(scalar: n.Scalar, row: Mapping[str, object]) -> Number | None:
    """Compute an expression of released numbers without limits; None where it holds anything but arithmetic."""
    if isinstance(scalar, (n.Column, n.Literal)):
        value = row.get(scalar.name) if isinstance(scalar, n.Column) else scalar.value
        numeric = isinstance(value, (int, float, Decimal)) and not isinstance(value, bool)
        return value if numeric else None  # type: ignore[return-value]
    if isinstance(scalar, n.Attempt):
        return unlimited_value(scalar.operand, row)
    if isinstance(scalar, n.Clamp):
        return unlimited_value(scalar.operand, row)
    if isinstance(scalar, n.Cast) and scalar.type.kind == "DOUBLE":
        inner = unlimited_value(scalar.operand, row)
        return None if inner is None else float(inner)
    if isinstance(scalar, n.Call) and scalar.function in ("greatest", "least"):
        first, *limits = scalar.arguments
        if not isinstance(first, n.Column) or len(limits) != 1:
            return None
        number, limit = unlimited_value(first, row), unlimited_value(limits[0], row)
        # A count below a quotient stays 1 at least: there is no quotient by less.
        return None if number is None or limit is None else max(number, 1) if limit else number
    if isinstance(scalar, n.Arithmetic) and scalar.op in "+-*/":
        a, b = unlimited_value(scalar.left, row), unlimited_value(scalar.right, row)
        return None if a is None or b is None else _computed(scalar.op, a, b)
    return None


def _computed(op: str, a: Number, b: Number) -> Number | None:
    if not (isinstance(a, int) and isinstance(b, int)) or op == "/":
        a, b = float(a), float(b)
    if op == "/":
        return a / b if b else None
    return a + b if op == "+" else a - b if op == "-" else a * b
