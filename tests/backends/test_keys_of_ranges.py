"""Keys that follow from declared ranges are exactly those that both engines make of them: no more, no fewer."""

from __future__ import annotations

import datetime

import duckdb
import psycopg
import pytest

import secant
from filled import fill
from secant.errors import Refused
from secant.plan.facts import domains, images

START = datetime.datetime(2023, 12, 30, 22, 15)  # noqa: DTZ001 - SQL's timestamps have no zone
END = START + datetime.timedelta(hours=53, minutes=15)
DAYS = [datetime.date(2023, 11, 28) + datetime.timedelta(days=i) for i in range(96)]
WHOLES = list(range(-7, 41))
PRICES = [-250.5 + i / 4 for i in range(3000)] + [499.99]
CENTS = [i / 100 for i in range(1235)]
MINUTE = datetime.timedelta(minutes=1)
MOMENTS = [START + i * MINUTE + i * datetime.timedelta(microseconds=7) for i in range(53 * 60 + 15)]
MIDNIGHT = START + datetime.timedelta(hours=25, minutes=45)
MOMENTS += [
    END,
    MIDNIGHT,
    MIDNIGHT - datetime.timedelta(microseconds=1),
    MIDNIGHT + 24 * 60 * MINUTE,
]
POLICY = """
[database]
source = "duckdb:keys.duckdb"
[tables.things]
key = "id"
[tables.things.columns]
whole = { range = [-7, 40] }
day = { range = ["2023-11-28", "2024-03-02"] }
moment = { range = ["2023-12-30 22:15:00", "2024-01-02 03:30:00"] }
price = { range = [-250.5, 499.99] }
cents = { range = [0, 12.34] }
word = { values = ["Hill", "Lake"] }
[protections.rows]
kind = "rows"
epsilon = 1000
"""
KEYS = (
    "whole",
    "day",
    "word",
    "nullif(word, 'Hill')",
    "CASE WHEN whole < 18 THEN 'young' END",
    "date_trunc('month', day)",
    "date_trunc('week', day)",
    "date_trunc('quarter', day)",
    "extract(year FROM day)",
    "extract(month FROM day)",
    "extract(dow FROM day)",
    "extract(doy FROM day)",
    "date_trunc('year', moment)",
    "date_trunc('month', moment)",
    "date_trunc('day', moment)",
    "date_trunc('hour', moment)",
    "date_trunc('minute', moment)",
    "extract(hour FROM moment)",
    "extract(day FROM moment)",
    "extract(month FROM date_trunc('week', moment))",
    "CAST(moment AS DATE)",
    "extract(dow FROM CAST(moment AS DATE))",
    "whole // 10",
    "whole % 7",
    "whole / 4",
    "whole * whole",
    "abs(whole)",
    "floor(whole / 10) * 10",
    "CAST(whole AS VARCHAR)",
    "CAST(whole / 3 AS INTEGER)",
    "CASE WHEN whole < 18 THEN 'young' WHEN whole > 100 THEN 'never' ELSE 'old' END",
    "CASE WHEN whole IS NULL THEN -1 WHEN whole < 3 THEN whole ELSE 3 END",
    "CASE WHEN day >= DATE '2024-01-01' THEN extract(month FROM day) ELSE 0 END",
    "coalesce(whole, 99)",
    "whole > 10",
    "floor(price / 100)",
    "ceil(price / 100)",
    "floor(price / 100) * 100",
    "CAST(price / 50 AS INTEGER)",
    "CAST(price AS INTEGER) // 25",
    "100 - CAST(floor(price / 10) AS INTEGER)",
    "floor(cents)",
    "CAST(cents AS INTEGER)",
    "CASE WHEN floor(price / 100) < 0 THEN 'refund' ELSE 'sale' END",
    "CASE WHEN word = 'Hill' THEN 1 ELSE 2 END",
)
CONDITIONS = {
    "day": ("day >= DATE '2024-01-15'", "day < DATE '2024-01-01'"),
    "moment": (
        "moment < TIMESTAMP '2024-01-01 00:00:00'",
        "moment >= TIMESTAMP '2024-01-01 00:00:00' AND moment <= TIMESTAMP '2024-01-02 00:00:00'",
        "moment > TIMESTAMP '2023-12-31 23:59:59'",
    ),
    "whole": ("whole BETWEEN 10 AND 19", "whole <> 0 AND whole < 20"),
    "price": ("price < 400", "price > -200 AND price <= 300", "300 > price"),
    "cents": ("cents < 3", "cents >= 2.5"),
}


def rows() -> list[tuple[object, ...]]:
    found: list[tuple[object, ...]] = [(0, None, None, None, None, None, None)]
    words = ["Hill", "Lake"]
    for i in range(max(map(len, (WHOLES, DAYS, MOMENTS, PRICES, CENTS)))):
        several = (WHOLES, DAYS, MOMENTS, PRICES, CENTS, words)
        found.append((i + 1, *(values[i % len(values)] for values in several)))
    return found


