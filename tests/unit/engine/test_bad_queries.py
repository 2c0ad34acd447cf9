"""Queries that cannot be meant: each has its own code, costs nothing, and says nothing of the data."""

import pytest

from private_shop import no_secret_in
from secant.errors import InternalError, SecantError

REFUSALS = [
    # names
    ("SQL-002", "SELECT count(*) FROM nosuch"),
    ("SQL-002", "SELECT count(nosuch) FROM orders"),
    ("SQL-002", "SELECT count(*) FROM orders AS o WHERE orders.id > 1"),
    ("SQL-002", "SELECT count(*) FROM other.orders"),
    ("SQL-002", "SELECT count(*) FROM information_schema.tables"),
    ("SQL-002", "SELECT * FROM '/etc/passwd'"),
    ("SQL-003", "SELECT id FROM orders AS o JOIN customers AS c ON o.customer = c.id"),
    ("SQL-003", "SELECT count(*) FROM orders, customers WHERE id = 1"),
    # not one SELECT
    ("SQL-001", ""),
    ("SQL-001", " \n\t"),
    ("SQL-001", ";"),
    ("SQL-001", "-- nothing"),
    ("SQL-001", "SELECT"),
    ("SQL-001", "SELECT FROM orders"),
    ("SQL-001", "SELECT count(*) FROM orders WHERE"),
    ("SQL-001", "SELECT 'unclosed"),
    ("SQL-001", "SELECT count(* FROM orders"),
    ("SQL-001", "SELECT '\ud800'"),
    ("SQL-005", "SELECT 1; SELECT 2"),
    ("SQL-005", "SELECT count(*) FROM orders; DROP TABLE orders"),
    ("SQL-005", "DROP TABLE orders"),
    ("SQL-005", "CREATE TABLE x AS SELECT * FROM orders"),
    ("SQL-005", "INSERT INTO orders VALUES (1)"),
    ("SQL-005", "UPDATE orders SET total = 0"),
    ("SQL-005", "DELETE FROM orders"),
    ("SQL-005", "COPY orders TO '/tmp/stolen'"),
    ("SQL-005", "ATTACH 'other.duckdb'"),
    ("SQL-005", "PRAGMA version"),
    ("SQL-005", "SET threads = 1"),
    ("SQL-005", "DESCRIBE orders"),
    ("SQL-005", "SUMMARIZE orders"),
    ("SQL-005", "EXPLAIN SELECT 1"),
    # never run
    ("SQL-006", "SELECT random()"),
    ("SQL-006", "SELECT count(*) FROM orders WHERE random() < 0.5"),
    ("SQL-006", "SELECT now()"),
    ("SQL-006", "SELECT count(*) FROM orders WHERE day < current_date"),
    ("SQL-006", "SELECT gen_random_uuid()"),
    ("SQL-006", "SELECT nextval('s')"),
    ("SQL-006", "SELECT current_setting('threads')"),
    ("SQL-006", "SELECT getenv('HOME')"),
    ("SQL-006", "SELECT * FROM read_csv('/etc/passwd')"),
    ("SQL-006", "SELECT * FROM read_parquet('x.parquet')"),
    ("SQL-006", "SELECT * FROM read_text('/etc/passwd')"),
    ("SQL-006", "SELECT count(*) FROM glob('*')"),
    ("SQL-006", "SELECT * FROM duckdb_settings()"),
    ("SQL-006", "WITH RECURSIVE t AS (SELECT 1 AS x UNION ALL SELECT x + 1 FROM t) SELECT * FROM t"),
    ("SQL-006", "SELECT median(total) OVER () FROM orders"),
    ("SQL-006", "SELECT count(*) FROM orders TABLESAMPLE 10%"),
    ("SQL-006", "SELECT count(*) INTO x FROM orders"),
    ("SQL-006", "SELECT count(*) FROM orders FOR UPDATE"),
    ("SQL-006", "SELECT count(*) FROM orders WHERE CASE WHEN total > 5 THEN error('x') ELSE TRUE END"),
    ("USE-011", "SELECT count(*) FROM orders WHERE total > ?"),
    ("SQL-006", "SELECT count(*) FROM orders WHERE total > 1e999"),
    ("SQL-006", "SELECT 99999999999999999999999999999999999999999999"),
    ("SQL-006", "SELECT count(*) FROM orders LIMIT 99999999999999999999999"),
    ("SQL-006", "SELECT count(*) FROM orders LIMIT -1"),
    ("SQL-006", "SELECT count(*) FROM orders LIMIT (SELECT count(*) FROM orders)"),
    ("SQL-006", f"SELECT count(*) FROM orders LIMIT {'9' * 5000}"),
    # types and shape
    ("SQL-004", "SELECT sum(status) FROM orders"),
    ("SQL-004", "SELECT count(*) FROM orders WHERE status"),
    ("SQL-004", "SELECT count(*) FROM orders WHERE quantity = 'abc'"),
    ("SQL-004", "SELECT count(*) FROM orders WHERE day > '2024-13-45'"),
    ("SQL-004", "SELECT sum(CASE WHEN status = 'open' THEN total ELSE 'x' END) FROM orders"),
    ("SQL-008", "SELECT count(count(*)) FROM orders"),
    ("SQL-008", "SELECT count(*) FROM orders WHERE count(*) > 1"),
    ("SQL-008", "SELECT status, note, count(*) FROM orders GROUP BY status"),
    ("SQL-008", "SELECT count(*) FROM orders ORDER BY 5"),
    ("SQL-008", "SELECT status, count(*) FROM orders GROUP BY 7"),
    # rows of a protected table, as they are
    ("REF-102", "SELECT * FROM orders"),
    ("REF-102", "FROM orders"),
    ("REF-102", "SELECT name FROM customers LIMIT 1"),
    ("REF-102", "SELECT DISTINCT note FROM orders"),
    ("REF-102", "SELECT t.country, c.name FROM towns AS t JOIN customers AS c ON c.town = t.town"),
    ("REF-102", "SELECT town FROM towns WHERE town IN (SELECT town FROM customers)"),
    # no bound
    ("REF-101", "SELECT max(note) FROM orders"),
    ("REF-101", "SELECT count(*) FROM orders, customers"),
    ("REF-101", "SELECT stddev(total / quantity) FROM orders"),
    ("REF-101", "SELECT count(*) FROM (SELECT * FROM orders LIMIT 10) AS u"),
    ("REF-101", "SELECT count(*) FROM orders WHERE total = (SELECT total FROM orders)"),
    ("REF-101", "SELECT count(*) FROM orders WHERE status = (SELECT town FROM towns)"),
    ("REF-101", "SELECT count((SELECT people FROM towns)) FROM orders"),
    ("REF-101", "SELECT (SELECT town FROM towns) AS k, count(*) FROM orders GROUP BY k"),
    ("REF-101", "SELECT stddev(CAST(note AS INTEGER)) FROM orders"),
    ("REF-101", "SELECT stddev(exp(quantity * 1000)) FROM orders"),
    ("REF-101", "SELECT sum(total * 1e308) FROM orders"),
    ("REF-101", "SELECT sum(total * 9223372036854775807) FROM orders"),
    # too large
    ("SQL-007", "SELECT count(*) FROM orders WHERE id IN (" + "1," * 5_000_000 + "1)"),
    ("SQL-007", "SELECT count(*) FROM orders AS o " + "JOIN towns AS t ON t.town = o.status " * 500),
    ("SQL-007", "SELECT count(*) FROM orders AS o, " + ", ".join(f"towns AS t{i}" for i in range(500))),
    ("SQL-007", "SELECT count(*) FROM orders WHERE " + " AND ".join(["id > 1"] * 10_000)),
    ("SQL-007", "SELECT count(*) FROM orders WHERE " + "(" * 90_000 + "1 = 1" + ")" * 90_000),
    ("SQL-007", "SELECT count(*) FROM orders WHERE " + "(" * 1_000 + "1 = 1" + ")" * 1_000),
    ("SQL-007", "SELECT count(*) FROM orders WHERE " + "NOT " * 5_000 + "TRUE"),
    ("SQL-007", "SELECT " + "- " * 5_000 + "1"),
    ("SQL-007", "SELECT " + "1 + " * 5_000 + "1"),
    ("SQL-007", "SELECT " + "CASE WHEN TRUE THEN " * 200 + "1" + " END" * 200),
    ("SQL-007", "SELECT count(*) FROM " + "(SELECT * FROM " * 200 + "orders" + ") AS u" * 200),
    ("SQL-007", " UNION ALL ".join(["SELECT 1"] * 10_000)),
    (
        "SQL-007",
        "WITH a0 AS (SELECT count(*) AS n FROM orders)"
        + "".join(f", a{i} AS (SELECT x.n + y.n AS n FROM a{i - 1} AS x, a{i - 1} AS y)" for i in range(1, 60))
        + " SELECT n FROM a59",
    ),
]  # fmt: skip


