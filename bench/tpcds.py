"""The 99 TPC-DS texts with one customer protected: `python -m bench tpcds`, or `python -m bench.tpcds --queries q01`.

`--hints` does what the hint of each refused text says, by `suites/tpcds/followed.toml`, and tells where that leads.
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
    return {
        "scale": scale,
        "epsilon": "1",
        "summary": measure.summary(rows),
        "queries": rows,
        **hints(scale, queries),
    }


def hints(scale: str = "0.01", queries: str = "") -> dict[str, Any]:
    """Follow the hint of each query that is refused."""
    names = [name for name in source.QUERIES if not queries or name in queries]
    rows = list(measure.follow(source.made(scale, default_directory()), names))
    told = f"of {len(rows)} refused: {sum(r['answered'] for r in rows)} answered when their hint is followed"
    return {"hints": told, "followed": rows}


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--scale", default="0.01")
    parser.add_argument("--queries", default="")
    parser.add_argument("--hints", action="store_true", help="only follow hints of refused texts")
    chosen = parser.parse_args()
    found = (hints if chosen.hints else run)(chosen.scale, chosen.queries)
    print(json.dumps(found, indent=2))
