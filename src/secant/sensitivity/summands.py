"""What one row more or less is worth to a measure, read off what the plan itself clamps.

In: an aggregate call, and how many rows and groups of its input differ. Out: a bound in whole steps, with the rule
that gives it. Never here: how many rows differ; that is what analyses find out, and all of them price rows here.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

from secant.plan import nodes as n
from secant.plan.facts.facts import Facts
from secant.plan.facts.keys import distinguishing_columns
from secant.plan.facts.ownership import Ownership, Ownerships
from secant.plan.facts.ranges import NOTHING_DECLARED, Ranges
from secant.plan.rewrites.measures import STEPS_OF_A_MOVE
from secant.plan.show import show_scalar
from secant.plural import several
from secant.sensitivity.certificate import CannotBound


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
        return "stability.count", Fraction(changed), f"{several(changed, 'row')}, 1 each"
    assert call.argument is not None
    if call.function == "count" and call.distinct:
        if owned is not None and is_owner(call.argument, *owned):
            return (
                "stability.count_units",
                Fraction(groups),
                f"a unit counts once in {_each_of(groups)}",
            )
        return (
            "stability.count_distinct",
            Fraction(changed),
            f"{several(changed, 'row')}, 1 value each",
        )
    if call.function == "count":
        return "stability.count", Fraction(changed), f"{several(changed, 'row')}, 1 each"
    if call.function == "array_agg":
        description = (
            f"{several(changed, 'row')}, {amount(STEPS_OF_A_MOVE * step)} each, as declared"
        )
        return "stability.moves", Fraction(changed * STEPS_OF_A_MOVE), description
    high, low = ends_of_row(call, step)
    units = max(high, -low)
    rule = "stability.sum_distinct" if call.distinct else "stability.sum"
    description = (
        f"{several(changed, 'row')}, {amount(units * step)} each ({_clamps(call.argument)})"
    )
    return rule, Fraction(changed * units), description


def replaced_bound(
    call: n.Aggregation, once: int, fixed: bool, step: Fraction
) -> tuple[str, Fraction, str]:
    """Bound |change| without keys, in whole steps, where up to `once` rows go and up to `once` others come.

    Rests on stability.replace.

    `fixed` promises that as many rows come as go.
    """
    if call.function == "count":
        if fixed and call.argument is None:
            return "stability.count", Fraction(0), "as many rows come as go"
        rule = "stability.count_distinct" if call.distinct else "stability.count"
        return rule, Fraction(once), f"{_go(once)}, {once:,} {'comes' if once == 1 else 'come'}"
    if call.function == "array_agg":
        return measure_bound(call, 2 * once, 1, None, step)
    high, low = ends_of_row(call, step)
    rule = "stability.sum_distinct" if call.distinct else "stability.sum"
    ends = f"{amount(low * step)} to {amount(high * step)} each"
    return (
        rule,
        once * (high - low),
        f"{_go(once)}, {once:,} {'comes' if once == 1 else 'come'}, {ends}",
    )


def ends_of_row(call: n.Aggregation, step: Fraction) -> tuple[Fraction, Fraction]:
    """Give the most and the least that one row adds, nothing among them, in whole steps rounded outward."""
    if call.function == "count":
        return Fraction(1), Fraction(0)
    if call.function != "sum":
        raise CannotBound(
            "stability.unknown", call, f"{call.function} has no rule", "use count or sum"
        )
    assert call.argument is not None
    interval = Ranges(NOTHING_DECLARED).of(call.argument)  # only what the plan itself clamps counts
    if not interval.bounded:
        raise CannotBound("stability.sum", call, "the summand is not clamped", "declare a range")
    # the plan may sum whole multiples of the step
    unit = Fraction(1) if isinstance(call.argument, n.Quantize) else step
    low, high = (min(Fraction(0), *interval.ends()), max(Fraction(0), *interval.ends()))
    return -Fraction(-high // unit), Fraction(low // unit)


def whole_range(call: n.Aggregation, step: Fraction) -> Fraction:
    """Give how far the least or greatest of any rows is from that of any others, no rows among them, in whole steps."""
    high, low = ends_of_row(replace(call, function="sum"), step)
    return high - low


def is_owner(argument: n.Scalar | None, ownerships: Ownerships, owned: Ownership) -> bool:
    """Whether an argument is the id of the one unit that a row belongs to."""
    return isinstance(argument, n.Column) and argument.name in unit_columns(ownerships, owned)


def owned_by_one(
    argument: n.Scalar | None, facts: Facts, ownerships: Ownerships, owned: Ownership
) -> bool:
    """Whether a value belongs to one unit if keys hold: the unit's id, or a key that leads to the unit."""
    if not isinstance(argument, n.Column) or not owned.local:
        return False
    for term in owned.terms:
        table, key = term.via.rsplit(".", 1)
        if term.column == argument.name and (
            term.via == ownerships.paths.unit or any(k.columns == (key,) for k in facts.keys(table))
        ):
            return True
    return False


def unit_columns(ownerships: Ownerships, owned: Ownership) -> frozenset[str]:
    """Give the columns that hold the id of the one unit that a row belongs to."""
    if not owned.local:
        return frozenset()
    return frozenset(t.column for t in owned.terms if t.via == ownerships.paths.unit)


def one_a_group(aggregate: n.Aggregate, units: frozenset[str]) -> bool:
    """Whether a unit has at most one row in each group: unit and keys tell all rows apart (stability.length)."""
    keys = {k.expression.name for k in aggregate.keys if isinstance(k.expression, n.Column)}
    apart = distinguishing_columns(aggregate.input)
    return apart is not None and bool(units) and any(apart <= keys | {u} for u in units)


def _clamps(argument: n.Scalar) -> str:
    held = n.holds(argument, n.Clamp)
    ends = [(x.low, x.high) for x in n.walk(argument) if isinstance(x, n.Clamp)] if held else []
    intervals = dict.fromkeys(f"[{show_scalar(low)}, {show_scalar(high)}]" for low, high in ends)
    return f"clamped to {' and '.join(intervals)}" if intervals else "as clamped"


def _each_of(groups: int) -> str:
    return "1 group" if groups == 1 else f"each of {groups:,} groups"


def _go(rows: int) -> str:
    return "1 row goes" if rows == 1 else f"{rows:,} rows go"


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


def shortened(text: str, width: int) -> str:
    """Cut a long text for a derivation."""
    return text if len(text) <= width else text[: width - 3] + "..."
