"""The ways to release one statistic: by rank, by smooth bound, by global bound, by preprocessing.

In: a statistic on steps of a public scale, ε, the neighbor relation; all public. Out: records that can
draw once from private values, and that can say what error they would have on values that are public.
Which way is taken is not decided here.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache
from typing import Protocol

import numpy as np

from secant.noise.mechanisms.laplace import GlobalNoise, LaplaceNoise
from secant.noise.mechanisms.laws import OptimalLaw
from secant.noise.mechanisms.smooth import OptimalNoise, SmoothNoise
from secant.noise.secrecy import Private
from secant.numeric import optimal_law
from secant.records import frozen
from secant.sensitivity.bounds import GlobalBound, SmoothBound
from secant.stats.plot import Curve
from secant.stats.preprocessing.pair_search import Floats
from secant.stats.quantiles import RankChoice
from secant.stats.results import ErrorBar
from secant.stats.scale import Scale, Steps
from secant.stats.smooth_sensitivity import ROUNDING


@frozen
class Statistic:
    """A function of sorted steps, and what is proved of it. Answers are in units of `scale`'s steps."""

    name: str
    scale: Scale
    """Of the answer; the values have one of their own."""
    grid: Fraction
    """What answers are rounded to, in steps: below what one row changes, or the step itself."""
    exact: Callable[[Steps], Fraction]
    smooth: Callable[[Steps, Fraction], float] | None = None
    """(sorted steps, β) -> the smooth bound."""
    largest: Fraction | None = None
    """A public bound of how far the answer can move, whatever the data."""
    q: Fraction | None = None
    """For what a rank defines."""
    orders: tuple[Fraction, ...] = (Fraction(10),)
    """The ε/β that smooth noise may be made with."""
    size_bound: Callable[[int, float], float] | None = None
    """(rows, β) -> a bound of `smooth` for so many rows, where one is known."""
    rows: str = "rows"
    """What the values are called in sentences."""


class Mechanism(Protocol):
    """A calibrated release of one statistic."""

    @property
    def name(self) -> str:
        """What the mechanism is called."""
        ...

    @property
    def family(self) -> str:
        """What one asks for it by."""
        ...

    @property
    def step(self) -> float:
        """The step of the answer's scale."""
        ...

    def draw(self, values: Steps) -> Fraction:
        """Release: an index on the scale of the answer."""
        ...

    def expected(self, ordered: Steps) -> float:
        """Give the mean error on sorted values that are public, in units of the answer."""
        ...

    def bar(self, level: Fraction, size: int | None) -> ErrorBar:
        """Say how far the released value may be from the true one."""
        ...

    def curve(self, level: Fraction) -> Curve | None:
        """Give the density of the noise on a public axis."""
        ...


@frozen
class RankMechanism:
    """A point drawn by rank."""

    statistic: Statistic
    ranks: RankChoice

    @property
    def name(self) -> str:
        """What the mechanism is called."""
        return self.ranks.choice.name

    @property
    def family(self) -> str:
        """What one asks for it by."""
        return self.name

    @property
    def step(self) -> float:
        """The step of the answer's scale."""
        return float(self.statistic.scale.step)

    def draw(self, values: Steps) -> Fraction:
        """Release one point of the scale."""
        return self.ranks.draw(values)

    def expected(self, ordered: Steps) -> float:
        """Give the mean distance between the drawn point and the statistic."""
        points, weights = self.ranks.spread(ordered)
        off = np.abs(points - float(self.statistic.exact(ordered)))
        return float((weights * off).sum() * float(self.statistic.scale.step))

    def bar(self, level: Fraction, size: int | None) -> ErrorBar:
        """Count rows: how far they lie apart is private."""
        rows = self.ranks.rows(level)
        where = {0: "below it", 1: "above it"}.get(int(self.ranks.target.q), "")
        where = where if self.ranks.target.extreme else "between it and the true value"
        description = f"with probability {float(level):g} at most {rows:.4g} "
        description += f"{self.statistic.rows} lie {where}"
        return ErrorBar(float(level), rows, "rows", description)

    def curve(self, level: Fraction) -> Curve | None:
        """Give the density of the rank error where rows are evenly spaced."""
        rate = float(self.ranks.choice.sharpness) * self.ranks.target.unit()
        sided = 1 if self.ranks.target.extreme else 2
        axis = "rows off, if rows are evenly spaced"
        return Curve(
            axis, lambda t: rate / sided * math.exp(-rate * abs(t)), self._typical(level), sided
        )

    def _typical(self, level: Fraction) -> float:
        rate = float(self.ranks.choice.sharpness) * self.ranks.target.unit()
        return -math.log(1 - float(level)) / rate


