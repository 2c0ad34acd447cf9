"""The 22 original TPC-H texts with one customer protected: `python -m bench.tpch [--scale S]`.

The same measurements as `secant bench tpch`, in one file.
"""

from __future__ import annotations

import argparse
import json
from fractions import Fraction
from typing import Any

from bench.spine import tpch
from bench.suites.tpch import measure, texts


def run(scale: str = "0.1", repeat: int = 200) -> dict[str, Any]:
    """Ask all 22 queries at epsilon 1 and delta 1e-8."""
    rows = list(
        measure.measure(
            f"parquet:{tpch(scale)}",
            texts.policy_of(None),
            texts.QUERIES,
            epsilon=Fraction(1),
            delta=Fraction(1, 10**8),
            repeat=repeat,
        )
    )
    return {
        "scale": scale,
        "epsilon": "1",
        "delta": "1e-8",
        "summary": measure.summary(rows),
        "queries": rows,
    }


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--scale", default="0.1")
    parser.add_argument("--repeat", type=int, default=200)
    chosen = parser.parse_args()
    print(json.dumps(run(chosen.scale, chosen.repeat), indent=2))
