"""Whether a statement fails never depends on a row: every question on a plain database and on neighbors of it.

A neighbor has one more row, or some more, with values that engines, file formats and drivers stumble over. What is
answered on the plain database is answered on each neighbor; what is refused there is refused everywhere.
"""

from __future__ import annotations

import random
from contextlib import suppress
from dataclasses import dataclass

import duckdb
import psycopg
import pyarrow.parquet
import pytest

import secant
from chance import LONG
from secant.engines.duckdb import session as source
from secant.engines.print import print_sql as lower
from secant.errors import SecantError
from secant.plan import nodes as n
from secant.schema import types as t

QUESTIONS = 400 if LONG else 13
NEIGHBORS = 400 if LONG else 12
TYPES = {
    "id": "BIGINT", "k": "VARCHAR", "f": "DOUBLE", "r": "FLOAT", "i": "BIGINT", "s": "TINYINT", "u": "UBIGINT",
    "d": "DECIMAL(18, 2)", "g": "DECIMAL(38, 4)", "t": "VARCHAR", "e": "ENUM('a', 'b', '')", "day": "DATE",
    "m": "TIMESTAMP", "ns": "TIMESTAMP_NS", "b": "BOOLEAN",
}  # fmt: skip
PLAIN = ("'x'", "1.5", "0.25", "7", "3", "9", "2.50", "1.0000", "'abc'", "'a'", "DATE '2020-05-17'",
         "TIMESTAMP '2020-05-17 10:11:12'", "TIMESTAMP_NS '2020-05-17 10:11:12.123456789'", "TRUE")  # fmt: skip
REALS = [
    "'nan'",
    "'-nan'",
    "'inf'",
    "'-inf'",
    "-0.0",
    "1e-310",
    "1.7976931348623157e308",
    "-1.7976931348623157e308",
]
HOSTILE = {
    "k": ["NULL", "''", "'y'"],
    "f": ["NULL", *REALS, "4.9e-324", "9.2e18", "-9.3e18"],
    "r": ["NULL", "'nan'", "'inf'", "'-inf'", "-0.0", "1e-44", "3.4e38", "-3.4e38"],
    "i": ["NULL", "9223372036854775807", "-9223372036854775808", "0", "-1"],
    "s": ["NULL", "127", "-128", "0", "-1"],
    "u": ["NULL", "18446744073709551615", "9223372036854775808", "0"],
    "d": ["NULL", "9999999999999999.99", "-9999999999999999.99", "0"],
    "g": ["NULL", "9999999999999999999999999999999999.9999", "-9999999999999999999999999999999999.9999", "0"],
    "t": ["NULL", "''", "' '", "'12'", "'1e400'", "'nan'", "'9999-99-99'", "chr(1)", "chr(65279)", "chr(55356)",
          "'İ' || chr(8205)", "repeat('ß', 5000)", "'%'", "chr(92)", "'e' || chr(769)"],
    "e": ["NULL", "'b'", "''"],
    "day": ["NULL", "'infinity'", "'-infinity'", "'9999-12-31'", "'0001-01-01'", "'0044-03-15 (BC)'", "'20000-01-01'",
            "'5881580-07-10'", "'5877642-06-25 (BC)'"],
    "m": ["NULL", "'infinity'", "'-infinity'", "'9999-12-31 23:59:59.999999'", "'0001-01-01'", "'0044-03-15 (BC)'",
           "'294247-01-10 04:00:54.775806'", "'290309-12-22 (BC) 00:00:00'", "'1970-01-01'"],
    "ns": ["NULL", "'infinity'", "'-infinity'", "'2262-04-11 23:47:16.854775806'", "'1677-09-22'"],
    "b": ["NULL", "FALSE"],
}  # fmt: skip
TYPED_IN_CSV = ("k", "t", "e", "b", "s", "i")
"""Columns whose types no value changes: those of CSV files are read off all lines (docs/explanation/limits.md)."""
ELSEWHERE = {"FLOAT": "real", "DOUBLE": "double precision", "TINYINT": "smallint", "UBIGINT": "bigint",
             "ENUM('a', 'b', '')": "text", "TIMESTAMP_NS": "timestamp"}  # fmt: skip
