"""Which noise a question gets: all of epsilon for what moves, and the law that errs less where there is a delta."""

from fractions import Fraction

import pytest

from private_shop import ROWWISE, TABLES, compile_release, open_shop
from secant.noise import calibrate as calibrating
from secant.noise.laws import WORTH, Plain, choose_normal
from secant.noise.mechanisms.gaussian import suffices
from secant.noise.mechanisms.whole import multiplier, root_up
from secant.sensitivity.certificate import is_still

CELLS = """
[protections.sums]
kind = "cells"
epsilon = 100
composition = "basic"
[protections.sums.distance]
orders = "l1(total)"
"""


@pytest.fixture(scope="module")
def cells(tmp_path_factory):
    with open_shop(tmp_path_factory.mktemp("cells"), CELLS) as db:
        yield db


def test_a_public_number_takes_no_share_of_epsilon(cells):
    job = compile_release(cells, "SELECT avg(total) FROM orders").job
    (b,) = job.prepared.bounded
    (certificate,) = b.certificates
    for measure in b.release.measures:
        still = is_still(certificate.bounds[measure.column])
        assert job.noise.noise[measure.column].epsilon == (0 if still else 1)
    assert sorted(n.still for n in job.noise.noise.values()) == [False, True]
    assert job.noise.costs["sums"] == (1, 0)


def test_public_numbers_alone_cost_nothing(cells):
    job = compile_release(cells, "SELECT status, count(*) FROM orders GROUP BY status").job
    assert all(n.still for b in [job] for n in b.noise.noise.values())
    assert job.noise.costs.get("sums", (0, 0)) == (0, 0)


def test_shares_by_weight_alone_would_waste_half(cells, monkeypatch):
    """The planted fault: what nobody can move gets a share all the same."""
    monkeypatch.setattr(calibrating, "is_still", lambda bound: False)
    job = compile_release(cells, "SELECT avg(total) FROM orders").job
    assert all(0 < n.epsilon < Fraction(2, 3) for n in job.noise.noise.values())


# ── normal noise ─────────────────────────────────────────────────────────────────────────────────

MANY = """
[protections.people]
kind = "unit"
unit = "customers.id"
epsilon = 100
delta = 0.001
truncation = "fixed"
composition = "tight"
[protections.people.limits]
orders = 200
groups = 100
"""
BY_DAY = "SELECT day, count(DISTINCT customer) FROM orders GROUP BY day"
DAYS = TABLES.replace(
    "total = { range = [0, 100] }",
    'total = { range = [0, 100] }\nday = { range = [2024-01-01, 2024-12-30], step = "1 day" }',
)
LEVEL = Fraction(95, 100)


@pytest.fixture(scope="module")
def many(tmp_path_factory):
    with open_shop(tmp_path_factory.mktemp("many"), MANY, tables=DAYS) as db:
        yield db


def test_a_hundred_groups_of_one_unit_have_the_promised_error(many):
    job = compile_release(many, BY_DAY, delta="1e-5").job
    (noise,) = job.noise.noise.values()
    assert noise.squared == 100
    assert noise.law.error(LEVEL) in (73, 74, 75, 76)
    (errors,) = job.noise.normal.compared.values()
    assert errors.laplace == 300
    told = many.explain(BY_DAY, epsilon=1, delta="1e-5").text
    assert "Gaussian of deviation" in told
    assert "(Laplace would be within 300 at 95%; not used)" in told
    assert "(stability.length)" in told


def test_without_a_delta_noise_stays_pure(many):
    job = compile_release(
        many, "SELECT status, count(DISTINCT customer) FROM orders GROUP BY status", delta=0
    ).job
    assert not job.noise.normal.rhos
    assert job.noise.costs["people"] == (1, 0)


def test_a_few_groups_stay_with_laplace_noise_and_explain_compares(many):
    text = "SELECT status, count(DISTINCT customer) FROM orders GROUP BY status"
    assert not compile_release(many, text, delta="1e-5").job.noise.normal.rhos
    assert "(Gaussian would be within " in many.explain(text, epsilon=1, delta="1e-5").text


def test_many_measures_share_one_vector(many):
    sums = ", ".join(f"sum(quantity * {k})" for k in range(1, 13))
    job = compile_release(many, f"SELECT {sums} FROM orders", delta="1e-5").job
    normal = job.noise.normal
    assert len(normal.rhos) == 12
    assert all(c.normal < WORTH * c.laplace for c in normal.compared.values())
    assert sum(normal.rhos.values()) <= 1 / (2 * multiplier(normal.epsilon, normal.delta) ** 2)


