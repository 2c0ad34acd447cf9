"""For the owner: what an attacker would guess who knows how a column is distributed, and nothing of this row.

In: a plan, the tables that it reads, an attacker with one value, and what `inspect` says of noise. Out: chances by ε,
beside the bound that is promised. Databases are drawn from the prior and answered in this process; all other rows
together are taken for normal. What comes out is computed from protected rows, is not private, and promises nothing.
"""

from __future__ import annotations

import datetime
import math
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any

from secant.attack import Amount, aimed, chance, parse_attacker
from secant.attack.bayes import Blur, drawn_from, mean_of, points_of, right_guesses, targets_of
from secant.attack.beliefs import Alike, Named, belief_of
from secant.attack.goals import Attribute, place_of
from secant.attack.priors import Prior
from secant.errors import Refused, UsageError
from secant.numeric.arrays import Floats, np
from secant.plan import nodes as n
from secant.plan.evaluate import prepare
from secant.plan.lineage import stored_columns
from secant.plan.values import Failure
from secant.release.backend import Session
from secant.release.lower import lower
from secant.terms.catalog import Catalog
from secant.terms.policy import Policy

GRID = ("0.01", "0.03", "0.1", "0.3", "1", "3", "10")
MOST_VALUES, RESTS, SPREADS, ANSWERS = 101, 6, 60, 400
MOST_ROWS = 20_000
Tables = Mapping[str, tuple[n.Scan, list[tuple[object, ...]]]]
_ONE = "a simulation takes a question with one number: a count or a sum"


def held_tables(plan: n.Relation, session: Session) -> Tables:
    """Read the tables of a plan, whole; small ones only."""
    found: dict[str, tuple[n.Scan, list[tuple[object, ...]]]] = {}
    for scan in n.walk(plan):
        if isinstance(scan, n.Scan) and scan.table not in found:
            found[scan.table] = scan, session.rows(lower(scan, session.dialect))
    if sum(len(rows) for _, rows in found.values()) > MOST_ROWS:
        raise UsageError(
            "USE-001", f"a simulation takes tables of at most {MOST_ROWS} rows together"
        )
    return found


def simulated(
    plan: n.Relation,
    held: Tables,
    attacker: str,
    policy: Policy,
    catalog: Catalog,
    inspect: Callable[..., Sequence[Mapping[str, Any]]],
    seed: int | None = None,
) -> dict[str, Any]:
    """Simulate an attacker at every ε of a public grid."""
    aim = parse_attacker(attacker)
    goal = aim.goal
    if not isinstance(goal, Attribute):
        raise UsageError("USE-001", "a simulation takes one value, such as: people.age within 2")
    prior, described = belief_of(goal, policy.column(goal.table, goal.column), catalog)
    if prior is None or isinstance(prior, (Named, Alike)):
        raise UsageError("USE-001", "a simulation needs a prior of numbers or dates")
    if goal.table not in held or not held[goal.table][1]:
        raise UsageError("USE-001", f"the question reads no row of {goal.table}")
    generator = np.random.default_rng(seed)
    values, shares = points_of(prior, MOST_VALUES)
    truth, means, wide = _answers(plan, held, goal, prior, (values, shares), generator)
    center = None if goal.center is None else float(place_of(goal.center))
    targets = targets_of(values, float(goal.radius), center)
    watching = {p.name: aimed(aim, policy, p, catalog) for p in policy.protections}
    points = []
    for epsilon in GRID:
        scale, normal = _noise(inspect(epsilon=epsilon))
        blur = Blur(wide, scale, normal)
        drawn = (
            generator.choice(means, size=ANSWERS, p=shares) + generator.normal(size=ANSWERS) * wide
        )
        anywhere, here = (
            right_guesses(means, shares, at + blur.noise(generator, ANSWERS), blur, targets)
            for at in (drawn, np.full(ANSWERS, truth))
        )
        amount = Amount(Fraction(epsilon))
        points.append(
            {
                "epsilon": float(epsilon),
                "at_this_answer": mean_of(here),
                "on_average": mean_of(anywhere),
                "bounds": {name: chance(s, [amount]).posterior for name, s in watching.items()},
            }
        )
    before = float((targets @ shares).max())
    return {"attribute": goal.name, "prior_words": described, "prior": before, "points": points}


def _answers(
    plan: n.Relation,
    held: Tables,
    goal: Attribute,
    prior: Prior,
    points: tuple[Floats, Floats],
    generator: np.random.Generator,
) -> tuple[float, Floats, float]:
    """Give the true number, its mean by the value of one row, and how widely the other rows spread it."""
    scan, rows = held[goal.table]
    at = list(stored_columns(scan).values()).index(goal.column)
    kind = scan.columns[at].type.kind
    answer, (values, shares) = prepare(plan), points
    tables = {name: list(some) for name, (_, some) in held.items()}

    def number(drawn: list[tuple[object, ...]]) -> float:
        return _number(answer, {**tables, goal.table: drawn})

    def rest() -> list[tuple[object, ...]]:
        column = drawn_from(prior, generator, len(rows))
        return [_with(row, at, v, kind) for row, v in zip(rows, column, strict=True)]

    # The same rest for all values: what one row moves is not drowned by what the others do.
    found = []
    for _ in range(RESTS):
        drawn, target = rest(), int(generator.integers(len(rows)))
        line = []
        for value in values:
            drawn[target] = _with(rows[target], at, value, kind)
            line.append(number(drawn))
        found.append(line)
    others = [number(rest()) for _ in range(SPREADS)]
    means = np.array(found).mean(axis=0)
    # Where they stand as a whole is the mean of all databases that were drawn.
    means = means - means @ shares + np.mean(others)
    return number(rows), means, float(np.std(others, ddof=1))


def _with(row: tuple[object, ...], at: int, value: float, kind: str) -> tuple[object, ...]:
    return (*row[:at], _typed(value, kind), *row[at + 1 :])


def _number(answer: Callable[[Any], Sequence[Sequence[Any]]], tables: Mapping[str, Any]) -> float:
    try:
        rows = answer(tables)
    except Failure:
        raise Refused("REF-101", "the question fails on a database that the prior allows") from None
    value = rows[0][0] if len(rows) == 1 and len(rows[0]) == 1 else "several"
    if not isinstance(value, (int, float, Decimal, type(None))):
        raise UsageError("USE-001", _ONE)
    found = 0.0 if value is None else float(value)
    if not math.isfinite(found):
        raise Refused("REF-101", "the answer is not finite on the data, or where the prior allows")
    return found


def _typed(value: float, kind: str) -> object:
    if kind == "INTEGER":
        return round(value)
    if kind == "DATE":
        return datetime.date.fromordinal(round(value))
    return Decimal(repr(float(value))) if kind == "DECIMAL" else float(value)


def _noise(columns: Sequence[Mapping[str, Any]]) -> tuple[float, bool]:
    """Read the size of the noise from what the owner is told of the one column, and whether it is normal."""
    scale = columns[0]["noise_scale"] if len(columns) == 1 else None
    if not isinstance(scale, (int, float)) or not scale > 0:
        raise UsageError("USE-001", _ONE)
    return float(scale), "gaussian" in str(columns[0]["mechanism"])