POLICY = """
[database]
source = "{source}"

[tables.h]
key = ["id"]

[tables.h.columns]
f = {{ range = [-10, 10] }}
r = {{ range = [-10, 10] }}
i = {{ range = [-100, 100] }}
s = {{ range = [-100, 100] }}
u = {{ range = [0, 100] }}
d = {{ range = [-100, 100] }}
g = {{ range = [-100, 100] }}
k = {{ values = ["x", "y", "z"] }}
b = {{ values = [true, false] }}

[protections.single]
kind = "rows"
epsilon = 1000000
delta = 0.001
"""
VALUES = (
    "f", "r", "i", "s", "u", "d", "g", "f * r", "f - r", "r * r", "f / r", "i + s", "i * s", "- s", "- i", "abs(u)",
    "i % s", "i // s", "d * s", "d + g", "CAST(f AS BIGINT)", "CAST(t AS BIGINT)", "CAST(t AS DOUBLE)",
    "CAST(g AS DOUBLE)", "CAST(i AS DECIMAL(10, 2))", "length(t)", "year(day)",
    "day - DATE '2020-01-01'", "exp(f)", "ln(f)", "sqrt(f)",
    "power(f, 3)", "round(f, 1)", "floor(r)", "coalesce(f, r)", "least(i, s)", "nullif(f, r)",
    "CASE WHEN f > r THEN f ELSE i END", "date_diff('day', day, DATE '2020-01-01')", "month(m)", "sign(f)",
)  # fmt: skip
CONDITIONS = (
    "f > 0", "f * r < 1e300", "f = f", "f > 1e300", "i + 1 > 0", "i * i > 5", "- i > 0", "abs(i) > 3", "t LIKE '%a'",
    "CAST(t AS DOUBLE) > 1", "day + 1 > DATE '2020-01-01'", "m + INTERVAL '1' MONTH > TIMESTAMP '2020-01-01 00:00:00'",
    "date_trunc('year', m) < TIMESTAMP '2021-01-01 00:00:00'", "ns > TIMESTAMP '2020-01-01 00:00:00'", "e = 'a'",
    "d * g > 1", "u > 5", "u + 1 > 5", "CAST(m AS DATE) = day", "upper(t) = 'ABC'", "substring(t, 2, 2) = 'bc'",
    "CAST(day AS VARCHAR) < '3'", "CAST(f AS VARCHAR) <> 'x'", "day - INTERVAL '36' HOUR < m", "t || t <> 'y'",
    "f IN (SELECT o.r FROM h AS o)", "EXISTS (SELECT 1 FROM h AS o WHERE o.i = h.i + 1)", "NOT b", "g > 1e30", "i = f",
    "u = i", "d = f", "CAST(e AS VARCHAR) = 'b'", "ns = m", "year(ns) > 1", "left(t, 2) = 'ab'",
    "replace(t, 'a', t) = 'x'",
)  # fmt: skip
CALLS = ("sum({})", "avg({})", "stddev_samp({})", "var_pop({})", "count({})", "count(DISTINCT {})", "median({})",
         "min({})", "max({})", "quantile_cont({}, 0.3)", "sum(DISTINCT {})", "count(*)")  # fmt: skip
KEYS = ("", "", "", "k", "b", "e", "day", "m", "f", "t", "ns", "i % 3", "u")


