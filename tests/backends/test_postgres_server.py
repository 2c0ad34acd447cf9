"""The PostgreSQL server: what a policy can name, what it offers, and that nothing is written there."""

from __future__ import annotations

import functools
import threading
from decimal import Decimal

import duckdb
import psycopg
import pytest
from bench.postgres_data import copy_tables

import secant
from apart import apart
from private_shop import ROWWISE, SHOP, TABLES, UNIT, make_shop, no_secret_in, shop_policy
from secant.engines.postgres.catalog import column_offer
from secant.engines.postgres.scalars import POSTGRES
from secant.engines.postgres.session import open_server
from secant.engines.print.print_sql import lower
from secant.errors import BackendError
from secant.plan import nodes as n
from secant.schema import types as t
from secant.sensitivity.truncation.analysis import PARTS
from secant.sql.bind import from_sql

pytestmark = pytest.mark.postgres


@pytest.fixture(scope="module")
def shop(postgres_server, tmp_path_factory):
    """The shop on both engines: a directory with the DuckDB file, and an address."""
    directory = tmp_path_factory.mktemp("postgres_shop")
    address = postgres_server.address(postgres_server.create_database())
    with duckdb.connect(str(make_shop(directory)), read_only=True) as connection:
        copy_tables(connection, SHOP, address)
    return directory, address


def test_the_policy_can_name_the_server(shop, tmp_path):
    policy = tmp_path / "policy.toml"
    written = TABLES.replace("duckdb:shop.duckdb", shop[1] + "&statement_seconds=30")
    policy.write_text(shop_policy(ROWWISE, tables=written), encoding="utf-8")
    with secant.connect(policy=policy) as db:
        assert db.sql("SELECT count(*) FROM orders", epsilon=1000).rows[0][0] == pytest.approx(
            203, abs=5
        )


def test_truncation_runs_on_the_server(shop, tmp_path):
    """One customer has hundreds of orders too many; only the first five count."""
    limit = UNIT.replace("orders = 5", "orders = 2")
    policy = tmp_path / "policy.toml"
    policy.write_text(shop_policy(limit), encoding="utf-8")
    with secant.connect(shop[1], policy=policy, ledger=tmp_path / "ledger") as db:
        query = "SELECT status, count(*) FROM orders GROUP BY status"
        (statement,) = db.explain(query).to_dict()["statements"]
        assert "row_number() OVER" in statement
        assert sum(counted for _, counted in apart(db).rows(statement)) == 60 * 2 + 2 + 1
        (added,) = db.explain("SELECT count(*) FROM orders").to_dict()["statements"]
        # What is cut down is counted in parts of a row.
        assert apart(db).rows(added) == [((60 * 2 + 2 + 1) * PARTS,)]


def test_tables_are_offered_with_what_can_be_asked_of_them(postgres_database):
    with psycopg.connect(postgres_database) as connection:
        connection.execute("""
            CREATE TABLE kinds (b boolean, s smallint, i integer PRIMARY KEY, l bigint, n numeric(12, 3), free numeric,
                wide numeric(50, 2), r real, d double precision, t text, v varchar(7), w varchar, c char(3), day date,
                m timestamp, z timestamptz, p timestamp(3), j jsonb, a integer[], u uuid, k interval, x bytea,
                UNIQUE (l, t));
            CREATE VIEW seen AS SELECT * FROM kinds;
            CREATE MATERIALIZED VIEW kept AS SELECT * FROM kinds;
            CREATE TABLE parted (i integer, t text) PARTITION BY LIST (i);
            CREATE TABLE part_one PARTITION OF parted FOR VALUES IN (1);
            CREATE TABLE parent (i integer UNIQUE); CREATE TABLE child () INHERITS (parent);
            CREATE SCHEMA other; CREATE TABLE other.there (i integer);
            CREATE TABLE pg_class (i integer);
        """)
    backend = apart(open_server(postgres_database))
    tables = backend.catalog().tables
    assert set(tables) == {"kinds", "parted", "parent"}
    assert dict(tables["kinds"].columns) == {
        "b": t.BOOLEAN, "s": t.INTEGER, "i": t.INTEGER, "l": t.INTEGER, "n": t.decimal(12, 3), "r": t.DOUBLE,
        "d": t.DOUBLE, "t": t.TEXT, "v": t.TEXT, "w": t.TEXT, "c": t.TEXT, "day": t.DATE, "m": t.TIMESTAMP,
        "p": t.TIMESTAMP, "free": t.DOUBLE, "wide": t.DOUBLE, "z": t.TIMESTAMP, "u": t.UUID, "x": t.BLOB,
    }  # fmt: skip
    assert dict(tables["kinds"].parts) == {"j": "jsonb", "a": "array of INTEGER", "k": "interval"}
    assert set(backend.catalog().missing) == {"kept", "part_one", "child"}
    assert set(backend.catalog().stored_views) == {"seen"}
    assert sorted(tables["kinds"].unique) == [("i",), ("l", "t")]
    assert tables["parent"].unique == ()
    backend.close()
    elsewhere = apart(open_server(postgres_database + "&schema=other"))
    assert set(elsewhere.catalog().tables) == {"there"}
    elsewhere.close()
    assert column_offer("numeric(5,-2)").type == t.DOUBLE
    assert column_offer("numeric(5,-2)").merges


