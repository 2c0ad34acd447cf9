"""Which of the 22 TPC-H queries are answered under customers.toml, and how far off: `python -m bench.tpch [--scale S]`.

The error is what users feel: |released - true| at 95 % over repeated releases, as a length of vectors over all cells of
noisy columns, divided by the length of the true ones.
"""

from __future__ import annotations

import argparse
import json
import math
from fractions import Fraction
from typing import Any

from bench.spine import CUSTOMERS, QUERIES, NoBudget, open_with, tpch
from secant.engine import Connection
from secant.errors import SecantError
from secant.release import run as releases
from secant.release.shares import calibrate

REPEATS = 200


def outcome(db: Connection, text: str, epsilon: Fraction) -> dict[str, Any]:
    """Prepare one query and, if it is answered, measure its error."""
    protections = db.policy.protections
    try:
        prepared = db._prepare(text, protections, epsilon)
    except SecantError as refusal:
        return {
            "status": "refused",
            "reasons": list(refusal.details) or [refusal.message],
            "hint": refusal.hint,
        }
    noise = calibrate(
        prepared.bounded, protections, epsilon, {p.name: Fraction(1, 10**8) for p in protections}
    )
    job = releases.plan_release(prepared, noise, Fraction(95, 100), db._backend)
    if not prepared.bounded:
        return {"status": "exact", "rows": len(releases.finish(job, {}, db._backend).rows)}
    keys = releases.look_up_keys(job, db._backend)
    quiet, _ = releases.unnoised(job, keys, db._backend)
    truth = _cells(quiet)
    errors = []
    exact = {b.release.name: None for b in prepared.bounded}
    for _ in range(REPEATS):
        shown = releases.run(job, keys, Cached(db._backend, job, exact), NoBudget())
        errors.append(_distance(_cells(shown), truth))
    errors.sort()
    length = math.sqrt(sum(v * v for v in truth.values())) if truth else 0.0
    at95 = errors[math.ceil(0.95 * len(errors)) - 1]
    relative = at95 / length if length else None
    return {"status": "answered", "rows": len(quiet.rows), "relative_error95": relative}


class Cached:
    """A backend that remembers exact measures, so that repeated releases cost only their noise."""

    def __init__(self, backend: Any, job: releases.Job, memory: dict[str, Any]) -> None:
        self._backend = backend
        self._statements = {s: name for name, s in job.statements.items()}
        self._memory = memory
        self.dialect = backend.dialect

    def rows(self, statement: str) -> Any:
        """Run a statement, or give what it gave before if it is an exact one."""
        name = self._statements.get(statement)
        if name is None:
            return self._backend.rows(statement)
        if self._memory[name] is None:
            self._memory[name] = self._backend.rows(statement)
        return self._memory[name]


def _cells(shown: releases.Shown) -> dict[tuple[Any, ...], float]:
    """Name every noisy number by the texts, dates and exact numbers of its row, and its column."""
    cells: dict[tuple[Any, ...], float] = {}
    noisy = [any(e[i] is not None for e in shown.errors or []) for i in range(len(shown.columns))]
    for row in shown.rows:
        key = tuple(str(v) for v, loud in zip(row, noisy, strict=True) if not loud)
        for column, value, loud in zip(shown.columns, row, noisy, strict=True):
            if loud and value is not None:
                cells[(*key, column)] = float(value)
    return cells


def _distance(a: dict[Any, float], b: dict[Any, float]) -> float:
    return math.sqrt(sum((a.get(k, 0.0) - b.get(k, 0.0)) ** 2 for k in {*a, *b}))


def run(scale: str = "0.01", epsilon: str = "1") -> dict[str, Any]:
    """Try all 22 queries."""
    with open_with(CUSTOMERS, tpch(scale)) as db:
        found = {
            p.stem: outcome(db, p.read_text(), Fraction(epsilon))
            for p in sorted(QUERIES.glob("q*.sql"))
        }
    return {"scale": scale, "epsilon": epsilon, "queries": found}


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--scale", default="0.01")
    parser.add_argument("--epsilon", default="1")
    chosen = parser.parse_args()
    print(json.dumps(run(chosen.scale, chosen.epsilon), indent=2))
