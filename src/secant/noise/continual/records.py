"""What goes into a stream's mechanism and what comes out of it.

In: public facts, declared before anything is read. Out: the records that the rest of the analysis shares: outputs to be
released, estimates with their errors, points of a series. Nothing here draws or computes noise.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fractions import Fraction
from math import isqrt
from typing import Literal

from secant.errors import UsageError
from secant.numeric.parameters import count_of, delta_of, epsilon_of
from secant.records import frozen

Objective = Literal["mean", "largest"]
Shows = Literal["running", "steps"] | int


@frozen
class StreamFacts:
    """What is publicly known of a stream before its first step."""

    horizon: int | None
    """How many steps there will be; None if it is open."""
    epsilon: Fraction
    delta: Fraction
    """Zero: pure noise only."""
    bound: int
    """How far one protected thing moves the whole sums of all steps together (the sum of sizes, over all groups), in
    whole steps of the measure. With `window`: how far it moves the sums of one step."""
    squared: int | None = None
    """The same as a squared length, over all numbers: all steps and groups; None if only the sum is known. With
    `window`: over the groups of one step."""
    times: int | None = None
    """At how many steps it can appear in one group; None if at any number."""
    window: int | None = None
    """The w of w-event privacy: whatever lies within w steps in a row is protected. None: everything is."""
    each: int | None = None
    """How far it moves one number, of one step and one group, where that is less than `bound`."""
    shows: Shows = "running"
    """What is read off: running totals, single steps, or sums of so many last steps."""
    objective: Objective = "mean"
    """Whether the mean or the largest error over all steps counts."""

    def __post_init__(self) -> None:
        epsilon_of(self.epsilon)
        delta_of(self.delta)
        count_of(self.bound, "the bound of a stream")
        for value, name in (
            (self.horizon, "the number of steps"),
            (self.squared, "the squared bound"),
            (self.times, "the number of times"),
            (self.window, "the protected window"),
            (self.each, "the bound of a step"),
        ):
            if value is not None:
                count_of(value, name)
        if self.shows not in ("running", "steps"):
            count_of(self.shows, "the number of last steps")  # type: ignore[arg-type]
        if self.objective not in ("mean", "largest"):
            raise UsageError("USE-001", "the objective is mean or largest")

    @property
    def moved(self) -> Change:
        """How far all steps move together (continual.window)."""
        times = self.times
        if self.window is None:
            size, squared, each = self.bound, self.squared or self.bound**2, self.each or self.bound
        else:
            times = min(times or self.window, self.window)
            size, each = times * self.bound, min(self.each or self.bound, self.bound)
            squared = times * (self.squared or self.bound**2)
        squared = min(squared, size**2)
        # one number moves by no more than the whole vector is long
        return Change(size, squared, min(each, isqrt(squared)), times)


@frozen
class Change:
    """How far one protected thing moves the numbers of a stream: of all steps and groups."""

    size: int
    """The sum of sizes."""
    squared: int
    """The squared length, at least 1."""
    each: int
    """The size of any one number."""
    times: int | None
    """The number of steps, in any one group."""

    def within(self, steps: int | None) -> int | None:
        """Give at how many of so many steps it can appear; None if there is no end."""
        limits = [n for n in (self.times, self.size, steps) if n is not None]
        return min(limits) if limits else None


@frozen
class Output:
    """A whole number that is released once, when its last step is complete: a weighted sum of steps."""

    name: str
    """Unique within its way, for ever."""
    first: int
    last: int
    coefficients: tuple[int, ...] | None = None
    """The weight of the last step, of the one before, and so on; None if all steps count once."""

    @property
    def weights(self) -> Iterator[tuple[int, int]]:
        """Go through the steps that count, with their weights."""
        for step in range(self.first, self.last + 1):
            weight = 1 if self.coefficients is None else self.coefficients[self.last - step]
            if weight:
                yield step, weight

    def of(self, sums: Mapping[int, int]) -> int:
        """Give the exact number, from the exact sums of the steps; a step that is not there counts 0."""
        return sum(weight * sums.get(step, 0) for step, weight in self.weights)


@frozen
class Estimate:
    """A number of a series, and how far it may be from the truth because of noise."""

    value: float
    deviation: float
    """The standard error."""
    low: float
    """At the level that was asked for, by the law of the noise (continual.ends)."""
    high: float


@frozen
class Point:
    """A step of a series."""

    step: int
    increment: Estimate
    """What the step itself adds."""
    prefix: Estimate
    """The running total."""
    window: Estimate | None
    """The sum of the last steps, where these are what is shown."""
