"""Write docs/reference/speed.md, the one page of what privacy costs in time: `make bench`, or `python -m bench.page`.

In: the figures of `bench.speed`, measured now or, with --again, those of the last run. Out: the page, and beside it the
figures as JSON. A ratio that differs by more than a fifth from the run before on the same machine is marked.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import platform
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from bench import memory, speed
from secant.display.curves import Line, chart

PAGE = Path(__file__).resolve().parents[1] / "docs" / "reference" / "speed.md"
FIGURES = PAGE.with_suffix(".json")
GROWTH = PAGE.parents[1] / "figures" / "time-by-scale.svg"
CHANGED = 0.2
HEAD = """# What privacy costs in time

Written by `make bench`; `docs/reference/speed.json` holds the figures. *Ratio* is the time of all that a release needs,
binding of its statements and noise included, over the time of the plain query on the same engine, both in turns in one
process; the best of {repeat} runs each. On DuckDB it is the time of the processors, on a server the time on the wall;
there the plain query runs on a connection of Secant's, with its settings (docs/how-to/use-postgresql.md).
*Floor* is what a release rests on at the least, over the plain query: under `unit` one hash aggregate by unit over its
rows; for joins under `rows` the answer, and its largest table counted by the key that it is joined by (one statement
may give both, for a little less); elsewhere counting the rows that the bound rests on. *Before* is the ratio of the
run before, if it was on this machine;
bold where it differs by more than a fifth. TPC-H at scale {scale}, {processors} processors.
"""
WHERE = """## Where the time of four derivative queries goes

Looked at once, in DuckDB's profiles at c84ee16 and scale 1, in milliseconds of processors, the statement of b6 again
at 5fbc37a and that of b16 at ad883c8, on two processors that others used, too, before stored columns decided what
they can (b6 is a sixth faster since); `make bench` does not repeat it. *Rows counted* is the floor. All statements
are planned twice, when they are checked and when they run: DuckDB 2.0 plans a prepared statement again. Half of the
planning is parsing, and all of it is most of what b3 and b10 take.

| question | plain | rows counted | with what is computed of a row first | the whole statement | binding it |
|---|---|---|---|---|---|
| b4 | 42 | 54 | 73 | 108 | 6 |
| b6 | 38 | 30 | 108 | 169 (before: 273) | 8 |
| b16 | 14 | 19 | | 50 (before: 109) | 5 |
| b19 | 71 | 42 | 66 | 81 | 16 |

- **b4** joins a year of orders where the plain query joins 90 days, 185,000 rows for 28,000: a bound falls slowly.
  Then rows are gathered by order, a hash aggregate of 45,000 groups: the last third.
- **b6** has 1.5 million rows near its edge, where the plain query sums 2 % of them after filters that the scan
  itself applies. Four columns of each are moved into their ranges and become floats, and the least of three margins is
  found: about 60 ms. Rows are then gathered by margin, and a bound that depends on the
  price, too, is computed once for each margin: two exponentials for each row took 100 ms.
- **b16** filters by a list of sizes, and every size lies near one of the list: 614,000 joined rows where the plain
  query has 99,000. They are counted by part, and what they add is computed once for each size and each count.
- **b12_1** is its join: 457,000 line items near the edge, where the plain query joins 31,000. Each carries one margin
  through it instead of three dates.
- **b19** has 2,489 rows. What it costs is the join, as in the plain query, and binding a statement of 10,000
  letters.
