"""Rows made to break a query: none of them may raise an error that tells of it, nor show in any text.

Each query runs on the shop with and without the hostile rows: both must be answered. An engine that
fails on one row tells that the row is there, whatever noise would have been added.
"""

import logging
import math
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import secant
from apart import apart
from private_shop import ROWWISE, SECRETS, UNIT, make_shop, no_secret_in, open_shop
from secant.engines.duckdb.session import DuckDBSession
from secant.errors import BackendError, SecantError

TINY = "0.0000000000000000000000000001"  # 28 digits after the point: no room for a BIGINT before it

CONDITIONS = [
    "quantity / 0 > 1", "quantity // 0 > 1", "quantity % 0 > 1", "1 // (quantity - quantity) > 1",
    "big + 1 > 5", "big - 9223372036854775807 > 5", "big * big > 5", "-big > 5", "abs(big) > 5",
    "quantity * 1000000000 > 5", "quantity + 2147483647 > 5", "quantity * quantity * quantity > 5",
    "total * total * total * total * total > 5", "total * 99999999999999999999999999.99 > 5",
    "CAST(note AS INTEGER) > 3", "CAST(note AS DATE) > DATE '2020-01-01'", "CAST(note AS BOOLEAN)",
    "NOT CAST(note AS BOOLEAN) OR quantity > 3", "CAST(note AS DOUBLE) > 3", "CAST(note AS TIMESTAMP) IS NULL",
    "CAST(quantity AS TINYINT) > 3", "CAST(big AS INTEGER) > 3", "CAST(total AS DECIMAL(4, 2)) > 3",
    "CAST(rate AS INTEGER) > 3", "CAST(rate * 1e300 * 1e300 AS BIGINT) > 3", "CAST(big AS DECIMAL(18, 2)) > 0",
    "ln(quantity) > 1", "sqrt(quantity) > 1", "exp(quantity) > 1", "power(quantity, 1000) > 1",
    "power(big, 0.5) > 1", "ln(0 * quantity) > 1", "exp(rate) > 0", "round(rate, 400) > 0", "round(big, -30) > 3",
    "day + INTERVAL 9000 YEAR > DATE '2024-01-01'", "day - INTERVAL 9000 YEAR < DATE '2024-01-01'",
    "day + 2147483647 > DATE '2024-01-01'", "day + quantity > DATE '2024-01-01'", "day - DATE '0001-01-01' > 1",
    "day < TIMESTAMP '2024-01-01 10:00:00'", "date_trunc('month', day) = DATE '2024-01-01'",
    "date_diff('day', day, DATE '2024-01-01') > 1", "extract(year FROM day) > 2000",
    "substring(note, quantity) = 'a'", "left(note, big) = 'a'", "right(note, big) = 'a'", "length(note) > 3",
    f"big > {TINY}", f"big IN (1.5, {TINY})", f"big BETWEEN {TINY} AND 5", f"coalesce(big, {TINY}) > 1",
    f"CASE WHEN quantity > 3 THEN big ELSE {TINY} END > 1", f"greatest(big, {TINY}) > 1", f"nullif(big, {TINY}) > 1",
    f"big IS DISTINCT FROM {TINY}", "total > 0.00000000000000000000000000000000000001", "big + 0 > 1.5",
    "EXISTS (SELECT 1 FROM towns WHERE people + big > 3)", "big + 1 IN (SELECT people FROM towns)",
    "CASE WHEN CAST(note AS BOOLEAN) THEN TRUE ELSE CAST(note AS INTEGER) = 2 END",
    "total > (SELECT max(people) FROM towns)",
]  # fmt: skip

