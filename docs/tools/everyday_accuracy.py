"""Write docs/reference/everyday-accuracy.md from the figures of `python -m bench everyday`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
FIGURES = ROOT / "bench" / "results" / "everyday.json"
PAGE = ROOT / "docs" / "reference" / "everyday-accuracy.md"
HEAD = """# How far everyday statistics are off

Mean absolute error over draws on made-up tables of 5000 rows (ages, years of school, pay), made by
`python -m bench everyday` and written here by `docs/tools/everyday_accuracy.py`. *share* is of those of 65 and more;
of a histogram (10 bins), a covariance matrix (3 columns) and a regression (2 slopes) it is the mean over all parts.
Neighbors add or remove a row, in columns marked *replace* they replace one; OpenDP replaces rows for sums and adds or
removes them for histograms; so does diffprivlib 0.6.6, which ran in an environment of its own
(`bench/everyday_peers.py`). What a peer does not have is left out. Figures are means over 60 draws, of diffprivlib over
240, and uncertain by a quarter, those of covariances and regressions by a half.
"""
WIDE = """
## Without bounds

Student's t with two degrees, times 10, around 40: values that no range is known of. `delta_f` is 20/n and `empty` 30;
beside it the same statistic with bounds of ±1,000,000, as somebody would guess to be safe.
"""


def _listed(rows: list[dict[str, Any]]) -> list[str]:
    names = list(rows[0])
    lines = ["| " + " | ".join(names) + " |", "|---" * len(names) + "|"]
    for row in rows:
        cells = [f"{v:.3g}" if isinstance(v, float) else str(v) for v in row.values()]
        lines.append("| " + " | ".join("" if cell == "None" else cell for cell in cells) + " |")
    return lines


def page() -> str:
    """Give the page."""
    found = json.loads(FIGURES.read_text(encoding="utf-8"))["result"]
    first, second = _listed(found["mean_absolute_error"]), _listed(found["without_bounds"])
    return "\n".join([HEAD, *first, WIDE, *second]) + "\n"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
