"""What PostgreSQL computes otherwise than the plan says, because it is faster so: the values are the plan's."""

from __future__ import annotations

import datetime
import itertools
import math
import re
from dataclasses import replace
from decimal import Decimal

import psycopg
import pytest

from apart import apart
from secant.engines.postgres.scalars import POSTGRES
from secant.engines.postgres.session import open_server
from secant.engines.print.print_sql import lower
from secant.plan import nodes as n
from secant.plan.evaluate.evaluate import evaluate
from secant.schema.types import DATE, DOUBLE, INTEGER, Type
from secant.sql.bind import from_sql

pytestmark = pytest.mark.postgres

CENTS = Type("DECIMAL", 15, 2)
ENDS = ("-9999999999999.99", "9999999999999.99")
PRICES = [None, "NaN", *ENDS, "-0.01", "0.00", "0.07", "0.10", "0.11", "1.15"]
SIZES = [None, 0, 1, 2, 3]
DAYS = [None, "-infinity", "infinity", *(f"2020-01-{d:02}" for d in range(1, 31, 3))]
VISITS = [(1, 30), (1, 30), (None, 30), (None, None), (None, None), (-1, 30), (1, None), (2, -30)]


@pytest.fixture(scope="module")
def server(postgres_server):
    """A few rows with everything that a decimal can be."""
    address = postgres_server.address(postgres_server.create_database())
    with psycopg.connect(address) as connection:
        connection.execute("CREATE TABLE sale (id bigint, price numeric(15, 2))")
        connection.execute("CREATE TABLE part (id bigint PRIMARY KEY, size bigint)")
        connection.execute("CREATE TABLE offer (part bigint, seller bigint)")
        connection.execute(
            "CREATE TABLE visit (id integer PRIMARY KEY, ward smallint, age integer)"
        )
        for i, price in enumerate(PRICES):
            connection.execute("INSERT INTO sale VALUES (%s, %s)", (i, price))
        for i, size in enumerate(SIZES):
            connection.execute("INSERT INTO part VALUES (%s, %s)", (i, size))
        connection.execute("INSERT INTO offer SELECT i % 4, i FROM generate_series(1, 30) AS i")
        connection.execute("INSERT INTO offer VALUES (NULL, 1)")
        connection.execute("CREATE TABLE sold (day date, price numeric(15, 2))")
        for day, price in itertools.product(DAYS, PRICES):
            connection.execute("INSERT INTO sold VALUES (%s, %s)", (day, price))
        for i, (ward, age) in enumerate(VISITS):
            connection.execute("INSERT INTO visit VALUES (%s, %s, %s)", (i, ward, age))
    backend = apart(open_server(address))
    yield backend
    backend.close()


def prices():
    """The rows as the plan has them: NaN is no number."""
    values = (None if p in (None, "NaN") else Decimal(p) for p in PRICES)
    return {"sale": [{"id": i, "price": price} for i, price in enumerate(values)]}


def moved(low, high, *, added):
    """Prices that are moved into a range, as doubles, alone or in a sum that takes them as doubles."""
    scan = n.Scan("sale", "sale", (n.Field("sale.id", INTEGER), n.Field("sale.price", CENTS)))
    ends = (n.Literal(Decimal(end), CENTS) for end in (low, high))
    clamped = n.Clamp(n.Column("sale.price", CENTS), *ends)
    value = n.Arithmetic("+", clamped, n.Literal(0.5, DOUBLE)) if added else n.Cast(clamped, DOUBLE)
    items = (n.Named("id", n.Column("sale.id", INTEGER)), n.Named("value", value))
    return n.Project(scan, items)


@pytest.mark.parametrize("added", [False, True])
@pytest.mark.parametrize("ends", [("0.00", "0.10"), ("-0.00", "1.15"), ("-1.10", "-0.01")])
def test_decimals_are_moved_as_doubles(server, ends, added):
    plan = moved(*ends, added=added)
    text = lower(plan, POSTGRES)
    assert "<> 'NaN' THEN least(greatest(CAST(" in text
    found = sorted(server.rows(text))
    assert found == sorted(evaluate(plan, prices()))
    # A zero with a sign is equal to one without.
    assert not any(v == 0 and math.copysign(1, v) < 0 for _, v in found if v is not None)


def test_a_number_that_is_none_would_be_seen(server):
    plan = moved("0.00", "0.10", added=False)
    wrong = re.sub(r"CASE WHEN \S+ <> 'NaN' THEN (.*?\)) END", r"\1", lower(plan, POSTGRES))
    assert sorted(server.rows(wrong)) != sorted(evaluate(plan, prices()))


