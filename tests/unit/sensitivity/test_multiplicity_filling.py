"""A(k) by water filling: never below what added rows can give, smooth, and exact where it should be."""

import itertools
import math
import random
from fractions import Fraction

import numpy as np
import pytest

from secant.errors import UsageError
from secant.sensitivity.multiplicity.filling import Growth, discount, margin, raised, smooth

BETAS = tuple(Fraction(x) for x in ("0.02", "0.1", "0.5", "2"))


def added(counts, joined, fixed, growth, k):
    """Give the most combinations after k added rows, by trying every way to add them."""
    tables = sorted(set(growth.tables))
    best = 0
    for split in itertools.product(range(k + 1), repeat=len(tables)):
        if sum(split) == k:
            grown = math.prod(
                n + e + split[tables.index(t)]
                for n, e, t in zip(counts, growth.extra, growth.tables, strict=True)
            )
            best = max(best, joined + fixed * (grown - math.prod(counts)))
    return best


def smoothed(counts, joined, fixed, growth, rate):
    found = smooth(
        np.array([counts], dtype=float), np.array([joined], dtype=float),
        np.array([fixed], dtype=float), growth, rate,
    )  # fmt: skip
    return float(found[0])


def drawn(draw):
    size = draw.randint(1, 3)
    growth = Growth(
        tuple(draw.randint(0, 2) for _ in range(size)),
        tuple(draw.randint(0, 1) for _ in range(size)),
    )
    counts = [draw.randint(0, 7) for _ in range(size)]
    fixed = draw.randint(1, 3)
    return counts, draw.randint(0, fixed * math.prod(counts)), fixed, growth


def test_the_bound_is_never_below_what_added_rows_can_give():
    draw = random.Random(1)
    for _ in range(150):
        counts, joined, fixed, growth = drawn(draw)
        for beta in BETAS[1:]:
            rate = discount(beta, growth.degree)
            value = smoothed(counts, joined, fixed, growth, rate)
            truth = max(
                math.exp(-beta * k) * added(counts, joined, fixed, growth, k) for k in range(9)
            )
            assert float(raised(value, beta, growth.degree)) >= truth


@pytest.mark.parametrize("size", [1, 2, 3])
def test_copies_of_one_table_are_filled_exactly(size):
    draw = random.Random(2)
    growth = Growth((0,) * size, (1,) + (0,) * (size - 1))
    for _ in range(30):
        counts = [draw.randint(0, 9) for _ in range(size)]
        joined = draw.randint(0, math.prod(counts))
        value = smoothed(counts, joined, 1, growth, 0.3)
        truth = max(
            math.exp(-0.3 * k)
            * (joined + math.prod(n + e + k for n, e in zip(counts, growth.extra, strict=True)) - math.prod(counts))
            for k in range(60)
        )  # fmt: skip
        assert value == pytest.approx(truth, rel=1e-12)


def test_two_tables_share_water_evenly():
    growth = Growth((0, 1), (0, 0))
    value = smoothed([4, 10], 0, 1, growth, 0.05)
    best = 0.0
    for k in range(200):
        level = min(k, 6)
        rest = (k - level) / 2
        best = max(best, math.exp(-0.05 * k) * ((4 + level + rest) * (10 + rest) - 40))
    assert value == pytest.approx(best, rel=1e-12)


def test_without_growth_it_is_what_is_joined():
    assert smooth(np.zeros((1, 0)), np.array([5.0]), np.ones(1), Growth((), ()), 0.1)[0] == 5.0


def test_nothing_that_grows_stays_nothing_where_a_public_table_has_no_row():
    assert smoothed([3, 4], 0, 0, Growth((0, 1), (0, 0)), 0.1) == 0.0


def smoothness(growth, beta, spread=7):
    """Give the largest ratio of the bounds of neighbors, as a power of e^beta."""
    rate = discount(beta, growth.degree)
    worst = 0.0
    copies = len(growth.tables)
    for counts in itertools.product(range(spread), repeat=copies):
        if len(set(growth.tables)) == 1 and len(set(counts)) > 1:
            continue  # one key: all copies of the table hold the same rows
        one = smoothed(counts, math.prod(counts), 1, growth, rate)
        more = [n + 1 for n in counts]
        two = smoothed(more, math.prod(more), 1, growth, rate)
        worst = max(worst, math.log(two / one) / float(beta))
    return worst


