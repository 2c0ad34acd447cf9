"""Norms are read as the owner wrote them, or refused with what is wrong."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from secant.errors import PolicyError
from secant.terms.catalog import Table, catalog
from secant.terms.norms import ColumnNorm, CombinedNorm, ScaledNorm, columns_of, parse_norm
from secant.terms.policy_file import check_policy, read_policy
from secant.terms.types import INTEGER, TEXT

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
        ("l1(a, 2*A)", "names a twice"),
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
