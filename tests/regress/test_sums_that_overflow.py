"""Ours: an inner sum of wide decimals, or a sum beside a long fraction, failed on large values.

The engine's error came after the charge, and whether it came depended on the rows of one unit: an
exact answer to "has this customer a very large amount", whatever the epsilon.
"""

import duckdb
import pytest

import secant

POLICY = """
[database]
source = "duckdb:shop.duckdb"
[tables.customers]
key = ["id"]
[tables.orders]
references = { customer = "customers.id" }
[protections.people]
kind = "unit"
unit = "customers.id"
epsilon = 1000
[protections.people.limits]
orders = 10
"""
ROWS = """
CREATE TABLE customers (id BIGINT);
CREATE TABLE orders (customer BIGINT, big BIGINT, wide DECIMAL(38, 0), fine DECIMAL(38, 30));
INSERT INTO customers VALUES (1), (2);
INSERT INTO orders VALUES (1, 1, 1, 1), (2, 2, 2, 2);
INSERT INTO orders SELECT 2, 9223372036854775807, repeat('9', 38), repeat('9', 8)
    FROM range(300);
"""
SUMS = {
    "sum(wide)": "5",
    "sum(DISTINCT wide + customer)": "5",
    "avg(wide)": "5",
    "avg(fine)": "0.5",
    "sum(big)": "0.000000000000000001",
}


@pytest.fixture
def shop(tmp_path):
    with duckdb.connect(str(tmp_path / "shop.duckdb")) as connection:
        connection.execute(ROWS)
    (tmp_path / "policy.toml").write_text(POLICY)
    with secant.connect(policy=tmp_path / "policy.toml") as db:
        yield db


@pytest.mark.parametrize("call", SUMS)
def test_large_values_of_one_unit_raise_nothing(shop, call):
    inner = f"SELECT customer, {call} AS s FROM orders GROUP BY customer"
    answer = shop.sql(f"SELECT count(*) AS n FROM ({inner}) q WHERE s > {SUMS[call]}", epsilon=30)
    assert 0 <= answer.rows[0][0] <= 4


def test_a_sum_beside_a_long_fraction_in_every_place(shop):
    inner = "SELECT customer, sum(big) AS s FROM orders GROUP BY customer"
    for condition in (
        "s IN (0.000000000000000001, 2)",
        "coalesce(s, 0.000000000000000001) > 1",
        "CASE WHEN s > 3 THEN s ELSE 0.000000000000000001 END > 1",
        "s BETWEEN 0.000000000000000001 AND 9",
    ):
        answer = shop.sql(f"SELECT count(*) AS n FROM ({inner}) q WHERE {condition}", epsilon=30)
        assert 0 <= answer.rows[0][0] <= 4, condition
