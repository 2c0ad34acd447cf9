"""A server that ends again and again is started again and again, ever more seldom."""

import threading
from types import SimpleNamespace

from secant.service.postgres import supervision


class Ends:
    """A server that ends at once."""

    def __init__(self):
        self.process = self

    def wait(self):
        return 1

    def remove(self):
        return True


def test_starts_are_spread_where_servers_end_at_once(monkeypatch):
    """Each wait is twice the one before; a start that fails counts as one that ended."""
    waits, starts, enough = [], [], threading.Event()

    class Waits(threading.Event):
        def wait(self, timeout=None):
            if timeout is None:
                return super().wait()
            waits.append(timeout)
            if len(waits) == 12:
                enough.set()
            return len(waits) >= 12

    here = SimpleNamespace(Event=Waits, Thread=threading.Thread)
    monkeypatch.setattr(supervision, "threading", here)

    def started():
        starts.append(None)
        if len(starts) == 3:
            raise OSError
        return Ends()

    supervision.Supervised(started)
    assert enough.wait(60)
    assert waits == [0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 12.8, 25.6, 30.0, 30.0, 30.0]
    assert len(starts) == 12
