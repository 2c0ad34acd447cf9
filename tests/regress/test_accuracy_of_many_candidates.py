"""Ours: the stated error of a choice was that of two candidates, however many there were.

With a thousand candidates just beyond the stated gap, the choice missed it with probability 0.96
where 0.05 was promised.
"""

import math
from fractions import Fraction

import pytest

from secant.noise.mechanisms.selection import ExponentialNoise
from secant.sensitivity.bounds import GlobalBound


def test_the_stated_gap_holds_for_the_stated_number_of_candidates():
    choice = ExponentialNoise().calibrate(GlobalBound(Fraction(1), "linf"), epsilon=1)
    for count in (2, 20, 1001):
        gap = float(choice.error(Fraction(19, 20), count))
        worse = (count - 1) * math.exp(-gap / 2)  # all others lie just beyond the gap
        assert worse / (1 + worse) <= 0.05


def test_a_choice_without_the_number_of_candidates_is_refused():
    choice = ExponentialNoise().calibrate(GlobalBound(Fraction(1), "linf"), epsilon=1)
    with pytest.raises(TypeError):
        choice.error(Fraction(19, 20))
