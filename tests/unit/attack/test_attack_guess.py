"""Guess probabilities: closed forms, limits, order, and what is refused."""

import doctest
import itertools
import math
from fractions import Fraction

import pytest

from secant.attack import (
    attacker,
    goals,
    guess,
    guess_probability,
    histogram,
    membership_probability,
    normal,
    odds,
    priors,
    search,
    uniform,
    weights,
)
from secant.attack.guess import guess_at_rate
from secant.attack.priors import spread
from secant.attack.search import largest_of_density
from secant.errors import UsageError

PRIORS = {
    "uniform": uniform(1, 11),
    "steps": uniform(1, 11, step=1),
    "normal": normal(4, 2, 1, 11),
    "weights": weights([1, 2, 5, 9], [4, 3, 2, 1]),
    "histogram": histogram([1, 3, 4, 11], [1, 4, 2]),
}


@pytest.mark.parametrize("name", PRIORS)
@pytest.mark.parametrize("logarithmic", [False, True])
@pytest.mark.parametrize("target", [None, 3])
def test_a_guess_gets_no_worse_with_epsilon_and_starts_at_the_prior(name, logarithmic, target):
    last = 0.0
    for epsilon in ("1e-9", 0.1, 1, 10):
        found = guess_probability(PRIORS[name], target, 1, epsilon, logarithmic=logarithmic)
        assert 0 < found.prior <= found.posterior <= 1
        assert found.posterior >= last - 1e-3
        assert found.advantage == pytest.approx(found.posterior - found.prior)
        assert found.by_distance >= found.posterior * (1 - 1e-3)
        last = found.posterior
        if epsilon == "1e-9":
            assert found.posterior == pytest.approx(found.prior, rel=2e-3)
    assert last > 0.95


@pytest.mark.parametrize(("rate", "radius"), [(0.01, 0.5), (1, 0.5), (3, 0.1), (30, 0.01)])
def test_the_search_finds_the_closed_form_of_a_uniform_prior(rate, radius):
    closed = (1 - math.exp(-2 * rate * radius)) / (1 - math.exp(-10 * rate))
    searched = largest_of_density(
        spread(uniform(0, 10), logarithmic=False), rate, radius, center=None
    )
    assert closed <= searched.bound <= closed * 1.0005
    assert searched.found <= closed * (1 + 1e-9)
    found = guess_probability(uniform(0, 10), None, radius, rate)
    assert closed <= found.posterior <= closed * (1 + 1e-6)


def test_steps_agree_with_the_same_values_named_one_by_one():
    for radius in (0, 1, 2.5):
        even = guess_probability(uniform(0, 20, step=1), None, radius, 0.3)
        named = guess_probability(weights(range(21)), None, radius, 0.3)
        assert even.posterior == pytest.approx(named.posterior, abs=1e-8)
        assert even.prior == pytest.approx(named.prior)


def test_a_fine_histogram_agrees_with_the_normal_prior_it_copies():
    edges = [i / 10 for i in range(101)]
    masses = [
        math.erf((b - 4) / math.sqrt(8)) - math.erf((a - 4) / math.sqrt(8))
        for a, b in itertools.pairwise(edges)
    ]
    bell = guess_probability(normal(4, 2, 0, 10), None, 1, 0.5)
    copied = guess_probability(histogram(edges, masses), None, 1, 0.5)
    assert copied.posterior == pytest.approx(bell.posterior, rel=5e-3)


def test_the_weight_of_the_norm_scales_epsilon_and_distance():
    one = guess_probability(uniform(0, 10), 5, 0.5, 1, 2)
    other = guess_probability(uniform(0, 10), 5, 0.5, 2, 1)
    assert one.posterior == other.posterior
    assert one.distance == pytest.approx(2 * other.distance)


def test_a_distance_can_be_asked_for():
    found = guess_probability(weights([1, 2, 5, 9]), 5, 0, 1, distance=3)
    assert found.distance == 3
    assert found.by_distance == pytest.approx(1 / (1 + math.exp(-3)), rel=1e-6)
    small = guess_probability(weights([1, 2, 5, 9]), 5, 0, 1, distance=1)
    assert small.by_distance == 1.0


def test_a_radius_over_the_whole_range_is_always_right():
    for prior in PRIORS.values():
        found = guess_probability(prior, None, 10, 1)
        assert found.prior == pytest.approx(1, abs=1e-9)
        assert found.posterior == 1


def test_a_target_out_of_range_is_never_right():
    for prior in PRIORS.values():
        found = guess_probability(prior, 100, 1, 1)
        assert (found.prior, found.posterior, found.by_distance) == (0, 0, 0)


