"""How fast patterns are merged and smoothed: the multiplicity analysis on self-joins with a million patterns.

`python -m bench patterns` writes bench/results/patterns.json. A table of edges is joined with itself: paths of two and
triangles. The engine groups; what is measured here is everything after it, from tuples of figures to one smooth bound:
numbering the values, looking counts up, water filling for every pattern, merging the maps of all copies.
"""

from __future__ import annotations

import time
from fractions import Fraction
from typing import Any

import duckdb
import numpy as np

from secant.engines.print.print_sql import lower
from secant.plan import nodes as n
from secant.plan.facts.facts import Facts
from secant.plan.rewrites.enforce import MeasuredAggregate, enforce
from secant.plan.rewrites.rewrite import normalize
from secant.policy.policy import Policy, Protection
from secant.schema import types as t
from secant.schema.catalog import Table, catalog
from secant.sensitivity.certificate import Certificate, Surveyed
from secant.sensitivity.interface import Request
from secant.sensitivity.multiplicity.analysis import MultiplicityAnalysis
from secant.sql.bind import from_sql

BETA = Fraction(1, 10)
CATALOG = catalog(Table("edge", (("src", t.INTEGER), ("dst", t.INTEGER)), ()))
POLICY = Policy("", {}, (Protection("rows", "rows", Fraction(1), tables=("edge",)),))
QUESTIONS = {
    "same pair three times": (
        """SELECT count(*) FROM edge a, edge b, edge c
        WHERE a.src = b.src AND a.dst = b.dst AND b.src = c.src AND b.dst = c.dst""",
        "pairs",
    ),
    "paths of two": ("SELECT count(*) FROM edge a, edge b WHERE a.dst = b.src", "pairs"),
    "triangles": (
        """SELECT count(*) FROM edge a, edge b, edge c
        WHERE a.dst = b.src AND b.dst = c.src AND c.dst = a.src""",
        "graph",
    ),
}


def run() -> dict[str, Any]:
    """Measure every question once; figures come from DuckDB."""
    generator = np.random.default_rng(7)
    found: dict[str, Any] = {}
    with duckdb.connect() as engine:
        for name, (text, data) in QUESTIONS.items():
            engine.execute("CREATE OR REPLACE TABLE edge (src BIGINT, dst BIGINT)")
            edges = _pairs(generator) if data == "pairs" else _graph(generator)
            engine.register("drawn", {"src": edges[:, 0].copy(), "dst": edges[:, 1].copy()})
            engine.execute("INSERT INTO edge SELECT src, dst FROM drawn")
            found[name] = _measured(engine, text, len(edges))
    return found


def _pairs(generator: np.random.Generator) -> Any:
    """Different pairs, some of them several times; four statements group them: 1.4 million patterns."""
    pairs = generator.integers(0, 200_000, (350_000, 2))
    return np.concatenate([pairs, pairs[:15_000], pairs[:1_000]])


def _graph(generator: np.random.Generator) -> Any:
    """A graph whose degrees follow a power law, with about a million pairs that a path of two connects."""
    weights = 1.0 / np.arange(1, 20_001) ** 0.6
    chances = weights / weights.sum()
    return np.unique(generator.choice(20_000, (36_000, 2), p=chances), axis=0)


def _measured(engine: Any, text: str, edges: int) -> dict[str, Any]:
    survey = _surveyed(text).surveys[0]
    started = time.perf_counter()
    figures = tuple(tuple(engine.execute(lower(s)).fetchall()) for s in survey.statements)
    counted, busy = time.perf_counter(), time.process_time()
    bound = survey.rows(BETA, figures)
    done, idle = time.perf_counter(), time.process_time()
    return {
        "edges": edges,
        "patterns": sum(len(f) for f in figures),
        "engine_seconds": round(counted - started, 2),
        "merge_seconds": round(done - counted, 2),
        "merge_processor_seconds": round(idle - busy, 2),
        "bound": round(float(bound), 2),
    }


def _surveyed(text: str) -> Surveyed:
    (aggregate,) = [
        x for x in n.walk(normalize(from_sql(text, CATALOG))) if isinstance(x, n.Aggregate)
    ]
    release = enforce(aggregate, "release1", Facts(POLICY, CATALOG), POLICY.protections)
    assert isinstance(release, MeasuredAggregate)
    found = MultiplicityAnalysis().bound(
        Request(release, Facts(POLICY, CATALOG), POLICY.protections[0])
    )
    assert isinstance(found, Certificate)
    (bound,) = found.bounds.values()
    assert isinstance(bound, Surveyed)
    return bound


if __name__ == "__main__":
    print(run())
