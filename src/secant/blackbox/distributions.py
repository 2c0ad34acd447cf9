"""Where sampled records come from: a public distribution with a name.

In: a draw function of the caller's, or public parameters. Out: records, drawn independently of any
protected data. The name is what a guarantee is about, so it is never left out. No protected record
ever enters a distribution: `resample` is for records that are public already.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from secant.blackbox.records import selected, size_of
from secant.errors import UsageError, public_api
from secant.numeric.parameters import exact, positive
from secant.records import frozen

Draw = Callable[[int, Generator], Any]
_LONGEST_NAME = 200


@frozen
class Distribution:
    """A law of one record. `draw(count, generator)` gives `count` independent records of it."""

    name: str
    draw: Draw = field(repr=False)

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not 0 < len(self.name.strip()) <= _LONGEST_NAME:
            raise UsageError("USE-001", "a distribution needs a name of up to 200 characters")
        if not callable(self.draw):
            raise UsageError("USE-001", "a distribution draws by a function of count and generator")


def distribution_of(sampler: object) -> Distribution:
    """Give a sampler as a named distribution; a plain function is named after itself."""
    if isinstance(sampler, Distribution):
        return sampler
    if not callable(sampler):
        raise UsageError(
            "USE-001",
            "a sampler is a Distribution or a function of a count and a numpy Generator",
            hint="for example secant.blackbox.exponential(1.0)",
        )
    name = getattr(sampler, "__name__", type(sampler).__name__)
    if name == "<lambda>":
        raise UsageError(
            "USE-001",
            "the sampler has no name, and a guarantee names its distribution",
            hint='write secant.blackbox.Distribution("incomes 2020", sampler)',
        )
    return Distribution(name[:_LONGEST_NAME], sampler)


@frozen
class _Shaped:
    """Independent numbers of one of numpy's laws; each record has `dimension` of them."""

    law: str
    parameters: tuple[float, ...]
    dimension: int | None

    def __call__(self, count: int, generator: Generator) -> NDArray[np.float64]:
        shape = count if self.dimension is None else (count, self.dimension)
        drawn: NDArray[np.float64] = getattr(generator, self.law)(*self.parameters, size=shape)
        return drawn


@frozen
class _Resampled:
    records: Any

    def __call__(self, count: int, generator: Generator) -> Any:
        drawn = selected(self.records, generator.integers(size_of(self.records), size=count))
        # a label would tell which public record it was, and would not be unique
        return drawn.reset_index(drop=True) if hasattr(drawn, "iloc") else drawn


@public_api
def uniform(low: float = 0.0, high: float = 1.0, *, dimension: int | None = None) -> Distribution:
    """Give the uniform law on [low, high], or on a cube of that side.

    >>> uniform(0, 1, dimension=3).name
    'uniform on [0, 1]^3'
    """
    if not exact(low, "low") < exact(high, "high"):
        raise UsageError("USE-001", "low must be less than high")
    return _named(f"uniform on [{low:g}, {high:g}]", "uniform", (low, high), dimension)


@public_api
def normal(
    mean: float = 0.0, deviation: float = 1.0, *, dimension: int | None = None
) -> Distribution:
    """Give the normal law, or that of independent normal coordinates."""
    exact(mean, "mean")
    positive(deviation, "deviation")
    name = f"normal with mean {mean:g} and deviation {deviation:g}"
    return _named(name, "normal", (mean, deviation), dimension)


@public_api
def exponential(rate: float = 1.0, *, dimension: int | None = None) -> Distribution:
    """Give the exponential law of a rate."""
    positive(rate, "rate")
    return _named(f"exponential with rate {rate:g}", "exponential", (1 / rate,), dimension)


@public_api
def resample(records: Any, *, name: str) -> Distribution:
    """Give the law of one record drawn from `records`, which must be public."""
    if size_of(records) < 1:
        raise UsageError("USE-001", "there is no record to draw from")
    return Distribution(name, _Resampled(records))


def _named(
    name: str, law: str, parameters: tuple[float, ...], dimension: int | None
) -> Distribution:
    if dimension is not None:
        if isinstance(dimension, bool) or not isinstance(dimension, int) or dimension < 1:
            raise UsageError("USE-001", "a dimension is a whole number of at least 1")
        name = f"{name}^{dimension}"
    return Distribution(name, _Shaped(law, tuple(float(p) for p in parameters), dimension))
