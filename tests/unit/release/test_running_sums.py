"""Running sums over public steps: fewer errors by blocks, numbers that add up, errors that hold (continual.batch)."""

from __future__ import annotations

from fractions import Fraction
from itertools import accumulate

import duckdb
import pytest
from scipy.stats import binom

import secant
from secant.noise.running import RunningNoise
from secant.noise.secrecy import Private
from secant.release import running_blocks as blocks
from secant.verifier.noise import price_of

DAYS = 90
POLICY = """
[database]
source = "duckdb:steps.duckdb"
public = ["days"]
[tables.visits.columns]
day = { range = [0, 89], step = 1, null = false }
ward = { values = ["a", "b"], null = false }
cost = { range = [0, 10] }
[protections.rows]
kind = "rows"
tables = ["visits"]
epsilon = 100000
"""
RUNNING = "SELECT day, sum(count(*)) OVER (ORDER BY day) AS n FROM visits GROUP BY day ORDER BY day"
SPINE = (
    "SELECT d, sum(c) OVER (ORDER BY d) AS n FROM (SELECT days.d AS d, count(visits.day) AS c "
    "FROM days LEFT JOIN visits ON days.d = visits.day GROUP BY days.d) AS q ORDER BY d"
)
MIXED = (
    "SELECT day, sum(count(*)) OVER (ORDER BY day) AS n, "
    "sum(count(*)) OVER (ORDER BY day) - 100 * day AS over, "
    "100.0 * sum(count(*)) OVER (ORDER BY day) / sum(count(*)) OVER () AS share "
    "FROM visits GROUP BY day ORDER BY day"
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("steps")
    with duckdb.connect(str(place / "steps.duckdb")) as db:
        db.execute(
            "CREATE TABLE visits AS SELECT (i * i) % 90 AS day, ['a', 'b'][1 + i % 2] AS ward, "
            "CAST(i % 10 AS DOUBLE) AS cost FROM range(9000) r(i)"
        )
        db.execute("CREATE TABLE days AS SELECT CAST(i AS INTEGER) AS d FROM range(90) r(i)")
        db.execute("ALTER TABLE days ADD PRIMARY KEY (d)")
    (place / "policy.toml").write_text(POLICY)
    return place


@pytest.fixture
def db(folder):
    with secant.connect(policy=folder / "policy.toml", ledger=":memory:") as found:
        yield found


def last_error(answer, column=1):
    return answer.error["values"][-1][column]


def plainly(monkeypatch):
    monkeypatch.setattr(blocks, "best_tree", lambda *_: None)


@pytest.mark.parametrize(
    "text",
    [
        RUNNING,
        RUNNING.replace("count(*)", "sum(cost)"),
        RUNNING.replace("ORDER BY day)", "ORDER BY day DESC)").replace("ORDER BY day)", "ORDER BY day DESC)"),
        SPINE,
    ],
)  # fmt: skip
def test_the_printed_error_is_smaller_than_that_of_plain_sums(db, monkeypatch, text):
    answer = db.sql(text, epsilon="0.2")
    assert "running" in answer.mechanisms[0]
    errors = [row[1] for row in answer.error["values"]]
    plainly(monkeypatch)
    plain = [row[1] for row in db.sql(text, epsilon="0.2").error["values"]]
    assert sum(errors) < 0.8 * sum(plain)
    assert max(errors) < 0.7 * max(plain)


def test_partitions_have_trees_of_their_own(db):
    text = "SELECT ward, day, sum(count(*)) OVER (PARTITION BY ward ORDER BY day) AS n FROM visits GROUP BY ward, day"
    answer = db.sql(text, epsilon="0.2")
    errors = {row[:2]: e[2] for row, e in zip(answer.rows, answer.error["values"], strict=True)}
    assert errors["a", 89] == errors["b", 89] == last_error(db.sql(RUNNING, epsilon="0.2"))


def test_it_is_explained_and_verified(db):
    told = str(db.explain(RUNNING, epsilon="0.2"))
    assert "on the sums of blocks of 1, " in told
    assert "by plain sums" in told
    answer = db.sql(RUNNING, epsilon="0.2")
    assert db.verify(answer.release_id).outcome == "verified"


def test_where_steps_are_shown_as_well_they_decide(db):
    """90 steps: single days would lose more than their running sum gains."""
    both = RUNNING.replace("SELECT day,", "SELECT day, count(*) AS here,")
    assert "running" not in db.sql(both, epsilon="0.2").mechanisms[0]
    few = RUNNING.replace("FROM visits", "FROM visits WHERE day < 12")
    assert "running" not in db.sql(few, epsilon="0.2").mechanisms[0]


def test_shown_steps_add_up_to_shown_running_sums(db, monkeypatch):
    best = blocks.best_tree
    monkeypatch.setattr(
        blocks, "best_tree", lambda steps, shown, variance: best(steps, False, variance)
    )
    both = RUNNING.replace("SELECT day,", "SELECT day, count(*) AS here,")
    answer = db.sql(both, epsilon="0.2")
    assert "running" in answer.mechanisms[0]
    raw = answer.raw or answer.rows
    total = 0
    for _, here, n in raw:
        total += here
        assert n == total


def test_printed_errors_are_those_of_the_law(db):
    noise = found_noise(db)
    answer = db.sql(MIXED, epsilon="0.2")
    half = Fraction(39, 40)  # which groups are there takes the other half of what may be missed
    for day in (0, 44, 89):
        row, errors = answer.rows[day], answer.error["values"][day]
        far = noise.reach({(0, day + 1): 1.0}, half)
        assert errors[1:3] == [far, far]
        low, high = answer.error["low"][day][3], answer.error["high"][day][3]
        assert low <= row[3] <= high
        assert errors[3] <= 150 * far / 9000 + 150 * noise.reach({(0, 90): 1.0}, half) / 9000


def test_errors_hold(db):
    """400 draws, each a whole series: false alarms below 1e-9 for each sum."""
    noise = found_noise(db)
    draws = 400
    level = Fraction(95, 100)
    sums = [{(0, t): 1.0} for t in (1, 30, 45, 77, 90)]
    sums += [noise.single(0, 17), {(0, 60): 1.0, (0, 53): -1.0}, {(0, 90): 1.0, (0, 30): -3.0}]
    reaches = [noise.reach(weights, level) for weights in sums]
    inside, near = [0] * len(sums), [0] * len(sums)
    for _ in range(draws):
        series = [0, *accumulate(noise.draw(Private([0] * DAYS)))]
        for i, weights in enumerate(sums):
            off = abs(sum(w * series[t] for (_, t), w in weights.items()))
            inside[i] += off <= reaches[i]
            near[i] += off <= reaches[i] / 2
    least = binom.ppf(1e-9, draws, 0.95)
    assert all(n >= least for n in inside)
    assert all(n < least for n in near), "errors of half the size would be noticed"


def test_the_verifier_counts_levels():
    bound = {"kind": "global", "value": "2", "norm": "l1"}
    certificate = {"bounds": {"m": bound}}
    noise = {"kind": "blocks", "law": "laplace", "size": "12", "branching": 4, "levels": 3}
    assert price_of("m", noise, certificate, None).pure == Fraction(1, 2)
    normal = {**noise, "law": "normal"}
    # squared lengths 2, 4 (in blocks of four at most 8, and at most 2² = 4), 4
    assert price_of("m", normal, certificate, Fraction(2)).rho == Fraction(10, 2 * 144)


def test_weights_of_any_size_have_an_error(db):
    noise = found_noise(db)
    one = noise.reach({(0, 80): 1.0}, Fraction(19, 20))
    assert noise.reach({(0, 80): 7.0}, Fraction(19, 20)) == pytest.approx(7 * one, rel=0.05)
    assert noise.reach({(0, 80): 1.0}, Fraction(99999, 100000)) > one
    apart = noise.reach({(0, 80): 1.0, (0, 73): -1.0}, Fraction(19, 20))
    assert apart < one, "what two running sums share cancels out"


def found_noise(db):
    seen = []
    honest = RunningNoise.draw
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(RunningNoise, "draw", lambda self, v: (seen.append(self), honest(self, v))[1])
        db.sql(RUNNING, epsilon="0.2")
    return seen[0]
