"""What an attacker believes before any answer: a distribution of one value over a public range.

In: numbers that an owner or analyst declares. Out: one of four records, and its two readings in the
coordinate in which distances are measured (the value, or its logarithm): atoms, or a density that is
log-linear piece by piece. Nothing here is read from data.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

from secant.errors import UsageError
from secant.numeric.arrays import Floats, np
from secant.numeric.parameters import Number, exact, positive
from secant.records import frozen

MOST_ATOMS = 200_000
MOST_PIECES = 20_000
FINE = 100
"""Pieces of a normal prior to a standard deviation, where the range allows that many."""


@frozen
class Uniform:
    """Every value of a range is as likely as any other; with a step, only low, low + step, ... occur."""

    low: float
    high: float
    step: float | None = None


@frozen
class Normal:
    """The bell curve, cut to a range."""

    mean: float
    deviation: float
    low: float
    high: float


@frozen
class Weights:
    """Finitely many values, each with its share."""

    values: tuple[float, ...]
    weights: tuple[float, ...]


@frozen
class Histogram:
    """Bins between edges, each with its share, spread evenly inside the bin."""

    edges: tuple[float, ...]
    weights: tuple[float, ...]


Prior = Uniform | Normal | Weights | Histogram


@frozen
class Atoms:
    """Points in ascending order with their shares: as values, and where distances are measured."""

    values: Floats
    places: Floats
    shares: Floats


@frozen
class Pieces:
    """A density: within exp(±slack) of exp(heights[i] + slopes[i]·(t − edges[i])) on piece i."""

    edges: Floats
    heights: Floats
    slopes: Floats
    slack: float
    single_peaked: bool
    """Whether the density of the value rises, then falls: its least value on a stretch is at an end."""
    logarithmic: bool


def uniform(low: Number, high: Number, step: Number | None = None) -> Uniform:
    """Declare that all values between `low` and `high` are equally likely.

    >>> uniform(0, 10, step=5)
    Uniform(low=0.0, high=10.0, step=5.0)
    """
    a, b = _range(low, high)
    if step is None:
        if a == b:
            raise UsageError("USE-001", "a uniform prior needs a range that is not one point")
        return Uniform(a, b)
    return Uniform(a, b, float(positive(step, "the step of the prior")))


def normal(mean: Number, deviation: Number, low: Number, high: Number) -> Normal:
    """Declare a normal distribution, cut to the range from `low` to `high`.

    >>> normal(50, 10, 0, 100).deviation
    10.0
    """
    a, b = _range(low, high)
    if a == b:
        raise UsageError("USE-001", "a normal prior needs a range that is not one point")
    middle = _finite(mean, "the mean of the prior")
    spread = float(positive(deviation, "the deviation of the prior"))
    if (b - a) / spread > 1e6 or max(abs(a - middle), abs(b - middle)) / spread > 1e6:
        raise UsageError("USE-001", "the deviation of the prior is too small for its range")
    return Normal(middle, spread, a, b)


def weights(values: Sequence[Number], shares: Sequence[Number] | None = None) -> Weights:
    """Declare finitely many values with their shares; equal shares if none are given.

    >>> weights([3, 1], [1, 3])
    Weights(values=(1.0, 3.0), weights=(0.75, 0.25))
    """
    if not values or len(values) > MOST_ATOMS:
        raise UsageError("USE-001", f"a prior needs 1 to {MOST_ATOMS} values")
    places = [_finite(value, "a value of the prior") for value in values]
    if len(set(places)) < len(places):
        raise UsageError("USE-001", "a value of the prior is given twice")
    parts = _shares([1] * len(places) if shares is None else shares, len(places))
    pairs = sorted((v, p) for v, p in zip(places, parts, strict=True) if p > 0)
    return Weights(tuple(v for v, _ in pairs), tuple(p for _, p in pairs))


def histogram(edges: Sequence[Number], shares: Sequence[Number]) -> Histogram:
    """Declare the shares of bins; `edges` has one entry more than `shares`.

    >>> histogram([0, 10, 100], [1, 1]).weights
    (0.5, 0.5)
    """
    if not 2 <= len(edges) <= MOST_PIECES:
        raise UsageError("USE-001", f"a histogram needs 2 to {MOST_PIECES} edges")
    places = [_finite(edge, "an edge of the prior") for edge in edges]
    if any(not a < b for a, b in itertools.pairwise(places)):
        raise UsageError("USE-001", "the edges of a histogram must ascend")
    parts = _shares(shares, len(places) - 1)
    filled = [i for i, part in enumerate(parts) if part > 0]
    first, last = filled[0], filled[-1] + 1
    return Histogram(tuple(places[first : last + 1]), tuple(parts[first:last]))


def _range(low: Number, high: Number) -> tuple[float, float]:
    a, b = _finite(low, "the range of the prior"), _finite(high, "the range of the prior")
    if a > b:
        raise UsageError("USE-001", "the range of the prior is reversed")
    return a, b


def _finite(value: Number, what: str) -> float:
    number = exact(value, what)
    if abs(number) > 10**150:  # squares of it must stay finite
        raise UsageError("USE-001", f"{what} is out of range")
    return float(number)


def _shares(stated: Sequence[Number], count: int) -> list[float]:
    if len(stated) != count:
        raise UsageError("USE-001", "a prior needs one share for each value or bin")
    parts = [exact(part, "a share of the prior") for part in stated]
    total = sum(parts)
    if any(part < 0 for part in parts) or total <= 0:
        raise UsageError("USE-001", "shares of a prior must be at least 0, and not all 0")
    return [float(part / total) for part in parts]


def ends_of(prior: Prior) -> tuple[float, float]:
    """Give the smallest and the largest value that the attacker holds possible."""
    if isinstance(prior, Weights):
        return prior.values[0], prior.values[-1]
    if isinstance(prior, Histogram):
        return prior.edges[0], prior.edges[-1]
    if isinstance(prior, Uniform) and prior.step is not None:
        return prior.low, prior.low + (lattice_points(prior) - 1) * prior.step
    return prior.low, prior.high


def lattice_points(prior: Uniform) -> int:
    """Count the values of a uniform prior that has a step."""
    assert prior.step is not None
    # The small part makes up for a step such as 0.1 that a float only nearly is.
    return math.floor((prior.high - prior.low) / prior.step * (1 + 1e-12)) + 1


def stepped(prior: Normal | Histogram, first: Number, step: Number) -> Weights:
    """Put a normal or a histogram on first, first + step, ...: a value that moves in steps can be hit.

    >>> stepped(histogram([0, 2, 4], [1, 3]), 0, 1).weights
    (0.125, 0.125, 0.25, 0.25, 0.25)
    """
    start, width = _finite(first, "the range"), float(positive(step, "the step of the prior"))
    low, high = ends_of(prior)
    count = lattice_points(Uniform(start, max(start, high), width))
    if count > MOST_ATOMS:
        raise UsageError("USE-001", f"the prior has more than {MOST_ATOMS} values")
    values = start + width * np.arange(count, dtype=float)
    values = values[values >= low - 1e-12 * max(abs(low), abs(high))]
    if isinstance(prior, Normal):
        logs = -((values - prior.mean) ** 2) / (2 * prior.deviation**2)
        shares = np.exp(logs - np.max(logs, initial=-np.inf))
    else:
        # The last edge belongs to the last bin, every other one to the bin that it opens.
        places = np.searchsorted(prior.edges, values, side="right") - 1
        places = np.clip(places, 0, len(prior.weights) - 1)
        counts = np.bincount(places, minlength=len(prior.weights))
        if np.any((counts == 0) & (np.array(prior.weights) > 0)):
            raise UsageError(
                "USE-001", "a bin of the prior holds no value that the column can take"
            )
        shares = np.array(prior.weights)[places] / counts[places]
    return weights(values.tolist(), shares.tolist())


def spread(prior: Prior, *, logarithmic: bool) -> Atoms | Pieces:
    """Read a prior in the coordinate of the distance: the value itself, or its logarithm."""
    if logarithmic and ends_of(prior)[0] <= 0:
        raise UsageError("USE-001", "a distance in ln needs a prior on positive values")
    if isinstance(prior, Weights):
        return _atoms(np.array(prior.values), np.array(prior.weights), logarithmic)
    if isinstance(prior, Uniform) and prior.step is not None:
        count = lattice_points(prior)
        if count > MOST_ATOMS:
            raise UsageError(
                "USE-001",
                f"the prior has more than {MOST_ATOMS} values",
                hint="leave the step out, or declare a histogram",
            )
        values = prior.low + prior.step * np.arange(count, dtype=float)
        return _atoms(values, np.full(count, 1 / count), logarithmic)
    if isinstance(prior, Normal):
        return _bell(prior, logarithmic)
    bins = Histogram((prior.low, prior.high), (1.0,)) if isinstance(prior, Uniform) else prior
    return _bins(bins, logarithmic)


def _atoms(values: Floats, shares: Floats, logarithmic: bool) -> Atoms:
    return Atoms(values, np.log(values) if logarithmic else values, shares)


def _bins(prior: Histogram, logarithmic: bool) -> Pieces:
    edges, shares = np.array(prior.edges), np.array(prior.weights)
    with np.errstate(divide="ignore"):  # an empty bin has the logarithm -inf, which is meant
        heights = np.log(shares) - np.log(np.diff(edges))
    rises = np.diff(shares / np.diff(edges))
    turns = rises[rises != 0] > 0
    single = not np.any(turns[1:] & ~turns[:-1])
    if not logarithmic:
        return Pieces(edges, heights, np.zeros_like(heights), 0.0, single, False)
    # The density of ln x is x times that of x: log-linear with slope 1, exactly.
    places = np.log(edges)
    return Pieces(places, heights + places[:-1], np.ones_like(heights), 0.0, single, True)


def _bell(prior: Normal, logarithmic: bool) -> Pieces:
    """Put chords under the logarithm of the bell; `slack` is how far it can be from them."""
    pieces = math.ceil((prior.high - prior.low) / prior.deviation * FINE)
    count = min(max(pieces, 200), MOST_PIECES // 2 if logarithmic else MOST_PIECES)
    values = np.linspace(prior.low, prior.high, count + 1)
    places = values
    if logarithmic:
        low, high = math.log(prior.low), math.log(prior.high)
        # Even in x where the bell bends, even in ln x where the logarithm does.
        places = np.unique(np.concatenate([np.log(values), np.linspace(low, high, count + 1)]))
        places[0], places[-1] = low, high
        values = np.exp(places)
    logs = -((values - prior.mean) ** 2) / (2 * prior.deviation**2)
    logs = logs - np.max(logs)  # a mean far outside of the range would drown all digits
    # Second derivative of the logarithm, at most: of a chord over w it is then w²/8 times that away.
    bend = np.full_like(values, 1 / prior.deviation**2)
    if logarithmic:
        logs = logs + places
        # x(2x − m)/s² in magnitude: largest at an end of a piece, or m²/8s² between them.
        bend = (
            np.maximum(np.abs(values * (2 * values - prior.mean)), max(prior.mean, 0.0) ** 2 / 8)
            / prior.deviation**2
        )
    widths = np.diff(places)
    slack = float(np.max(widths**2 / 8 * np.maximum(bend[:-1], bend[1:])))
    return Pieces(places, logs[:-1], np.diff(logs) / widths, slack, True, logarithmic)
