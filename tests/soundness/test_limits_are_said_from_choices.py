"""What is said of a limit follows from the limit that was chosen, never from the units that it cut (truncation.cut)."""

import pandas
import pytest

import secant
from secant.accuracy import reported_error as stated
from secant.noise import limited
from secant.noise.tail import OctaveTally

POLICY = {
    "tables": {"hits": {"columns": {"width": {"range": [0, 100]}, "day": {"values": [0, 1]}}}},
    "protections": {"people": {"kind": "unit", "unit": "hits.person", "epsilon": 100}},
}
TEXTS = (
    "SELECT count(*) FROM hits",
    "SELECT sum(width) FROM hits",
    "SELECT avg(width), stddev(width) FROM hits",
    "SELECT day, count(*), avg(width) FROM hits GROUP BY day",
    "SELECT max(n) FROM (SELECT day, count(*) AS n FROM hits GROUP BY day) AS t",
)
LIGHT = (1,) * 40
HEAVY = (1,) * 20 + (60,) * 20


def said(monkeypatch, text, sizes, rung=4):
    """Give what is printed beside the numbers where the choice fell on one rung of the public list."""
    monkeypatch.setattr(
        limited, "choose_limit", lambda limits, *_: limits[min(rung, len(limits) - 1)]
    )

    def tally(limits, above, epsilon):
        edges = (*map(float, limits), 2.0 * limits[-1])
        return OctaveTally(edges, tuple(100 * (k < rung) for k in range(len(limits))), 1.0)

    monkeypatch.setattr(limited, "take_tally", tally)
    rows = [(p, i % 2, 7.0) for p, size in enumerate(sizes) for i in range(size)]
    frame = pandas.DataFrame(rows, columns=["person", "day", "width"])
    with secant.connect({"hits": frame}, policy=POLICY, ledger=":memory:") as db:
        return db.sql(text, epsilon=1).error["leaves_out"]


@pytest.mark.parametrize("text", TEXTS)
def test_light_and_heavy_people_are_told_alike(monkeypatch, text):
    found = said(monkeypatch, text, HEAVY)
    assert found == said(monkeypatch, text, LIGHT)
    assert found["units_cut_at_most"] >= 1  # it was a choice
    assert found != said(monkeypatch, text, HEAVY, rung=1)  # and what was chosen is seen


def test_a_number_of_units_from_the_data_would_be_noticed(monkeypatch):
    """A planted fault: the units above the limit are counted instead of bounded."""
    told = []
    for sizes in (LIGHT, HEAVY):

        def counted(settled, column, miss, sizes=sizes):
            return sum(size > settled[column].limit for size in sizes)

        monkeypatch.setattr(stated, "units_cut", counted)
        told.append(said(monkeypatch, TEXTS[0], sizes))
    assert told[0] != told[1]
