"""Sums and quotients of noises: the stated error holds as often as it says, and is hardly wider than it must be."""

import math

import pytest
from scipy.stats import binom

from chance import LONG, chance
from secant.noise.mechanisms import sums
from secant.noise.mechanisms.sums import quotient_ends, sum_error, tail_of_sum, whole_sum_error

DRAWS = 20_000
# More or fewer hits than this have probability below 1e-9 if each happens with 95 %.
FEWEST = int(binom.ppf(1e-9, DRAWS, 0.95))
MOST = int(binom.isf(1e-9, DRAWS, 0.95))


def laplace(draw, scale):
    return scale * (draw.expovariate(1) - draw.expovariate(1))


def whole(draw, scale):
    return math.floor(scale * draw.expovariate(1)) - math.floor(scale * draw.expovariate(1))


SCALES = [
    [1.0],
    [1.0, 1.0],
    [3.0, 0.1],
    [2.0, 2.0, 2.0],
    [1.0, 1.001, 5.0, 0.01],
    [1.0] * 7,
    [0.5 * i for i in range(1, 13)],
]


@pytest.mark.parametrize("scales", SCALES, ids=len)
def test_the_error_of_a_sum_holds_and_is_tight(scales):
    draw = chance()
    t = sum_error(scales, 0.95)
    hits = sum(abs(sum(laplace(draw, s) for s in scales)) <= t for _ in range(DRAWS))
    assert FEWEST <= hits <= MOST + DRAWS * 0.003


@pytest.mark.parametrize("scales", SCALES, ids=len)
def test_a_wrong_law_would_be_noticed(scales):
    draw = chance()
    t = sum_error([0.9 * s for s in scales], 0.95)
    hits = sum(abs(sum(laplace(draw, s) for s in scales)) <= t for _ in range(DRAWS))
    assert hits < FEWEST


@pytest.mark.parametrize("scales", [[1.0], [0.4, 2.4], [1.0] * 25, [30.0, 30.0], [500.0] * 3])
def test_whole_numbers_have_a_law_of_their_own(scales):
    draw = chance()
    t = whole_sum_error(scales, 0.95)
    sizes = [abs(sum(whole(draw, s) for s in scales)) for _ in range(DRAWS)]
    assert sum(x <= t for x in sizes) >= FEWEST
    if max(scales) <= sums.COARSE * len(scales):  # no smaller whole number holds
        assert sum(x < t for x in sizes) <= MOST


def test_published_figures_of_many_equal_scales():
    assert [round(sum_error([1.0] * m, 0.95), 1) for m in (5, 25, 100)] == [6.4, 13.9, 27.7]


def test_both_ways_to_compute_a_tail_agree(monkeypatch):
    cases = [([1.0, 2.0, 2.0, 5.0], w) for w in (0.5, 3.0, 10.0, 30.0)]
    few = [tail_of_sum(s, w) for s, w in cases]
    monkeypatch.setattr(sums, "FEW", 1)
    many = [tail_of_sum(s, w) for s, w in cases]
    assert few == pytest.approx(many, rel=0.01, abs=3e-5)


def test_ends_of_the_range():
    assert tail_of_sum([], 1.0) == 0
    assert tail_of_sum([1.0, 2.0], 0.0) == 1
    assert sum_error([], 0.95) == 0 == whole_sum_error([], 0.95)
    assert tail_of_sum([1.0] * 30, 1e6) < 1e-9