SCHEMA = (
    "CREATE TABLE things (id INTEGER, whole INTEGER, day DATE, moment TIMESTAMP, price DOUBLE PRECISION,"
    " cents DECIMAL(8, 2), word VARCHAR)"
)


@pytest.fixture(scope="module")
def on_duckdb(tmp_path_factory):
    directory = tmp_path_factory.mktemp("keys")
    with duckdb.connect(str(directory / "keys.duckdb")) as connection:
        connection.execute(SCHEMA)
        fill(connection, "things", rows())
    (directory / "policy.toml").write_text(POLICY, encoding="utf-8")
    with secant.connect(policy=directory / "policy.toml") as db:
        yield db


@pytest.fixture(scope="module")
def on_postgres(postgres_server, tmp_path_factory):
    address = postgres_server.address(postgres_server.create_database())
    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute(SCHEMA)
        connection.execute("ALTER ROLE CURRENT_USER SET timezone = 'America/New_York'")
        with connection.cursor() as cursor:
            cursor.executemany("INSERT INTO things VALUES (%s, %s, %s, %s, %s, %s, %s)", rows())
    directory = tmp_path_factory.mktemp("keys")
    (directory / "policy.toml").write_text(POLICY, encoding="utf-8")
    with secant.connect(address, policy=directory / "policy.toml") as db:
        yield db


def questions():
    for key in KEYS:
        yield key, "TRUE"
        for column, conditions in CONDITIONS.items():
            if column in key:
                yield from ((key, condition) for condition in conditions)


def counted(db, key, condition):
    """Give the keys and counts of the engine, NULL among them, and those of a release without its noise."""
    text = f"SELECT {key} AS k, count(*) AS n FROM things WHERE {condition} GROUP BY k"
    keys, counts = db.inspect(text)
    return [
        dict(
            zip(*(c if isinstance(c, list) else [c] for c in (keys[how], counts[how])), strict=True)
        )
        for how in ("exact", "softened")
    ]


@pytest.mark.parametrize(("key", "condition"), list(questions()))
def test_the_list_is_what_the_engine_finds(on_duckdb, key, condition):
    exact, listed = counted(on_duckdb, key, condition)
    if (
        None not in exact and condition != "TRUE"
    ):  # NULL of another column, which the condition left out
        assert listed.pop(None, 0) == 0
    assert listed == exact


@pytest.mark.parametrize("key", KEYS)
def test_postgres_finds_the_same(on_postgres, key):
    exact, listed = counted(on_postgres, key, "TRUE")
    assert listed == exact


def broken(db) -> list[str]:
    found = {key: counted(db, key, "TRUE") for key in KEYS}
    return [key for key, (exact, listed) in found.items() if exact != listed]


def test_a_list_that_ends_too_early_is_seen(on_duckdb, monkeypatch):
    """Planted: the last stretch of a range, and its last whole step, are left out."""
    honest, steps = images._moments, images._ends

    def moments(*asked):
        found = honest(*asked)
        return found if found is None else found[:-1]

    def ends(column, about, ranges):
        found = steps(column, about, ranges)
        return found if found is None else (found[0], type(found[1])(float(found[1]) - 100))

    assert broken(on_duckdb) == []
    monkeypatch.setattr(images, "_moments", moments)
    monkeypatch.setattr(images, "_ends", ends)
    seen = broken(on_duckdb)
    assert {"date_trunc('day', moment)", "floor(price / 100)"} <= {*seen}


def test_a_list_that_ends_too_late_is_seen(on_duckdb, monkeypatch):
    """Planted: ends that a condition leaves out stay in."""
    monkeypatch.setattr(images, "_side", lambda condition, name: None)
    late = [
        ("date_trunc('day', moment)", CONDITIONS["moment"][0]),
        ("floor(price / 100)", "price < 400"),
    ]
    for key, condition in late:
        exact, listed = counted(on_duckdb, key, condition)
        assert set(listed) > set(exact)


def test_without_images_such_keys_would_need_a_delta(on_duckdb, monkeypatch):
    text = "SELECT date_trunc('month', day) AS m, count(*) AS n FROM things GROUP BY m"
    assert len(on_duckdb.sql(text, epsilon=1).rows) == 6  # and NULL
    monkeypatch.setattr(domains, "image_of", lambda *asked: None)
    with pytest.raises(Refused) as refused:
        on_duckdb.sql(text, epsilon=1)
    assert refused.value.code == "REF-103"


@pytest.mark.parametrize(
    "key", ["ln(price)", "exp(cents)", "upper(word)", "CAST(price AS VARCHAR)"]
)
def test_what_engines_compute_differently_is_not_listed(on_duckdb, key):
    with pytest.raises(Refused):
        on_duckdb.explain(f"SELECT {key} AS k, count(*) AS n FROM things GROUP BY k")


def test_a_long_list_is_refused_by_the_limit_of_groups(on_duckdb):
    with pytest.raises(Refused) as refused:
        on_duckdb.explain(
            "SELECT date_trunc('minute', moment) AS m, day AS d, count(*) AS n FROM things GROUP BY m, d"
        )
    assert "groups" in refused.value.hint
