"""Ranges of expressions: forms and pieces, filters, groups, values, keys, and what a report says of them."""

from decimal import Decimal
from fractions import Fraction

import pytest

from secant.numeric import interval as iv
from secant.plan import nodes as n
from secant.plan.facts.keys import closure, identifies, keys_after
from secant.plan.facts.range_filters import Outcomes, judge, values_of
from secant.plan.facts.range_report import range_lines, range_report
from secant.plan.facts.ranges import NOTHING_DECLARED, Ranges, declared_keys, ranges_of
from secant.plan.rewrites.rewrite import normalize
from secant.policy.beliefs import Belief
from secant.policy.policy import ColumnFacts, Policy, TableFacts
from secant.schema import types as t
from secant.schema.catalog import Table, catalog
from secant.sql.bind import from_sql

CATALOG = catalog(
    Table(
        "ships",
        (
            ("id", t.INTEGER),
            ("port", t.INTEGER),
            ("speed", t.DOUBLE),
            ("load", t.decimal(8, 2)),
            ("crew", t.INTEGER),
            ("flag", t.TEXT),
            ("day", t.DATE),
            ("age", t.INTEGER),
        ),
    ),
    Table("ports", (("id", t.INTEGER), ("flag", t.TEXT), ("depth", t.DOUBLE))),
)
POLICY = Policy(
    "",
    {
        "ships": TableFacts(
            ("id",),
            {"port": ("ports", "id")},
            {
                "speed": ColumnFacts(range=(0, 1)),
                "load": ColumnFacts(range=(Decimal("0.5"), 4)),
                "crew": ColumnFacts(values=(1, 2, 5, 9)),
                "flag": ColumnFacts(values=("EE", "LV", "NO")),
                "age": ColumnFacts(
                    range=(-11, 91), belief=Belief("normal", 40, Fraction(12)), assumed=True
                ),
            },
        ),
        "ports": TableFacts(
            ("id",),
            {},
            {"flag": ColumnFacts(values=("NO", "SE")), "depth": ColumnFacts(range=(2, 30))},
        ),
    },
    (),
)


def asked(query, rows=None):
    """Give what is known below the query's list, and the expressions of the list."""
    plan = normalize(from_sql(query, CATALOG))
    assert isinstance(plan, n.Project)
    return ranges_of(plan.input, POLICY, lambda inner: rows), [i.expression for i in plan.items]


def range_of(expression, rest="FROM ships", rows=None):
    known, (scalar,) = asked(f"SELECT {expression} {rest}", rows)
    return known.of(scalar)


@pytest.mark.parametrize(
    ("expression", "low", "high"),
    [
        ("speed * (1 - speed)", 0, Fraction(1, 4)),
        ("speed - speed", 0, 0),
        ("abs(speed - 1) - speed", -1, 1),
        ("speed + load - speed", Fraction(1, 2), 4),
        ("load / load", Fraction(1, 2), Fraction(3, 2)),
        ("1 / (speed * speed - speed + 1)", Fraction(8, 10), Fraction(14, 10)),
        ("exp(speed) - speed", Fraction(9, 10), Fraction(19, 10)),
        ("ln(load) - load", -3, Fraction(-8, 10)),
        ("sqrt(speed) - speed", Fraction(-1, 10), Fraction(4, 10)),
        ("power(speed, 3) - speed", Fraction(-5, 10), Fraction(1, 10)),
        ("crew * crew - 10 * crew", -30, 5),
        ("speed * (1 - speed) * load", 0, 1),
    ],
)
def test_repeated_columns_are_followed(expression, low, high):
    """Each range lies within what is stated, where interval arithmetic alone gives more (or nothing)."""
    found = range_of(expression)
    assert low <= found.low <= found.high <= high


def test_a_computed_column_is_looked_through_unless_its_rows_are_two():
    once = "FROM (SELECT speed AS x, speed * speed AS y FROM ships) AS q"
    assert range_of("x - y", once).high <= Fraction(3, 10)
    twice = """FROM (SELECT speed AS x, port FROM ships) AS q
               JOIN (SELECT speed AS y, port FROM ships) AS r ON q.port = r.port"""
    assert range_of("x - y", twice) == iv.interval(-1, 1)
    shared = "FROM w AS q JOIN w AS r ON q.port = r.port"
    plan = normalize(
        from_sql(
            f"WITH w AS (SELECT speed AS x, port FROM ships) SELECT q.x - r.x {shared}", CATALOG
        )
    )
    known = ranges_of(plan.input, POLICY, lambda inner: None)
    assert known.of(plan.items[0].expression) == iv.interval(-1, 1)


