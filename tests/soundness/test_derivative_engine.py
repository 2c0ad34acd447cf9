"""DuckDB computes the same measures and the same parts of bounds as the plan's own evaluation, to 1e-9."""

import random
from fractions import Fraction

import duckdb
import pytest
from bench.suites.laud.forms import QUERIES as LAUD
from derivative_cases import QUERIES, SHIP, settings
from derivative_check import ask
from derivative_laud import COLUMNS as LAUD_COLUMNS
from derivative_laud import laud_database, laud_world, tax_ends
from derivative_moves import mover
from derivative_worlds import COLUMNS, small_database

from apart import apart
from chance import LONG
from secant.plan.evaluate import evaluate
from secant.release.lower import lower
from secant.release.sources import open_source

SETTINGS = settings()


def sql_type(kind):
    if kind.kind == "DECIMAL":
        return f"DECIMAL({kind.precision}, {kind.scale})"
    return {"INTEGER": "BIGINT", "TEXT": "VARCHAR"}.get(kind.kind, kind.kind)


def loaded(place, columns, database):
    """Write a database to a file and open it as Secant does."""
    with duckdb.connect(str(place)) as connection:
        for table, fields in columns.items():
            shape = ", ".join(f'"{name}" {sql_type(kind)}' for name, kind in fields)
            connection.execute(f'CREATE TABLE "{table}" ({shape})')
            for row in database[table]:
                values = [row[name] for name, _ in fields]
                connection.execute(
                    f'INSERT INTO "{table}" VALUES ({", ".join("?" * len(values))})', values
                )
    return apart(open_source(f"duckdb:{place}", beside=None))


def ordered(rows):
    return sorted(rows, key=lambda row: tuple(str(type(v)) + str(v) for v in row[:1]))


def same(a, b):
    if a is None or b is None or isinstance(a, str):
        return a == b
    return abs(float(a) - float(b)) <= 1e-9 * max(abs(float(a)), abs(float(b)), 1e-3)


def compared(questions, backend, database):
    count = 0
    for question in questions:
        reading = question.job.readings[question.bounded.release.name]
        for relation in reading.instrument.statements:
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
