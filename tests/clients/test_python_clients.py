"""Real clients at the PostgreSQL port: checks 1 to 31 of the table in docs/reference/postgresql-port.md."""

from __future__ import annotations

import asyncio
import datetime
import threading
from decimal import Decimal

import pytest

from postgres_port import GROUPS, PASSWORD, STATUSES, USER

AVERAGE = (
    "SELECT avg(total) AS a, sum(quantity) AS q, count(*) AS n FROM orders WHERE quantity >= {}"
)


def statuses(rows):
    """Whether rows are the answer to GROUPS: every declared status, with a number."""
    return [row[0] for row in rows] == STATUSES and all(isinstance(row[1], int) for row in rows)


# ── psycopg 3 ────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def psycopg3(secant_port):
    import psycopg

    with psycopg.connect(secant_port.address(), autocommit=True) as connection:
        yield connection


def test_01_psycopg3_asks(psycopg3):
    cursor = psycopg3.execute(GROUPS)
    assert [column.name for column in cursor.description] == ["status", "n"]
    assert statuses(cursor.fetchall())


def test_02_psycopg3_parameters_of_each_type(psycopg3):
    text = (
        "SELECT count(*) AS n FROM orders WHERE quantity >= %s AND total < %s AND rate < %s"
        " AND status = %s AND day >= %s"
    )
    values = (3, Decimal("90.5"), 0.75, "paid", datetime.date(2024, 1, 1))
    (asked,) = psycopg3.execute(text, values).fetchone()
    assert isinstance(asked, int)
    written = (
        "SELECT count(*) AS n FROM orders WHERE quantity >= 3 AND total < 90.5 AND rate < 0.75e0"
        " AND status = 'paid' AND day >= DATE '2024-01-01'"
    )
    # the same question with literals is the same question: its stored answer is given again
    assert psycopg3.execute(written).fetchone() == (asked,)


def test_03_psycopg3_binary(psycopg3):
    with psycopg3.cursor(binary=True) as cursor:
        row = cursor.execute(AVERAGE.format("%s"), (2,)).fetchone()
    assert [type(value) for value in row] == [float, int, int]


def test_04_psycopg3_server_side_cursor(psycopg3):
    with psycopg3.transaction(), psycopg3.cursor(name="c") as cursor:
        cursor.execute(GROUPS)
        assert statuses(cursor.fetchmany(2) + cursor.fetchall())


def test_05_psycopg3_prepared(psycopg3):
    found = [
        psycopg3.execute(AVERAGE.format("%s"), (n,), prepare=True).fetchone() for n in (1, 1, 2)
    ]
    assert found[0] == found[1] != found[2]


def test_06_psycopg3_pipeline(psycopg3):
    with psycopg3.pipeline():
        first, second = psycopg3.execute(GROUPS), psycopg3.execute("SELECT %s::int + 1", (1,))
        assert statuses(first.fetchall())
        assert second.fetchone() == (2,)


def test_07_psycopg3_copy(psycopg3):
    with psycopg3.cursor().copy(f"COPY ({GROUPS}) TO STDOUT") as copy:
        copy.set_types(["text", "int8"])
        assert statuses(list(copy.rows()))


def test_08_psycopg3_refusals(psycopg3):
    import psycopg

    with pytest.raises(psycopg.errors.InsufficientPrivilege) as told:
        psycopg3.execute("SELECT id, name FROM customers")
    diagnosis = told.value.diag
    assert "REF-102" in diagnosis.message_primary
    assert diagnosis.message_hint
    assert diagnosis.statement_position == str(
        "SELECT id, name FROM customers".index("customers") + 1
    )
    with pytest.raises(psycopg.errors.UndefinedTable):
        psycopg3.execute("SELECT * FROM nowhere")
    with pytest.raises(psycopg.errors.UndefinedColumn):
        psycopg3.execute("SELECT count(nowhere) FROM orders")
    assert statuses(psycopg3.execute(GROUPS).fetchall())


