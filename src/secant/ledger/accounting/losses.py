"""Optimal composition of unequal releases by their privacy losses on a public grid (accounting.loss).

In: a tally of pure, approximate, Laplace and Gaussian releases whose parameters are fixed in
advance, and the δ of the whole. Out: the ε of the whole, above the optimum by about one part in
1e4 and never below it. Every rounding moves probability to a larger loss; only non-negative
numbers are added and multiplied, so the relative error of the floats is bounded and charged. No
Fourier transform is used: its errors are absolute and drown a small δ.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from secant.ledger.accounting.advanced import self_adaptive
from secant.ledger.accounting.concentrated import zero_concentrated
from secant.ledger.accounting.tally import Tally, slack, without_failures
from secant.noise.events import GaussianEvent, LaplaceEvent, PureEvent
from secant.records import frozen

Row = NDArray[np.float64]

_UNIT = 2.0**-53
_ACCURACY = 1e-4
_SMALLEST_SLACK = Fraction(1, 10**250)
_UNDERFLOW = 1e-280
"""Stands for all that underflow can have lost; far below the smallest slack."""
_CUT = 1e-5
"""Share of δ that all cuts of tails together may cost."""
_MOST_CELLS = 24_000
_MOST_COPIES = 1_000_000
_LARGEST_SHIFT = 1_000
"""Of all Gaussian releases together; beyond it the normal probabilities lose their digits."""


@frozen
class Losses:
    """A distribution of the privacy loss that is at least as bad as a release's true one."""

    first: int
    """The grid index of the smallest loss."""
    masses: Row
    infinite: float
    """Probability of a loss beyond every bound."""
    terms: int
    """How many roundings a mass can have seen."""


def loss_distribution(counts: Tally, delta: Fraction) -> Fraction | None:
    """accounting.loss: convolve the losses of all releases, then read off ε where δ is met."""
    remaining, pure = slack(counts, delta), without_failures(counts)
    if not pure or remaining is None or remaining < _SMALLEST_SLACK or not _supported(pure):
        return None
    step = _grid_step(pure, remaining)
    cut = float(remaining) * _CUT / (2 * _convolutions(pure))
    whole: Losses | None = None
    shift = 0.0
    for leaf, count in pure.items():
        if isinstance(leaf, GaussianEvent):
            shift += float(count / leaf.noise_multiplier**2) * (1 + 8 * _UNIT)
            continue
        if isinstance(leaf, PureEvent):
            part = _randomized_responses(leaf.epsilon, count, step)
        else:
            assert isinstance(leaf, LaplaceEvent)
            part = _laplaces(leaf.epsilon, count, step, cut)
        whole = part if whole is None else _convolve(whole, part, cut)
    if shift:
        part = _gaussian(math.sqrt(shift) * (1 + 4 * _UNIT), step, cut)
        whole = part if whole is None else _convolve(whole, part, cut)
    assert whole is not None
    return _epsilon(whole, step, float(remaining) * (1 - 4 * _UNIT))


def _supported(counts: Tally) -> bool:
    shift = Fraction(0)
    for leaf, count in counts.items():
        if isinstance(leaf, GaussianEvent):
            shift += count / leaf.noise_multiplier**2
        elif not isinstance(leaf, PureEvent | LaplaceEvent) or count > _MOST_COPIES:
            return False
    return shift <= _LARGEST_SHIFT**2


def _convolutions(counts: Tally) -> int:
    return sum(
        2 * count.bit_length() if isinstance(leaf, LaplaceEvent) else 1
        for leaf, count in counts.items()
    )


def _grid_step(counts: Tally, remaining: Fraction) -> float:
    """Choose the grid by parameters only; any choice is sound, this one is accurate enough."""
    variance, splits, magnitude = 0.0, 0.0, 0.0  # no loss is larger than `magnitude`
    for leaf, count in counts.items():
        if isinstance(leaf, GaussianEvent):
            variance += float(count / leaf.noise_multiplier**2)
            splits += 1
            magnitude = math.inf
            continue
        assert isinstance(leaf, PureEvent | LaplaceEvent)
        epsilon = float(leaf.epsilon)
        # The loss of one release is ±ε; for a large ε it hardly ever is -ε.
        variance += count * (epsilon / math.cosh(min(epsilon, 600.0) / 2)) ** 2
        levels = _levels(count)
        splits += (levels + 1) * count / 4**levels if isinstance(leaf, LaplaceEvent) else 1
        magnitude += count * epsilon
    bounds = [self_adaptive(counts, remaining), zero_concentrated(counts, remaining)]
    sizes = [float(value) for value in bounds if value is not None and value > 0]
    size = min(sizes, default=math.sqrt(variance))  # none: δ is so large that ε is near 0
    by_variance = math.sqrt(8 * _ACCURACY * variance / splits)
    # Few releases have few losses, which want a finer grid than their variance asks for.
    finest = size / (4096 if sum(counts.values()) < 64 else 1024)
    step = max(_ACCURACY * size / splits, min(by_variance, finest))
    # Both tails are cut near this many deviations; the row between them must stay short.
    spread = math.sqrt(2 * variance * (math.log(1 / float(remaining)) + 16))
    step = max(step, 2 * min(spread, magnitude) / _MOST_CELLS)
    # A step of 20 bits makes every grid point an exact float.
    mantissa, exponent = math.frexp(step)
    return math.ldexp(math.ceil(mantissa * 2**20), exponent - 20)


