"""How far the noise of a series may lead it from the truth: ends by the law of the noise (continual.ends).

In: weights of independent whole noises in each estimate, all public. Out: half widths, rounded up, so that intervals
hold. Nothing is drawn here, and nothing private is seen.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache

from secant.errors import UsageError
from secant.noise.mechanisms.laws import GaussianLaw, reach
from secant.noise.mechanisms.whole import WholeLaplace, WholeLaw
from secant.numeric.arrays import Floats, Wholes, np
from secant.records import frozen

LEVEL = 0.95
HIGHEST = 0.9999
"""Rarer errors than one in ten thousand are not told apart."""
SLIP = 2e-5
"""What a computed probability may be too large by; it is added to the level."""
SMOOTH = 0.02
"""Sums of whole noises have steps; they are smoothed over this part of a deviation, which then widens the ends."""
FOLDS = 16
"""So many uniform laws make up the smoothing."""
CUT = 2.74
"""Beyond this argument the power of sin(x)/x is below 1e-7."""
FAR = 16
"""Deviations, or whole steps, beyond which sums lie with a chance below 1e-6."""
NEVER = 0.05
"""Normal noise of a smaller deviation, in steps, rounds to zero but for a chance of 1e-22."""
LEAST = 0.25
"""Deviations below this are treated as if they were this large: their errors are mostly zero."""
HALVINGS = 17
ROWS = 64
"""Points that are worked on at once."""


@frozen
class Kind:
    """A sum of independent noises of one law that is part of errors: so many of each weight."""

    noise: WholeLaw
    weights: tuple[tuple[float, int], ...]

    @property
    def variance(self) -> float:
        """The variance of the sum."""
        return variance_of(self.noise) * sum(w * w * n for w, n in self.weights)

    def fall(self, u: Floats) -> Floats:
        """Give the logarithm of the characteristic function."""
        total = np.zeros(len(u))
        for weight, count in self.weights:
            total += count * _fall(self.noise, weight * u)
        return total


def ends_level(level: float) -> float:
    """Give a level that ends can be stated at."""
    if not 0 < level <= HIGHEST:
        raise UsageError("USE-004", f"a level must lie above 0 and be at most {HIGHEST}")
    return level


def variance_of(noise: WholeLaw) -> float:
    """Give the variance of a noise, in squared whole steps."""
    if isinstance(noise, WholeLaplace):
        if not noise.scale:
            return 0.0
        half = float(1 / (2 * noise.scale))
        return 0.0 if half > 300 else 1 / (2 * math.sinh(half) ** 2)
    return float(noise.deviation) ** 2 + 1 / 12


def _fall(noise: WholeLaw, u: Floats) -> Floats:
    if isinstance(noise, WholeLaplace):
        return -np.log1p(2 * variance_of(noise) * np.sin(u / 2) ** 2)
    deviation = float(noise.deviation)
    if deviation < NEVER:
        return np.zeros(len(u))
    # a rounded normal noise is a normal one and a rounding error, seen on whole numbers only
    near = np.remainder(u + math.pi, 2 * math.pi) - math.pi
    around = math.ceil(1.2 / deviation) + 1
    turns = near + 2 * math.pi * np.arange(-around, around + 1)[:, None]
    waves = np.exp(-((deviation * turns) ** 2) / 2) * np.sinc(turns / (2 * math.pi))
    return np.asarray(np.log(np.maximum(waves.sum(axis=0), 1e-300)), np.float64)


def half_widths(kinds: Sequence[Kind], counts: Wholes, level: float = LEVEL) -> Floats:
    """Give for each column of counts, which says how many of each kind an error consists of, how far it reaches."""
    columns, back = np.unique(counts, axis=1, return_inverse=True)
    deviations = np.sqrt(np.array([kind.variance for kind in kinds]) @ columns)
    widths = np.zeros(columns.shape[1])
    shelves = np.ceil(np.log2(np.maximum(deviations, LEAST)) * 4)
    for shelf in np.unique(shelves[deviations > 0]):
        top = float(2 ** (shelf / 4))
        here = np.flatnonzero((shelves == shelf) & (deviations > 0))
        kernel, waves = _kernel(top)
        falls = np.array([kind.fall(waves) for kind in kinds])
        for start in range(0, len(here), ROWS):
            rows = here[start : start + ROWS]
            widths[rows] = _solve(*_terms(columns[:, rows], falls, kernel, waves), top, level)
    # An error that is a whole number lies beyond an end only if it lies beyond the whole number below it.
    broken = np.array([any(w % 1 for w, _ in kind.weights) for kind in kinds])
    whole = ~(columns[broken] > 0).any(axis=0)
    return np.where(whole, np.floor(widths), widths)[back.ravel()]


@lru_cache(maxsize=1 << 14)
def half_width(kinds: tuple[Kind, ...], level: float = LEVEL) -> float:
    """Give how far one error reaches that consists of one of each kind."""
    classes: Counter[tuple[WholeLaw, float]] = Counter()
    for kind in kinds:
        for weight, count in kind.weights:
            classes[kind.noise, abs(weight)] += count
    deviation = math.sqrt(sum(kind.variance for kind in kinds))
    if not deviation:
        return 0.0
    top = float(2 ** (math.ceil(math.log2(max(deviation, LEAST)) * 4) / 4))
    kernel, waves = _kernel(top)
    least = math.log(SLIP / 2 / len(waves))
    with np.errstate(divide="ignore"):
        logs = np.log(kernel)
    # what is spread most thins out the waves first
    for (noise, weight), count in sorted(classes.items(), key=lambda c: -c[1] * c[0][1]):
        logs = logs + count * _fall(noise, weight * waves)
        large = logs > least
        logs, waves = logs[large], waves[large]
    width = float(_solve(np.exp(logs)[None, :], waves, top, level)[0])
    return width if any(weight % 1 for _, weight in classes) else math.floor(width)


def _circle(top: float) -> float:
    return FAR * max(top, 1.0)


def _kernel(top: float) -> tuple[Floats, Floats]:
    """Give the weights of the series of P(|sum + smoothing| ≤ y), and its wave numbers."""
    half = _circle(top)
    smooth = SMOOTH * top
    terms = math.ceil(CUT * FOLDS * half / (math.pi * smooth))
    k = np.arange(1, terms + 1)
    waves = np.asarray(np.pi * k / half, np.float64)
    shape = np.sinc(waves * smooth / FOLDS / np.pi) ** FOLDS
    return 2 / (np.pi * k) * shape, waves


def _terms(counts: Wholes, falls: Floats, kernel: Floats, waves: Floats) -> tuple[Floats, Floats]:
    """Give the terms of the series of each column that count, and their wave numbers."""
    # falls are negative: with the least counts of all columns terms are largest
    most = np.exp(counts.min(axis=1).astype(np.float64) @ falls) * kernel
    relevant = np.flatnonzero(most * len(waves) > SLIP / 2)
    terms = np.exp(counts.T.astype(np.float64) @ falls[:, relevant]) * kernel[relevant]
    return terms, waves[relevant]


def _solve(terms: Floats, waves: Floats, top: float, level: float) -> Floats:
    half = _circle(top)

    def missing(y: Floats) -> Floats:
        inside = y / half + (terms * np.sin(y[:, None] * waves)).sum(axis=1)
        return np.asarray(level + SLIP - inside, np.float64)

    low, high = np.zeros(len(terms)), np.full(len(terms), half)
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        enough = missing(middle) <= 0
        low, high = np.where(enough, low, middle), np.where(enough, middle, high)
    return high + SMOOTH * top


def normal_half_widths(deviations: Floats, spreads: Floats, level: float = LEVEL) -> Floats:
    """Give half widths of sums of rounded normal noises, each of which is within half a step of a normal one."""
    return float(reach(GaussianLaw(), Fraction(level))) * deviations + spreads / 2
