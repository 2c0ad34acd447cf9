"""What is made of released numbers for nothing: ends, revised series, and totals that never fall."""

import itertools

import pytest
from stream_clinic import BY_DAY, ROWS, stream

from secant.errors import UsageError
from secant.streams.series import _not_too_certain

NOISY = {"start": "2024-01-01", "steps": 64, "epsilon": 0.5}


MANY = 5000
"""Visits on the first day, and none later: far from zero, below which no count is shown."""


def totals(series):
    return [row[1] for row in series.rows]


def falls(series):
    return any(a > b for a, b in itertools.pairwise(totals(series)))


def widths(series):
    ends = zip(series.error["low"], series.error["high"], strict=True)
    return [high[1] - low[1] for low, high in ends]


@pytest.fixture
def noisy(clinic):
    clinic.execute(
        f"INSERT INTO visits SELECT i, i, DATE '2024-01-01', 'a', 1, DATE '2024-01-01', NULL, 0 FROM range({MANY}) r(i)"
    )
    clinic.declare(ROWS, stream(**NOISY))
    return clinic


def off(series):
    """Give the sum of squared errors."""
    return sum((x - MANY) ** 2 for x in totals(series))


def test_no_count_looks_certain_where_noise_goes_below_zero(clinic):
    """Planted by hand before: a count of nothing was shown as 0, from 0 to 0."""
    clinic.declare(ROWS, stream(**NOISY))
    series = clinic.stream()
    assert min(widths(series)) >= 5  # half of what the least noisy total has
    assert all(low[1] >= 0 for low in series.error["low"])
    assert _not_too_certain((0, 0), (-77, -3)) == (0, 37)
    assert _not_too_certain((1500, 1500), (1510, 1530)) == (1490, 1500)
    assert _not_too_certain((0, 9), (-9, 9)) == (0, 9)


def test_totals_never_fall_and_keep_their_ends(noisy):
    before = noisy.stream()
    after = before.afterwards(isotonic=True)
    assert falls(
        before
    )  # 64 equal totals with noise: that none falls is impossible for practical purposes
    assert not falls(after)
    assert after.error["low"] == before.error["low"]
    rounded = sum(abs(x - MANY) for x in totals(after)) + len(after)
    assert off(after) <= off(before) + rounded  # what is shown is whole


def test_a_running_maximum_would_be_noticed(noisy):
    """Planted: it never falls either, but lies farther from the truth than what was released."""
    before = noisy.stream()
    highest = list(itertools.accumulate(totals(before), max))
    assert sum(highest) > sum(totals(before.afterwards(isotonic=True)))


def test_earlier_steps_profit_from_later_blocks(noisy):
    before = noisy.stream()
    after = before.afterwards(revised=True)
    # what is shown is whole, at both ends
    assert all(new <= old + 2 for new, old in zip(widths(after), widths(before), strict=True))
    assert min(n / o for n, o in zip(widths(after), widths(before), strict=True)) < 0.9
    assert totals(after) != totals(before)
    assert totals(after.afterwards()) == totals(
        before
    )  # made of the same numbers, any number of times


def test_revised_numbers_are_the_true_ones_without_noise(clinic):
    for day in (1, 1, 3):
        clinic.add(f"2025-01-0{day}", ward="b")
    query = "SELECT day, ward, count(*) AS n FROM visits GROUP BY day, ward"
    clinic.declare(ROWS, stream(query, steps=4))
    found = clinic.stream().afterwards(revised=True, isotonic=True)
    assert [(row[1], row[2]) for row in found.rows] == [
        (ward, n) for b in (2, 2, 3, 3) for ward, n in (("a", 0), ("b", b))
    ]


@pytest.mark.parametrize(
    ("declared", "options", "words"),
    [
        (stream(steps=4, shows={"window": 2}), {"revised": True}, "not revised"),
        (stream(steps=4, shows="steps"), {"isotonic": True}, "cannot fall"),
        (
            stream(BY_DAY.replace("count(*)", "sum(cost - 5)"), steps=4),
            {"isotonic": True},
            "cannot fall",
        ),
    ],
)
def test_what_does_not_fit_is_refused(clinic, declared, options, words):
    clinic.declare(ROWS, declared)
    with pytest.raises(UsageError, match=words):
        clinic.stream().afterwards(**options)


def test_a_filter_is_reachable_and_keeps_the_ends(clinic):
    for day in range(1, 8):
        clinic.add(f"2025-01-0{day}")
    clinic.declare(ROWS, stream(steps=7, shows="steps", epsilon=1.0))
    series = clinic.stream()
    found = series.afterwards(spread=0.01)
    assert found.error["low"] == series.error["low"]
    assert len({row[1] for row in found.rows}) == 1  # nothing moves, believes the reader
    assert series.afterwards(spread=10**6).rows == series.rows
    for wrong in (0, -1, float("inf")):
        with pytest.raises(UsageError):
            series.afterwards(spread=wrong)
    with pytest.raises(UsageError):
        series.afterwards(spread=1, revised=True)


def test_a_filter_follows_one_measure(clinic):
    query = "SELECT day, avg(cost) AS c FROM visits GROUP BY day"
    clinic.declare(ROWS, stream(query, steps=2))
    with pytest.raises(UsageError) as caught:
        clinic.stream().afterwards(spread=1)
    assert "one count or sum" in caught.value.message
