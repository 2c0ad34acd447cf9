"""No pair of tiny databases refutes the bounds of the 17 queries, in any of the three profiles.

30 pairs a query and profile by default, 1 000 and more with SECANT_PROFILE=long. What is tried is counted, and so is
how often something moved: a drawer whose rows never pass the public filters cannot go unnoticed.
"""

import random
from fractions import Fraction

import pytest
from bench.suites.laud.forms import PROFILES, QUERIES
from derivative_check import ask
from derivative_laud import laud_database, laud_world, tax_ends
from derivative_moves import Tally, attack, mover

from chance import LONG

PAIRS = 1_200 if LONG else 45


@pytest.mark.parametrize("profile", [p.name for p in PROFILES])
@pytest.mark.parametrize("query", QUERIES)
def test_no_pair_refutes_the_bound(query, profile):
    world, text = laud_world(profile, query)
    beta = world.protection.beta or Fraction(1, 20)
    questions = ask(text, world, beta=beta, rows=1_000, ends=tax_ends)
    assert not isinstance(questions, str), questions
    tally = Tally()
    draw = random.Random(f"{query} {profile}")
    attack(draw, questions, mover(world, text), laud_database(text), PAIRS, tally)
    assert not tally.violations, tally.violations[-1]
    assert tally.pairs >= PAIRS * 3 // 4
    assert tally.moving >= PAIRS // 20, "hardly anything moved: nothing was tested"
