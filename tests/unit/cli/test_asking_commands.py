"""`query`, `explain` and `inspect` pass on what was typed and print what came back."""

import io
import json
import sys

import pytest
from fake_engine import Answer, Explanation

from secant.cli import show

ASK = ("query", "SELECT count(*) AS n FROM t", "--epsilon", "0.5")

EXACT = {
    "level": 0.95,
    "values": None,
    "low": None,
    "high": None,
    "noise": None,
    "leaves_out": None,
}


def test_query_prints_answer_error_guarantee_and_budget(connection, run):
    status, out, err = run(*ASK)
    assert (status, err) == (0, "")
    lines = out.splitlines()
    assert lines[0].split() == ["n", "±", "(95", "%)"]
    assert lines[2].split() == ["42", "±6.0"]
    assert "Guarantee: everything of one patient" in out
    assert "ε = 0.5, δ = 1e-8 (protection patients)" in out
    assert "no outcome is more than 1.65 times as likely" in out
    assert "ε 1 of 4 spent, 3 left" in out
    assert "Release   r-1" in out
    assert "\x1b" not in out  # nothing fancy in a pipe


def test_query_passes_everything_on(connection, run):
    more = (
        "--max-error",
        "5%",
        "--certain",
        "--delta",
        "1e-9",
        "--level",
        "0.9",
        "--protection",
        "p",
        "--analyst",
        "ann",
    )
    run(*ASK, *more, "-p", "x.toml")
    assert connection.opened == {
        "policy": "x.toml",
        "source": None,
        "create": None,
        "closed": True,
    }
    kind, text, options = connection.asked[0]
    assert (kind, text) == ("sql", "SELECT count(*) AS n FROM t")
    assert options.pop("warn") is show.warn
    assert options == {
        "parameters": None,
        "epsilon": "0.5",
        "error": None,
        "max_error": "5%",
        "certain": True,
        "attacker": None,
        "delta": "1e-9",
        "level": "0.9",
        "protection": "p",
        "analyst": "ann",
    }


@pytest.mark.parametrize("command", ["query", "explain"])
def test_parameters_are_handed_on(connection, run, command):
    run(command, "SELECT ?", "--parameter", "-3", "--parameter", "a=b", "--epsilon", "1")
    run(command, "SELECT :x", "--parameter", "x=a b", "--epsilon", "1")
    assert [options["parameters"] for _, _, options in connection.asked] == [
        ["-3", "a=b"],
        {"x": "a b"},
    ]


def test_numbers_reach_the_engine_as_typed(connection, run):
    run("query", "SELECT 1", "--epsilon", "-1")
    run("query", "SELECT 1", "--epsilon", "nan")
    assert [asked[2]["epsilon"] for asked in connection.asked] == ["-1", "nan"]


@pytest.mark.parametrize("text", ["-- note\nSELECT 1", "--x", "- 1", "", "ε\x00"])
def test_any_text_is_a_question(connection, run, text):
    run("query", "--epsilon", "1", "--", text)
    run("query", text, "--epsilon", "1")
    assert [asked[1] for asked in connection.asked] == [text, text]


def test_a_question_from_standard_input(connection, run, monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"SELECT 7")))
    run("query", "-", "--epsilon", "1")
    assert connection.asked[0][1] == "SELECT 7"
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"SELECT '\xff'")))
    status, _, err = run("query", "-", "--epsilon", "1")
    assert status == 2
    assert "not UTF-8" in err


def test_a_ledger_is_not_started_if_that_is_asked_for(connection, run):
    run(*ASK, "--no-create")
    assert connection.opened["create"] is False


def test_query_as_json_is_one_object(connection, run):
    status, out, _ = run(*ASK, "--json")
    assert status == 0
    assert json.loads(out) == {"columns": ["n"], "rows": [[42]], "release_id": "r-1"}


def test_an_answer_without_protected_data_says_so(connection, run):
    connection.result = Answer(["n"], [(5,)], EXACT, guarantee=[])
    _, out, _ = run(*ASK)
    assert "touches nothing protected; it is answered exactly" in out
    assert "±" not in out


def test_text_of_an_answer_cannot_command_the_terminal(connection, run):
    nasty = "[red]x[/red]\x1b[2J"
    connection.result = Answer([nasty], [(nasty,)], EXACT)
    _, out, _ = run(*ASK)
    assert "[red]x[/red]\\x1b[2J" in out
    assert "\x1b" not in out


def test_a_long_answer_is_cut_on_screen_only(connection, run):
    rows = [(n,) for n in range(1000)]
    connection.result = Answer(["n"], rows, EXACT)
    _, out, _ = run(*ASK)
    assert "and 800 more rows" in out
    _, out, _ = run(*ASK, "--json")
    assert len(json.loads(out)["rows"]) == 1000


def test_explain_prints_the_report_and_spends_nothing(connection, run):
    connection.result = Explanation()
    status, out, _ = run("explain", "SELECT 1")
    look_up = "proof, code and tests of a rule: secant explain --rule stability.count\n"
    assert (status, out) == (0, f"stability.count  bound 1\n{look_up}")
    assert connection.asked[0][0] == "explain"
    assert connection.asked[0][2]["epsilon"] is None
    _, out, _ = run("explain", "SELECT 1", "--sql", "--epsilon", "2")
    assert "-- statement 2\nSELECT 2;\n" in out
    assert connection.asked[1][2]["epsilon"] == "2"


def test_explain_as_json(connection, run):
    connection.result = Explanation()
    assert json.loads(run("explain", "SELECT 1", "--json")[1]) == {"bound": 1}
    _, out, _ = run("explain", "SELECT 1", "--json", "--sql")
    assert json.loads(out)["statements"] == ["SELECT count(*) FROM t", "SELECT 2"]


def test_inspect_warns_that_it_is_for_the_owner(connection, run):
    connection.result = [{"column": "n", "exact": 41, "seconds": {"plain": 0.25}}]
    status, out, err = run("inspect", "SELECT 1")
    assert status == 0
    assert "OWNER ONLY" in err
    assert "41" in out
    assert "plain 0.25" in out
    status, out, err = run("inspect", "SELECT 1", "--json")
    assert json.loads(out)["exact"] == 41
    assert "OWNER ONLY" in err


def test_a_rule_is_shown_without_a_database(connection, run):
    status, out, err = run("explain", "--rule", "Stability.Count")
    assert (status, err) == (0, "")
    assert out.startswith("stability.count rows or values\n")
    for part in ("\nClaim. ", "\nProof. ", "\n  tests/soundness/"):
        assert part in out
    assert (connection.opened, connection.asked) == ({}, [])
    status, out, _ = run("explain", "--rule", "stability.count", "--json")
    assert status == 0
    assert json.loads(out)["id"] == "stability.count"


def test_a_rule_that_is_not_there_is_wrong_use(connection, run):
    status, out, err = run("explain", "--rule", "stability.cuont")
    assert (status, out) == (2, "")
    assert "stability.count" in err
    assert run("explain", "SELECT 1", "--rule", "stability.count")[0] == 2
    status, _, err = run("explain")
    assert status == 2
    assert "--rule" in err