def test_what_a_part_decides_is_computed_once_for_each(server):
    plan = from_sql(
        "SELECT sum(doubled), max(most), sum(rows) FROM (SELECT id, sum(weight * 2) AS doubled, max(weight) AS most, "
        "count(*) AS rows FROM (SELECT part.id AS id, exp(part.size * 0.5) + part.size AS weight FROM part "
        "JOIN offer ON offer.part = part.id) AS joined GROUP BY id) AS each",
        server.catalog(),
    )
    text = lower(plan, POSTGRES)
    fences = [found.start() for found in re.finditer(r"\(WITH s\d+ AS \(SELECT 1\) SELECT", text)]
    assert len(fences) == 2  # nothing is written out where it is named
    assert max(fences) < text.index("exp(") < text.rindex("exp(") < text.index(" JOIN ")
    rows = {
        "part": [{"id": i, "size": size} for i, size in enumerate(SIZES)],
        "offer": [{"part": i % 4, "seller": i} for i in range(1, 31)]
        + [{"part": None, "seller": 1}],
    }
    ((doubled, most, count),) = server.rows(text)
    ((*expected,),) = evaluate(plan, rows)
    assert [doubled, most, count] == [pytest.approx(x, rel=1e-14) for x in expected]


@pytest.mark.parametrize(
    ("text", "groups"),
    [
        ("SELECT ward, age, count(*) FROM visit GROUP BY ward, age", '"ward", s1."age"'),
        ("SELECT id, age, count(*) FROM visit GROUP BY id, age", '"id", s1."age"'),
        ("SELECT ward, age + 1 AS a, count(*) FROM visit GROUP BY ward, age + 1", '"ward", 2'),
    ],
)
def test_whole_numbers_are_grouped_as_they_are_stored(server, text, groups):
    plan = from_sql(text, server.catalog())
    written = lower(plan, POSTGRES)
    assert f"GROUP BY s1.{groups})" in written
    rows = [{"id": i, "ward": ward, "age": age} for i, (ward, age) in enumerate(VISITS)]
    assert sorted(map(str, server.rows(written))) == sorted(
        map(str, evaluate(plan, {"visit": rows}))
    )


def test_the_server_sees_which_column_is_the_key(server):
    plan = from_sql("SELECT id, age, count(*) FROM visit GROUP BY id, age", server.catalog())
    told = [line for (line,) in server.rows("EXPLAIN " + lower(plan, POSTGRES)) if "Key:" in line]
    assert [line.split(": ")[1] for line in told] == ["s1.id"]


@pytest.mark.parametrize("by_price", [False, True])
def test_stored_columns_decide_on_endless_days_and_no_numbers_too(server, by_price):
    """A price of each row that passes, and the nearest edge, as margins would give them on the same server."""
    columns = (n.Column("sold.day", DATE), n.Column("sold.price", CENTS))
    scan = n.Scan("sold", "sold", tuple(n.Field(c.name, c.type) for c in columns))
    there = n.And(tuple(n.Not(n.IsNull(c)) for c in columns))
    first, last = datetime.date(2020, 1, 5), datetime.date(2020, 1, 25)
    held = n.Clamp(columns[0], n.Literal(first, DATE), n.Literal(last, DATE))
    since = (n.Literal("day", Type("TEXT")), n.Literal(first, DATE))
    days = n.Cast(n.Call("date_diff", (*since, held)), DOUBLE)
    ends = (n.Literal(Decimal(x), CENTS) for x in ("0.00", "1.00"))
    price = n.Cast(n.Clamp(columns[1], *ends), DOUBLE)
    half = n.Arithmetic("*", price, n.Literal(20.0, DOUBLE)) if by_price else days
    margin = n.Arithmetic("-", n.Literal(7.25, DOUBLE), half)
    value = n.Arithmetic("*", n.Call("ramp", (n.Column("u", DOUBLE),)), price)
    rows = n.Project(
        n.Filter(scan, there),
        (n.Named("u", margin), *(n.Named(c.name, c) for c in columns)),
    )
    made = n.Project(
        rows, (n.Named("value", value), n.Named("away", n.Call("abs", (n.Column("u", DOUBLE),))))
    )
    steps = n.Arithmetic("*", n.Column("value", DOUBLE), n.Literal(2.0**32, DOUBLE))
    calls = (
        n.Aggregation("sum", "sum", n.Cast(steps, INTEGER)),
        n.Aggregation("least", "min", n.Column("away", DOUBLE)),
    )
    plan = n.Aggregate(made, (), calls)
    text, plain = lower(plan, POSTGRES), lower(plan, replace(POSTGRES, optimize=()))
    assert text != plain
    assert "float8 '0.5'" in plain
    ((total, least),), ((meant, nearest),) = server.rows(text), server.rows(plain)
    assert abs(total - meant) <= len(DAYS) * len(PRICES)  # half a step for each row, and floats
    assert meant > 10 * len(DAYS) * len(PRICES)
    assert least == nearest
