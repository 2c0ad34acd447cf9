"""Error of ordinary questions under `unit` over that of an oracle: `python -m bench.ordinary [--epsilon 0.3,1,3]`.

The same as `secant bench everyday`. Ratios of few releases are uncertain by about 1 / sqrt(2 · releases), more where
errors have heavy tails.
"""

from __future__ import annotations

import argparse
import json
from fractions import Fraction
from pathlib import Path
from typing import Any

from bench.suites.everyday.measure import measure, overall
from bench.suites.everyday.sets import QUESTIONS, chosen_sets
from bench.suites.everyday.table import lines

EPSILONS, REPEAT = (Fraction(1),), 20


def run() -> dict[str, Any]:
    """Measure all sets at epsilon 1."""
    rows = list(measure(chosen_sets(""), EPSILONS, REPEAT))
    return {"questions": rows, "overall": overall(rows), "table": list(lines(rows))}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--epsilon", default="1")
    parser.add_argument("--sets", default="")
    parser.add_argument("--questions", default="")
    parser.add_argument("--repeat", type=int, default=REPEAT)
    parser.add_argument("--json")
    asked = parser.parse_args()
    epsilons = [Fraction(x) for x in asked.epsilon.split(",")]
    questions = [x.strip() for x in asked.questions.split(",") if x.strip()]
    assert all(x in QUESTIONS for x in questions), questions
    rows = list(measure(chosen_sets(asked.sets), epsilons, asked.repeat, questions))
    print("\n".join(lines(rows)))
    if asked.json:
        Path(asked.json).write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