ASKED = [
    *(f"SELECT count(*) FROM orders WHERE {condition}" for condition in CONDITIONS),
    "SELECT sum(quantity * quantity), sum(quantity * 10000000000), sum(total * total) FROM orders",
    "SELECT sum(rate), avg(rate), stddev(rate), var_pop(rate) FROM orders",
    "SELECT sum(big), avg(big), variance(big), sum(DISTINCT big), count(DISTINCT big + 1) FROM orders",
    "SELECT avg(total * 9223372036854775807) FROM orders",
    "SELECT sum(CAST(CAST(note AS BOOLEAN) AS INTEGER)) FROM orders",
    "SELECT sum(total / (quantity + 1)), sum(ln(quantity + 1)), sum(exp(rate)) FROM orders",
    "SELECT CAST(note AS INTEGER) AS k, count(*) FROM orders GROUP BY k",
    "SELECT CAST(note AS BOOLEAN) AS k, count(*) FROM orders GROUP BY k",
    "SELECT quantity * 1000000000 AS k, count(*) FROM orders GROUP BY k",
    "SELECT big * 3 AS k, count(*) FROM orders GROUP BY k",
    "SELECT day + INTERVAL 9000 YEAR AS k, count(*) FROM orders GROUP BY k",
    "SELECT day, count(*) FROM orders GROUP BY day",
    f"SELECT coalesce(big, {TINY}) AS k, count(*) FROM orders GROUP BY k",
    "SELECT rate, count(*) FROM orders GROUP BY rate",
    "SELECT total, quantity, count(*) FROM orders GROUP BY total, quantity",
    "SELECT note, count(*) FROM orders GROUP BY note",
    "SELECT status, count(*), sum(total), avg(rate) FROM orders GROUP BY status",
    "SELECT status, extract(year FROM day) AS y, count(*) FROM orders GROUP BY status, y",
    "SELECT count(*) FROM (SELECT customer, sum(big) AS s FROM orders GROUP BY customer) AS u WHERE s * s > 5",
    "SELECT count(*) FROM (SELECT customer, sum(big) AS s FROM orders GROUP BY customer) AS u WHERE s > 1.5",
    "SELECT count(*) FROM (SELECT customer, avg(big) AS s, stddev(rate) AS r FROM orders GROUP BY 1) WHERE r > s",
    ("SELECT count(*) FROM (SELECT customer, max(CAST(note AS INTEGER)) AS x FROM orders GROUP BY customer "
    "HAVING max(big + 1) > 3) AS u"),
    "SELECT count(*) FROM (SELECT * FROM orders ORDER BY CAST(note AS INTEGER)) AS u",
    "SELECT count(*) FROM orders AS o JOIN towns AS t ON t.town = o.note AND CAST(o.note AS INTEGER) = 1",
    "SELECT count(*) FILTER (WHERE CAST(note AS INTEGER) > 1) FROM orders",
]  # fmt: skip

HARMLESS = """
INSERT INTO towns VALUES ('Riga', 'LV', 600000), ('Tartu', 'EE', 95000), ('Oslo', 'NO', 700000);
INSERT INTO customers SELECT i, 'name', 'Riga', 30, 10, 1 FROM range(1, 30) AS r(i);
INSERT INTO orders SELECT i, 1 + i % 29, 'open', DATE '2024-01-01', 10, 1, 0.5, '1', 1 FROM range(1, 60) AS r(i);
"""


@pytest.fixture(scope="module")
def harmless(tmp_path_factory):
    directory = tmp_path_factory.mktemp("harmless")
    make_shop(directory, rows=HARMLESS)
    with open_shop(directory, UNIT) as units, open_shop(directory, ROWWISE) as rows:
        yield units, rows


def outcome(db, query):
    try:
        return len(db.sql(query, epsilon=1).columns)
    except SecantError as error:
        return error.code if no_secret_in(error.render()) else "a secret is told"


@pytest.mark.parametrize("query", ASKED)
def test_hostile_rows_do_not_decide_whether_there_is_an_answer(people, single, harmless, query):
    for hostile, tame in zip((people, single), harmless, strict=True):
        found = outcome(hostile, query)
        assert found == outcome(tame, query)
        assert isinstance(found, int) or found == "REF-101"


def test_most_of_these_are_answered(people):
    answered = 0
    for query in ASKED:
        try:
            answered += not people.explain(query).record["exact"]
        except SecantError:
            continue
    assert answered >= len(ASKED) - 4


def finite(value):
    return value is None or isinstance(value, str) or math.isfinite(value)


def test_special_numbers_are_moved_into_the_range(people):
    (row,) = people.sql("SELECT avg(rate), sum(rate), avg(income), stddev(income) FROM orders, customers "
                        "WHERE orders.customer = customers.id", epsilon=5).rows  # fmt: skip
    assert all(map(finite, row))
    assert 0 <= row[0] <= 1
    assert 0 <= row[2] <= 100_000


def test_an_empty_table_and_only_nulls(single):
    for table in ("nothing", "holes"):
        query = (
            f"SELECT count(*), count(amount), sum(amount), avg(amount), stddev(amount) FROM {table}"
        )
        (row,) = single.sql(query, epsilon=5).rows
        assert all(map(finite, row))
        assert abs(row[1]) < 60
        assert 0 <= row[3] <= 10
    assert single.sql("SELECT label, count(*) FROM nothing GROUP BY label", epsilon=1).rows == []
    (null_group,) = single.sql("SELECT label, count(*) FROM holes GROUP BY label", epsilon=20).rows
    assert null_group[0] is None


