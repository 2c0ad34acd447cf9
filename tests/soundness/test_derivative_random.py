"""Drawn queries in drawn worlds: no pair of databases refutes a bound, and nothing but a typed refusal stops one.

About 10 000 pairs by default, a million with SECANT_PROFILE=long. Counts are asserted, so that a grammar that is
refused too often cannot pass unnoticed.
"""

import os
import random
from fractions import Fraction

import pytest
from derivative_check import ask
from derivative_drawn import drawn_query, drawn_world
from derivative_moves import Tally, attack, mover
from derivative_worlds import small_database

LONG = os.environ.get("SECANT_PROFILE") == "long"
SHARDS = 4
QUERIES = 34_000 if LONG else 380
PAIRS = 72 if LONG else 66
BETAS = (Fraction(1, 100), Fraction(1, 10), Fraction(1), Fraction(20))


def searched(seed, queries, pairs):
    tally = Tally()
    answered = 0
    for index in range(queries):
        draw = random.Random(f"derivative {seed} {index}")
        world, open_rows = drawn_world(draw)
        text = drawn_query(draw)
        rows = draw.choice((None, 10, 10**6))
        epsilon = Fraction(draw.choice((1, 10)), draw.choice((1, 100)))
        questions = ask(text, world, beta=draw.choice(BETAS), rows=rows, epsilon=epsilon)
        if isinstance(questions, str):
            continue
        answered += 1
        still = (lambda table, row: table == "a" and row["g"] == 1) if open_rows else None
        databases = small_database(nulls=draw.random() < 0.4, clean=draw.random() < 0.6)
        attack(draw, questions, mover(world, text, still), databases, pairs, tally)
    return tally, answered


@pytest.mark.parametrize("shard", range(SHARDS))
def test_no_pair_refutes_a_drawn_query(shard, record_property):
    tally, answered = searched(shard, QUERIES // SHARDS, PAIRS)
    record_property("pairs", tally.pairs)
    assert not tally.violations, f"{len(tally.violations)} violations\n{tally.violations[-1]}"
    assert answered >= QUERIES // SHARDS * 0.5
    assert tally.pairs >= (1_000_000 if LONG else 10_000) // SHARDS
    assert tally.moving >= tally.pairs // 10
    assert tally.nearest > 0.9, "no pair came near to its bound: the search is too weak"
