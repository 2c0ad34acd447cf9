"""Whole releases on two neighboring databases: no event is more than e^epsilon times as likely on one of them.

For an event E, fixed before the draws, P(E | D) ≤ e^ε P(E | D′). From n draws on each side come exact
(Clopper-Pearson) bounds, each wrong with probability at most 1e-10; a violation is reported only if
the lower bound of the left side exceeds the upper bound of the right one. So a true guarantee is
rejected with probability at most 2e-10 an event. The same test on halved noise must report one.
"""

import math
from fractions import Fraction

import pytest
from scipy.stats import beta

from chance import LONG
from private_shop import ROWWISE, UNIT, compile_release, make_shop, open_shop

ALPHA = 1e-10

ROWS = """
INSERT INTO towns VALUES ('Riga', 'LV', 1);
INSERT INTO customers SELECT i, 'n', 'Riga', 30, 10, 1 FROM range(1, 31) AS r(i);
INSERT INTO orders SELECT i, 1 + i % 30, ['open', 'paid'][1 + i % 2], DATE '2024-01-01', 50, 5, 0.5, 'x', 1
    FROM range(1, 101) AS r(i);
"""
ONE_ORDER = "INSERT INTO orders VALUES (500, 1, 'open', DATE '2024-01-01', 50, 5, 0.5, 'x', 1);"
ONE_CUSTOMER = """
INSERT INTO customers VALUES (77, 'n', 'Riga', 30, 10, 1);
INSERT INTO orders SELECT 600 + i, 77, 'open', DATE '2024-01-01', 100, 5, 0.5, 'x', 1 FROM range(5) AS r(i);
"""


def lower(hits, draws):
    return 0.0 if hits == 0 else float(beta.ppf(ALPHA, hits, draws - hits + 1))


def upper(hits, draws):
    return 1.0 if hits == draws else float(beta.ppf(1 - ALPHA, hits + 1, draws - hits))


def violated(events, here, there, draws, epsilon=1.0):
    """Say whether some event is provably more than e^epsilon times as likely on one side."""
    counts = []
    for side in (here, there):
        seen = [tuple(map(tuple, side.draw_rows())) for _ in range(draws)]
        counts.append([sum(event(rows) for rows in seen) for event in events])
    return any(
        lower(a, draws) > math.exp(epsilon) * upper(b, draws)
        for left, right in (counts, counts[::-1])
        for a, b in zip(left, right, strict=True)
    )


@pytest.fixture(scope="module")
def neighbors(tmp_path_factory):
    found = {}
    for name, rows in {
        "plain": ROWS,
        "order": ROWS + ONE_ORDER,
        "customer": ROWS + ONE_CUSTOMER,
    }.items():
        directory = tmp_path_factory.mktemp(name)
        make_shop(directory, rows=rows)
        found[name] = directory
    return found


COUNT = "SELECT count(*) FROM orders"
COUNT_EVENTS = (
    lambda rows: rows[0][0] >= 101,
    lambda rows: rows[0][0] <= 100,
    lambda rows: rows[0][0] == 101,
)
SUMS = "SELECT status, sum(total) FROM orders WHERE status IN ('open', 'paid') GROUP BY status"


def sums(rows):
    return {status: float(total) for status, total in rows}


# 50 orders of 50 in each group, and 5 of 100 more in one of them with the customer.
SUM_EVENTS = (
    lambda rows: sums(rows)["open"] >= 3000,
    lambda rows: sums(rows)["open"] <= 2500,
    lambda rows: sums(rows)["open"] >= 3000 and sums(rows)["paid"] >= 2500,
    lambda rows: sums(rows)["open"] + sums(rows)["paid"] >= 5500,
)


def compiled(neighbors, name, protections, query):
    return compile_release(open_shop(neighbors[name], protections), query, epsilon=1)


def test_a_count_keeps_its_epsilon_and_halved_noise_is_caught(neighbors):
    draws = 20_000 if LONG else 700
    here = compiled(neighbors, "order", ROWWISE, COUNT)
    there = compiled(neighbors, "plain", ROWWISE, COUNT)
    assert not violated(COUNT_EVENTS, here, there, draws)
    half = Fraction(1, 2)
    assert violated(COUNT_EVENTS, here.with_noise_times(half), there.with_noise_times(half), draws)


FIXED = UNIT.replace("composition", 'truncation = "fixed"\ncomposition')
CHOSEN = UNIT.replace("composition", 'truncation = "chosen"\ncomposition')


def test_chosen_limits_keep_their_epsilon_and_too_little_noise_is_caught(neighbors):
    draws = 20_000 if LONG else 300
    here = compiled(neighbors, "customer", CHOSEN, SUMS)
    there = compiled(neighbors, "plain", CHOSEN, SUMS)
    assert not violated(SUM_EVENTS, here, there, draws)
    part = Fraction(1, 64)
    assert violated(SUM_EVENTS, here.with_noise_times(part), there.with_noise_times(part), draws)


def test_grouped_sums_keep_their_epsilon_and_too_little_noise_is_caught(neighbors):
    draws = 20_000 if LONG else 300
    here = compiled(neighbors, "customer", FIXED, SUMS)
    there = compiled(neighbors, "plain", FIXED, SUMS)
    assert not violated(SUM_EVENTS, here, there, draws)
    part = Fraction(1, 2) if LONG else Fraction(1, 16)
    assert violated(SUM_EVENTS, here.with_noise_times(part), there.with_noise_times(part), draws)


def test_the_bounds_of_the_audit_hold():
    assert lower(0, 10) == 0
    assert upper(10, 10) == 1
    assert lower(50, 100) < 0.5 < upper(50, 100)
    assert upper(0, 100) == pytest.approx(1 - ALPHA ** (1 / 100))
