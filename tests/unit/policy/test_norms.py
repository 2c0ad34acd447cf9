"""Norms are read as the owner wrote them, or refused with what is wrong."""

import math
import random
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st
from norm_oracle import extremal

from secant.errors import PolicyError, UsageError
from secant.policy.file import check_policy, read_policy
from secant.policy.norms import (
    ColumnNorm,
    CombinedNorm,
    LogNorm,
    RootNorm,
    ScaledNorm,
    columns_of,
    dual_of,
    dual_power,
    each_once,
    length,
    measures_of,
    norm_of,
    parse_norm,
    weight_in,
)
from secant.schema.catalog import Table, catalog
from secant.schema.types import INTEGER, TEXT

SHIPPED = "30*linf(l_shipdate, l_commitdate, l_receiptdate)"
LINEITEM = f"l1(l_quantity, 0.0001*l_extendedprice, 50*l_discount, {SHIPPED})"


def test_a_norm_of_the_benchmark():
    norm = parse_norm(LINEITEM)
    assert isinstance(norm, CombinedNorm)
    assert norm.power == 1
    assert norm.parts[1] == ScaledNorm(Fraction(1, 10000), ColumnNorm("l_extendedprice"))
    assert norm.parts[3].inner.power is None
    assert list(columns_of(norm)) == [
        "l_quantity",
        "l_extendedprice",
        "l_discount",
        "l_shipdate",
        "l_commitdate",
        "l_receiptdate",
    ]


@pytest.mark.parametrize(
    ("text", "norm"),
    [
        ("0.01*C_acctbal", ScaledNorm(Fraction(1, 100), ColumnNorm("c_acctbal"))),
        ("x", ColumnNorm("x")),
        (" 1e-2 * x ", ScaledNorm(Fraction(1, 100), ColumnNorm("x"))),
        (".5*x", ScaledNorm(Fraction(1, 2), ColumnNorm("x"))),
        ("2*3*x", ScaledNorm(Fraction(2), ScaledNorm(Fraction(3), ColumnNorm("x")))),
        ("L2(x)", CombinedNorm(2, (ColumnNorm("x"),))),
        ("l1", ColumnNorm("l1")),
    ],
)
def test_forms(text, norm):
    assert parse_norm(text) == norm


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "needs a column or a combination at 'its end'"),
        ("l1(", "needs a column or a combination at 'its end'"),
        ("l1(a", r"needs '\)' before 'its end'"),
        ("l1(a,)", r"needs a column or a combination at '\)'"),
        ("l1()", r"needs a column or a combination at '\)'"),
        ("max(a)", "there is no norm max"),
        ("l0(a)", "there is no norm l0"),
        ("a b", "goes on after its end, at 'b'"),
        ("a + b", "cannot be read at character 2"),
        ("-1*a", "cannot be read at character 1"),
        ("0*a", "must be positive"),
        ("3", r"needs '\*' before 'its end'"),
        ("2*" * 30 + "a", "nested too deeply"),
        ("l1(" * 5000, "too long"),
    ],
)
def test_what_cannot_be_meant(text, sentence):
    with pytest.raises(ValueError, match=sentence):
        parse_norm(text)


@given(st.text(alphabet="l12inf(),*.ab e-", max_size=30))
def test_any_text_is_read_or_refused(text):
    try:
        norm = parse_norm(text)
    except ValueError:
        return
    assert list(columns_of(norm))


def policy_with(norm: str):
    return read_policy(
        f'[protections.c]\nkind = "cells"\nepsilon = 1\n[protections.c.distance]\nt = "{norm}"'
    )


def test_a_policy_names_the_line_of_a_wrong_norm():
    with pytest.raises(PolicyError) as caught:
        policy_with("l1(a")
    assert caught.value.details == (
        "line 5: protections.c.distance.t: the norm needs ')' before 'its end'",
    )


def test_the_columns_of_a_norm_are_held_against_the_database():
    tables = catalog(Table("t", (("a", INTEGER), ("b", TEXT))))
    said = [str(p) for p in check_policy(policy_with("l1(a, b, c)"), tables) if p.line == 5]
    assert said == [
        "line 5: protections.c.distance.t: b is TEXT; only numbers and dates have a distance",
        "line 5: protections.c.distance.t: there is no column t.c",
    ]


def test_square_roots():
    norm = parse_norm("linf(0.5*SQRT(A), sqrt)")
    assert norm == CombinedNorm(
        None, (ScaledNorm(Fraction(1, 2), RootNorm("a")), ColumnNorm("sqrt"))
    )
    assert measures_of(norm) == {"a": "sqrt", "sqrt": "x"}
    assert weight_in(norm, "a") == (Fraction(1, 2), "sqrt")
    assert norm_of(norm, "a") == "0.5*sqrt(a)"


def test_fractional_powers_and_logarithms():
    norm = parse_norm("L1.5(a, 2*ln(B), linf(c, d))")
    assert norm == CombinedNorm(
        Fraction(3, 2),
        (
            ColumnNorm("a"),
            ScaledNorm(Fraction(2), LogNorm("b")),
            CombinedNorm(None, (ColumnNorm("c"), ColumnNorm("d"))),
        ),
    )
    assert list(columns_of(norm)) == ["a", "b", "c", "d"]


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("l0.5(a)", "there is no norm l0.5"),
        ("l1.(a)", "cannot be read at character 3"),
        ("ln(2*a)", "ln takes one column"),
        ("ln()", "ln takes one column"),
        ("ln(a, b)", r"needs '\)' before ','"),
        ("l1(a, ln(a))", r"measures a both as a and as ln\(a\)"),
        ("l1(sqrt(a), 2*a)", r"measures a both as sqrt\(a\) and as a"),
        ("linf(ln(a), sqrt(a))", r"measures a both as ln\(a\) and as sqrt\(a\)"),
        ("sqrt(2*a)", "sqrt takes one column"),
        ("sqrt(a, b)", r"needs '\)' before ','"),
    ],
)
def test_what_cannot_be_meant_by_powers_and_logarithms(text, sentence):
    with pytest.raises(ValueError, match=sentence):
        parse_norm(text)