def test_different_parts_are_different_variables():
    found = range_of("coalesce(crew, 3) - coalesce(age, 1) + speed - speed")
    assert found == iv.interval(1 - 91, 9 + 11)
    assert range_of("coalesce(crew, 3) - coalesce(crew, 3)") == iv.point(0)


def test_without_declared_facts_only_clamps_count():
    column = n.Column("ships.speed", t.DOUBLE)
    clamped = n.Clamp(column, n.Literal(0, t.INTEGER), n.Literal(1, t.INTEGER))
    one = n.Arithmetic("-", n.Literal(1, t.INTEGER), clamped)
    plain = Ranges(NOTHING_DECLARED)
    assert plain.of(n.Arithmetic("*", clamped, one)) == iv.interval(0, Fraction(1, 4))
    assert plain.of(n.Arithmetic("-", clamped, column)) == iv.EVERYTHING


@pytest.mark.parametrize(
    ("condition", "word"),
    [
        ("speed >= 0 AND speed IS NOT NULL", "perhaps"),
        ("speed > 1", "never"),
        ("speed >= 1", "perhaps"),
        ("speed < 0", "never"),
        ("crew = 3", "never"),
        ("crew IN (5, 6)", "perhaps"),
        ("crew IN (6, 7)", "never"),
        ("crew > 1 AND crew < 2", "never"),
        ("flag = 'SE'", "never"),
        ("flag LIKE 'S%'", "never"),
        ("flag IS NULL", "perhaps"),
        ("speed IS NULL AND load > 0", "perhaps"),
        ("speed > load + 1", "never"),
        ("load < load + speed - 2", "never"),
        ("speed = 2 OR crew = 4", "never"),
        ("NOT (speed <= 1)", "never"),
        ("1 = 1", "always"),
        ("coalesce(speed, 0) <= 1", "always"),
    ],
)
def test_conditions_are_judged(condition, word):
    known, (scalar,) = asked(f"SELECT {condition} FROM ships")
    assert judge(known, scalar).word == word


def test_a_condition_is_judged_by_those_before_it():
    known, _ = asked("SELECT 1 FROM ships WHERE speed > 0.5 AND speed < 0.2")
    assert known.empty
    assert not asked("SELECT 1 FROM ships WHERE speed > 0.5")[0].empty
    known, (scalar,) = asked("SELECT speed <= 1 FROM ships WHERE speed > 0.5")
    assert judge(known, scalar) == Outcomes(True, False, False)


@pytest.mark.parametrize(
    ("expression", "rest", "low", "high"),
    [
        ("CASE WHEN load > 3 THEN load ELSE 3 END", "FROM ships", 3, 4),
        ("CASE WHEN speed > 2 THEN 100 * speed ELSE speed END", "FROM ships", 0, 1),
        ("CASE WHEN 1 = 1 THEN speed ELSE load END", "FROM ships", 0, 1),
        ("load", "FROM ships WHERE load < 2", Fraction(1, 2), 2),
        ("crew", "FROM ships WHERE crew <> 9", 1, 5),
        ("crew", "FROM ships WHERE crew % 2 = 0", 2, 2),
        ("s.speed", "FROM ships AS s JOIN ports AS p ON s.speed = p.depth / 2", 0, 1),
        ("p.depth", "FROM ships AS s JOIN ports AS p ON p.depth <= s.speed", 2, 2),
        ("s.crew", "FROM ships AS s JOIN ships AS r ON s.crew = r.crew WHERE r.crew < 4", 1, 2),
        ("s.crew", "FROM ships AS s JOIN ships AS r ON s.crew < r.crew WHERE r.crew < 4", 1, 2),
    ],
)
def test_conditions_narrow_ranges(expression, rest, low, high):
    found = range_of(expression, rest)
    if "p.depth <= s.speed" in rest:  # nothing passes, and what is declared is kept
        assert found == iv.interval(2, 30)
    else:
        assert (found.low, found.high) == (low, high)


@pytest.mark.parametrize(
    ("call", "low", "high"),
    [
        ("count(*)", 1, 3),
        ("count(load)", 0, 3),
        ("sum(load)", Fraction(1, 2), 12),
        ("sum(speed - 1)", -3, 0),
        ("min(load)", Fraction(1, 2), 4),
        ("avg(load)", Fraction(1, 2), 4),
        ("var_pop(speed)", 0, Fraction(1, 4)),
        ("var_samp(speed)", 0, Fraction(1, 2)),
        ("sum(DISTINCT speed)", 0, 3),
    ],
)
def test_inner_groups_have_ranges(call, low, high):
    rest = f"FROM (SELECT port, {call} AS v FROM ships GROUP BY port) AS q"
    found = range_of("v", rest, rows=3)
    assert (found.low, found.high) == (low, high)


