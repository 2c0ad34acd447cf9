"""How fast a ledger is: `python -m bench.ledger`.

A release is three durable transactions: reserve, sent, settle. SQLite on this machine's disk with
synchronous=FULL; PostgreSQL is measured if its address is in SECANT_BENCH_POSTGRES.
"""

from __future__ import annotations

import json
import os
import tempfile
import time
from pathlib import Path
from typing import Any

from secant.errors import BudgetError
from secant.ledger import Budget, Charge, Ledger
from secant.noise.events import LaplaceEvent

BUDGETS = {"rows": Budget.of(1_000_000), "units": Budget.of(1_000_000, "1e-6")}
SECONDS = 3.0
PROCESSES = 8


def run() -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        measured: dict[str, Any] = {"sqlite": _store(str(Path(folder) / "bench.ledger"))}
        measured["sqlite"]["history"] = _long_history(str(Path(folder) / "long.ledger"))
    address = os.environ.get("SECANT_BENCH_POSTGRES")
    if address:
        measured["postgres"] = _store(address)
    return measured


def _store(location: str) -> dict[str, Any]:
    cpu = time.process_time()
    releases = _release_until(location, time.monotonic() + 1)
    cpu = time.process_time() - cpu
    alone, _ = _hammer(location, processes=1)
    together, kept = _hammer(location, processes=PROCESSES)
    return {
        "cpu_milliseconds_a_release": 1000 * cpu / releases,
        "releases_a_second_one_process": alone,
        f"releases_a_second_{PROCESSES}_processes": together,
        "every_release_is_in_the_ledger": kept,
    }


def _hammer(location: str, *, processes: int) -> tuple[float, bool]:
    with Ledger.open(location, BUDGETS) as ledger:
        before = len(ledger.history())
    started = time.monotonic()
    pipes = []
    for _ in range(processes):
        reading, writing = os.pipe()
        if os.fork() == 0:
            os.write(writing, str(_release_until(location, started + SECONDS)).encode())
            os._exit(0)
        os.close(writing)
        pipes.append(reading)
    made = 0
    for pipe in pipes:
        with os.fdopen(pipe) as text:
            made += int(text.read())
        os.wait()
    seconds = time.monotonic() - started
    with Ledger.open(location, BUDGETS) as ledger:
        ledger.verify()
        kept = len(ledger.history()) - before == made
    return made / seconds, kept


def _release_until(location: str, deadline: float) -> int:
    made = 0
    charges = [Charge.of("rows", "0.001"), Charge.of_event("units", LaplaceEvent("0.001"))]
    with Ledger.open(location, BUDGETS) as ledger:
        while time.monotonic() < deadline:
            with ledger.reserve(charges) as reservation:
                reservation.mark_sent()
            made += 1
    return made


def _long_history(location: str, releases: int = 20_000) -> dict[str, Any]:
    """Opening, verifying and refusing with a long history behind."""
    with Ledger.open(location, BUDGETS) as ledger:
        connection = ledger._journal._connection  # type: ignore[attr-defined]
        with connection.taken() as sqlite:
            sqlite.execute("PRAGMA synchronous = OFF")  # only the filling is hurried
        for _ in range(releases):
            with ledger.reserve([Charge.of("rows", 1)]) as reservation:
                reservation.mark_sent()
    opening, _ = _timed(lambda: Ledger.open(location, BUDGETS).close())
    with Ledger.open(location, BUDGETS) as ledger:
        verifying, _ = _timed(ledger.verify)
        refusing, _ = _timed(lambda: _refused(ledger))
    return {
        "releases": releases,
        "open_seconds": opening,
        "verify_seconds": verifying,
        "refuse_seconds": refusing,
        "bytes": Path(location).stat().st_size,
    }


def _refused(ledger: Ledger) -> None:
    try:
        ledger.reserve([Charge.of("rows", 1_000_000)])
    except BudgetError:
        return
    raise AssertionError("a release beyond the budget was granted")


def _timed(action: Any) -> tuple[float, Any]:
    best, result = float("inf"), None
    for _ in range(3):
        started = time.perf_counter()
        result = action()
        best = min(best, time.perf_counter() - started)
    return best, result


if __name__ == "__main__":
    print(json.dumps(run(), indent=2))
