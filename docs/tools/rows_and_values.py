"""Write docs/reference/rows-and-values.md from `python -m bench rows_and_values`: `PYTHONPATH=. python` this."""

from __future__ import annotations

import json
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FIGURES = ROOT / "bench" / "results" / "rows_and_values.json"
PAGE = ROOT / "docs" / "reference" / "rows-and-values.md"
HEAD = """# Rows and values together: cap or smooth

TPC-H b1 to b7 of the published queries on generated data of scale 0.1, where rows of `lineitem` come and go at a distance of G and its
values move by the owner's norm ([how to](../how-to/protect-rows-and-values.md)), at ε = 1. Measured by `python -m bench rows_and_values` and written here by
`docs/tools/rows_and_values.py`.

Which noise is drawn follows from public numbers. *Cap* is what one unit of distance can do at most, and Laplace noise for it has mean size cap/ε. *Chosen* is the mean
size of the noise that is drawn on these data over that, *floor* the least that smooth noise could have on any data. Up to εG = 1.2 the cap is chosen. Above it
smooth noise wins where the rows that are there move the answer less than the cap says; it loses where one of them moves it as fast
as any row could, which nobody may look up beforehand.

| query | εG | noise | cap | floor / cap | chosen / cap | error at 95 % |
|---|---|---|---|---|---|---|
"""


def main() -> None:
    """Write the page."""
    found = json.loads(FIGURES.read_text(encoding="utf-8"))["result"]
    rows = sorted(found["queries"], key=lambda r: (r["query"], r["epsilon_times_distance"]))
    lines = [
        f"| {r['query']} | {r['epsilon_times_distance']:g} | {r['noise']} | {r['cap']:.4g} "
        f"| {r['floor_over_the_cap']:.2f} | {r['over_the_cap']:.2f} | {r['error95']:.4g} |"
        for r in rows
    ]
    PAGE.write_text(HEAD + "\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
