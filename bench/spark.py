"""What a release costs on Spark beside the plain query there: `python -m bench.spark [--scale S] [--queries LIST]`.

A server of this machine with two cores. Plain query and release run in turns, best of some runs; the 17 queries over
moving values (`laud`, native and paper form), and the TPC-H texts that are answered with one customer protected (`unit`).
"""

from __future__ import annotations

import argparse
import json
import statistics
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bench.local_spark import missing, running_spark
from bench.suites.laud import database, forms
from bench.suites.laud.measure import measure

MEMORY = "4g"
SETTINGS = {"spark.sql.shuffle.partitions": "4"}
Row = dict[str, Any]


def run(
    scale: str = "1", repeat: int = 3, names: Sequence[str] = ("native", "paper"), queries: str = ""
) -> dict[str, Any]:
    """Measure both forms; the place of the data is that of the other benchmarks."""
    lacking = missing()
    if lacking is not None:
        return {"not_run": lacking}
    folder = database.parquet_folder(scale, database.default_directory()).resolve()
    with running_spark(MEMORY, SETTINGS) as server:
        source = f"{server.address}?parquet={folder}"
        return {
            "scale": scale,
            **{name: _form(source, name, forms.chosen_queries(queries), repeat) for name in names},
        }


def _form(source: str, name: str, queries: Sequence[str], repeat: int) -> Row:
    rows = []
    for row in measure(source, forms.profile_of(name), queries, repeat=repeat):
        rows.append(row | ratio(row))
        print(json.dumps({"form": name, **_short(rows[-1])}), flush=True)
    ratios = [row["release_over_plain"] for row in rows if "release_over_plain" in row]
    return {
        "queries": rows,
        "answered": len(ratios),
        "geometric_mean": round(statistics.geometric_mean(ratios), 3) if ratios else None,
        "worst": max(ratios, default=None),
    }


def ratio(row: Row) -> Row:
    """Give how long a release takes beside the plain query; nothing for one that is refused."""
    if "seconds" not in row:
        return {}
    seconds = row["seconds"]
    return {"release_over_plain": round(seconds["release"] / seconds["plain"], 3)}


def _short(row: Row) -> Row:
    seconds = {k: round(v, 3) for k, v in row.get("seconds", {}).items()}
    return {"query": row["query"], **seconds, "ratio": row.get("release_over_plain")}


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--scale", default="1")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--queries", default="")
    parser.add_argument("--forms", default="native,paper")
    given = parser.parse_args()
    result = run(given.scale, given.repeat, given.forms.split(","), given.queries)
    Path("bench/results").mkdir(exist_ok=True)
    Path("bench/results/spark.json").write_text(json.dumps(result, indent=2) + "\n")
    print(
        {
            form: {k: v for k, v in found.items() if k != "queries"}
            for form, found in result.items()
            if isinstance(found, dict)
        }
    )
