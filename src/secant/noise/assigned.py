"""Noise on the number of different values that can be assigned to units, a limited number to each.

In: the limits, and for each of them how many values can be assigned. Out: noise of a privately chosen limit's size, and
what is known of the values that the limit left without a unit (truncation.matching).
"""

from __future__ import annotations

import math
from fractions import Fraction

from secant.noise.intervals import Span
from secant.noise.limited import ChosenLimit, ClippedNoise, LimitToChoose
from secant.noise.mechanisms.matching import choose_assigned, lost_at_most
from secant.noise.secrecy import Private
from secant.records import frozen


@frozen
class AssignedLimit(ChosenLimit):
    """Noise for a limit of how many values are assigned to one unit."""

    def units_cut(self, miss: float) -> int:
        """Bound the values that found no unit, in parts of the most that one unit may have."""
        spent = self.choosing, self.epsilon - self.choosing
        return lost_at_most(self.bound.limits, self.limit, *spent, miss)

    def left_out(self, units: int, step: Fraction) -> Span:
        """Give what was not counted of values at most; without a declared limit nothing bounds it."""
        most, cap = self.bound.limits[-1], self.bound.cap
        if cap is None or cap > most:
            return 0.0, math.inf
        return 0.0, float(most * step) * units


@frozen
class LimitToAssign(LimitToChoose):
    """Noise for a limit that is chosen by how many values can be assigned under each."""

    def at(self, limit: int, groups: int) -> ChosenLimit:
        """Give the noise with a limit chosen."""
        return AssignedLimit(self.epsilon, self.share, self.bound, limit, self.choosing, groups)

    def settled(self, above: Private[list[int]], groups: int) -> ClippedNoise:
        """Choose a limit; `above` counts the values that can be assigned under each."""
        spent = self.choosing, self.epsilon - self.choosing
        return self.at(choose_assigned(self.bound.limits, above, *spent), groups)
