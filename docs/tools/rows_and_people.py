"""Write docs/reference/rows-and-people.md from the figures of `python -m bench tpch joins peers`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
RESULTS = ROOT / "bench" / "results"
PEERS = json.loads((ROOT / "bench" / "peers.json").read_text(encoding="utf-8"))
PAGE = ROOT / "docs" / "reference" / "rows-and-people.md"
HEAD = """# Rows and people: how far answers are off

Measured by `python -m bench` (`python -m bench tpch joins peers`, or `secant bench tpch` and `secant bench joins`) and
written here by `docs/tools/rows_and_people.py`. Data: TPC-H, generated. How long releases take stands in
[what privacy costs in time](speed.md).
"""
TPCH = """
## The 22 queries of TPC-H, one customer protected

The original texts (`bench/suites/tpch/queries`) under `bench/suites/tpch/policies/customers.toml`, scale {scale},
ε = {epsilon} and δ = {delta} for each query. An error is |released − true| / |true| that 95 of 100 releases do not
exceed. True is what the user's own text gives, not the query with limits and clamps, so what is cut off counts as
error. *Error* is that of the median cell, *best cell* that of the most accurate one; a dash means that the cell is
often not shown at all. A table is useless if it is empty, or if its every cell is off by more than 100 %. Where noise
decides which rows are shown and no number is noisy (q20), rows too many or too few are counted against the true ones.

| query | status | error | best cell | rows | analysis |
|---|---|---|---|---|---|
"""
JOINS = """
## Joins, single rows protected

Neighbors: one row of one table more or less. All tables are protected but supplier, nation and region. Bounds are rows
of the join that one row moves, smooth for β = ε/10 with ε = 1; TPC-H has scale {scale}. *Local* is what one row moves
now; *exact* is the smooth sensitivity itself, below which no bound is sound: for triangles by Nissim, Raskhodnikova
and Smith's formula, for chains by a closed form over all pairs of the middle table, for pairs in groups 2n + 1
(`bench/suites/joins/exact.py`; all three are held against brute force in `tests/unit/cli/test_bench_joins.py`).
*Choice* is what the portfolio settles on; *ratio* is its bound over the exact one.

"""
SPEED = """
What the bound alone takes beside the plain query on DuckDB, scale {scale}, in turns in one run, in processor time of all
threads (the median of nine):

| query | plain, ms | bound, ms | bound / plain |
|---|---|---|---|
"""
SEVEN = """
## Seven simple questions beside other systems

One customer protected, limits and the range of prices at the data's own maxima, scale {scale}, ε = 1, δ = 1e-8;
median relative error over at least 1000 releases. The others' figures (`bench/peers.json`) are medians of 20 runs, so
theirs are uncertain by a third; their errors at 95 % were not kept. *By luck* is how often the median of 20 of our own
releases is as small as the best of these figures: where that is no rare event, the figure is one of the same noise.
So it is with counts: for 36 orders a customer no private system can do much better than Laplace noise of scale 36/ε,
whose median is 36 ln 2 = 25 orders and whose error at 95 % is 36 ln 20 = 108 orders, 0.072 % of them. SmartNoise SQL, run
1500 times anew (`bench/seven_peers.py`, an environment of its own, figures in `bench/seven_peers.json`), has medians of 0.0167 % for
the count and 0.0829 % for the group count, and 0.069 % and 0.38 % at 95 %: Secant's errors are 0.96 and 1.00 times those in the median, and
1.03 and 0.94 times at 95 %. Its 0.013 % and 0.07 % below were luck. Which texts the
others were asked is not written down: these are the readings in which
plain Laplace noise gives OpenDP's figures (36 orders and 155 line items a customer: 36 ln 2 over 150 000 orders is
0.017 %, 155 prices of 95 949.50 times ln 2 over the sum of l_extendedprice 0.048 %, 36 ln 2 over a fifth of the orders
0.08 %).

