"""Smooth bounds of scalar shapes against the shapes themselves: never below, never steeper than stated, never loose.

Each shape is put to more than 10 000 checks of "at least the shape" and more of "no steeper than its rate" (ten
times as many with SECANT_PROFILE=long), with drawn alpha, parameters and ranges, and compared with a numerical
supremum of g(x')·exp(−alpha·|x − x'|), the smallest smooth bound. Nothing here is a statistical test: a sound bound
passes whatever is drawn. Planted faults go through the same checks.
"""

import math
from dataclasses import replace
from fractions import Fraction

import duckdb
import numpy as np
import pytest
from drawn_shapes import (
    SHAPES,
    SLACK,
    Setup,
    X,
    between,
    compiled,
    drawn_alpha,
    faults,
    looseness,
    named_setup,
    points,
    sigmoid_derivative_of,
    sigmoid_of,
    tauoid_derivative_of,
)  # fmt: skip

from chance import LONG, chance
from secant.engines.print.print_sql import lower
from secant.plan import nodes as n
from secant.schema import types as t
from secant.sensitivity.derivative import shapes
from secant.sensitivity.derivative.soften import filter_shapes as filters

SETUPS = 600 if LONG else 60
POINTS = 170
TIGHT = 1e-6


# ── sound ────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("shape", SHAPES, ids=lambda s: s.__name__)
def test_a_bound_is_never_below_its_shape_and_never_steeper_than_its_rate(shape):
    rng, checks = chance(), 0
    for _ in range(SETUPS):
        setup = shape(rng)
        xs = points(setup, rng, POINTS)
        assert faults(setup, xs) == []
        checks += len(xs)
    assert checks >= 10_000


