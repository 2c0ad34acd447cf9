"""Noise for a sum that is divided by a count: what units add beyond a center times their rows is cut down and hidden.

Rests on truncation.center.

In: units by their own average among public points, sealed; tallies of what they add beyond a center. Out: a center that
is chosen privately in two steps, the second of which looks closer around the first; a limit; noise of its size. What
is shown of the sum is put together from that and from the noisy count.
"""

from __future__ import annotations

import math
import random
from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING

from secant.noise.intervals import NoisyNumber, Span
from secant.noise.limited import ClippedNoise, LimitToTally, TalliedLimit
from secant.noise.measure_noise import LaplaceShare
from secant.noise.mechanisms.centers import choose_cell
from secant.noise.mechanisms.limits import look_again
from secant.noise.secrecy import Private
from secant.noise.tail import (
    HIGHEST,
    SLACK,
    OctaveTally,
    UsualLimit,
    dealt,
    noise_of,
    quantile,
)
from secant.records import frozen
from secant.sensitivity.certificate import Centering

if TYPE_CHECKING:
    from secant.noise.query_plan import Reading

PLACING = Fraction(1, 10)
"""What of a measure's share the choices of a center take: two, alike."""
NEARING = Fraction(3, 20)
"""What a first look at the sum about that center takes: where means and medians differ, the center moves."""
LEANING = Fraction(1, 5)
"""What of the tally's part is for which way those lean whom a limit cuts."""
BELOW = 2
"""Octaves below the limit from which on units tell which way those above it lean."""
OCTAVE = 8
"""Points for each octave of the distance from what is looked around."""


@frozen
class CenterToChoose(LimitToTally):
    """Noise about a center that is chosen privately, then the limit; what both take is `choosing`."""

    placing: Fraction
    """What of epsilon the two choices of a center take, together."""
    nearing: Fraction
    """What of it the first look at the sum takes."""
    leaning: Fraction
    """What of it the number of units takes that lie above the center, less those below."""

    def read_by(self, reading: Reading, column: str) -> None:
        """Read the measure about the center."""
        reading.centered[column] = self

    @property
    def centering(self) -> Centering:
        """Give how the measure is read."""
        assert self.bound.centering is not None, "only sums that are divided get this noise"
        return self.bound.centering

    @property
    def tallying(self) -> Fraction:
        """What the tally takes."""
        return self.choosing - self.placing - self.nearing - self.leaning

    def placed(self, points: Sequence[int], units: Private[Mapping[int, int]]) -> int:
        """Choose where the middle of the units' averages lies, in parts of a step."""
        ends = (self.centering.low, *points, self.centering.high)
        cell = choose_cell(len(ends) - 1, units, self.placing / 2)
        return (ends[cell] + ends[cell + 1]) // 2

    def first_look(self) -> LimitToTally:
        """Give the noise of the first look."""
        tallying = self.nearing * Fraction(2, 5)
        share = LaplaceShare(self.nearing - tallying)
        limit = self.bound.limits[-1]
        return LimitToTally(self.nearing, share, self.bound, limit, tallying)

    def moved(self, center: int, beyond: int, noise: ClippedNoise, rows: int) -> int:
        """Move the center by what units add beyond it for each row, where that is more than noise."""
        if rows <= 0 or abs(beyond) <= noise.law.error(Fraction(95, 100)):
            return center
        moved = center + self.fine * beyond // rows
        return min(max(moved, self.centering.low), self.centering.high)

    def about(self, center: int, tallied: ClippedNoise, net: Private[list[int]]) -> CenteredLimit:
        """Give the noise about a center, once its limit is chosen; `net` counts who lies above less who lies below."""
        assert isinstance(tallied, TalliedLimit)
        lean = None
        if self.leaning:
            edge = max(0, tallied.bound.limits.index(tallied.limit) - BELOW)
            lean = Lean(edge, look_again(net, edge, self.leaning), float(self.leaning))
        return CenteredLimit(
            tallied.epsilon,
            tallied.share,
            tallied.bound,
            tallied.limit,
            tallied.choosing,
            tallied.groups,
            tallied.tally,
            tallied.taking,
            tallied.cut,
            center,
            lean,
        )


