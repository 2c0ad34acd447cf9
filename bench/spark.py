"""What a release costs on Spark beside the plain query there: `python -m bench.spark [--scale S] [--queries LIST]`.

A server of this machine with two cores; the 17 queries over moving values in their native and their paper form. Plain
query and release run in turns, best of some runs. Numbers are held against those of DuckDB.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
from collections.abc import Sequence
from typing import Any

from bench.local_spark import missing, running_spark
from bench.suites.laud import database, forms
from bench.suites.laud.measure import measure

MEMORY = "4g"
SETTINGS = {"spark.sql.shuffle.partitions": "4"}
COMPARED = ("exact", "softened", "sensitivity", "noise_scale")
Row = dict[str, Any]


def run(
    scale: str = "1", repeat: int = 3, names: Sequence[str] = ("native", "paper"), queries: str = ""
) -> dict[str, Any]:
    """Measure both forms; the place of the data is that of the other benchmarks."""
    lacking = missing()
    if lacking is not None:
        return {"not_run": lacking}
    place = database.default_directory()
    folder = database.parquet_folder(scale, place).resolve()
    chosen = forms.chosen_queries(queries)
    with running_spark(MEMORY, SETTINGS) as server:
        ours = f"{server.address}?parquet={folder}"
        theirs = f"duckdb:{database.duckdb_file(scale, place)}"
        return {
            "scale": scale,
            **{name: form(ours, theirs, name, chosen, repeat) for name in names},
        }


def form(ours: str, theirs: str, name: str, queries: Sequence[str], repeat: int) -> Row:
    """Measure one form on Spark, and hold its numbers against those of DuckDB."""
    profile, rows = forms.profile_of(name), []
    on_spark = measure(ours, profile, queries, repeat=repeat)
    for row, other in zip(on_spark, measure(theirs, profile, queries), strict=True):
        rows.append(row | ratio(row) | {"apart": apart(row, other)})
        print(json.dumps({"form": name, **_short(rows[-1])}), flush=True)
    ratios = [row["release_over_plain"] for row in rows if "release_over_plain" in row]
    return {
        "queries": rows,
        "answered": len(ratios),
        "most_apart": max(row["apart"] for row in rows),
        "geometric_mean": round(statistics.geometric_mean(ratios), 3) if ratios else None,
        "worst": max(ratios, default=None),
    }


def ratio(row: Row) -> Row:
    """Give how long a release takes beside the plain query; nothing for one that is refused."""
    if "seconds" not in row:
        return {}
    seconds = row["seconds"]
    return {"release_over_plain": round(seconds["release"] / seconds["plain"], 3)}


def apart(ours: Row, theirs: Row) -> float:
    """Give by which part of it a number differs most from the other engine's; infinite where only one has it."""
    pairs = [(ours.get(name), theirs.get(name)) for name in COMPARED]
    if any((a is None) != (b is None) for a, b in pairs):
        return math.inf
    return max((abs(a - b) / abs(b) if b else math.inf for a, b in pairs if a != b), default=0.0)


def _short(row: Row) -> Row:
    seconds = {k: round(v, 3) for k, v in row.get("seconds", {}).items()}
    told = {"ratio": row.get("release_over_plain"), "apart": row["apart"]}
    return {"query": row["query"], **seconds, **told}


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--scale", default="1")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--queries", default="")
    parser.add_argument("--forms", default="native,paper")
    given = parser.parse_args()
    print(json.dumps(run(given.scale, given.repeat, given.forms.split(","), given.queries)))