def test_an_exact_guess_of_a_real_number_has_probability_0():
    found = guess_probability(normal(4, 2, 0, 10), None, 0, 1)
    assert (found.prior, found.posterior) == (0, 0)


def test_a_tiny_bin_far_from_all_mass_is_not_lost():
    """At a large rate an answer can point at a bin of share 1e-30 with certainty."""
    found = guess_probability(histogram([0, 1, 50, 51], [1, 0, "1e-30"]), None, 0.5, 10)
    assert found.posterior > 0.999


def test_a_target_in_the_far_tail_is_not_taken_for_impossible():
    """Its prior share is 1e-300 and less, and an answer may point at it all the same."""
    found = guess_probability(normal(0, 1, 0, 1000), 40, 1, 100)
    assert found.prior == 0
    assert found.posterior > 0.999
    assert found.by_distance > 0.999
    weak = guess_probability(normal(0, 1, 0, 1000), 40, 1, "0.1")
    assert weak.posterior < 1e-6


@pytest.mark.parametrize("name", PRIORS)
@pytest.mark.parametrize("logarithmic", [False, True])
def test_an_enormous_epsilon_protects_nothing_and_breaks_nothing(name, logarithmic):
    found = guess_probability(PRIORS[name], 2, 1, 10**6, 10**150, logarithmic=logarithmic)
    assert found.posterior > 0.999
    found = guess_probability(PRIORS[name], None, 1, 10**6, 10**150, logarithmic=logarithmic)
    assert found.posterior > 0.999


def test_the_examples_of_the_docstrings_hold():
    for module in (priors, guess, goals, odds, attacker):
        result = doctest.testmod(module)
        assert result.attempted > 0
        assert result.failed == 0


def test_a_search_that_gives_up_still_bounds(monkeypatch):
    prior = normal(50, 10, 0, 100)
    whole = guess_probability(prior, None, "0.1", 1)
    monkeypatch.setattr(search, "MOST_BOXES", 200)
    short = guess_probability(prior, None, "0.1", 1)
    assert whole.posterior < short.posterior <= 1


def test_the_words_round_a_bound_up():
    found = guess_probability(uniform(0, 10), 5, 0.5, 1)
    assert "within 0.5 with probability 10 %" in found.words
    assert "at most 39.7 %" in found.words


def test_nothing_spent_tells_nothing():
    found = guess_at_rate(uniform(0, 10), 5.0, 0.5, Fraction(0))
    assert found.posterior == pytest.approx(0.1, rel=1e-3)


@pytest.mark.parametrize(
    "arguments",
    [
        (uniform(0, 1), None, -1, 1),
        (uniform(0, 1), None, float("nan"), 1),
        (uniform(0, 1), float("inf"), 1, 1),
        (uniform(0, 1), None, 1, 0),
        (uniform(0, 1), None, 1, float("inf")),
        (uniform(0, 1), None, 1, 1, 0),
        (uniform(0, 1), None, 1, 1, -2),
    ],
)
def test_parameters_out_of_range_are_refused(arguments):
    with pytest.raises(UsageError):
        guess_probability(*arguments)


def test_a_negative_distance_is_refused():
    with pytest.raises(UsageError):
        guess_probability(uniform(0, 1), 0.5, 0.1, 1, distance=-1)


def test_membership_is_the_known_formula():
    found = membership_probability(1, 0.1)
    assert found.posterior == pytest.approx(1 / (1 + math.exp(-1) * 9))
    assert found.posterior >= 1 / (1 + math.exp(-1) * 9)
    assert "at most 23.2 %" in found.words


@pytest.mark.parametrize("delta", [0, 0.01, 0.3])
@pytest.mark.parametrize("prior", [0.05, 0.5, 0.8])
def test_membership_on_average_bounds_randomized_response_and_is_reached(prior, delta):
    """The mechanism that tells all with probability delta, and else answers by a coin of ratio e^eps."""
    epsilon = 0.7
    right = math.exp(epsilon) / (1 + math.exp(epsilon))
    told = delta + (1 - delta) * max(right, prior, 1 - prior)
    found = membership_probability(epsilon, prior, delta)
    assert told <= found.on_average + 1e-12
    if prior == 0.5:
        assert told == pytest.approx(found.on_average)
    assert (found.posterior is None) == (delta > 0)


@pytest.mark.parametrize("prior", [0, 1, -1, 2])
def test_membership_needs_a_doubt(prior):
    with pytest.raises(UsageError):
        membership_probability(1, prior)
