"""Calls that take for ever end when their time is up, and by Ctrl-C."""

import os
import signal
import threading

import pytest

from secant.engines import watch
from secant.engines.watch import watched
from secant.errors import BackendError


class Endless:
    """A call that ends when it is told to, after being told so many times."""

    def __init__(self, times=1):
        self.left, self.told = times, threading.Event()

    def __call__(self):
        self.told.wait(60)
        raise RuntimeError("interrupted")

    def stop(self):
        self.left -= 1
        if not self.left:
            self.told.set()


def never():
    raise AssertionError("nobody stops a call that ends")


def test_results_and_errors_pass():
    assert watched(lambda: 7, never, 60) == 7
    with pytest.raises(KeyError):
        watched(lambda: {}[1], never, 60)


def test_time_is_up():
    call = Endless()
    with pytest.raises(BackendError) as over:
        watched(call, call.stop, 0.01)
    assert over.value.code == "BAK-005"
    assert call.told.is_set()


def test_it_is_told_again():
    """An engine forgets an interruption that comes before its statement begins."""
    call = Endless(times=3)
    with pytest.raises(BackendError):
        watched(call, call.stop, 0.01)
    assert call.told.is_set()


def test_what_cannot_be_stopped_is_left_behind(monkeypatch):
    monkeypatch.setattr(watch, "STOPPING", 0.1)
    call = Endless(times=10**9)
    with pytest.raises(BackendError):
        watched(call, call.stop, 0.01)
    call.told.set()


def test_an_interrupt_ends_it():
    call = Endless()
    threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT)).start()
    with pytest.raises(KeyboardInterrupt):
        watched(call, call.stop, 60)
    assert call.told.is_set()


def test_no_thread_stays():
    before = threading.active_count()
    for _ in range(20):
        watched(lambda: 7, never, 60)
    assert threading.active_count() <= before + 1  # the last one may be about to end


def test_another_thread_interrupts():
    call, interrupt = Endless(), watch.Interrupt()
    threading.Timer(0.1, interrupt.stop).start()
    with pytest.raises(BackendError) as told, watch.interruptible(interrupt):
        watched(call, call.stop, 60)
    assert told.value.code == "BAK-006"
    assert call.told.is_set()


def test_after_an_interrupt_nothing_is_begun():
    interrupt, begun = watch.Interrupt(), []
    with watch.interruptible(interrupt):
        assert watched(lambda: 7, never, 60) == 7
        interrupt.stop()
        with pytest.raises(BackendError):
            watched(lambda: begun.append(1), never, 60)
    assert not begun
    assert watched(lambda: 8, never, 60) == 8  # it ends with its block


def test_time_is_up_also_where_somebody_may_interrupt():
    call = Endless()
    with pytest.raises(BackendError) as over, watch.interruptible(watch.Interrupt()):
        watched(call, call.stop, 0.01)
    assert over.value.code == "BAK-005"
