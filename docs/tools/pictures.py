"""Draw docs/figures/what-noise-does.svg, what-a-limit-does.svg, soft-filter.svg and next-ship.svg from the library.

Nothing is drawn at random: laws, error bounds and soft filters are computed; pictures change only if Secant does.
"""

from __future__ import annotations

import tempfile
from fractions import Fraction
from pathlib import Path

import duckdb

import secant
from secant.display.curves import Line, chart
from secant.noise.mechanisms.discrete_laplace import discrete_laplace_error, discrete_laplace_tail

FIGURES = Path(__file__).parents[1] / "figures"
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


def next_ship() -> str:
    """Draw how far the time to the port moves with a ship 500 km away, by its speed, for three smoothnesses."""
    speeds = list(range(2, 51))
    lines = [Line([(v, 50 / v) for v in speeds], "the derivative itself", dashed=True)]
    for beta in (0.1, 0.05, 0.02):
        policy = {
            "tables": {
                "ships": {
                    "key": ["ship"],
                    "columns": {
                        "x": {"range": [-4000, 4000]},
                        "y": {"range": [-4000, 4000]},
                        "speed": {"range": [1, 50]},
                        "ship": {"values": speeds},
                    },
                }
            },
            "protections": {
                "ships": {
                    "kind": "cells",
                    "epsilon": 5,
                    "beta": beta,
                    "distance": {"ships": "l1(l2(0.02*x, 0.02*y), 10*ln(speed))"},
                }
            },
        }
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "ships.duckdb"
            with duckdb.connect(str(file)) as data:
                data.execute(
                    "CREATE TABLE ships AS SELECT i AS ship, 300.0 AS x, 400.0 AS y, CAST(i AS DOUBLE) AS speed "
                    f"FROM range({speeds[0]}, {speeds[-1] + 1}) AS r(i)"
                )
            with secant.connect(f"duckdb:{file}", policy=policy, ledger=":memory:") as db:
                told = db.inspect(
                    "SELECT ship, min(sqrt(x*x + y*y) / speed) AS hours FROM ships GROUP BY ship",
                    epsilon=1,
                )
        found = next(t["sensitivity"] for t in told if t["column"] == "hours")
        lines.append(Line(list(zip(speeds, found, strict=True)), f"smooth bound, β = {beta:g}"))
    return chart(
        lines,
        title="Time to the port of a ship 500 km away",
        x_label="speed, km/h",
        y_label="hours moved, a unit of distance",
    ).svg


PICTURES = {
    "what-noise-does.svg": what_noise_does,
    "what-a-limit-does.svg": what_a_limit_does,
    "soft-filter.svg": soft_filter,
    "next-ship.svg": next_ship,
}

if __name__ == "__main__":
    for name, draw in PICTURES.items():
        (FIGURES / name).write_text(draw(), encoding="utf-8")
