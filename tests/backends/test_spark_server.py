"""The Spark server: what it offers, what a session promises is kept, and no value is told."""

from __future__ import annotations

import shutil
import threading
import time
from dataclasses import replace

import duckdb
import pytest
from engines import in_parquet

import secant
from apart import apart
from private_shop import SHOP, make_shop
from secant.engines.sources import open_source
from secant.engines.spark.session import open_server
from secant.engines.watch import Interrupt, interruptible
from secant.errors import BackendError
from secant.policy.policy import USUAL

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def shop(spark_server, tmp_path_factory):
    """The shop on both engines: a directory with the DuckDB file, and the source on Spark."""
    directory = tmp_path_factory.mktemp("spark_shop")
    with duckdb.connect(str(make_shop(directory)), read_only=True) as connection:
        return directory, in_parquet(connection, SHOP, {}, directory / "parquet", spark_server)


@pytest.fixture
def schema(spark_server):
    """A schema of the server's own catalog, and a way to change it."""
    backend = open_server(spark_server.address.removeprefix("spark:"))
    server = backend._servers.get()
    server.sql("CREATE SCHEMA own")
    yield server
    server.sql("DROP SCHEMA own CASCADE")
    backend.close()


def test_tables_of_the_catalog(schema, spark_server):
    schema.sql(
        "CREATE TABLE own.kinds USING parquet AS SELECT 1Y AS tiny, 2L AS large, CAST(1.5 AS FLOAT) AS short, "
        "2.5D AS long, 'x' AS word, DATE '2020-01-01' AS day, TIMESTAMP_LTZ '2020-01-01 00:00:00' AS zoned, "
        "TIMESTAMP_NTZ '2020-01-01 00:00:00' AS moment, CAST(1 AS DECIMAL(10, 2)) AS price, X'00' AS bytes, "
        "array(1) AS several, named_struct('a', 1) AS pair, TRUE AS truth"
    )
    schema.sql("CREATE VIEW own.seen AS SELECT * FROM own.kinds")
    schema.sql("CREATE TABLE own.lines USING csv AS SELECT 1 AS a")
    found = apart(open_server(f"sc://127.0.0.1:{spark_server.port}?schema=own"))
    table = found.catalog().tables["kinds"]
    assert {name: kind.kind for name, kind in table.columns} == {
        "tiny": "INTEGER", "large": "INTEGER", "short": "DOUBLE", "long": "DOUBLE", "word": "TEXT", "day": "DATE",
        "zoned": "TIMESTAMP", "moment": "TIMESTAMP", "price": "DECIMAL", "bytes": "TEXT", "truth": "BOOLEAN",
    }  # fmt: skip
    assert [name for name, _ in table.missing] == ["several", "pair"]
    assert dict(found.catalog().missing).keys() == {"seen", "lines"}
    entered = found.session(["kinds"])
    session = entered.__enter__()
    assert session.rows("SELECT count(*) FROM own.kinds") == [(1,)]
    schema.sql("INSERT INTO own.kinds SELECT * FROM own.kinds")
    with pytest.raises(BackendError) as written:
        session.confirm()
    assert written.value.code == "BAK-004"
    with pytest.raises(BackendError) as at_the_end:
        entered.__exit__(None, None, None)
    assert at_the_end.value.code == "BAK-004"
    with found.session(["kinds"]) as again:
        assert again.rows("SELECT count(*) FROM own.kinds") == [(2,)]
    schema.sql("ALTER TABLE own.kinds ADD COLUMN more INT")
    with pytest.raises(BackendError) as otherwise:
        found.session(["kinds"]).__enter__()
    assert otherwise.value.code == "BAK-004"
    found.close()


def test_a_release_sees_one_state(shop, tmp_path):
    """Rows that come between two statements would be in one of them only."""
    folder = tmp_path / "parquet"
    shutil.copytree(shop[0] / "parquet", folder)
    backend = apart(open_source(f"{shop[1].partition('?')[0]}?parquet={folder}"))
    entered = backend.session(["orders"])
    session = entered.__enter__()
    session.rows(f'SELECT count(*) FROM parquet."{folder}/orders.parquet"')
    few = f"SELECT * FROM '{shop[0]}/parquet/orders.parquet' LIMIT 7"
    with duckdb.connect() as connection:
        connection.execute(f"COPY ({few}) TO '{folder}/orders.parquet' (FORMAT parquet)")
    with pytest.raises(BackendError) as changed:
        entered.__exit__(None, None, None)
    assert changed.value.code == "BAK-004"
    backend.close()