def test_no_secret_in_explanations_logs_or_the_ledger(tmp_path, caplog):
    caplog.set_level(logging.DEBUG)
    with open_shop(tmp_path, UNIT) as db:
        for query in ASKED:
            outcome(db, query)
            try:
                explained = db.explain(query)
            except SecantError as error:
                texts = [error.render(), str(error), repr(error), repr(error.to_dict())]
            else:
                texts = [str(explained), repr(explained.to_dict()), *explained.statements]
            assert all(map(no_secret_in, texts))
        for line in db.ledger.export():
            assert no_secret_in(line)
    assert no_secret_in(caplog.text)
    kept = [p for p in tmp_path.iterdir() if p.suffix not in (".duckdb", ".toml")]
    assert any(p.suffix == ".ledger" for p in kept)
    for path in kept:
        assert not any(secret.encode() in path.read_bytes() for secret in SECRETS)


def test_stray_and_rare_keys_are_never_shown(people, single):
    for db in (people, single):
        for query in (
            "SELECT town, count(*) FROM customers GROUP BY town",
            "SELECT status, count(*), sum(total) FROM orders GROUP BY status",
            "SELECT name, count(*) FROM customers GROUP BY name",
            "SELECT note, status, count(*) FROM orders GROUP BY note, status",
            "SELECT quantity, count(*) FROM orders GROUP BY quantity ORDER BY 1 DESC",
        ):
            assert no_secret_in(repr(db.sql(query, epsilon=1).rows))


def test_even_the_cause_of_an_engine_error_is_withheld(people, monkeypatch):
    def fail(session, statement):
        raise RuntimeError("row (SECRET_SMITH, 987654321) is broken")

    monkeypatch.setattr(DuckDBSession, "_fetched", fail)
    with pytest.raises(BackendError) as caught:
        apart(people).rows("SELECT 1")
    assert no_secret_in(caught.value.render())
    assert caught.value.__suppress_context__


def test_a_bug_says_nothing_of_data(people, monkeypatch):
    def fail(session, statement):
        raise KeyError("SECRET_SMITH")

    monkeypatch.setattr(DuckDBSession, "rows", fail)
    with pytest.raises(SecantError) as caught:
        people.sql("SELECT count(*) FROM orders", epsilon=1)
    assert caught.value.code == "BUG-001"
    assert no_secret_in(caught.value.render())
    assert caught.value.__context__ is None


# ── text that is not UTF-8 ───────────────────────────────────────────────────────────────────────

FILES = """
[database]
source = "{kind}:files"
[tables.people.columns]
age = {{ range = [0, 100] }}
[protections.single]
kind = "rows"
epsilon = 1000
delta = 0.001
"""


def open_files(directory: Path, kind: str) -> secant.Connection:
    (directory / "policy.toml").write_text(FILES.format(kind=kind))
    return secant.connect(policy=directory / "policy.toml")


def test_csv_lines_that_cannot_be_read_are_left_out(tmp_path):
    (tmp_path / "files").mkdir()
    lines = b"".join(b"%d,n%d,%d\n" % (i, i, i) for i in range(50))
    broken = b'77,SECRET_\xff\xfeSMITH,5\n79,"unclosed,4\n'
    (tmp_path / "files" / "people.csv").write_bytes(b"id,name,age\n" + lines + broken)
    with open_files(tmp_path, "csv") as db:
        assert abs(db.sql("SELECT count(*) FROM people", epsilon=50).rows[0][0] - 51) <= 2
        assert db.sql("SELECT name, count(*) FROM people GROUP BY name", epsilon=1).rows == []
        assert db.sql("SELECT count(*) FROM people WHERE name LIKE 'n%'", epsilon=1).rows


def test_parquet_text_that_is_not_utf8_is_a_typed_error_without_the_text(tmp_path):
    (tmp_path / "files").mkdir()
    raw = pa.array([*(b"n%d" % i for i in range(50)), b"SECRET_SMITH\xff\xfe"], type=pa.binary())
    table = pa.table({"name": raw.view(pa.string()), "age": pa.array(range(51))})
    pq.write_table(table, tmp_path / "files" / "people.parquet")
    with open_files(tmp_path, "parquet") as db:
        assert db.sql("SELECT sum(age), count(*) FROM people", epsilon=1).rows
        spent = db.budget["single"].spent_epsilon
        with pytest.raises(BackendError) as caught:
            db.sql("SELECT count(*) FROM people WHERE name LIKE 'n%'", epsilon=1)
        assert caught.value.code == "BAK-002"
        assert no_secret_in(caught.value.render())
        assert db.budget["single"].spent_epsilon == spent + 1  # a statement was sent
