"""The 17 queries of Laud, Pankova and Pettai under a norm: `python -m bench.laud [--scale S]`.

Parity with the printed tables at the three scales that they have, accuracy against the authors' tool at scale 0.1,
speed at scale 1. The same measurements as `secant bench laud`, in one file.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

from bench.suites.laud import compare, database, forms
from bench.suites.laud.measure import measure

DATA = Path(__file__).resolve().parent / "data"


def run(speed_scale: str = "1", repeat: int = 3) -> dict[str, Any]:
    """Measure all profiles."""
    found: dict[str, Any] = {}
    for profile in forms.PROFILES:
        rows = _rows(profile, compare.PRINTED_SCALE, repeat)
        found[profile.name] = {"scale": compare.PRINTED_SCALE, "queries": rows}
        if profile.name in compare.PRINTED:
            found[profile.name]["not_as_printed"] = compare.missed(rows, profile.name)
        else:
            found[profile.name]["accuracy"] = _record(compare.accuracy(rows))
    found["scales"] = {
        scale: {name: _printed(forms.profile_of(name), scale) for name in compare.PRINTED}
        for scale in compare.SCALES
        if scale != compare.PRINTED_SCALE
    }
    rows = _rows(forms.profile_of("native"), speed_scale, repeat)
    found["speed"] = {
        "scale": speed_scale,
        "queries": rows,
        "release_over_plain": _record(compare.speed(rows)),
    }
    return found


def _printed(profile: forms.Profile, scale: str) -> dict[str, Any]:
    """Measure parity with Tables 4 and 6 at another scale."""
    rows = _rows(profile, scale, 1)
    return {"queries": rows, "not_as_printed": compare.missed(rows, profile.name, scale)}


def _rows(profile: forms.Profile, scale: str, repeat: int) -> list[dict[str, Any]]:
    source = f"duckdb:{database.duckdb_file(scale, DATA)}"
    return list(measure(source, profile, forms.QUERIES, repeat=repeat))


def _record(found: compare.Accuracy | compare.Speed | None) -> dict[str, Any] | None:
    return None if found is None else asdict(found)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--scale", default="1", help="of the speed measurement")
    print(json.dumps(run(parser.parse_args().scale), indent=2))