SLOW = "SELECT count(*) FROM range(0, 100000000000, 1, 2) WHERE id % 7 = 3 AND sqrt(id) <> 0.5"


@pytest.mark.long  # whatever of it goes on at the server would slow all tests that follow
def test_a_slow_statement_ends(shop):
    place = shop[1].removeprefix("spark:")
    backend = apart(open_server(place, replace(USUAL, seconds=1.5)))
    started = time.monotonic()
    with pytest.raises(BackendError) as slow:
        backend.rows(SLOW)
    assert slow.value.code == "BAK-005"
    interrupt = Interrupt()
    timer = threading.Timer(0.5, interrupt.stop)
    timer.start()
    with pytest.raises(BackendError) as canceled, interruptible(interrupt):
        backend.rows(SLOW)
    assert canceled.value.code == "BAK-006"
    timer.join()
    assert time.monotonic() - started < 60  # alone it would take an hour
    assert backend.rows("SELECT 1") == [(1,)]
    backend.close()


def test_no_value_is_told(shop, spark_server, tmp_path, capfd):
    """Values that Spark's functions fail on are NULL; and where a statement fails after all, nobody hears of them."""
    folder = tmp_path / "parquet"
    with duckdb.connect() as connection:
        connection.execute(
            "CREATE TABLE t AS SELECT 9223372036854775123 AS n, 'canary-7301' AS w, 1.5e300::DOUBLE AS x, "
            "99999999999999999999999999999999.731::DECIMAL(38, 3) AS d, DATE '5881570-07-31' AS day"
        )
        source = in_parquet(connection, ["t"], {}, folder, spark_server)
    before = spark_server.log.stat().st_size
    policy = tmp_path / "policy.toml"
    policy.write_text(CANARIES, encoding="utf-8")
    with secant.connect(source, policy=policy, ledger=tmp_path / "l") as db:
        for few in (FAILING[:11], FAILING[11:22], FAILING[22:]):
            told = " + ".join(f"CASE WHEN ({e}) IS NULL THEN 1 ELSE 0 END" for e in few)
            db.sql(f"SELECT count(*) FROM t WHERE {told} > 2", epsilon=1)
        written = spark_server.log.read_bytes()[before:].decode(errors="replace")
        with pytest.raises(BackendError) as failed:
            apart(db).rows(f'SELECT raise_error(w) FROM parquet."{folder}/t.parquet"')
    assert failed.value.code == "BAK-002"
    heard = capfd.readouterr()
    for said in (heard.out, heard.err, str(failed.value), repr(failed.value.__cause__), written):
        assert not any(canary in said for canary in TOLD)
    forced = spark_server.log.read_bytes()[before + len(written) :].decode(errors="replace")
    assert "canary-7301" in forced, "the owner's own log does tell, once a statement fails"


TOLD = ("9223372036854775123", "canary-7301", "1.5E300", "999999999999.731", "5881570")
FAILING = [
    "n + n", "n * n", "- n - n", "abs(n * 2)", "- d", "abs(d)", "d * d", "d + d", "CAST(w AS BIGINT)",
    "CAST(w AS DATE)", "CAST(w AS DOUBLE)", "CAST(x AS BIGINT)", "CAST(d AS BIGINT)", "CAST(n AS DECIMAL(4, 2))",
    "n // (n - n)", "n % (n - n)", "x / (x - x)", "floor(x)", "round(x, 2)", "exp(x)", "ln(- x)", "day + n",
    "day + INTERVAL '1' MONTH", "CAST(day AS TIMESTAMP)", "date_trunc('year', day)", "date_diff('second', day, day)",
    "strftime(day, '%Y')", "make_date(n, n, n)", "substring(w, n)", "left(w, n)", "power(x, x)", r"w LIKE w || '\'",
    "extract(epoch FROM day)",
]  # fmt: skip
CANARIES = """
[tables.t]
[protections.single]
kind = "rows"
tables = ["t"]
epsilon = 1000
"""
