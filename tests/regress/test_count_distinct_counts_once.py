"""A peer lost DISTINCT on the way to its engine: COUNT(DISTINCT x) released COUNT(x)."""

import pytest

from secant.release.inspection import unnoised
from secant.release.print import look_up_keys

QUERIES = {
    "SELECT count(DISTINCT quantity) FROM orders WHERE id < 1000": 9,
    "SELECT count(DISTINCT customer) FROM orders WHERE id < 1000": 60,
    "SELECT sum(DISTINCT quantity) FROM orders WHERE id < 1000": 45,
}


@pytest.mark.parametrize("query", QUERIES)
def test_distinct_reaches_the_engine(people, single, query):
    for db in (people, single):
        (statement,) = db.explain(query).statements
        assert "DISTINCT" in statement.upper()
        (seen,) = db.inspect(query)
        assert seen["exact"] == seen["softened"] == QUERIES[query]


def test_distinct_and_plain_counts_are_two_measures(single):
    from apart import apart
    from private_shop import compile_release

    compiled = compile_release(
        single, "SELECT count(quantity), count(DISTINCT quantity) FROM orders WHERE id < 1000"
    )
    assert len(compiled.job.noise.noise) == 2
    shown, _ = unnoised(compiled.job, look_up_keys(compiled.job, apart(single)), apart(single))
    assert shown.rows == [(200, 9)]
