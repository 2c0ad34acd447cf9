"""Errors beside order statistics and beside what is computed from released numbers: they hold, and are not for free."""

from __future__ import annotations

import math
from fractions import Fraction

import duckdb
import pytest
from scipy.stats import binom

import secant
from private_shop import answers
from secant.accuracy import reported_error as stated
from secant.noise import intervals
from secant.noise.ranked import drawn, rank_noise, ranks_off
from secant.noise.secrecy import Private
from secant.plan import nodes as n
from secant.plan.rewrites.order_statistics import Grid, Ranked
from secant.schema import types as t

SHARES = {"Bay": 300, "Hill": 250, "Oak": 5}
POLICY = """
[database]
source = "duckdb:town.duckdb"
public = ["areas"]
[tables.people]
key = "id"
[tables.people.columns]
age = { range = [0, 120] }
area = { values = ["Bay", "Hill", "Oak", "Sea"] }
code = { values = CODES }
[protections.rows]
kind = "rows"
tables = ["people"]
epsilon = 1000000
delta = 1e-6
"""
COUNTS = "(SELECT area, count(*) AS n FROM people GROUP BY area) AS c"
DRAWS = 150


@pytest.fixture(scope="module")
def town(tmp_path_factory):
    folder = tmp_path_factory.mktemp("town")
    with duckdb.connect(str(folder / "town.duckdb")) as db:
        db.execute("CREATE TABLE areas AS SELECT unnest(['Bay', 'Hill', 'Oak', 'Sea']) AS area")
        db.execute("CREATE TABLE people (id INTEGER, age INTEGER, area VARCHAR, code INTEGER)")
        for area, count in SHARES.items():
            db.execute(
                f"INSERT INTO people SELECT 1000 * {len(area)} + i, 20 + i % 60, '{area}', 0 FROM range({count}) r(i)"
            )
    (folder / "policy.toml").write_text(POLICY.replace("CODES", str(list(range(100)))))
    with secant.connect(policy=folder / "policy.toml") as db:
        yield db


def held(db, text, truth, draws=DRAWS, epsilon=1):
    """Count, output by output, the draws whose ends hold the truth; none may be missing."""
    found = [0] * len(truth)
    for answer in answers(db, text, draws, epsilon=epsilon):
        error = answer.error
        for i, true in enumerate(truth):
            low, high = error["low"][0][i], error["high"][0][i]
            assert low is not None or high is not None
            low, high = -math.inf if low is None else low, math.inf if high is None else high
            found[i] += low - 1e-9 <= true <= high + 1e-9
    return found


def enough(found, draws=DRAWS):
    """Whether 95 % is believable: below this number it is not, but for a chance of 1e-9."""
    return found >= binom.ppf(1e-9, draws, 0.95)


# ── order statistics ─────────────────────────────────────────────────────────────────────────────

LEVEL = Fraction(95, 100)
GRID = Grid(Fraction(0), Fraction(1), 121)
CELLS = ((50, 7),)  # all rows on one point: every other is as far as can be, and there are 120


def ranked(fraction):
    column = n.Column("x", t.INTEGER)
    cells = n.Aggregate(n.Values((n.Field("x", t.INTEGER),), ()), (n.Named("cell", column),), ())
    return Ranked("r", Fraction(fraction), t.INTEGER, GRID, cells, 1.0, "median of x")


def inside(draw, statistic, reach):
    """Whether no more rows lie between the draw and the rank than are stated, by the definition of ranks."""
    total = sum(rows for _, rows in CELLS)
    below = sum(rows for at, rows in CELLS if at < draw)
    upto = sum(rows for at, rows in CELLS if at <= draw)
    if statistic.fraction == 0:
        return below <= reach
    if statistic.fraction == 1:
        return total - upto <= reach
    wanted = statistic.fraction * total
    return below - reach <= wanted <= upto + reach


@pytest.mark.parametrize("fraction", ["0", "1/2", "9/10", "1"])
def test_stated_ranks_hold(fraction):
    statistic = ranked(fraction)
    noise = rank_noise(statistic, statistic.span, Fraction(1))
    reach = ranks_off(statistic, noise, Fraction(95, 100))
    draws = [v for v, _ in drawn(statistic, noise, Private([CELLS] * 400), LEVEL)]
    assert enough(sum(inside(d, statistic, reach) for d in draws), 400)


def test_ranks_that_forget_how_many_points_there_are_would_be_noticed():
    statistic = ranked("1/2")
    noise = rank_noise(statistic, statistic.span, Fraction(1))
    reach = noise.choice.error(Fraction(95, 100), 1)
    draws = [v for v, _ in drawn(statistic, noise, Private([CELLS] * 400), LEVEL)]
    assert not enough(sum(inside(d, statistic, reach) for d in draws), 400)


def test_answers_state_ranks(town):
    answer = town.sql(
        "SELECT median(age), 2 * max(age), count(*), max(age) - min(age) FROM people", epsilon=1
    )
    ranks = answer.error["ranks"][0]
    assert 0 < ranks[0] < 100
    assert ranks[1] > 0
    assert ranks[2] is None
    assert ranks[3] is None  # two draws: no rank of its own
    low, high = answer.error["low"][0], answer.error["high"][0]
    assert 0 <= low[0] <= answer.rows[0][0] <= high[0] <= 120
    certain = answer.certain
    assert (certain.low[0][0], certain.high[0][0]) == (0, 120)
    assert 0 <= low[1] <= high[1] == 240  # nobody is told how far out one person's value lies
    assert (certain.low[0][1], certain.high[0][1]) == (0, 240)
    assert (low[3], high[3]) == (-120, 120)
    assert answer.error["noise"][0][0] is None
    assert answer.to_dict()["error"]["ranks"] == [ranks]
    assert town.sql("SELECT count(*) FROM people", epsilon=1).error["ranks"] is None


