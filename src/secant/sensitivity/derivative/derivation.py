"""Why a measure of protected values moves no faster than is said: a step for each rule that did the work.

In: a measure, the calculus that bounded its summand, and what one row moves. Out: the last step of a derivation, which
rests on the others. Nothing is bounded here: the numbers are those that the calculus has found.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from fractions import Fraction

from secant.numeric import interval as iv
from secant.plan import nodes as n
from secant.plan.rewrites.measures import Measure
from secant.plan.show import show_scalar
from secant.sensitivity.certificate import Step
from secant.sensitivity.derivative.calculus import Bound, Calculus
from secant.sensitivity.derivative.lookups import Gathering
from secant.sensitivity.derivative.space import Key, Variable

LONGEST = 200
"""Characters of an expression that are shown."""
NOT_SHOWN = (n.Cast, n.Attempt)
"""Nodes that have the value of their operand: a step of their own would repeat its step."""


def derivation_of(
    measure: Measure,
    calculus: Calculus,
    gatherings: Mapping[str, Gathering],
    caps: Mapping[str, Fraction | None],
    cap: Fraction | None,
    factor: Fraction,
    value: n.Scalar,
) -> Step:
    """Give the step that bounds a measure, resting on those that bound its summand and its rows."""
    bound = calculus.of(value)
    unit = measure.step * factor
    summand = tuple(_steps(calculus, value, {}))
    gathered = []
    for role, most in caps.items():
        names = ", ".join(sorted(_columns_of(bound, role)))
        how = (
            "each row stands in one joined row"
            if gatherings[role].single
            else "joined rows of one row are added up"
        )
        motion = "by data" if most is None else f"at most {_number(most * unit)}"
        gathered.append(
            Step(
                "derivative.gather",
                f"{role} ({names}): {how}",
                f"moves {motion} per unit of distance",
                summand,
            )
        )
    rates = Step(
        "derivative.rates",
        "rates of all factors are scaled together",
        "the bound varies as slowly as the noise asks",
        summand,
    )
    motion = "no public limit" if cap is None else f"at most {_number(cap * measure.step)}"
    return Step(
        "derivative.smooth",
        f"{measure.words} as {_short(value)}",
        f"a smooth bound from the data, {motion} per unit of distance",
        (*gathered, rates),
    )


def _steps(calculus: Calculus, scalar: n.Scalar, steps: dict[n.Node, Step]) -> Iterator[Step]:
    """Give the steps of the outermost parts of an expression that move and were bounded."""
    rule = calculus.rules.get(scalar)
    if rule is None or isinstance(scalar, NOT_SHOWN):
        yield from _below(calculus, scalar, steps)
        return
    if scalar not in steps:
        premises = {
            id(step): step for step in _below(calculus, scalar, steps)
        }  # x*x rests on x once
        value = _moves(calculus, calculus.of(scalar))
        steps[scalar] = Step(rule, _short(scalar), value, tuple(premises.values()))
    yield steps[scalar]


def _below(calculus: Calculus, scalar: n.Scalar, steps: dict[n.Node, Step]) -> Iterator[Step]:
    for child in n.children(scalar):
        inner = child.value if isinstance(child, n.Branch) else child
        if isinstance(inner, n.Scalar):
            yield from _steps(calculus, inner, steps)


def _moves(calculus: Calculus, bound: Bound) -> str:
    finite = {role: magnitude for role, magnitude in bound.reach.items() if magnitude is not None}
    value = "by data"
    if len(finite) == len(bound.reach):
        value = f"at most {_number(calculus.space.reach(finite))}"
    return f"{_between(bound.range)}moves {value} per unit of distance"


def _between(range_: iv.Interval) -> str:
    if range_.low is None or range_.high is None:
        return ""
    return f"between {_number(range_.low)} and {_number(range_.high)}, "


def _number(value: Fraction) -> str:
    try:
        return f"{float(value):.6g}"
    except OverflowError:
        return "no number that floats hold"


def _short(scalar: n.Scalar) -> str:
    shown = show_scalar(scalar)
    return shown if len(shown) <= LONGEST else shown[: LONGEST - 3] + "..."


def _columns_of(bound: Bound, role: str) -> Iterable[str]:
    for key in bound.slopes:
        if key.role == role:
            yield from columns_named(key)


def columns_named(key: Key) -> Iterable[str]:
    """Give the columns that a variable or a block stands for."""
    return (key.column,) if isinstance(key, Variable) else key.columns
