"""Random statements three ways: the engine on the text, the engine on the plan, `evaluate`."""

from __future__ import annotations

import pytest
from random_queries import HOSTILE, Writer
from row_compare import difference

from chance import LONG
from secant.errors import BackendError, SqlError
from secant.plan.evaluate import evaluate
from secant.plan.from_sql import from_sql
from secant.plan.rewrite import normalize
from secant.plan.values import Failure
from secant.release.lower import lower

ROUNDS = 60 if LONG else 4
STATEMENTS = 100


@pytest.mark.parametrize("seed", range(ROUNDS))
def test_random_statements_three_ways(small, small_rows, seed):
    writer, answered = Writer(seed), 0
    for _ in range(STATEMENTS):
        query = writer.statement()
        try:
            want = small.rows(query)
        except BackendError:
            continue  # the engine itself does not take it
        try:
            plan = from_sql(query, small.catalog())
        except SqlError:
            continue  # refused with a reason; accepted statements must be right
        for shape in (plan, normalize(plan)):
            assert difference(small.rows(lower(shape)), want, ordered=False) is None, query
            try:
                by_hand = evaluate(shape, small_rows)
            except Failure:
                pytest.fail(f"the interpreter fails where the engine does not: {query}")
            assert difference(by_hand, want, ordered=False) is None, query
        answered += 1
    assert answered > STATEMENTS / 2


def test_every_hostile_name_is_drawn():
    drawn = set()
    for seed in range(ROUNDS):
        writer = Writer(seed)
        for _ in range(STATEMENTS):
            writer.statement()
        drawn |= writer.named.keys()
    assert drawn == set(HOSTILE)