def question(draw: random.Random) -> str:
    key = draw.choice(KEYS)
    calls = [draw.choice(CALLS).format(draw.choice(VALUES)) for _ in range(draw.choice((1, 1, 2)))]
    where = draw.sample(CONDITIONS, draw.choice((0, 1, 1, 2)))
    rows = "h"
    if draw.random() < 0.15:
        rows = f"(SELECT DISTINCT {', '.join(TYPES)} FROM h) AS h"
    text = f"SELECT {', '.join([key] * bool(key) + calls)} FROM {rows}"
    text += " WHERE " + " AND ".join(where) if where else ""
    return text + (f" GROUP BY {key}" if key else "")


def row(number: int, changed: dict[str, str]) -> str:
    values = dict(zip([c for c in TYPES if c != "id"], PLAIN, strict=True)) | changed
    typed = [f"CAST({values[c]} AS {kind})" for c, kind in TYPES.items() if c != "id"]
    return f"({number}, {', '.join(typed)})"


def neighbors(draw: random.Random, kind: str) -> list[list[dict[str, str]]]:
    """Give what is added to the plain rows: each hostile value alone, all at once, and some together."""
    hostile = {c: v for c, v in HOSTILE.items() if kind != "csv" or c in TYPED_IN_CSV}
    alone = [{column: value} for column, values in hostile.items() for value in values]
    mixed = [{c: draw.choice(v) for c, v in hostile.items()} for _ in range(10)]
    some = [[one] for one in [*alone, *mixed]]
    draw.shuffle(some)
    return [alone, *some[: NEIGHBORS - 1]]


@dataclass
class Kind:
    """How a database of rows becomes a source."""

    folder: object
    address: str | None = None

    def make(self, kind: str, added: list[dict[str, str]], number: int) -> str:
        place = self.folder / f"{kind}{number}"
        place.mkdir()
        rows = [{}] * 6 + added
        filled = "duckdb.duckdb" if kind == "duckdb" else ":memory:"
        with duckdb.connect(str(place / filled) if kind == "duckdb" else filled) as connection:
            columns = ", ".join(f"{c} {k}" for c, k in TYPES.items())
            connection.execute(f"CREATE TABLE h ({columns})")
            for index, changed in enumerate(rows):
                with suppress(duckdb.Error):  # a value that the engine does not hold at all
                    connection.execute(f"INSERT INTO h VALUES {row(index, changed)}")
            if kind == "arrow":
                table = connection.sql("SELECT * FROM h").to_arrow_table()
                pyarrow.parquet.write_table(table, place / "h.parquet")
            elif kind in ("parquet", "csv"):
                connection.execute(f"COPY h TO '{place}/h.{kind}' (FORMAT {kind})")
        if kind == "duckdb":
            return f"duckdb:{place}/duckdb.duckdb"
        return f"{'csv' if kind == 'csv' else 'parquet'}:{place}"

    def server(self, added: list[dict[str, str]], number: int) -> str:
        schema = f"s{number}"
        columns = ", ".join(f"{c} {ELSEWHERE.get(k, k)}" for c, k in TYPES.items())
        with psycopg.connect(self.address, autocommit=True) as connection:
            connection.execute(f"CREATE SCHEMA {schema}; CREATE TABLE {schema}.h ({columns})")
            for index, changed in enumerate([{}] * 6 + added):
                text = row(index, changed)
                for ours, theirs in ELSEWHERE.items():
                    text = text.replace(f" AS {ours})", f" AS {theirs})")
                text = text.replace("TIMESTAMP_NS '", "TIMESTAMP '").replace(" (BC)", " BC")
                with suppress(psycopg.Error):
                    connection.execute(f"INSERT INTO {schema}.h VALUES {text}")
        return f"{self.address}{'&' if '?' in self.address else '?'}schema={schema}"


def outcome(db, text: str) -> str:
    """Say how a question ends, without its numbers."""
    try:
        db.sql(text, epsilon=0.1)
    except SecantError as error:
        return error.code
    return "answered"


