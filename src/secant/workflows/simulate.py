"""For the owner: what an attacker would guess who knows how a column is distributed, and nothing of this row.

In: a question's jobs at several ε, the tables that it reads, and an attacker with one value. Out: chances by ε, beside
the bound that is promised. Only one count or sum is taken, whose rows add independently of each other and whose noise
has one public size: then the law of an answer is computed, row by row. All else is refused, because what is said of it
would be wrong. What comes out is computed from protected rows, is not private, and promises nothing.
"""

from __future__ import annotations

import datetime
from collections import Counter
from collections.abc import Callable, Mapping
from decimal import Decimal
from fractions import Fraction
from typing import Any

from secant.attack import Amount, aimed, chance, parse_attacker
from secant.attack.bayes import Added, Law, cells_of, chances, points_of, targets_of
from secant.attack.beliefs import Alike, Named, belief_of
from secant.attack.goals import Attribute, number_of_text
from secant.engines.backend import Session
from secant.engines.print.print_sql import lower
from secant.errors import Refused, UsageError
from secant.noise.measure_noise import LawfulNoise
from secant.noise.mechanisms.whole import WholeNormal
from secant.numeric.arrays import Floats, np
from secant.plan import nodes as n
from secant.plan.evaluate.evaluate import prepare
from secant.plan.evaluate.values import Failure
from secant.plan.facts.lineage import stored_columns
from secant.plan.rewrites.measures import Measure
from secant.policy.policy import Policy
from secant.release.measured import in_steps
from secant.release.release_plan import ReleasePlan
from secant.schema.catalog import Catalog

GRID = ("0.01", "0.03", "0.1", "0.3", "1", "3", "10")
MOST_VALUES, MOST_KINDS, MOST_GUESSED = 101, 300, 8
MOST_ROWS = 20_000
Row = tuple[object, ...]
Tables = Mapping[str, tuple[n.Scan, list[Row]]]
_ADDING = (n.Project, n.Filter, n.Join, n.Truncate)
_ONE = "a simulation takes a question for one count or sum, without groups, whose noise has one public size"


def stored_tables(plan: n.Relation, session: Session) -> Tables:
    """Read the tables of a plan, whole; small ones only."""
    tables: dict[str, tuple[n.Scan, list[Row]]] = {}
    for scan in n.walk(plan):
        if isinstance(scan, n.Scan) and scan.table not in tables:
            tables[scan.table] = scan, session.rows(lower(scan, session.dialect))
    if sum(len(rows) for _, rows in tables.values()) > MOST_ROWS:
        raise UsageError(
            "USE-001", f"a simulation takes tables of at most {MOST_ROWS} rows together"
        )
    return tables


def simulated(
    jobs: Mapping[str, ReleasePlan], tables: Tables, attacker: str, policy: Policy, catalog: Catalog
) -> dict[str, Any]:
    """Simulate an attacker at every ε of a public grid."""
    aim = parse_attacker(attacker)
    goal = aim.goal
    if not isinstance(goal, Attribute):
        raise UsageError("USE-001", "a simulation takes one value, such as: people.age within 2")
    prior, described = belief_of(goal, policy.column(goal.table, goal.column), catalog)
    if prior is None or isinstance(prior, (Named, Alike)):
        raise UsageError("USE-001", "a simulation needs a prior of numbers or dates")
    if goal.table not in tables or not tables[goal.table][1]:
        raise UsageError("USE-001", f"the question reads no row of {goal.table}")
    values, shares = points_of(prior, MOST_VALUES)
    center = None if goal.center is None else float(number_of_text(goal.center))
    targets = targets_of(values, float(goal.radius), center)
    watching = {p.name: aimed(aim, policy, p, catalog) for p in policy.protections}
    points, counted = [], None
    for epsilon, job in jobs.items():
        aggregate, measure, law = _one_sum(job, goal)
        if counted is None:  # what rows add does not depend on epsilon
            counted = _adding(aggregate, measure, tables, goal, values)
        here, anywhere = _averages(*counted, law, shares, targets)
        amount = Amount(Fraction(epsilon))
        points.append(
            {
                "epsilon": float(epsilon),
                "at_this_answer": here,
                "on_average": anywhere,
                "bounds": {name: chance(s, [amount]).posterior for name, s in watching.items()},
            }
        )
    before = float((targets @ shares).max())
    return {"attribute": goal.name, "prior_words": described, "prior": before, "points": points}


def _one_sum(job: ReleasePlan, goal: Attribute) -> tuple[n.Aggregate, Measure, Law]:
    """Give the one sum that is released, and its noise; refuse what is not a sum over single rows of the table."""
    refused = UsageError(
        "USE-001", _ONE, hint='such as "SELECT sum(age) FROM people WHERE age > 30"'
    )
    if len(job.prepared.bounded) != 1 or len(job.traced.outputs) != 1:
        raise refused
    (b,) = job.prepared.bounded
    release = b.release
    if len(release.measures) != 1 or release.ranked or release.exact.keys:
        raise refused
    (measure,), (call,) = release.measures, release.exact.aggregations
    noise = job.noise.noise[measure.column]
    relations = [x for x in n.walk(release.exact.input) if isinstance(x, n.Relation)]
    mine = [x for x in relations if isinstance(x, n.Scan) and x.table.lower() == goal.table.lower()]
    if (
        not isinstance(noise, LawfulNoise)
        or noise.candidates(1)  # a limit that is chosen privately changes what rows add
        or measure.preprocessed is not None
        or call.function not in ("count", "sum")
        or call.distinct
        or not _is_shown(job, measure)
        or len(mine) != 1
        or not all(isinstance(x, (n.Scan, *_ADDING)) for x in relations)
        or any(isinstance(x, n.Join) and x.kind == "left" for x in relations)
        or any(n.has_subquery(x) for x in n.walk(release.exact) if isinstance(x, n.Scalar))
    ):
        raise refused
    return release.exact, measure, Law(float(noise.law.size), isinstance(noise.law, WholeNormal))


