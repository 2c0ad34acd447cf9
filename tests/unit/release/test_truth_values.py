"""`bool_and` and `bool_or` say by how many rows they may be off (noise.truths)."""

from __future__ import annotations

from fractions import Fraction

import duckdb
import pytest

import secant
from secant.noise.mechanisms.discrete_laplace import discrete_laplace_tail

POLICY = """
[database]
source = "duckdb:shop.duckdb"
[tables.orders.columns]
paid = { range = [0, 1000] }
[protections.rows]
kind = "rows"
epsilon = 100000
"""
MISS = Fraction(1, 20)


@pytest.fixture(scope="module")
def db(tmp_path_factory):
    place = tmp_path_factory.mktemp("truths")
    with duckdb.connect(str(place / "shop.duckdb")) as made:
        made.execute(
            "CREATE TABLE orders AS SELECT CAST(i AS INTEGER) AS paid FROM range(900) r(i)"
        )
    (place / "policy.toml").write_text(POLICY)
    with secant.connect(policy=place / "policy.toml", ledger=":memory:") as found:
        yield found


@pytest.mark.parametrize("epsilon", ["0.1", "1", "3"])
def test_rows_against_a_truth_value_are_bounded(db, epsilon):
    answer = db.sql("SELECT bool_and(paid < 1000) AS a FROM orders", epsilon=epsilon)
    ((off,),) = answer.error["ranks"]
    scale = answer.mechanisms[0]["scale"]
    scale = Fraction(scale).limit_denominator(1000)
    # With off + 1 rows against it, it is shown as true with a chance below what may be missed.
    assert discrete_laplace_tail(scale, int(off) + 1) <= MISS
    # Planted: so many rows less would be missed more often, on both sides together.
    assert 2 * discrete_laplace_tail(scale, int(off)) > MISS


def test_it_is_shown_in_rows_and_only_where_it_is_known(db):
    answer = db.sql(
        "SELECT bool_and(paid < 1000) AS a, bool_or(paid > 10) AS o, count(*) > 500 AS many FROM orders",
        epsilon="3",
    )
    ((a, o, many),) = answer.error["ranks"]
    assert a > 0
    assert o > 0
    assert many is None, "what a count is compared with is not zero"
    assert f"±{int(a)} rows" in str(answer)
    assert answer.rows[0][1] is True
