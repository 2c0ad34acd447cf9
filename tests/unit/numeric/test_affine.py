"""Affine forms hold every value that random points reach; the printed slips do not."""

import math
import random
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chance import LONG
from secant.errors import UsageError
from secant.numeric import affine
from secant.numeric.affine import Affine, add, constant, fixed, multiply, scale, subtract, variable
from secant.numeric.interval import interval, point

PRODUCTS = 100_000 if LONG else 8_000
NAMES = ("x", "y", "z")


def small(low=-8, high=8):
    return Fraction(random.randint(low * 4, high * 4), random.choice((1, 2, 3, 7)))


def random_form():
    terms = {name: small() for name in random.sample(NAMES, random.randint(1, 3))}
    return Affine(small(), terms, abs(small()) if random.random() < 0.3 else Fraction(0))


def reached(form, moves):
    """Give one value of a form; its error takes a random side."""
    own = form.error * random.choice((-1, 0, 1))
    return form.center + sum(term * moves[name] for name, term in form.terms.items()) + own


def holds(form, value, moves):
    """Whether a value at given moves of the variables is one of the form's."""
    linear = form.center + sum(term * moves[name] for name, term in form.terms.items())
    limits = form.range()
    return abs(value - linear) <= form.error and limits.low <= value <= limits.high


def random_moves():
    corner = random.random() < 0.5
    choices = (-1, 1) if corner else [Fraction(n, 4) for n in range(-4, 5)]
    return {name: random.choice(choices) for name in NAMES}


def faulty_products(product, count):
    """Count the products that do not hold a value that is reached."""
    found = 0
    for _ in range(count):
        a, b = random_form(), random_form()
        form = product(a, b)
        for _ in range(2):
            moves = random_moves()
            if not holds(form, reached(a, moves) * reached(b, moves), moves):
                found += 1
                break
    return found


def printed_product(a, b):
    """The NAPLES report: the error is the product of the plain sums."""
    names = dict.fromkeys((*a.terms, *b.terms))
    terms = {n: a.center * b.terms.get(n, 0) + b.center * a.terms.get(n, 0) for n in names}
    error = abs((sum(a.terms.values()) + a.error) * (sum(b.terms.values()) + b.error))
    return Affine(a.center * b.center, terms, error)


def test_products_hold_what_is_reached():
    assert faulty_products(multiply, PRODUCTS) == 0


def test_the_printed_product_is_caught():
    assert faulty_products(printed_product, 200) > 0
    difference = Affine(Fraction(0), {"x": Fraction(1), "y": Fraction(-1)})
    moves = {"x": 1, "y": -1}
    assert not holds(printed_product(difference, difference), Fraction(4), moves)
    assert holds(multiply(difference, difference), Fraction(4), moves)


def test_a_product_is_never_wider_than_radius_times_radius():
    for _ in range(500):
        a, b = random_form(), random_form()
        plain = abs(a.center) * b.radius + abs(b.center) * a.radius + a.radius * b.radius
        limits = multiply(a, b).range()
        assert a.center * b.center - plain <= limits.low
        assert limits.high <= a.center * b.center + plain


def test_a_variable_spans_its_interval():
    """The NAPLES report prints 1.5 + 0.5ε for [0, 3]."""
    form = variable("x", interval(0, 3))
    assert (form.center, form.terms) == (Fraction(3, 2), {"x": Fraction(3, 2)})
    assert form.range() == interval(0, 3)
    printed = Affine(Fraction(3, 2), {"x": Fraction(1, 2)})
    assert printed.range() != interval(0, 3)


def test_sums_are_those_of_intervals_and_differences_cancel():
    """The NAPLES report prints [0, 3] + [1, 2] = [3, 3]."""
    x, y = variable("x", interval(0, 3)), variable("y", interval(1, 2))
    assert add(x, y).range() == interval(1, 5)
    assert subtract(x, x).range() == point(0)
    assert subtract(add(x, y), x).range() == interval(1, 2)
    assert scale(x, -2).range() == interval(-6, 0)
    assert constant(7).range() == point(7)


