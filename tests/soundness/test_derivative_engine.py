"""DuckDB computes the same measures and the same parts of bounds as the plan's own evaluation, to 1e-9."""

import random
from fractions import Fraction

import pytest
from bench.suites.laud.forms import QUERIES as LAUD
from derivative_cases import COUNTED, FILTERS, QUERIES, SHIP, VALUES, settings
from derivative_check import ask
from derivative_laud import COLUMNS as LAUD_COLUMNS
from derivative_laud import laud_database, laud_world, tax_ends
from derivative_moves import mover
from derivative_worlds import COLUMNS, small_database
from engine_tables import loaded, on_postgres

from chance import LONG
from secant.engines.optimize.filter_by_column import decided_by_columns
from secant.engines.print.print_sql import lower
from secant.plan.evaluate.evaluate import evaluate
from secant.plan.rewrites.rewrite import spell_out

SETTINGS = settings()


def ordered(rows):
    return sorted(rows, key=lambda row: tuple(str(type(v)) + str(v) for v in row[:1]))


def same(a, b):
    if a is None or b is None or isinstance(a, str):
        return a == b
    return abs(float(a) - float(b)) <= 1e-9 * max(abs(float(a)), abs(float(b)), 1e-3)


def statements_of(question):
    return question.job.readings[question.bounded.release.name].instrument.statements


def compared(questions, backend, database):
    count = 0
    for question in questions:
        for relation in statements_of(question):
            found = ordered(backend.rows(lower(relation, backend.dialect)))
            meant = ordered(evaluate(relation, database))
            assert len(found) == len(meant), question.text
            for row, other in zip(found, meant, strict=True):
                assert all(map(same, row, other)), (question.text, row, other)
                count += len(row)
    return count


@pytest.mark.parametrize("name", list(SETTINGS))
def test_directed_queries(name, tmp_path):
    world, draw = SETTINGS[name], random.Random(name)
    everything = " ".join(QUERIES)
    plain = small_database(nulls=name != "plain", clean=True, most=8)
    database = mover(world, everything).fill(draw, plain(draw))
    backend = loaded(tmp_path / "small.duckdb", COLUMNS, database)
    count = 0
    try:
        for text in (*QUERIES, SHIP) if LONG else draw.sample(QUERIES, 40):
            questions = ask(text, world, beta=draw.choice((Fraction(1, 20), Fraction(2))))
            if not isinstance(questions, str):
                count += compared(questions, backend, database)
    finally:
        backend.close()
    assert count > 40


def counted_on(opened):
    """Compare all queries whose rows are counted, on databases with empty cells and on an empty one."""
    world, count = SETTINGS["plain"], 0
    for number in range(5):
        draw = random.Random(number)
        plain = small_database(nulls=number % 2 == 1, clean=True, most=8)
        database = mover(world, " ".join(COUNTED)).fill(draw, plain(draw))
        database = database if number else {table: [] for table in database}
        backend = opened(number, database)
        try:
            for text in COUNTED:
                questions = ask(text, world, beta=Fraction(1, 20))
                assert not isinstance(questions, str), questions
                count += compared(questions, backend, database)
        finally:
            backend.close()
    return count


def test_counted_rows(tmp_path):
    """Counts, and products with them, come out of the engine as the plan means them."""
    found = counted_on(lambda i, rows: loaded(tmp_path / f"counted{i}.duckdb", COLUMNS, rows))
    assert found >= 5 * 2 * len(COUNTED)


@pytest.mark.postgres
def test_counted_rows_on_postgres(postgres_database):
    found = counted_on(lambda _, rows: on_postgres(postgres_database, COLUMNS, rows))
    assert found >= 5 * 2 * len(COUNTED)


@pytest.mark.postgres
def test_stored_columns_decide_on_postgres(postgres_database):
    """Filters of one table are asked of stored columns, and what comes out is the same."""
    world, draw = SETTINGS["plain"], random.Random(8)
    texts = [text for text in (*FILTERS, *VALUES) if "JOIN" not in text]
    plain = small_database(nulls=True, clean=True, most=8)
    database = mover(world, " ".join(texts)).fill(draw, plain(draw))
    backend = on_postgres(postgres_database, COLUMNS, database)
    count = changed = 0
    try:
        for text in texts:
            questions = ask(text, world, beta=draw.choice((Fraction(1, 20), Fraction(2))))
            if not isinstance(questions, str):
                count += compared(questions, backend, database)
                plans = [spell_out(p) for q in questions for p in statements_of(q)]
                changed += any(decided_by_columns(plan) is not plan for plan in plans)
    finally:
        backend.close()
    assert count > 40
    assert changed >= 5


@pytest.mark.parametrize("profile", ["paper", "native"])
def test_the_17_queries(profile, tmp_path):
    draw = random.Random(profile)
    for query in LAUD if LONG else draw.sample(LAUD, 4):
        world, text = laud_world(profile, query)
        database = mover(world, text).fill(draw, laud_database(text)(draw))
        beta = world.protection.beta or Fraction(1, 20)
        questions = ask(text, world, beta=beta, rows=1_000, ends=tax_ends)
        assert not isinstance(questions, str), questions
        backend = loaded(tmp_path / f"{query}.duckdb", LAUD_COLUMNS, database)
        try:
            assert compared(questions, backend, database)
        finally:
            backend.close()