def test_09_psycopg3_notices(secant_port):
    import psycopg

    heard = []
    with psycopg.connect(secant_port.address(epsilon=40), autocommit=True) as connection:
        connection.add_notice_handler(lambda d: heard.append((d.message_primary, d.message_detail)))
        connection.execute("SELECT count(*) AS n FROM customers").fetchone()
        assert "epsilon 40 spent" in heard[-1][0]
        assert "left" in heard[-1][0]
        assert "n ±" in heard[-1][1]
        connection.execute("SELECT count(*) AS n FROM customers").fetchone()
        assert "costs nothing" in heard[-1][0]
        count = len(heard)
        connection.execute("SET secant.notice = off")
        connection.execute("SELECT count(*) AS n FROM customers").fetchone()
        assert len(heard) == count


def test_10_psycopg3_cancel(secant_port, monkeypatch):
    import psycopg

    from secant.engines.duckdb import session as duckdb

    begun = threading.Event()

    def slow(session, statement):
        def wait():
            begun.set()
            stopped.wait(60)
            raise RuntimeError("stopped")

        return duckdb.watched(wait, stopped.set, 60)

    stopped = threading.Event()
    with psycopg.connect(secant_port.address(), autocommit=True) as connection:
        with monkeypatch.context() as patched:
            patched.setattr(duckdb.DuckDBSession, "rows", slow)

            def cancel():
                begun.wait(60)
                connection.cancel_safe()

            canceling = threading.Thread(target=cancel)
            canceling.start()
            with pytest.raises(psycopg.errors.QueryCanceled):
                connection.execute("SELECT count(*) AS n FROM orders WHERE quantity > 7")
            canceling.join()
        assert statuses(connection.execute(GROUPS).fetchall())


def test_11_psycopg3_transaction_fails_as_a_whole(secant_port):
    import psycopg

    with psycopg.connect(secant_port.address()) as connection:
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            connection.execute("SELECT id FROM customers")
        with pytest.raises(psycopg.errors.InFailedSqlTransaction):
            connection.execute(GROUPS)
        connection.rollback()
        assert statuses(connection.execute(GROUPS).fetchall())


def test_12_psycopg3_temporary_table(psycopg3):
    psycopg3.execute(f"CREATE TEMP TABLE kept AS {GROUPS}")
    rows = psycopg3.execute(
        "SELECT sum(n), count(*) FROM kept WHERE status <> %s", ("void",)
    ).fetchall()
    assert rows[0][1] == 3


def test_13_psycopg3_explain_and_settings(psycopg3):
    lines = [row[0] for row in psycopg3.execute("EXPLAIN " + GROUPS)]
    assert any("stability.count" in line for line in lines)
    psycopg3.execute("SET secant.epsilon = ''; SET secant.error = 5")
    assert psycopg3.execute("SHOW secant.error").fetchone() == ("5",)
    assert statuses(psycopg3.execute(GROUPS).fetchall())
    psycopg3.execute("RESET secant.error")
    with pytest.raises(Exception, match="USE-002"):
        psycopg3.execute("SELECT count(*) AS n FROM orders WHERE quantity = 9")


def test_14_psycopg3_tls_and_channel_binding(secant_port):
    import psycopg

    more = f"&sslmode=verify-full&sslrootcert={secant_port.certificate}&channel_binding=require"
    with psycopg.connect(secant_port.address(more=more), autocommit=True) as connection:
        assert connection.pgconn.ssl_in_use
        assert statuses(connection.execute(GROUPS).fetchall())


def test_15_psycopg3_list_parameter(psycopg3):
    text = "SELECT count(*) AS n FROM orders WHERE status = ANY(%s)"
    assert isinstance(psycopg3.execute(text, (["open", "paid"],)).fetchone()[0], int)


# ── psycopg 2 ────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def psycopg2(secant_port):
    import psycopg2

    connection = psycopg2.connect(secant_port.address())
    yield connection
    connection.close()


