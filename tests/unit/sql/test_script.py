"""Scripts are taken apart by their heads; errors point into the script."""

import pytest

from secant.errors import SqlError
from secant.sql.script import read_script


def test_statements_in_order():
    script = """
    -- a comment; with a semicolon
    CREATE OR REPLACE TEMP VIEW "V" (x, "Y") AS SELECT a, ';' FROM t;
    create table w as (select 1);
    RELEASE r AS WITH q AS (SELECT 1) SELECT * FROM q;
    SELECT 2; WITH z AS (SELECT 1) SELECT * FROM z;;
    """
    found = read_script(script)
    assert [(s.kind, s.name, s.columns) for s in found] == [
        ("view", "v", ("x", "Y")),
        ("view", "w", ()),
        ("release", "r", ()),
        ("question", "answer1", ()),
        ("question", "answer2", ()),
    ]
    assert found[0].spelled == "SELECT a, ';' FROM t"
    for s in found:  # a query stands where it stands in the script
        start = script.index(s.spelled)
        assert s.text == "".join(c if c == "\n" else " " for c in script[:start]) + s.spelled


@pytest.mark.parametrize(
    ("script", "said"),
    [
        ("", "releases nothing"),
        ("CREATE VIEW v AS SELECT 1", "releases nothing"),
        ("DROP TABLE t", "DROP is not accepted"),
        ("CREATE INDEX i ON t (a)", "only views and tables"),
        ("CREATE VIEW v", "AS and a query"),
        ("RELEASE AS SELECT 1", "AS and a query"),
        ("RELEASE t (a, 3) AS SELECT 1", "names of columns"),
        ("RELEASE t AS SELECT 1; RELEASE T AS SELECT 2", "defined twice"),
        ("SELECT 'a", "not closed"),
        ("SELECT 1;" * 300, "at most 200"),
    ],
)
def test_what_is_no_script(script, said):
    with pytest.raises(SqlError) as caught:
        read_script(script)
    assert said in str(caught.value)
