"""`empty=` was ignored by `mechanism="preprocessing"`: it set out from the middle of the range, 49.7 for 10.3."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from secant import stats
from secant.stats import definitions


def distance(statistic) -> float:
    """Give how far the answer for no values lies from what was asked for."""
    found = statistic(
        [], epsilon=1000, bounds=(0, 100), n=1000, empty=10, mechanism="preprocessing"
    )
    return abs(found.value - 10)


@pytest.mark.parametrize("statistic", [stats.median, stats.minimum, stats.maximum])
def test_no_values_give_what_was_asked_for(statistic):
    # the scale is 100/1000/1000 = 0.0001; beyond 0.01 noise has probability e^-100
    assert distance(statistic) < 0.01


def test_setting_out_from_the_middle_is_seen(monkeypatch):
    honest, middle = definitions.uniform_finding, Fraction(1 << 29)
    monkeypatch.setattr(
        definitions,
        "uniform_finding",
        lambda spec, ordered, moves, _, **rest: honest(spec, ordered, moves, middle, **rest),
    )
    assert distance(stats.median) > 30


def test_values_far_from_the_middle_are_reached_from_their_own_side():
    values = np.full(10, 10.0)  # ten steps of 0.1 do not bridge the way from 50
    near = stats.median(
        values, epsilon=1000, bounds=(0, 100), n=1000, empty=10, mechanism="preprocessing"
    )
    assert abs(near.value - 10) < 0.01
