"""`secant bench honesty`: what counts as held, which data there are, what is written."""

import json
import math
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import pytest
from bench.suites.honesty import events, measure, sets
from bench.suites.honesty.held import judge

from secant.cli import program
from secant.errors import UsageError
from secant.release import finish as finishing

KEYED = (False, True)
TRUTH = [("a", 10), ("b", 100)]


def with_ends(*spans, shown=(10, 100)):
    rows = [("a", shown[0]), ("b", shown[1])]
    return rows, [[None, span] for span in spans]


def test_held_is_the_share_of_ends_around_the_truth():
    found = judge(TRUTH, [with_ends((9, 11), (98, 99)), with_ends((9, 11), (90, 110))], KEYED)
    assert (found.held, found.worst_cell, found.stated) == (0.75, 0.5, 1)
    assert found.cells == 2


def test_an_open_end_holds_and_is_told():
    found = judge(TRUTH, [with_ends((9, math.inf), (101, math.inf))], KEYED)
    assert (found.held, found.one_sided, found.half_width) == (0.5, 1, None)


def test_cells_without_ends_are_not_judged():
    found = judge(TRUTH, [with_ends((9, 11), None), ([("a", 11), ("b", 150)], None)], KEYED)
    assert (found.held, found.stated) == (1, 0.25)
    assert found.error == pytest.approx(0.05)
    assert judge(TRUTH, [with_ends(None, None)], KEYED).held is None


def test_rows_that_the_users_text_does_not_give_have_no_truth():
    found = judge(TRUTH, [([("z", 5)], [[None, (4, 6)]])], KEYED)
    assert (found.held, found.error, found.error95) == (None, None, None)


def test_data_are_chosen_by_name():
    assert sets.chosen_sets("") == sets.SETS
    with pytest.raises(UsageError):
        sets.chosen_sets("events,moon")


def clinic(stack, *names):
    made = sets.make_set("clinic", "0.1", Path("unused"), stack)
    return replace(made, questions=tuple(q for q in made.questions if q.name in names))


def test_ends_of_the_clinic_hold_and_narrow_ones_are_found_out(monkeypatch):
    # Of 200 exact ends at 95 %, fewer than 150 hold with a chance below 1e-20.
    monkeypatch.setattr(measure, "REQUIRED", 0.75)
    with ExitStack() as stack:
        data = clinic(stack, "visits", "dear")
        for row in measure.measure(data, 40):
            assert row["status"] == "held"
            assert 0 < row["error"] < row["error95"] < 1
        true = finishing.reported_ends

        def narrow(*arguments, **options):
            reported = true(*arguments, **options)
            ends = [
                [x and ((9 * x[0] + 7 * x[1]) / 16, (7 * x[0] + 9 * x[1]) / 16) for x in spans]
                for spans in reported.certain
            ]
            return replace(reported, certain=ends)

        monkeypatch.setattr(finishing, "reported_ends", narrow)
        rows = list(measure.measure(data, 40))
    assert [row["status"] for row in rows] == ["broken", "broken"]
    assert "0 of 2; not in: clinic visits, clinic dear" in measure.summary(rows)


def test_refused_and_exact_questions_are_results():
    with ExitStack() as stack:
        data = clinic(stack, "visits")
        asked = (
            sets.Question("rows", "SELECT patient_id FROM patients"),
            sets.Question("beds", "SELECT sum(beds) FROM wards"),
        )
        rows = list(measure.measure(replace(data, questions=asked), 2))
    assert [row["status"] for row in rows] == ["refused", "exact"]
    assert rows[0]["refused"]["code"] == "REF-102"


def test_the_event_log_has_a_heavy_tail(tmp_path):
    import duckdb

    with duckdb.connect(str(events.make_events(tmp_path))) as db:
        (count, people) = db.execute("SELECT count(*), count(DISTINCT person) FROM hits").fetchone()
        each = "SELECT count(*) AS n FROM hits GROUP BY person"
        (busiest, usual) = db.execute(f"SELECT max(n), median(n) FROM ({each})").fetchone()
        outside = "width NOT BETWEEN 0 AND 4000 OR seconds NOT BETWEEN 0 AND 600"
        assert db.execute(f"SELECT count(*) FROM hits WHERE {outside}").fetchone() == (0,)
    assert people == events.PEOPLE
    assert count == pytest.approx(events.EVENTS, rel=0.01)
    assert busiest > 300 * usual


def test_every_question_on_sales_is_answered():
    with ExitStack() as stack:
        rows = list(measure.measure(sets.make_set("tpcds", "0.1", Path("unused"), stack), 1))
    assert "d98" in {row["query"] for row in rows}  # the one with a window
    assert [row["query"] for row in rows if row["status"] == "refused"] == []


def test_the_command_writes_what_it_measured(tmp_path, capsys):
    file = tmp_path / "found.json"
    words = ["bench", "honesty", "--queries", "clinic", "--releases", "2", "--json", str(file)]
    status = program.main(words)
    rows = json.loads(file.read_text(encoding="utf-8"))["queries"]
    assert {row["data"] for row in rows} == {"clinic"}
    assert status == int(any(row["status"] == "broken" for row in rows))
    assert "printed ends and certain ends hold" in capsys.readouterr().out
