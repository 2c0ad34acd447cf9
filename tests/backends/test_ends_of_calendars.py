"""The first and the last days that engines have, days that never come, and numbers that are none: PostgreSQL as DuckDB.

`date_trunc` was NULL on PostgreSQL for all days before 4712 BC and after 294246, and a `numeric` without digits kept
its NaN. Only what PostgreSQL has no moment for is NULL.
"""

from __future__ import annotations

from collections.abc import Iterator

import duckdb
import pytest

import secant
from secant.engine import Connection

DAYS = (
    "infinity", "-infinity", "4714-11-24 BC", "4714-11-30 BC", "4714-12-01 BC", "4714-12-31 BC", "4713-01-01 BC",
    "4712-01-01 BC", "0001-01-01", "2024-02-29", "294246-12-31", "294247-01-10", "294247-01-11", "294247-02-01",
    "294247-04-01", "294248-01-01", "294276-12-31", "294277-01-01", "5874897-12-31",
)  # fmt: skip
POLICY = {
    "tables": {"t": {"key": ["id"]}},
    "protections": {"single": {"kind": "rows", "epsilon": 10**6}},
}
NUMBERS = ("NaN", "Infinity", "-Infinity", "1e500", "-1e-500", "7.5")
BEFORE_THE_FIRST = {"month": DAYS[2:4], "quarter": DAYS[2:6], "year": DAYS[2:6]}
"""Days whose month, quarter or year begins before PostgreSQL's calendar does."""


@pytest.fixture(scope="module")
def both(
    postgres_server, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Connection, Connection]]:
    import psycopg

    address = postgres_server.address(postgres_server.create_database())
    with psycopg.connect(address, autocommit=True) as server:
        server.execute("CREATE TABLE t (id integer PRIMARY KEY, d date)")
        server.execute("CREATE TABLE n (id integer PRIMARY KEY, x numeric, y numeric(9, 2))")
        for place, day in enumerate(DAYS):
            server.execute("INSERT INTO t VALUES (%s, %s)", (place, day))
        for place, number in enumerate(NUMBERS):
            server.execute("INSERT INTO n VALUES (%s, %s, 'NaN')", (place, number))
    path = tmp_path_factory.mktemp("days") / "days.duckdb"
    with duckdb.connect(str(path)) as engine:
        engine.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, d DATE)")
        for place, day in enumerate(DAYS):
            engine.execute(
                "INSERT INTO t VALUES (?, CAST(? AS DATE))", (place, day.replace("BC", "(BC)"))
            )
    tables = {**POLICY["tables"], "n": {"key": ["id"]}}
    with (
        secant.connect(address, policy={**POLICY, "tables": tables}, ledger=":memory:") as first,
        secant.connect(f"duckdb:{path}", policy=POLICY, ledger=":memory:") as second,
    ):
        yield first, second


def there(db: Connection, scalar: str, table: str = "t", among: int = len(DAYS)) -> set[int]:
    """Give the rows in which a value is not NULL."""
    keys = ", ".join(map(str, range(among)))
    text = f"SELECT id, count({scalar}) AS n FROM {table} WHERE id IN ({keys}) GROUP BY id"
    return {key for key, count in db.sql(text, epsilon=500).rows if count}


@pytest.mark.parametrize(
    "part", ["year", "quarter", "month", "week", "day", "hour", "minute", "second"]
)
def test_starts_of_parts(both, part):
    postgres, here = both
    gone = {DAYS.index(day) for day in BEFORE_THE_FIRST.get(part, ())}
    found = there(here, f"date_trunc('{part}', d)")
    assert gone <= found
    assert there(postgres, f"date_trunc('{part}', d)") == found - gone


@pytest.mark.parametrize(
    ("scalar", "gone"),
    [
        ("CAST(d AS TIMESTAMP)", ()),
        ("d + INTERVAL 3 DAY", ()),
        ("d - INTERVAL '-1' MONTH", ()),
        ("d - INTERVAL 3 DAY", DAYS[2:3]),
        ("date_diff('month', d, DATE '2020-01-01')", ()),
    ],
)
def test_other_moments(both, scalar, gone):
    postgres, here = both
    found = there(here, scalar)
    assert there(postgres, scalar) == found - {DAYS.index(day) for day in gone}


def test_numbers_of_any_size_that_are_none_are_null(both):
    postgres, _ = both
    assert there(postgres, "x", "n", len(NUMBERS)) == {1, 2, 3, 4, 5}
    assert there(postgres, "y", "n", len(NUMBERS)) == set()
    assert there(postgres, "CASE WHEN x = x THEN 1 END", "n", len(NUMBERS)) == {1, 2, 3, 4, 5}
