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
from secant.noise.mechanisms.limits import choose_limit, cut_at_most, look_again, race, take_tally
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
        ends = [
            float(self.at(limit, 1).law.error(level) * step)
            for limit in (self.bound.limits[0], self.bound.limits[-1])
        ]
        return (
            f"a limit of what one unit adds is chosen privately (epsilon {float(self.choosing):.4g}), then "
            f"{self.share.once_limited}; noise within "
            f"{ends[0]:.6g} to {ends[1]:.6g} at {float(level):.0%}, besides what is cut off above the limit"
        )


@frozen
class TalliedLimit(ChosenLimit):
    """Noise for a limit that was read off a noisy tally of units by octave, and what that says of who is cut."""

    tally: OctaveTally
    cut: UsualLimit | None
    """How much the limit cuts off usually, in whole steps; None where too few people were seen."""

    def units_cut(self, miss: float) -> int:
        """Bound the units above the limit by what was counted above it (truncation.octaves)."""
        below = len(self.tally.counts) - len(self.bound.limits)
        return cut_by_tally(self.tally, below + self.bound.limits.index(self.limit), miss)

    def usually_cut(
        self, step: Fraction, level: Fraction, share: float = 1.0
    ) -> tuple[float, float, float] | None:
        """Give what the tally says."""
        if self.cut is None or level > HIGHEST:
            return None
        low, middle, high = (x * float(step) for x in self.cut.left_out(share, float(level)))
        return (low, middle, high) if self.bound.positive else (-high, 0.0, high)


@frozen
class LimitToTally(LimitToChoose):
    """Noise for a limit that is read off a noisy tally of units by octave (truncation.octaves)."""

    def at(self, limit: int, groups: int) -> ChosenLimit:
        """Give the noise with a limit chosen, as wide as it is after a second look."""
        chosen = LimitToChoose.at(self, limit, groups)
        return replace(chosen, share=_after_a_look(self.share))

    def settled(self, above: Private[list[int]], groups: int) -> ClippedNoise:
        """Take the tally, count once more where a few units seem to add far more than all others, and choose."""
        limits = self.bound.limits
        tally = take_tally(limits, above, self.choosing)
        share = self.share
        edge, last = to_look_at_again(tally), last_seen(tally, strict=True)
        if edge is None and last is not None:
            last = last_seen(tally)
        elif edge is not None and isinstance(share, LaplaceShare):
            look = share.epsilon * LOOKING
            share = _after_a_look(share)
            last = confirmed(tally, look_again(above, edge, look), float(look))
        # Beside normal noise, no part of which is epsilon, what is not sure is not believed.
        seen = last is not None
        if last is None:
            last = likeliest_octave(tally)

        edges = len(tally.counts)
        below = edges - len(limits)

        def noise(index: int) -> tuple[float, bool]:
            limit = limits[index - below]
            law = share.law(limit, self.bound.squared(limit))
            return float(law.size), law.normal

        declared = self.bound.cap is not None
        found = usual_limit(
            tally, last, noise, choices=edges, least=below, groups=groups, declared=declared
        )
        return TalliedLimit(
            epsilon=self.epsilon,
            share=share,
            bound=self.bound,
            limit=limits[-1 if found is None else found.index - below],
            choosing=self.choosing,
            groups=groups,
            tally=tally,
            cut=found if seen else None,
        )


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
