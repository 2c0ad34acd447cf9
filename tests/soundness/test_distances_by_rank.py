"""noise.distance by brute force: all bags of up to four rows on four points, and all of their neighbors."""

from collections import Counter
from fractions import Fraction
from itertools import combinations_with_replacement

import pytest

from secant.noise.mechanisms.ranks import by_rank

POINTS = 4
BAGS = [b for n in range(5) for b in combinations_with_replacement(range(POINTS), n)]
SHARES = [Fraction(0), Fraction(1, 10), Fraction(1, 3), Fraction(1, 2), Fraction(3, 4), Fraction(1)]


def distances(q, bag, farthest):
    """Give the distance of each point in rows, as `by_rank` lists it."""
    found = by_rank(q, POINTS, sorted(Counter(bag).items()), farthest * q.denominator)
    assert [first + i for first, many, _ in found for i in range(many)] == list(range(POINTS))
    return [Fraction(far, q.denominator) for far in spread(found)]


def by_definition(q, bag, farthest):
    found = []
    for point in range(POINTS):
        below, upto = sum(x < point for x in bag), sum(x <= point for x in bag)
        far = max(Fraction(0), below - q * len(bag), q * len(bag) - upto)
        far = below if q == 0 else len(bag) - upto if q == 1 else far
        found.append(min(Fraction(far), Fraction(farthest)))
    return found


@pytest.mark.parametrize("q", SHARES, ids=str)
@pytest.mark.parametrize("farthest", [1, 2, 9])
def test_every_point_is_listed_with_its_distance(q, farthest):
    for bag in BAGS:
        assert distances(q, bag, farthest) == by_definition(q, bag, farthest), bag


@pytest.mark.parametrize("q", SHARES, ids=str)
@pytest.mark.parametrize("farthest", [1, 2, 9])
def test_distances_move_as_far_as_is_claimed(q, farthest):
    extreme = q in (0, 1)
    most, swapped = (1 if extreme else max(q, 1 - q)), 0
    for bag in BAGS:
        here = distances(q, bag, farthest)
        for v in range(POINTS):
            there = distances(q, (*bag, v), farthest)
            check([b - a for a, b in zip(here, there, strict=True)], most, extreme)
            for x in set(bag):
                other = list(bag)
                other[other.index(x)] = v
                moves = [b - a for a, b in zip(here, distances(q, other, farthest), strict=True)]
                check(moves, 1, extreme)
                swapped = max(swapped, *map(abs, moves))
    assert swapped == 1 or farthest < 9  # a smaller claim would be caught


def check(moves, most, extreme):
    assert max(map(abs, moves)) <= most
    if extreme:
        assert min(moves) >= 0 or max(moves) <= 0


@pytest.mark.parametrize("q", SHARES[1:-1], ids=str)
def test_rows_beyond_the_farthest_may_be_left_out(q):
    bag = [at for at in range(40) for _ in range(1 + at % 3)]
    cells, parts = sorted(Counter(bag).items()), q.denominator
    whole = by_rank(q, 40, cells, 4 * parts)
    near = [i for i, c in enumerate(cells) if abs(sum(r for _, r in cells[:i]) - q * len(bag)) <= 9]
    kept = cells[near[0] : near[-1] + 1]
    before = sum(rows for _, rows in cells[: near[0]])
    assert len(kept) < len(cells)
    some = by_rank(q, 40, kept, 4 * parts, before=before, total=len(bag))
    assert spread(some) == spread(whole)


def spread(found):
    return [far for _, many, far in found for _ in range(many)]
