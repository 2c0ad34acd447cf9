"""The 99 TPC-DS texts with one customer protected: `python -m bench tpcds`, or `python -m bench.tpcds --queries q01`.

Texts and data come from DuckDB's extension, which is fetched into an environment outside of the repository.
"""

from __future__ import annotations

import argparse
import json
from typing import Any

from bench.suites.laud.database import default_directory
from bench.suites.tpcds import measure, source


def run(scale: str = "0.01", queries: str = "") -> dict[str, Any]:
    """Plan, print back and bound all queries at epsilon 1."""
    wanted = {name.strip() for name in queries.split(",") if name.strip()}
    names = [name for name in source.QUERIES if not wanted or name in wanted]
    rows = list(measure.measure(source.made(scale, default_directory()), names))
    return {"scale": scale, "epsilon": "1", "summary": measure.summary(rows), "queries": rows}


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--scale", default="0.01")
    parser.add_argument("--queries", default="")
    chosen = parser.parse_args()
    print(json.dumps(run(chosen.scale, chosen.queries), indent=2))