"""


def main() -> None:
    """Write the page from whatever was measured."""
    parts = [HEAD, _tpch(_result("tpch")), _joins(_result("joins")), _seven(_result("peers"))]
    PAGE.write_text("".join(parts), encoding="utf-8")


def _result(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((RESULTS / f"{name}.json").read_text(encoding="utf-8"))
    return found["result"]


def _tpch(found: dict[str, Any]) -> str:
    lines = []
    refusals = []
    for row in found["queries"]:
        if row["status"] == "refused":
            lines.append(f"| {row['query']} | refused | | | | |")
            why = "; ".join(" ".join(line.split()[1:]) for line in row["refused"]["details"])
            refusals.append(f"- {row['query']}: {why}. *{row['refused']['hint']}.*")
            continue
        lines.append(
            f"| {row['query']} | {row['status']} | {_percent(row['relative_error95'])} "
            f"| {_percent(row.get('best_cell', 0.0))} | {row['rows']} | {row['analysis'] or ''} |"
        )
    text = TPCH.format(**found) + "\n".join(lines) + f"\n\n{_sentence(found['summary'])}\n"
    if refusals:
        text += "\nRefused, and what to do:\n\n" + "\n".join(refusals) + "\n"
    peers = "; ".join(f"{name}: {said}" for name, said in PEERS["tpch_texts"].items())
    return text + f"\nOriginal texts that other systems answer: {peers}.\n"


def _joins(found: dict[str, Any]) -> str:
    rows = found["bounds"]["queries"]
    analyses = list(
        dict.fromkeys(analysis["analysis"] for row in rows for analysis in row["analyses"])
    )
    titles = [
        "query",
        "local",
        "exact",
        *analyses,
        "choice",
        "ratio",
        "error of the answer at 95 %",
    ]
    lines = [f"| {' | '.join(titles)} |", "|---" * len(titles) + "|"]
    for row in rows:
        bounds = {analysis["analysis"]: analysis.get("rows") for analysis in row["analyses"]}
        cells = [
            row["words"],
            _number(row["local_sensitivity"]),
            _number(row["smooth_sensitivity"]),
            *(_number(bounds.get(analysis)) for analysis in analyses),
            row["analysis"] or "refused",
            f"{row['ratio']:.2f}" if "ratio" in row else "–",
            _percent(row["relative_error95"]),
        ]
        lines.append(f"| {' | '.join(cells)} |")
    text = (
        JOINS.format(**found["bounds"]) + "\n".join(lines) + "\n" + SPEED.format(**found["speed"])
    )
    for row in found["speed"]["queries"]:
        seconds = row["seconds"]
        if "bound" in seconds:
            plain, bound = seconds["plain_processor"], seconds["bound_processor"]
            text += (
                f"| {row['query']} | {1000 * plain:.0f} | {1000 * bound:.0f} "
                f"| {bound / plain:.2f} |\n"
            )
        else:
            text += f"| {row['query']} | | refused | |\n"
    return text


def _seven(found: dict[str, Any]) -> str:
    systems = PEERS["systems"]
    titles = [
        "question",
        "Secant",
        "at 95 %",
        *systems,
        "Secant / best",
        "by luck",
    ]
    lines = [f"| {' | '.join(titles)} |", "|---" * len(titles) + "|"]
    texts = []
    for name, row in found["questions"].items():
        peers = [f"{p} %" if p is not None else "–" for p in PEERS["percent"][name]]
        if row["status"] == "refused":
            lines.append(f"| {name} | refused | – | {' | '.join(peers)} | – | – |")
            continue
        lines.append(
            f"| {name} | {row['percent']:.3g} % | {row['percent95']:.3g} % | {' | '.join(peers)} "
            f"| {row['over_best_peer']:.2f} | {row['as_small_by_luck']:.0%} |"
        )
        texts.append(f"- {name}: `{row['text']}` ({row['runs']} releases)")
    return SEVEN.format(**found) + "\n".join([*lines, "", *texts, ""])


def _percent(share: float | None) -> str:
    return "–" if share is None else f"{100 * share:.3g} %"


def _number(value: float | None) -> str:
    if value is None:
        return "–"
    return f"{value:.4g}" if value < 1e4 else f"{value:,.0f}".replace(",", " ")


def _sentence(text: str) -> str:
    return f"{text[0].upper()}{text[1:]}."


if __name__ == "__main__":
    main()
