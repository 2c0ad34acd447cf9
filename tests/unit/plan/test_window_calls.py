"""Window calls of a plan: what they compute, where their values lie, and how statements with them are read."""

from __future__ import annotations

from fractions import Fraction

import pytest

from secant.errors import SqlError
from secant.plan import nodes as n
from secant.plan.evaluate.evaluate import evaluate
from secant.plan.facts.ranges import ranges_of
from secant.plan.functions.windows import breaks_ties, first_rows, undecided
from secant.plan.verify import verify
from secant.policy.policy import ColumnFacts, Policy, TableFacts
from secant.schema.catalog import Table, catalog
from secant.schema.types import DATE, INTEGER, TEXT, TIMESTAMP
from secant.sql.bind import from_sql

SHOP = catalog(
    Table("sale", (("who", INTEGER), ("day", INTEGER), ("sum", INTEGER), ("kind", TEXT))),
    Table("back", (("who", INTEGER), ("day", INTEGER), ("Why", TEXT))),
    Table("times", (("at", TIMESTAMP), ("on", DATE))),
)
SALES = {
    "sale": [(1, 1, 5, "a"), (1, 2, 7, "b"), (1, 2, 1, "a"), (2, 4, 2, "a"), (None, 3, 9, None)],
    "back": [(1, 1, "x"), (3, 1, "y"), (None, 2, "z")],
}


def answer(text):
    plan = from_sql(text, SHOP)
    verify(plan)
    return sorted(evaluate(plan, SALES), key=repr)


@pytest.mark.parametrize(
    ("call", "values"),
    [
        ("row_number() OVER (PARTITION BY who ORDER BY day)", [1, 1, 1, 2, 3]),
        ("rank() OVER (PARTITION BY who ORDER BY day)", [1, 1, 1, 2, 2]),
        ("dense_rank() OVER (ORDER BY day)", [1, 2, 2, 3, 4]),
        ("ntile(2) OVER (ORDER BY day)", [1, 1, 1, 2, 2]),
        ("lag(sum, 1, 0) OVER (PARTITION BY who ORDER BY day, sum)", [0, 0, 0, 1, 5]),
        ("sum(sum) OVER (PARTITION BY who)", [13, 13, 13, 2, 9]),
        ("sum(sum) OVER (ORDER BY day)", [13, 13, 22, 24, 5]),
        ("count(*) OVER (ORDER BY day ROWS BETWEEN 1 PRECEDING AND CURRENT ROW)", [1, 2, 2, 2, 2]),
        ("first_value(day) OVER (PARTITION BY who ORDER BY sum)", [2, 2, 2, 3, 4]),
        ("cume_dist() OVER (PARTITION BY who ORDER BY kind)", [1.0, 1.0, 1.0, 2 / 3, 2 / 3]),
    ],
)
def test_calls_compute(call, values):
    assert sorted(x for (x,) in answer(f"SELECT {call} FROM sale")) == sorted(values)


def test_clauses_of_windows():
    named = "SELECT sum(sum) OVER w FROM sale WINDOW w AS (PARTITION BY who)"
    assert answer(named) == answer("SELECT sum(sum) OVER (PARTITION BY who) FROM sale")
    qualify = "SELECT who, day FROM sale QUALIFY row_number() OVER (PARTITION BY who ORDER BY day, sum) = 1"
    assert answer(qualify) == [(1, 1), (2, 4), (None, 3)]
    grouped = "SELECT who, sum(count(*)) OVER () AS n FROM sale GROUP BY who HAVING count(*) < 3"
    assert answer(grouped) == [(2, 2), (None, 2)]
    on = "SELECT DISTINCT ON (who) who, sum FROM sale ORDER BY who, sum DESC"
    assert answer(on) == [(1, 7), (2, 2), (None, 9)]


def test_grouping_sets():
    rolled = "SELECT who, kind, count(*), GROUPING(who, kind) FROM sale GROUP BY ROLLUP (who, kind)"
    found = answer(rolled)
    assert (None, None, 5, 3) in found
    assert (1, None, 3, 1) in found
    assert (None, None, 1, 0) in found
    assert len(found) == 4 + 3 + 1
    assert len(answer("SELECT count(*) FROM sale GROUP BY CUBE (who, kind)")) == 4 + 3 + 3 + 1
    sets = "SELECT who, day, sum(sum) FROM sale GROUP BY GROUPING SETS ((who), (day), ())"
    assert len(answer(sets)) == 3 + 4 + 1
    assert len(answer("SELECT kind, count(*) FROM sale GROUP BY kind, ROLLUP (who)")) == 4 + 3


def test_joins_of_every_kind():
    full = "SELECT s.sum, b.Why FROM sale s FULL JOIN back b ON s.who = b.who AND s.day = b.day"
    assert answer(full) == [
        (1, None), (2, None), (5, "x"), (7, None), (9, None), (None, "y"), (None, "z"),
    ]  # fmt: skip
    using = "SELECT who, count(*) FROM sale FULL JOIN back USING (who, day) GROUP BY who"
    assert answer(using) == [(1, 3), (2, 1), (3, 1), (None, 2)]
    assert answer("SELECT sum FROM sale NATURAL JOIN back") == [(5,)]
    assert len(answer("SELECT 1 FROM sale NATURAL LEFT JOIN back")) == 5
    comma = "SELECT count(*) FROM sale x, sale s RIGHT JOIN back b ON s.who = b.who"
    assert answer(comma) == [(25,)]