def shortened(value):
    return value[:60] if isinstance(value, str) else None


@pytest.mark.parametrize(("code", "query"), REFUSALS, ids=shortened)
def test_a_query_that_cannot_be_answered_has_its_code_and_costs_nothing(people, code, query):
    before = people.budget["people"]
    for ask in (lambda: people.explain(query), lambda: people.sql(query, epsilon=1)):
        with pytest.raises(SecantError) as caught:
            ask()
        assert caught.value.code == code
        assert not isinstance(caught.value, InternalError)
        assert no_secret_in(caught.value.render() + repr(caught.value.to_dict()))
    assert people.budget["people"] == before


def test_a_refusal_names_every_reason_and_what_to_do(people):
    with pytest.raises(SecantError) as caught:
        people.sql("SELECT count(*) FROM orders, customers", epsilon=1)
    assert caught.value.details
    assert caught.value.hint
    assert "^" in caught.value.render() or caught.value.span is None


@pytest.mark.parametrize("text", [None, 5, b"SELECT 1", ["SELECT 1"]])
def test_a_query_must_be_text(people, text):
    with pytest.raises(SecantError) as caught:
        people.explain(text)
    assert caught.value.code == "USE-001"


def test_queries_just_below_the_walls_are_answered(people):
    many = "SELECT count(*) FROM orders WHERE " + " AND ".join(f"id <> {i}" for i in range(120))
    joins = "SELECT count(*) FROM orders AS o " + " ".join(
        f"JOIN towns AS t{i} ON t{i}.town = o.status" for i in range(40)
    )
    listed = f"SELECT count(*) FROM orders WHERE id IN ({', '.join(map(str, range(2_000)))})"
    for query in (many, joins, listed):
        assert people.explain(query).record["exact"] is False


def test_three_hundred_columns(people):
    chosen = ", ".join(f"count(*) + {i} AS n{i}" for i in range(300))
    answer = people.sql(f"SELECT {chosen} FROM orders", epsilon=1)
    (row,) = answer.rows
    assert answer.columns == [f"n{i}" for i in range(300)]
    assert [value - row[0] for value in row] == list(range(300))
