"""Scripts end to end: views of the policy and of the script, released tables, derived columns, what is spent."""

import xml.etree.ElementTree as ElementTree
from fractions import Fraction

import duckdb
import pytest

import secant
from secant.errors import PolicyError, Refused, SqlError
from secant.release.cost_by_source import Source

POLICY = """
[database]
source = "duckdb:{path}"
public = ["wards"]
[tables.wards]
key = ["ward"]
[tables.visits.columns]
cost = {{ range = [0, 200] }}
ward = {{ values = [0, 1, 2, 3], null = false }}
[tables.refunds.columns]
amount = {{ range = [0, 50] }}
[views]
expensive = "SELECT * FROM visits WHERE cost > 100"
costly = "SELECT ward, cost FROM expensive"
[protections.rows]
kind = "rows"
epsilon = {epsilon}
tables = ["visits", "refunds"]
"""
SCRIPT = """
CREATE VIEW money AS SELECT cost AS amount FROM visits UNION ALL SELECT -amount FROM refunds;
CREATE TABLE twice AS SELECT * FROM money UNION ALL SELECT cost FROM costly;
RELEASE mean AS SELECT avg(cost) AS m, count(*) AS n FROM visits;
RELEASE by_ward (place, rows) AS SELECT ward, count(*) FROM visits GROUP BY ward;
SELECT count(*) AS n FROM twice WHERE amount > (SELECT m FROM mean);
SELECT w.name, b.rows FROM by_ward b JOIN wards w ON w.ward = b.place ORDER BY w.ward;
"""


@pytest.fixture(scope="module")
def held(tmp_path_factory):
    path = tmp_path_factory.mktemp("flow") / "w.duckdb"
    with duckdb.connect(str(path)) as made:
        made.execute(
            "CREATE TABLE visits AS SELECT i AS id, i % 4 AS ward, (i * 37) % 200 AS cost FROM range(400) t(i)"
        )
        made.execute("CREATE TABLE refunds AS SELECT i AS id, i % 50 AS amount FROM range(60) t(i)")
        made.execute(
            "CREATE TABLE wards AS SELECT i AS ward, 'ward ' || i AS name FROM range(4) t(i)"
        )
    return path


@pytest.fixture
def opened(held, tmp_path):
    def opening(policy=POLICY, epsilon=100):
        file = tmp_path / "policy.toml"
        file.write_text(policy.format(path=held, epsilon=epsilon))
        return secant.connect(policy=file)

    return opening


def test_a_view_of_the_policy_is_asked_like_a_table(opened):
    with opened() as database:
        (many,) = database.sql("SELECT count(*) FROM costly", epsilon=20).rows[0]
        assert abs(many - 198) < 10  # at epsilon 20 the noise is beyond 10 in one of 10^80 draws
        assert [name for name, _ in database.describe("SELECT * FROM costly")] == ["ward", "cost"]


def test_a_script_is_asked_and_its_table_of_costs_adds_up(opened):
    with opened() as database:
        forecast = database.run(SCRIPT, epsilon=30, explain=True)
        assert not forecast.answers
        assert not database.has_ledger  # nothing was spent, nothing was started
        found = database.run(SCRIPT, epsilon=30)
        assert list(found.answers) == ["mean", "by_ward", "answer1", "answer2"]
        visits, refunds = Source("rows", "visits"), Source("rows", "refunds")
        assert found.costs == forecast.costs
        assert found.costs["answer2"] == {}  # it reads what was released, and public rows
        assert found.costs["answer1"] == {visits: (10, 0), refunds: (5, 0)}
        assert 30 - Fraction(1, 10**9) < found.spent[visits][0] <= 30
        assert found.budget["rows"].spent_epsilon == pytest.approx(30)
        assert found.stabilities == {
            "money": {"visits": 1, "refunds": 1},
            "twice": {"visits": 2, "refunds": 1},
        }
        # What is read later is what was drawn, not what is stored.
        drawn = found.answers["by_ward"].raw
        assert [row[1] for row in found.answers["answer2"].rows] == [row[1] for row in drawn]
        assert found.answers["answer2"].rows[1][0] == "ward 1"
        assert found.stopped is None


def test_the_picture_and_the_lines(opened):
    with opened() as database:
        found = database.run(SCRIPT, epsilon=3, explain=True)
    root = ElementTree.fromstring(found.plot().svg)
    words = [e.text for e in root.iter("{http://www.w3.org/2000/svg}text")]
    for name in ("visits", "refunds", "wards", "expensive", "money", "twice", "mean", "answer2"):
        assert name in words
    assert "ε 1" in words
    lines = str(found).splitlines()
    assert lines[0].split() == ["epsilon", "of", "rows:", "refunds", "rows:", "visits"]
    assert "together" in str(found)
    assert found.to_dict()["stabilities"]["twice"] == {"visits": 2, "refunds": 1}


