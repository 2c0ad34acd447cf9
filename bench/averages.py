"""How often the usual error of an average holds, over rows and values of many kinds: `python -m bench.averages`.

Each cell makes people anew and releases once or more: AVG over a range that is declared generously, no limit of rows.
Written for each cell: how often the ends hold the average, the median half width in shares of it, and the median error.
"""

from __future__ import annotations

import argparse
import json
import statistics
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

import secant

Draw = Callable[[int, np.random.Generator], np.ndarray]
MOST = 5_000
ROWS: Mapping[str, Draw] = {
    "one": lambda people, draw: np.ones(people, int),
    "geometric": lambda people, draw: draw.geometric(0.1, people),
    "lognormal": lambda people, draw: 1 + np.floor(draw.lognormal(1.6, 1, people)).astype(int),
    "pareto 1.5": lambda people, draw: np.floor(2 * draw.pareto(1.5, people) + 2).astype(int),
    "couriers": lambda people, draw: np.where(
        np.arange(people) < 60, draw.integers(350, 651, people), 1 + draw.poisson(6, people)
    ),
}
VALUES: Mapping[str, Callable[[np.ndarray, np.random.Generator], np.ndarray]] = {
    "uniform": lambda rows, draw: draw.uniform(0, 200, rows.sum()),
    "lognormal": lambda rows, draw: draw.lognormal(4, 1, rows.sum()),
    "pareto": lambda rows, draw: 20 * (1 + draw.pareto(1.8, rows.sum())),
    "own level": lambda rows, draw: (
        np.repeat(60 * draw.lognormal(0, 0.7, len(rows)), rows) * draw.lognormal(0, 0.6, rows.sum())
    ),
    "by rows": lambda rows, draw: (
        np.repeat(50 + 10 * np.log2(rows), rows) + draw.normal(0, 10, rows.sum())
    ),
    "0 and 1": lambda rows, draw: (draw.random(rows.sum()) < 0.3) * 1.0,
}
POLICY: dict[str, Any] = {
    "tables": {"events": {"columns": {"value": {"range": [0, MOST]}}}},
    "protections": {"people": {"kind": "unit", "unit": "events.person", "epsilon": 10**6}},
}


def cell(
    rows: str, values: str, people: int, epsilon: float, draws: int, seed: int
) -> dict[str, Any]:
    """Release an average of people that are made anew each time."""
    draw = np.random.default_rng(seed)
    found = []
    for _ in range(draws):
        each = np.minimum(ROWS[rows](people, draw), 10_000)
        numbers = np.round(np.clip(VALUES[values](each, draw), 0, MOST), 2)
        table = pa.table({"person": np.repeat(np.arange(people), each), "value": numbers})
        with secant.connect({"events": table}, policy=POLICY, ledger=None) as db:
            answer = db.sql("SELECT avg(value) FROM events", epsilon=epsilon)
        low, high, shown = answer.low[0][0], answer.high[0][0], answer.rows[0][0]
        truth = float(numbers.mean())
        usual = answer.error["kind"] == "usual"
        holds = low is not None and high is not None and low <= truth <= high
        half = (high - low) / 2 / truth if low is not None and high is not None else float("inf")
        found.append((usual, holds, half, abs(shown - truth) / truth))
    told = [x for x in found if x[0]]
    return {
        "rows": rows,
        "values": values,
        "people": people,
        "epsilon": epsilon,
        "usual": len(told) / draws,
        "holds": statistics.fmean(x[1] for x in told) if told else None,
        "half": statistics.median(x[2] for x in found),
        "off": statistics.median(x[3] for x in found),
    }


def run(
    draws: int = 10, people: tuple[int, ...] = (5_000,), epsilons: tuple[float, ...] = (1.0,)
) -> list[dict[str, Any]]:
    """Measure every cell."""
    cells = []
    for number, (rows, values) in enumerate((r, v) for r in ROWS for v in VALUES):
        for many in people:
            for epsilon in epsilons:
                cells.append(cell(rows, values, many, epsilon, draws, 1000 * number + many))
                c = cells[-1]
                holds = "  -" if c["holds"] is None else f"{c['holds']:.2f}"
                print(
                    f"{rows:11} {values:10} {many:6} {epsilon:4} usual {c['usual']:.2f} holds {holds}"
                    f" half {100 * c['half']:8.2f} % off {100 * c['off']:6.2f} %",
                    flush=True,
                )
    held = [c["holds"] for c in cells if c["holds"] is not None]
    print(f"mean {statistics.fmean(held):.3f}, least {min(held):.2f}, cells {len(held)}")
    return cells


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--draws", type=int, default=10)
    parser.add_argument("--people", default="5000")
    parser.add_argument("--epsilon", default="1")
    parser.add_argument("--json")
    asked = parser.parse_args()
    warnings.simplefilter("ignore")
    people = tuple(int(x) for x in asked.people.split(","))
    epsilons = tuple(float(x) for x in asked.epsilon.split(","))
    cells = run(asked.draws, people, epsilons)
    if asked.json:
        Path(asked.json).write_text(json.dumps(cells, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
