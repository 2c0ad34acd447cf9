"""`secant bench everyday`: the oracle's errors by hand, that declared facts hold, and what is written."""

import json
import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from bench.suites.everyday import measure, oracle, sets, table

from secant.cli import program
from secant.errors import UsageError


def few(limit=None, **given):
    """Give three people: 0 has items 7 and 8, the others item 7."""
    person = np.array([0, 0, 1, 2])
    made = sets.Made(
        "few", 3, person, person * 0, np.array([7, 8, 7, 7]), np.array([1, 2, 3, 4]), person, person, limit
    )  # fmt: skip
    return replace(made, **given)


def test_sets_are_chosen_by_name():
    assert sets.chosen_sets("") == tuple(sets.RECIPES)
    assert sets.chosen_sets("small, survey") == ("small", "survey")
    with pytest.raises(UsageError):
        sets.chosen_sets("small,moon")


@pytest.mark.parametrize("name", ["small", "small survey", "couriers"])
def test_what_is_declared_holds_and_everybody_gets_the_same(name):
    made, again = sets.make(name), sets.make(name)
    assert np.array_equal(made.value, again.value)
    assert made.value.min() >= 0
    assert made.value.max() <= sets.MOST
    assert made.limit is None or np.bincount(made.person).max() <= made.limit


def test_normal_noise_of_the_oracle_is_as_large_as_delta_asks():
    # (1, 1e-6): the exact curve of the Gaussian mechanism, to four digits
    assert oracle.normal_size(1.0) == pytest.approx(4.2247, abs=2e-3)
    assert oracle.normal_size(3.0) < oracle.normal_size(1.0)


def test_a_clipped_sum_balances_what_is_cut_against_noise():
    # a clip of 2 cuts nothing: sqrt(2) * 2 / 10; a clip of 1 cuts 1
    assert oracle.ORACLES["count"](few(), 10.0) == pytest.approx(math.sqrt(2) * 2 / 10, rel=0.02)
    assert oracle.ORACLES["count"](few(), 0.5) == pytest.approx(math.sqrt(1 + 2 / 0.25))


def test_different_values_are_assigned_to_people():
    # person 0 brings in item 8, anybody else item 7: one value each loses nothing
    assert oracle.ORACLES["distinct"](few(), 1.0) == pytest.approx(math.sqrt(2))
    alone = few(person=np.array([0, 0, 0, 0]), item=np.array([1, 2, 3, 4]))
    assert oracle.ORACLES["distinct"](alone, 10.0) == pytest.approx(math.sqrt(2) * 4 / 10)


def test_a_point_is_chosen_by_its_distance_in_rank():
    mass = np.array([1.0, 0.0, 1.0])
    # distances from the median are 0, 0, 0
    assert oracle._chosen(mass, 0.5, 1.0, 1.0) == pytest.approx(2 / 3)
    assert oracle._chosen(np.array([0.0, 100.0, 0.0]), 0.5, 1.0, 1.0) == pytest.approx(0, abs=1e-9)


def test_ratios_have_a_floor_and_refusals_do_not_count():
    rows = [{"status": "answered", "ratio": r} for r in (0.5, 2.0)] + [{"status": "refused"}]
    assert measure.overall(rows) == (pytest.approx(1.0), 2.0, 2)
    assert measure.overall(rows[2:]) is None


def test_more_noise_is_a_larger_ratio(monkeypatch):
    """Planted: answers that are off by a hundred."""
    monkeypatch.setattr(sets, "RECIPES", {"tiny": sets.Recipe(60, "one", "normal", 1)})
    monkeypatch.setattr(measure, "RECIPES", sets.RECIPES)
    ask = (("tiny",), (Fraction(100),), 3, ("count",))
    (row,) = measure.measure(*ask)
    assert row["status"] == "answered"
    assert row["ratio"] < 100
    released = measure._released
    monkeypatch.setattr(
        measure, "_released", lambda *a: {k: v + 100 for k, v in released(*a).items()}
    )
    (worse,) = measure.measure(*ask)
    assert worse["ratio"] > 1000


def test_the_command_writes_every_question(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(sets, "RECIPES", {"tiny": sets.Recipe(60, "one", "normal", 1)})
    monkeypatch.setattr(measure, "RECIPES", sets.RECIPES)
    file = tmp_path / "everyday.json"
    assert program.main(["bench", "everyday", "--repeat", "1", "--json", str(file)]) == 0
    rows = json.loads(file.read_text())["queries"]
    assert [row["query"] for row in rows] == list(sets.QUESTIONS)
    assert {row["status"] for row in rows} == {"answered"}
    shown = capsys.readouterr().out
    assert "other sets: geometric mean" in shown
    assert "tiny" in shown


def test_each_epsilon_has_a_table():
    row = {"data": "a", "query": "count", "tuning": True, "status": "answered", "ratio": 1.5}
    shown = list(table.lines([{**row, "epsilon": "1"}, {**row, "epsilon": "3"}]))
    assert [line for line in shown if line.startswith("epsilon")] == [
        f"epsilon {e}: error over that of an oracle" for e in (1, 3)
    ]
