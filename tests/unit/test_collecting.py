"""While a question is planned the collector of cycles starts seldom, and as the program set it afterwards."""

from __future__ import annotations

import gc
import threading
from collections.abc import Iterator

import pytest

from secant.runtime.collecting import SELDOM, seldom_collecting


@pytest.fixture(autouse=True)
def usual() -> Iterator[tuple[int, int, int]]:
    before = gc.get_threshold()
    gc.set_threshold(700, 10, 10)
    yield before
    gc.set_threshold(*before)


def test_the_collector_is_set_back_after_the_last_of_nested_blocks() -> None:
    with seldom_collecting():
        with seldom_collecting():
            assert gc.get_threshold() == (SELDOM, 10, 10)
        assert gc.get_threshold() == (SELDOM, 10, 10)
    assert gc.get_threshold() == (700, 10, 10)


def test_a_question_that_fails_sets_it_back() -> None:
    with pytest.raises(ValueError, match="refused"), seldom_collecting():
        raise ValueError("refused")
    assert gc.get_threshold() == (700, 10, 10)


def _collections() -> int:
    """Add up all generations: a collection counts as one of the oldest generation that was due, and only there."""
    return sum(generation["collections"] for generation in gc.get_stats())


@pytest.mark.parametrize("due", [0, 11])
def test_it_still_collects(due: int) -> None:
    freed: list[list[object]] = [[] for _ in range(100)]
    del freed  # Python keeps some of them, and does not count them when it gives them out again
    for _ in range(due):  # so many of the youngest make the next one due, too
        gc.collect(0)
    assert gc.isenabled()
    with seldom_collecting():
        assert gc.isenabled()
        before = _collections()
        kept = [[] for _ in range(2 * SELDOM)]
        assert _collections() > before
    assert len(kept) == 2 * SELDOM


@pytest.mark.parametrize("own", [0, 10 * SELDOM])
def test_what_the_program_set_to_less_work_is_left_alone(own: int) -> None:
    gc.set_threshold(own, 10, 10)
    with seldom_collecting():
        assert gc.get_threshold() == (own, 10, 10)
    assert gc.get_threshold() == (own, 10, 10)


def test_what_the_program_sets_meanwhile_stays() -> None:
    with seldom_collecting():
        gc.set_threshold(5000, 5, 5)
    assert gc.get_threshold() == (5000, 5, 5)


def test_questions_of_several_threads_end_in_any_order() -> None:
    inside, leave = threading.Event(), threading.Event()

    def other() -> None:
        with seldom_collecting():
            inside.set()
            leave.wait(10)

    thread = threading.Thread(target=other)
    with seldom_collecting():
        thread.start()
        assert inside.wait(10)
    assert gc.get_threshold() == (SELDOM, 10, 10)
    leave.set()
    thread.join()
    assert gc.get_threshold() == (700, 10, 10)
