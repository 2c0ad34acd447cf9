"""How much memory and time a release takes as the data grow: `python -m bench.memory --scales 0.1,1,3`.

TPC-H with one customer protected. Each query runs in a process of its own, once plain and once as a release, so that
the most memory that the process held is that of the one or the other; the time is that of the processors.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from fractions import Fraction
from pathlib import Path
from typing import Any

import secant
from bench.spine import tpch
from bench.suites.tpch import texts
from bench.suites.tpch.rehearsal import compiled, engine_of, plain_statement
from secant.errors import SecantError
from secant.release.run import check_job

ANSWERED = (
    "q01", "q04", "q05", "q06", "q07", "q08", "q09", "q12", "q13", "q14", "q15", "q17", "q19", "q20", "q21", "q22",
)  # fmt: skip
"""Queries that read protected rows and are answered."""


def run(
    scales: tuple[str, ...] = ("0.1", "1"), queries: tuple[str, ...] = ANSWERED
) -> dict[str, Any]:
    """Measure every query at every scale."""
    return {
        scale: {
            query: {way: _apart(scale, query, way) for way in ("plain", "release")}
            for query in queries
        }
        for scale in scales
    }


def _apart(scale: str, query: str, way: str) -> dict[str, float]:
    """Run one query once in a process of its own."""
    command = [sys.executable, "-m", "bench.memory", "--one", scale, query, way]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    found: dict[str, float] = json.loads(done.stdout)
    return found


def _one(scale: str, query: str, way: str) -> dict[str, float]:
    with (
        tempfile.TemporaryDirectory() as folder,
        secant.connect(
            f"parquet:{tpch(scale)}",
            policy=texts.policy_of(None),
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
                with db._question(text) as (_, session, _):
                    check_job(ready.job, session)
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
    parser.add_argument("--one", nargs=3)
    chosen = parser.parse_args()
    if chosen.one:
        print(json.dumps(_one(*chosen.one)))
    else:
        print(
            json.dumps(
                run(tuple(chosen.scales.split(",")), tuple(chosen.queries.split(","))), indent=1
            )
        )
