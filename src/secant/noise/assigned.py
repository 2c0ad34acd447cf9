"""Noise on the number of different values that can be assigned to units, a limited number to each.

In: the limits, for each of them how many values can be assigned, and the units by octave of how many they have. Out:
noise of a privately chosen limit's size, and what is known of the values that found no unit (truncation.matching).
"""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from typing import ClassVar

from secant.noise.intervals import Span
from secant.noise.limited import ChosenLimit, ClippedNoise, LimitToChoose, LimitToTally
from secant.noise.lost_values import usually_lost
from secant.noise.mechanisms.limits import take_tally
from secant.noise.mechanisms.matching import choose_assigned, lost_at_most, octaves
from secant.noise.secrecy import Private, sealed_map
from secant.noise.tail import HIGHEST, OctaveTally, last_seen
from secant.records import frozen

TALLYING = Fraction(3, 8)
"""What of the choice's epsilon the tally takes: 0.15 of the measure's."""


@frozen
class AssignedLimit(ChosenLimit):
    """Noise for a limit of how many values are assigned to one unit."""

    tally: OctaveTally | None = None
    """Units by octave of how many values they have, with noise; None before it is taken."""

    def units_cut(self, miss: float) -> int:
        """Bound the values that found no unit, in parts of the most that one unit may have."""
        choosing, noising = self.choosing * (1 - TALLYING), self.epsilon - self.choosing
        return lost_at_most(self.bound.limits, self.limit, choosing, noising, miss)

    def left_out(self, units: int, step: Fraction) -> Span:
        """Give what was not counted of values at most; without a declared limit nothing bounds it."""
        most, cap = self.bound.limits[-1], self.bound.cap
        if cap is None or cap > most:
            return 0.0, math.inf
        return 0.0, float(most * step) * units

    def usually_cut(
        self,
        step: Fraction,
        level: Fraction,
        share: float = 1.0,
        shown: float = math.inf,
    ) -> tuple[float, float, float] | None:
        """Give what usually finds no unit, where the tally sees whom there is."""
        last = None if self.tally is None else last_seen(self.tally)
        if self.tally is None or last is None or level > HIGHEST:
            return None
        counted = max(shown / float(step) + self.law.error(level), 1.0)
        lost = usually_lost(self.tally, last, self.limit, counted, float(level))
        return 0.0, 0.0, math.ceil(lost) * float(step)


@frozen
class LimitToAssign(LimitToChoose):
    """Noise for a limit that is chosen by how many values can be assigned under each."""

    besides: ClassVar[str] = LimitToTally.besides

    def at(self, limit: int, groups: int) -> ChosenLimit:
        """Give the noise with a limit chosen."""
        return AssignedLimit(self.epsilon, self.share, self.bound, limit, self.choosing, groups)

    def settled(self, above: Private[list[int]], groups: int) -> ClippedNoise:
        """Tally the units, and choose a limit; `above` holds what can be assigned, then units by octave."""
        limits = self.bound.limits
        tallying = self.choosing * TALLYING
        counted = sealed_map(above, lambda told: told[len(limits) :])
        tally = take_tally(octaves(limits[-1]), counted, tallying)
        assigned = sealed_map(above, lambda told: told[: len(limits)])
        spent = self.choosing - tallying, self.epsilon - self.choosing
        chosen = self.at(choose_assigned(limits, assigned, *spent), groups)
        assert isinstance(chosen, AssignedLimit), "what this noise becomes"
        # Whoever has any value has one at least: the first octave is that of one value.
        return replace(chosen, tally=replace(tally, edges=(0.5, *tally.edges[1:])))
