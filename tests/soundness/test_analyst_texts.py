"""Drawn texts over everything that analysts write: the engine's answer, the printed plan's and `evaluate`'s are one.

Some hundred texts by default, many more with SECANT_PROFILE=long. Every construct must be drawn and read.
"""

from __future__ import annotations

import duckdb
import psycopg
import pytest
from analyst_questions import CONSTRUCTS
from analyst_texts import Compared, Engine, alike, compare
from analyst_worlds import COLUMNS, SCHEMA

from chance import LONG, seeds
from postgres_server import PostgresServer
from secant.engines.duckdb import catalog as duckdb_catalog
from secant.engines.postgres.session import open_server

TEXTS = 20_000 if LONG else 80
"""On DuckDB; a fifth on PostgreSQL."""
NOT_EXACT = {"mode", "ASOF"}
"""Engines choose among equally frequent values, and among rows of one moment."""


@pytest.fixture
def on_duckdb():
    """The tables in DuckDB."""
    engine = duckdb.connect()
    engine.execute("SET TimeZone = 'UTC'")
    engine.execute(SCHEMA.format(""))
    homes = (duckdb_catalog.Home("memory", "main"),)
    catalog, dialect = duckdb_catalog.read_catalog(engine, homes, own_views=False)

    def fill(statements):
        for name in COLUMNS:
            engine.execute(f"DELETE FROM {name}")
        engine.execute("; ".join(statements) or "SELECT 1")

    def ask(text):
        return engine.execute(text).fetchall()

    yield Engine(catalog, dialect, duckdb.Error, ask, ask, fill, "duckdb")
    engine.close()


@pytest.fixture
def on_postgres(postgres_server: PostgresServer):
    """The same tables in PostgreSQL; Secant's own session runs what is printed."""
    address = postgres_server.address(postgres_server.create_database())
    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute(SCHEMA.format(""))
        connection.execute("SET TimeZone = 'UTC'")
        backend = open_server(address)

        def fill(statements):
            with connection.transaction():
                connection.execute(f"TRUNCATE {', '.join(COLUMNS)}")
                for statement in statements:
                    connection.execute(statement)

        def run(statement):
            with backend.session([*COLUMNS]) as session:
                return session.rows(statement)

        def ask(text):
            return connection.execute(text).fetchall()

        yield Engine(backend.catalog(), backend.dialect, psycopg.Error, ask, run, fill, "postgres")
        backend.close()


def test_texts_on_duckdb_three_ways(on_duckdb):
    found = Compared()
    for seed in seeds(TEXTS):
        compare(on_duckdb, seed, found)
    print(f"{found.planned} of {found.asked} planned, {found.texts} compared with the text itself")
    print(sorted((found.used[x], found.spoken[x], x) for x in CONSTRUCTS))
    assert found.differences == []
    assert found.texts > 0.5 * found.planned > 0.4 * found.asked
    assert not LONG or [x for x in CONSTRUCTS if not found.spoken[x] and x not in NOT_EXACT] == []


@pytest.mark.postgres
def test_texts_on_postgres_three_ways(on_postgres):
    found = Compared()
    for seed in seeds(TEXTS // 5):
        compare(on_postgres, seed, found)
    print(f"{found.planned} of {found.asked} planned, {found.texts} compared with the text itself")
    print(sorted((found.used[x], found.spoken[x], x) for x in CONSTRUCTS))
    assert found.differences == []
    assert found.texts > 0.2 * found.planned


def test_reals_are_compared_by_their_size():
    assert alike([(1.0000000004999, "a")], [(1.0000000005001, "a")])
    assert not alike([(1.000001, "a")], [(1.0, "a")])
    assert not alike([(1.0, "a")], [(1.0, "b")])
    assert not alike([(1.0,), (1.0,)], [(1.0,), (2.0,)])