def _split(losses: Row, masses: Row, step: float) -> Losses:
    """Put each mass on the grid points around its loss, keeping Σ mass·e^(-loss) (accounting.domination)."""
    places = losses / step
    places = places + np.abs(places) * 2.0**-50 + 2.0**-60
    below = np.floor(places)
    upper_share = _share(places - below, step)
    first = int(below.min())
    row = np.zeros(int(below.max()) - first + 2)
    index = (below - first).astype(np.int64)
    np.add.at(row, index, masses * (1 - upper_share))
    np.add.at(row, index + 1, masses * upper_share)
    return Losses(first, row * (1 + 16 * _UNIT), _UNDERFLOW, len(losses) + 8)


def _share(offset: Row, step: float) -> Row:
    """Give the upper grid point's share of a loss at `offset` steps above the lower, rounded up."""
    share: Row = np.expm1(-offset * step) / np.expm1(-step)
    return np.minimum(1.0, share * (1 + 32 * _UNIT) + 2.0**-50)


def _randomized_responses(epsilon: Fraction, count: int, step: float) -> Losses:
    """Losses (count - 2l)·ε with binomial l, built outward from the mode by exact ratios."""
    size = float(epsilon) * (1 + 2 * _UNIT)
    odds = math.exp(-min(size, 700.0))  # of the loss -ε against +ε
    steps = np.arange(count, dtype=np.float64)
    ratios = (count - steps) / (steps + 1) * odds  # mass(l+1) / mass(l)
    mode = int(np.searchsorted(-ratios, -1.0))
    masses = np.ones(count + 1)
    masses[mode + 1 :] = np.cumprod(ratios[mode:])
    masses[:mode] = np.cumprod(1 / ratios[:mode][::-1])[::-1]
    masses = masses / masses.sum() * (1 + 16 * (count + 4) * _UNIT)
    losses = (count - 2 * np.arange(count + 1, dtype=np.float64)) * size
    significant = masses > _UNDERFLOW / (count + 1)
    return _split(losses[significant], masses[significant], step)


def _laplace(epsilon: Fraction, step: float) -> Losses:
    """Losses of one Laplace release: ±ε with atoms, between them a density like e^(t/2)."""
    size = float(epsilon) * (1 + 2 * _UNIT)
    first, last = math.floor(-size / step), math.ceil(size / step)
    inner = np.arange(first + 1, last, dtype=np.float64) * step
    ends = np.concatenate(([-size], inner[(inner > -size) & (inner < size)], [size]))
    left, right, width = ends[:-1], ends[1:], np.diff(ends)
    # An exponent down to -745 carries its own rounding, 745 units, into the power.
    masses = np.exp((right - size) / 2) * -np.expm1(-width / 2) / 2 * (1 + 2048 * _UNIT)
    cells = np.floor(left / step)
    # The mean of e^(-t) over a piece of this density is e^(-its middle).
    share = _share((left - cells * step + width / 2) / step + 2.0**-40, step)
    low_atom = math.exp(-size) / 2 * (1 + 2048 * _UNIT)
    atoms = _split(np.array([-size, size]), np.array([low_atom, 0.5]), step)
    lowest = min(first, atoms.first, int(cells[0]))
    row = np.zeros(max(last, atoms.first + len(atoms.masses), int(cells[-1]) + 1) - lowest + 2)
    index = (cells - lowest).astype(np.int64)
    np.add.at(row, index, masses * (1 - share))
    np.add.at(row, index + 1, masses * share)
    row[atoms.first - lowest : atoms.first - lowest + len(atoms.masses)] += atoms.masses
    return Losses(lowest, row * (1 + 16 * _UNIT), _UNDERFLOW, 64)


def _gaussian(shift: float, step: float, cut: float) -> Losses:
    """Losses of one Gaussian release: normal with mean μ²/2 and deviation μ, tails cut upward."""
    width = math.sqrt(2 * math.log(1 / cut)) + 1
    first = math.floor((shift**2 / 2 - width * shift) / step)
    last = math.ceil((shift**2 / 2 + width * shift) / step)
    points = np.arange(first, last + 1, dtype=np.float64) * step
    standard = points / shift - shift / 2
    masses = _normal_masses(standard)
    # The same cells under the other database, where the loss has mean -μ²/2.
    other = _normal_masses(standard + shift)
    # A difference of two normal probabilities loses shift/step digits, the share 1/step more.
    loss = 32 * _UNIT * (shift + width + 1) ** 2 * (shift / step + 1)
    with np.errstate(all="ignore"):
        other = other * np.exp(points[:-1])
        share = (1 - other / masses) / -math.expm1(-step) + 4 * loss * (1 + 1 / step)
    share = np.where(np.isfinite(share), np.clip(share, 0.0, 1.0), 1.0)
    masses = masses * (1 + loss)
    row = np.zeros(len(points))
    row[:-1] += masses * (1 - share)
    row[1:] += masses * share
    row[0] += float(_normal(standard[:1])[0]) * (1 + 1e-12)
    beyond = float(_normal(-standard[-1:])[0]) * (1 + 1e-12)
    return Losses(first, row, beyond + _UNDERFLOW, 64)


