"""What a parser would be lost in is refused before it is parsed."""

import pytest
from sqlglot.dialects.dialect import Dialect

from secant.errors import SqlError
from secant.sql.limits import MAX_DEPTH
from secant.sql.parse import parse
from secant.sql.shape import MAX_NESTED, MAX_UNCONDITIONED, check_shape

MANY = 20_000


def checked(text):
    # Not `parse`: a screen that lets one of these through would leave the test with the parser for hours.
    check_shape(list(Dialect.get_or_raise("duckdb").tokenize(text)))


@pytest.mark.parametrize(
    "text",
    [
        "SELECT " + "(" * MANY + "1" + ")" * MANY,
        "SELECT " + "[" * MANY,
        "SELECT * FROM " + "(" * MANY + "t" + ")" * MANY,
        "SELECT * FROM " + "(SELECT * FROM " * MANY + "t" + ")" * MANY,
        "SELECT " + "f(" * MANY + "1" + ")" * MANY,
        "SELECT " + "{'a': " * MANY + "1" + "}" * MANY,
        "SELECT " + "CASE WHEN a THEN 1 ELSE " * MANY + "1" + " END" * MANY,
        "SELECT " + "NOT " * MANY + "a",
        "SELECT " + "- " * MANY + "a",
        "FROM " * MANY + "t",
        "SUMMARIZE " * MANY + "SELECT 1",
        "SELECT CAST(a AS " + "ARRAY<" * MANY + "int" + ">" * MANY + ")",
        "SELECT CAST(a AS " + "STRUCT<a " * MANY + "int" + ">" * MANY + ")",
        "SELECT CAST(a AS " + "STRUCT(a " * MANY + "int" + ")" * MANY + ")",
        "SELECT a" + "[1]" * MANY,
        "SELECT a" + ".f()" * MANY,
        "SELECT * FROM t" + " JOIN t" * MANY,
        "SELECT * FROM t" + " LEFT JOIN t" * (MAX_UNCONDITIONED + 1),
        "SELECT DISTINCT ON (a) * FROM t"
        + " JOIN (SELECT DISTINCT ON (a) * FROM t" * 13
        + ")" * 13,
        "SELECT * FROM t" + " JOIN t JOIN t ON a = a" * (MAX_UNCONDITIONED + 1),
    ],
)
def test_what_would_break_a_parser_is_refused_before_it(text):
    with pytest.raises(SqlError) as caught:
        checked(text)
    assert caught.value.code == "SQL-007"


@pytest.mark.parametrize(
    "text",
    [
        "SELECT " + "(" * 20 + "1" + ")" * 20,
        "SELECT " + ", ".join(["(a)"] * 1000) + " FROM t",
        "SELECT " + " + ".join(["CASE WHEN a < 1 THEN 1 ELSE 2 END"] * 500) + " FROM t",
        "SELECT " + "NOT " * 20 + "a FROM t",
        "SELECT * FROM t" + " CROSS JOIN t" * 40,
        "SELECT * FROM t" + " NATURAL LEFT JOIN t" * 40,
        "SELECT * FROM t" + " JOIN t ON a = a" * 90,
        "SELECT * FROM t" + " JOIN t USING (a)" * 90,
        "SELECT * FROM t" + " JOIN t" * 30 + " ON a = a" * 30,
        "SELECT * FROM t JOIN t" + " UNION ALL SELECT * FROM t JOIN t" * 5,
        "SELECT " + ", ".join(["f(a)[1]"] * MAX_NESTED) + " FROM t",
        "SELECT " + ", ".join(["a IN (1, 2)", "a BETWEEN 1 AND 2"] * MAX_DEPTH) + " FROM t",
    ],
)
def test_what_a_parser_reads_is_left_to_it(text):
    checked(text)
    assert parse(text) is not None


def test_refusals_leave_the_parser_as_they_are():
    with pytest.raises(SqlError) as caught:
        parse("SELECT * FROM t" + " JOIN t" * (MAX_UNCONDITIONED + 1))
    assert caught.value.code == "SQL-007"
    assert "no condition" in caught.value.message
