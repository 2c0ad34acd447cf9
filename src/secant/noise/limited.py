"""Noise for limits of what one unit adds: declared, chosen privately, or all at once in a race.

In: the limits, and measures that were read with what units add cut down. Out: noise of the limit's size, and what is
known of what the limit cut off.
"""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar

from secant.errors import InternalError
from secant.noise.cost import Cost
from secant.noise.intervals import NoisyNumber, Span
from secant.noise.measure_noise import (
    KeyChoice,
    LaplaceShare,
    LawfulNoise,
    Noise,
    NormalShare,
    Share,
    coarse,
)
from secant.noise.mechanisms.limits import (
    choose_limit,
    cut_at_most,
    look_again,
    race,
    sides_of,
    take_tally,
)
from secant.noise.secrecy import Private
from secant.noise.tail import (
    HIGHEST,
    OctaveTally,
    UsualLimit,
    confirmed,
    cut_by_tally,
    last_seen,
    likeliest_octave,
    to_look_at_again,
    usual_limit,
)
from secant.records import frozen
from secant.sensitivity.certificate import Certificate, ClippedContribution

if TYPE_CHECKING:
    from secant.noise.query_plan import Reading

MANY = 2**30
"""Between limits that lie so far apart the noise may be anything: it is told in parts of the limit."""
USUAL_GROUPS = 4
"""Groups that a unit is usually in, at most, where nothing says in how many."""
LOOKING = Fraction(2, 7)
"""What of the noise's epsilon a second look takes, where a tally leaves doubt: 0.2 of 0.7."""


@frozen
class ClippedNoise(LawfulNoise):
    """Noise for a limit of what one unit adds; what it adds is cut down to that (truncation.clip)."""

    bound: ClippedContribution
    limit: int

    @property
    def hidden(self) -> tuple[Fraction, Fraction]:
        """Give the limit."""
        return Fraction(self.limit), self.bound.squared(self.limit)

    @property
    def fine(self) -> int:
        """Cut-down measures are read in parts of steps."""
        return self.bound.fine

    def read_by(self, reading: Reading, column: str) -> None:
        """Read the measure with what units add cut down."""
        reading.units_of(self.bound.contributions).clipped[column] = self

    def settled(self, above: Private[list[int]], groups: int) -> ClippedNoise:
        """Give the noise once its limit is chosen; `above` counts the units that add more than each limit."""
        return self

    def cost(self, certificate: Certificate, column: str) -> Cost:
        """Cost all of it: under the one protection that the measure moves under (combined.one)."""
        return self.share.cost(Fraction(1), Fraction(1))

    @property
    def most(self) -> int | None:
        """The limit."""
        return self.limit

    @property
    def partners(self) -> tuple[str, ...]:
        """Measures of one quotient are cut down together."""
        return self.bound.partners

    def left_out(self, units: int, step: Fraction) -> Span:
        """Give what so many units may have had cut off; another measure's limit may have cut off everything."""
        return _left_out(self.bound, units, 0, step)


@frozen
class ChosenLimit(ClippedNoise):
    """Noise for a limit that was chosen privately. The limit is public, how many units it cuts is not."""

    choosing: Fraction
    """What of epsilon the choice took."""
    groups: int
    """Groups that get noise of the limit's size, as known before the choice."""
    chosen: ClassVar[bool] = True

    @property
    def cuts_nobody(self) -> bool:
        """Compare with the declared limits."""
        return self.bound.cap is not None and self.limit >= self.bound.cap

    def units_cut(self, miss: float) -> int:
        """Bound what the choice cut by what is public about it."""
        spent = self.choosing, self.epsilon - self.choosing
        return cut_at_most(self.bound.limits, self.limit, *spent, self.groups, miss)

    def left_out(self, units: int, step: Fraction) -> Span:
        """Give what so many units may have had cut off: cut down by its own limit alone, a unit keeps that much."""
        limit = self.limit if len(self.bound.partners) == 1 else 0
        return _left_out(self.bound, units, limit, step)

    def describe(self, step: Fraction) -> dict[str, Any]:
        """Tell the limit."""
        return _describe_choice(self.share, self.choosing, float(self.limit * step))

    def sensitivities(self, content: list[int]) -> list[Fraction]:
        """Give the limit, group by group."""
        return [Fraction(self.limit)] * len(content)

    def scales(self, content: list[int]) -> list[Fraction]:
        """Give the size of the law, group by group."""
        return [self.law.size] * len(content)