def failures(kind: str, made: Kind, seed: int) -> list[str]:
    """Give the drawn questions whose end depends on a row."""
    draw = random.Random(seed)
    asked = [question(draw) for _ in range(QUESTIONS)]
    return differing(kind, made, asked, [[], *neighbors(draw, kind)])


def differing(
    kind: str, made: Kind, asked: list[str], worlds: list[list[dict[str, str]]]
) -> list[str]:
    """Give the questions that do not end alike on all databases."""
    ends: dict[str, list[str]] = {text: [] for text in asked}
    for number, added in enumerate(worlds):
        address = made.server(added, number) if kind == "server" else made.make(kind, added, number)
        policy = made.folder / f"{kind}{number}.toml"
        policy.write_text(POLICY.format(source=address))
        with secant.connect(policy=policy) as db:
            for text in asked:
                ends[text].append(outcome(db, text))
    answered = sum(found[0] == "answered" for found in ends.values())
    assert answered >= len(asked) / 3
    return [f"{set(found)}: {text}" for text, found in ends.items() if len(set(found)) > 1]


@pytest.mark.parametrize("kind", ["duckdb", "arrow", "parquet", "csv"])
def test_no_row_makes_a_question_fail(tmp_path, kind):
    assert failures(kind, Kind(tmp_path), 11) == []


@pytest.mark.postgres
def test_no_row_makes_a_question_fail_on_postgres(tmp_path, postgres_server):
    address = postgres_server.address(postgres_server.create_database())
    assert failures("server", Kind(tmp_path, address), 12) == []


NANS = [{"f": "'nan'"} for _ in range(100)]
SEEN = "SELECT count(*) FROM h WHERE f > 8"


def counts(tmp_path, added, number):
    """Count rows above 8 in a Parquet file whose writer leaves NaN out of what it states."""
    address = Kind(tmp_path).make("arrow", added, number)
    policy = tmp_path / f"{number}.toml"
    policy.write_text(POLICY.format(source=address))
    with secant.connect(policy=policy) as db:
        ((count,),) = db.sql(SEEN, epsilon=100).rows
    return count


def test_a_row_does_not_decide_whether_others_are_read(tmp_path):
    """Ours: a filter skipped a group of rows with NaN unless another row was large."""
    low, high = counts(tmp_path, NANS, 1), counts(tmp_path, [*NANS, {"f": "9"}], 2)
    assert abs(high - low) < 50


def test_a_row_that_decides_would_be_noticed(tmp_path, monkeypatch):
    monkeypatch.setattr(source, "opaque_columns", lambda connection, read: "*")
    low, high = counts(tmp_path, NANS, 1), counts(tmp_path, [*NANS, {"f": "9"}], 2)
    assert abs(high - low) > 50


MEAN = "SELECT avg(f), sum(f), stddev_samp(f), median(f) FROM h"


def believing(threads):
    settings = dict(SETTINGS(threads))
    settings["disabled_optimizers"] = "common_subexpressions,partial_aggregate_pushdown"
    return list(settings.items())


SETTINGS = source._settings


def test_a_conversion_that_can_fail_would_be_noticed(tmp_path, monkeypatch):
    """Ours: one NaN in a Parquet file made sums fail, since the engine dropped a clamp that only a NaN would meet."""
    monkeypatch.setattr(source, "opaque_columns", lambda connection, read: "*")
    monkeypatch.setattr(source, "_settings", believing)
    worlds = [[], [{"f": "'nan'"}]]
    assert differing("arrow", Kind(tmp_path), [MEAN], worlds) == []  # each wall is enough
    write = lower.SCALARS.find(n.Cast(n.Literal(0.0, t.DOUBLE), t.INTEGER))

    def plain(w, node, env):
        return write(w, node, env).replace("TRY_CAST(", "CAST(")

    monkeypatch.setitem(lower.SCALARS._rules, n.Cast, plain)
    (tmp_path / "again").mkdir()
    assert differing("arrow", Kind(tmp_path / "again"), [MEAN], worlds) != []
