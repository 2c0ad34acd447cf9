"""The page of what privacy costs in time: means, floors, and what changed since the run before."""

from fractions import Fraction

from bench import page, speed
from bench.suites.tpch.rehearsal import compiled, engine_of

from private_shop import ROWWISE, UNIT, open_shop

ROW = {"seconds": {"plain": 0.01, "release": 0.02, "floor": 0.012}, "ratio": 2.0, "floor": 1.2}
FOUND = {
    "scale": "1",
    "repeat": 5,
    "processors": 2,
    "suites": {"some queries": {"a": ROW, "b": {**ROW, "ratio": 8.0}, "c": {"refused": "REF-101"}}},
}


def test_the_page_shows_means_floors_and_refusals():
    shown = page.page(FOUND, {})
    assert "Geometric mean 4.00, worst 8.00 (b)." in shown
    assert "| a | 10.0 | 20.0 | 2.00 | 1.20 |  |" in shown
    assert "| c | | | refused | | |" in shown


def test_a_ratio_that_changed_by_more_than_a_fifth_is_marked():
    before = {"some queries": {"a": {"ratio": 1.9}, "b": {"ratio": 6.0}}}
    shown = page.page(FOUND, before)
    assert "| 2.00 | 1.20 | 1.90 |" in shown
    assert "| 8.00 | 1.20 | **6.00** |" in shown


def test_a_question_is_timed_beside_its_floor(tmp_path):
    with open_shop(tmp_path, UNIT) as db:
        text = "SELECT status, count(*) FROM orders WHERE quantity < 1 GROUP BY status"
        row = speed.times(db, text, Fraction(1), Fraction(0), 1)
    assert set(row["seconds"]) == {"plain", "release", "floor"}
    assert row["ratio"] > 0


def test_a_join_cannot_do_without_its_answer_and_one_table_counted_by_its_key(tmp_path):
    with open_shop(tmp_path, ROWWISE) as db:
        text = "SELECT count(*) FROM customers c, orders o WHERE c.id = o.customer"
        ready = compiled(db, text, Fraction(1), Fraction(0))
        answer, counted = speed.floor_of(ready, engine_of(db))
    assert " JOIN " in answer
    assert "GROUP BY" in counted
    assert " JOIN " not in counted


GROWTH = {
    scale: {
        query: {"plain": {"seconds": 1, "megabytes": 5}, "release": release}
        for query, release in releases.items()
    }
    for scale, releases in {
        "1": {"q1": {"seconds": 2.0, "megabytes": 9}, "q2": {"seconds": 1.0, "megabytes": 4}},
        "10": {"q1": {"seconds": 20.5, "megabytes": 90}, "q2": {"refused": 3.0}},
    }.items()
}


def test_growth_is_shown_and_drawn_as_far_as_queries_were_answered():
    shown = page.page({**FOUND, "growth": GROWTH}, {})
    assert "| q1 | 2.00 | 4 | 20.50 | 85 |" in shown
    assert "| q2 | 1.00 | 0 | refused | |" in shown
    drawn = page.growth_picture(GROWTH)
    assert drawn.startswith("<svg")
    assert "q2" in drawn
