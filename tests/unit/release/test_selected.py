"""Numbers that chose the keys that are shown have ends that allow for it (noise.reached)."""

import math
from fractions import Fraction

import duckdb
import pytest
from scipy.stats import binom

import secant
from secant.accuracy.reported_error import past_threshold
from secant.noise.intervals import NoisyNumber
from secant.noise.mechanisms.discrete_laplace import add_discrete_laplace, discrete_laplace_error

LEVEL, SCALE = Fraction(95, 100), Fraction(10)


def error(level):
    return float(discrete_laplace_error(SCALE, level))


def missed_past_threshold(true, threshold, count, widen):
    """Count how often the ends of numbers that reached a threshold miss the truth."""
    reach, found, seen = error(LEVEL), 0, 0
    while seen < count:
        for value in add_discrete_laplace([true] * 4000, scale=SCALE):
            if value < threshold or seen == count:
                continue
            seen += 1
            number = NoisyNumber(float(value), error)
            low = widen(number).left_out[0] if widen else 0.0
            found += not value - reach + low <= true <= value + reach
    return found


@pytest.mark.parametrize("distance", [-30, -5, 0, 12, 60])
def test_ends_of_what_reached_a_threshold_hold(distance):
    count = 1000
    allowed = int(binom.isf(1e-9, count, 0.05)) + 1
    threshold = 200

    def widen(number):
        return past_threshold(number, threshold, LEVEL)

    assert missed_past_threshold(threshold + distance, threshold, count, widen) <= allowed
    if distance <= -30:  # as if it had not been picked
        assert missed_past_threshold(threshold + distance, threshold, count, None) > allowed


def test_far_above_a_threshold_both_ends_are_numbers():
    near = past_threshold(NoisyNumber(210.0, error), 200, LEVEL)
    far = past_threshold(NoisyNumber(400.0, error), 200, LEVEL)
    assert near.left_out == (-math.inf, 0.0)
    assert far.left_out[0] == error(LEVEL) - error(Fraction(975, 1000)) < 0


def test_the_number_that_chose_a_key_says_so_and_numbers_beside_it_do_not(tmp_path):
    with duckdb.connect(str(tmp_path / "log.duckdb")) as db:
        # 20 towns each of 30, 31, ... 109 rows: some lie just above the threshold, wherever it is.
        db.execute(
            "CREATE TABLE visits AS SELECT CAST('town' || t AS VARCHAR) AS town, 1 AS one "
            "FROM range(1600) AS r(t), LATERAL (SELECT unnest(range(30 + t // 20)))"
        )
    policy = tmp_path / "policy.toml"
    policy.write_text(
        '[database]\nsource = "duckdb:log.duckdb"\n[tables.visits.columns]\none = { range = [0, 1], step = 1 }\n'
        '[protections.rows]\nkind = "rows"\nepsilon = 9\ndelta = 1e-4\n'
    )
    text = "SELECT town, count(*), sum(one) FROM visits GROUP BY town"
    with secant.connect(policy=policy, ledger=tmp_path / "x.ledger") as db:
        answer = db.sql(text, epsilon=1, delta="1e-12")
    counts = [row[1] for row in answer.rows]
    lows = [row[1] for row in answer.error["low"]]
    near = [
        x for x, low in zip(counts, lows, strict=True) if not low
    ]  # nothing, or that it is not below 0
    far = [(x, low) for x, low in zip(counts, lows, strict=True) if low]
    assert near
    assert max(near) < min(x for x, _ in far)
    assert all(x - low > answer.error["noise"][0][1] for x, low in far)
    assert all(row[2] is not None for row in answer.error["low"])