def test_a_group_by_a_key_has_one_row():
    rest = "FROM (SELECT id, sum(load) AS v, count(*) AS k FROM ships GROUP BY id) AS q"
    assert range_of("v", rest) == iv.interval(Fraction(1, 2), 4)
    assert range_of("k", rest) == iv.point(1)
    joined = """FROM (SELECT s.id, sum(p.depth) AS v FROM ships AS s JOIN ports AS p
                ON s.port = p.id GROUP BY s.id) AS q"""
    assert range_of("v", joined) == iv.interval(2, 30)
    other = """FROM (SELECT s.id, sum(p.depth) AS v FROM ships AS s JOIN ports AS p
               ON s.flag = p.flag GROUP BY s.id) AS q"""
    assert range_of("v", other) == iv.Interval(Fraction(2), None)


@pytest.mark.parametrize(
    ("expression", "rest", "values"),
    [
        ("flag", "FROM ships", {"EE", "LV", "NO"}),
        ("lower(flag)", "FROM ships", {"ee", "lv", "no"}),
        ("flag", "FROM ships WHERE flag <> 'LV'", {"EE", "NO"}),
        ("s.flag", "FROM ships AS s JOIN ports AS p ON s.flag = p.flag", {"NO"}),
        ("CASE WHEN flag = 'SE' THEN 'a' ELSE 'b' END", "FROM ships", {"b"}),
        ("coalesce(flag, 'none')", "FROM ships", {"EE", "LV", "NO", "none"}),
        ("port", "FROM ships WHERE port IN (3, 4)", {3, 4}),
        ("x", "FROM (SELECT flag AS x FROM ships UNION ALL SELECT flag FROM ports) AS q", {"EE", "LV", "NO", "SE"}),
    ],
)  # fmt: skip
def test_sets_of_values(expression, rest, values):
    known, (scalar,) = asked(f"SELECT {expression} {rest}")
    assert set(values_of(known, scalar)) == values


def test_a_column_without_facts_may_be_anything():
    known, (scalar,) = asked("SELECT port FROM ships WHERE port > 3")
    assert values_of(known, scalar) is None


def test_closures():
    plan = normalize(
        from_sql("SELECT s.id, p.depth FROM ships AS s JOIN ports AS p ON s.port = p.id", CATALOG)
    )
    found = keys_after(plan, lambda scan: declared_keys(POLICY, scan))
    assert "p.depth" in closure(found, frozenset({"s.id"}))
    assert identifies(found, frozenset({"s.id"}))
    assert not identifies(found, frozenset({"p.depth"}))
    assert not identifies(keys_after(plan, lambda scan: ()), frozenset({"s.id"}))


def test_the_report_says_what_was_derived_and_from_what():
    plan = normalize(
        from_sql(
            """SELECT flag, sum(speed * (1 - speed)), avg(age), max(day) FROM ships
               WHERE flag <> 'LV' AND speed > 2 GROUP BY flag""",
            CATALOG,
        )
    )
    (entry,) = range_report(plan, POLICY)
    assert entry["keys"][0]["possible_values"] == ["EE", "NO"]
    assert entry["empty"]
    sums = entry["values"][0]
    assert sums["range"] == [0, 0.25]
    assert "ships.speed: declared range [0, 1]" in sums["from"]
    assert "ships.speed: filter (ships.speed > 2)" in sums["from"]
    assert any("ASSUMED" in source for source in entry["values"][1]["from"])
    assert entry["values"][2]["range"] is None
    assert [c["passes"] for c in entry["conditions"]] == ["perhaps", "never"]
    text = "\n".join(range_lines([entry]))
    assert "privacy does not rest on it" in text
    assert "rows pass never: (ships.speed > 2)" in text
    assert "declared facts let no row pass" in text


@pytest.mark.parametrize("body", ["CASE WHEN x > 0 THEN x ELSE -x END", "x * x"])
def test_long_chains_of_computed_columns_are_asked_once(body):
    """Each level names the one below twice or more: asking anew each time would never end."""
    query = "SELECT speed AS x FROM ships"
    for level in range(24):
        query = f"SELECT {body} AS x FROM ({query}) AS q{level}"
    found = range_of("x", f"FROM ({query}) AS q")
    assert found.high == 1
    assert found.low >= -1


def test_numbers_of_very_many_digits_are_cut_outward():
    query = "SELECT depth AS x FROM ports"
    for level in range(24):
        query = f"SELECT x * x AS x FROM ({query}) AS q{level}"
    found = range_of("x", f"FROM ({query}) AS q")
    assert found.high is None
    assert found.low == 2**4096