def test_what_is_charged_is_what_the_noise_gives(many):
    """From scratch: squared lengths over squared deviations, on the exact curve of one normal release."""
    for text in (
        BY_DAY,
        "SELECT " + ", ".join(f"sum(quantity * {k})" for k in range(1, 13)) + " FROM orders",
    ):
        job = compile_release(many, text, delta="1e-5").job
        cost = job.noise.paid["people"]
        shift = sum(n.hidden[1] / n.law.deviation**2 for n in job.noise.noise.values())
        assert shift <= 2 * cost.rho
        assert suffices(root_up(1 / shift), *cost.normal)
        assert cost.price[0] <= 1
        assert cost.price[1] <= Fraction(1, 10**5)


def test_the_choice_does_not_look_at_other_facts_than_bounds(many):
    plain = [Plain("a", 1.0, Fraction(1), Fraction(100), Fraction(100))]
    assert choose_normal(plain, Fraction(1, 10**5)).rhos
    assert not choose_normal(plain, Fraction(0)).rhos
    alone = [Plain("a", 1.0, Fraction(1), Fraction(100), Fraction(10_000))]
    assert not choose_normal(alone, Fraction(1, 10**5)).rhos


def test_a_tight_ledger_composes_normal_answers_by_rho(tmp_path):
    with open_shop(tmp_path, MANY.replace("epsilon = 100", "epsilon = 2"), tables=DAYS) as db:
        text = "SELECT " + ", ".join(f"sum(quantity * {k})" for k in range(1, 13)) + " FROM orders"
        for _ in range(6):
            db.sql(text, epsilon=0.5, delta="1e-6")
        spent = db.budget["people"].to_dict()["spent"]
        assert spent["epsilon"] < 2


def test_a_protection_that_is_moved_less_pays_less(tmp_path):
    both = MANY + ROWWISE
    with open_shop(tmp_path, both, tables=DAYS) as db:
        text = "SELECT " + ", ".join(f"sum(quantity * {k})" for k in range(1, 13)) + " FROM orders"
        job = compile_release(db, text, delta="1e-5").job
        people, single = job.noise.paid["people"], job.noise.paid["single"]
        assert single.rho * 100**2 == people.rho  # a row more may push another one out: two of 200
        assert 0 < single.normal[0] < people.normal[0] / 20
        assert suffices(root_up(1 / (2 * single.rho)), *single.normal)


# ── normal noise where values move ───────────────────────────────────────────────────────────────

WITH_DELTA = CELLS.replace("epsilon = 100", "epsilon = 100\ndelta = 0.001").replace(
    "l1(total)", "l1(total, quantity)"
)
TWELVE = "SELECT " + ", ".join(f"sum(quantity * {k})" for k in range(1, 13)) + " FROM orders"


@pytest.fixture(scope="module")
def moving(tmp_path_factory):
    with open_shop(tmp_path_factory.mktemp("moving"), WITH_DELTA) as db:
        yield db


def test_many_sums_of_moving_values_take_normal_noise_where_there_is_a_delta(moving):
    job = compile_release(moving, TWELVE, delta="1e-5").job
    assert len(job.noise.normal.rhos) == 12
    cost = job.noise.paid["sums"]
    shift = sum(n.hidden[1] / n.law.deviation**2 for n in job.noise.noise.values())
    assert suffices(root_up(1 / shift), *cost.normal)
    assert cost.price[0] <= 1
    assert cost.price[1] == Fraction(1, 10**5)
    assert not compile_release(moving, TWELVE, delta=0).job.noise.normal.rhos
    alone = compile_release(moving, "SELECT sum(quantity) FROM orders", delta="1e-5").job
    assert alone.noise.costs["sums"] == (1, 0)


def test_a_delta_changes_what_is_promised_of_longer_moves(moving):
    """Answers, guesses and the verifier say so: what is checked of `cells` stays what it was, nothing."""
    (pure,) = moving.sql("SELECT sum(quantity) FROM orders", epsilon=1, delta="1e-5").guarantee
    assert pure["delta"] == 0
    assert pure["protects"].endswith("a longer one at its length times epsilon")
    answer = moving.sql(TWELVE, epsilon=1, delta="1e-5")
    (told,) = answer.guarantee
    assert told["delta"] == 1e-5
    steps = "one of up to k at k times epsilon and 1 + e^epsilon + ... + e^((k - 1) epsilon) times delta"
    assert told["protects"].endswith(steps)
    assert steps in moving.explain(TWELVE, epsilon=1, delta="1e-5").text
    guesses = moving.explain(
        TWELVE, epsilon=1, delta="1e-5", attacker="orders.quantity within 2"
    ).text
    assert "single answers are not bounded, because delta is not 0" in guesses
    (noise,) = (p for p in moving.verify(answer.release_id).points if "noise" in p.about)
    assert noise.outcome == "not known"


def test_rows_that_count_as_a_distance_keep_pure_noise(tmp_path):
    both = WITH_DELTA.replace('"cells"', '"rows+cells"\nadd_remove = { orders = 30 }')
    with open_shop(tmp_path, both) as db:
        job = compile_release(db, TWELVE, delta="1e-5").job
        assert not job.noise.normal.rhos
        assert job.noise.costs["sums"][1] == 0