def test_a_repeated_variable_is_remembered():
    x = variable("x", interval(0, 1))
    limits = multiply(x, subtract(constant(1), x)).range()
    assert limits == interval(0, Fraction(1, 4))  # interval arithmetic alone says [0, 1]


def test_fixing_a_variable():
    """The NAPLES report prints ε = a/y; at a = 3 in [0, 3] that is 2, outside [-1, 1]."""
    limits = interval(0, 3)
    x, y = variable("x", limits), variable("y", interval(2, 4))
    z = add(multiply(x, y), x)
    for value in (Fraction(0), Fraction(1), Fraction(3)):
        known = fixed(z, "x", limits, point(value))
        assert "x" not in known.terms
        for other in (2, 3, 4):
            at = {"x": 0, "y": other - 3}
            assert holds(known, value * other + value, at)
    part = fixed(z, "x", limits, interval(1, 2))
    assert part.range().high - part.range().low < z.range().high - z.range().low
    assert holds(part, Fraction(3 * 2 + 2), {"x": 1, "y": 0})
    printed = Affine(
        z.center + z.terms["x"] * Fraction(3) / x.terms["x"], {"y": z.terms["y"]}, z.error
    )
    assert not holds(printed, Fraction(3 * 3 + 3), {"x": 0, "y": 0})


def test_fixing_outside_the_range_is_refused():
    limits = interval(0, 3)
    with pytest.raises(UsageError, match="must lie in its range"):
        fixed(variable("x", limits), "x", limits, point(4))


def test_fixing_what_does_not_move_changes_nothing():
    x = variable("x", point(2))
    assert fixed(x, "x", point(2), point(2)) == x


FUNCTIONS = {
    "exponential": (affine.exponential, math.exp, (-8, 8)),
    "logarithm": (affine.logarithm, math.log, (Fraction(1, 100), 50)),
    "square_root": (affine.square_root, math.sqrt, (0, 50)),
    "reciprocal": (affine.reciprocal, lambda v: 1 / v, (Fraction(1, 10), 20)),
    "reciprocal of negatives": (affine.reciprocal, lambda v: 1 / v, (-20, Fraction(-1, 10))),
    "power 1.5": (lambda a: affine.power(a, Fraction(3, 2)), lambda v: v**1.5, (0, 20)),
    "power 0.3": (lambda a: affine.power(a, Fraction(3, 10)), lambda v: v**0.3, (0, 20)),
    "power -1.2": (lambda a: affine.power(a, Fraction(-6, 5)), lambda v: v**-1.2, (1, 20)),
    "square": (lambda a: affine.power(a, 2), lambda v: v**2, (-9, 9)),
    "cube": (lambda a: affine.power(a, 3), lambda v: v**3, (-9, 9)),
    "cube of negatives": (lambda a: affine.power(a, 3), lambda v: v**3, (-9, -1)),
    "power -2 of negatives": (lambda a: affine.power(a, -2), lambda v: v**-2, (-9, -1)),
    "power 7": (lambda a: affine.power(a, 7), lambda v: v**7, (-3, 3)),
}


def subrange(limits):
    low, high = map(Fraction, limits)
    ends = sorted(low + (high - low) * Fraction(random.randint(0, 60), 60) for _ in range(2))
    return interval(*ends)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_hold_what_is_reached(name):
    function, true, limits = FUNCTIONS[name]
    for _ in range(4000 if LONG else 150):
        within = subrange(limits)
        form = function(variable("x", within))
        low, high = within.ends()
        for step in (Fraction(0), Fraction(1), Fraction(random.randint(0, 100), 100)):
            value = Fraction(true(float(low + (high - low) * step)))
            slack = abs(value) * Fraction(1, 10**12)
            at = form.center + form.terms.get("x", 0) * (2 * step - 1)
            assert abs(value - at) <= form.error + slack
            assert form.range().low - slack <= value <= form.range().high + slack