@frozen
class SmoothMechanism:
    """A statistic with optimal noise on a smooth bound. `answer` gives what the noise goes on, `bound` its bound."""

    statistic: Statistic
    noise: SmoothNoise
    beta: Fraction
    answer: Callable[[Steps], Fraction]
    bound: Callable[[Steps, Fraction], float]
    family: str = "smooth"
    off: bool = False
    """Whether `answer` may differ from the statistic itself, by an amount that is private."""

    @property
    def name(self) -> str:
        """What the mechanism is called."""
        plain = f"smooth sensitivity, {self.noise.name} noise"
        return plain if self.family == "smooth" else f"{self.family}, {plain}"

    @property
    def step(self) -> float:
        """The step of the answer's scale."""
        return float(self.statistic.scale.step)

    def draw(self, values: Steps) -> Fraction:
        """Release; the bound goes into the noise and nowhere else."""
        ordered = np.sort(values)
        return self.noise.draw(
            Private(self.answer(ordered)), Private(self.bound(ordered, self.beta))
        )

    def expected(self, ordered: Steps) -> float:
        """Give the mean of the clamped noise, and how far the answer itself is off."""
        spread = smooth_spread(self.noise, self.bound(ordered, self.beta))
        offset = float(self.answer(ordered) - self.statistic.exact(ordered)) if self.off else 0.0
        return clamped_error(self.statistic, ordered, spread, offset)

    def bar(self, level: Fraction, size: int | None) -> ErrorBar:
        """Give the error where it follows from a public size, else say that it is private."""
        if self.off:
            most = capped_error(self.noise, level) * self.statistic.scale.step
            return ErrorBar(float(level), None, "value", capped_description(most, level))
        if self.statistic.size_bound is not None and size is not None:
            extent = float(self.noise.error(level)) * self.statistic.size_bound(
                size, float(self.beta)
            )
            amount = min(extent, self.statistic.scale.top) * float(self.statistic.scale.step)
            description = f"within {amount:.4g} with probability {float(level):g}, for {size} rows"
            return ErrorBar(float(level), amount, "value", description)
        description = "known only to the owner: the noise follows a private bound"
        return ErrorBar(float(level), None, "value", description)

    def curve(self, level: Fraction) -> Curve | None:
        """Give the density in units of the private bound."""
        return smooth_curve(self.noise, level)


@frozen
class LaplaceMechanism:
    """A statistic with a public bound, and Laplace noise. `answer` gives what the noise goes on."""

    statistic: Statistic
    noise: GlobalNoise
    answer: Callable[[Steps], Fraction]
    family: str = "laplace"
    off: bool = False
    """Whether `answer` may differ from the statistic itself, by an amount that is private."""

    @property
    def name(self) -> str:
        """What the mechanism is called."""
        return self.noise.name if self.family == "laplace" else f"{self.family}, {self.noise.name}"

    @property
    def step(self) -> float:
        """The step of the answer's scale."""
        return float(self.statistic.scale.step)

    def draw(self, values: Steps) -> Fraction:
        """Release the answer with noise."""
        return self.noise.draw(Private(self.answer(np.sort(values))))

    def expected(self, ordered: Steps) -> float:
        """Give the mean of the clamped noise, and how far the answer itself is off."""
        spread = -np.log(_middles()) * float(self.noise.scale)
        offset = float(self.answer(ordered) - self.statistic.exact(ordered))
        return clamped_error(self.statistic, ordered, spread, offset)

    def bar(self, level: Fraction, size: int | None) -> ErrorBar:
        """Give the error of the noise, which is public."""
        amount = float(self.noise.error(level) * self.statistic.scale.step)
        amount = min(amount, self.statistic.scale.range)
        description = f"within {amount:.4g} with probability {float(level):g}"
        if self.off:
            return ErrorBar(
                float(level), None, "value", f"{description} of the preprocessed statistic"
            )
        return ErrorBar(float(level), amount, "value", description)

    def curve(self, level: Fraction) -> Curve | None:
        """Give the Laplace density."""
        width = float(self.noise.scale * self.statistic.scale.step)
        if not width:
            return None
        extent = -math.log(1 - float(level)) * width
        return Curve("error", lambda t: math.exp(-abs(t) / width) / (2 * width), extent)