@pytest.mark.parametrize(
    ("text", "once"),
    [
        ("l1(a, 2*A)", "l1(2*a)"),
        ("linf(l1(x, y), 3*l2(x, 0.1*y), z)", "linf(l1(y), 3*l2(x), z)"),
        ("l2(ln(v), 0.5*l1(ln(v), w))", "l2(ln(v), 0.5*l1(w))"),
        ("l1(sqrt(v), 2*l2(sqrt(v), w))", "l1(2*l2(sqrt(v), w))"),
        ("l1(a, b)", "l1(a, b)"),
    ],
)
def test_a_repeated_column_is_kept_where_it_counts_most(text, once):
    norm, kept = parse_norm(text), each_once(parse_norm(text))
    assert kept == parse_norm(once)
    draw = random.Random(text)
    for _ in range(200):
        moves = {c: Fraction(draw.randint(-9, 9), 4) for c in columns_of(norm)}
        assert length(kept, moves) <= length(norm, moves)


def test_a_repeated_column_moves_as_far_as_all_its_places_say():
    norm = parse_norm("l1(2*a, linf(a, b), 0.5*a)")
    assert weight_in(norm, "a") == (Fraction(7, 2), "x")
    assert length(norm, {"a": 1}) == 3.5
    assert norm_of(norm, "a") == "l1(2*a, a, 0.5*a)"
    assert parse_norm(norm_of(norm, "a")) == parse_norm("l1(2*a, a, 0.5*a)")
    assert weight_in(norm, "c") is None


def test_dual_powers():
    assert dual_power(Fraction(1)) is None
    assert dual_power(None) == 1
    assert dual_power(Fraction(2)) == 2
    assert dual_power(dual_power(Fraction(7, 5))) == Fraction(7, 5)


@pytest.mark.parametrize(
    ("text", "entries", "size", "dual"),
    [
        ("l2(a, b)", {"a": 3, "b": -4}, 5.0, 5.0),
        ("linf(a, b)", {"a": 3, "b": -4}, 4.0, 7.0),
        ("0.5*l1(a, 4*b)", {"a": 3, "b": 4}, 9.5, 6.0),
        ("l1(a, 2*ln(b))", {"a": 1, "b": 0.25}, 1.5, 1.0),
        ("l1(a, 2*sqrt(b))", {"a": 1, "b": 0.25}, 1.5, 1.0),
        ("l1(a, b)", {}, 0.0, 0.0),
        ("a", {"a": 1, "public": 0}, 1.0, 1.0),
        ("a", {"a": 1, "public": 2}, math.inf, math.inf),
        ("a", {"a": -math.inf}, math.inf, math.inf),
    ],
)
def test_lengths_and_dual_norms(text, entries, size, dual):
    assert length(parse_norm(text), entries) == size
    assert dual_of(parse_norm(text), entries) == dual


def test_a_gradient_that_is_no_number_is_refused():
    with pytest.raises(UsageError, match="must be a number"):
        dual_of(parse_norm("a"), {"a": math.nan})


POWERS = st.sampled_from([Fraction(1), Fraction(3, 2), Fraction(2), Fraction(1001, 1000), None])
FACTORS = st.fractions(Fraction(1, 1000), 1000, max_denominator=1000)


@st.composite
def norms(draw, columns=("a", "b", "c", "d", "e")):
    """Draw a norm that names each column once."""
    if len(columns) == 1:
        return ScaledNorm(draw(FACTORS), ColumnNorm(columns[0]))
    cut = draw(st.integers(1, len(columns) - 1))
    parts = (draw(norms(columns[:cut])), draw(norms(columns[cut:])))
    return ScaledNorm(draw(FACTORS), CombinedNorm(draw(POWERS), parts))


MOVES = st.fixed_dictionaries(
    {name: st.floats(-1e6, 1e6, allow_subnormal=False) for name in "abcde"}
)


def pairing(gradient, moves):
    return sum(Fraction(gradient[name]) * Fraction(moves[name]) for name in gradient)


@given(norms(), MOVES, MOVES)
def test_a_gradient_moves_an_answer_no_further_than_dual_times_length(norm, gradient, moves):
    bound = Fraction(dual_of(norm, gradient)) * Fraction(length(norm, moves))
    assert pairing(gradient, moves) <= bound


@given(norms(), MOVES)
def test_the_dual_norm_is_attained(norm, gradient):
    _, reached = extremal(norm, gradient)
    assert dual_of(norm, gradient) <= reached * (1 + 1e-9) + 1e-300


def test_the_printed_slips_would_be_caught():
    """With the powers of the norm itself instead of the dual ones, the bound is too small."""
    norm = parse_norm("linf(a, b)")
    gradient = {"a": 1.0, "b": 1.0}
    moves, reached = extremal(norm, gradient)
    assert length(norm, moves) == 1.0
    assert length(norm, gradient) < reached == dual_of(norm, gradient) == 2.0
