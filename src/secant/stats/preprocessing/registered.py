"""Ordered functions of a user's own: tried, believed by name, never proved.

In: a function of sorted values that its author claims to be ordered. Out: the function with the claim as a named
assumption, or a refusal when a random try refutes it. Trying uses made-up numbers only, never data.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np

from secant.errors import UsageError, public_api
from secant.numeric.parameters import count_of
from secant.records import frozen
from secant.stats.inputs import Values
from secant.stats.preprocessing.ordered import Called
from secant.stats.preprocessing.ordered_statistics import CERTAIN, closed_in
from secant.stats.preprocessing.subsets import called
from secant.stats.preprocessing.units import LARGEST, ONE, Units
from secant.stats.promises import Finding

LARGEST_CALLED = 1500
"""More than a million windows are not visited by calling Python."""
_SLACK = 1e-9  # a function that is ordered but for its own rounding is not refused


@frozen
class OrderedFunction:
    """A function of sorted values with the claim that it is ordered. Made by `register_ordered`."""

    name: str
    function: Callable[[Values], float]
    trials: int

    @property
    def assumption(self) -> str:
        """Name what the promise rests on beyond proof."""
        return f"{self.name} is ordered (claimed; {self.trials} random tries did not refute it)"

    @property
    def certain_when(self) -> str:
        """Say on which databases g = f is certain."""
        return CERTAIN["trimmed mean"]

    def exactly(self, numbers: list[int], unit: Fraction) -> Fraction:
        """Give the function of sorted values, as the rational that its float is."""
        values = np.array([float(number * unit) for number in numbers])
        return Fraction(called(self.function, values))


@public_api
def register_ordered(
    name: str, function: Callable[[Values], float], *, trials: int = 2000
) -> OrderedFunction:
    """Try to refute that a function is ordered; what survives can be given to `bounded`.

    Ordered: putting a larger value in place of a smaller one never makes the result smaller. The
    function gets a sorted numpy array of one or more values and gives a finite number.

    >>> midrange = register_ordered("midrange", lambda x: (x[0] + x[-1]) / 2)
    >>> midrange.assumption
    'midrange is ordered (claimed; 2000 random tries did not refute it)'
    """
    if not isinstance(name, str) or not name.isidentifier():
        raise UsageError("USE-001", "a name is a word of letters, digits and underscores")
    if not callable(function):
        raise UsageError("USE-001", "an ordered function must be callable")
    tries, generator = count_of(trials, "trials"), np.random.default_rng()
    for _ in range(tries):
        lower, upper = _exchange(generator)
        before, after = called(function, lower.copy()), called(function, upper.copy())
        if before > after + _SLACK * (1 + abs(before) + abs(after)):
            raise UsageError(
                "USE-001",
                f"{name} is not ordered: a larger value made it smaller",
                details=(f"{before:.6g} for {lower.tolist()}", f"{after:.6g} for {upper.tolist()}"),
                hint="Use the general construction: pass the function itself.",
            )
        if called(function, lower.copy()) != before:
            raise UsageError("USE-001", f"{name} gives different results for the same values")
    return OrderedFunction(name, function, tries)


def registered_finding(statistic: OrderedFunction, values: Values, units: Units) -> Finding:
    """Give g of sorted values for a user's ordered function."""
    if not values.size:
        return Finding(
            units.empty, float(units.empty), 0.0, True, "there are no values", "preprocess.subsets"
        )
    if values.size > LARGEST_CALLED:
        raise UsageError(
            "USE-001",
            f"with more than {LARGEST_CALLED} values this would not end: the function is called on very many windows",
            hint="Use a statistic by name, or a random part of the data.",
        )
    cap, empty, delta = LARGEST * ONE, float(units.empty), float(units.delta)

    def steps(window: Values) -> int:
        result = (called(statistic.function, window) - empty) / delta * ONE
        return round(max(min(result, cap), -cap))

    target = called(statistic.function, values.copy())
    return closed_in(Called(values, steps), units, target, (math.inf, ""))


def _exchange(generator: np.random.Generator) -> tuple[Values, Values]:
    """Make up sorted values, and the same with one of them made larger."""
    count = int(generator.integers(1, 13))
    shapes = (
        generator.normal(size=count),
        generator.integers(-3, 4, count).astype(np.float64),
        generator.standard_cauchy(count),
        np.where(generator.random(count) < 0.5, 0.0, 10.0),
    )
    lower = shapes[int(generator.integers(len(shapes)))]
    upper = lower.copy()
    upper[int(generator.integers(count))] += float(generator.choice([0.0, 0.01, 1.0, 5.0, 1000.0]))
    return np.sort(lower), np.sort(upper)
