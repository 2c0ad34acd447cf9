"""Noise for a sum that is divided by a count: what units add beyond a center times their rows is cut down and hidden.

Rests on truncation.center.

In: units by their own average among public points, sealed; tallies of what they add beyond a center. Out: a center that
is chosen privately in two steps, the second of which looks closer around the first; a limit; noise of its size. What
is shown of the sum is put together from that and from the noisy count.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING

from secant.noise.intervals import NoisyNumber, Span
from secant.noise.limited import ClippedNoise, LimitToTally, TalliedLimit
from secant.noise.measure_noise import LaplaceShare
from secant.noise.mechanisms.centers import choose_cell
from secant.noise.secrecy import Private
from secant.records import frozen
from secant.sensitivity.certificate import Centering

if TYPE_CHECKING:
    from secant.noise.query_plan import Reading

PLACING = Fraction(1, 10)
"""What of a measure's share the choices of a center take: two, alike."""
NEARING = Fraction(3, 20)
"""What a first look at the sum about that center takes: where means and medians differ, the center moves."""
OCTAVE = 8
"""Points for each octave of the distance from what is looked around."""


@frozen
class CenterToChoose(LimitToTally):
    """Noise about a center that is chosen privately, then the limit; what both take is `choosing`."""

    placing: Fraction
    """What of epsilon the two choices of a center take, together."""
    nearing: Fraction
    """What of it the first look at the sum takes."""

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
        return self.choosing - self.placing - self.nearing

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

    def about(self, center: int, tallied: ClippedNoise) -> CenteredLimit:
        """Give the noise about a center, once its limit is chosen."""
        assert isinstance(tallied, TalliedLimit)
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
        )


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

    def left_out(self, units: int, step: Fraction) -> Span:
        """Give what so many units may have had cut off: a row lies about the center within the whole range."""
        if not units:
            return 0.0, 0.0
        if self.bound.cap is None:
            return float("-inf"), float("inf")
        most = float((2 * self.bound.cap - self.limit) * step) * units
        return -most, most
