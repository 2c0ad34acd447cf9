"""The small schema on PostgreSQL, with the rows that DuckDB holds; what tests on PostgreSQL share."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pytest
from bench.postgres_data import TPCH_KEYS, copy_tables, load_tpch

from apart import apart
from secant.plan import nodes as n
from secant.release.postgres import PostgresBackend, open_server

ROOT = Path(__file__).parent.parent.parent
__all__ = ["TPCH_KEYS", "copy_tables", "load_tpch", "ordered", "small_postgres"]
SCHEMA = ROOT / "tests" / "data" / "small_schema.sql"


def ordered(plan: n.Relation) -> bool:
    """Whether the rows of a plan come in an order."""
    while isinstance(plan, n.Project | n.Limit):
        plan = plan.input
    return isinstance(plan, n.Sort)


@pytest.fixture(scope="module")
def small_postgres(postgres_server) -> PostgresBackend:
    address = postgres_server.address(postgres_server.create_database())
    with duckdb.connect() as connection:
        connection.execute(SCHEMA.read_text())
        copy_tables(connection, ("person", "visit", "nothing"), address)
    backend = apart(open_server(address))
    yield backend
    backend.close()