def test_16_psycopg2_asks_with_parameters(psycopg2):
    cursor = psycopg2.cursor()
    cursor.execute(AVERAGE.format("%s"), (2,))
    assert [type(value) for value in cursor.fetchone()] == [float, int, int]
    assert "NOTICE" in psycopg2.notices[-1]


def test_17_psycopg2_named_cursor(psycopg2):
    cursor = psycopg2.cursor("named")
    cursor.itersize = 2
    cursor.execute(GROUPS)
    assert statuses(list(cursor))


def test_18_psycopg2_copy(psycopg2):
    import io

    out = io.StringIO()
    psycopg2.cursor().copy_expert(f"COPY ({GROUPS}) TO STDOUT WITH (FORMAT csv, HEADER)", out)
    lines = out.getvalue().splitlines()
    assert lines[0] == "status,n"
    assert [line.split(",")[0] for line in lines[1:]] == STATUSES


# ── asyncpg ──────────────────────────────────────────────────────────────────────────────────────


def in_asyncpg(secant_port, work):
    import asyncpg

    async def run():
        settings = {"secant.epsilon": "50"}
        connection = await asyncpg.connect(
            host=secant_port.host, port=secant_port.port, user=USER, password=PASSWORD,
            database="shop", server_settings=settings, ssl="require",
        )  # fmt: skip
        try:
            return await work(connection)
        finally:
            await connection.close()

    return asyncio.run(run())


def test_19_asyncpg_fetch(secant_port):
    async def work(connection):
        row = await connection.fetchrow(AVERAGE.format("$1"), 2)
        many = await connection.fetch(GROUPS)
        return row, many

    row, many = in_asyncpg(secant_port, work)
    assert [type(value) for value in row.values()] == [float, int, int]
    assert statuses([tuple(r) for r in many])


def test_20_asyncpg_prepared(secant_port):
    async def work(connection):
        text = "SELECT count(*) AS n FROM orders WHERE total >= $1 AND status = $2 AND day > $3"
        statement = await connection.prepare(text)
        types = [parameter.name for parameter in statement.get_parameters()]
        names = [attribute.name for attribute in statement.get_attributes()]
        value = await statement.fetchval(Decimal("5.5"), "paid", datetime.date(2024, 1, 5))
        return types, names, value

    types, names, value = in_asyncpg(secant_port, work)
    assert (types, names) == (["numeric", "text", "date"], ["n"])
    assert isinstance(value, int)


def test_21_asyncpg_cursor(secant_port):
    async def work(connection):
        async with connection.transaction():
            cursor = await connection.cursor(GROUPS)
            return await cursor.fetch(3) + await cursor.fetch(3)

    assert statuses([tuple(row) for row in in_asyncpg(secant_port, work)])


# ── pg8000 ───────────────────────────────────────────────────────────────────────────────────────


def test_22_pg8000_asks_with_parameters(secant_port):
    import pg8000.native

    connection = pg8000.native.Connection(
        USER, host=secant_port.host, port=secant_port.port, password=PASSWORD, database="shop"
    )
    connection.run("SET secant.epsilon = 50")
    rows = connection.run(AVERAGE.format(":least"), least=2)
    assert [type(value) for value in rows[0]] == [float, int, int]
    assert statuses(connection.run(GROUPS))
    connection.close()


# ── SQLAlchemy ───────────────────────────────────────────────────────────────────────────────────


@pytest.fixture(params=["psycopg", "psycopg2"])
def engine(secant_port, request):
    import sqlalchemy

    engine = sqlalchemy.create_engine(secant_port.address(f"postgresql+{request.param}"))
    yield engine
    engine.dispose()


