"""All steps at once: the blocks of a tree over known steps, and running sums by least squares.

Rests on continual.batch, continual.revised.

In: a tree, how many steps there are, the released numbers of its blocks. Out: estimates of all steps, of which noises
any weighted sum of running sums consists, and the tree with the least error. No numpy: questions in SQL come here.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import accumulate, pairwise

from secant.noise.continual.levels import Tree

BRANCHES = range(2, 41)
LOOKED_AT = 32
"""Trees are judged by so many steps, evenly spread."""
WORTH = 0.9
"""Blocks are taken if errors are at most this part of those of plain sums: single steps are told less exactly."""
NOTHING = 1e-12


def blocks(tree: Tree, values: Sequence[int]) -> list[int]:
    """Give the sums of all complete blocks, level by level: what noise is added to."""
    sums: list[int] = []
    running = [0, *accumulate(values)]
    for level in range(tree.levels):
        size = tree.block(level)
        ends = range(0, len(values) + 1, size)
        sums += [running[high] - running[low] for low, high in pairwise(ends)]
    return sums


def change_of_blocks(tree: Tree, size: Fraction, squared: Fraction) -> tuple[Fraction, Fraction]:
    """Give the size and the squared length that all blocks together move by, from those of the steps.

    Rests on continual.batch.
    """
    lengths = (min(size**2, tree.block(level) * squared) for level in range(tree.levels))
    return tree.levels * size, sum(lengths, Fraction(0))


def steps_of(tree: Tree, steps: int, numbers: Sequence[int]) -> list[int]:
    """Give whole numbers of all steps whose running sums are the nearest to those of least squares.

    Rests on continual.revised.
    """
    counts = [steps // tree.block(level) for level in range(tree.levels)]
    starts = [0, *accumulate(counts)]
    drawn = [numbers[low:high] for low, high in pairwise(starts)]
    running = [0, *accumulate(drawn[0])]
    # What blocks exceed their steps by is as small as the noise: no digits are lost.
    beyond = [
        [float(y - running[(i + 1) * size] + running[i * size]) for i, y in enumerate(level)]
        for level, size in zip(drawn, map(tree.block, range(tree.levels)), strict=True)
    ]
    corrections = accumulate(leaves(tree, beyond))
    shown = [x + round(c) for x, c in zip(running[1:], corrections, strict=True)]
    return [high - low for low, high in pairwise((0, *shown))]


def leaves(tree: Tree, numbers: Sequence[Sequence[float]]) -> list[float]:
    """Give the least-squares estimates of all steps from the numbers of blocks, level by level (continual.revised)."""
    b, (_, own) = tree.branching, tree.shares()
    below = [list(numbers[0])]
    for level in range(1, tree.levels):
        inside = below[-1]
        below.append(
            [
                own[level] * y + (1 - own[level]) * sum(inside[i * b : (i + 1) * b])
                for i, y in enumerate(numbers[level])
            ]
        )
    above = below[-1]
    for here in reversed(below[:-1]):
        for i, total in enumerate(above):
            gap = (total - sum(here[i * b : (i + 1) * b])) / b
            for at in range(i * b, (i + 1) * b):
                here[at] += gap
        above = here
    return above


def noises_of(tree: Tree, steps: int, weights: Mapping[int, float]) -> Counter[float]:
    """Give of how many noises of which weight a sum of running sums consists: number of steps -> weight in it."""
    b, (_, own) = tree.branching, tree.shares()
    below = [tree.noises(level) for level in range(tree.levels)]
    ends = sorted(weights)
    weighted: Counter[float] = Counter()

    def mean(start: int, size: int) -> float:
        """Average the weights of the steps of a block."""
        inside = (w * (min(t, start + size) - min(t, start)) for t, w in weights.items())
        return sum(inside) / size

    def visit(level: int, start: int, own_mean: float, weight: float) -> None:
        size = tree.block(level)
        if not any(start < t < start + size for t in ends):
            if abs(weight) > NOTHING:  # all steps of the block weigh the same
                weighted.update({weight * w: count for w, count in below[level]})
            return
        weighted[weight * own[level]] += 1
        size //= b
        for at in range(start, start + b * size, size):
            inside = mean(at, size)
            visit(level - 1, at, inside, weight * (1 - own[level]) + inside - own_mean)

    for level, start in _largest(tree, steps):
        if start >= ends[-1]:
            break
        whole = mean(start, tree.block(level))
        visit(level, start, whole, whole)
    return weighted


def _largest(tree: Tree, steps: int) -> Iterator[tuple[int, int]]:
    """Go through the blocks that lie in no larger one: (level, steps before it)."""
    start = 0
    for level in reversed(range(tree.levels)):
        while start + tree.block(level) <= steps:
            yield level, start
            start += tree.block(level)


def best_tree(steps: int, shown: bool, variance: Callable[[Tree], float]) -> Tree | None:
    """Give the tree with the least error of running sums; None where plain sums serve as well.

    `variance` says how large that of a block's noise is, where that of plain sums is one. Where single steps are shown
    as well, what they lose counts as much as what running sums gain.
    """
    looked = sorted({1 + i * (steps - 1) // (LOOKED_AT - 1) for i in range(LOOKED_AT)})
    plain = sum(looked)
    least, best = WORTH**2, None
    for tree in _trees(steps):
        unit = variance(tree)
        loss = unit * sum(_variance(tree, steps, t) for t in looked) / plain
        loss *= max(1.0, unit * _single(tree)) if shown else 1.0
        if loss < least:
            least, best = loss, tree
    return best


def _trees(steps: int) -> Iterator[Tree]:
    for branching in BRANCHES:
        levels = 2
        while branching ** (levels - 1) <= steps:
            yield Tree(branching, levels)
            levels += 1


def _variance(tree: Tree, steps: int, t: int) -> float:
    """Give the variance of the sum of the first t steps, in units of one noise's (continual.revised)."""
    b, (variances, _) = tree.branching, tree.shares()
    total = 0.0
    for level, start in _largest(tree, steps):
        size = tree.block(level)
        left = t - start
        if left <= 0:
            break
        if left >= size:
            total += variances[level]
            continue
        total += (left / size) ** 2 * variances[level]
        for inner in range(level, 0, -1):
            size //= b
            before, left = divmod(left, size)
            share = left / size
            total += variances[inner - 1] * (before + share**2 - (before + share) ** 2 / b)
        break
    return total


def _single(tree: Tree) -> float:
    """Give the variance of one step in a largest block."""
    b, (variances, _) = tree.branching, tree.shares()
    variance = variances[-1] / tree.block(tree.levels - 1) ** 2
    for level in range(tree.levels - 1):
        variance += variances[level] * (1 - 1 / b) / tree.block(level) ** 2
    return variance