@frozen
class LimitToChoose(ClippedNoise):
    """Noise for a limit that is chosen privately (truncation.choose); `limit` is the largest that there is."""

    choosing: Fraction
    """What of epsilon the choice takes."""
    besides: ClassVar[str] = "besides what is cut off above the limit"

    def at(self, limit: int, groups: int) -> ChosenLimit:
        """Give the noise with a limit chosen."""
        return ChosenLimit(self.epsilon, self.share, self.bound, limit, self.choosing, groups)

    def settled(self, above: Private[list[int]], groups: int) -> ClippedNoise:
        """Choose a limit."""
        spent = self.choosing, self.epsilon - self.choosing
        return self.at(choose_limit(self.bound.limits, above, *spent, groups), groups)

    def draw(self, values: Private[list[int]]) -> list[int]:
        """Never: the law is not known yet."""
        raise InternalError("BUG-001", "noise was asked for before its limit was chosen")

    def cost(self, certificate: Certificate, column: str) -> Cost:
        """Cost the choice and the noise."""
        return Cost(pure=self.choosing) + self.share.cost(Fraction(1), Fraction(1))

    def key_choice(self, delta: Fraction, groups: int, contribution: int) -> KeyChoice:
        """Never: the law is not known yet."""
        raise InternalError("BUG-001", "keys are chosen by a number without plain noise")

    def either(self) -> tuple[Fraction, Fraction, Fraction] | None:
        """Take either law. The larger the limit the more normal noise gains: it has to gain at most of the limits.

        Where only the number of a unit's groups counts, at a usual number of them: more are found by a tally, too.
        """
        limits, within = self.bound.limits, self.bound.within
        limit = limits[len(limits) // 4]
        if self.bound.octaves and within is not None:
            limit = min(limit, max(limits[0], USUAL_GROUPS * within))
        return self.epsilon - self.choosing, Fraction(limit), self.bound.squared(limit)

    def number(self, step: Fraction, left_out: Span) -> NoisyNumber:
        """Know nothing yet."""
        return NoisyNumber(0.0, lambda level: None)

    def usual_error(self, level: Fraction, one: Fraction) -> int | None:
        """Take the least limit that one row keeps to."""
        limits = self.bound.limits
        return self.at(next((x for x in limits if x >= one), limits[-1]), 1).law.error(level)

    def candidates(self, groups: int) -> tuple[ClippedNoise, ...]:
        """Give the noise with each of the limits."""
        return tuple(self.at(limit, groups) for limit in self.bound.limits)

    def describe(self, step: Fraction) -> dict[str, Any]:
        """Tell that a limit will be chosen."""
        return _describe_choice(self.share, self.choosing, None)

    def words(self, step: Fraction, level: Fraction) -> str:
        """Say between which sizes the noise lies."""
        least, most = self.bound.limits[0], self.bound.limits[-1]
        ends = [float(self.at(limit, 1).law.error(level) * step) for limit in (least, most)]
        within = f"{ends[0]:.6g} to {ends[1]:.6g}"
        if most > MANY * least:
            within = f"{ends[1] / float(most * step):.3g} times the limit"
        return (
            f"a limit of what one unit adds is chosen privately (epsilon {float(self.choosing):.4g}), then "
            f"{self.share.once_limited}; noise within "
            f"{within} at {float(level):.0%}, {self.besides}"
        )


@frozen
class TalliedLimit(ChosenLimit):
    """Noise for a limit that was read off a noisy tally of units by octave, and what that says of who is cut."""

    tally: OctaveTally
    taking: OctaveTally | None
    """The same of units that take away, where they are told from those that add."""
    cut: UsualLimit | None
    """How much the limit cuts off usually, in whole steps; None where too few people were seen."""

    def units_cut(self, miss: float) -> int:
        """Bound the units above the limit by what was counted above it (truncation.octaves)."""
        below = len(self.tally.counts) - len(self.bound.limits)
        edge = below + self.bound.limits.index(self.limit)
        tallies = [t for t in (self.tally, self.taking) if t is not None]
        return sum(cut_by_tally(t, edge, miss / len(tallies)) for t in tallies)

    def usually_cut(
        self, step: Fraction, level: Fraction, share: float = 1.0, shown: float = math.inf
    ) -> tuple[float, float, float] | None:
        """Give what the tally says."""
        if self.cut is None or level > HIGHEST:
            return None
        low, middle, high = (x * float(step) for x in self.cut.left_out(share, float(level)))
        told = self.bound.positive or self.taking is not None
        return (low, middle, high) if told else (-high, 0.0, high)


@frozen
class LimitToTally(LimitToChoose):
    """Noise for a limit that is read off a noisy tally of units by octave (truncation.octaves)."""

    besides: ClassVar[str] = (
        "besides what is cut off above the limit, which the usual error that comes with the answer estimates"
    )

    @property
    def tallying(self) -> Fraction:
        """What of epsilon the tally takes."""
        return self.choosing

    def at(self, limit: int, groups: int) -> ChosenLimit:
        """Give the noise with a limit chosen, as wide as it is after a second look."""
        chosen = LimitToChoose.at(self, limit, groups)
        return replace(chosen, share=_after_a_look(self.share))

    def settled(self, above: Private[list[int]], groups: int) -> ClippedNoise:
        """Take the tally, count once more where a few units seem to add far more than all others, and choose.

        Units that take away may be counted apart from those that add: each stands on one side.
        """
        limits = self.bound.limits
        sides = sides_of(above, len(limits))
        tallies = [take_tally(limits, side, self.tallying) for side in sides]
        share, look = self.share, None
        doubtful = [to_look_at_again(t) for t in tallies]
        if any(edge is not None for edge in doubtful) and isinstance(share, LaplaceShare):
            look = share.epsilon * LOOKING
            share = _after_a_look(share)
        reached = [
            _last(t, side, edge, look)
            for t, side, edge in zip(tallies, sides, doubtful, strict=True)
        ]
        # Beside normal noise, no part of which is epsilon, what is not sure is not believed.
        seen = any(last is not None for last in reached)
        tally, last = tallies[0], reached[0]
        if not seen:
            last = likeliest_octave(tally)

        edges = len(tally.counts)
        below = edges - len(limits)

        def noise(index: int) -> tuple[float, bool]:
            limit = limits[index - below]
            law = share.law(limit, self.bound.squared(limit))
            return float(law.size), law.normal

        declared = self.bound.cap is not None
        if not declared and edges - 1 in reached:
            seen = False  # how far people lie above the last limit, nothing tells
        found = usual_limit(
            tally,
            last,
            noise,
            choices=edges,
            least=below,
            groups=groups,
            declared=declared,
            taking=None if len(tallies) == 1 else (tallies[1], reached[1]),
        )
        return TalliedLimit(
            epsilon=self.epsilon,
            share=share,
            bound=self.bound,
            limit=limits[-1 if found is None else found.index - below],
            choosing=self.choosing,
            groups=groups,
            tally=tally,
            taking=None if len(tallies) == 1 else tallies[1],
            cut=found if seen else None,
        )


def _last(
    tally: OctaveTally, side: Private[list[int]], edge: int | None, look: Fraction | None
) -> int | None:
    """Give the last octave that surely holds units; `edge` is where that is in doubt, `look` what a look may take."""
    last = last_seen(tally, strict=True)
    if edge is None:
        return last if last is None else last_seen(tally)
    if look is None:
        return last
    return confirmed(tally, look_again(side, edge, look), float(look))


def _after_a_look(share: Share) -> Share:
    """Give what a second look leaves for the noise."""
    if isinstance(share, NormalShare):
        return share
    return LaplaceShare(share.epsilon * (1 - LOOKING))


@frozen
class RaceNoise(Noise):
    """Every limit has noise of its own, and the largest answer wins that noise does not explain (truncation.race)."""

    bound: ClippedContribution

    @property
    def each(self) -> Fraction:
        """What of epsilon each limit gets."""
        return self.epsilon / len(self.bound.limits)

    def read_by(self, reading: Reading, column: str) -> None:
        """Read the measure cut down to each limit."""
        reading.units_of(self.bound.contributions).racing[column] = self

    def draw(self, values: Private[list[tuple[int, ...]]]) -> list[int]:
        """Let them race."""
        return race(self.bound.limits, values, self.each)

    def describe(self, step: Fraction) -> dict[str, Any]:
        """Tell how many race."""
        return {"mechanism": "race to the top", "limits": len(self.bound.limits)}

    def words(self, step: Fraction, level: Fraction) -> str:
        """Say what a race does."""
        return (
            f"limits race, each at epsilon {float(self.each):.4g}; the largest "
            "answer wins that noise does not explain, so it tends to be too small"
        )

    @property
    def most(self) -> int | None:
        """The largest limit."""
        return self.bound.limits[-1]

    @property
    def partners(self) -> tuple[str, ...]:
        """Its own limits cut it down."""
        return self.bound.partners

    def left_out(self, units: int, step: Fraction) -> Span:
        """Give what so many units may have had cut off."""
        return _left_out(self.bound, units, 0, step)

    def unnoised(self, content: list[tuple[int, ...]]) -> list[int]:
        """Show the measure cut down to the largest limit."""
        return coarse([answers[-1] for answers in content], self.bound.fine)


def _left_out(bound: ClippedContribution, units: int, limit: int, step: Fraction) -> Span:
    if not units:
        return 0.0, 0.0
    most = math.inf if bound.cap is None else float((bound.cap - limit) * step) * units
    return (0.0 if bound.positive else -most), most


def _describe_choice(share: Share, choosing: Fraction, limit: float | None) -> dict[str, Any]:
    return {
        "mechanism": f"{share.name} within a limit that is chosen privately",
        "choosing": float(choosing),
        "limit": limit,
    }
