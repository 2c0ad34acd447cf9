"""From a pandas frame to a private count by group, in four libraries: `python -m bench.frame_peers [PYTHON_OF_PEERS]`.

The same question for each: visits by ward, one patient hidden with all of four visits, ε = 1, δ = 1e-6, and nothing
declared that is not needed. Each library runs in a process of its own, whose packages are already installed; peers are
found where the named Python finds them: an environment with smartnoise-sql, opendp[polars], diffprivlib and
scikit-learn<1.6. Times are of a first question as somebody types it: imports, then frame to answer; the best of several
processes. Errors are medians over releases and wards. What was found is kept in bench/frame_peers.json. The functions
below are the code that docs/how-to/coming-from.md shows.
"""

from __future__ import annotations

import inspect
import json
import statistics
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

WARDS = ["Ear", "Eye", "General", "Heart"]
RUNS, PROCESSES = 11, 3


def made() -> Any:
    """Give the frame: 20,000 visits of 5,000 patients."""
    import pandas

    return pandas.DataFrame(
        {
            "patient_id": [i % 5000 for i in range(20_000)],
            "ward": [WARDS[(i * i) % 7 % 4] for i in range(20_000)],
        }
    )


def with_secant(visits: Any) -> dict[str, float]:
    """Count with Secant."""
    # <secant>
    import secant

    db = secant.protect(visits, unit="patient_id", epsilon=1, rows=4, values={"ward": WARDS})
    answer = db.sql("SELECT ward, count(*) AS n FROM data GROUP BY ward", epsilon=1)
    # </secant>
    return dict(answer.rows)


def with_smartnoise(visits: Any) -> dict[str, float]:
    """Count with SmartNoise SQL."""
    # <smartnoise>
    import snsql

    columns = {
        "patient_id": {"type": "int", "private_id": True},
        "ward": {"type": "string"},
        "max_ids": 4,
    }
    reader = snsql.from_df(
        visits,
        metadata={"": {"shop": {"visits": columns}}},
        privacy=snsql.Privacy(epsilon=1.0, delta=1e-6),
    )
    rows = reader.execute("SELECT ward, COUNT(*) AS n FROM shop.visits GROUP BY ward")
    # </smartnoise>
    return {str(ward): float(n) for ward, n in rows[1:]}


def with_opendp(visits: Any) -> dict[str, float]:
    """Count with OpenDP."""
    # <opendp>
    import opendp.prelude as dp
    import polars as pl

    dp.enable_features("contrib")
    context = dp.Context.compositor(
        data=pl.from_pandas(visits).lazy(),
        privacy_unit=dp.unit_of(contributions=4),
        privacy_loss=dp.loss_of(epsilon=1.0),
        split_evenly_over=1,
        margins=[dp.polars.Margin(by=["ward"], invariant="keys")],
    )
    table = context.query().group_by("ward").agg(dp.len()).release().collect()
    # </opendp>
    return {str(ward): float(n) for ward, n in table.iter_rows()}


def with_diffprivlib(visits: Any) -> dict[str, float]:
    """Count with diffprivlib."""
    # <diffprivlib>
    from diffprivlib import tools

    # it hides one row; one patient has four, so each count gets a quarter of epsilon
    counts = {
        ward: tools.count_nonzero(visits["ward"] == ward, epsilon=1 / 4)
        for ward in ["Ear", "Eye", "General", "Heart"]
    }
    # </diffprivlib>
    return {ward: float(n) for ward, n in counts.items()}


LIBRARIES: dict[str, Callable[[Any], dict[str, float]]] = {
    "secant": with_secant,
    "smartnoise": with_smartnoise,
    "opendp": with_opendp,
    "diffprivlib": with_diffprivlib,
}
MODULES = {
    "secant": "secant.frames",
    "smartnoise": "snsql",
    "opendp": "opendp.prelude, polars",
    "diffprivlib": "diffprivlib.tools",
}


def shown(name: str) -> str:
    """Give the code of a library as the page shows it."""
    text = inspect.getsource(LIBRARIES[name])
    inside = text.partition(f"# <{name}>\n")[2].partition(f"    # </{name}>")[0]
    return textwrap.dedent(inside)


def lines(name: str) -> int:
    """Count the lines that somebody types, empty ones and comments left out."""
    return sum(bool(x.strip()) and not x.strip().startswith("#") for x in shown(name).splitlines())


def measured(name: str) -> dict[str, Any]:
    """Ask in this process: the time of the imports, of the first question, and the errors of some."""
    visits = made()
    true = visits.groupby("ward").size().to_dict()
    start = time.perf_counter()
    for module in MODULES[name].split(", "):
        __import__(module)
    imported = time.perf_counter()
    LIBRARIES[name](visits)
    asked = time.perf_counter()
    errors = []
    for _ in range(RUNS):
        found = LIBRARIES[name](visits)
        errors += [abs(found.get(ward, 0.0) - n) for ward, n in true.items()]
    return {
        "import_seconds": imported - start,
        "answer_seconds": asked - imported,
        "median_error": statistics.median(errors),
    }


def run(python: str = "") -> dict[str, Any]:
    """Ask every library that is there."""
    found: dict[str, Any] = {}
    for name in LIBRARIES:
        told = [
            _apart(sys.executable if name == "secant" else python, name) for _ in range(PROCESSES)
        ]
        known = [t for t in told if t is not None]
        if not known:
            found[name] = {"status": "not installed", "lines": lines(name)}
            continue
        found[name] = {
            "lines": lines(name),
            **{key: min(t[key] for t in known) for key in ("import_seconds", "answer_seconds")},
            "median_error": statistics.median(t["median_error"] for t in known),
        }
    return found


def _apart(python: str, name: str) -> dict[str, Any] | None:
    if not python:
        return None
    root = Path(__file__).resolve().parents[1]
    command = [python, "-m", "bench.frame_peers", "--one", name]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True)
    if done.returncode:
        print(f"{name}: {done.stderr.strip().splitlines()[-1:]}", file=sys.stderr)
        return None
    answer: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return answer


if __name__ == "__main__":
    if sys.argv[1:2] == ["--one"]:
        print(json.dumps(measured(sys.argv[2])))
    else:
        found = json.dumps(run(*sys.argv[1:2]), indent=2)
        Path(__file__).with_suffix(".json").write_text(found + "\n", encoding="utf-8")
        print(found)
