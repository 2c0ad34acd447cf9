"""Queries in stages on PostgreSQL: the server takes the tables that are put before a statement, and answers alike."""

import duckdb
import pytest
from bench.postgres_data import copy_tables

import secant
from apart import apart
from private_shop import ROWS, SHOP, UNIT, compile_release, make_shop, open_shop, shop_policy

pytestmark = pytest.mark.postgres
QUERIES = {
    "a constant": "SELECT count(*) FROM customers WHERE age > (SELECT avg(age) FROM customers)",
    "public rows": (
        "SELECT count(*) FROM customers AS c JOIN towns AS t ON c.town = t.town WHERE t.people > 100000 "
        "AND c.age > (SELECT avg(d.age) FROM customers AS d WHERE d.town = t.town)"
    ),
    "a lookup": (
        "SELECT town FROM towns AS t WHERE country IN (SELECT country FROM towns WHERE people > 650000) "
        "AND (SELECT sum(score) FROM customers AS c WHERE c.town = t.town) > 10"
    ),
    "listed": (
        "SELECT count(*) FROM customers WHERE town IN "
        "(SELECT town FROM customers GROUP BY town HAVING count(*) > 15)"
    ),
}  # fmt: skip


@pytest.fixture(scope="module")
def engines(postgres_server, tmp_path_factory):
    """The shop without odd rows on both engines."""
    directory = tmp_path_factory.mktemp("staged_postgres")
    address = postgres_server.address(postgres_server.create_database())
    rows = ROWS.split("INSERT INTO customers VALUES")[0]
    with duckdb.connect(str(make_shop(directory, rows=rows)), read_only=True) as connection:
        copy_tables(connection, SHOP, address)
    policy = directory / "server.toml"
    policy.write_text(shop_policy(UNIT), encoding="utf-8")
    with (
        open_shop(directory) as local,
        secant.connect(address, policy=policy, ledger=directory / "server.ledger") as server,
    ):
        yield local, server


@pytest.mark.parametrize("name", QUERIES)
def test_both_engines_give_the_plain_answer_where_there_is_little_noise(engines, name):
    local, _ = engines
    plain = apart(local).rows(QUERIES[name])
    for db in engines:
        # Noise of scale 1e-4 moves whole numbers with probability below 1e-4000.
        shown = compile_release(db, QUERIES[name], epsilon=10**5).draw().rows
        assert sorted(map(repr, shown)) == sorted(map(repr, plain))
    assert plain


@pytest.mark.parametrize("name", QUERIES)
def test_a_server_binds_and_answers_in_stages(engines, name):
    _, server = engines
    before = server.budget["people"].spent_epsilon
    answer = server.sql(QUERIES[name], epsilon=1)
    assert answer.columns
    assert 0.999 < server.budget["people"].spent_epsilon - before <= 1
