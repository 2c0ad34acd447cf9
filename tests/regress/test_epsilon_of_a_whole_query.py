"""A peer took epsilon for each output column and told it for the query."""

import pytest

from private_shop import compile_release, cost_of

COLUMNS = [
    "count(*)",
    "sum(total)",
    "avg(rate)",
    "count(DISTINCT note)",
    "sum(quantity)",
    "stddev(big)",
]


@pytest.mark.parametrize("columns", range(1, len(COLUMNS) + 1))
@pytest.mark.parametrize("grouping", ["", " GROUP BY status"])
def test_more_columns_share_one_epsilon(people, columns, grouping):
    keys = "status, " if grouping else ""
    query = f"SELECT {keys}{', '.join(COLUMNS[:columns])} FROM orders{grouping}"
    compiled = compile_release(people, query, epsilon=1, delta=0)
    spent = 0
    for bounded in compiled.job.prepared.bounded:
        (certificate,) = bounded.certificates
        for column, bound in certificate.bounds.items():
            spent += cost_of(bound, compiled.job.noise.noise[column])
    assert spent <= 1
    before = people.budget["people"].spent_epsilon
    people.sql(query, epsilon=1)
    assert people.budget["people"].spent_epsilon - before <= 1


def test_several_releases_of_one_query_share_it_too(people):
    query = (
        "SELECT a.n, b.n, (SELECT sum(total) FROM orders) FROM (SELECT count(*) AS n FROM orders) AS a, "
        "(SELECT count(*) AS n FROM customers) AS b"
    )
    compiled = compile_release(people, query, epsilon=1, delta=0)
    assert len(compiled.job.prepared.bounded) == 3
    assert compiled.job.noise.costs["people"][0] <= 1
