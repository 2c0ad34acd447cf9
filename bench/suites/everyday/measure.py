"""Release every ordinary question many times, and divide its error by that of the oracle.

In: names of sets. Out: one record per question, set and epsilon, as `secant bench everyday --json` writes it. Every
release takes the way of an analyst's; statements that do not differ between two of them are run once.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any

import secant
from bench.suites.everyday.oracle import DELTA, ORACLES
from bench.suites.everyday.sets import QUESTIONS, RECIPES, make, policy_of, tables_of
from bench.suites.honesty.measure import lacking_in
from bench.suites.tpch.rehearsal import Remembering, compiled, engine_of, plain_statement
from secant.engine import Connection
from secant.engines.print.print_sql import lower
from secant.errors import SecantError
from secant.policy.file import policy_of as read_policy
from secant.release.inferred_facts import SHARE, find

Row = dict[str, Any]
LEAST = {"median": 0.5, "p90": 0.5, "min": 0.5, "max": 0.5, "median by group": 0.5}
"""Where values are whole numbers, an error of half a step is none."""
FLOOR = 0.5
"""A ratio below this counts as this: luck with one question must not pay for another."""


def measure(
    names: Sequence[str], epsilons: Sequence[Fraction], repeat: int, asked: Sequence[str] = ()
) -> Iterator[Row]:
    """Give a record for each question, when it is ready."""
    for name in names:
        made = make(name)
        policy = read_policy(**policy_of(made))
        with secant.connect(tables_of(made), policy=policy, ledger=None) as db:
            engine = Remembering(engine_of(db))
            for question in asked or QUESTIONS:
                for epsilon in epsilons:
                    error = ORACLES[question](made, float(epsilon))
                    least = max(error, LEAST.get(question, 0.0))
                    yield {
                        "data": name,
                        "tuning": RECIPES[name].tuning,
                        "query": question,
                        "epsilon": str(epsilon),
                        "oracle": least,
                        **_ask(db, engine, QUESTIONS[question], epsilon, repeat, least),
                    }


def _ask(
    db: Connection, engine: Remembering, text: str, epsilon: Fraction, repeat: int, oracle: float
) -> Row:
    try:
        truth = {row[:-1]: _number(row[-1]) for row in engine.rows(plain_statement(db, text))}
        errors = [_error(truth, _released(db, engine, text, epsilon)) for _ in range(repeat)]
    except SecantError as refused:
        return {"status": "refused", "refused": refused.to_dict()}
    error = math.sqrt(statistics.fmean(errors))
    middle = math.sqrt(statistics.median(errors))
    return {
        "status": "answered",
        "releases": repeat,
        "error": error,
        "ratio": max(FLOOR, error / oracle),
        "median_ratio": middle / oracle,
    }


def _released(
    db: Connection, engine: Remembering, text: str, epsilon: Fraction
) -> Mapping[tuple[object, ...], float]:
    """Release once; what the question lacks is found anew, at its price."""
    lacking, rest = lacking_in(db, text), epsilon
    if lacking:
        rest = epsilon - epsilon * SHARE
        paid = epsilon * SHARE
        found = find(
            lacking,
            db.policy,
            db.catalog,
            paid,
            lambda statement: engine.rows(lower(statement, engine.dialect))[0],
        )
        db = db._having(found)
    rows = compiled(db, text, rest, Fraction(DELTA)).release(engine)
    return {row[:-1]: _number(row[-1]) for row in rows}


def _number(value: object) -> float:
    return 0.0 if value is None else float(str(value))


def _error(
    truth: Mapping[tuple[object, ...], float], shown: Mapping[tuple[object, ...], float]
) -> float:
    """Give the mean squared error over groups; a group that is not shown is shown as nothing."""
    return statistics.fmean((shown.get(key, 0.0) - value) ** 2 for key, value in truth.items())


def overall(rows: Sequence[Row]) -> tuple[float, float, int] | None:
    """Give the geometric mean of ratios, the worst, and how many there are."""
    ratios = [float(row["ratio"]) for row in rows if row["status"] == "answered"]
    return (statistics.geometric_mean(ratios), max(ratios), len(ratios)) if ratios else None