@pytest.mark.parametrize("name", [name for name in FUNCTIONS if name not in ("square", "power 7")])
def test_monotone_functions_are_not_wider_than_themselves(name):
    function, true, limits = FUNCTIONS[name]
    for _ in range(50):
        within = subrange(limits)
        ends = sorted(true(float(end)) for end in within.ends())
        limits_found = function(variable("x", within)).range()
        slack = 1e-9 * max(1.0, *map(abs, ends))
        assert float(limits_found.low) >= ends[0] - slack
        assert float(limits_found.high) <= ends[1] + slack


def test_too_steep_a_slope_is_caught():
    """With the derivative of the other end, ln leaves its form."""
    x = variable("x", interval(1, 9))
    wrong = affine._min_range(x, affine.plain.logarithm, Fraction(1), Fraction(9))
    assert wrong.error < 0 or not holds(wrong, Fraction(math.log(3)), {"x": Fraction(-1, 2)})


@pytest.mark.parametrize(
    "form",
    [
        affine.logarithm(variable("x", interval(0, 1))),
        affine.square_root(variable("x", interval(-1, 1))),
        affine.reciprocal(variable("x", interval(-1, 1))),
        affine.reciprocal(constant(0)),
        affine.divide(constant(1), variable("x", interval(0, 1))),
        affine.power(variable("x", interval(-1, 1)), Fraction(1, 2)),
        affine.power(variable("x", interval(-1, 1)), -1),
        affine.power(variable("x", interval(0, 1)), Fraction(-1, 2)),
        affine.exponential(variable("x", interval(0, 1000))),
    ],
)
def test_what_has_no_bounded_form_is_none(form):
    assert form is None


def test_edges_of_functions():
    assert affine.square_root(constant(0)).range() == point(0)
    assert affine.power(constant(0), Fraction(1, 2)).range() == point(0)
    assert affine.power(constant(5), 0).range() == point(1)
    assert affine.divide(constant(1), constant(4)).range() == point(Fraction(1, 4))
    deep = affine.exponential(variable("x", interval(-2000, -1000)))
    assert deep.range().low >= 0


@st.composite
def expressions(draw, depth=3):
    """Draw (text, function on forms, function on numbers) of a random expression."""
    if depth == 0 or draw(st.booleans()):
        if draw(st.booleans()):
            name = draw(st.sampled_from(NAMES))
            return (lambda forms: forms[name]), (lambda at: at[name])
        number = draw(st.fractions(-5, 5, max_denominator=9))
        return (lambda forms: constant(number)), (lambda at: number)
    (left_form, left), (right_form, right) = (
        draw(expressions(depth - 1)),
        draw(expressions(depth - 1)),
    )
    kind = draw(st.sampled_from(("+", "-", "*", "square")))
    if kind == "+":
        return (lambda f: add(left_form(f), right_form(f))), (lambda at: left(at) + right(at))
    if kind == "-":
        return (lambda f: subtract(left_form(f), right_form(f))), (lambda at: left(at) - right(at))
    if kind == "*":
        return (lambda f: multiply(left_form(f), right_form(f))), (lambda at: left(at) * right(at))
    return (lambda f: affine.power(left_form(f), 2)), (lambda at: left(at) ** 2)


SHARES = st.fractions(-1, 1, max_denominator=16)


@given(expressions(), st.fixed_dictionaries(dict.fromkeys(NAMES, SHARES)))
def test_whole_expressions_hold_what_is_reached(expression, moves):
    build, evaluate = expression
    limits = {"x": interval(-1, 2), "y": interval(Fraction(1, 3), 5), "z": interval(-7, -2)}
    form = build({name: variable(name, within) for name, within in limits.items()})
    at = {
        name: (within.low + within.high) / 2 + moves[name] * (within.high - within.low) / 2
        for name, within in limits.items()
    }
    assert holds(form, evaluate(at), moves)


def test_long_numbers_are_cut_without_losing_values():
    third = variable("x", interval(Fraction(1, 3), Fraction(2, 3)))
    form = third
    for _ in range(9):
        form = add(multiply(form, form), third)
    assert max(form.center.denominator.bit_length(), form.error.denominator.bit_length()) < 1000
    value = Fraction(1, 2)
    for _ in range(9):
        value = value * value + Fraction(1, 2)
    assert holds(form, value, {"x": 0})
