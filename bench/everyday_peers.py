"""IBM diffprivlib on the tables of `bench/everyday.py`, kept as bench/everyday_peers.json.

In an environment of its own, as for statistics_peers.py:

    /tmp/dpl/bin/python -W ignore bench/everyday_peers.py

Neighbors replace one row there. It has no covariance matrix of its own.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
from everyday_data import BOUNDS, EDGES, EPSILONS, TABLES, table, truths  # run as a script

DRAWS = 20


def estimates(rows: np.ndarray, epsilon: float) -> dict[str, np.ndarray]:
    from diffprivlib import models, tools

    ages = rows[:, 0]
    low, high = (tuple(ends) for ends in zip(*BOUNDS, strict=True))
    line = models.LinearRegression(
        epsilon=epsilon, bounds_X=(low[:2], high[:2]), bounds_y=(low[2], high[2])
    ).fit(rows[:, :2], rows[:, 2])
    return {
        "sum": np.array([tools.sum(ages, epsilon=epsilon, bounds=BOUNDS[0])]),
        "share": np.array([tools.mean((ages >= 65).astype(float), epsilon=epsilon, bounds=(0, 1))]),
        "deviation": np.array([tools.std(ages, epsilon=epsilon, bounds=BOUNDS[0])]),
        "histogram": tools.histogram(ages, epsilon=epsilon, bins=EDGES, range=BOUNDS[0])[0],
        "regression": np.asarray(line.coef_).ravel(),
    }


def main() -> None:
    import diffprivlib

    found: dict[str, list[float]] = {}
    for number in range(TABLES):
        rows = table(number)
        truth = truths(rows)
        for epsilon in EPSILONS:
            for _ in range(DRAWS):
                for name, value in estimates(rows, epsilon).items():
                    off = float(np.abs(value - truth[name]).mean())
                    found.setdefault(f"{name}, {epsilon:g}", []).append(off)
    record = {
        "diffprivlib": diffprivlib.__version__,
        "command": "/tmp/dpl/bin/python -W ignore bench/everyday_peers.py",
        "mean_error": {name: float(np.mean(off)) for name, off in found.items()},
    }
    place = Path(__file__).with_name("everyday_peers.json")
    place.write_text(json.dumps(record, indent=1) + "\n")


if __name__ == "__main__":
    main()
