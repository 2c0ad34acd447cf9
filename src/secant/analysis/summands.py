"""What one row more or less is worth to a measure, read off what the plan itself clamps.

In: an aggregate call, and how many rows and groups of its input differ. Out: a bound in whole steps, with the rule
that gives it. Never here: how many rows differ; that is what rooms find out, and all of them price rows here.
"""

from __future__ import annotations

from fractions import Fraction

from secant.analysis.certificate import CannotBound
from secant.plan import nodes as n
from secant.plan.ownership import Ownership, Ownerships
from secant.plan.ranges import NOTHING_DECLARED, Ranges
from secant.plan.show import show_scalar


def each_row(call: n.Aggregation, step: Fraction) -> Fraction:
    """Give how many whole steps a measure moves for each row that differs, at most."""
    return measure_bound(call, 1, 1, None, step)[1]


def measure_bound(
    call: n.Aggregation,
    changed: int,
    groups: int,
    owned: tuple[Ownerships, Ownership] | None,
    step: Fraction,
) -> tuple[str, Fraction, str]:
    """Bound the sum over all groups of |change|, in whole steps."""
    if call.function == "count" and call.argument is None:
        return "G-COUNT", Fraction(changed), f"{changed} rows, 1 each"
    assert call.argument is not None
    if call.function == "count" and call.distinct:
        if owned is not None and is_owner(call.argument, *owned):
            return (
                "G-COUNT-UNITS",
                Fraction(groups),
                f"a unit counts once in each of {groups} groups",
            )
        return "G-COUNT-DISTINCT", Fraction(changed), f"{changed} rows, 1 value each"
    if call.function == "count":
        return "G-COUNT", Fraction(changed), f"{changed} rows, 1 each"
    if call.function != "sum":
        raise CannotBound("G-UNKNOWN", call, f"{call.function} has no rule", "use count or sum")
    found = Ranges(NOTHING_DECLARED).of(call.argument)  # only what the plan itself clamps counts
    if not found.bounded:
        raise CannotBound("G-SUM", call, "the summand is not clamped", "declare a range")
    largest = max(abs(end) for end in found.ends())
    if _is_scaled(call.argument):
        largest *= step  # the plan sums whole multiples of the step
    units = -((-largest) // step)
    rule = "G-SUM-DISTINCT" if call.distinct else "G-SUM"
    words = f"{changed} rows, {amount(units * step)} each ({_clamps(call.argument)})"
    return rule, Fraction(changed * units), words


def is_owner(argument: n.Scalar | None, ownerships: Ownerships, owned: Ownership) -> bool:
    """Whether an argument is the id of the one unit that a row belongs to."""
    return (
        isinstance(argument, n.Column)
        and owned.local
        and any(t.via == ownerships.paths.unit and t.column == argument.name for t in owned.terms)
    )


def _is_scaled(argument: n.Scalar) -> bool:
    """Whether the summand is a whole multiple of the step rather than the value itself."""
    return isinstance(argument, n.Clamp) and isinstance(argument.operand, n.Cast)


def _clamps(argument: n.Scalar) -> str:
    inner = next(
        (x for x in n.walk(argument) if isinstance(x, n.Clamp) and not _is_scaled(x)), None
    )
    if inner is None:
        return "as clamped"
    return f"clamped to [{show_scalar(inner.low)}, {show_scalar(inner.high)}]"


def amount(value: Fraction) -> str:
    """Write a number for people: exactly if it is whole."""
    return str(value.numerator) if value.denominator == 1 else f"{float(value):.6g}"


def never_negative(call: n.Aggregation) -> bool:
    """Whether no row takes anything away, so that a lower limit never gives more."""
    if call.function == "count":
        return True
    assert call.argument is not None
    least = Ranges(NOTHING_DECLARED).of(call.argument).low
    return least is not None and least >= 0


def rows_differ(number: int) -> str:
    """Say how many rows differ."""
    return "1 row differs" if number == 1 else f"{number} rows differ"
