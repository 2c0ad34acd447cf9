"""`python -m bench [NAME ...]`: run the benchmarks and write bench/results/NAME.json."""

from __future__ import annotations

import importlib
import json
import platform
import sys
import time
from pathlib import Path

NAMES = (
    "spine", "tpch", "tpcds", "joins", "peers", "noise", "accounting", "ledger", "laud", "statistics", "preprocessing",
    "sampler", "patterns", "honesty", "streams", "stream_steps", "running_sums", "everyday", "ordinary", "service",
    "rows_and_values", "compile", "spark", "scale",
)  # fmt: skip
RESULTS = Path(__file__).resolve().parent / "results"


def main(names: list[str]) -> None:
    """Run the named benchmarks, or all."""
    RESULTS.mkdir(exist_ok=True)
    for name in names or NAMES:
        started = time.time()
        found = importlib.import_module(f"bench.{name}").run()
        record = {"benchmark": name, "python": platform.python_version(), "result": found}
        (RESULTS / f"{name}.json").write_text(json.dumps(record, indent=2) + "\n")
        print(f"{name}: {time.time() - started:.1f} s -> bench/results/{name}.json")
        print(json.dumps(found, indent=2))


if __name__ == "__main__":
    main(sys.argv[1:])
