"""What `check` says will happen is what happens: each sentence is matched with questions that it speaks of."""

import duckdb
import pytest

POLICY = """
[database]
source = "duckdb:clinic.duckdb"
[tables.patients]
key = "id"
[tables.visits]
references = {{ patient = "patients.id" }}
[tables.visits.columns]
cost = {{ range = [0, 50] }}
[protections.people]
kind = "unit"
unit = "patients.id"
epsilon = 100
delta = 1e-6
{more}
"""
CHOSEN = (
    "no limit for visits: how much one unit adds to COUNT, SUM and AVG, and weighs in MIN, MAX, MEDIAN and quantiles, "
    "is limited by a private choice"
)
SHARED = "no limit for visits: another protection covers it too, so only how many units there are is answered"
PERSONAL = "no limit for visits: units give different amounts, so only how many units there are is answered"
FIXED = "no limit for visits: limits are fixed, so only how many units there are is answered"
RANGE = (
    "no range for number, rate: SUM and AVG need none; for MIN, MAX and MEDIAN over them one is found privately, once, "
    "with a part of epsilon, unless the question limits them by BETWEEN"
)
REFUSED = (
    "no range for number, rate: SUM, AVG, MIN, MAX and MEDIAN over them are refused, "
    "unless the question limits them by BETWEEN"
)
SECOND = '\n[protections.rows]\nkind = "rows"\nepsilon = 100\n'
RANKED = ("min(cost)", "max(cost)", "median(cost)", "quantile_cont(cost, 0.25)")
OVER_RATE = ("sum(rate)", "avg(rate)", "min(rate)", "max(rate)", "median(rate)")
WITHIN = "count(*) + (SELECT sum(rate) FROM visits WHERE rate BETWEEN 0 AND 5)"


@pytest.fixture
def asked(tmp_path, monkeypatch, run):
    """Give a function from further lines of the policy to what `check` says and a way to ask."""
    monkeypatch.chdir(tmp_path)
    with duckdb.connect("clinic.duckdb") as connection:
        connection.execute(
            "CREATE TABLE patients AS SELECT i AS id, 100 AS gives FROM range(50) AS r(i)"
        )
        connection.execute(
            "CREATE TABLE visits AS SELECT i AS number, i % 50 AS patient, i % 40 AS cost, i % 9 AS rate "
            "FROM range(300) AS r(i)"
        )

    def opened(more="", text=POLICY):
        (tmp_path / "policy.toml").write_text(text.format(more=more))
        status, out, _ = run("check")
        assert status == 0

        def answers(expression, finding=None):
            words = ("query", f"SELECT {expression} AS n FROM visits", "--epsilon", "1")
            status, _, err = run(*words)
            # what is found is said with the first answer that needs it, and never again
            assert ("WRN-009" in err) == (finding is not None)
            assert finding is None or finding in err
            return status == 0

        return out, answers

    return opened


@pytest.mark.parametrize("more", ["", 'truncation = "chosen"', 'truncation = "race"'])
def test_without_a_limit_one_is_chosen(asked, more):
    out, answers = asked(more)
    assert CHOSEN in out
    for expression in ("count(*)", "sum(cost)", "avg(cost)", *RANKED):
        assert answers(expression), expression


def test_without_a_limit_where_units_give_different_amounts(asked):
    offers = 'personal = {{ column = "patients.gives", offers = [50, 100] }}\n'
    out, answers = asked(text=POLICY.replace("delta = 1e-6\n", offers))
    assert PERSONAL in out
    assert "found privately" not in out
    assert answers("count(DISTINCT patient)")
    for expression in ("count(*)", "sum(cost)", "avg(cost)", *RANKED, *OVER_RATE):
        assert not answers(expression), expression


def test_without_a_limit_under_two_protections(asked):
    out, answers = asked(SECOND)
    assert SHARED in out
    assert "found privately" not in out
    assert answers("count(DISTINCT patient)")
    for expression in ("count(*)", "sum(cost)", "avg(cost)", *RANKED):
        assert not answers(expression), expression


def test_without_a_limit_where_limits_are_fixed(asked):
    out, answers = asked('truncation = "fixed"')
    assert FIXED in out
    assert REFUSED in out
    assert answers("count(DISTINCT patient)")
    for expression in ("count(*)", "sum(cost)", "avg(cost)", "max(cost)", *OVER_RATE):
        assert not answers(expression), expression


def test_with_a_limit_all_of_it_is_answered(asked):
    out, answers = asked("limits = { visits = 9 }")
    assert "no limit for" not in out
    for expression in ("count(*)", "sum(cost)", "min(cost)", "median(cost)"):
        assert answers(expression), expression


def test_without_a_range(asked):
    out, answers = asked("limits = { visits = 9 }")
    assert RANGE in out
    assert answers(WITHIN)
    assert answers(OVER_RATE[0])  # a sum needs none
    assert answers(OVER_RATE[1])  # nor does an average
    assert answers(OVER_RATE[2], finding="no range is declared for visits.rate")
    for expression in OVER_RATE[3:]:
        assert answers(expression), expression


def test_without_a_range_under_two_protections(asked):
    out, answers = asked("limits = { visits = 9 }" + SECOND)
    assert REFUSED in out
    assert "found privately" not in out
    assert answers(WITHIN)
    for expression in OVER_RATE:
        assert not answers(expression), expression


def test_rows_and_values_at_once_need_a_distance_for_each_table(asked):
    text = POLICY.split("[protections")[0] + (
        '[protections.both]\nkind = "rows+cells"\nepsilon = 9\ndistance = {{ visits = "cost" }}\n'
        "add_remove = {{ visits = 9 }}\n{more}"
    )
    text = text.replace("[database]\n", '[database]\npublic = ["patients"]\n')
    out, answers = asked("", text)
    assert "every question about its tables" not in out
    for expression in ("count(*)", "sum(cost)"):
        assert answers(expression), expression
