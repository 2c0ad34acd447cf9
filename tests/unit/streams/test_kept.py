"""Sums of steps that a process keeps: blocks are added up without reading rows again, and nothing of them is shown."""

import copy
import pickle
from contextlib import contextmanager

import pytest
from stream_clinic import ROWS, UNIT, stream

from secant.errors import InternalError, Refused
from secant.noise.continual import Mechanism
from secant.streams import drawing, releasing
from secant.streams.drawing import Buffer

DAYS = range(1, 13)


@pytest.fixture
def read(monkeypatch):
    """Note which steps are read."""
    right, seen = drawing.read, []

    def reading(compiled, steps, session):
        seen.append(sorted(steps))
        return right(compiled, steps, session)

    monkeypatch.setattr(drawing, "read", reading)
    monkeypatch.setattr(Mechanism, "draw", lambda self, output, exact: exact)  # no noise: sums show
    return seen


def declared(clinic) -> None:
    for day in DAYS:
        clinic.add(f"2025-01-{day:02}")
    clinic.declare(ROWS, stream(steps=64, epsilon=1.0))


def through(clinic, days, kept):
    return [clinic.numbers_of(until=f"2025-01-{day:02}", kept=kept)[-1] for day in days]


def test_each_step_is_read_once(clinic, read):
    declared(clinic)
    assert through(clinic, DAYS, Buffer()) == list(DAYS)
    # blocks are complete on the way, and their rows are not read again
    assert read == [[day] for day in DAYS]


def test_without_it_blocks_are_read_again(clinic, read):
    declared(clinic)
    assert through(clinic, DAYS, None) == list(DAYS)
    assert max(map(len, read)) > 1  # all steps of a block


def test_what_does_not_go_on_is_forgotten(clinic, read):
    declared(clinic)
    kept = Buffer()
    through(clinic, (1, 2), kept)
    through(clinic, (3,), None)  # somebody else
    assert through(clinic, (4, 12), kept) == [4, 12]
    assert read[-1][0] == 1  # from the beginning of the block
    assert through(clinic, (13, 14), kept) == [12, 12]


def test_nothing_of_it_is_shown():
    kept = Buffer()
    kept.keep({1: {(): (5,)}}, 1)
    assert "5" not in repr(kept) + str(kept) + f"{kept}"
    for out in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(InternalError):
            out(kept)


@pytest.mark.parametrize(
    "statement",
    ["DELETE FROM visits WHERE id = 2", "UPDATE visits SET day = '2025-02-01' WHERE id = 2"],
)
def test_rows_that_go_stop_a_stream_that_is_followed(clinic, statement):
    """Append-only is the owner's word; who goes on from step to step sees when it is broken."""
    for day in DAYS:
        clinic.add(f"2025-01-{day:02}", patient=day)
    clinic.declare(UNIT, stream(steps=64, append_only=True))
    kept = Buffer()
    assert through(clinic, (1, 2, 3), kept) == [1, 2, 3]
    clinic.add("2025-01-02", patient=40)  # late rows are no loss
    assert through(clinic, (4,), kept) == [4]
    clinic.execute(statement, "DELETE FROM visits WHERE patient = 40")
    with pytest.raises(Refused, match="are gone") as caught:
        through(clinic, (5,), kept)
    assert caught.value.code == "REF-108"
    assert len(clinic.stream(until="2025-01-04")) == 4


def test_a_bar_is_told_steps_that_are_durable_and_nothing_else(clinic, monkeypatch):
    declared(clinic)
    monkeypatch.setattr(drawing, "TOGETHER", 5)
    begun, seen = [], []

    @contextmanager
    def bar(*words, **options):
        begun.append((words, options))
        yield seen.append

    monkeypatch.setattr(releasing, "progress", bar)
    clinic.numbers_of(until="2025-01-02")
    clinic.numbers_of(until="2025-01-12")
    assert begun == [
        (("releasing s", 2), {"done": 0, "requested": None}),
        (("releasing s", 12), {"done": 2, "requested": None}),
    ]
    assert seen == [2, 7, 12]