def _normal_masses(edges: Row) -> Row:
    # Far right of the middle the complement keeps the digits that the probability itself loses.
    left = np.diff(_normal(edges))
    right = -np.diff(_normal(-edges))
    chosen: Row = np.where(edges[:-1] > 0, right, left)
    return np.maximum(chosen, 0.0)


def _normal(values: Row) -> Row:
    from scipy.special import ndtr  # imported here: a command that spends nothing need not wait

    probabilities: Row = ndtr(values)
    return probabilities


def _convolve(left: Losses, right: Losses, cut: float) -> Losses:
    """Add two independent losses, then cut both tails: above to infinity, below to the edge."""
    if len(left.masses) < len(right.masses):
        left, right = right, left
    places = np.flatnonzero(right.masses)
    if len(places) <= 16:
        row = np.zeros(len(left.masses) + len(right.masses) - 1)
        for index in places:
            row[index : index + len(left.masses)] += left.masses * right.masses[index]
        terms = len(places)
    else:
        row = np.convolve(left.masses, right.masses)
        terms = len(right.masses)
    infinite = (left.infinite + right.infinite) * (1 + 4 * _UNIT) + _UNDERFLOW
    high = int(np.searchsorted(np.cumsum(row[::-1]), cut, side="right"))
    low = int(np.searchsorted(np.cumsum(row), cut, side="right"))
    low, stop = min(low, len(row) - 1), max(len(row) - high, 1)
    low = min(low, stop - 1)
    masses = row[low:stop].copy()
    masses[0] += float(row[:low].sum()) * (1 + len(row) * _UNIT)
    infinite += float(row[stop:].sum()) * (1 + len(row) * _UNIT)
    total = left.terms + right.terms + terms + 4
    return Losses(left.first + right.first + low, masses, infinite, total)


def _levels(count: int) -> int:
    """Give how often the grid of `count` equal releases is made twice as coarse."""
    return (count.bit_length() - 1) // 2


def _laplaces(epsilon: Fraction, count: int, step: float, cut: float) -> Losses:
    """Add `count` Laplace losses by doubling; the grid widens with their deviation, up to `step`.

    Four times the releases have twice the deviation, so twice the step splits as accurately; it
    keeps the rows short.
    """
    levels = _levels(count)
    one, level, doublings = _laplace(epsilon, step / 2**levels), 0, 0
    result: Losses | None = None
    while True:
        if count & 1:
            result = one if result is None else _convolve(result, one, cut)
        count >>= 1
        if not count:
            assert result is not None
            return result
        one = _convolve(one, one, cut)
        doublings += 1
        if doublings % 2 == 0 and level < levels:
            level += 1
            one = _coarsened(one, step / 2 ** (levels - level))
            result = None if result is None else _coarsened(result, step / 2 ** (levels - level))


def _coarsened(fine: Losses, step: float) -> Losses:
    """Move a row to the grid of `step`, twice as wide: odd places are split between neighbors."""
    first = fine.first // 2
    places = np.arange(fine.first, fine.first + len(fine.masses))
    upper_share = float(_share(np.array([0.5]), step)[0])
    row = np.zeros(int(places[-1]) // 2 - first + 2)
    even, odd = places % 2 == 0, places % 2 == 1
    row[places[even] // 2 - first] += fine.masses[even]
    row[places[odd] // 2 - first] += fine.masses[odd] * (1 - upper_share)
    row[places[odd] // 2 - first + 1] += fine.masses[odd] * upper_share
    return Losses(first, row, fine.infinite, fine.terms + 8)


def _epsilon(whole: Losses, step: float, delta: float) -> Fraction | None:
    """Give the least float ε, rounded up, with E(1 - e^(ε - loss))₊ ≤ δ."""
    points = np.arange(whole.first, whole.first + len(whole.masses), dtype=np.float64) * step
    inflation = 1 + 4 * whole.terms * _UNIT + 4 * len(points) * _UNIT

    def reached(epsilon: float) -> float:
        above = points > epsilon
        missing = -np.expm1(epsilon - points[above])
        return float(np.dot(whole.masses[above], missing)) * inflation + whole.infinite * inflation

    if reached(0.0) <= delta:
        return Fraction(0)
    low, high = 0.0, float(points[-1])
    if reached(high) > delta:
        return None
    while high - low > 1e-9 * high:
        middle = (low + high) / 2
        if reached(middle) <= delta:
            high = middle
        else:
            low = middle
    return Fraction(high)