"""
Row = Mapping[str, Any]
Suites = Mapping[str, Mapping[str, Row]]
Growth = Mapping[str, Mapping[str, Mapping[str, Row]]]
"""Scale -> query -> plain or release -> what was measured."""


def this_machine() -> str:
    """Tell machines apart, and nothing of them."""
    named = f"{platform.node()} {platform.machine()} {os.cpu_count()}"
    return hashlib.sha256(named.encode()).hexdigest()[:12]


def page(found: Mapping[str, Any], before: Suites) -> str:
    """Write the page; `before` are the suites of the run before, or none."""
    lines = [HEAD.format(**found)]
    for name, rows in found["suites"].items():
        mean, worst, most = speed.summary(rows)
        lines += [
            f"## {name[0].upper()}{name[1:]}",
            "",
            f"Geometric mean {mean:.2f}, worst {most:.2f} ({worst}).",
            "",
            "| question | plain, ms | release, ms | ratio | floor | before |",
            "|---|---|---|---|---|---|",
            *_lines(rows, before.get(name, {})),
            "",
        ]
    return "\n".join([*lines, WHERE, *_growth(found.get("growth", {}))])


def _growth(found: Growth) -> Iterator[str]:
    """Write how memory and time grow with the data."""
    if not found:
        return
    scales = list(found)
    yield "## As the data grow"
    yield ""
    yield "TPC-H with one customer protected, each query in a process of its own (`python -m bench.memory`):"
    yield "processor time of a release by scale, and how many megabytes more than the plain query it held at most. Its"
    yield f"engine is allowed {memory.MORE} MB more than the plain query held: what does not fit is spilled."
    yield ""
    yield f"![Processor time of releases by scale](../figures/{GROWTH.name})"
    yield ""
    yield f"| question | {' | '.join(f'seconds at {s} | MB more at {s}' for s in scales)} |"
    yield "|---" * (1 + 2 * len(scales)) + "|"
    for query in found[scales[0]]:
        cells = []
        for scale in scales:
            plain, release = (found[scale][query][way] for way in ("plain", "release"))
            if "refused" in release:
                cells.append("refused |")
                continue
            more = max(0.0, release["megabytes"] - plain["megabytes"])
            cells.append(f"{release['seconds']:.2f} | {more:.0f}")
        yield f"| {query} | {' | '.join(cells)} |"
    yield ""


def growth_picture(found: Growth) -> str:
    """Draw how the time of the five dearest releases grows with the data, beside a line that grows as they do."""
    times = {
        query: [
            (float(scale), row["seconds"])
            for scale in found
            if "seconds" in (row := found[scale][query]["release"])
        ]
        for query in next(iter(found.values()))
    }
    dearest = sorted(times, key=lambda query: -times[query][-1][1])[:5]
    lines = [Line(times[query], query) for query in sorted(dearest)]
    straight = [(float(scale), float(scale)) for scale in found]
    return chart(
        [*lines, Line(straight, "as the data", dashed=True)],
        title="Releases of TPC-H, one customer protected",
        x_label="scale",
        y_label="processor time, seconds",
        log_x=True,
        log_y=True,
    ).svg


def _lines(rows: Mapping[str, Row], before: Mapping[str, Row]) -> Iterator[str]:
    for name, row in rows.items():
        if "ratio" not in row:
            yield f"| {name} | | | refused | | |"
            continue
        plain, release = (1000 * row["seconds"][part] for part in ("plain", "release"))
        floor = "" if row["floor"] is None else f"{row['floor']:.2f}"
        earlier = _before(row["ratio"], before.get(name, {}).get("ratio"))
        times = f"{plain:.1f} | {release:.1f} | {row['ratio']:.2f}"
        yield f"| {name} | {times} | {floor} | {earlier} |"


def _before(ratio: float, earlier: float | None) -> str:
    """Show the earlier ratio, in bold where it differs much.

    >>> _before(1.0, 1.1), _before(1.0, 1.3), _before(1.0, None)
    ('1.10', '**1.30**', '')
    """
    if earlier is None:
        return ""
    differs = abs(ratio / earlier - 1) > CHANGED
    return f"**{earlier:.2f}**" if differs else f"{earlier:.2f}"


def kept_figures(found: Mapping[str, Any]) -> str:
    """Give what is kept of the figures: to four digits, a question per line, so that a new run reads as a difference.

    >>> print(kept_figures({"scale": "1", "suites": {"ours": {"b1": {"ratio": 1.23456}, "b2": {}}}}))
    {
     "scale": "1",
     "suites": {
      "ours": {
       "b1": {"ratio": 1.235},
       "b2": {}
      }
     }
    }
    <BLANKLINE>
    """
    return _laid_out(_short(found), 3, "") + "\n"


def _short(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {name: _short(part) for name, part in value.items()}
    return float(f"{value:.4g}") if isinstance(value, float) else value


def _laid_out(value: Any, depth: int, indent: str) -> str:
    """Give JSON whose outermost mappings have a line for each part."""
    if not depth or not isinstance(value, Mapping):
        return json.dumps(value)
    parts = (
        f"{indent} {json.dumps(name)}: {_laid_out(part, depth - 1, indent + ' ')}"
        for name, part in value.items()
    )
    return "{\n" + ",\n".join(parts) + f"\n{indent}}}"


def main() -> None:
    """Measure, and write page and figures."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--scale", default="1")
    parser.add_argument("--repeat", type=int, default=speed.REPEAT)
    parser.add_argument(
        "--postgres", help="address of an empty database, or of one that this filled"
    )
    parser.add_argument("--only", default="", help="measure suites with this word; keep the others")
    parser.add_argument("--growth", type=Path, help="figures of `python -m bench.memory`")
    parser.add_argument(
        "--again", type=Path, help="figures to write the page from, without measuring"
    )
    chosen = parser.parse_args()
    kept = json.loads(FIGURES.read_text(encoding="utf-8")) if FIGURES.exists() else {}
    if chosen.again is None:
        found = speed.run(chosen.scale, chosen.repeat, chosen.postgres, chosen.only)
    else:
        found = json.loads(chosen.again.read_text(encoding="utf-8"))
    if chosen.growth is not None:
        found["growth"] = json.loads(chosen.growth.read_text(encoding="utf-8"))
    elif "growth" in kept:
        found["growth"] = kept["growth"]
    found |= {"machine": this_machine(), "processors": os.cpu_count()}
    alike = all(kept.get(key) == found[key] for key in ("machine", "scale"))
    measured = found["suites"]
    before = {
        name: rows for name, rows in kept.get("suites", {}).items() if alike and name in measured
    }
    if kept:  # what was not measured now, a server among it, stays as it was
        found["suites"] = {**kept["suites"], **measured}
        found["repeat"] = min(kept["repeat"], found["repeat"])  # the page says one number of all
    PAGE.write_text(page(found, before), encoding="utf-8")
    if "growth" in found:
        GROWTH.write_text(growth_picture(found["growth"]), encoding="utf-8")
    FIGURES.write_text(kept_figures(found), encoding="utf-8")


if __name__ == "__main__":
    main()
