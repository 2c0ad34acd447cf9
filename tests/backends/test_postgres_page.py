"""The page about PostgreSQL says what is so: its policy is read, its role suffices, its refusals are refusals."""

from __future__ import annotations

import re
from pathlib import Path

import psycopg
import pytest

from apart import apart
from secant.engines.postgres.scalars import POSTGRES
from secant.engines.postgres.session import open_server
from secant.engines.print.print_sql import lower
from secant.errors import BackendError
from secant.policy.file import read_policy
from secant.sql.bind import from_sql

PAGE = (Path(__file__).parents[2] / "docs" / "how-to" / "use-postgresql.md").read_text("utf-8")
BLOCKS = dict(re.findall(r"```(\w+)\n(.*?)```", PAGE, re.DOTALL))
PROTECTED = '[protections.all]\nkind = "rows"\nepsilon = 1.0\n'


def test_the_policy_is_read():
    assert read_policy(BLOCKS["toml"] + PROTECTED).source.endswith("statement_seconds=300")


@pytest.mark.postgres
def test_the_role_suffices(postgres_server):
    name = postgres_server.create_database()
    with psycopg.connect(postgres_server.address(name)) as connection:
        connection.execute(
            "CREATE SCHEMA sales; CREATE TABLE sales.orders (id integer, secret text)"
        )
        connection.execute("INSERT INTO sales.orders VALUES (1, 'x'), (2, 'y')")
        connection.execute(BLOCKS["sql"])
        connection.execute("CREATE TABLE sales.closed (id integer)")
    backend = apart(open_server(postgres_server.address(name, user="reader") + "&schema=sales"))
    assert set(backend.catalog().tables) == {"orders"}
    plan = from_sql("SELECT count(*), sum(id) FROM orders", backend.catalog())
    assert backend.rows(lower(plan, POSTGRES)) == [(2, 3)]
    for forbidden in ("DELETE FROM orders", "SELECT * FROM closed"):
        with pytest.raises(BackendError):
            backend.rows(forbidden)
    backend.close()
    with psycopg.connect(postgres_server.address(name)) as connection:
        connection.execute("DROP OWNED BY reader; DROP ROLE reader")


@pytest.mark.postgres
def test_planning_is_set_where_nobody_said_it(postgres_server):
    """The page's table holds on a server as it was made; what the owner says anywhere goes before it."""
    told = dict(re.findall(r"^\| `(\w+)` \| `([\w.]+)` \| ", PAGE, re.MULTILINE))
    assert set(told) == {"jit", "random_page_cost", "parallel_tuple_cost", "work_mem"}
    name = postgres_server.create_database()

    def planned(address):
        backend = apart(open_server(address))
        found = {s: backend.rows(f"SELECT current_setting('{s}')")[0][0] for s in told}
        backend.close()
        return found

    assert planned(postgres_server.address(name)) == told
    with psycopg.connect(postgres_server.address(), autocommit=True) as connection:
        connection.execute(f'ALTER DATABASE "{name}" SET random_page_cost = 3')
    own = postgres_server.address(name) + "&options=-c%20work_mem%3D64MB"
    assert planned(own) == {**told, "random_page_cost": "3", "work_mem": "64MB"}
