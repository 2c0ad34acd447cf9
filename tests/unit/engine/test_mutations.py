"""Thousands of damaged queries: no crash, no bug, whatever the words."""

import random
from collections import Counter
from pathlib import Path

import pytest
from query_mutations import mutate, words
from test_hostile_data import ASKED as HOSTILE

from apart import apart
from chance import LONG
from secant.errors import BackendError, InternalError, SecantError

DATA = Path(__file__).parents[2] / "data"
TPCH = [path.read_text().strip().rstrip(";") for path in sorted((DATA / "tpch").glob("q*.sql"))]
SMALL = [
    line
    for line in (Path(__file__).parent / "mutated_queries.sql").read_text().splitlines()
    if line
]
SHOP = [
    line for line in (Path(__file__).parent / "shop_queries.sql").read_text().splitlines() if line
]

TPCH_SCHEMA = """
CREATE TABLE customer (c_custkey BIGINT, c_name VARCHAR, c_address VARCHAR, c_nationkey BIGINT, c_phone VARCHAR,
    c_acctbal DECIMAL(15, 2), c_mktsegment VARCHAR, c_comment VARCHAR);
CREATE TABLE orders (o_orderkey BIGINT, o_custkey BIGINT, o_orderstatus VARCHAR, o_totalprice DECIMAL(15, 2),
    o_orderdate DATE, o_orderpriority VARCHAR, o_clerk VARCHAR, o_shippriority INTEGER, o_comment VARCHAR);
CREATE TABLE lineitem (l_orderkey BIGINT, l_partkey BIGINT, l_suppkey BIGINT, l_linenumber INTEGER,
    l_quantity DECIMAL(15, 2), l_extendedprice DECIMAL(15, 2), l_discount DECIMAL(15, 2), l_tax DECIMAL(15, 2),
    l_returnflag VARCHAR, l_linestatus VARCHAR, l_shipdate DATE, l_commitdate DATE, l_receiptdate DATE,
    l_shipinstruct VARCHAR, l_shipmode VARCHAR, l_comment VARCHAR);
CREATE TABLE part (p_partkey BIGINT, p_name VARCHAR, p_mfgr VARCHAR, p_brand VARCHAR, p_type VARCHAR, p_size INTEGER,
    p_container VARCHAR, p_retailprice DECIMAL(15, 2), p_comment VARCHAR);
CREATE TABLE supplier (s_suppkey BIGINT, s_name VARCHAR, s_address VARCHAR, s_nationkey BIGINT, s_phone VARCHAR,
    s_acctbal DECIMAL(15, 2), s_comment VARCHAR);
CREATE TABLE partsupp (ps_partkey BIGINT, ps_suppkey BIGINT, ps_availqty INTEGER, ps_supplycost DECIMAL(15, 2),
    ps_comment VARCHAR);
CREATE TABLE nation (n_nationkey BIGINT, n_name VARCHAR, n_regionkey BIGINT, n_comment VARCHAR);
CREATE TABLE region (r_regionkey BIGINT, r_name VARCHAR, r_comment VARCHAR);
"""


@pytest.fixture(scope="module")
def tpch(tmp_path_factory):
    import duckdb

    import secant

    directory = tmp_path_factory.mktemp("empty_tpch")
    with duckdb.connect(str(directory / "tpch.duckdb")) as connection:
        connection.execute(TPCH_SCHEMA)
    with secant.connect(
        f"duckdb:{directory}/tpch.duckdb",
        policy=DATA / "policies" / "customers.toml",
        ledger=directory / "x.ledger",
    ) as db:
        yield db


def judged(ask):
    """Give how a query ended; fail if that was a bug."""
    try:
        found = ask()
    except InternalError as error:
        raise AssertionError(f"{error.render()} {error.__context__!r}") from error
    except SecantError as error:
        return error.code
    return found


def damaged(queries, seed, count):
    return [(f"{seed}/{i}", mutate(queries, random.Random(f"{seed}/{i}"))) for i in range(count)]


BATCHES = range(40 if LONG else 6)
EACH = 250


@pytest.mark.parametrize("batch", BATCHES)
def test_damaged_queries_are_explained_or_refused(tpch, batch):
    ends = Counter()
    for name, query in damaged([*TPCH, *SMALL, *SMALL], batch, EACH):
        try:
            ends[judged(lambda query=query: tpch.explain(query).record["exact"])] += 1
        except AssertionError:
            pytest.fail(f"mutation {name} is a bug: {query!r}")
    # The damage is neither always fatal nor always harmless.
    assert ends["SQL-001"] > 20
    assert ends[False] + ends[True] > 5
    assert len(ends) > 4


@pytest.mark.parametrize("batch", range(20 if LONG else 3))
def test_damaged_queries_are_answered_or_refused(people, batch):
    before = people.budget["people"].spent_epsilon
    ends = Counter()
    for name, query in damaged(SHOP, f"shop{batch}", 100):
        try:
            end = judged(lambda query=query: len(people.sql(query, epsilon=1).rows) >= 0)
        except AssertionError:
            pytest.fail(f"mutation {name} is a bug: {query!r}")
        if isinstance(end, str) and not end.startswith("BAK"):
            # Whatever was refused cost nothing.
            assert people.budget["people"].spent_epsilon == before
        before = people.budget["people"].spent_epsilon
        ends[end] += 1
    assert ends[True] > 2


@pytest.mark.parametrize("batch", range(20 if LONG else 4))
def test_no_row_decides_whether_a_damaged_query_fails(people, single, batch):
    # The shop holds rows made to break casts, sums and dates: a statement that fails would tell of them.
    ran = 0
    for db in (people, single):
        for name, query in damaged([*SHOP, *HOSTILE], f"hostile{batch}", 100):
            try:
                explained = db.explain(query)
            except SecantError as error:
                assert error.code != "BUG-001", (name, query)  # noqa: PT017 - most of them are refused
                continue
            if not explained.record["exact"]:
                ran += _ran(db, explained.statements, query)
    assert ran > 10


def _ran(db, statements, query):
    for statement in statements:
        try:
            apart(db).check(statement)
        except BackendError:
            return 0  # refused before anything is sent
        try:
            apart(db).rows(statement)
        except BackendError as error:
            pytest.fail(f"a row decides: {query!r} {error.__context__!r}")
    return 1


def test_the_judge_notices_a_bug():
    def broken():
        raise InternalError("BUG-001", "planted")

    def failing():
        raise BackendError("BAK-002", "planted")

    with pytest.raises(AssertionError):
        judged(broken)
    assert judged(failing) == "BAK-002"


def test_the_corpus_is_valid_and_large_enough(tpch, people):
    assert len(TPCH) == 22
    assert len(SMALL) >= 30
    for query in (*TPCH, *SMALL):
        assert judged(lambda query=query: tpch.explain(query).record["exact"]) in {
            True,
            False,
            "REF-101",
        }
    for query in SHOP:
        assert judged(lambda query=query: people.explain(query).record["exact"]) in {True, False}


def test_words_keep_the_text():
    for query in (*TPCH, *SMALL):
        assert "".join(words(query)) == query
