"""Faults that were found once stay repaired: the pair that showed each is within its bound, or nothing is released."""

from fractions import Fraction

import pytest
from derivative_check import CLOSE, ask, told
from derivative_rare import RARE


@pytest.mark.parametrize("case", RARE, ids=[c.what for c in RARE])
@pytest.mark.parametrize("beta", [Fraction(1, 100), Fraction(1)])
def test_the_pair_is_within_its_bound(case, beta):
    questions = ask(case.text, case.world, beta=beta)
    assert not isinstance(questions, str), questions
    (question,) = questions
    found = question.pair(*case.pair())
    if found is None:
        assert question.settled.claims, "nothing is released only where a claimed key is none"
        return
    assert found.ratio <= 1 + CLOSE, told(found, question)