def noise_of(way: Mechanism) -> object:
    """Give the calibrated noise of a way, where it is one noise."""
    if isinstance(way, RankMechanism):
        return way.ranks.choice
    return way.noise if isinstance(way, (SmoothMechanism, LaplaceMechanism)) else None


def smooth_mechanism(statistic: Statistic, epsilon: Fraction, order: Fraction) -> SmoothMechanism:
    """Calibrate optimal noise for β = ε / order."""
    beta = epsilon / order
    bound = SmoothBound(beta, statistic.name, cap=statistic.largest, jumps=True)
    noise = OptimalNoise().calibrate(bound, epsilon=epsilon, grid=statistic.grid, rounding=ROUNDING)
    assert statistic.smooth is not None
    return SmoothMechanism(statistic, noise, beta, statistic.exact, statistic.smooth)


def laplace_mechanism(statistic: Statistic, epsilon: Fraction, bound: Fraction) -> LaplaceMechanism:
    """Calibrate Laplace noise for a public bound."""
    noise = LaplaceNoise().calibrate(GlobalBound(bound), epsilon=epsilon, grid=statistic.grid)
    return LaplaceMechanism(statistic, noise, statistic.exact)


_CELLS = 2000


@lru_cache(maxsize=1)
def _middles() -> Floats:
    middles: Floats = (np.arange(_CELLS) + 0.5) / _CELLS
    return middles


@lru_cache(maxsize=64)
def magnitudes(law: OptimalLaw) -> Floats:
    """Give evenly likely sizes of the optimal noise."""
    return np.array([law.quantile(u) for u in _middles().tolist()])


def smooth_spread(noise: SmoothNoise, bound: float) -> Floats:
    """Give evenly likely sizes of smooth noise on a bound that is public."""
    used = bound if noise.cap is None else min(bound, float(noise.cap))
    return magnitudes(noise.law) * (used / float(noise.rate))  # type: ignore[arg-type]


def smooth_curve(noise: SmoothNoise, level: Fraction) -> Curve:
    """Give the density of smooth noise in units of the private bound."""
    order, rate = float(noise.epsilon / noise.beta), float(noise.rate)
    axis = "noise in units of the private bound"
    extent = float(noise.error(level))
    return Curve(axis, lambda t: optimal_law.density(order, abs(t) * rate) * rate, extent)


def capped_error(noise: SmoothNoise, level: Fraction) -> Fraction:
    """Give what smooth noise with a public cap stays within at a level, whatever the private bound is."""
    assert noise.cap is not None
    return noise.error(level) * noise.cap


def capped_description(
    most: Fraction, level: Fraction, of: str = "the preprocessed statistic"
) -> str:
    """Say how far smooth noise with a cap may be off."""
    description = f"within {float(most):.4g} with probability {float(level):g}"
    return f"{description}, and nearer where values lie close together, of {of}"


def clamped_error(
    statistic: Statistic, ordered: Steps, spread: Floats, offset: float = 0.0
) -> float:
    """Give the mean distance to the truth after noise of evenly likely sizes, clamped to the range."""
    truth, top = float(statistic.exact(ordered)), float(statistic.scale.top)
    grid = float(statistic.grid)
    noisy = np.concatenate([truth + offset + spread, truth + offset - spread])
    released = np.clip(np.rint(noisy / grid) * grid, 0, top)
    return float(np.abs(released - truth).mean() * float(statistic.scale.step))