# ── later stages ─────────────────────────────────────────────────────────────────────────────────


def test_ends_of_later_stages_hold(town):
    text = (
        "SELECT sum(n), avg(n), max(n), min(n), count(*), 100.0 * sum(n), "
        f"sum(CASE WHEN area = 'Bay' THEN n ELSE 0 END) FROM {COUNTS}"
    )
    # The true answer has no group Sea: three groups, the least of which has five people.
    truth = [555, 185, 300, 5, 3, 55500, 300]
    assert all(enough(x) for x in held(town, text, truth))


def test_shares_of_a_total_hold(town):
    text = f"SELECT n * 1.0 / (SELECT count(*) FROM people) FROM {COUNTS} WHERE area = 'Bay'"
    assert enough(*held(town, text, [300 / 555]))


PAIR = (
    "WITH c AS (SELECT area, count(*) AS n FROM people GROUP BY area) "
    "SELECT a.n * 1.0 / b.n FROM c AS a CROSS JOIN c AS b WHERE a.area = 'Bay' AND b.area = 'Hill'"
)


def test_two_rows_of_one_table_have_noise_of_their_own(town):
    assert enough(*held(town, PAIR, [300 / 250]))


def test_rows_that_are_taken_for_one_would_be_noticed(town, monkeypatch):
    """The old fault: a number was known by its column alone, so that a.n / b.n was 1, exactly."""

    def one_name(self, symbol, row):
        drawn = self.traced.drawn[symbol.name]
        one = stated.replace(self.law(drawn.column), sign=drawn.sign, measure=drawn.column)
        self.noisy.setdefault(drawn.column, one.at(float(row[symbol.name])))
        return n.Column(drawn.column, symbol.type)

    monkeypatch.setattr(stated.Resolver, "_number", one_name)
    assert not enough(*held(town, PAIR, [300 / 250], 40), 40)


LIMITED = "SELECT greatest(count(*) - 600, -5) * 1.0 / count(*) FROM people"
"""Below zero, where the display cuts no end off."""


def test_a_limit_that_the_user_wrote_is_not_taken_for_a_formula(town):
    assert enough(*held(town, LIMITED, [-5 / 555], 60), 60)


def test_a_limit_that_is_read_through_anyway_would_be_noticed(town, monkeypatch):
    old = intervals._one_sided

    def through(scalar, noisy, row, *, below):
        first = intervals.affine_of(scalar.arguments[0], noisy, {}, sure=True)
        return (
            first
            if old(scalar, noisy, row, below=below) is None
            else old(scalar, noisy, row, below=below)
        )

    monkeypatch.setattr(intervals, "_one_sided", through)
    assert not enough(*held(town, LIMITED, [-5 / 555], 60), 60)


def test_missing_groups_are_not_averaged_over(town, monkeypatch):
    monkeypatch.setattr(stated.Resolver, "_is_there", lambda self, term: True)
    text = f"SELECT avg(n) FROM {COUNTS}"
    assert not enough(*held(town, text, [185], 40), 40)


@pytest.mark.parametrize(
    "text",
    [
        f"SELECT sum(n) FROM {COUNTS} WHERE n > 100",
        f"SELECT n > 100 AS big, sum(n) FROM {COUNTS} GROUP BY n > 100",
        f"SELECT sum(n + 1) FROM {COUNTS}",
        f"SELECT median(n) FROM {COUNTS}",
        f"SELECT sum(n) FROM (SELECT n FROM {COUNTS} ORDER BY n DESC LIMIT 2) AS top",
        "SELECT count(*) FROM people WHERE age > (SELECT avg(age) FROM people)",
    ],
)
def test_nothing_is_stated_where_noise_decides_what_is_gathered(town, text):
    error = town.sql(text, epsilon=1).error
    assert all(x is None for table in ("low", "high") for row in error[table] for x in row)


def test_sums_of_counts_are_not_pushed_up(town):
    """Counts that are kept from falling below zero add up to too much: sums take them as noise made them."""
    text = "SELECT sum(n) FROM (SELECT code, count(*) AS n FROM people WHERE age > 100 GROUP BY code) AS c"
    total = sum(float(town.sql(text, epsilon=1).rows[0][0]) for _ in range(30)) / 30
    # The mean of 30 sums of 100 noises with a mean of zero has a deviation of 2.5; cut off at zero it would be 40.
    assert total < 20


def test_numbers_of_rows_that_noise_chose_are_wider(town):
    plain = town.sql("SELECT area, count(*) AS n FROM people GROUP BY area", epsilon=1)
    chosen = town.sql(
        "SELECT area, count(*) AS n FROM people GROUP BY area ORDER BY n DESC LIMIT 1", epsilon=1
    )
    assert chosen.error["noise"][0][1] > plain.error["noise"][0][1]