def test_stored_values_that_other_engines_do_not_have(postgres_database):
    """A decimal NaN is NULL, a short float is the double it is, CHAR loses its padding, text is compared by bytes."""
    with psycopg.connect(postgres_database) as connection:
        connection.execute("""
            CREATE TABLE odd (k integer, n numeric(5, 2), r real, c char(6));
            INSERT INTO odd VALUES (1, 'NaN', 3e38, 'ab'), (2, 1.5, 0.1, 'B'), (3, NULL, 'NaN', 'é');
        """)
    backend = apart(open_server(postgres_database))
    text = "SELECT k, n, n + 1, r * 10, c || '.', c < 'a', length(c) FROM odd ORDER BY c"
    rows = backend.rows(lower(from_sql(text, backend.catalog()), backend.dialect))
    assert [row[0] for row in rows] == [2, 1, 3]
    two, one, three = rows
    assert one[1:3] == (None, None)
    assert one[3] == pytest.approx(3e39, rel=1e-6)
    assert [row[4:] for row in (two, one, three)] == [
        ("B.", True, 1),
        ("ab.", False, 2),
        ("é.", False, 1),
    ]
    assert two[3] == pytest.approx(1.0000000149, rel=1e-9)
    assert three[3] != three[3]
    backend.close()


def test_nothing_can_be_written_and_one_statement_is_one(shop):
    backend = apart(open_server(shop[1]))
    for statement in (
        "DELETE FROM orders",
        "CREATE TABLE mine (i integer)",
        "SELECT 1; SELECT 2",
        "SELECT nextval('nowhere')",
        "SELECT CAST(note AS bigint) FROM orders",
    ):
        with pytest.raises(BackendError) as raised:
            backend.rows(statement)
        assert raised.value.code == "BAK-002"
        assert no_secret_in(raised.value.render() + repr(raised.value.__cause__))
        assert raised.value.__suppress_context__
    assert backend.rows("SELECT count(*) FROM orders") == [(203,)]
    assert backend.rows("SELECT min(total), sum(id) FROM orders WHERE id < 3") == [
        (Decimal("11.00"), 3)
    ]
    assert backend.rows("SELECT max(total) * 0.001 FROM orders WHERE id < 3") == [
        (Decimal("0.01200"),)
    ]
    with pytest.raises(BackendError) as refused:
        backend.check("SELECT nothing_like_it FROM orders")
    assert refused.value.code == "BAK-003"
    assert backend.rows("SHOW transaction_isolation") == [("repeatable read",)]
    backend.close()
    with pytest.raises(BackendError) as closed:
        backend.rows("SELECT 1")
    assert closed.value.code == "BAK-001"


def test_checking_reads_no_rows(shop):
    backend = apart(open_server(shop[1]))
    backend.check("SELECT 1 / (quantity - quantity) FROM orders")  # it would fail on the first row
    backend.close()


def test_a_lost_connection_and_a_slow_statement(shop, postgres_server):
    backend = apart(open_server(shop[1] + "&statement_seconds=0.05"))
    with pytest.raises(BackendError) as slow:
        backend.rows("SELECT pg_sleep(5)")
    assert slow.value.code == "BAK-005"
    assert "limit" in slow.value.message
    backend.close()
    backend = apart(open_server(shop[1]))
    ((own,),) = backend.rows("SELECT pg_backend_pid()")
    with psycopg.connect(postgres_server.address(), autocommit=True) as other:
        end = functools.partial(other.execute, "SELECT pg_terminate_backend(%s, 5000)", (own,))
        timer = threading.Timer(0.3, end)
        timer.start()
        with pytest.raises(BackendError) as lost:
            backend.rows("SELECT pg_sleep(30)")
        timer.join()
        assert lost.value.code == "BAK-002"
        assert "lost" in lost.value.message
        ((own,),) = backend.rows("SELECT pg_backend_pid()")  # the next statement has a new session
        other.execute("SELECT pg_terminate_backend(%s, 5000)", (own,))
    assert backend.rows("SELECT 1") == [(1,)]  # so has one after a session that ended unused
    backend.close()


def test_a_product_is_refused_with_a_hint():
    scan = n.Scan("reals", "reals", (n.Field("reals.v", t.DOUBLE),))
    call = n.Aggregation("p", "product", n.Column("reals.v", t.DOUBLE))
    with pytest.raises(BackendError) as refused:
        lower(n.Aggregate(scan, (), (call,)), POSTGRES)
    assert refused.value.code == "BAK-003"
    assert "ln" in (refused.value.hint or "")
