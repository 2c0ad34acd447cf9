"""The open tree: blocks of b^l steps for each level l, released when they are complete.

Rests on continual.levels, continual.below.

In: branching, levels, and the released numbers of blocks. Out: which blocks end at a step, estimates of any stretch of
steps, and of how many noises of which weight their errors consist. One level is plain increments. Estimates are in
floats: they are made of released numbers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from secant.errors import UsageError
from secant.noise.continual.records import Change, Output
from secant.numeric.arrays import Floats, Wholes, np
from secant.records import frozen


@frozen
class Tree:
    """Levels of blocks; all state of it is public, so it can be left and taken up at any time."""

    branching: int
    levels: int
    weighted: bool = True
    """Whether a block and the blocks below it are put together by least squares; the plain tree is for comparison."""

    def __post_init__(self) -> None:
        if self.branching < 2 or self.levels < 1:
            raise UsageError("USE-001", "a tree has branches and levels")

    def block(self, level: int) -> int:
        """Give how many steps a block of a level has."""
        return int(self.branching**level)

    def due(self, step: int, start: int) -> Iterator[Output]:
        """Go through the blocks that end with the step-th step after `start` steps."""
        for level in range(self.levels):
            size = self.block(level)
            if step % size:
                return
            first, last = start + step - size + 1, start + step
            yield Output(f"{level}:{first}-{last}", first, last)

    def squared(self, change: Change) -> int:
        """Bound the squared length that all blocks together move by, of any part of what is moved (continual.levels).

        It is a product with the sum of sizes, so that parts of a move in several trees add up.
        """
        most = (min(change.size, change.each * self.block(level)) for level in range(self.levels))
        return change.size * sum(most)

    def least_squared(self, change: Change) -> int:
        """The same for one tree that sees all of the move: it may be smaller."""
        total = 0
        for level in range(self.levels):
            met = change.within(self.block(level))
            assert met is not None
            total += min(
                change.size * min(change.size, change.each * self.block(level)),
                change.squared * met,
            )
        return total

    def shares(self) -> tuple[list[float], list[float]]:
        """Give, in units of one noise, the variance of each level's estimate and the weight of a block's own number."""
        variances, own = [1.0], [1.0]
        for _ in range(1, self.levels):
            below = self.branching * variances[-1]
            share = 1 / (1 + 1 / below) if self.weighted else 1.0
            variances.append(share)
            own.append(share)
        return variances, own

    def counts(self, low: Wholes, high: Wholes) -> Wholes:
        """Give how many blocks of each level make up the steps from `low` (without it) to `high`."""
        low, high = low.copy(), high.copy()
        counts = np.zeros((self.levels, len(low)), np.int64)
        b = self.branching
        for level in range(self.levels - 1):
            left = np.minimum(-low % b, high - low)
            low += left
            right = np.minimum(high % b, high - low)
            high -= right
            counts[level] = left + right
            empty = low == high
            low, high = -(-low // b), high // b
            low[empty] = high[empty]
        counts[-1] = high - low
        return counts

    def variances(self, low: Wholes, high: Wholes) -> Floats:
        """Give the variances of stretches, in units of the variance of one noise."""
        return np.asarray(np.array(self.shares()[0]) @ self.counts(low, high), np.float64)

    def read(self, released: Mapping[str, int], start: int, steps: int) -> list[Floats]:
        """Give the released numbers, level by level, of the first `steps` steps after `start`."""
        columns = []
        for level in range(self.levels):
            size = self.block(level)
            names = (
                f"{level}:{start + i * size + 1}-{start + (i + 1) * size}"
                for i in range(steps // size)
            )
            columns.append(np.array([number(released, name) for name in names], np.float64))
        return columns

    def below(self, numbers: Sequence[Floats]) -> list[Floats]:
        """Give the estimate of each block from its own number and the blocks below it (continual.below)."""
        _, own = self.shares()
        layers = [numbers[0]]
        for level in range(1, self.levels):
            count = len(numbers[level])
            kids = layers[-1][: count * self.branching].reshape(count, self.branching).sum(axis=1)
            layers.append(own[level] * numbers[level] + (1 - own[level]) * kids)
        return layers

    def sums(self, estimates: Sequence[Floats], low: Wholes, high: Wholes) -> Floats:
        """Give the estimates of stretches, by the same blocks as `counts`."""
        low, high = low.copy(), high.copy()
        total = np.zeros(len(low))
        b = self.branching
        for level in range(self.levels):
            running = np.concatenate(([0.0], np.cumsum(estimates[level])))
            last = level == self.levels - 1
            left = high - low if last else np.minimum(-low % b, high - low)
            total += running[low + left] - running[low]
            if last:
                break
            low = low + left
            right = np.minimum(high % b, high - low)
            total += running[high] - running[high - right]
            high = high - right
            empty = low == high
            low, high = -(-low // b), high // b
            # where nothing is left, both ends point to the front: there always is one
            low[empty] = high[empty] = 0
        return total

    def pieces(self, counts: Wholes) -> tuple[tuple[int, float, int], ...]:
        """Give of what the error of a stretch consists: (level of a block's estimate, its weight, how many)."""
        return tuple((level, 1.0, int(n)) for level, n in enumerate(counts) if n)

    def noises(self, level: int) -> list[tuple[float, int]]:
        """Give of what the error of one estimate of a level consists: (weight of a noise, how many)."""
        _, own = self.shares()
        noises, weight, count = [], 1.0, 1
        for down in range(level, -1, -1):
            noises.append((weight * own[down], count))
            weight, count = weight * (1 - own[down]), count * self.branching
        return [(w, n) for w, n in noises if w]

    def to_dict(self) -> dict[str, Any]:
        """Give it as plain data."""
        return {"branching": self.branching, "levels": self.levels, "weighted": self.weighted}


def number(released: Mapping[str, int], name: str) -> int:
    """Give a released number, which must be there."""
    if name not in released:
        raise UsageError("USE-001", f"the series needs the number {name}, which was not released")
    return released[name]
