"""What is refused by name, before any name is looked up."""

import pytest

from secant.errors import SqlError
from secant.sql.limits import MAX_DEPTH, MAX_JOINS, MAX_NODES
from secant.sql.parse import parse
from secant.sql.screen import screen


def refused(text):
    with pytest.raises(SqlError) as caught:
        screen(parse(text), text)
    return caught.value


@pytest.mark.parametrize(
    "text",
    [
        "SELECT random()", "SELECT RANDOM ( )", "SELECT now()", "SELECT current_timestamp", "SELECT current_date",
        "SELECT today()", "SELECT uuid()", "SELECT gen_random_uuid()", "SELECT nextval('s')", "SELECT current_user",
        "SELECT count(*) FROM t HAVING random() > 0", "SELECT * FROM t ORDER BY random()",
        "SELECT * FROM (SELECT random() AS x) AS u", "WITH a AS (SELECT now() AS x) SELECT x FROM a",
        "SELECT * FROM t WHERE EXISTS (SELECT 1 FROM u WHERE random() < x)", "SELECT CASE WHEN random() < 1 THEN 1 END",
        "SELECT getenv('HOME')", "SELECT current_setting('x')", "SELECT * FROM read_csv('x')",
        "SELECT * FROM read_parquet('x')", "SELECT * FROM READ_TEXT('x')", "SELECT * FROM glob('*')",
        "SELECT * FROM sqlite_scan('x', 'y')", "SELECT * FROM query('SELECT 1')",
        "WITH RECURSIVE a AS (SELECT 1) SELECT * FROM a", "SELECT * FROM t TABLESAMPLE 1%",
        "SELECT x INTO y FROM t",
    ],
)  # fmt: skip
def test_forbidden_wherever_it_stands(text):
    assert refused(text).code == "SQL-006"


def test_walls_have_two_sides():
    def joined(count):
        return "SELECT 1 FROM t " + "JOIN t ON TRUE " * count

    def deep(count):
        return "SELECT " + "1 + " * count + "1"

    def long(count):
        return f"SELECT x IN ({', '.join(['1'] * count)}) FROM t"

    for make, inside, outside in (
        (joined, MAX_JOINS, MAX_JOINS + 1),
        (deep, MAX_DEPTH - 10, MAX_DEPTH + 1),
        (long, MAX_NODES - 100, MAX_NODES + 1),
    ):
        text = make(inside)
        tree = parse(text)
        assert screen(tree, text) is tree
        assert refused(make(outside)).code == "SQL-007"


def test_names_alone_are_not_forbidden():
    text = 'SELECT random, now, "read_csv" FROM random AS now WHERE getenv = 1'
    tree = parse(text)
    assert screen(tree, text) is tree
