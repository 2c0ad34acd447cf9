"""Text in, one syntax tree out: sizes, statements, places."""

import logging

import pytest
from sqlglot import exp

from secant.errors import SqlError, UsageError
from secant.sql.limits import MAX_CHARACTERS
from secant.sql.parse import parse, span_of


@pytest.mark.parametrize(
    "text",
    [
        "SELECT 1",
        "select 1;",
        "(SELECT 1)",
        "WITH a AS (SELECT 1) SELECT * FROM a",
        "SELECT 1 UNION SELECT 2",
        "FROM t",
    ],
)
def test_one_query_is_read(text):
    assert isinstance(parse(text), exp.Query)


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("", "SQL-001"), (" ; ; ", "SQL-001"), ("/* nothing */", "SQL-001"), ("SELECT 'a", "SQL-001"),
        ("SELECT (1", "SQL-001"), ("SELEC 1", "SQL-001"), ("SELECT 1 +", "SQL-001"), ("\ud800", "SQL-001"),
        ("SELECT 1; SELECT 2", "SQL-005"), ("DROP TABLE t", "SQL-005"), ("COPY t TO 'x'", "SQL-005"),
        ("INSTALL httpfs", "SQL-005"), ("CALL f()", "SQL-005"), ("SELECT " + "(" * 2000, "SQL-007"),
        ("SELECT " + "x" * MAX_CHARACTERS, "SQL-007"),
    ],
)  # fmt: skip
def test_anything_else_is_refused_with_its_code(text, code):
    with pytest.raises(SqlError) as caught:
        parse(text)
    assert caught.value.code == code


@pytest.mark.parametrize("text", [None, 1, b"SELECT 1"])
def test_only_text_is_read(text):
    with pytest.raises(UsageError):
        parse(text)


def test_a_syntax_error_is_marked_where_it_is():
    text = "SELECT count(*)\nFROM orders WHERE total > ) 5"
    with pytest.raises(SqlError) as caught:
        parse(text)
    shown = caught.value.render().splitlines()
    assert shown[1].strip() == "FROM orders WHERE total > ) 5"
    assert set(shown[2].strip()) == {"^"}


def test_a_place_covers_the_identifiers():
    text = "SELECT aa + bb FROM t"
    tree = parse(text)
    (sum_,) = tree.expressions
    place = span_of(sum_)
    assert text[place.start : place.end] == "aa + bb"
    assert span_of(exp.true()) is None


def test_the_parser_writes_no_log(caplog):
    caplog.set_level(logging.DEBUG)
    for text in ("SHOW secret_table", "EXPLAIN SELECT secret_column", "SELECT 'secret"):
        with pytest.raises(SqlError):
            parse(text)
    assert "secret" not in caplog.text