@frozen
class Lean:
    """Of the units that lie farther from the center than an edge, those above less those below, counted with noise."""

    edge: int
    net: int
    epsilon: float


def points_around(centering: Centering, around: int) -> tuple[int, ...]:
    """Give points between the ends of what a row adds: the closer to one of them, the denser."""
    width = centering.high - centering.low
    steps = range(OCTAVE * (width.bit_length() + 1))
    distances = {round(width / 2 ** (k / OCTAVE)) for k in steps}
    both = {around + d for d in distances} | {around - d for d in distances} | {around}
    return tuple(sorted(p for p in both if centering.low < p < centering.high))


@frozen
class CenteredLimit(TalliedLimit):
    """Noise for what units add beyond a center, cut down to a limit that a tally of that chose."""

    center: int
    """In parts of a step, for each row that is counted."""
    lean: Lean | None
    """Which way units lean that are far from the center; None by group."""

    @property
    def divisor(self) -> str:
        """Name the count."""
        assert self.bound.centering is not None
        return self.bound.centering.divisor

    def shown(self, drawn: list[int], others: Mapping[str, list[int]]) -> list[int]:
        """Put back what was taken off: the center, for each row that the noisy count counts."""
        fine = self.fine
        rows = others[self.divisor]
        return [
            x + (2 * self.center * n + fine) // (2 * fine) for x, n in zip(drawn, rows, strict=True)
        ]

    def number(self, step: Fraction, left_out: Span) -> NoisyNumber:
        """Know that the number is made of the count's, besides its own noise."""
        about = self.divisor, float(self.center * step / self.fine)
        number = TalliedLimit.number(self, step, left_out)

        def error(level: Fraction) -> float | None:
            # Rounded to whole steps once more when it is put together.
            own = number.error(level)
            return None if own is None else own + float(step / 2)

        return replace(number, error=error, about=about)

    def usually_cut(
        self, step: Fraction, level: Fraction, share: float = 1.0, shown: float = math.inf
    ) -> tuple[float, float, float] | None:
        """Give what the tally says, of units that lean as those do that are nearly cut."""
        if self.lean is None or self.cut is None or level > HIGHEST:
            return TalliedLimit.usually_cut(self, step, level, share, shown)
        low, high = _leaning(self.cut, self.tally, self.lean, float(level))
        return low * float(step), 0.0, high * float(step)

    def left_out(self, units: int, step: Fraction) -> Span:
        """Give what so many units may have had cut off: a row lies about the center within the whole range."""
        if not units:
            return 0.0, 0.0
        if self.bound.cap is None:
            return float("-inf"), float("inf")
        most = float((2 * self.bound.cap - self.limit) * step) * units
        return -most, most


@lru_cache(maxsize=256)
def _leaning(cut: UsualLimit, tally: OctaveTally, lean: Lean, level: float) -> tuple[float, float]:
    """Give between which numbers what is cut off usually adds up, of units that lie above and below the center."""
    seed = repr((tally.counts, lean, cut.index))
    generator = random.Random(seed)  # noqa: S311 - as in `usual_limit`
    totals = []
    far = tally.counts[lean.edge :]
    for draw in cut.cut:
        units = sum(max(0, c + noise_of(tally.epsilon, generator)) for c in far)
        net = lean.net + noise_of(lean.epsilon, generator)
        part = min(max(net / max(1, units), -1.0), 1.0)
        chance = (1 + part) / 2
        totals.append(math.fsum(each * (2 * dealt(n, chance, generator) - n) for n, each in draw))
    totals.sort()
    miss = SLACK * (1 - level) / 2
    return min(0.0, quantile(totals, miss)), max(0.0, quantile(totals, 1 - miss))
