"""Tables of people and of what they do, with questions that people ask of such tables; all of it is made up.

In: the name of a set. Out: the same tables for everybody who asks, a policy, and texts. Some sets are for tuning
constants by, the others are reported apart.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from secant.errors import UsageError

Numbers = np.ndarray[Any, np.dtype[Any]]
GROUPS, ITEMS, MOST = 12, 400, 4000
AGES = 18, 90


@dataclass(frozen=True, slots=True)
class Made:
    """One set: who did what. Row i belongs to person[i]."""

    name: str
    people: int
    person: Numbers
    group: Numbers
    item: Numbers
    value: Numbers
    age: Numbers
    area: Numbers
    limit: int | None
    """What the owner declares of rows of one person: at least what anybody has."""


@dataclass(frozen=True, slots=True)
class Recipe:
    """How many people there are, how many rows each has, how values lie, and what is declared."""

    people: int
    rows: str
    values: str
    limit: int | None = None
    tuning: bool = False


RECIPES: Mapping[str, Recipe] = {
    "uniform": Recipe(5_000, "uniform", "lognormal", 40, tuning=True),
    "lognormal": Recipe(5_000, "lognormal", "by person", tuning=True),
    "survey": Recipe(50_000, "one", "normal", 1, tuning=True),
    "pareto": Recipe(5_000, "pareto", "lognormal"),
    "couriers": Recipe(5_000, "couriers", "by person", 1024),
    "small": Recipe(500, "lognormal", "lognormal"),
    "large": Recipe(50_000, "geometric", "by person", 256),
    "small survey": Recipe(500, "one", "lognormal", 1),
}

QUESTIONS: Mapping[str, str] = {
    "count": "SELECT count(*) FROM events",
    "sum": "SELECT sum(value) FROM events",
    "avg": "SELECT avg(value) FROM events",
    "stddev": "SELECT stddev(value) FROM events",
    "median": "SELECT median(value) FROM events",
    "p90": "SELECT quantile_cont(value, 0.9) FROM events",
    "min": "SELECT min(value) FROM events",
    "max": "SELECT max(value) FROM events",
    "distinct": "SELECT count(DISTINCT item) FROM events",
    "count by group": "SELECT class, count(*) FROM events GROUP BY class",
    "sum by group": "SELECT class, sum(value) FROM events GROUP BY class",
    "avg by group": "SELECT class, avg(value) FROM events GROUP BY class",
    "median by group": "SELECT class, median(value) FROM events GROUP BY class",
    "avg per person": "SELECT avg(s) FROM (SELECT person, sum(value) AS s FROM events GROUP BY person)",
    "sum by area": "SELECT area, sum(value) FROM events, people WHERE person = id GROUP BY area",
}


def make(name: str) -> Made:
    """Make the tables of a set."""
    recipe = RECIPES[name]
    draw = np.random.default_rng(zlib.crc32(name.encode()))
    people = recipe.people
    rows = _rows(recipe, draw)
    person = np.repeat(np.arange(people), rows)
    size = len(person)
    popularity = 1 / np.arange(1, ITEMS + 1)
    own = draw.lognormal(0, 0.7, people)[person]
    values = {
        "lognormal": lambda: draw.lognormal(4, 1, size),
        "by person": lambda: 60 * own * draw.lognormal(0, 0.6, size),
        "normal": lambda: draw.normal(2000, 500, size),
    }[recipe.values]()
    leaning = (person + draw.integers(0, 4, size)) % GROUPS  # everybody is in a few groups
    return Made(
        name,
        people,
        person,
        leaning,
        draw.choice(ITEMS, size, p=popularity / popularity.sum()),
        np.clip(np.round(values), 0, MOST).astype(int),
        draw.integers(*AGES, people),
        draw.integers(0, GROUPS, people),
        recipe.limit,
    )


def _rows(recipe: Recipe, draw: np.random.Generator) -> Numbers:
    people = recipe.people
    if recipe.rows == "one":
        return np.ones(people, int)
    kinds: Mapping[str, Callable[[], Numbers]] = {
        "uniform": lambda: draw.integers(1, 41, people),
        "lognormal": lambda: 1 + np.floor(draw.lognormal(2, 1, people)),
        "pareto": lambda: np.floor(2 * draw.pareto(1.5, people) + 2),
        "geometric": lambda: draw.geometric(0.08, people),
        "couriers": lambda: np.where(
            np.arange(people) < 40, draw.integers(350, 651, people), draw.poisson(6, people)
        ),
    }
    found: Numbers = np.minimum(kinds[recipe.rows](), recipe.limit or 5000)
    return found.astype(int)


def tables_of(made: Made) -> dict[str, Any]:
    """Give the tables as frames."""
    import pyarrow as pa

    events = {"person": made.person, "class": made.group, "item": made.item, "value": made.value}
    people = {"id": np.arange(made.people), "age": made.age, "area": made.area}
    return {"events": pa.table(events), "people": pa.table(people)}


def policy_of(made: Made) -> dict[str, dict[str, Any]]:
    """Give what the owner declares: ranges, keys, and in some sets how many rows a person has at most."""
    listed = {"values": list(range(GROUPS))}
    protection: dict[str, Any] = {"kind": "unit", "unit": "people.id", "epsilon": 10**6}
    protection["delta"] = 0.5
    if made.limit is not None:
        protection["limits"] = {"events": made.limit}
    return {
        "tables": {
            "people": {
                "key": "id",
                "columns": {"area": listed, "age": {"range": list(AGES), "step": 1}},
            },
            "events": {
                "references": {"person": "people.id"},
                "columns": {
                    "class": listed,
                    "value": {"range": [0, MOST], "step": 1},
                    "item": {"range": [0, ITEMS - 1], "step": 1},
                },
            },
        },
        "protections": {"people": protection},
    }


def chosen_sets(queries: str) -> tuple[str, ...]:
    """Read the names of sets, all of them by default."""
    names = tuple(x.strip() for x in queries.split(",") if x.strip())
    unknown = [x for x in names if x not in RECIPES]
    if unknown:
        raise UsageError(
            "USE-001", f"there is no set {unknown[0]!r}", hint=f"these are: {', '.join(RECIPES)}"
        )
    return names or tuple(RECIPES)
