"""How much work one question may make before anything is charged: steps are counted, time is not.

In: steps, as stages take them: a node that is visited, a rule that is looked up, a term that is written. Out: nothing,
or SQL-009 once there are too many. Which question is refused follows from its text, the policy and the catalog alone,
never from the machine or from rows. Nothing is counted where nobody plans: what is paid for is not stopped halfway.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from secant.errors import SqlError

MOST_STEPS = 2_000_000
"""Steps of one question, at most: some three seconds. The longest of 138 texts of TPC-H and TPC-DS takes 62,000."""


class _Counted:
    """The steps that are left of a question, and how many it was given."""

    __slots__ = ("allowed", "left")

    def __init__(self, allowed: float) -> None:
        self.allowed = self.left = allowed


_NOBODY = _Counted(math.inf)
"""Where nothing is planned there is no end of steps, so that threads may share it."""
_counted: ContextVar[_Counted] = ContextVar("steps of planning", default=_NOBODY)


def spend(steps: int = 1) -> None:
    """Count steps of the question that is planned here; refuse it where it takes too many."""
    counted = _counted.get()
    counted.left -= steps
    if counted.left < 0:
        raise SqlError(
            "SQL-009",
            f"planning the question takes more than {counted.allowed:,.0f} steps",
            hint="shorten the question, or split it into several: fewer branches, joins, subqueries and columns",
        )


@contextmanager
def limited_work() -> Iterator[None]:
    """Plan one question: what it takes in this block is counted by itself, also inside of another such block."""
    token = _counted.set(_Counted(MOST_STEPS))
    try:
        yield
    finally:
        _counted.reset(token)
