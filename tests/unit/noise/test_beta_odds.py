"""Odds at which the incomplete beta function has a value: a guess of our own, against scipy's."""

import math

import pytest
from scipy.special import betaincinv

from secant.noise.mechanisms.laws import beta_odds


@pytest.mark.parametrize("a", [0.05, 0.5, 0.75, 1.5, 50])
@pytest.mark.parametrize("b", [0.25, 0.5, 0.95])
@pytest.mark.parametrize("u", [1e-9, 0.01, 0.3, 0.9])
def test_odds_are_those_of_the_inverse(a, b, u):
    x = float(betaincinv(a, b, u))
    known = 1 - x > 1e-6 and x > 1e-300  # elsewhere scipy's own digits are gone
    found = beta_odds(a, b, u)
    assert not known or found == pytest.approx(math.log(x / (1 - x)), abs=1e-7)
    assert math.isfinite(found)
