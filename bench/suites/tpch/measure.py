"""Release every query many times and hold it against what the user's own text gives.

In: a source of TPC-H data and a policy. Out: one record a query, as `secant bench tpch --json`
writes it. The truth is the user's query as it stands, not the one with limits and clamps. Plain
query and release run in turns in this process; of several runs the best time of each counts.
"""

from __future__ import annotations

import math
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import secant
from bench.suites.tpch.accuracy import judge
from bench.suites.tpch.rehearsal import Remembering, compiled, engine_of, plain_statement
from bench.suites.tpch.texts import text_of
from secant.engine import Connection
from secant.errors import SecantError
from secant.policy.policy import Policy
from secant.release.print import check_statements
from secant.sql.bind import bind
from secant.stages.open import open_snapshot

TIMED = 3
Row = dict[str, Any]
Opener = Callable[..., Any]


def measure(
    source: str,
    policy: Policy,
    queries: Sequence[str],
    *,
    epsilon: Fraction,
    delta: Fraction,
    repeat: int = 200,
    connect: Opener | None = None,
) -> Iterator[Row]:
    """Give a record for each query, when it is ready.

    Args:
        source: Where the tables are, as `secant.connect` reads it.
        policy: What is protected.
        queries: Their names.
        epsilon: Privacy of one answer.
        delta: For answers whose keys are chosen privately.
        repeat: How often each is released.
        connect: What opens the source, by default `secant.connect`.
    """
    opening = secant.connect if connect is None else connect
    with (
        tempfile.TemporaryDirectory() as folder,
        # The ledger is never opened: nothing is reserved here.
        opening(source, policy=policy, ledger=Path(folder) / "unused.ledger") as db,
    ):
        for query in queries:
            yield {"query": query, **ask(db, text_of(query), epsilon, delta, repeat)}


def ask(db: Connection, text: str, epsilon: Fraction, delta: Fraction, repeat: int) -> Row:
    """Measure one text: what becomes of it, how far off it is, how long it takes."""
    engine, plain = engine_of(db), plain_statement(db, text)
    began = time.perf_counter()
    try:
        ready = compiled(db, text, epsilon, delta)
        seconds = {"compile": time.perf_counter() - began}
        plains, wholes = [], []
        for _ in range(TIMED):
            began = time.perf_counter()
            truth = engine.rows(plain)
            middle = time.perf_counter()
            with open_snapshot(bind(text, db.catalog), db._source) as snapshot:
                session = snapshot.session
                check_statements(ready.job, session)
                first = ready.release(session)
            wholes.append(time.perf_counter() - middle)
            plains.append(middle - began)
        seconds |= {"plain": min(plains), "release": min(wholes)}
        if not ready.analyses:
            return _row("exact", 0.0, None, seconds, rows=len(first))
        memory = Remembering(engine)
        tables = [ready.release(memory) for _ in range(max(1, repeat))]
    except SecantError as error:
        seconds = {"compile": time.perf_counter() - began}
        refused = {**error.to_dict(), "status": error.exit_status}
        return _row("refused", None, None, seconds, refused=refused)
    found = judge(truth, tables, ready.noisy)
    return _row(
        "answered" if found.useful else "useless",
        found.relative_error,
        ", ".join(ready.analyses),
        seconds,
        rows=len(first),
        best_cell=_finite(found.best_cell),
        vector_error95=_finite(found.vector_error),
        cells=found.cells,
        missing=found.missing,
        extra_rows=found.extra_rows,
        varied=found.varied,
    )


def _row(
    status: str, error: float | None, analysis: str | None, seconds: dict[str, float], **more: Any
) -> Row:
    return {
        "status": status,
        "relative_error95": None if error is None else _finite(error),
        "analysis": analysis,
        "seconds": seconds,
        **more,
    }


def _finite(value: float) -> float | None:
    """JSON has no infinity: what is not shown at all has no error that one could write."""
    return value if math.isfinite(value) else None


def summary(rows: Sequence[Mapping[str, Any]]) -> str:
    """Say in one line what the queries came to."""
    count = {s: sum(r["status"] == s for r in rows) for s in ("answered", "exact", "useless")}
    useful = count["answered"] + count["exact"]
    refused = len(rows) - useful - count["useless"]
    line = (
        f"answered usefully: {useful} of {len(rows)} ({count['exact']} exactly); "
        f"useless: {count['useless']}; refused: {refused}"
    )
    # An answer that never varies is exact, and should not be: that is no success.
    still = [r["query"] for r in rows if not r.get("varied", True)]
    return f"{line}; NO NOISE WAS SEEN: {', '.join(still)}" if still else line