def _is_shown(job: ReleasePlan, measure: Measure) -> bool:
    """Whether the answer is the measure itself, at most moved up to 0: beside it stands the number as it was drawn."""
    (output,) = job.traced.outputs
    expression = _without_attempts(job.traced.made_of(output))
    if isinstance(expression, n.Call) and expression.function == "greatest":
        inner, *limits = expression.arguments
        zero = all(isinstance(x, n.Literal) and x.value == 0 for x in limits)
        expression = _without_attempts(inner) if zero else None
    return isinstance(expression, n.Column) and expression.name == measure.column


def _without_attempts(scalar: n.Scalar | None) -> n.Scalar | None:
    while isinstance(scalar, n.Attempt):
        scalar = scalar.operand
    return scalar


def _adding(
    aggregate: n.Aggregate, measure: Measure, stored: Tables, goal: Attribute, values: Floats
) -> tuple[list[tuple[int, Floats]], int]:
    """Give what rows add by their value, in whole steps, rows that add alike as one; and the true sum."""
    scan, rows = stored[goal.table]
    at = list(stored_columns(scan).values()).index(goal.column)
    kind = scan.columns[at].type.kind
    answer = prepare(aggregate)
    tables = {name: list(some) for name, (_, some) in stored.items()}

    def steps(some: list[Row]) -> int:
        return _steps(answer, {**tables, goal.table: some}, measure)

    alike = Counter((*row[:at], *row[at + 1 :]) for row in rows)
    read = _columns_read(aggregate, scan, at)
    kinds = Counter[Row]()
    for row, count in alike.items():
        kinds[tuple(row[i] if i in read else None for i in range(len(row)))] += count
    example = {tuple(v if i in read else None for i, v in enumerate(r)): r for r in alike}
    some = kinds.most_common(MOST_KINDS)
    scale = sum(kinds.values()) / sum(count for _, count in some)
    counts_by_shift: dict[tuple[int, ...], float] = {}
    for key, count in some:
        row = example[key]
        one = [steps([(*row[:at], _typed(v, kind), *row[at:])]) for v in values]
        counts_by_shift[tuple(one)] = counts_by_shift.get(tuple(one), 0.0) + count * scale
    true = steps(rows)
    if true != sum(
        steps([row]) for row in rows
    ):  # a limit cuts some of them: they are not independent
        raise UsageError("USE-001", _ONE, hint="a limit of rows changes what they add: raise it")
    return [
        (max(1, round(c)), np.array(one, dtype=float)) for one, c in counts_by_shift.items()
    ], true


def _columns_read(aggregate: n.Aggregate, scan: n.Scan, at: int) -> frozenset[int]:
    """Give which other columns of a row tell what it adds, by their places without the one that is guessed."""
    used = {x.name for x in n.walk(aggregate) if isinstance(x, n.Column)}
    used |= {
        c for x in n.walk(aggregate) if isinstance(x, n.Truncate) for c in (*x.owner, *x.order)
    }
    own = next(x for x in n.walk(aggregate) if isinstance(x, n.Scan) and x.table == scan.table)
    stored = {base for name, base in stored_columns(own).items() if name in used}
    names = [base for i, base in enumerate(stored_columns(scan).values()) if i != at]
    return frozenset(i for i, name in enumerate(names) if name in stored)


def _averages(
    kinds: list[tuple[int, Floats]], truth: int, law: Law, shares: Floats, targets: Floats
) -> tuple[float, float]:
    """Give P_C and P_P, on average over the rows that may be guessed."""
    cell = cells_of(kinds, law.size)
    added = [Added(rows, np.rint(one / cell).astype(np.int64)) for rows, one in kinds]
    order = sorted(range(len(added)), key=lambda i: -added[i].rows)[:MOST_GUESSED]
    scaled = Law(law.size / cell, law.normal)
    by_row = [
        (added[i].rows, chances(added, i, shares, scaled, round(truth / cell), targets))
        for i in order
    ]
    everybody = sum(rows for rows, _ in by_row)
    here, anywhere = (sum(r * pair[side] for r, pair in by_row) / everybody for side in (0, 1))
    return here, anywhere


def _steps(answer: Callable[[Any], Any], tables: Mapping[str, Any], measure: Measure) -> int:
    try:
        ((value,),) = answer(tables)
    except Failure:
        raise Refused("REF-101", "the question fails on a database that the prior allows") from None
    return in_steps(value, measure)


def _typed(value: float, kind: str) -> object:
    if kind == "INTEGER":
        return round(value)
    if kind == "DATE":
        return datetime.date.fromordinal(round(value))
    return Decimal(repr(float(value))) if kind == "DECIMAL" else float(value)
