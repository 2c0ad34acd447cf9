"""Values for placeholders: the plan is that of the literal, and what does not fit is told."""

import datetime
import uuid
from decimal import Decimal

import pytest

from secant.errors import SqlError, UsageError
from secant.plan.show import same
from secant.schema import types as t
from secant.schema.catalog import Table, catalog
from secant.sql.bind import from_sql
from secant.sql.parameters import named_values

CATALOG = catalog(
    Table(
        "visits",
        (
            ("age", t.INTEGER), ("cost", t.decimal(8, 2)), ("rate", t.DOUBLE), ("ward", t.TEXT),
            ("day", t.DATE), ("at", t.TIMESTAMP), ("open", t.BOOLEAN),
        ),
    )
)  # fmt: skip
DAY, MOMENT = datetime.date(2025, 3, 1), datetime.datetime(2025, 3, 1, 12, 30)  # noqa: DTZ001
FROM = "SELECT count(*) AS n FROM visits WHERE "

ALIKE = (
    (FROM + "age >= ?", [65], FROM + "age >= 65"),
    (FROM + "age >= $1 AND cost < $2", [65, Decimal("10.50")], FROM + "age >= 65 AND cost < 10.50"),
    (FROM + "cost < $1 OR cost > $1", [3], FROM + "cost < 3 OR cost > 3"),
    (FROM + "ward IN ($1,$2)", ["A", "it's"], FROM + "ward IN ('A', 'it''s')"),
    (FROM + "ward = ANY($1)", [["A", "B"]], FROM + "ward IN ('A', 'B')"),
    (FROM + "age = :a AND ward = :w", {"a": -3, "w": "x"}, FROM + "age = -3 AND ward = 'x'"),
    (FROM + "age = $a", {"a": 3}, FROM + "age = 3"),
    (FROM + "cost - ? > 1", [-5], FROM + "cost - -5 > 1"),
    (FROM + "rate > ?", [0.5], FROM + "rate > 5e-1"),
    (FROM + "day >= ? AND at < ?", [DAY, MOMENT],
     FROM + "day >= DATE '2025-03-01' AND at < TIMESTAMP '2025-03-01 12:30:00'"),
    (FROM + "day - ? < DATE '2025-03-01'", [datetime.timedelta(days=-1, hours=1)],
     FROM + "day - INTERVAL '-82800' SECOND < DATE '2025-03-01'"),
    (FROM + "day >= ?", ["2025-03-01"], FROM + "day >= '2025-03-01'"),
    (FROM + "open = ? AND ward IS NOT NULL", [True], FROM + "open = TRUE AND ward IS NOT NULL"),
    (FROM + "ward = ?", [None], FROM + "ward = NULL"),
    (FROM + "ward = ?", [uuid.UUID(int=1)], FROM + "ward = '00000000-0000-0000-0000-000000000001'"),
    ("SELECT ward, count(*) AS n FROM visits GROUP BY ward ORDER BY ward LIMIT ? OFFSET ?", [3, 1],
     "SELECT ward, count(*) AS n FROM visits GROUP BY ward ORDER BY ward LIMIT 3 OFFSET 1"),
    ("SELECT quantile_cont(cost, $1) AS q FROM visits", [Decimal("0.25")],
     "SELECT quantile_cont(cost, 0.25) AS q FROM visits"),
    ("SELECT date_trunc(?, day) AS m, count(*) AS n FROM visits GROUP BY date_trunc(?, day)",
     ["month", "month"],
     "SELECT date_trunc('month', day) AS m, count(*) AS n FROM visits GROUP BY date_trunc('month', day)"),
    # as clients send values: text, read by what it stands beside
    (FROM + "age >= ? AND cost BETWEEN ? AND ?", ["65", "-1.5", "1e2"],
     FROM + "age >= 65 AND cost BETWEEN -1.5 AND 1e2"),
    (FROM + "open = ?", ["true"], FROM + "open = TRUE"),
    (FROM + '"public"."visits"."age" > ?', [3], FROM + "visits.age > 3"),
    (FROM + "ward = '?' AND age > ? -- ? :x", [3], FROM + "ward = '?' AND age > 3"),
)  # fmt: skip


@pytest.mark.parametrize(("text", "parameters", "literal"), ALIKE)
def test_the_plan_is_that_of_the_literal(text, parameters, literal):
    assert same(from_sql(text, CATALOG, parameters=parameters), from_sql(literal, CATALOG))


def test_a_value_is_no_position():
    one = from_sql("SELECT ward, age FROM visits ORDER BY ?", CATALOG, parameters=[2])
    assert not same(one, from_sql("SELECT ward, age FROM visits ORDER BY 2", CATALOG))
    assert same(one, from_sql("SELECT ward, age FROM visits ORDER BY (2)", CATALOG))


def test_a_value_is_never_read_as_text_of_the_query():
    hostile = "x' OR 1=1 --"
    literal = FROM + "ward = 'x'' OR 1=1 --'"
    assert same(
        from_sql(FROM + "ward = ?", CATALOG, parameters=[hostile]), from_sql(literal, CATALOG)
    )


@pytest.mark.parametrize(
    ("text", "parameters"),
    [
        (FROM + "age > ?", None),
        (FROM + "age > ?", []),
        (FROM + "age > $2", [1]),
        (FROM + "age > $0", [1]),
        (FROM + "age > ?", [1, 2]),
        (FROM + "age > 1", [1]),
        (FROM + "age > ? AND age < $1", [1]),
        (FROM + "age > :a", [1]),
        (FROM + "age > ?", {"a": 1}),
        (FROM + "age > :a", {"b": 1}),
        (FROM + "age > :a", {"a": 1, "b": 1}),
        (FROM + "age > ?", "1"),
        (FROM + "age > ?", 7),
        (FROM + "age > ?", [object()]),
        (FROM + "age > ?", [b"1"]),
        (FROM + "rate > ?", [float("nan")]),
        (FROM + "rate > ?", [float("inf")]),
        (FROM + "cost > ?", [Decimal("NaN")]),
        (FROM + "cost > ?", [Decimal("1e999999")]),
        (FROM + "age IN (?)", [[1, 2]]),
        (FROM + "age = ANY(?)", [[]]),
        (FROM + "age > ?", [0] * 20_000),
    ],
)
def test_parameters_that_do_not_fit(text, parameters):
    with pytest.raises(UsageError) as told:
        from_sql(text, CATALOG, parameters=parameters)
    assert told.value.code == "USE-011"


@pytest.mark.parametrize(
    ("text", "parameters"),
    [
        (FROM + "age > ?", ["abc"]),
        (FROM + "age > ?", ["6.5"]),
        (FROM + "age > ?", [""]),
        (FROM + "ward = ?", [3]),
        (FROM + "day > ?", ["yesterday"]),
        (FROM + "open = ?", ["perhaps"]),
        (FROM + "age > ?", [True]),
    ],
)
def test_a_value_of_the_wrong_type(text, parameters):
    with pytest.raises(SqlError) as told:
        from_sql(text, CATALOG, parameters=parameters)
    assert told.value.code == "SQL-004"


def test_words_of_a_command_line():
    assert named_values("a = ? AND b = $1", ["x=1", "2"]) == ["x=1", "2"]
    assert named_values("a = :x", ["x=1=2"]) == {"x": "1=2"}
    assert named_values("a = $x", ["x=1"]) == {"x": "1"}
    assert named_values("a = 1", []) is None
    with pytest.raises(UsageError):
        named_values("a = :x", ["1"])