@pytest.mark.parametrize(
    ("above", "below", "scales"),
    [
        (1000.0, 200.0, [(5.0, 0.0), (0.0, 3.0)]),
        (-30.0, 80.0, [(9.0, 0.0), (0.0, 1.0)]),
        (40.0, 100.0, [(4.0, 4.0), (0.0, 6.0)]),  # one noise above and below
        (10.0, 500.0, [(1.0, 0.0), (2.0, 0.0), (0.0, 5.0), (0.0, 1.0)]),
    ],
)
def test_the_ends_of_a_quotient_hold_and_are_tight(above, below, scales):
    draw = chance()
    count, hits, wrong = 3_000 if LONG else 1_000, 0, 0
    fewest, most = (int(f(1e-9, count, 0.95)) for f in (binom.ppf, binom.isf))
    halved = [(a / 2, b / 2) for a, b in scales]
    for _ in range(count):
        noises = [laplace(draw, 1.0) for _ in scales]
        a = above + sum(s[0] * z for s, z in zip(scales, noises, strict=True))
        b = below + sum(s[1] * z for s, z in zip(scales, noises, strict=True))
        ends = quotient_ends((a, 0.0), (b, 0.0), scales, 0.95)
        assert ends is not None
        hits += ends[0] <= above / below <= ends[1]
        narrow = quotient_ends((a, 0.0), (b, 0.0), halved, 0.95)
        wrong += narrow[0] <= above / below <= narrow[1]
    assert fewest <= hits <= most + count * 0.005
    assert wrong < fewest


def test_a_denominator_that_may_be_zero_has_no_ends():
    assert quotient_ends((5.0, 0.0), (2.0, 0.0), [(1.0, 0.0), (0.0, 1.0)], 0.95) is None
    assert quotient_ends((5.0, 0.0), (0.5, 1.0), [(1.0, 0.0), (0.0, 0.01)], 0.95) is None


def test_whole_steps_widen_a_quotient():
    smooth = quotient_ends((50.0, 0.0), (100.0, 0.0), [(2.0, 0.0), (0.0, 2.0)], 0.95)
    stepped = quotient_ends((50.0, 1.0), (100.0, 1.0), [(2.0, 0.0), (0.0, 2.0)], 0.95)
    assert stepped[0] < smooth[0] < smooth[1] < stepped[1]


# ── beside normal noise ──────────────────────────────────────────────────────────────────────────

MIXED = [
    ([], [2.0]),
    ([1.0], [1.0]),
    ([0.01], [5.0]),
    ([3.0, 1.0], [0.5, 2.0]),
    ([1.0] * 8, [1.0] * 3),
]


@pytest.mark.parametrize(("scales", "deviations"), MIXED)
def test_the_error_of_a_mixed_sum_holds_and_is_tight(scales, deviations):
    draw = chance()

    def drawn():
        return sum(laplace(draw, s) for s in scales) + sum(draw.gauss(0, d) for d in deviations)

    t, less = sum_error(scales, 0.95, deviations), sum_error(scales, 0.9, deviations)
    sizes = [abs(drawn()) for _ in range(DRAWS)]
    assert FEWEST <= sum(x <= t for x in sizes) <= MOST + DRAWS * 0.003
    assert sum(x <= less for x in sizes) < FEWEST  # an error that is too small is noticed


def test_a_quotient_of_normal_numbers_holds_the_truth():
    draw = chance()
    held, draws = 0, DRAWS if LONG else DRAWS // 64
    for _ in range(draws):
        n, d = 300 + draw.gauss(0, 10) + laplace(draw, 2), 100 + draw.gauss(0, 5)
        low, high = quotient_ends((n, 0.0), (d, 0.0), [(2.0, 0.0)], 0.95, [(10.0, 0.0), (0.0, 5.0)])
        held += low <= 3 <= high
    fewest, most = (int(f(1e-9, draws, 0.95)) for f in (binom.ppf, binom.isf))
    assert fewest <= held <= most + draws * 0.005


@pytest.mark.parametrize("miss", [1e-5, 1e-6, 1e-9, 1e-12])
def test_rare_errors_of_two_noises_are_finite_and_hold(miss):
    """Ends of a quotient in one of many groups ask for levels beyond what a computed series can tell."""

    def tail(t):  # of the sum of two standard Laplace noises
        return (1 + t / 2) * math.exp(-t)

    t = sum_error([1.0, 1.0], 1 - miss)
    assert tail(t) <= miss <= tail(0.75 * t)
    steps = whole_sum_error([40.0, 40.0], 1 - miss)
    assert tail(steps / 40) <= 1.1 * miss <= 1.1 * tail(0.75 * steps / 40)
    for many in ([1.0] * 8, [200.0, 1.0]):
        assert math.isfinite(sum_error(many, 1 - miss, [0.5]))
        assert whole_sum_error(many, 1 - miss) > whole_sum_error(many, 1 - 2 * miss) - 1