def test_one_added_row_is_charged_once_for_all_copies():
    """papers.md, error 7: three copies on one key; with each copy paying by itself the bound is not smooth."""
    beta = Fraction(1, 10)
    assert smoothness(Growth((0, 0), (0, 0)), beta, 40) <= 1 + 1e-9
    by_copies = Growth((0, 1), (0, 0))
    rate = discount(beta, 2)
    ratios = [
        smoothed((n + 1, n + 1), (n + 1) ** 2, 1, by_copies, rate)
        / smoothed((n, n), n * n, 1, by_copies, rate)
        for n in range(15)
    ]
    assert math.log(max(ratios)) > 1.9 * float(beta)


def test_rows_that_come_to_different_tables_cost_one_each():
    growth = Growth((0, 1), (0, 0))
    beta = Fraction(1, 5)
    rate = discount(beta, 2)
    for counts in itertools.product(range(8), repeat=2):
        for joined in (0, math.prod(counts)):
            one = smoothed(counts, joined, 1, growth, rate)
            for more in ((counts[0] + 1, counts[1]), (counts[0], counts[1] + 1)):
                gain = math.prod(more) - math.prod(counts)
                for new in {joined, joined + gain}:
                    two = smoothed(more, new, 1, growth, rate)
                    assert two <= one * math.exp(beta)
                    assert one <= two * math.exp(beta)


def test_mixed_copies_are_filled_by_their_weights():
    """Two copies of one table and one of another: never below integer splits, also with very different counts."""
    draw = random.Random(3)
    growth = Growth((0, 1, 1), (0, 1, 0))
    for _ in range(60):
        counts = [draw.choice((0, 1, 3, 50)) for _ in range(3)]
        joined = draw.randint(0, math.prod(counts))
        value = smoothed(counts, joined, 1, growth, 0.25)
        truth = max(math.exp(-0.25 * k) * added(counts, joined, 1, growth, k) for k in range(25))
        assert value >= truth * (1 - 1e-12)


def test_large_counts_do_not_cancel():
    """The gain is small beside the product: a difference of doubles would lose it."""
    huge = 10**9
    growth = Growth((0, 0, 0), (0, 0, 0))
    value = smoothed([huge] * 3, 0, 1, growth, 1.5)
    gains = [Fraction(huge + k) ** 3 - Fraction(huge) ** 3 for k in range(8)]
    truth = max(float(g) * math.exp(-1.5 * k) for k, g in enumerate(gains))
    assert value == pytest.approx(truth, rel=1e-11)


def test_many_patterns_at_once_are_as_one_by_one():
    draw = random.Random(4)
    growth = Growth((0, 1), (1, 0))
    rows = [[draw.randint(0, 99), draw.randint(0, 99)] for _ in range(70_000)]
    counts = np.array(rows, dtype=float)
    joined = np.minimum(counts.prod(axis=1), 17.0)
    found = smooth(counts, joined, np.ones(len(rows)), growth, 0.1)
    for place in (0, 1, 32_767, 32_768, 65_535, 65_536, 69_999):
        alone = smoothed(rows[place], joined[place], 1, growth, 0.1)
        assert found[place] == pytest.approx(alone, rel=1e-13)


def test_rounding_up_costs_less_than_the_margin_takes_from_beta():
    for beta in (Fraction(1, 10**6), Fraction(1, 100), Fraction(3)):
        lost = float(beta) - discount(beta, 4)
        assert 4 * margin(beta, 4) < lost < float(beta) / 2
        assert raised(1.0, beta, 4) > 1


@pytest.mark.parametrize("beta", [Fraction(0), Fraction(-1), Fraction(1, 10**9)])
def test_a_beta_that_gives_no_bound_is_refused(beta):
    with pytest.raises(UsageError):
        discount(beta, 2)
