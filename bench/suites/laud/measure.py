"""Ask the queries as the owner would, and keep what `inspect` says.

In: a source and a profile. Out: one record a query, as `secant bench laud --json` writes it; a query
that is refused has the reason instead of numbers. Plain query and release run in turns in this
process; of several runs the best time of each counts. Nothing is released, no budget is spent.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from fractions import Fraction
from pathlib import Path
from typing import Any

import secant
from bench.suites.laud.forms import Profile, policy_of, text_of
from secant.errors import InternalError, SecantError

NUMBERS = (
    "exact",
    "softened",
    "sensitivity",
    "beta",
    "noise_scale",
    "error95",
    "relative_error95",
)
TIMES = ("compile", "plain", "release")
Row = dict[str, Any]
Opener = Callable[..., Any]


def measure(
    source: str,
    profile: Profile,
    queries: Sequence[str],
    *,
    repeat: int = 1,
    connect: Opener | None = None,
) -> Iterator[Row]:
    """Give a record for each query, when it is ready.

    Args:
        source: Where the tables are, as `secant.connect` reads it.
        profile: How the queries are asked.
        queries: Their names.
        repeat: How often each is asked; the best times count.
        connect: What opens the source, by default `secant.connect`.
    """
    opening = secant.connect if connect is None else connect
    with ExitStack() as open_until_the_end:
        folder = Path(open_until_the_end.enter_context(tempfile.TemporaryDirectory()))
        # One connection for each smoothness: a fresh one would read the first query's data cold.
        connections: dict[Fraction | None, Any] = {}
        for query in queries:
            beta = profile.beta_of(query)
            if beta not in connections:
                ledger = folder / f"{len(connections)}.ledger"
                database = opening(source, policy=policy_of(profile, query), ledger=ledger)
                connections[beta] = open_until_the_end.enter_context(database)
            yield _row(connections[beta], profile, query, repeat)


def _row(database: Any, profile: Profile, query: str, repeat: int) -> Row:
    text, epsilon = text_of(profile, query), profile.epsilon_of(query)
    try:
        runs = [_column(database.inspect(text, epsilon=epsilon)) for _ in range(max(1, repeat))]
    except SecantError as error:
        return {"query": query, "refused": {**error.to_dict(), "status": error.exit_status}}
    found: Row = {"query": query}
    found |= {name: _number(runs[0][name]) for name in NUMBERS}
    found["seconds"] = {name: min(run["seconds"][name] for run in runs) for name in TIMES}
    return found


def _column(columns: Sequence[Row]) -> Row:
    if len(columns) != 1:
        raise InternalError("BUG-001", "a query of the benchmark has more than one column")
    return columns[0]


def _number(value: Any) -> float | None:
    """Give a plain number; a measure that stands alone in its list is that number."""
    if isinstance(value, (list, tuple)) and len(value) == 1:
        value = value[0]
    return None if value is None else float(value)
