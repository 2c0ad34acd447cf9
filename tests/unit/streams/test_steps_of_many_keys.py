"""A step that holds many keys of the question moves by all of them at once."""

import datetime
from dataclasses import replace
from fractions import Fraction

import pytest

from secant.noise.continual import Mechanism
from secant.noise.continual.encoder import Encoder
from secant.noise.mechanisms.whole import multiplier
from secant.policy.policy import Policy, Protection, TableFacts
from secant.policy.streams import Stream, Width
from secant.schema import types as t
from secant.schema.catalog import Table, catalog
from secant.streams.compiling import compile_stream

DELTA = Fraction(1, 10**6)
LIMIT = 6
CATALOG = catalog(
    Table("visits", (("id", t.INTEGER), ("patient", t.INTEGER), ("day", t.DATE)), (("id",),))
)


def way_of_visits(width):
    """Give the encoder with which patients are counted, once a day each, in steps of so many days."""
    protection = Protection(
        "people", "unit", Fraction(10), unit=("visits", "patient"), limits={"visits": LIMIT}
    )
    policy = Policy("", {"visits": TableFacts(key=("id",))}, (protection,))
    stream = Stream(
        "s",
        "SELECT day, count(DISTINCT patient) AS n FROM visits GROUP BY day",
        Width(width, "day"),
        datetime.date(2025, 1, 1),
        Fraction(1),
        steps=10,
        append_only=True,
        delta=DELTA,
    )
    (facts,) = compile_stream(stream, policy, policy.protections, CATALOG).facts
    return Mechanism("toeplitz", "normal", facts, (Encoder(10),))


def share(way, change):
    """Give what a change costs, as a part of what is paid."""
    return way.loss(change) * 2 * multiplier(way.facts.epsilon, way.facts.delta) ** 2


@pytest.mark.parametrize("width", [1, 7])
def test_somebody_who_comes_on_six_days_costs_no_more_than_was_paid(width):
    days = range(LIMIT)
    change = {}
    for day in days:
        step = day // width + 1
        change[step] = change.get(step, 0) + 1
    assert share(way_of_visits(width), change) <= 1


def test_the_length_over_days_for_steps_of_a_week_would_be_noticed():
    """Planted: six days of one week were counted as if they were six steps."""
    week, day = way_of_visits(7), way_of_visits(1)
    assert day.facts.squared == LIMIT
    planted = replace(week, facts=replace(week.facts, squared=day.facts.squared))
    assert share(planted, {1: LIMIT}) > Fraction(5, 4)
