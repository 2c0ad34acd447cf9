"""Every scalar function and operator on hostile values: tables of them, and the expressions that are asked of these."""

from __future__ import annotations

import math

from engines import Engine, Tables

from secant.engines.backend import Backend
from secant.plan import nodes as n
from secant.plan.rewrites.null_on_error import make_total
from secant.plan.rewrites.rewrite import normalize
from secant.sql.bind import from_sql

GRID = {
    "wholes": ("BIGINT", ["0", "1", "-1", "2", "-7", "36", "55", "1000000007", "4611686018427387904",
                          "9223372036854775807", "-9223372036854775807 - 1", "4294967296", "NULL"]),
    "little": ("INTEGER", ["0", "1", "-3", "2147483647", "-2147483648", "NULL"]),
    "decimals": ("DECIMAL(12, 3)", ["0", "0.001", "-0.001", "0.5", "-0.5", "1.5", "2.5", "-2.5", "12.345",
                                    "999999999.999", "-999999999.999", "NULL"]),
    "wides": ("DECIMAL(38, 10)", ["0", "1", "0.0000000001", "-2.5", "9999999999999999999999999999.9999999999",
                                  "-9999999999999999999999999999.9999999999", "NULL"]),
    "reals": ("DOUBLE", ["0", "-0.0::DOUBLE", "1", "-1", "0.5", "-0.5", "1.5", "2.5", "-2.5", "0.1", "1e-5", "1e15",
                         "123456789012345.6", "9007199254740993", "1e16", "-1e22", "1e150", "1e160", "-1e200", "1e308",
                         "1.7976931348623157e308", "-1.7976931348623157e308", "1e-150", "1e-160", "-1e-200",
                         "2.2250738585072014e-308", "5e-324", "-5e-324", "709.78", "710", "-745", "-746", "-720",
                         "'NaN'", "'Infinity'", "'-Infinity'", "9.223372036854775e18", "NULL"]),
    "words": ("VARCHAR", ["''", "' '", "'  pad  '", "'abc'", "'ABC'", "'ab'", "'Straße'", "'İstanbul ΑΣ'", "'a_b%c'",
                          "'\\d'", "'12'", "' 12 '", "'-1.5'", "'2.5'", "'1e3'", "'.5'", "'5.'", "'1e400'", "'-1e-400'",
                          "'nan'", "'-inf'", "'9223372036854775808'", "'1_000'", "'true'", "'No'", "'2020-02-29'",
                          "'2020-02-30'", "'2021/1/5'", "'2020-01-05 10:20:30.5'", "'zz'", "'é'", "'ee'", "NULL"]),
    "days": ("DATE", ["'1970-01-01'", "'2020-02-29'", "'2000-12-31'", "'1999-01-03'", "'0001-01-01'", "'9999-12-31'",
                      "'infinity'", "'-infinity'", "NULL"]),
    "moments": ("TIMESTAMP", ["'1970-01-01 00:00:00'", "'2020-02-29 23:59:59.999999'", "'1999-12-31 12:30:15.5'",
                              "'0001-01-01 00:00:00'", "'9999-12-31 23:59:59'", "'infinity'", "'-infinity'", "NULL"]),
    "shifts": ("INTEGER", ["0", "1", "-31", "366", "4000", "NULL"]),
    "truths": ("BOOLEAN", ["TRUE", "FALSE", "NULL"]),
}  # fmt: skip
NUMBERS = ("wholes", "decimals", "reals")
ONE = [
    *((t, e) for t in ("wholes", "little", "decimals", "wides", "reals") for e in (
        "-a.v", "abs(a.v)", "sign(a.v)", "floor(a.v)", "ceil(a.v)", "round(a.v)", "exp(a.v)", "ln(a.v)", "log10(a.v)",
        "sqrt(a.v)", "power(a.v, 2)", "power(a.v, -1)", "power(a.v, 0.5)",
        "power(a.v, 3)", "a.v + 1", "a.v * 2", "a.v - 0.5",
        "a.v / 3", "CAST(a.v AS DOUBLE)", "CAST(a.v AS BIGINT)", "CAST(a.v AS DECIMAL(6, 2))",
        "CAST(a.v AS DECIMAL(38, 4))", "CAST(a.v AS BOOLEAN)", "CAST(a.v AS VARCHAR)", "coalesce(a.v, 7)",
        "nullif(a.v, 1)", "least(a.v, 1, NULL)", "greatest(a.v, 1.5)", "a.v IN (1, 2.5, NULL)",
        "CASE WHEN a.v > 1 THEN a.v ELSE 0.25 END", "round(a.v, 1)", "round(a.v, -1)", "round(a.v, -2)",
        "round(a.v, 300)", "round(a.v, 15)", "trunc(a.v)", "sin(a.v)", "cos(a.v)", "tan(a.v)", "asin(a.v)", "acos(a.v)",
        "atan(a.v)", "atan2(a.v, 2)", "radians(a.v)", "degrees(a.v)", "width_bucket(a.v, -1.5, 100, 7)",
    )),
    *(("reals", e) for e in ("ramp(a.v)", "sigmoid(a.v, 1.5e0)", "tauoid(a.v, 0.1e0)")),
    *(("words", e) for e in (
        "lower(a.v)", "upper(a.v)", "length(a.v)", "trim(a.v)", "ltrim(a.v)", "rtrim(a.v)", "substring(a.v, 2, 2)",
        "substring(a.v, 0, 2)", "substring(a.v, -2)", "substring(a.v, -3, 2)", "substring(a.v, 3, -2)",
        "left(a.v, 2)", "left(a.v, -1)", "right(a.v, 2)", "right(a.v, -1)", "a.v || 'x'", "replace(a.v, 'b', '')",
        "replace(a.v, '', 'x')", "starts_with(a.v, 'a')", "contains(a.v, '')", "a.v LIKE 'a%'", r"a.v LIKE '\d'",
        "a.v LIKE '%\\_%'", "CAST(a.v AS BIGINT)", "CAST(a.v AS DOUBLE)", "CAST(a.v AS DECIMAL(6, 2))",
        "CAST(a.v AS BOOLEAN)", "CAST(a.v AS DATE)", "CAST(a.v AS TIMESTAMP)", "coalesce(a.v, '?')", "a.v < 'a'",
        "ends_with(a.v, 'c')", "strpos(a.v, 'b')", "strpos(a.v, '')", "strlen(a.v)", "split_part(a.v, '-', 1)",
        "split_part(a.v, '0', 2)", "concat_ws('-', a.v, NULL, 'x')", "translate(a.v, 'abß', 'xy')",
        "lpad(a.v, 4, 'xy')", "rpad(a.v, 3, '*')", "md5(a.v)", "sha256(a.v)", "trim(a.v, 'a2 ')", "ltrim(a.v, ' ')",
        "rtrim(a.v, 'c5')", "reverse(a.v)", "repeat(a.v, 3)", "repeat(a.v, 0)", "a.v LIKE '%!_%' ESCAPE '!'",
        "a.v LIKE 'a!%%' ESCAPE '!'", r"a.v NOT LIKE '%\\%' ESCAPE '\'",
        r"a.v ~ '^\s*\d+'", "a.v ~ '[^a-z]'", r"a.v ~ '\.'", "a.v ~* 'AB.?'", "a.v ~ '(a|e)$'",
        r"a.v ~ '^-?\d+(\.\d{1,2})?$'",
        "regexp_full_match(a.v, '.*b.*')", r"a.v ~ '\w\W'", "a.v ~ '['']'", "len(string_split(a.v, '-'))",
    )),
    *((t, e) for t in ("days", "moments") for e in (
        *(f"extract({p} FROM a.v)" for p in ("year", "quarter", "month", "day", "dow", "doy", "hour", "minute",
                                             "second", "epoch", "week", "isodow", "isoyear", "decade", "century")),
        "strftime(a.v, '%Y-%m-%d')", "strftime(a.v, 'H%H:%M:%S ''%y%j%%')",
        "extract(year FROM age(a.v, DATE '2000-02-29'))",
        "extract(year FROM age(TIMESTAMP '2020-02-28 12:00:00', a.v))",
        "last_day(a.v)", "dayname(a.v)", "monthname(a.v)",
        *(f"date_trunc('{p}', a.v)" for p in ("year", "quarter", "month", "week", "day", "hour", "minute", "second")),
        "CAST(a.v AS DATE)", "CAST(a.v AS TIMESTAMP)", "CAST(a.v AS VARCHAR)",
        "a.v + INTERVAL '1' MONTH", "a.v - INTERVAL '1' YEAR", "a.v - INTERVAL '36' HOUR",
        "least(a.v, DATE '2000-01-01')", "a.v > DATE '2000-01-01'", "coalesce(a.v, TIMESTAMP '2000-01-01 00:00:01')",
    )),
    *(("truths", e) for e in ("CAST(a.v AS BIGINT)", "CAST(a.v AS DOUBLE)", "CAST(a.v AS DECIMAL(4, 2))",
                              "CAST(a.v AS VARCHAR)", "NOT a.v", "a.v IS TRUE")),
]  # fmt: skip
TWO = [
    *((s, t, e) for s in NUMBERS for t in NUMBERS for e in (
        "a.v + b.v", "a.v - b.v", "a.v * b.v", "a.v / b.v", "power(a.v, b.v)", "a.v < b.v", "a.v = b.v",
        "least(a.v, b.v)", "greatest(a.v, b.v)", "coalesce(a.v, b.v)", "a.v IS NOT DISTINCT FROM b.v",
    )),
    *((s, t, e) for s in ("wholes", "decimals") for t in ("wholes", "decimals") for e in (
        "a.v % b.v", "coalesce(a.v * b.v, 1)", "CASE WHEN a.v > b.v THEN a.v * b.v ELSE b.v END",
        "(a.v + b.v) * (a.v - b.v)",
    )),
    *((s, t, e) for s in ("wholes", "little") for t in ("wholes", "little")
      for e in ("a.v & b.v", "a.v | b.v", "xor(a.v, b.v)")),
    ("wholes", "wholes", "a.v // b.v"), ("little", "little", "a.v * b.v"), ("little", "little", "a.v - b.v"),
    ("little", "wholes", "a.v // b.v"),
    ("wides", "wides", "a.v + b.v"), ("wides", "wides", "a.v - b.v"), ("wides", "decimals", "a.v * b.v"),
    ("wides", "wholes", "a.v * b.v"), ("wides", "wholes", "least(a.v, b.v)"), ("wides", "reals", "a.v * b.v"),
    ("reals", "reals", "a.v * b.v + a.v"), ("reals", "reals", "exp(a.v * b.v)"), ("reals", "reals", "a.v * a.v / b.v"),
    ("reals", "reals", "ln(a.v) - ln(b.v)"), ("reals", "wholes", "a.v * b.v - b.v"),
    ("reals", "reals", "lowest(a.v, b.v)"), ("wholes", "reals", "highest(a.v, b.v)"),
    ("reals", "reals", "sigmoid(a.v, b.v)"), ("reals", "reals", "tauoid(a.v, b.v)"),
    ("words", "words", "a.v || b.v"), ("words", "words", "a.v < b.v"), ("words", "words", "greatest(a.v, b.v)"),
    ("words", "words", "contains(a.v, b.v)"), ("words", "words", "starts_with(a.v, b.v)"),
    ("words", "words", "a.v LIKE b.v"),
    ("words", "words", "replace(a.v, b.v, '-')"), ("words", "wholes", "substring(a.v, b.v)"),
    ("words", "wholes", "substring(a.v, 2, b.v)"), ("words", "wholes", "left(a.v, b.v)"),
    ("words", "little", "right(a.v, b.v)"),
    ("days", "days", "a.v - b.v"), ("days", "shifts", "a.v + b.v"), ("days", "shifts", "a.v - b.v"),
    ("days", "moments", "a.v < b.v"), ("days", "moments", "greatest(a.v, b.v)"),
    *((s, t, f"date_diff('{p}', a.v, b.v)") for s in ("days", "moments") for t in ("days", "moments")
      for p in ("year", "quarter", "month", "week", "day", "hour", "minute", "second")),
    ("words", "words", "ends_with(a.v, b.v)"), ("words", "words", "strpos(a.v, b.v)"),
    ("words", "words", "concat_ws(a.v, b.v, 'z')"), ("words", "words", "translate(a.v, b.v, 'zy')"),
    ("words", "words", "trim(a.v, b.v)"), ("little", "shifts", "make_date(a.v, 2, b.v)"),
    ("little", "wholes", "make_date(2020, b.v, a.v)"), ("reals", "reals", "atan2(a.v, b.v)"),
    ("truths", "truths", "a.v AND b.v"), ("truths", "truths", "a.v OR b.v"),
]  # fmt: skip
# DuckDB negates 32-bit numbers in 32 bits and multiplies short decimals in 64: it fails where the plan's types, and so
# the plan's meaning, leave room. There `evaluate` says what the value is.
NARROW = {"little", "decimals"}
CASES = [(t, "one", e) for t, e in ONE] + TWO


