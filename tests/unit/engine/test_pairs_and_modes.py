"""Correlations, truth values and modes of protected rows: answered, with errors, and NULL where nothing can be said."""

import math

import duckdb
import pytest

import secant

POLICY = """
[database]
source = "duckdb:{path}"

[tables.people]
key = ["id"]
[tables.visits]
key = ["id"]
references = {{ person = "people.id" }}
[tables.visits.columns]
age = {{ range = [0, 100], step = 1 }}
cost = {{ range = [0, 100] }}
ward = {{ values = ["a", "b", "c"] }}

[protections.people]
kind = "unit"
unit = "people.id"
epsilon = 1000
[protections.people.limits]
visits = 2
"""


@pytest.fixture(scope="module")
def clinic(tmp_path_factory):
    folder = tmp_path_factory.mktemp("clinic")
    path = folder / "clinic.duckdb"
    with duckdb.connect(str(path)) as made:
        made.execute("CREATE TABLE people AS SELECT i AS id FROM range(3000) t(i)")
        made.execute(
            "CREATE TABLE visits AS SELECT i AS id, i // 2 AS person, (i * 7919) % 101 AS age,"
            " CAST(((i * 7919) % 101) * 0.5 + (i * 31) % 40 AS DOUBLE) AS cost,"
            " CASE WHEN i % 5 < 3 THEN 'a' ELSE 'b' END AS ward, i % 3 = 0 AS paid, TRUE AS seen"
            " FROM range(6000) t(i)"
        )
        truth = made.execute(
            "SELECT corr(cost, age), covar_pop(cost, age), regr_slope(cost, age), regr_intercept(cost, age) FROM visits"
        ).fetchone()
    policy = folder / "policy.toml"
    policy.write_text(POLICY.format(path=path))
    with secant.connect(policy=policy, ledger=folder / "ledger") as db:
        yield db, truth


def test_correlations_lie_within_their_errors(clinic):
    db, truth = clinic
    text = "SELECT corr(cost, age), covar_pop(cost, age), regr_slope(cost, age), regr_intercept(cost, age) FROM visits"
    # four statements at once, each misses with a chance of 5 %: ten answers in a row would be one in 10^7
    answers = [db.sql(text, epsilon=5) for _ in range(10)]
    held = [
        low <= true <= high
        for a in answers
        for true, low, high in zip(truth, a.low[0], a.high[0], strict=True)
    ]
    assert sum(held) >= 20
    assert all(abs(a.rows[0][0] - truth[0]) < 0.3 for a in answers)


def test_a_number_of_pairs_is_paid_once(clinic):
    db, _ = clinic
    told = db.sql("SELECT corr(cost, age) FROM visits", epsilon=1)
    measures = [m["measure"] for m in told.mechanisms]
    assert len(measures) == 6  # one number, two sums, two sums of squares, one of products
    assert sum(m.startswith("number of") for m in measures) == 1


def test_truth_values_and_the_most_frequent_value(clinic):
    db, _ = clinic
    text = "SELECT bool_and(paid), bool_or(paid), count_if(age > 50), mode(ward), mode(paid) FROM visits"
    answer = db.sql(text, epsilon=20)
    every, some, count, ward, paid = answer.rows[0]
    assert (every, some, ward, paid) == (False, True, "a", False)
    assert abs(count - 2970) < 60
    assert answer.error["ranks"][0][3] > 0  # by so many rows another ward may be ahead


def test_a_divisor_of_nothing_gives_null_and_a_reason(clinic):
    db, _ = clinic
    text = "SELECT sum(cost) / (count(*) - count(*)) AS share, count(*) FROM visits"
    answer = db.sql(text, epsilon=1)
    assert answer.rows[0][0] is None
    assert answer.error["undefined"] == ["share"]
    assert "share is NULL where its divisor came out as 0" in str(answer)
    assert all(not isinstance(v, float) or math.isfinite(v) for v in answer.rows[0])


def test_statistics_of_units_are_asked_by_rank(clinic):
    db, _ = clinic
    text = "SELECT quantile_disc(total, 0.9) FROM (SELECT person, sum(age) AS total FROM visits GROUP BY person) t"
    answer = db.sql(text, epsilon=5)
    assert 100 < answer.rows[0][0] < 200
    assert answer.error["ranks"][0][0] < 100


@pytest.mark.parametrize(
    "text",
    [
        "SELECT mode(ward), mode(age) FROM visits",
        "SELECT corr(cost, age), bool_or(paid) FROM visits",
        "SELECT count(*) FROM people p WHERE EXISTS (SELECT 1 FROM visits v WHERE v.age = p.id)",
    ],
)
def test_a_second_program_finds_the_same_bounds(clinic, text):
    db, _ = clinic
    verdict = db.verify(db.sql(text, epsilon=1).release_id)
    assert verdict.outcome == "verified", verdict


def test_an_answer_about_rows_of_others_counts_them(clinic):
    """Two visits of a person can decide about two other people: noise for five rows in all.

    Rests on rewrite.exists, stability.join.
    """
    db, _ = clinic
    told = str(
        db.explain(
            "SELECT count(*) FROM people p WHERE EXISTS (SELECT 1 FROM visits v WHERE v.age = p.id)",
            epsilon=1,
        )
    )
    assert "rewrite.exists" in told
    assert "5 rows differ" in told
