"""A guess about a column that the question does not read was reported all the same.

`sum(weight) FROM cargo` was said to raise the guess about `ships.x` from 11 % to 67 %, although ships is not touched;
and what earlier answers had told was left out.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb
import pytest

import secant
from secant.attack.chances import Amount
from secant.cli import main
from secant.errors import BudgetError, Refused, UsageError

POLICY = """
[database]
source = "duckdb:sea.duckdb"
[tables.ships]
key = "id"
[tables.ships.columns]
x = { range = [0, 100] }
y = { range = [0, 100] }
[tables.cargo]
key = "id"
references = { ship = "ships.id" }
[tables.cargo.columns]
weight = { range = [0, 50] }
[protections.places]
kind = "cells"
epsilon = 2
distance = { ships = "l2(0.1*x, 0.1*y)", cargo = "0.1*weight" }
"""
SUM = "SELECT sum(weight) AS n FROM cargo"
SAILING = "SELECT count(*) AS n FROM ships WHERE x < 50"
JOINED = "SELECT sum(weight) AS n FROM cargo JOIN ships ON cargo.ship = ships.id WHERE y < 50"


@pytest.fixture
def sea(tmp_path: Path) -> Path:
    with duckdb.connect(str(tmp_path / "sea.duckdb")) as connection:
        connection.execute(
            "CREATE TABLE ships AS SELECT range AS id, range % 100 AS x, range % 100 AS y FROM range(200)"
        )
        connection.execute(
            "CREATE TABLE cargo AS SELECT range AS id, range % 200 AS ship, range % 50 AS weight FROM range(600)"
        )
    file = tmp_path / "policy.toml"
    file.write_text(POLICY)
    return file


def guess(file: Path, sql: str, attacker: str) -> dict[str, Any]:
    with secant.connect(policy=file) as db:
        (entry,) = db.explain(sql, epsilon=1, attacker=attacker).to_dict()["attacker"]
    assert isinstance(entry, dict)
    return entry


@pytest.mark.parametrize(
    ("sql", "attacker", "read"),
    [
        (SUM, "ships.x within 5", False),
        (SUM, "cargo.weight within 5", True),
        (SAILING, "ships.x within 5", True),
        (SAILING, "ships.y within 5", False),
        (JOINED, "ships.x within 5", False),
        (JOINED, "ships.y within 5", True),
        (JOINED, "ships.(x, y) within 5", True),
    ],
)
def test_only_what_is_read_is_told(sea: Path, sql: str, attacker: str, read: bool) -> None:
    entry = guess(sea, sql, attacker)
    answer = entry["answer"]
    told = answer["posterior"] > answer["prior"] * 1.01
    assert told == read
    assert ("does not read it" in answer["words"]) == (not read)
    assert entry["budget"]["posterior"] > answer["prior"] * 1.01  # other questions may read it


def test_planted_an_attacker_who_sees_everything(
    sea: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Amount, "touches", lambda amount, secret: True)
    answer = guess(sea, SUM, "ships.x within 5")["answer"]
    assert answer["posterior"] == pytest.approx(0.668, abs=1e-3)


def test_answers_so_far_are_told(sea: Path) -> None:
    assert "spent" not in guess(sea, SUM, "cargo.weight within 5")
    with secant.connect(policy=sea) as db:
        db.sql(SUM, epsilon="0.5")
    entry = guess(sea, SUM, "cargo.weight within 5")
    assert entry["spent"]["epsilon"] == 0.5
    assert entry["answer"]["posterior"] < entry["together"]["posterior"]
    # One who only asks about ships learns nothing more of cargo than was told before.
    aside = guess(sea, SAILING, "cargo.weight within 5")
    assert aside["together"]["posterior"] == aside["spent"]["posterior"]


def test_a_question_takes_the_epsilon_that_is_left(sea: Path) -> None:
    attacker = "cargo.weight within 5 at most 50%"
    with secant.connect(policy=sea) as db:
        first = db.sql(SUM, epsilon="0.2", attacker=attacker)
        assert first.guarantee[0]["epsilon"] == 0.2
        second = db.sql(SUM, attacker=attacker)
        assert second.guarantee[0]["epsilon"] == pytest.approx(0.385317, abs=1e-6)
        entry = guess(sea, SUM, attacker)
        assert 0.5 - 1e-6 <= entry["spent"]["posterior"] <= 0.5
        for options in ({}, {"epsilon": "0.01"}, {"error": 100}):
            with pytest.raises(Refused) as caught:
                db.sql(SUM, attacker=attacker, **options)
            assert caught.value.code == "REF-107"
        assert db.budget["places"].spent_epsilon < 0.6  # what was refused cost nothing
        # Another question may still be asked: it tells this attacker nothing.
        db.sql(SAILING, epsilon="0.1", attacker=attacker)
        with pytest.raises(UsageError, match="tells this attacker nothing"):
            db.sql(SAILING, attacker=attacker)
        with pytest.raises(UsageError):
            db.sql(SUM, attacker="cargo.weight within 5")
        with pytest.raises(UsageError):
            db.sql(SUM)


def test_what_may_be_guessed_never_lifts_a_budget(sea: Path) -> None:
    with secant.connect(policy=sea) as db, pytest.raises(BudgetError):
        db.sql(SUM, attacker="cargo.weight within 5 at most 99.9%")


def test_on_the_command_line(sea: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["query", SUM, "-p", str(sea), "--attacker", "cargo.weight within 5 at most 50%"]
    assert main(words) == 0
    assert "ε = 0.585318" in capsys.readouterr().out
    assert main(words) != 0
    assert "REF-107" in capsys.readouterr().err
