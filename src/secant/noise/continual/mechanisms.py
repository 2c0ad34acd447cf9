"""A way to release a stream: which sums are released when, with which noise, and what series follows from them.

In: public facts, exact sums at the draw, released numbers afterwards. Out: outputs that are due, noisy numbers, points
with errors. A way is a record of public numbers that is kept beside the stream: it needs nothing secret to be taken up
again. A number must be drawn once only; whoever calls `draw` keeps what it gave.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fractions import Fraction
from functools import lru_cache
from typing import Any, Literal

from secant.errors import InternalError, UsageError
from secant.noise.continual.encoder import Encoder
from secant.noise.continual.ends import (
    LEVEL,
    Kind,
    ends_level,
    half_widths,
    normal_half_widths,
    variance_of,
)
from secant.noise.continual.levels import Tree
from secant.noise.continual.records import Estimate, Output, Point, StreamFacts
from secant.noise.events import ConcentratedEvent, Event, PureEvent
from secant.noise.mechanisms.whole import WholeLaplace, WholeLaw, WholeNormal, multiplier, root_up
from secant.numeric.arrays import Floats, Wholes, np
from secant.records import frozen

Design = Tree | Encoder
LawName = Literal["laplace", "normal", "none"]
"""`none` is for what nothing protected moves: it is public, and given step by step as it is."""
GROWTH = 10
"""Without a horizon each epoch is so many times as long as the one before; the first has so many steps."""
FORMAT = 1
LAWS = ("laplace", "normal", "none")
STEPS_ALONE = Tree(2, 1)
"""The design of plain increments."""


@frozen
class Stretch:
    """Steps that have a design of their own: all of a stream, or an epoch of it."""

    start: int
    """How many steps lie before it."""
    length: int | None
    design: Design
    noise: WholeLaw
    """Of each output, in whole steps."""


@frozen
class Mechanism:
    """A way to release a stream; what is public of it, and all of it is."""

    name: str
    """increments, tree, toeplitz or binary."""
    law: LawName
    facts: StreamFacts
    designs: tuple[Design, ...]
    """One for all steps, or one for each of the first epochs; later epochs have trees of ten branches."""

    def __post_init__(self) -> None:
        if self.law == "normal" and not self.facts.delta:
            raise UsageError("USE-003", "normal noise needs a positive delta")
        if self.law == "none" and self.designs != (STEPS_ALONE,):
            raise UsageError("USE-001", "what is public is given step by step")
        if not self.designs or (len(self.designs) > 1 and not self.epochs):
            raise UsageError("USE-001", "a stream without epochs has one design")
        for k, design in enumerate(self.designs):
            steps = GROWTH ** (k + 1) if self.epochs else self.facts.horizon
            if isinstance(design, Encoder) and design.length != steps:
                raise UsageError("USE-001", "an encoder is as long as the steps that it is for")

    @property
    def epochs(self) -> bool:
        """Whether the steps are cut into epochs."""
        return in_epochs(self.facts) and self.law != "none"

    @property
    def cost(self) -> Event:
        """What all outputs together cost, for ever."""
        if self.law == "none":
            raise InternalError("BUG-001", "what nothing moves is not paid for")
        if self.law == "laplace":
            return PureEvent(self.facts.epsilon)
        wide = multiplier(self.facts.epsilon, self.facts.delta)
        return ConcentratedEvent(1 / (2 * wide**2), self.facts.epsilon, self.facts.delta)

    def stretches(self) -> Iterator[Stretch]:
        """Go through the stretches; without a horizon there is no end of epochs."""
        if not self.epochs:
            (design,) = self.designs
            yield Stretch(0, self.facts.horizon, design, noise_of(self.facts, self.law, design))
            return
        start, length, k = 0, GROWTH, 0
        while True:
            design = self.designs[k] if k < len(self.designs) else Tree(GROWTH, k + 2)
            yield Stretch(start, length, design, noise_of(self.facts, self.law, design))
            start, length, k = start + length, length * GROWTH, k + 1

    def stretch(self, step: int) -> Stretch:
        """Give the stretch that a step lies in."""
        if step < 1:
            raise UsageError("USE-001", "steps are counted from 1")
        for found in self.stretches():
            if found.length is None or step <= found.start + found.length:
                return found
        raise UsageError(
            "USE-001",
            f"this stream has {self.facts.horizon} steps, and they are over",
            hint="declare a new stream for what comes after",
        )

    def due(self, step: int) -> tuple[Output, ...]:
        """Give the outputs that may be released when a step (from 1) is complete, each of them once."""
        found = self.stretch(step)
        return tuple(found.design.due(step - found.start, found.start))

    def open_since(self, step: int) -> int:
        """Give the first step that outputs after `step` may still add up."""
        found = self.stretch(step)
        if found.start + (found.length or step + 1) == step:
            return step + 1
        if isinstance(found.design, Encoder):
            return found.start + 1
        top = found.design.block(found.design.levels - 1)
        return found.start + (step - found.start) // top * top + 1

    def draw(self, output: Output, exact: int) -> int:
        """Add noise to the exact number of an output."""
        if self.law == "none":
            return exact
        return self.stretch(output.last).noise.add([exact])[0]

    def loss(self, change: Mapping[int, int]) -> Fraction:
        """Give what a change of whole sums, step by step, costs over all outputs: ε, or ρ of normal noise."""
        total = Fraction(0)
        for step in range(1, self._last(change) + 1):
            noise = self.stretch(step).noise
            for output in self.due(step):
                moved = output.of(change)
                if isinstance(noise, WholeLaplace):
                    total += abs(moved) / noise.scale
                else:
                    total += Fraction(moved**2) / (2 * noise.deviation**2)
        return total

    def _last(self, change: Mapping[int, int]) -> int:
        """Give the last step whose outputs a change can reach."""
        last = max(change, default=0)
        if last == 0:
            return 0
        found = self.stretch(last)
        if found.length is not None:
            return found.start + found.length
        assert isinstance(found.design, Tree)
        top = found.design.block(found.design.levels - 1)
        return -(-last // top) * top

    def deviations(self, until: int) -> Floats:
        """Give the standard error of what is shown at each step up to one."""
        deviations = np.sqrt(self.variances(until, self.facts.shows))
        return np.asarray(deviations, np.float64)

    def series(
        self, released: Mapping[str, int], until: int, since: int = 1, level: float = LEVEL
    ) -> tuple[Point, ...]:
        """Give the series from released numbers, of steps `since` to `until`, with errors.

        Rests on continual.below, continual.ends.

        Args:
            released: The numbers of all outputs that were due up to `until`, by name.
            until: The last step.
            since: The first step to give.
            level: How often the ends are to hold.
        """
        if not 1 <= since <= until:
            raise UsageError("USE-001", "a series is read from a first to a last step, from 1")
        self.stretch(until)
        ends_level(level)
        increments = self._estimates(released, until, since, "steps", level)
        prefixes = self._estimates(released, until, since, "running", level)
        shows = self.facts.shows
        windows: list[Estimate] | None = None
        if not isinstance(shows, str):
            windows = self._estimates(released, until, since, shows, level)
        return tuple(
            Point(since + i, increments[i], prefixes[i], windows[i] if windows else None)
            for i in range(until - since + 1)
        )

    def _estimates(
        self, released: Mapping[str, int], until: int, since: int, what: str | int, level: float
    ) -> list[Estimate]:
        values = self.values(released, until, what)[since - 1 :]
        variances = self.variances(until, what)[since - 1 :]
        halves = half_widths_of(self, until, what, since, level)
        return [
            Estimate(float(v), float(d), float(v - h), float(v + h))
            for v, d, h in zip(values, np.sqrt(variances), halves, strict=True)
        ]

    def parts(self, until: int) -> Iterator[tuple[Stretch, int]]:
        """Go through the stretches up to a step, with the number of their steps up to it."""
        for found in self.stretches():
            steps = until - found.start
            if found.length is not None:
                steps = min(steps, found.length)
            if steps <= 0:
                return
            yield found, steps

    def values(self, released: Mapping[str, int], until: int, what: str | int) -> Floats:
        """Give the estimates of steps 1 to `until` without their errors: totals, steps, or sums of last steps."""
        parts, carried = [], 0.0
        for found, steps in self.parts(until):
            design, start = found.design, found.start
            low, high = ranges(steps, what)
            if isinstance(design, Tree):
                estimates = design.below(design.read(released, start, steps))
                values = design.sums(estimates, low, high)
            else:
                decoded = design.decoded(design.read(released, start, steps))
                running = np.concatenate(([0.0], np.cumsum(decoded)))
                values = running[high] - running[low]
            if what == "running":
                values = values + carried
                carried = float(values[-1])
            parts.append(values)
        return np.concatenate(parts)

    def variances(self, until: int, what: str | int) -> Floats:
        """Give the variances of these estimates."""
        parts, carried = [], 0.0
        for found, steps in self.parts(until):
            design = found.design
            unit = variance_of(found.noise)
            if isinstance(design, Tree):
                values = unit * design.variances(*ranges(steps, what))
            else:
                weights = design.lagged(width_of(what))[:steps]
                values = unit * np.cumsum(weights**2)
            if what == "running":
                values = values + carried
                carried = float(values[-1])
            parts.append(values)
        return np.concatenate(parts)

    def spreads(self, until: int, what: str | int) -> Floats:
        """Give the sums of the sizes of all weights of noises."""
        parts, carried = [], 0.0
        for found, steps in self.parts(until):
            design = found.design
            if isinstance(design, Tree):
                sizes = np.array(
                    [sum(w * n for w, n in design.noises(level)) for level in range(design.levels)]
                )
                values = np.asarray(sizes @ design.counts(*ranges(steps, what)), np.float64)
            else:
                values = np.cumsum(np.abs(design.lagged(width_of(what))[:steps]))
            if what == "running":
                values = values + carried
                carried = float(values[-1])
            parts.append(values)
        return np.concatenate(parts)

    def to_dict(self) -> dict[str, Any]:
        """Give the way as plain JSON values; `way_of` gives it back equal."""
        facts = self.facts
        return {
            "format": FORMAT,
            "name": self.name,
            "law": self.law,
            "facts": {
                "horizon": facts.horizon,
                "epsilon": str(facts.epsilon),
                "delta": str(facts.delta),
                "bound": facts.bound,
                "squared": facts.squared,
                "times": facts.times,
                "window": facts.window,
                "each": facts.each,
                "shows": facts.shows,
                "objective": facts.objective,
            },
            "designs": [design.to_dict() for design in self.designs],
        }


def way_of(value: Mapping[str, Any]) -> Mechanism:
    """Give the way that `to_dict` wrote; anything else is a ValueError."""
    try:
        if value["format"] != FORMAT or value["law"] not in LAWS:
            raise ValueError("this version does not know this way")
        facts = dict(value["facts"])
        facts["epsilon"], facts["delta"] = Fraction(facts["epsilon"]), Fraction(facts["delta"])
        designs: tuple[Design, ...] = tuple(
            Encoder(**d) if "length" in d else Tree(**d) for d in value["designs"]
        )
        way = Mechanism(str(value["name"]), value["law"], StreamFacts(**facts), designs)
        way.stretch(1)
    except (KeyError, TypeError, AttributeError) as problem:
        raise ValueError("this is not a way to release a stream") from problem
    return way


@lru_cache(maxsize=256)
def half_widths_of(
    way: Mechanism, until: int, what: str | int, since: int, level: float = LEVEL
) -> Floats:
    """Give how far estimates of steps `since` to `until` may be off; the same for all groups of a stream."""
    parts = list(way.parts(until))
    if any(isinstance(own.design, Encoder) for own, _ in parts):
        deviations = np.sqrt(way.variances(until, what))
        return normal_half_widths(deviations, way.spreads(until, what), level)[since - 1 :]
    kinds: list[Kind] = []
    carried: list[int] = []
    columns: list[Wholes] = []
    for stretch, steps in parts:
        design = stretch.design
        assert isinstance(design, Tree)
        counts = design.counts(*ranges(steps, what))
        before = np.array(carried, np.int64).reshape(-1, 1)
        columns.append(np.concatenate((np.repeat(before, steps, axis=1), counts)))
        kinds += [
            Kind(stretch.noise, tuple(design.noises(level))) for level in range(design.levels)
        ]
        carried += [int(n) if what == "running" else 0 for n in counts[:, -1]]
    padded = [np.pad(c, ((0, len(kinds) - len(c)), (0, 0))) for c in columns]
    return half_widths(kinds, np.concatenate(padded, axis=1)[:, since - 1 :], level)


def ranges(steps: int, what: str | int) -> tuple[Wholes, Wholes]:
    """Give which steps are added up at each step: those after `low`, up to `high`."""
    high = np.arange(1, steps + 1, dtype=np.int64)
    width = width_of(what)
    return (np.zeros_like(high) if width is None else np.maximum(high - width, 0)), high


def width_of(what: str | int) -> int | None:
    """Give how many last steps are added up; None if all."""
    if what == "running":
        return None
    return 1 if what == "steps" else int(what)


@lru_cache(maxsize=1024)
def noise_of(facts: StreamFacts, law: LawName, design: Design) -> WholeLaw:
    """Give the noise of each output of a design: all outputs together cost what is declared."""
    change = facts.moved
    if law == "none":
        return WholeLaplace(Fraction(0))
    if law == "laplace":
        if not isinstance(design, Tree):
            raise UsageError("USE-001", "an encoder takes normal noise")
        # continual.levels: each level sees a move once
        return WholeLaplace(Fraction(design.levels * change.size) / facts.epsilon)
    squared = design.squared(change) if in_epochs(facts) else design.least_squared(change)
    wide = multiplier(facts.epsilon, facts.delta)
    return WholeNormal(wide * root_up(Fraction(squared)))


def in_epochs(facts: StreamFacts) -> bool:
    """Say whether steps are cut into epochs: running totals without a horizon (continual.epochs)."""
    return facts.horizon is None and facts.shows == "running"
