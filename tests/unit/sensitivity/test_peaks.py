"""The largest bound over rows, put together after them, against the largest of all rows' bounds (derivative.floor)."""

from __future__ import annotations

import random
from fractions import Fraction

import pytest

from secant.plan import nodes as n
from secant.plan.evaluate.evaluate import evaluate
from secant.schema.types import DOUBLE
from secant.sensitivity.derivative import shapes
from secant.sensitivity.derivative.peaks import leaf_name, peak
from secant.sensitivity.derivative.smooth_terms import Term, constant_term, faded, fading, product

X, Y = n.Column("x", DOUBLE), n.Column("y", DOUBLE)
FADE = fading(n.Arithmetic("-", X, shapes.number(0.5)), Fraction(1, 10), Fraction(1, 64))
ALONE = faded(FADE, None, {}, Fraction(1))
CONSTANT = product(constant_term(Fraction(3)), ALONE).expression
VARYING = product(Term(Y, {}, Fraction(4)), ALONE).expression
SPANNING = shapes.times(0.02, shapes.plus(shapes.times(50.0, VARYING), Y))
BOUNDS = {
    "a constant that fades": (CONSTANT, ("min",)),
    "a size that fades": (VARYING, ("max",)),
    "scaled": (shapes.times(0.25, CONSTANT), ("min",)),
    "the larger of two": (shapes.call("highest", CONSTANT, VARYING), ("min", "max")),
    "one that covers another": (shapes.call("highest", VARYING, SPANNING), ("max",)),
    "one that may be empty": (shapes.call("greatest", VARYING, SPANNING), ("max", "max")),
    "no fading at all": (shapes.plus(X, Y), ("max",)),
}
ROWS = [(d, y) for d in (-3.0, 0.5, 0.75, 7.0, 41.0, 43.0, 1e9) for y in (0.0, 0.01, 1.0, 4.0)]


def _rows(rows: list[tuple[float | None, float]]) -> n.Values:
    return n.Values((n.Field("x", DOUBLE), n.Field("y", DOUBLE)), tuple(rows))


def _largest(row: n.Scalar, rows: n.Values) -> float:
    found = evaluate(n.Project(rows, (n.Named("row", row),)), {})
    return max(float(value) for (value,) in found if value is not None)  # type: ignore[arg-type]


def _together(row: n.Scalar, rows: n.Values) -> float:
    made = peak(row, "bound")
    names = [leaf_name("bound", i) for i in range(len(made.leaves))]
    items = tuple(
        n.Named(f"{name}.row", x) for name, (_, x) in zip(names, made.leaves, strict=True)
    )
    calls = tuple(
        n.Aggregation(name, function, n.Column(f"{name}.row", DOUBLE))
        for name, (function, _) in zip(names, made.leaves, strict=True)
    )
    aggregated = n.Aggregate(n.Project(rows, items), (), calls)
    ((value,),) = evaluate(n.Project(aggregated, (n.Named("bound", made.whole),)), {})
    return float(value)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", BOUNDS)
def test_what_is_put_together_is_the_largest_of_all_rows(name: str) -> None:
    row, functions = BOUNDS[name]
    assert tuple(f for f, _ in peak(row, "bound").leaves) == functions
    drawn = random.Random(name)
    for _ in range(60):
        rows = _rows(drawn.sample(ROWS, drawn.randint(1, 6)))
        assert _together(row, rows) == _largest(row, rows)


def test_a_distance_that_is_unknown_hides_no_other() -> None:
    for unknown in (None, float("nan")):
        rows = _rows([(unknown, 1.0), (2.0, 1.0)])
        assert _together(CONSTANT, rows) == _largest(CONSTANT, _rows([(2.0, 1.0)]))


def test_what_only_looks_like_a_fading_bound_is_taken_row_by_row() -> None:
    rising = shapes.times(0.1, FADE.distance)
    falls = n.Case(
        (n.Branch(n.Compare("<=", FADE.distance, shapes.number(0.0)), shapes.number(1.0)),),
        shapes.call("exp", rising),
    )
    floor = shapes.number(0.5)
    near = n.Compare("<", FADE.distance, shapes.number(5.0))
    bound = n.Case((n.Branch(near, shapes.call("greatest", falls, floor)),), floor)
    assert [f for f, _ in peak(bound, "bound").leaves] == ["max"]
