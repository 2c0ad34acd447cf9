"""`secant stream` and `secant explain --stream` as they are typed."""

import json
import sys
import xml.etree.ElementTree

import pytest

from secant.cli.commands import stream as command
from secant.cli.demo_data import make_clinic

STREAM = """
[streams.visits]
query = "SELECT day, ward, count(*) AS n FROM visits GROUP BY day, ward"
step = "1 week"
start = "2025-01-01"
steps = 4
epsilon = 1.0
append_only = true
[streams.wrong]
query = "SELECT day, max(cost) AS n FROM visits GROUP BY day"
step = "1 week"
start = "2025-01-01"
epsilon = 1.0
append_only = true
"""


@pytest.fixture
def clinic(tmp_path, monkeypatch):
    make_clinic(tmp_path)
    policy = tmp_path / "policy.toml"
    policy.write_text(policy.read_text() + STREAM)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_lines_of_json_the_same_each_time(clinic, run):
    status, out, _ = run("stream", "visits", "--json")
    assert status == 0
    lines = [json.loads(line) for line in out.splitlines()]
    assert len(lines) == 16
    assert list(lines[0]) == ["stream", "step", "number", "values", "low", "high"]
    assert lines[0]["step"] == "2025-01-01"
    assert lines[0]["values"]["ward"] == "Cardiology"
    assert lines[0]["low"]["n"] <= lines[0]["values"]["n"] <= lines[0]["high"]["n"]
    assert run("stream", "visits", "--json")[1] == out
    assert (
        run("stream", "visits", "--until", "2025-01-10", "--json")[1].splitlines()
        == out.splitlines()[:8]
    )
    _, told, _ = run("ledger", "--json")
    assert json.loads(told)["budget"][0]["spent"]["epsilon"] == 1


def test_a_terminal_sees_a_bar_beside_the_output(clinic, run, monkeypatch):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    monkeypatch.setenv("TERM", "xterm")
    status, out, err = run("stream", "visits", "--until", "2025-01-10")
    assert (status, "releasing visits" in err, "releasing" in out) == (0, True, False)
    assert "2/2" in err
    assert run("stream", "visits", "--until", "2025-01-10")[2] == ""  # nothing is due
    assert run("stream", "visits", "--json")[2] == ""  # two steps are, and a program reads


def test_a_table_a_guarantee_and_a_picture(clinic, run):
    status, out, _ = run("stream", "visits", "--plot", "visits.svg")
    assert status == 0
    assert "± (95 %)" in out
    assert "over the whole stream" in out
    assert "ε 1 of 4 spent" in out
    picture = xml.etree.ElementTree.fromstring((clinic / "visits.svg").read_text())
    kinds = [element.tag.rsplit("}")[-1] for element in picture]
    assert (kinds.count("polyline"), kinds.count("polygon")) == (4, 4)


@pytest.mark.parametrize(
    ("words", "status", "told"),
    [
        (("other",), 2, "there are: visits, wrong"),
        (("visits", "--until", "2025-06-01"), 2, "has 4 steps"),
        (("visits", "--follow", "--until", "2025-01-02"), 2, "--follow goes on"),
        (("visits", "--plot", "nowhere/x.svg"), 2, "cannot write"),
        (("wrong",), 3, "do not add up over steps"),
    ],
)
def test_mistakes_cost_nothing(clinic, run, words, status, told):
    found, _, err = run("stream", *words)
    assert (found, told in err) == (status, True)
    assert not (clinic / "policy.ledger").exists()


def test_following_ends_with_the_horizon_and_waits_before_it(clinic, run, monkeypatch):
    assert run("stream", "visits", "--follow", "--json")[0] == 0
    waited: list[float] = []

    def wait(seconds):
        waited.append(seconds)
        if len(waited) == 2:
            raise KeyboardInterrupt

    monkeypatch.setattr(command, "_wait", wait)
    policy = clinic / "policy.toml"
    policy.write_text(
        policy.read_text().replace("streams.visits]", "streams.open]").replace("steps = 4\n", "")
    )
    status, out, _ = run("stream", "open", "--follow", "--json")
    assert status == 130
    steps = [json.loads(line)["number"] for line in out.splitlines()]
    assert sorted(set(steps)) == list(range(1, max(steps) + 1))
    assert len(steps) == 4 * max(steps)
    assert all(0 <= seconds <= 7 * 86_400 for seconds in waited)


def test_explain_compares_ways_and_shows_the_statement(clinic, run):
    status, out, _ = run("explain", "--stream", "visits", "--sql")
    assert status == 0
    assert "increments laplace" in out
    assert "SELECT" in out
    told = json.loads(run("explain", "--stream", "visits", "--json")[1])
    assert told["guarantee"][0]["epsilon"] == 1
    assert run("explain", "SELECT 1", "--stream", "visits")[0] == 2
    assert not (clinic / "policy.ledger").exists()


def test_check_names_streams_that_cannot_be_released(clinic, run):
    status, out, _ = run("check")
    assert status == 0
    assert "streams.wrong: order statistics" in out
    assert "streams.visits" not in out


def test_totals_that_never_fall_are_made_of_the_same_numbers(clinic, run):
    status, out, _ = run("stream", "visits", "--json", "--revised", "--isotonic")
    assert status == 0
    lines = [json.loads(line) for line in out.splitlines()]
    for ward in {line["values"]["ward"] for line in lines}:
        numbers = [x["values"]["n"] for x in lines if x["values"]["ward"] == ward]
        assert numbers == sorted(numbers)
    assert run("stream", "visits", "--json", "--revised", "--isotonic")[1] == out


@pytest.mark.parametrize("spread", ["0", "-1", "inf", "nan"])
def test_a_filter_that_cannot_be_costs_nothing(clinic, run, spread):
    status, _, told = run("stream", "visits", f"--filter={spread}")
    assert status != 0
    assert "above 0" in told
    assert not (clinic / "policy.ledger").exists()
