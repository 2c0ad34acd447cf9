"""Write docs/explanation/internet-scale.md from `python -m bench scale`: `PYTHONPATH=. python` this."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from bench.scale_model import MOST, PARTITIONS, SKEWS, internet, internet_sizes

ROOT = Path(__file__).resolve().parents[2]
FIGURES = ROOT / "bench" / "results" / "scale.json"
PAGE = ROOT / "docs" / "explanation" / "internet-scale.md"
PRICE = 0.05
HEAD = """# Internet scale

What a release costs when one machine is not enough: which statements move what between machines, how much of it there is for 10¹² rows of
10⁹ people, and what an owner can do about it. The plan is a model of sizes (`bench/scale_model.py`), held against
what Spark counts of itself (`python -m bench scale`, written here by `docs/tools/internet_scale.py`). Nobody has run 10¹² rows.

## What is shuffled

| release | read | shuffled by person | shuffled by join key | shuffled by group |
|---|---|---|---|---|
| rows protected | as the plain query | nothing | as the plain query | one record a group and task |
| values that move | as the plain query | nothing | as the plain query | one record a group and task |
| a person, sums that are cut | once for each choice of limits | one record a person and task | as the plain query | a record a group and task |
| a person, the first K rows count | twice; a third time if somebody is over the limit | a count a person and task; rows of people over the limit, at most K a task | three times the plain query | two records a group and task |

So two keys matter: the key of a join, which the plain query pays for as well, and the key of the person, which is the price of protecting people.

- **A sum is cheaper than a count of rows.** What one person adds is added up in each task before anything is sent. The statement
  reads the table once.
- **Truncation saves a shuffle where nobody is over the limit.** Only counts are sent, and Spark drops the branch that ranks rows when it
  sees that its list of people is empty. Where somebody is over it, each task sends at most K rows of a person, however many there are.
- **Over a join the rows are joined again**: Spark has no way to keep a common table expression. Ranking all rows at once would shuffle
  less (last case below), but sorts every row: at scale 1 it took 18 processor seconds where what is sent took 15, and 3.2 where it took 0.6
  without a join. So it is not what is sent.
- **Tables that are kept by person need no shuffle by person.** `CLUSTERED BY (person) INTO n BUCKETS` for a Parquet table
  of Spark's catalog is all; statements stay the same.

## Held against Spark

TPC-H, one customer protected, a server with two cores; Spark sends tables of up to 10 MB times the scale to all, so that its plans are
alike. Each cell is *foreseen / counted by Spark*. Which exchanges a release has was read off Spark's plans at scale {first}; their sizes come
from the model. Bytes are compressed: what compression leaves is taken from scale {first}, one factor a case, so bytes say nothing there.
At scale 10 nine people have more orders than count, which the model is told, as it is told how unevenly files are divided into tasks; both were
added to it after scale 10 was first seen.

| release | scale | exchanges | rows read | records shuffled | ratio | bytes shuffled | ratio |
|---|---|---|---|---|---|---|---|
{checked}

## 10¹² rows, 10⁹ people

{tasks:,.0f} tasks of 128 MB read the rows, {partitions:,.0f} tasks stand behind an exchange, the first {most:,} rows of a person count; rows lie
in tasks at random. *Skew* is Zipf's exponent: 0 is a thousand rows for everybody, at 1 the busiest person has {busiest:.1e} rows. *At one key* is how
many records of one person meet in one task: what a straggler waits for. Bytes are before compression, which leaves {least:.0%} to {most_left:.0%}.
Core hours are what Spark used for a row that is read and a record that is shuffled at scale {last}, times their number; dollars are {price} for such an hour.

| release | skew | rows read | records by person | records by join key | terabytes | at one key | core hours | dollars |
|---|---|---|---|---|---|---|---|---|
{foreseen}

{closing}"""
CLOSING = """What follows from it:

- Rows and values cost what the plain query costs, at any scale.
- A person costs one more shuffle of the table, unless it is kept by person; then nothing. That is the one thing to arrange beforehand.
- Adding up before sending helps little where rows lie at random: of a thousand rows of a person hardly two are in one task. It helps where
  people are uneven, and where a table is kept by time or by place.
- Skew is no danger to sums and counts (a task gets one record a person from each task before it), but it is to rows that are ranked over a join: all
  rows of the busiest person meet in one task. Spark divides such a task for joins, not for ranking. Declare a limit on the table that names the person,
  or ask for a sum.

What the model leaves out: files that are skipped by a filter, tasks that fail and run again, and the network between machines,
which a server on one machine does not have.
"""


def main() -> None:
    """Write the page."""
    found = json.loads(FIGURES.read_text(encoding="utf-8"))["result"]
    PAGE.write_text(page(found), encoding="utf-8")


def page(found: Mapping[str, Any]) -> str:
    """Give the page for what was measured."""
    checked = found["checked"]
    scales = sorted({row["scale"] for row in checked}, key=float)
    left = [row["bytes"] / row["raw_bytes"] for row in checked if row["bytes"] > 10_000]
    busiest = max(row["heaviest"] for row in _stages_of(1.0))
    return HEAD.format(
        first=scales[0],
        last=scales[-1],
        checked="\n".join(map(_checked, checked)),
        foreseen="\n".join(foreseen(checked, scales[-1])),
        tasks=internet_sizes(0.0).item_tasks,
        partitions=PARTITIONS,
        most=MOST,
        busiest=busiest,
        least=min(left),
        most_left=max(left),
        price=PRICE,
        closing=CLOSING,
    )


def _stages_of(skew: float) -> list[dict[str, Any]]:
    return [stage for case in internet() if case["skew"] == skew for stage in case["stages"]]


def _checked(row: Mapping[str, Any]) -> str:
    cells = [
        row["case"],
        row["scale"],
        f"{row['foreseen_stages']} / {row['stages']}",
        f"{row['foreseen_read']:,} / {row['read']:,}",
        f"{row['foreseen_records']:,} / {row['records']:,}",
        f"{row['records_ratio']:.3f}",
        f"{row['foreseen_bytes']:,} / {row['bytes']:,}",
        f"{row['bytes_ratio']:.3f}",
    ]
    return f"| {' | '.join(cells)} |"


def foreseen(checked: Sequence[Mapping[str, Any]], scale: str) -> Iterable[str]:
    """Give the rows of the table for 1e12 rows."""
    last = [row for row in checked if row["scale"] == scale]
    each = {row["case"]: row["cpu"] / (row["read"] + row["records"]) for row in last}
    for case in sorted(internet(), key=lambda c: SKEWS.index(c["skew"])):
        stages, name = case["stages"], case["case"]
        read = sum(s["records"] for s in stages if not s["by"])
        person, order = (
            sum(s["records"] for s in stages if s["by"] == key) for key in ("person", "order")
        )
        handled = read + sum(s["records"] for s in stages if s["by"])
        hours = each[name] * handled / 3600 if name in each else None
        cells = [
            name,
            f"{case['skew']:g}",
            f"{read:.2g}",
            f"{person:.2g}",
            f"{order:.2g}",
            f"{sum(s['bytes'] for s in stages) / 1e12:,.2g}",
            f"{max(s['heaviest'] for s in stages):.2g}",
            "not sent" if hours is None else f"{hours:,.0f}",
            "" if hours is None else f"{PRICE * hours:,.0f}",
        ]
        yield f"| {' | '.join(cells)} |"


if __name__ == "__main__":
    main()
