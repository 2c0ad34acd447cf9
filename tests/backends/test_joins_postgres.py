"""Surveys of joins and limits of units on PostgreSQL: both engines compute the same figures, and draw from them."""

import re

import duckdb
import pytest
from bench.postgres_data import copy_tables

import secant
from apart import apart
from private_shop import ROWS, SHOP, UNIT, compile_release, make_shop, open_shop, shop_policy
from secant.noise.secrecy import unseal
from secant.noise.smooth import SurveyNoise
from secant.release.measured import measured

pytestmark = pytest.mark.postgres
SINGLE = """
[protections.single]
kind = "rows"
tables = ["customers", "orders"]
epsilon = 100000
composition = "basic"
"""
LIMITLESS = UNIT.split("[protections.people.limits]")[0]
JOINS = {
    "a chain": "SELECT count(*), sum(total) FROM customers AS c JOIN orders AS o ON o.customer = c.id",
    "pairs": "SELECT count(*) FROM orders AS a JOIN orders AS b ON a.customer = b.customer AND a.day < b.day",
    "by group": "SELECT a.status, count(*) FROM orders AS a JOIN orders AS b ON a.status = b.status GROUP BY a.status",
    "three copies": (
        "SELECT count(*) FROM orders AS a, orders AS b, orders AS c WHERE a.customer = b.customer "
        "AND b.status = c.status AND c.quantity < 2"
    ),
    "sums of three": (
        "SELECT count(*), sum(o.total) FROM customers AS c, orders AS o, orders AS b WHERE o.customer = c.id "
        "AND b.customer = c.id AND b.quantity < 3"
    ),
    "padded": "SELECT count(*) FROM customers AS c LEFT JOIN orders AS o ON o.customer = c.id",
    "either": (
        "SELECT count(*) FROM customers AS c, orders AS o WHERE c.id = o.customer OR c.age = o.quantity"
    ),
}  # fmt: skip
UNITS = {
    "counts": "SELECT count(*), sum(total) FROM orders",
    "groups": "SELECT status, count(*), sum(rate), avg(total), count(DISTINCT day) FROM orders GROUP BY status",
}


@pytest.fixture(scope="module")
def shops(postgres_server, tmp_path_factory):
    """The shop without odd rows on both engines, under a policy of one's choice."""
    directory = tmp_path_factory.mktemp("joins_postgres")
    address = postgres_server.address(postgres_server.create_database())
    rows = (
        ROWS.split("INSERT INTO customers VALUES")[0] + ROWS[ROWS.index("INSERT INTO orders\n") :]
    )
    rows = rows[: rows.index("INSERT INTO orders VALUES")]
    with duckdb.connect(str(make_shop(directory, rows=rows)), read_only=True) as connection:
        copy_tables(connection, SHOP, address)

    def opened(protections: str):
        policy = directory / f"server{abs(hash(protections))}.toml"
        policy.write_text(shop_policy(protections), encoding="utf-8")
        ledger = policy.with_suffix(".ledger")
        return open_shop(directory, protections), secant.connect(
            address, policy=policy, ledger=ledger
        )

    return opened


@pytest.mark.parametrize("name", JOINS)
def test_smooth_bounds_of_joins_are_equal(shops, name):
    found = []
    for db in shops(SINGLE):
        with db:
            made = compile_release(db, JOINS[name])
            (bounded,) = made.job.prepared.bounded
            keys = made.keys[bounded.release.name]
            figures = measured(bounded, made.job, keys, apart(db))
            found.append({c: unseal(values) for c, values in figures.values.items()})
            assert any(isinstance(x, SurveyNoise) for x in figures.noise.values())
            assert db.sql(JOINS[name], epsilon=1).rows
    assert found[0] == found[1]


@pytest.mark.parametrize("mode", ["chosen", "race"])
@pytest.mark.parametrize("name", UNITS)
def test_what_units_add_is_equal(shops, name, mode):
    found = []
    for db in shops(LIMITLESS.replace("composition", f'truncation = "{mode}"\ncomposition')):
        with db:
            job = compile_release(db, UNITS[name]).job
            asked = [
                s for n, s in sorted(job.statements.items()) if re.search("above|race|cut|units", n)
            ]
            results = [[[_plain(v) for v in row] for row in apart(db).rows(s)] for s in asked]
            found.append([sorted(rows, key=repr) for rows in results])
            assert db.sql(UNITS[name], epsilon=5).rows
    assert found[0] == found[1]
    assert found[0]


def _plain(value):
    return value if isinstance(value, str) or value is None else float(value)
