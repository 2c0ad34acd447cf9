"""The page of what privacy costs in time: means, floors, and what changed since the run before."""

from fractions import Fraction

from bench import page, speed

from private_shop import UNIT, open_shop

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