def grid_of(engine: Engine) -> dict[str, tuple[str, list[str]]]:
    """Give the tables of an engine: type and values. Not every engine has days without end."""
    own = {
        name: (kind, [v for v in values if engine.endless_days or "infinity" not in v])
        for name, (kind, values) in GRID.items()
    }
    return {**own, "one": ("INTEGER", ["1"])}


def fill(connection: Tables, engine: Engine) -> None:
    """Make the tables: the place of a value and the value."""
    for name, (kind, values) in grid_of(engine).items():
        connection.execute(f"CREATE TABLE {name} (k INTEGER, v {kind})")
        for k, value in enumerate(values):
            connection.execute(f"INSERT INTO {name} VALUES ({k}, {value})")


UNWRITTEN = {"ramp(": "ln(", "sigmoid(": "power(", "tauoid(": "power(", "lowest(": "power(",
             "highest(": "power("}  # fmt: skip
"""Functions that no text of an analyst stands for, and what is written in their place."""


def plan_of(backend: Backend, left: str, right: str, expression: str) -> n.Relation:
    """Bind an expression; what no text stands for is put in after."""
    written, made = expression, ""
    for name, stand_in in UNWRITTEN.items():
        if written.startswith(name):
            written, made = written.replace(name, stand_in), name[:-1]
    text = f"SELECT a.k, b.k, {written} AS r FROM {left} AS a, {right} AS b"

    def change(node: n.Node) -> n.Node:
        return n.Call(made, node.arguments) if isinstance(node, n.Call) else node

    plan = normalize(from_sql(text, backend.catalog()))
    return make_total(transform_all(plan, change) if written != expression else plan)


def transform_all(node, change):
    return change(n.rebuild(node, lambda child: transform_all(child, change)))


def unlike(got: object, want: object) -> bool:
    if isinstance(got, float) and isinstance(want, float):
        both_nan = math.isnan(got) and math.isnan(want)
        return not both_nan and not math.isclose(got, want, rel_tol=1e-12, abs_tol=1e-320)
    return type(got) is not type(want) or got != want
