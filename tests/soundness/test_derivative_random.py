"""Drawn queries in drawn worlds: no pair of databases refutes a bound, and nothing but a typed refusal stops one.

About 10 000 pairs by default, a million with SECANT_PROFILE=long. Counts are asserted, so that a grammar that is
refused too often cannot pass unnoticed.
"""

import random
from collections import Counter
from fractions import Fraction

import pytest
from derivative_check import ask
from derivative_drawn import drawn_query, drawn_world
from derivative_moves import Tally, attack, mover
from derivative_worlds import small_database

from chance import LONG
from secant.plan import nodes as n

SHARDS = 4
QUERIES = 34_000 if LONG else 380
PAIRS = 72 if LONG else 66
BETAS = (Fraction(1, 100), Fraction(1, 10), Fraction(1), Fraction(20))


RULES = {
    "+", "-", "*", "/", "abs", "exp", "ln", "sqrt", "power", "least", "greatest", "coalesce", "ramp",
    "sigmoid", "tauoid", "Case", "Clamp", "Cast", "sum", "min", "max",
}  # fmt: skip
RARE_RULES = {"tauoid", "power", "Cast", "ln", "sqrt", "least", "greatest", "sigmoid", "exp"}
"""What a short run may miss. A long one puts every rule to the test in 10 000 pairs."""


def rules_of(question):
    """Give the names of the rules that a release needs."""
    found = set()
    for node in n.walk(question.bounded.release.exact):
        if isinstance(node, (n.Call, n.Aggregation)):
            found.add(node.function)
        elif isinstance(node, n.Arithmetic):
            found.add(node.op)
        else:
            found.add(type(node).__name__)
    return found & RULES


def searched(seed, queries, pairs, rules):
    tally = Tally()
    answered = 0
    for index in range(queries):
        draw = random.Random(f"derivative {seed} {index}")
        world, open_rows = drawn_world(draw)
        text = drawn_query(draw)
        rows = draw.choice((None, 10, 10**6))
        epsilon = Fraction(draw.choice((1, 10)), draw.choice((1, 100)))
        databases = small_database(nulls=draw.random() < 0.4, clean=draw.random() < 0.6)
        known = databases(draw) if draw.random() < 0.4 else None
        beta = draw.choice(BETAS)
        questions = ask(text, world, beta=beta, rows=rows, epsilon=epsilon, known=known)
        if isinstance(questions, str):
            continue
        answered += 1
        still = (lambda table, row: table == "a" and row["g"] == 1) if open_rows else None
        before = tally.pairs
        drawn = databases if known is None else (lambda _, found=known: found)
        attack(draw, questions, mover(world, text, still), drawn, pairs, tally)
        for rule in set().union(*map(rules_of, questions)) if questions else ():
            rules[rule] += tally.pairs - before
    return tally, answered


@pytest.mark.parametrize("shard", range(SHARDS))
def test_no_pair_refutes_a_drawn_query(shard, record_property):
    rules = Counter()
    tally, answered = searched(shard, QUERIES // SHARDS, PAIRS, rules)
    record_property("pairs", tally.pairs)
    record_property("pairs by rule", dict(rules))
    print(rules)
    assert not tally.violations, f"{len(tally.violations)} violations\n{tally.violations[-1]}"
    assert answered >= QUERIES // SHARDS * 0.5
    assert tally.pairs >= (1_000_000 if LONG else 10_000) // SHARDS
    assert tally.moving >= tally.pairs // 10
    assert rules.keys() >= RULES - RARE_RULES
    if LONG:
        assert min(rules[r] for r in RULES) >= 10_000 // SHARDS, rules
    assert tally.nearest > 0.9, "no pair came near to its bound: the search is too weak"
