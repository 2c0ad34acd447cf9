"""What a condition over protected values implies of public ones holds wherever the condition does.

Rests on derivative.strip.
"""

import itertools
import random

import pytest

from secant.plan import nodes as n
from secant.plan.evaluate.evaluate import prepare
from secant.schema import types as t
from secant.sensitivity.derivative.soften import stripped

COLUMNS = ("p", "q", "secret", "hidden")
PROTECTED = frozenset({"secret", "hidden"})
FIELDS = tuple(n.Field(c, t.INTEGER) for c in COLUMNS)
ROWS = tuple(itertools.product((0, 1, None), repeat=len(COLUMNS)))


def drawn(draw: random.Random, depth: int) -> n.Scalar:
    if depth == 0 or draw.random() < 0.2:
        column = n.Column(draw.choice(COLUMNS), t.INTEGER)
        return n.Compare(draw.choice(("=", "<", ">=")), column, n.Literal(1, t.INTEGER))
    if draw.random() < 0.15:
        return n.Not(drawn(draw, depth - 1))
    made = draw.choice((n.And, n.Or))
    return made(tuple(drawn(draw, depth - 1) for _ in range(draw.choice((2, 3)))))


def rows_that_meet(condition: n.Scalar) -> set[tuple[object, ...]]:
    return set(prepare(n.Filter(n.Values(FIELDS, ROWS), condition))({}))


def implied_of(draws: int) -> int:
    """Draw conditions and compare; give how many imply something without being it."""
    draw, found = random.Random(19), 0
    for _ in range(draws):
        condition = drawn(draw, 3)
        public = stripped.implied(condition, PROTECTED)
        if public is None:
            continue
        assert rows_that_meet(condition) <= rows_that_meet(public)
        found += public is not condition
    return found


def test_rows_that_meet_a_condition_meet_what_it_implies():
    assert implied_of(300) > 50


def test_planted_an_or_of_which_one_side_is_public_is_seen(monkeypatch):
    right = stripped.implied

    def wrong(condition, protected):
        if isinstance(condition, n.Or):
            parts = [p for o in condition.operands if (p := right(o, protected)) is not None]
            return n.Or(tuple(parts)) if parts else None
        return right(condition, protected)

    monkeypatch.setattr(stripped, "implied", wrong)
    with pytest.raises(AssertionError):
        implied_of(300)