def test_23_sqlalchemy_reflects(engine):
    import sqlalchemy

    inspector = sqlalchemy.inspect(engine)
    assert {"orders", "customers", "towns"} <= set(inspector.get_table_names())
    assert inspector.get_pk_constraint("orders")["constrained_columns"] == ["id"]
    (reference,) = inspector.get_foreign_keys("orders")
    assert reference["referred_table"] == "customers"
    assert {c["name"] for c in inspector.get_columns("towns")} == {"town", "country", "people"}


def test_24_sqlalchemy_core(engine):
    import sqlalchemy as sa

    orders = sa.Table("orders", sa.MetaData(), autoload_with=engine, schema="public")
    text = (
        sa.select(orders.c.status, sa.func.count().label("n"))
        .where(orders.c.quantity >= 2, orders.c.status.in_(["open", "paid"]))
        .group_by(orders.c.status)
        .order_by(orders.c.status)
    )
    with engine.connect() as connection:
        rows = connection.execute(text).all()
    assert {row.status for row in rows} <= set(STATUSES)
    assert all(isinstance(row.n, int) for row in rows)


# ── frames ───────────────────────────────────────────────────────────────────────────────────────


def test_25_pandas_reads(engine):
    import pandas
    import sqlalchemy as sa

    text = sa.text(
        "SELECT status, count(*) AS n, avg(total) AS a FROM orders WHERE quantity >= :q GROUP BY status"
    )
    frame = pandas.read_sql(text, engine, params={"q": 2})
    assert list(frame.columns) == ["status", "n", "a"]
    assert frame["n"].dtype.kind == "i"
    assert frame["a"].dtype.kind == "f"


def test_26_pandas_in_chunks(engine):
    import pandas

    chunks = list(pandas.read_sql(GROUPS, engine, chunksize=3))
    assert [len(chunk) for chunk in chunks] == [3, 1]


def test_27_polars_reads(engine):
    import polars

    with engine.connect() as connection:
        frame = polars.read_database(GROUPS, connection)
    assert statuses(frame.rows())


def test_28_adbc_arrow(secant_port):
    import adbc_driver_postgresql.dbapi as adbc

    with adbc.connect(secant_port.address()) as connection, connection.cursor() as cursor:
        cursor.execute(GROUPS)
        table = cursor.fetch_arrow_table()
        assert str(table.schema.field("n").type) == "int64"
        assert statuses(list(zip(*table.to_pydict().values(), strict=True)))


def test_29_adbc_parameters_and_polars(secant_port):
    import adbc_driver_postgresql.dbapi as adbc
    import polars

    with adbc.connect(secant_port.address()) as connection:
        frame = polars.read_database(GROUPS, connection)
        with connection.cursor() as cursor:
            cursor.execute(AVERAGE.format("$1"), (2,))
            assert [type(value) for value in cursor.fetchone()] == [float, int, int]
    assert statuses(frame.rows())


# ── psql 18, which comes with the wheel of the tests ─────────────────────────────────────────────


def test_30_psql_18_describes_and_asks(secant_port):
    from clients_found import psql_18

    out = psql_18(
        secant_port, r"\d orders", GROUPS, r"\dt", "SELECT 1 AS one \\gdesc", GROUPS + r" \gdesc"
    )
    assert out.returncode == 0, out.stderr
    assert '"orders_pkey" PRIMARY KEY' in out.stdout
    assert "NOTICE" in out.stderr
    assert "bigint" in out.stdout


def test_31_psql_18_refusal_bind_and_copy(secant_port):
    from clients_found import psql_18

    out = psql_18(
        secant_port,
        "SELECT id FROM customers",
        r"SELECT count(*) AS n FROM orders WHERE quantity >= $1 \bind 3 \g",
        rf"\copy ({GROUPS}) TO STDOUT CSV HEADER",
        "EXPLAIN " + GROUPS,
    )
    assert "LINE 1: SELECT id FROM customers;\n                       ^" in out.stderr
    assert "HINT:  ask for counts" in out.stderr
    assert "status,n" in out.stdout
    assert "stability.count" in out.stdout
    assert "(1 row)" in out.stdout
