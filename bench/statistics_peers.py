"""IBM diffprivlib on the columns of `bench/statistics.py`, kept as bench/statistics_peers.json.

diffprivlib is no dependency and wants an older scikit-learn, so it lives in an environment of its own:

    python -m venv /tmp/dpl && /tmp/dpl/bin/pip install diffprivlib==0.6.6 "scikit-learn<1.6"
    /tmp/dpl/bin/python -W ignore bench/statistics_peers.py

Neighbors replace one value there, and extremes are its quantiles 0 and 1.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
from statistics_data import EPSILONS, SHAPES, SIZES, column, truths  # run as a script

COLUMNS, DRAWS = 10, 24


def estimates(values: np.ndarray, bounds: tuple[float, float], epsilon: float) -> dict[str, float]:
    from diffprivlib import tools

    given = {"epsilon": epsilon, "bounds": bounds}
    return {
        "median": float(tools.median(values, **given)),
        "quantile 0.25": float(tools.quantile(values, 0.25, **given)),
        "quantile 0.9": float(tools.quantile(values, 0.9, **given)),
        "minimum": float(tools.quantile(values, 0.0, **given)),
        "maximum": float(tools.quantile(values, 1.0, **given)),
        "mean": float(tools.mean(values, **given)),
        "variance": float(tools.var(values, **given)),
    }


def main() -> None:
    import diffprivlib

    found: dict[str, float] = {}
    for shape, bounds in SHAPES.items():
        for size in SIZES:
            for epsilon in EPSILONS:
                errors: dict[str, list[float]] = {}
                for number in range(COLUMNS):
                    values = column(shape, size, number)
                    truth = truths(values)
                    for _ in range(DRAWS if size < 10_000 else 2):
                        for name, value in estimates(values, bounds, epsilon).items():
                            errors.setdefault(name, []).append(abs(value - truth[name]))
                for name, off in errors.items():
                    found[f"{name}, {shape}, {size}, {epsilon:g}"] = float(np.mean(off))
    record = {
        "diffprivlib": diffprivlib.__version__,
        "command": "/tmp/dpl/bin/python -W ignore bench/statistics_peers.py",
        "mean_error": found,
    }
    place = Path(__file__).with_name("statistics_peers.json")
    place.write_text(json.dumps(record, indent=1) + "\n")


if __name__ == "__main__":
    main()
