"""Tables of constants: however many rows there are, an engine reads the values that were meant."""

import datetime
import math
from decimal import Decimal

import duckdb
import pytest

from secant.engines.dialect import DUCKDB, MANY, constant, constant_rows
from secant.plan.evaluate.values import EPOCH, midnight
from secant.schema import types as t

HOSTILE = {
    "whole": (t.INTEGER, [0, -1, 2**63 - 1, -(2**63), None]),
    "beyond 64 bits": (t.INTEGER, [2**100, -(2**63) - 1, 1, None]),
    "double": (t.DOUBLE, [0.1, -0.0, 5e-324, 1.7976931348623157e308, math.inf, -math.inf, None, 3]),
    "decimal": (
        t.decimal(38, 4),
        [Decimal("0.0001"), Decimal("-9" * 1 + "9" * 33 + ".5000"), None],
    ),
    "text": (t.TEXT, ["a, b", "it's", "]", "[", '"', "NULL", "", "\\", "\n", None]),
    "date": (t.DATE, [datetime.date(1, 1, 1), datetime.date(9999, 12, 31), None]),
    "moment": (t.TIMESTAMP, [midnight(EPOCH) + datetime.timedelta(microseconds=1), None]),
    "truth": (t.BOOLEAN, [True, False, None]),
}


def read(kinds, rows):
    with duckdb.connect() as engine:
        found = engine.execute(f"SELECT * FROM ({constant_rows(DUCKDB, kinds, rows)}) AS t")
        return [d[1] for d in found.description], found.fetchall()


@pytest.mark.parametrize("name", HOSTILE)
def test_many_rows_are_read_like_few(name):
    kind, values = HOSTILE[name]
    few = [(v, i) for i, v in enumerate(values)]
    many = [(v, i) for i, v in enumerate(values * MANY)]
    types, found = read((kind, t.INTEGER), few)
    types_of_many, found_many = read((kind, t.INTEGER), many)
    assert types_of_many[0] == types[0]
    assert [v for v, _ in found_many] == [v for v, _ in found] * MANY
    assert [i for _, i in found_many] == list(range(len(many)))


def test_a_nan_stays_one():
    _, found = read((t.DOUBLE,), [(math.nan,)] * MANY)
    assert all(math.isnan(v) for (v,) in found)


def test_no_rows_have_their_types():
    types, found = read((t.DOUBLE, t.TEXT), [])
    assert found == []
    assert [str(kind) for kind in types] == ["DOUBLE", "VARCHAR"]


@pytest.mark.parametrize("scale", [0, 1, 2, 17, 37, 38])
def test_a_decimal_has_the_type_and_the_digits_that_were_meant(scale):
    with duckdb.connect() as engine:
        for precision in range(max(scale, 1), 39):
            for digits in ("9" * precision, "1" + "0" * (precision - 1), "7", "0"):
                for sign in ("", "-"):
                    value = Decimal(f"{sign}{digits}e-{scale}")
                    written = constant(DUCKDB, value, t.decimal(precision, scale))
                    found = engine.execute(f"SELECT {written}, typeof({written})").fetchone()
                    assert found == (value, f"DECIMAL({precision},{scale})"), written


def test_digits_that_a_type_has_not_are_left_to_a_cast():
    assert constant(DUCKDB, Decimal("0.10"), t.decimal(2, 2)) == ".10"
    assert constant(DUCKDB, Decimal("0.1"), t.decimal(2, 2)) == ".10"
    assert constant(DUCKDB, Decimal("0.10"), t.decimal(4, 2)) == "CAST(0.10 AS DECIMAL(4, 2))"
    assert constant(DUCKDB, Decimal("0.125"), t.decimal(2, 2)) == "CAST(0.125 AS DECIMAL(2, 2))"
