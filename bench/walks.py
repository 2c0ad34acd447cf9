"""How far a reader has to walk: functions, files and switches between modules from text to answer, for three questions.

`python -m bench.walks`. A switch is a call that leads from one module of the product to another; the depth is that of
calls inside of the product. Counted on the second run, when imports and caches are behind.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import duckdb

import secant

HOME = str(Path(secant.__file__).parent)
ROWS = """
CREATE TABLE people (id INTEGER, age INTEGER);
INSERT INTO people SELECT i, i % 90 FROM range(400) r(i);
CREATE TABLE visits (id INTEGER, person INTEGER, ward VARCHAR, cost DOUBLE);
INSERT INTO visits SELECT i, i % 400, CASE i % 3 WHEN 0 THEN 'a' WHEN 1 THEN 'b' ELSE 'c' END, i % 97
FROM range(2000) r(i);
"""
TABLES = """
[database]
source = "duckdb:{place}"
[tables.people]
key = ["id"]
columns = {{ age = {{ range = [0, 120] }} }}
[tables.visits]
key = ["id"]
references = {{ person = "people.id" }}
columns = {{ ward = {{ values = ["a", "b", "c"] }}, cost = {{ range = [0, 100] }} }}
"""
UNIT = """
[protections.people]
kind = "unit"
unit = "people.id"
epsilon = 100.0
limits = { visits = 10 }
"""
CELLS = """
[protections.costs]
kind = "cells"
epsilon = 100.0
distance = { visits = "l1(cost)" }
"""
SINGLE = """
[protections.rows]
kind = "rows"
epsilon = 100.0
"""
WALKS = {
    "unit AVG ... GROUP BY": (UNIT, "", "SELECT ward, avg(cost) AS a FROM visits GROUP BY ward"),
    "cells with a soft filter": (
        CELLS,
        'public = ["people"]\n',
        "SELECT sum(cost) AS s FROM visits WHERE cost > 50 AND ward = 'a'",
    ),
    "join under rows": (
        SINGLE,
        "",
        "SELECT count(*) AS n FROM people p JOIN visits v ON v.person = p.id WHERE p.age > 30",
    ),
}


def walked(question: tuple[str, str, str], directory: Path) -> dict[str, int]:
    """Ask one question twice, and count the second time."""
    protection, public, text = question
    place = directory / "walk.duckdb"
    if not place.exists():
        with duckdb.connect(str(place)) as made:
            made.execute(ROWS)
    head = TABLES.format(place=place).replace("[tables.people]", f"{public}[tables.people]", 1)
    policy = directory / f"{abs(hash(text))}.toml"
    policy.write_text(head + protection, encoding="utf-8")
    functions: set[Any] = set()
    files: set[str] = set()
    switches = deepest = 0

    def watch(frame: FrameType, event: str, _: object) -> None:
        nonlocal switches, deepest
        name = frame.f_code.co_filename
        if event != "call" or not name.startswith(HOME):
            return
        functions.add(frame.f_code)
        files.add(name)
        above = list(_above(frame))
        deepest = max(deepest, 1 + len(above))
        caller = above[0] if above else None
        if caller is not None and caller.f_code.co_filename != name:
            switches += 1

    with secant.connect(policy=policy, ledger=directory / f"{policy.stem}.ledger") as db:
        db.sql(text, epsilon=1)
        sys.setprofile(watch)
        try:
            db.sql(text, epsilon=1)
        finally:
            sys.setprofile(None)
    return {"functions": len(functions), "files": len(files), "switches": switches, "deep": deepest}


def _above(frame: FrameType) -> Iterator[FrameType]:
    """Go through the calls of the product that led to one, from the nearest on."""
    above = frame.f_back
    while above is not None:
        if above.f_code.co_filename.startswith(HOME):
            yield above
        above = above.f_back


def main() -> None:
    """Print the three walks."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true", help="print JSON")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as made:
        found = {name: walked(question, Path(made)) for name, question in WALKS.items()}
    if asked.json:
        print(json.dumps(found))
        return
    for name, counts in found.items():
        print(f"{name:<26}" + "  ".join(f"{count:>6} {what}" for what, count in counts.items()))


if __name__ == "__main__":
    main()
