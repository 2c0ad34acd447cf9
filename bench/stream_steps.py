"""What one step of a stream costs beside the plain query over its rows: `python -m bench stream_steps`.

A table of six million visits on a thousand days, on DuckDB. The statement of one day is timed in turn with the owner's
own query of that day, in the same session; the ratio of medians is what counts. Under `rows` history is not read
again. Under `unit` who has used up her limit hangs on her rows of before: day 1 has none and shows what limits cost by
themselves, later days what looking them up costs.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

import duckdb

import secant
from secant.engines.backend import Session
from secant.engines.print.print_sql import lower
from secant.streams.reading import statement
from secant.streams.releasing import Opened

ROWS, DAYS, TIMES = 6_000_000, 1000, 20
LOOKED_AT = {"rows": (600,), "unit": (1, 7, 600)}
POLICY = """
[database]
source = "duckdb:visits.duckdb"
[tables.visits]
key = ["id"]
[tables.visits.columns]
cost = { range = [0, 1000] }
[streams.s]
query = "SELECT day, count(*) AS n, sum(cost) AS c FROM visits GROUP BY day"
step = "1 day"
start = "2025-01-01"
steps = 1000
epsilon = 1.0
"""
PROTECTIONS = {
    "rows": '[protections.visits]\nkind = "rows"\nepsilon = 10.0\n',
    "unit": 'append_only = true\n[protections.patients]\nkind = "unit"\nunit = "visits.patient"\n'
    "epsilon = 10.0\nlimits = { visits = 20 }\n",
}
MADE = f"""
CREATE TABLE visits AS SELECT i AS id, DATE '2025-01-01' + CAST(i // {ROWS // DAYS} AS INTEGER) AS day,
CAST(i * 17 % 1000 AS INTEGER) AS cost, CAST(hash(i) % 200000 AS INTEGER) AS patient FROM range({ROWS}) AS t(i)
"""
PLAIN = "SELECT day, count(*), sum(cost) FROM visits WHERE day >= DATE '{0}' AND day < DATE '{1}' GROUP BY day"


def run() -> dict[str, Any]:
    found: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as place:
        with duckdb.connect(str(Path(place) / "visits.duckdb")) as engine:
            engine.execute(MADE)
        for kind, section in PROTECTIONS.items():
            policy = Path(place) / f"{kind}.toml"
            policy.write_text(POLICY + section)
            with secant.connect(policy=policy) as database:
                opened = database._stream("s")
                for step in LOOKED_AT[kind]:
                    found[f"{kind}, day {step}"] = _compared(opened, step)
    return found


def _compared(opened: Opened, step: int) -> dict[str, float]:
    calendar = opened.compiled.calendar
    plain = PLAIN.format(calendar.first(step), calendar.first(step + 1))
    text = lower(statement(opened.compiled, step, step), opened.backend.dialect)
    seconds: dict[str, list[float]] = {plain: [], text: []}
    with opened.session() as session:
        for statement_text in seconds:
            session.check(statement_text)
        for _ in range(TIMES):
            for statement_text, times in seconds.items():
                times.append(_seconds(session, statement_text))
    medians = [statistics.median(times) for times in seconds.values()]
    return {"plain": medians[0], "step": medians[1], "ratio": medians[1] / medians[0]}


def _seconds(session: Session, text: str) -> float:
    started = time.perf_counter()
    session.rows(text)
    return time.perf_counter() - started