def test_names_aliases_and_literals():
    text = "SELECT main.sale.sum + 1 AS x, x * 2 AS y FROM memory.main.sale WHERE kind = 'b'"
    assert answer(text) == [(8, 16)]
    assert answer('SELECT "why" FROM back WHERE "Who" = 3') == [("y",)]
    assert answer("SELECT concat(kind, '-', who, NULL) FROM sale WHERE day = 3") == [("-",)]
    assert answer("SELECT kind FROM sale ORDER BY ALL FETCH FIRST 2 ROWS ONLY") == [("a",), ("a",)]
    plan = from_sql("SELECT 1 FROM times WHERE at > '2020-01-01 01:00:00+02'", SHOP)
    (moment,) = [x.value for x in n.walk(plan) if isinstance(x, n.Literal) and x.type == TIMESTAMP]
    assert moment.isoformat() == "2019-12-31T23:00:00"


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("SELECT 1 FROM sale WHERE rank() OVER (ORDER BY day) = 1", "SQL-008"),
        ("SELECT sum(rank() OVER (ORDER BY day)) OVER () FROM sale", "SQL-008"),
        ("SELECT sum(sum) OVER nowhere FROM sale", "SQL-002"),
        ("SELECT sum(sum) OVER (ORDER BY day RANGE 3 PRECEDING) FROM sale", "SQL-006"),
        ("SELECT first_value(sum IGNORE NULLS) OVER (ORDER BY day) FROM sale", "SQL-006"),
        ("SELECT count(DISTINCT sum) OVER () FROM sale", "SQL-006"),
        ("SELECT median(sum) OVER () FROM sale", "SQL-006"),
        ("SELECT ntile('a') OVER (ORDER BY day) FROM sale", "SQL-004"),
        ("SELECT GROUPING(sum) FROM sale GROUP BY who", "SQL-008"),
        ("SELECT count(*) FROM sale GROUP BY CUBE (who, day, sum, kind, who + 1, day + 1, sum + 1)", "SQL-006"),
        ("SELECT 1 FROM sale ASOF JOIN back ON sale.day >= back.day", "SQL-006"),
        ("SELECT 1 FROM sale, LATERAL (SELECT day FROM back WHERE back.who = sale.who) AS b", "SQL-006"),
        ("SELECT 1 FROM sale, LATERAL (SELECT 1) AS b", "SQL-006"),
        ("SELECT 1 FROM sale LEFT JOIN LATERAL (SELECT count(*) AS n FROM back) AS b ON b.n > 1", "SQL-006"),
    ],
)  # fmt: skip
def test_what_is_refused(text, code):
    with pytest.raises(SqlError) as caught:
        from_sql(text, SHOP)
    assert caught.value.code == code
    assert caught.value.hint


def window(text):
    plan = from_sql(text, SHOP)
    (found,) = [x for x in n.walk(plan) if isinstance(x, n.Window)]
    return plan, found


def test_ties_are_broken_where_rows_are_told_apart():
    told = {
        "row_number() OVER (ORDER BY day)": (True, False),
        "rank() OVER (ORDER BY day)": (False, False),
        "sum(sum) OVER (ORDER BY day)": (False, False),
        "sum(sum) OVER (ORDER BY day ROWS 1 PRECEDING)": (True, False),
        "first_value(sum) OVER (ORDER BY day)": (True, False),
        "last_value(sum) OVER (ORDER BY day)": (False, True),
    }
    for call, expected in told.items():
        (found,) = window(f"SELECT {call} FROM sale")[1].calls
        assert (breaks_ties(found), undecided(found)) == expected, call


def test_rows_that_are_numbered():
    number, three = n.Column("r", INTEGER), n.Literal(3, INTEGER)
    numbered = frozenset("r")
    assert first_rows(numbered, n.Compare("<=", number, three)) == 3
    assert first_rows(numbered, n.Compare("<", number, three)) == 2
    assert first_rows(numbered, n.Compare("=", number, three)) == 1
    assert first_rows(numbered, n.Compare(">", number, three)) is None
    assert first_rows(frozenset(), n.Compare("=", number, three)) is None


POLICY = Policy(
    "",
    {
        "sale": TableFacts(
            columns={"sum": ColumnFacts(range=(Fraction(0), Fraction(9)))},
        )
    },
    (),
)


def known(text, column):
    plan, found = window(text)
    ranges = ranges_of(plan, POLICY, lambda _: None)
    name = next(c.name for c in found.calls if c.function == column)
    return ranges.of(n.Column(name, INTEGER))


def test_ranges_of_window_calls_hold():
    lag = known("SELECT lag(sum, 1, -4) OVER (ORDER BY day) FROM sale", "lag")
    assert (lag.low, lag.high) == (-4, 9)
    number = known("SELECT row_number() OVER (ORDER BY day) FROM sale", "row_number")
    assert (number.low, number.high) == (1, None)
    tile = known("SELECT ntile(4) OVER (ORDER BY day) FROM sale", "ntile")
    assert (tile.low, tile.high) == (1, 4)
    assert not known("SELECT sum(sum) OVER () FROM sale", "sum").bounded


def test_a_condition_above_the_window_says_nothing_of_other_rows():
    text = "SELECT b FROM (SELECT sum, lag(sum) OVER (ORDER BY day) AS b FROM sale {}) q {}"
    above = known(text.format("", "WHERE sum < 3"), "lag")
    assert above.high == 9
    below = known(text.format("WHERE sum < 3", ""), "lag")
    assert below.high == 3
