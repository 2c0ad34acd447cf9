"""Bounds of joins beside the exact sensitivities: `python -m bench.joins [--scale S]`.

The same measurements as `secant bench joins`, in one file: bounds at scale 0.1, and how long they take at scale 1.
"""

from __future__ import annotations

import argparse
import json
from fractions import Fraction
from typing import Any

from bench.spine import tpch
from bench.suites.joins import cases, measure

TIMED = "chain,q3,q5,q10"


def run(speed_scale: str = "1", repeat: int = 3, timed: int = 9) -> dict[str, Any]:
    """Measure all cases at scale 0.1, and those on TPC-H again where times count: the best of more runs."""
    return {
        "epsilon": "1",
        "bounds": {"scale": "0.1", "queries": _rows("0.1", "", repeat)},
        "speed": {"scale": speed_scale, "queries": _rows(speed_scale, TIMED, timed)},
    }


def _rows(scale: str, names: str, repeat: int) -> list[dict[str, Any]]:
    asked = cases.chosen_cases(names)
    return list(measure.measure(tpch(scale), asked, epsilon=Fraction(1), repeat=repeat))


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--scale", default="1", help="of the speed measurement")
    print(json.dumps(run(parser.parse_args().scale), indent=2))
