"""What a private answer costs beside the plain query: compile time for 22 queries, release time for Q1 and Q6.

`python -m bench.spine [--scale S]`. Plain and private run in one process on one engine, in turns; ratios are
of the best of several runs each.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import statistics
import tempfile
import time
from fractions import Fraction
from pathlib import Path
from typing import Any

from bench.suites.laud.database import parquet_of
from bench.suites.tpch.rehearsal import engine_of, released
from bench.suites.tpch.texts import QUERIES, customers_text, text_of
from secant.engine import Connection, connect
from secant.engines.print.print_sql import lower
from secant.errors import SecantError
from secant.noise.calibrate import calibrate
from secant.plan.rewrites.rewrite import normalize
from secant.policy.file import read_policy
from secant.policy.policy import USUAL
from secant.release.print import check_statements, plan_release
from secant.sensitivity.split import split
from secant.sql.bind import bind, from_sql
from secant.stages.open import open_snapshot

ROOT = Path(__file__).resolve().parent
CUSTOMERS = customers_text()
ROWS = CUSTOMERS.split("[protections.customers]")[0] + (
    '[protections.rows]\nkind = "rows"\nepsilon = 10.0\ntables = ["lineitem"]\n'
)


def tpch(scale: str) -> Path:
    """Make TPC-H data once; kept out of version control."""
    return parquet_of(scale, ROOT / "data")


def open_with(policy: str, data: Path) -> Connection:
    """Open the data under a policy, with a ledger that is thrown away."""
    ledger = Path(tempfile.mkdtemp()) / "bench.ledger"
    return connect(f"parquet:{data}", policy=read_policy(policy), ledger=ledger)


def job_of(db: Connection, text: str) -> Any:
    """Everything from text to a job that is ready to run."""
    plan = bind(text, db.catalog)
    with open_snapshot(plan, db._source) as snapshot:
        session = snapshot.session
        facts = snapshot.facts
        prepared = split(text, plan, db.policy, db.policy.protections, db.catalog, facts)
        noise = calibrate(prepared.bounded, db.policy.protections, Fraction(1), _slack(db))
        return plan_release(prepared, noise, Fraction(95, 100), session, USUAL)


def _slack(db: Connection) -> dict[str, Fraction]:
    return {p.name: p.delta / 100 for p in db.policy.protections}


def compile_times(db: Connection) -> dict[str, Any]:
    """Milliseconds from text to ready job (or to the refusal) for each query, best of five after a first run."""
    times = {}
    for name in QUERIES:
        text = text_of(name)
        best = []
        for _ in range(6):
            start = time.perf_counter()
            with contextlib.suppress(SecantError):
                job_of(db, text)
            best.append(time.perf_counter() - start)
        times[name] = round(1000 * statistics.median(best[1:]), 2)
    return {
        "queries": times,
        "median_ms": statistics.median(times.values()),
        "worst_ms": max(times.values()),
    }


def release_ratio(db: Connection, name: str, repeats: int = 7) -> dict[str, float]:
    """Time of all that a release needs over the plain query's, in turns on one connection."""
    text = text_of(name)
    plain = lower(normalize(from_sql(text, db.catalog)))
    job = job_of(db, text)
    times: dict[str, list[float]] = {"plain": [], "release": []}
    for _ in range(repeats):
        start = time.perf_counter()
        engine_of(db).rows(plain)
        middle = time.perf_counter()
        with open_snapshot(bind(text, db.catalog), db._source) as snapshot:
            session = snapshot.session
            check_statements(job, session)
            released(job, session)
        end = time.perf_counter()
        times["plain"].append(middle - start)
        times["release"].append(end - middle)
    best = {k: min(v) for k, v in times.items()}
    return {
        **{k: round(v, 4) for k, v in best.items()},
        "ratio": round(best["release"] / best["plain"], 2),
    }


def run(scale: str = "1") -> dict[str, Any]:
    """Measure everything."""
    data = tpch(scale)
    found: dict[str, Any] = {"scale": scale}
    for protection, policy in (("rows", ROWS), ("unit", CUSTOMERS)):
        with open_with(policy, data) as db:
            found[protection] = {name: release_ratio(db, name) for name in ("q01", "q06")}
            if protection == "unit":
                found["compile"] = compile_times(db)
    return found


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--scale", default="1")
    print(json.dumps(run(parser.parse_args().scale), indent=2))
