"""`facts`: what was found privately is listed, discarded and found again; records stay as they are."""

import json

import duckdb
import pytest

POLICY = """
[database]
source = "duckdb:clinic.duckdb"
[protections.people]
kind = "unit"
unit = "visits.person"
epsilon = 10
"""
QUESTION = "SELECT stddev(cost) FROM visits"


@pytest.fixture
def clinic(tmp_path, monkeypatch, run):
    """Give a way to call the command, and what it lists."""
    monkeypatch.chdir(tmp_path)
    with duckdb.connect("clinic.duckdb") as connection:
        connection.execute(
            "CREATE TABLE visits AS SELECT i % 500 AS person, i % 40 AS cost, 'x' AS note FROM range(3000) AS r(i)"
        )
    (tmp_path / "policy.toml").write_text(POLICY)

    def listed(*words):
        status, out, err = run("facts", *words, "--json")
        return json.loads(out)["facts"] if status == 0 else (status, err)

    return listed


def test_what_was_found_is_listed_with_its_price_and_its_question(clinic, run):
    assert clinic() == []
    assert run("query", QUESTION, "--epsilon", "1")[0] == 0
    (fact,) = clinic()
    assert (fact["name"], fact["epsilon"], fact["question"]) == ("visits.cost", 0.2, QUESTION)
    _, out, _ = run("facts")
    assert "visits.cost" in out
    assert "0.2 (people)" in out


def test_a_discarded_fact_is_paid_for_again_and_its_record_stays(clinic, run):
    run("query", QUESTION, "--epsilon", "1")
    assert "WRN-009" not in run("query", QUESTION, "--epsilon", "1")[2]
    assert clinic("--discard", "visits.cost") == []
    assert "WRN-009" in run("query", QUESTION, "--epsilon", "1")[2]
    status, out, _ = run("ledger", "--history", "--verify", "--json")
    assert status == 0
    report = json.loads(out)
    statuses = [entry["status"] for entry in report["history"]]
    assert sum(s.startswith("found ") for s in statuses) == 2
    assert 'discarded [["visits", "cost", "people"]]' in statuses
    assert report["budget"][0]["spent"]["epsilon"] == 3


def test_finding_says_its_price_before_it_spends(clinic, run):
    status, err = clinic("--find", "visits.cost")
    assert status == 2
    assert "people has ε 10 left" in err
    (fact,) = clinic("--find", "visits.cost", "--epsilon", "0.5")
    assert fact["epsilon"] == 0.5
    assert len(clinic("--find", "visits", "--epsilon", "0.5")) == 2
    assert json.loads(run("ledger", "--json")[1])["budget"][0]["spent"]["epsilon"] == 1
    assert "WRN-009" not in run("query", QUESTION, "--epsilon", "1")[2]


@pytest.mark.parametrize(
    "words",
    [
        ("--discard", "visits.cost"),
        ("--discard", "visits.age"),
        ("--find", "nothing", "--epsilon", "1"),
        ("--find", "visits.note", "--epsilon", "1"),
        ("--find", "visits.cost", "--discard", "visits.cost"),
        ("--epsilon", "1"),
    ],
)
def test_what_cannot_be_done_is_said(clinic, run, words):
    assert run("query", "SELECT count(*) FROM visits", "--epsilon", "1")[0] == 0
    status, err = clinic(*words)
    assert status == 2
    assert "USE-001" in err


def test_more_than_is_left_is_not_spent(clinic):
    assert clinic("--find", "visits.cost", "--epsilon", "11")[0] == 4
