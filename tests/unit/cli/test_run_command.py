"""`secant run` as it is typed."""

import json

import pytest

from secant.cli.demo_data import make_clinic

SCRIPT = """
CREATE VIEW dear AS SELECT * FROM visits WHERE cost > 200;
RELEASE usual AS SELECT avg(cost) AS mean FROM visits;
SELECT count(*) AS many FROM dear WHERE cost > (SELECT mean FROM usual);
"""


@pytest.fixture
def clinic(tmp_path, monkeypatch):
    make_clinic(tmp_path)
    (tmp_path / "script.sql").write_text(SCRIPT)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_answers_a_table_and_a_picture(clinic, run):
    status, out, _ = run("run", "script.sql", "--epsilon", "1", "--plot", "flow.svg")
    assert status == 0
    assert "usual:" in out
    assert "together" in out
    assert "left" in out
    assert (clinic / "flow.svg").read_text().startswith("<svg")
    _, told, _ = run("ledger", "--json")
    assert json.loads(told)["budget"][0]["spent"]["epsilon"] == pytest.approx(1)


def test_explaining_spends_nothing(clinic, run):
    status, out, _ = run("run", "script.sql", "--epsilon", "1", "--explain", "--json")
    assert status == 0
    told = json.loads(out)
    assert told["answers"] == {}
    assert [row["output"] for row in told["costs"]] == ["usual", "answer1"]
    assert not (clinic / "policy.ledger").exists()


def test_a_missing_file_and_a_refusal(clinic, run):
    status, _, error = run("run", "none.sql", "--epsilon", "1")
    assert status == 2
    assert "cannot be read" in error
    (clinic / "script.sql").write_text("SELECT cost FROM visits")
    status, _, error = run("run", "script.sql", "--epsilon", "1")
    assert status == 3
    assert "REF-102" in error
