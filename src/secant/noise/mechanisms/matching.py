"""Count different values by assigning each to one unit that has it, and choose privately how many one unit gets.

In: which units have which values, and a public list of limits. Out: for each limit how many values can be assigned at
once, and one of the limits. Values that everybody has are assigned to whoever has room, so that a small limit loses few
of them; units that bring in their first values only would all bring in the same ones (truncation.matching).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

from secant.noise.mechanisms.selection import Choice, PermuteAndFlip, pick_flip
from secant.noise.secrecy import Private, unseal

APART = 2
"""A limit is compared with those that are at least so many times as large."""
REACH = 1 + Fraction(1, APART)
"""How far apart one unit moves the scores of two limits, at most."""
WORTH = Fraction(2)
"""Values that a limit must win for each of its steps, times the epsilon of the noise."""
FALL = Fraction(5, 2)
"""How fast weights fall with the limit, as a power."""


def octaves(most: int) -> tuple[int, ...]:
    """Give 0, 1, 2, 4, 8, … up to the largest limit: units are tallied by how many values they have."""
    return (0, *(2**k for k in range(most.bit_length())))


def assignable(
    pairs: Iterable[tuple[Hashable, Hashable]], limits: Sequence[int]
) -> tuple[list[int], list[int], list[int]]:
    """Count for each limit, ascending, the units with more values, and the values that can be assigned at once.

    Then the units with more values than each end of an octave. Each pair is a unit and a value of it, and stands there
    once. A value of nobody needs no unit.
    """
    number: dict[Hashable, int] = {}
    holders: dict[Hashable, list[int]] = {}
    nobodys: set[Hashable] = set()
    sizes: Counter[int] = Counter()
    for unit, value in pairs:
        if unit is None:
            nobodys.add(value)
            continue
        place = number.setdefault(unit, len(number))
        sizes[place] += 1
        holders.setdefault(value, []).append(place)
    several = Counter(sizes.values())

    def more(ends: Sequence[int]) -> list[int]:
        return [sum(many for size, many in several.items() if size > end) for end in ends]

    wanted = sorted((x for value, x in holders.items() if value not in nobodys), key=len)
    matching = _Matching(wanted, [set() for _ in number])
    assigned = [len(nobodys) + matching.assigned(limit) for limit in limits]
    return more(limits), assigned, more(octaves(limits[-1]))


def scores_of(limits: Sequence[int], assigned: Sequence[int], noising: Fraction) -> list[Fraction]:
    """Give how many values per step a larger limit would win beyond what its noise costs, below 0. Private."""
    worth = WORTH / noising
    scores = []
    for limit, here in zip(limits, assigned, strict=True):
        wins = (
            (there - here - worth * (larger - limit)) / larger
            for larger, there in zip(limits, assigned, strict=True)
            if larger >= APART * limit
        )
        scores.append(-max((Fraction(0), *wins)))
    return scores


def penalties(limits: Sequence[int], choosing: Fraction) -> list[Fraction]:
    """Give what each limit's score is lowered by: public."""
    logs = (Fraction(round(math.log(limit / limits[0]) * 10**6), 10**6) for limit in limits)
    return [FALL * REACH * x / choosing for x in logs]


def choose_assigned(
    limits: Sequence[int],
    assigned: Private[Sequence[int]] | Sequence[int],
    choosing: Fraction,
    noising: Fraction,
) -> int:
    """Give one of the limits; one unit moves the scores of any two of them apart by `REACH` at most."""
    choice = Choice(PermuteAndFlip.name, choosing, choosing / REACH, pick_flip)
    scores = scores_of(limits, unseal(assigned), noising)
    fallen = penalties(limits, choosing)
    return limits[choice.draw([s - p for s, p in zip(scores, fallen, strict=True)])]


def lost_at_most(
    limits: Sequence[int], limit: int, choosing: Fraction, noising: Fraction, miss: float
) -> int:
    """Give how many values the largest limit counts that the chosen one does not, but for `miss` of all choices.

    Rests on truncation.matching. In parts of the largest limit, rounded up.
    """
    if limit == limits[-1]:
        return 0
    fallen = penalties(limits, choosing)
    slack = REACH * Fraction(math.log(len(limits) / miss)) / choosing
    return math.ceil(WORTH / noising + fallen[-1] - fallen[limits.index(limit)] + slack) + 1


@dataclass(slots=True)
class _Matching:
    """Values assigned to units that have them, as many as there can be; limits only grow."""

    holders: list[list[int]]
    """Value -> its units; values that few units have come first."""
    held: list[set[int]]
    """Unit -> the values that are assigned to it."""
    owner: dict[int, int] = field(default_factory=dict)
    """Value -> the unit that it is assigned to."""

    def assigned(self, limit: int) -> int:
        """Assign values so that no unit gets more than a limit; give how many can be assigned."""
        kernel = len(self.holders)
        # The last value finds a unit with room whatever is assigned before it, and need not be assigned.
        while kernel and limit * len(self.holders[kernel - 1]) >= kernel:
            kernel -= 1
            if (unit := self.owner.pop(kernel, None)) is not None:
                self.held[unit].discard(kernel)
        waiting = self._placed(kernel, limit)
        while waiting and self._moved(waiting, limit):
            waiting = [v for v in waiting if v not in self.owner]
        return len(self.owner) + len(self.holders) - kernel

    def _placed(self, kernel: int, limit: int) -> list[int]:
        """Assign values to units that have room; give those that find none."""
        waiting = []
        for value in range(kernel):
            if value not in self.owner:
                unit = next((u for u in self.holders[value] if len(self.held[u]) < limit), None)
                if unit is None:
                    waiting.append(value)
                else:
                    self.owner[value] = unit
                    self.held[unit].add(value)
        return waiting

    def _moved(self, waiting: list[int], limit: int) -> bool:
        """Make room by moving values from unit to unit; without any way to do so there are as many as can be."""
        reached_by: dict[int, int] = {}
        rooms, values = list[int](), waiting
        while values:
            reached = list[int]()
            for value in values:
                for unit in self.holders[value]:
                    if unit not in reached_by:
                        reached_by[unit] = value
                        reached.append(unit)
            rooms += [u for u in reached if len(self.held[u]) < limit]
            values = [v for u in reached if len(self.held[u]) >= limit for v in self.held[u]]
        moved = set[int]()
        for room in rooms:
            way = [(reached_by[room], room)]
            while (owner := self.owner.get(way[-1][0])) is not None and way[-1][0] not in moved:
                way.append((reached_by[owner], owner))
            if moved.isdisjoint(v for v, _ in way):
                for value, unit in way:
                    if (old := self.owner.get(value)) is not None:
                        self.held[old].discard(value)
                    self.owner[value] = unit
                    self.held[unit].add(value)
                    moved.add(value)
        return bool(rooms)
