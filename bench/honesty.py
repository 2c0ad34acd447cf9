"""Do printed ends hold? `python -m bench.honesty [--releases N] [--data NAMES]`.

The same measurements as `secant bench honesty`, in one file, with the geometric mean of the errors of TPC-H.
"""

from __future__ import annotations

import argparse
import json
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from bench.suites.honesty import measure, sets

DATA = Path(__file__).resolve().parent / "data"


def run(releases: int = 200, names: str = "", scale: str = "0.1") -> dict[str, Any]:
    """Release every question of all data sets."""
    rows: list[dict[str, Any]] = []
    with ExitStack() as stack:
        for name in sets.chosen_sets(names):
            rows += measure.measure(sets.make_set(name, scale, DATA, stack), releases)
    return {
        "releases": releases,
        "summary": measure.summary(rows),
        "mean_errors": {
            name: measure.mean_error([r for r in rows if r["data"] == name])
            for name in sets.chosen_sets(names)
        },
        "queries": rows,
    }


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--releases", type=int, default=200)
    parser.add_argument("--data", default="", help="names of data sets")
    chosen = parser.parse_args()
    print(json.dumps(run(chosen.releases, chosen.data), indent=2))
