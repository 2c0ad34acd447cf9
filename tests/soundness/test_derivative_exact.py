"""Where a release says that its filters are exact, it counts what the user's own condition counts.

Over columns that move in steps, with values on their steps and within their ranges, with and without empty cells. The
oracle is the plan of the user's text, evaluated as it stands.
"""

import random
from decimal import Decimal
from fractions import Fraction

import pytest
from derivative_check import ask
from derivative_moves import mover
from derivative_worlds import small_database, small_world

from chance import LONG
from secant.plan.evaluate.evaluate import evaluate
from secant.plan.rewrites.rewrite import normalize
from secant.sql.bind import from_sql

TRIES = 300 if LONG else 25
WORLD = small_world(
    {"a": "l1(m, 0.1*d, 0.1*e, c)", "b": "m"}, settings='softening = { kind = "exact" }'
)
ATOMS = (
    "m > 3", "m >= 3", "m < 3", "m <= 3", "m = 3", "m <> 3", "m > 2.5", "m = 2.5", "2*m > 5", "m + 1 <= 3",
    "m IN (1, 3, 4)", "m NOT IN (1, 3)", "m BETWEEN 1 AND 3", "NOT (m BETWEEN 1 AND 3)", "-m > 1",
    "d < e", "d = e", "d <> e", "d >= DATE '2020-01-15'", "d + 3 > e", "d - e >= 2", "e <= DATE '2020-01-20'",
    "d IN (DATE '2020-01-10', DATE '2020-01-12')", "c = 7.5", "c < 7.5", "c >= 3.333", "c <> 1", "c > 0.01",
    "3 < m", "7.5 = c", "m > c", "m IS NULL", "c IS NOT NULL", "g = 1", "g = 1 AND m > 2", "p > 0",
)  # fmt: skip


def on_steps(database, draw):
    """Put values into their ranges: what is beyond is clamped, and counts as its end."""
    moves = mover(WORLD, "a b m d e c")
    filled = moves.fill(draw, database)
    for table, cells in moves.cells.items():
        for row in filled[table]:
            for cell in cells:
                if row[cell.column] is not None:
                    x = draw.uniform(cell.low, cell.high)
                    near = draw.choice((1.0, 2.0, 3.0, 4.0, 7.5))
                    if cell.type.kind == "DATE":
                        near = cell.low + draw.randint(5, 15)
                    row[cell.column] = cell.value(near if draw.random() < 0.6 else x)
    return filled


def condition(draw, depth=2):
    kind = draw.random()
    if depth and kind < 0.45:
        word = draw.choice(("AND", "OR", "AND"))
        return f"({condition(draw, depth - 1)} {word} {condition(draw, depth - 1)})"
    if depth and kind < 0.6:
        return f"NOT ({condition(draw, depth - 1)})"
    if depth and kind < 0.7:
        return (
            f"(({draw.choice(ATOMS[:30])}) {draw.choice(('<>', '='))} ({draw.choice(ATOMS[:30])}))"
        )
    return draw.choice(ATOMS)


@pytest.mark.parametrize("nulls", [False, True])
@pytest.mark.parametrize("drawn", [False, True])
def test_an_exact_filter_is_the_users_filter(drawn, nulls):
    draw = random.Random(f"{drawn} {nulls}")
    compared = 0
    conditions = [condition(draw) for _ in range(2 * TRIES)] if drawn else ATOMS
    for where in conditions:
        text = f"SELECT count(*) FROM a WHERE {where}"
        questions = ask(text, WORLD, beta=Fraction(1))
        assert not isinstance(questions, str), (text, questions)
        meant = normalize(from_sql(text, WORLD.catalog))
        for question in questions:
            if question.bounded.softened is None or not question.bounded.softened.exact:
                continue
            for _ in range(TRIES // 5):
                database = on_steps(small_database(nulls=nulls, clean=True, most=5)(draw), draw)
                reading = question.read(database)
                (groups,) = reading.measures.values()
                (group,) = groups.values()
                (measure,) = question.bounded.release.measures
                ((exact,),) = evaluate(meant, database)
                found = group.value * measure.step
                assert abs(found - exact) < Fraction(1, 10**9), (
                    text,
                    float(found),
                    exact,
                    database["a"],
                )
                compared += 1
    assert compared >= 100


@pytest.mark.parametrize(
    "shown",
    [
        "sum(m)", "sum(c)", "min(m)", "max(c)", "avg(m)", "sum(CASE WHEN g = 1 THEN m END)",
        "min(CASE WHEN g = 1 THEN m END)", "max(CASE WHEN p > 0 THEN c ELSE m END)",
        "avg(CASE WHEN g = 1 THEN m END)", "count(m)", "count(CASE WHEN m > 2 THEN 1 END)",
        "sum(CASE WHEN m > 2 THEN c ELSE 0 END)", "avg(CASE WHEN m > 2 THEN c END)", "var_pop(m)",
        "sum(coalesce(m, c))", "sum(greatest(m, c))", "sum(m*c)", "stddev_samp(c)", "variance(m)",
    ],
)  # fmt: skip
def test_what_is_shown_without_noise_is_what_was_asked(shown):
    """The formulas above the measures, fed with exact measures, give the user's own aggregate."""
    draw = random.Random(shown)
    compared = 0
    for where in ("", " WHERE m > 2", " WHERE c <= 7.5 AND d < e"):
        text = f"SELECT {shown} FROM a{where}"
        questions = ask(text, WORLD, beta=Fraction(1))
        assert not isinstance(questions, str), (text, questions)
        if not questions or any(not q.bounded.softened.exact for q in questions):
            continue
        meant = normalize(from_sql(text, WORLD.catalog))
        for _ in range(TRIES):
            database = on_steps(small_database(nulls=True, clean=True, most=5)(draw), draw)
            ((exact,),) = evaluate(meant, database)
            found = finished(questions, database)
            if exact is None:  # of nothing, a release says something finite
                continue
            assert abs(float(found) - float(exact)) < 1e-6 * max(1.0, abs(float(exact))), (
                text, found, exact, [tuple(r.values()) for r in database["a"]],
            )  # fmt: skip
            compared += 1
    assert compared >= 10


def finished(questions, database):
    """Put exact measures into the rest of the plan."""
    tables = {}
    for question in questions:
        release = question.bounded.release
        reading = question.read(database)
        row = {}
        for measure in release.measures:
            (group,) = reading.measures[measure.column].values()
            value = group.value * measure.step
            kind = measure.type.kind
            row[measure.column] = float(value) if kind == "DOUBLE" else value
            if kind == "INTEGER":
                row[measure.column] = int(value)
            elif kind == "DECIMAL":
                scale = measure.type.scale
                row[measure.column] = Decimal(int(value * 10**scale)).scaleb(-scale)
        tables[release.name] = [row]
    post = questions[0].job.prepared.post
    ((value,),) = evaluate(post, {**database, **tables})
    return value
