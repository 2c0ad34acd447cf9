"""Choose privately how much one unit may add to each measure (truncation.choose).

In: for each limit on a public list, how many units add more. Out: one limit a measure. Lowering a limit by a step cuts
that step off every unit above it, and saves noise of its size in every group: the two balance where about groups /
epsilon units add more. Limits that cut off fewer are equally good but for a public factor that falls with the limit.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from itertools import pairwise

from secant.noise.mechanisms.discrete_laplace import add_discrete_laplace, discrete_laplace_error
from secant.noise.mechanisms.selection import Choice, PermuteAndFlip, pick_flip
from secant.noise.secrecy import Private, unseal
from secant.noise.tail import OctaveTally

BALANCE = 2
"""Units above the limit that noise of one group is worth, times epsilon."""


FALL = Fraction(7, 2)
"""How fast weights fall with the limit, as a power: slower, limits that are far too large come too often; faster, the
units at the top are cut."""


def _fall(groups: int) -> Fraction:
    """Give how fast weights fall with the limit: faster where many groups get its noise."""
    return FALL + Fraction(max(0, min(groups, 50) - 10), 10)


def cut_at_most(
    limits: Sequence[int],
    limit: int,
    choosing: Fraction,
    noising: Fraction,
    groups: int,
    miss: float,
) -> int:
    """Give a number of units that add more than the chosen limit at most, but for `miss` of all choices.

    Rests on truncation.cut.

    Units that add more than the largest limit of the list come on top.
    """
    if len(limits) == 1:
        return 0
    balance = BALANCE * groups / noising
    steps = _steps(limits[-1], limits[0]) - _steps(limit, limits[0])
    slack = math.log(len(limits) / miss) / float(choosing)
    return math.floor(balance + _fall(groups) * steps / choosing + Fraction(slack)) + 1


def choose_limit(
    limits: Sequence[int],
    above: Private[Sequence[int]] | Sequence[int],
    choosing: Fraction,
    noising: Fraction,
    groups: int,
) -> int:
    """Give one of the limits; adding or removing a unit moves all of `above` one way, by at most one."""
    # What is left of the least epsilon that may be asked with is less than a mechanism may be asked for.
    choice = Choice(PermuteAndFlip.name, choosing, choosing, pick_flip)
    return limits[choice.draw(scores_of(limits, unseal(above), choosing, noising, groups))]


def scores_of(
    limits: Sequence[int],
    above: Sequence[int],
    choosing: Fraction,
    noising: Fraction,
    groups: int,
) -> list[Fraction]:
    """Give the score of every limit. Private: it tells how many units add more."""
    balance = BALANCE * groups / noising
    return [
        -max(units - balance, Fraction(0)) - _fall(groups) * _steps(limit, limits[0]) / choosing
        for units, limit in zip(above, limits, strict=True)
    ]


def _steps(limit: int, least: int) -> Fraction:
    """Give how far above the least a limit lies: public, so any number near the logarithm serves."""
    return Fraction(round(math.log(limit / least) * 10**6), 10**6)


LOUDEST = 30.0
"""Above this epsilon there is hardly any noise: what is made of a tally counts on no less, and nothing overflows."""


def take_tally(
    limits: Sequence[float], above: Private[Sequence[int]] | Sequence[int], epsilon: Fraction
) -> OctaveTally:
    """Count the units that add more than each limit and at most the next, with noise (truncation.octaves).

    A unit stands in one count, or in none: noise of scale 1 / epsilon hides it in all of them together. Where one
    number more is given than there are limits, the first one says how many units there are: those up to the least
    limit are counted as well, as if they stood in the octave below it.
    """
    more = [*unseal(above), 0]
    counts = [a - b for a, b in pairwise(more)]
    noisy = add_discrete_laplace(counts, scale=1 / epsilon)
    below = [limits[0] / 2] * (len(counts) - len(limits))
    edges = (*below, *map(float, limits), 2.0 * limits[-1])
    return OctaveTally(edges, tuple(noisy), min(float(epsilon), LOUDEST))


def sides_of(above: Private[list[int]], limits: int) -> list[Private[list[int]]]:
    """Split what was counted into units that add and units that take away, where they are told apart."""
    counted = unseal(above)
    if len(counted) < 2 * limits:
        return [above]
    half = len(counted) // 2
    return [Private(counted[:half]), Private(counted[half:])]


def look_again(above: Private[Sequence[int]] | Sequence[int], edge: int, epsilon: Fraction) -> int:
    """Count the units that add more than one of the limits once more (truncation.octaves)."""
    (noisy,) = add_discrete_laplace([unseal(above)[edge]], scale=1 / epsilon)
    return noisy


FAILURE = Fraction(1, 10)
"""How often the winner of a race may lie above the truth, at most."""


def race(
    limits: Sequence[int],
    values: Private[Sequence[Sequence[int]]] | Sequence[Sequence[int]],
    epsilon: Fraction,
) -> list[int]:
    """Give for each group the largest answer, over all limits, that noise does not explain (truncation.race).

    `values` are the answers group by group, limit by limit; each limit has `epsilon`.
    """
    groups = unseal(values)
    best = [0] * len(groups)
    for index, limit in enumerate(limits):
        scale = limit / epsilon
        level = 1 - 2 * FAILURE / (len(limits) * max(1, len(groups)))
        allowance = discrete_laplace_error(scale, level)
        noisy = add_discrete_laplace([answers[index] for answers in groups], scale=scale)
        best = [max(b, value - int(allowance)) for b, value in zip(best, noisy, strict=True)]
    return best
