"""What one step of a stream costs beside the plain query over its rows: `python -m bench stream_steps`.

A table of six million visits on a thousand days, on DuckDB. The statement of one day is timed in turn with the owner's
own query of that day, in the same session; the ratio of medians is what counts. History is not read again.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

import duckdb

import secant
from secant.release.backend import Session
from secant.release.lower import lower
from secant.streams.reading import statement

ROWS, DAYS, STEP, TIMES = 6_000_000, 1000, 600, 50
POLICY = """
[database]
source = "duckdb:visits.duckdb"
[tables.visits]
key = ["id"]
[tables.visits.columns]
cost = { range = [0, 1000] }
[protections.visits]
kind = "rows"
epsilon = 10.0
[streams.visits]
query = "SELECT day, count(*) AS n, sum(cost) AS c FROM visits GROUP BY day"
step = "1 day"
start = "2025-01-01"
steps = 1000
epsilon = 1.0
"""
MADE = f"""
CREATE TABLE visits AS SELECT i AS id, DATE '2025-01-01' + CAST(i // {ROWS // DAYS} AS INTEGER) AS day,
CAST(i * 17 % 1000 AS INTEGER) AS cost FROM range({ROWS}) AS t(i)
"""
PLAIN = "SELECT day, count(*), sum(cost) FROM visits WHERE day >= DATE '{0}' AND day < DATE '{1}' GROUP BY day"


def run() -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as place:
        with duckdb.connect(str(Path(place) / "visits.duckdb")) as engine:
            engine.execute(MADE)
        policy = Path(place) / "policy.toml"
        policy.write_text(POLICY)
        with secant.connect(policy=policy) as database:
            opened = database._stream("visits")
            calendar = opened.compiled.calendar
            plain = PLAIN.format(calendar.first(STEP), calendar.first(STEP + 1))
            step = lower(statement(opened.compiled, STEP, STEP), opened.backend.dialect)
            with opened.session() as session:
                seconds: dict[str, list[float]] = {plain: [], step: []}
                for statement_text in seconds:
                    session.check(statement_text)
                for _ in range(TIMES):
                    for statement_text, found in seconds.items():
                        found.append(_seconds(session, statement_text))
    medians = [statistics.median(found) for found in seconds.values()]
    return {"plain": medians[0], "step": medians[1], "ratio": medians[1] / medians[0]}


def _seconds(session: Session, text: str) -> float:
    started = time.perf_counter()
    session.rows(text)
    return time.perf_counter() - started
