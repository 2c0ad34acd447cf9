"""Draw docs/figures/what-noise-does.svg, what-a-limit-does.svg and soft-filter.svg from the library itself.

Nothing is drawn at random: laws, error bounds and soft filters are computed; pictures change only if Secant does.
"""

from __future__ import annotations

import tempfile
from fractions import Fraction
from pathlib import Path

import duckdb

import secant
from secant.blackbox.picture import Line, chart
from secant.mechanisms.discrete_laplace import discrete_laplace_error, discrete_laplace_tail

FIGURES = Path(__file__).parent / "figures"
LEVEL = Fraction(95, 100)


def what_noise_does() -> str:
    """Draw which counts come out where 100 is true, for three prices."""
    lines = []
    for epsilon in (Fraction(1, 4), Fraction(1, 2), Fraction(1)):
        scale = 1 / epsilon
        chances = [
            (100 + z, float(discrete_laplace_tail(scale, z) - discrete_laplace_tail(scale, z + 1)))
            for z in range(-16, 17)
        ]
        reach = discrete_laplace_error(scale, LEVEL)
        lines.append(Line(chances, f"ε = {float(epsilon):g}: within ±{reach}"))
    return chart(
        lines,
        title="A count of 100 people, released",
        x_label="released count",
        y_label="probability",
        marks=[(100, "the truth")],
    ).svg


def what_a_limit_does() -> str:
    """Draw what a limit leaves out beside the noise that it needs, for a log with few heavy users."""
    rows = [1 + int((400 / (i + 1)) ** 0.8) for i in range(400)]
    limits = range(3, 61)
    cut = [(m, float(sum(max(0, r - m) for r in rows))) for m in limits]
    noise = [(m, float(discrete_laplace_error(2 * Fraction(m), LEVEL))) for m in limits]
    both = [(m, c + e) for (m, c), (_, e) in zip(cut, noise, strict=True)]
    least = min(both, key=lambda point: point[1])[0]
    return chart(
        [Line(cut, "rows left out"), Line(noise, "noise at 95 %"), Line(both, "both", dashed=True)],
        title="At most so many rows of one person count (400 people, ε = 0.5)",
        x_label="limit",
        y_label="rows",
        marks=[(least, f"least: {least}")],
    ).svg


def soft_filter() -> str:
    """Draw how much a parcel counts under WHERE shipped >= DATE '2025-07-01', by the day it was shipped."""
    days, each = 61, 40
    facts = {
        "shipped": {"range": ["2025-01-01", "2025-12-31"]},
        "day": {"values": list(range(days))},
    }
    policy = {
        "tables": {"parcels": {"key": ["id"], "columns": facts}},
        "protections": {
            "parcels": {"kind": "cells", "epsilon": 5, "distance": {"parcels": "0.2*shipped"}}
        },
    }
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "parcels.duckdb"
        with duckdb.connect(str(file)) as data:
            data.execute(
                f"CREATE TABLE parcels AS SELECT i AS id, i // {each} AS day, "
                f"DATE '2025-06-01' + CAST(i // {each} AS INTEGER) AS shipped FROM range({days * each}) AS r(i)"
            )
        with secant.connect(f"duckdb:{file}", policy=policy, ledger=":memory:") as db:
            told = db.inspect(
                "SELECT day, count(*) AS n FROM parcels "
                "WHERE shipped >= DATE '2025-07-01' GROUP BY day",
                epsilon=1,
            )
    soft = next(t["softened"] for t in told if t["column"] == "n")
    weights = [(day - 30, count / each) for day, count in enumerate(soft)]
    hard = [(-30, 0.0), (-0.5, 0.0), (-0.5, 1.0), (30, 1.0)]
    return chart(
        [Line(hard, "as written", dashed=True), Line(weights, "as released")],
        title="WHERE shipped >= DATE '2025-07-01', five days hidden at ε = 1",
        x_label="days after the first of July",
        y_label="counts as",
    ).svg


PICTURES = {
    "what-noise-does.svg": what_noise_does,
    "what-a-limit-does.svg": what_a_limit_does,
    "soft-filter.svg": soft_filter,
}

if __name__ == "__main__":
    for name, draw in PICTURES.items():
        (FIGURES / name).write_text(draw(), encoding="utf-8")
