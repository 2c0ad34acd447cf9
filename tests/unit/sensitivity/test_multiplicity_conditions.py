"""What a condition says of some rows when the others are anything: never too much."""

import itertools
import random

from secant.plan import nodes as n
from secant.plan.evaluate.evaluate import evaluate
from secant.plan.rewrites.rewrite import columns_of
from secant.schema import types as t
from secant.sensitivity.multiplicity.conditions import expressed, projected

NAMES = ("t.a", "t.b", "u.a", "u.b")
VALUES = (0, 1, None)
FIELDS = tuple(n.Field(name, t.INTEGER) for name in NAMES)


def column(name):
    return n.Column(name, t.INTEGER)


ROWS = tuple(itertools.product(VALUES, repeat=len(NAMES)))


def kept(scalar):
    """Give the rows that a filter keeps."""
    return set(evaluate(n.Filter(n.Values(FIELDS, ROWS), scalar), {}))


def draw_condition(draw, depth=3):
    kind = draw.random()
    if depth == 0 or kind < 0.3:
        one, two = column(draw.choice(NAMES)), column(draw.choice(NAMES))
        return draw.choice(
            (
                n.Compare(draw.choice(("=", "<>", "<", ">=")), one, two),
                n.Compare("=", one, n.Literal(draw.choice((0, 1)), t.INTEGER)),
                n.InList(one, (n.Literal(1, t.INTEGER), two)),
                n.IsNull(one),
                n.SameValue(one, two),
            )
        )
    if kind < 0.5:
        return n.Not(draw_condition(draw, depth - 1))
    parts = tuple(draw_condition(draw, depth - 1) for _ in range(draw.randint(2, 3)))
    return n.And(parts) if kind < 0.75 else n.Or(parts)


def missed(project, draws=250):
    """Count conditions that some row fulfils although its known part was said to be impossible."""
    draw, found = random.Random(1), 0
    known = frozenset(("t.a", "t.b"))
    for _ in range(draws):
        scalar = draw_condition(draw)
        left = project(scalar, known)
        if left is None:
            continue
        assert columns_of(left) <= known
        found += not kept(scalar) <= kept(left)
    return found


def test_what_is_left_follows_from_the_condition():
    assert missed(lambda scalar, known: projected(scalar, known, {})) == 0


def recursive(scalar, known):
    """Evaluate NOT as one minus what is inside, and take an unknown leaf as true: the printed reading."""
    if isinstance(scalar, n.Not):
        inner = recursive(scalar.operand, known)
        return n.Literal(False, t.BOOLEAN) if inner is None else n.Not(inner)
    if isinstance(scalar, (n.And, n.Or)):
        parts = [recursive(o, known) for o in scalar.operands]
        true = n.Literal(True, t.BOOLEAN)
        return type(scalar)(tuple(true if p is None else p for p in parts))
    return expressed(scalar, known, {})


def test_one_minus_what_is_inside_says_too_much():
    """papers.md, error 10."""
    assert missed(recursive) > 20
    differ = n.Not(n.Compare("=", column("t.a"), column("u.a")))
    known = frozenset(("t.a", "t.b"))
    assert projected(differ, known, {}) is None
    assert kept(recursive(differ, known)) == set() != kept(differ)


def test_alternatives_keep_what_each_says():
    one = n.And((n.Compare("=", column("t.a"), column("t.b")), n.IsNull(column("u.a"))))
    two = n.IsNull(column("t.b"))
    left = projected(n.Or((one, two)), frozenset(("t.a", "t.b")), {})
    assert isinstance(left, n.Or)
    assert len(left.operands) == 2
    assert projected(n.Or((one, n.IsNull(column("u.b")))), frozenset(("t.a", "t.b")), {}) is None


def test_not_changes_places_with_and_and_or():
    both = n.And((n.IsNull(column("t.a")), n.IsNull(column("u.a"))))
    known = frozenset(("t.a",))
    assert projected(n.Not(both), known, {}) is None
    either = n.Or((n.IsNull(column("t.a")), n.IsNull(column("u.a"))))
    left = projected(n.Not(either), known, {})
    assert isinstance(left, n.Not)
    assert isinstance(left.operand, n.IsNull)
    assert projected(n.Not(n.Not(both)), known, {}) is both.operands[0]


def test_columns_that_are_equal_are_known():
    scalar = n.Compare("<", column("u.a"), n.Literal(3, t.INTEGER))
    left = projected(scalar, frozenset(("t.a",)), {"u.a": column("t.a")})
    assert left is not None
    assert columns_of(left) == {"t.a"}