@pytest.mark.parametrize("shape", SHAPES, ids=lambda s: s.__name__)
def test_no_smaller_bound_is_as_smooth(shape):
    rng = chance()
    for _ in range(SETUPS // 6):
        setup = shape(rng)
        for x in points(setup, rng, 12):
            assert looseness(setup, float(x)) <= TIGHT, (float(x), setup.says)


# ── the checks can fail ──────────────────────────────────────────────────────────────────────────


def caught(setup: Setup, tries: int = 3) -> bool:
    rng = chance()
    return any(faults(setup, points(setup, rng, POINTS)) for _ in range(tries))


def swapped(bound: shapes.Smooth) -> shapes.Smooth:
    """Give the bound with the outermost greatest made least."""
    call = bound.expression
    assert isinstance(call, n.Call)
    assert call.function == "greatest"
    return replace(bound, expression=n.Call("least", call.arguments))


def _square_by_x():
    """Power rule on negative numbers: the bound of x² for x > 0, used on the whole line."""
    alpha, two = Fraction(1, 10), n.Call("power", (X, shapes.number(2)))
    start = shapes.knee(20.0, lambda p: p * p, lambda p: 2 / p, alpha)
    bound = shapes.Smooth(shapes.rising(X, start, two, None, None), alpha)
    return named_setup("square", bound, np.square, alpha)


def _forgotten_side():
    alpha = Fraction(1)
    start = shapes.knee(1.0, lambda p: p, lambda p: 1 / p, alpha)
    bound = shapes.Smooth(shapes.rising(X, start, X, Fraction(-1, 2), Fraction(5)), alpha)
    return named_setup("one side", bound, np.abs, alpha, Fraction(-1, 2), Fraction(5))


def _dropped_factor():
    alpha, half = Fraction(1), Fraction(1)
    bound = shapes.power_size(X, Fraction(2), alpha, half, None)  # for the slope of x³
    return named_setup("no factor", bound, lambda xs: 3 * xs**2, alpha, half)


def _dropped_steepness():
    slope = filters.sigmoid_slope(X, Fraction(4), Fraction(1))
    bound = replace(slope, expression=shapes.times(0.25, slope.expression))
    return named_setup(
        "no steepness", bound, lambda xs: sigmoid_derivative_of(xs, 4.0), Fraction(1)
    )


def _least_for_greatest_of_reciprocal():
    alpha, low = Fraction(1), Fraction(1, 10)
    bound = swapped(shapes.reciprocal_size(X, alpha, low, None))
    return named_setup("1/x", bound, lambda xs: 1 / xs, alpha, low)


def _least_for_greatest_of_identity():
    alpha, low, high = Fraction(1), Fraction(-1, 2), Fraction(5)
    bound = swapped(shapes.identity_size(X, alpha, low, high))
    return named_setup("identity", bound, np.abs, alpha, low, high)


def _least_for_greatest_of_logarithm():
    alpha, low = Fraction(5), Fraction(1, 100)
    bound = swapped(shapes.logarithm_size(X, alpha, low, None))
    return named_setup("ln", bound, lambda xs: np.abs(np.log(xs)), alpha, low, None, (1,))


def _reciprocal_without_its_peak():
    alpha, low = Fraction(1), Fraction(1, 10)
    bound = shapes.Smooth(n.Call("power", (X, shapes.number(-1))), alpha)
    return named_setup("1/x alone", bound, lambda xs: 1 / xs, alpha, low)


def _steep_sigmoid_taken_as_it_is():
    exact = filters.sigmoid_slope(X, Fraction(3), Fraction(3))
    bound = replace(exact, rate=Fraction(1))
    return named_setup("sigmoid", bound, lambda xs: sigmoid_derivative_of(xs, 3.0), Fraction(1))


def _understated_rate():
    alpha = Fraction(1)
    bound = replace(filters.tauoid_slope(X, Fraction(1), alpha), rate=Fraction(9, 10))
    return named_setup("tauoid", bound, lambda xs: tauoid_derivative_of(xs, 1.0), alpha)


def _slope_of_the_tauoid_as_it_is():
    alpha = Fraction(1)
    bound = shapes.Smooth(filters._tauoid_derivative(n.Call("abs", (X,)), alpha, None), alpha)
    return named_setup("tauoid", bound, lambda xs: tauoid_derivative_of(xs, 1.0), alpha)


PLANTED = (
    _square_by_x, _forgotten_side, _dropped_factor, _dropped_steepness, _least_for_greatest_of_reciprocal,
    _least_for_greatest_of_identity, _least_for_greatest_of_logarithm, _reciprocal_without_its_peak,
    _steep_sigmoid_taken_as_it_is, _understated_rate, _slope_of_the_tauoid_as_it_is,
)  # fmt: skip


@pytest.mark.parametrize("plant", PLANTED, ids=lambda p: p.__name__)
def test_a_planted_fault_is_caught(plant):
    assert caught(plant())


def test_the_bounds_beside_the_planted_faults_pass():
    alpha, low, high = Fraction(1), Fraction(-1, 2), Fraction(5)
    bound = shapes.identity_size(X, alpha, low, high)
    assert not caught(named_setup("identity", bound, np.abs, alpha, low, high))
    bound = filters.tauoid_slope(X, Fraction(1), alpha)
    assert not caught(named_setup("tauoid", bound, lambda xs: tauoid_derivative_of(xs, 1.0), alpha))


@pytest.mark.parametrize("factor", [1.00001, 4.0])
@pytest.mark.parametrize("x", [-0.5, 0.0, 0.7, 1.0, 5.0])
def test_a_loose_bound_is_noticed(factor, x):
    alpha, low, high = Fraction(1), Fraction(-1, 2), Fraction(5)
    bound = shapes.identity_size(X, alpha, low, high)
    tight = named_setup("identity", bound, np.abs, alpha, low, high)
    loose = replace(bound, expression=shapes.times(factor, bound.expression))
    assert looseness(tight, x) <= TIGHT < looseness(replace(tight, bound=loose), x)


def test_the_bounds_of_the_papers_are_loose():
    """A steep sigmoid bounded by 1, and the slope of a tauoid by a times the tauoid (4 times too much at 0)."""
    a, alpha = Fraction(3), Fraction(1)
    one = named_setup("1", shapes.constant(Fraction(1)), lambda xs: sigmoid_of(xs, 3.0), alpha)
    assert looseness(one, -5.0) > 4
    bound = shapes.Smooth(shapes.times(3.0, filters.tauoid(X, a)), a)
    setup = named_setup("tauoid", bound, lambda xs: tauoid_derivative_of(xs, 3.0), a)
    assert looseness(setup, 0.0) == pytest.approx(math.log(4))


# ── filters move no faster than their bound ──────────────────────────────────────────────────────


def _itself(build):
    """A filter is no larger than itself."""
    return lambda x, width, alpha: shapes.Smooth(build(x, width), alpha)


FILTERS = (
    (filters.sigmoid, filters.sigmoid_size, filters.sigmoid_slope, False),
    (filters.tauoid, filters.tauoid_size, filters.tauoid_slope, False),
)


def moves_too_fast(value, size, slope, rate, xs) -> bool:
    """Whether a filter's values exceed its size, or two of them differ by more than its slope allows."""
    values, sizes, slopes = (np.array([f(float(x)) for x in xs]) for f in (value, size, slope))
    far = np.abs(xs[:, None] - xs[None, :])
    # Between two points the bound is at most exp(rate·distance) times what it is at either.
    most = np.minimum(slopes[:, None], slopes[None, :]) * far * np.exp(np.minimum(rate * far, 700))
    moved = np.abs(values[:, None] - values[None, :])
    return bool(np.any(moved > most * (1 + SLACK) + 1e-15) or np.any(values > sizes * (1 + SLACK)))


@pytest.mark.parametrize("entry", FILTERS, ids=lambda e: e[0].__name__)
def test_a_filter_as_written_moves_no_faster_than_its_bound(entry):
    build, size_of, slope_of, wide = entry
    rng = chance()
    for _ in range(SETUPS // 2):
        alpha = drawn_alpha(rng)
        steepness = alpha * between(rng, 1e-2, 1e2)
        parameter = 1 / steepness if wide else steepness
        value = compiled(build(X, parameter))
        size, slope = (of(X, parameter, alpha) for of in (size_of, slope_of))
        scale = float(1 / steepness)
        xs = np.array([rng.choice([1, 1e-2, 10]) * rng.uniform(-1, 1) * scale for _ in range(60)])
        runs = value, compiled(size.expression), compiled(slope.expression)
        assert not moves_too_fast(*runs, float(slope.rate), xs)


@pytest.mark.parametrize("entry", FILTERS, ids=lambda e: e[0].__name__)
def test_a_filter_that_moves_faster_than_its_bound_is_noticed(entry):
    build, size_of, slope_of, _ = entry
    one, alpha = Fraction(1), Fraction(1, 1000)  # such a bound hardly varies: a third is too little
    slope = slope_of(X, one, alpha)
    runs = [
        compiled(e) for e in (build(X, one), size_of(X, one, alpha).expression, slope.expression)
    ]
    xs = np.linspace(-1.5, 1.5, 61)
    assert not moves_too_fast(*runs, 0.001, xs)
    assert moves_too_fast(runs[0], runs[1], lambda x: runs[2](x) / 3, 0.001, xs)
    assert moves_too_fast(runs[0], lambda x: runs[1](x) / 2, runs[2], 0.001, xs)


# ── the engine computes the same ─────────────────────────────────────────────────────────────────


def assert_same_in_duckdb(connection, expression: n.Scalar, xs: np.ndarray) -> None:
    connection.execute("CREATE OR REPLACE TABLE t (i BIGINT, x DOUBLE)")
    connection.executemany("INSERT INTO t VALUES (?, ?)", [(i, float(x)) for i, x in enumerate(xs)])
    columns = (n.Named("i", n.Column("t.i", t.INTEGER)), n.Named("x", n.Column("t.x", t.DOUBLE)))
    scan = n.Scan("t", "t", (n.Field("t.i", t.INTEGER), n.Field("t.x", t.DOUBLE)))
    items = (n.Named("i", n.Column("i", t.INTEGER)), n.Named("y", expression))
    written = lower(n.Project(n.Project(scan, columns), items))
    rows = sorted(connection.execute(written).fetchall(), key=lambda row: row[0])
    run = compiled(expression)
    there, here = np.array([row[1] for row in rows]), np.array([run(float(x)) for x in xs])
    assert np.all(np.abs(there - here) <= 1e-12 * np.abs(here)), written


@pytest.mark.parametrize("shape", SHAPES, ids=lambda s: s.__name__)
def test_the_engine_computes_the_same_bound(shape):
    rng = chance()
    with duckdb.connect() as connection:
        for _ in range(4):
            setup = shape(rng)
            assert_same_in_duckdb(connection, setup.bound.expression, points(setup, rng, 120))


@pytest.mark.parametrize("build", [entry[0] for entry in FILTERS], ids=lambda b: b.__name__)
def test_the_engine_computes_the_same_filter(build):
    rng = chance()
    with duckdb.connect() as connection:
        for _ in range(4):
            parameter = between(rng, 1e-2, 1e2)
            xs = np.array([rng.uniform(-1, 1) * 10 ** rng.uniform(-3, 6) for _ in range(120)])
            assert_same_in_duckdb(connection, build(X, parameter), xs)