def test_nothing_is_spent_where_a_later_statement_is_refused(opened):
    with opened() as database:
        with pytest.raises(Refused):
            database.run("SELECT count(*) FROM visits; SELECT cost FROM visits", epsilon=1)
        with pytest.raises(SqlError) as caught:
            database.run("SELECT count(*) FROM visits;\nSELECT count(*) FROM vists", epsilon=1)
        assert "vists" in str(caught.value)
        assert caught.value.span.start == len("SELECT count(*) FROM visits;\nSELECT count(*) FROM ")
        assert database.budget["rows"].spent_epsilon == 0


def test_what_was_answered_before_the_budget_ended_is_kept(opened):
    with opened(epsilon=1) as database:
        found = database.run(
            "SELECT count(*) FROM visits; SELECT count(*) FROM refunds", epsilon=1.5
        )
        assert list(found.answers) == ["answer1"]
        assert found.stopped.code == "BUD-001"
        assert set(found.costs) == {"answer1"}


@pytest.mark.parametrize(
    ("script", "said"),
    [
        ("CREATE VIEW a AS SELECT * FROM b; CREATE VIEW b AS SELECT * FROM a; SELECT 1", "not defined before"),
        ("CREATE VIEW a AS SELECT * FROM a; SELECT 1", "not defined before"),
        ("CREATE VIEW visits AS SELECT 1; SELECT 1", "already"),
        ("CREATE VIEW expensive AS SELECT 1; SELECT 1", "already"),
        ("CREATE VIEW a (x, y) AS SELECT cost FROM visits; SELECT count(*) FROM a", "2 names"),
        ("RELEASE r (x, y) AS SELECT count(*) FROM visits; SELECT 1", "2 names"),
        ("CREATE VIEW a AS SELECT random() FROM visits; SELECT count(*) FROM a", "another value"),
    ],
)  # fmt: skip
def test_names_that_do_not_fit(opened, script, said):
    with opened() as database, pytest.raises(SqlError) as caught:
        database.run(script, epsilon=1)
    assert said in str(caught.value)


def test_a_view_of_the_policy_that_cannot_be_read_is_an_error_of_the_policy(opened):
    broken = POLICY.replace("FROM expensive", "FROM exp")
    with pytest.raises(PolicyError) as caught:
        opened(broken)
    assert "views.costly" in str(caught.value)
    with pytest.raises(PolicyError):
        opened(POLICY.replace('costly = "SELECT ward, cost FROM expensive"', 'wards = "SELECT 1"'))
    with pytest.raises(PolicyError) as caught:
        opened(POLICY.replace("FROM expensive", "FROM costly"))
    assert "reads itself" in str(caught.value)


DERIVED = """
[database]
source = "duckdb:{path}"
[tables.bills]
derived = {{ total = "net + tax" }}
[tables.bills.columns]
net = {{ range = [0, 100] }}
tax = {{ range = [0, 20] }}
[protections.cells]
kind = "cells"
epsilon = {epsilon}
distance = {{ bills = "l1(net, tax)" }}
"""


def test_a_derived_column_is_computed_and_moves_as_what_it_follows_from(tmp_path):
    path = tmp_path / "b.duckdb"
    with duckdb.connect(str(path)) as made:
        made.execute(
            "CREATE TABLE bills AS SELECT i AS id, i % 7 AS shop, (i % 90)::DOUBLE AS net, (i % 15)::DOUBLE AS tax, "
            "999.0::DOUBLE AS total FROM range(100) t(i)"
        )
    file = tmp_path / "policy.toml"
    file.write_text(DERIVED.format(path=path, epsilon=1000))
    with secant.connect(policy=file) as database:
        answer = database.sql("SELECT sum(total), sum(2 * total) FROM bills", epsilon=400)
        exact = sum(i % 90 + i % 15 for i in range(100))
        assert abs(answer.rows[0][0] - exact) < 1  # what is stored in the column is not read
        bounds = database.explain("SELECT sum(total) FROM bills").text
        assert "does not move" not in bounds
    file.write_text(
        DERIVED.format(path=path, epsilon=1).replace("l1(net, tax)", "l1(net, tax, total)")
    )
    with pytest.raises(PolicyError) as caught:
        secant.connect(policy=file)
    assert "total is derived" in str(caught.value)
    file.write_text(
        DERIVED.format(path=path, epsilon=1) + 'public_rows = { bills = "total > 5" }\n'
    )
    with secant.connect(policy=file) as database, pytest.raises(Refused) as caught:
        database.sql("SELECT sum(net) FROM bills", epsilon=1)
    assert "rests on protected values" in str(caught.value)
