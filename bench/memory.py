"""How much memory and time a release takes as the data grow: `python -m bench.memory --scales 0.1,1,10`.

TPC-H with one customer protected. Each query runs in a process of its own, once plain and once as a release, so that
the most memory that the process held is that of the one or the other; the time is that of the processors. The release's
engine may hold 2 GB more than the plain query did: what does not fit it must spill, or the query is refused.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import secant
from bench.spine import tpch
from bench.suites.tpch import texts
from bench.suites.tpch.rehearsal import compiled, engine_of, plain_statement
from secant.errors import SecantError
from secant.policy.policy import USUAL, Limits
from secant.release.print import check_statements
from secant.sql.bind import bind
from secant.stages.open import open_snapshot

ANSWERED = (
    "q01", "q04", "q05", "q06", "q07", "q08", "q09", "q12", "q13", "q14", "q15", "q17", "q19", "q20", "q21", "q22",
)  # fmt: skip
"""Queries that read protected rows and are answered."""
MORE = 2000
"""Megabytes that a release may hold more than the plain query."""
GROUPS = 200_000
"""Q15 has a group for each supplier, at scale 10 five times as many as an answer usually may have."""


def run(
    scales: tuple[str, ...] = ("0.1", "1"), queries: tuple[str, ...] = ANSWERED
) -> dict[str, Any]:
    """Measure every query at every scale."""
    return {scale: {query: _both(scale, query) for query in queries} for scale in scales}


def _both(scale: str, query: str) -> dict[str, dict[str, float]]:
    plain = _apart(scale, query, "plain", USUAL.memory)
    most = f"{plain['megabytes'] + MORE:.0f}MB"
    return {"plain": plain, "release": _apart(scale, query, "release", most)}


def _apart(scale: str, query: str, way: str, memory: str) -> dict[str, float]:
    """Run one query once in a process of its own, whose engine has so much memory."""
    command = [sys.executable, "-m", "bench.memory", "--one", scale, query, way, memory]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    found: dict[str, float] = json.loads(done.stdout)
    return found


def _one(scale: str, query: str, way: str, memory: str) -> dict[str, float]:
    limits = Limits(seconds=3600, memory=memory, groups=GROUPS)
    with (
        tempfile.TemporaryDirectory() as folder,
        secant.connect(
            f"parquet:{tpch(scale)}",
            policy=replace(texts.policy_of(None), limits=limits),
            ledger=Path(folder) / "unused.ledger",
        ) as db,
    ):
        text = texts.text_of(query)
        ready = compiled(db, text, Fraction(1), Fraction(1, 10**8))
        statement = plain_statement(db, text)
        before, began = _held(), time.process_time()
        try:
            if way == "plain":
                engine_of(db).rows(statement)
            else:
                with open_snapshot(bind(text, db.catalog), db._source) as snapshot:
                    session = snapshot.session
                    check_statements(ready.job, session)
                    ready.release(session)
        except SecantError as error:
            return {"refused": float(error.exit_status)}
        return {"seconds": time.process_time() - began, "megabytes": _held() - before}


def _held() -> float:
    """Give the most memory that this process has held, in megabytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--scales", default="0.1,1")
    parser.add_argument("--queries", default=",".join(ANSWERED))
    parser.add_argument("--one", nargs=4)
    chosen = parser.parse_args()
    if chosen.one:
        print(json.dumps(_one(*chosen.one)))
    else:
        print(
            json.dumps(
                run(tuple(chosen.scales.split(",")), tuple(chosen.queries.split(","))), indent=1
            )
        )
