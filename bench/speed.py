"""What a release costs beside the plain query: `python -m bench.speed [--scale S] [--postgres ADDRESS]`.

The 17 derivative queries, TPC-H with one customer protected, joins with one row protected, and seven questions that
other systems were asked, too. Plain query and release run in turns in this process. On DuckDB, which runs inside it,
the time of the processors counts, of all threads: other programs do not stretch it. On a server the time on the wall
counts. Of several runs the best of each counts.

Beside each ratio stands its floor. Where limits of what a unit adds are kept, that is one hash aggregate by unit over
the plain query's rows; where a join is surveyed, the answer and the largest of its tables counted by the key that it is
joined by, since a row that comes may meet all rows of a key; elsewhere, reading the rows that the bound rests on, and
nothing more. All over the plain query's time.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path
from typing import Any

import secant
from bench import peers
from bench.joins import TIMED
from bench.spine import tpch
from bench.suites.joins import cases
from bench.suites.laud import database, forms
from bench.suites.tpch import texts
from bench.suites.tpch.rehearsal import Rehearsal, compiled, engine_of, plain_statement
from secant.engine import Connection
from secant.engines.backend import Session
from secant.engines.dialect import Dialect
from secant.engines.print.print_sql import lower
from secant.errors import SecantError
from secant.plan import nodes as n
from secant.plan.typing import type_of
from secant.policy.file import read_policy
from secant.policy.policy import Policy
from secant.release.print import check_statements
from secant.sql.bind import bind
from secant.stages.open import open_snapshot

DATA = Path(__file__).resolve().parent / "data"
ONE, TINY = Fraction(1), Fraction(1, 10**8)
REPEAT = 5
Row = dict[str, Any]
Clock = Callable[[], float]


def run(
    scale: str = "1", repeat: int = REPEAT, postgres: str | None = None, only: str = ""
) -> dict[str, Any]:
    """Measure every suite, or those whose name holds a word."""
    suites = {
        "17 derivative queries, DuckDB": _laud(scale, repeat),
        "TPC-H, one customer protected, DuckDB": _customers(scale, repeat),
        "joins, one row protected, DuckDB": _joins(scale, repeat),
        "seven questions over a GROUP BY per customer, DuckDB": _peers(scale, repeat),
    }
    if postgres:
        suites["17 derivative queries, PostgreSQL"] = _laud(scale, repeat, postgres)
    found = {name: dict(rows) for name, rows in suites.items() if only in name}
    return {"scale": scale, "repeat": repeat, "suites": found}


def _laud(scale: str, repeat: int, address: str | None = None) -> Iterator[tuple[str, Row]]:
    profile = forms.profile_of("native")
    clock: Clock = time.process_time
    if address is None:
        source = f"duckdb:{database.duckdb_file(scale, DATA)}"
    else:
        source, clock = database.postgres_address(scale, DATA, address), time.perf_counter
    for query in forms.QUERIES:
        with _opened(source, forms.policy_of(profile, query)) as db:
            text, epsilon = forms.text_of(profile, query), profile.epsilon_of(query)
            yield query, times(db, text, epsilon, Fraction(0), repeat, clock=clock)


def _customers(scale: str, repeat: int) -> Iterator[tuple[str, Row]]:
    with _opened(f"parquet:{tpch(scale)}", texts.policy_of(None)) as db:
        for query in texts.QUERIES:
            try:
                yield query, times(db, texts.text_of(query), ONE, TINY, repeat)
            except SecantError as error:
                yield query, {"refused": error.code}


def _joins(scale: str, repeat: int) -> Iterator[tuple[str, Row]]:
    for case in cases.chosen_cases(TIMED):
        with _opened(f"parquet:{tpch(scale)}", read_policy(case.policy)) as db:
            yield case.name, times(db, case.text, ONE, Fraction(0), repeat)


def _peers(scale: str, repeat: int) -> Iterator[tuple[str, Row]]:
    data = tpch(scale)
    with _opened(f"parquet:{data}", read_policy(peers.tight_policy(data))) as db:
        for question in peers.QUESTIONS:
            row = times(db, question.text, ONE, TINY, repeat, plain=question.per_customer)
            yield question.name, row


@contextmanager
def _opened(source: str, policy: Policy) -> Iterator[Connection]:
    with (
        tempfile.TemporaryDirectory() as folder,
        secant.connect(source, policy=policy, ledger=Path(folder) / "unused.ledger") as db,
    ):
        yield db


def times(
    db: Connection,
    text: str,
    epsilon: Fraction,
    delta: Fraction,
    repeat: int,
    *,
    plain: str | None = None,
    clock: Clock = time.process_time,
) -> Row:
    """Give the best times of plain query, release and floor, and their ratios."""
    engine = engine_of(db)
    ready = compiled(db, text, epsilon, delta)
    statement = plain_statement(db, text) if plain is None else plain
    floor = floor_of(ready, engine)

    def release() -> float:
        with open_snapshot(bind(text, db.catalog), db._source) as snapshot:
            session = snapshot.session
            began = clock()  # reading the text is compilation, which `bench.spine` measures
            check_statements(ready.job, session)
            ready.release(session)
            return clock() - began

    def taking(*written: str) -> Callable[[], float]:
        def ask() -> float:
            began = clock()
            for each in written:
                engine.rows(each)
            return clock() - began

        return ask

    asked = {"plain": taking(statement), "release": release}
    if floor:
        asked["floor"] = taking(*floor)
    best = {name: float("inf") for name in asked}
    for _ in range(repeat + 1):  # the first finds nothing in memory, and seldom is the best
        for name, ask in asked.items():
            best[name] = min(best[name], ask())
    ratios = {name: seconds / best["plain"] for name, seconds in best.items() if name != "plain"}
    return {"seconds": best, "ratio": ratios["release"], "floor": ratios.get("floor")}


def floor_of(ready: Rehearsal, engine: Session) -> list[str]:
    """Write what no release can do without: what each unit adds, or the rows that a bound rests on, in one row."""
    for reading in ready.job.readings.values():
        for units in reading.units.values():
            if units.made.each is not None:
                return [_counted(units.made.each, engine.dialect)]
        answers = reading.instrument.statements
        surveys = [statement for s in reading.surveys for statement in s.statements]
        if surveys:
            counted = _largest_table(surveys, engine)
            return [lower(each, engine.dialect) for each in (*answers, *counted)]
        for statement in answers:
            rows: n.Relation = statement
            while isinstance(rows, (n.Project, n.Aggregate)):
                rows = rows.input
            return [_counted(rows, engine.dialect)]
    return []


def _largest_table(surveys: list[n.Relation], engine: Session) -> list[n.Relation]:
    """Give, of the figures for which one table is counted, that of the largest table."""

    def rows(figure: n.Aggregate) -> int:
        assert isinstance(figure.input, n.Aggregate)
        ((found,),) = engine.rows(_counted(figure.input.input, engine.dialect))
        return int(str(found))

    alone = [
        node
        for statement in surveys
        for node in n.walk(statement)
        if isinstance(node, n.Aggregate)
        and isinstance(node.input, n.Aggregate)
        and not any(isinstance(below, n.Join) for below in n.walk(node))
    ]
    return [max(alone, key=rows)] if alone else []


def _counted(rows: n.Relation, dialect: Dialect) -> str:
    """Count rows; of aggregates the largest is taken, too, since what nobody reads is not computed."""
    calls = [n.Aggregation("rows", "count", None)]
    if isinstance(rows, n.Aggregate):
        for call in rows.aggregations:
            calls.append(
                n.Aggregation(f"{call.name}.most", "max", n.Column(call.name, type_of(call)))
            )
    return lower(n.Aggregate(rows, (), tuple(calls)), dialect)


def summary(rows: Mapping[str, Row]) -> tuple[float, str, float]:
    """Give the geometric mean of the ratios, and which is the worst.

    >>> summary({"a": {"ratio": 1.0}, "b": {"ratio": 4.0}, "c": {"refused": "REF-101"}})
    (2.0, 'b', 4.0)
    """
    ratios = {name: row["ratio"] for name, row in rows.items() if "ratio" in row}
    product = 1.0
    for ratio in ratios.values():
        product *= ratio
    worst = max(ratios, key=ratios.__getitem__)
    return product ** (1 / len(ratios)), worst, ratios[worst]


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--scale", default="1")
    parser.add_argument(
        "--postgres", help="address of an empty database, or of one that this filled"
    )
    chosen = parser.parse_args()
    print(json.dumps(run(chosen.scale, postgres=chosen.postgres), indent=2))
