"""Functions of texts, dates and angles, and other names for them: text, printed plan and interpreter agree."""

import math

import duckdb
import pytest

from secant.engines.print.print_sql import lower
from secant.errors import SqlError
from secant.plan.evaluate.evaluate import evaluate
from secant.plan.functions.patterns import portable
from secant.plan.rewrites.null_on_error import make_total
from secant.plan.rewrites.rewrite import normalize
from secant.schema.catalog import Table, catalog
from secant.schema.types import DATE, DOUBLE, INTEGER, TEXT, TIMESTAMP, decimal
from secant.sql.bind import from_sql

CATALOG = catalog(
    Table(
        "t",
        (
            ("x", INTEGER), ("y", DOUBLE), ("e", decimal(9, 2)), ("s", TEXT), ("d", DATE), ("m", TIMESTAMP),
        ),
    )
)  # fmt: skip
WRITTEN = [
    "regexp_matches(s, '^[ab]'), s ~ 'l+o', regexp_full_match(s, '.*d'), s ~* 'WORLD', s !~ 'a', s ~ '\\.'",
    "regexp_replace(s, 'l', 'L'), regexp_replace(s, 'l', 'L', 'g'), regexp_extract(s, 'l+')",
    "regexp_extract(s, '(H)(e)', 2), regexp_extract(s, '(x)?', 1), regexp_replace(s, 'b|-', '', 'g')",
    "split_part(s, '-', 1), split_part(s, '-', 2), concat_ws('-', s, x, NULL, d), strpos(s, 'o'), instr(s, 'l')",
    "position('b' IN s), strlen(s), len(s), md5(s), sha256(s), ends_with(s, 'd'), suffix(s, 'a'), prefix(s, 'H')",
    "lpad(s, 5, '*'), rpad(s, 3, 'ab'), translate(s, 'lo', '01'), trim(s, 'Hd'), ltrim(s, 'H'), rtrim(s, 'd')",
    "reverse(s), repeat(s, 3), repeat(s, 0), x & 6, x | 8, xor(x, 3), ~x, x & -2, reverse('aß😀')",
    "s LIKE 'b!-c_' ESCAPE 'x', s LIKE '%!_%' ESCAPE '!', 'a%b' LIKE 'a!%b' ESCAPE '!', s NOT LIKE '!%' ESCAPE '!'",
    "'a!b' LIKE '%!!b' ESCAPE '!', 'a_c' LIKE 'a$_c' ESCAPE '$', 'abc' LIKE 'a$_c' ESCAPE '$'",
    *(
        f"time_bucket(INTERVAL {width}, m), time_bucket(INTERVAL {width}, CAST(m AS TIMESTAMP) + INTERVAL 40 DAY)"
        for width in ("1 DAY", "7 DAY", "1 MONTH", "3 MONTH", "1 YEAR", "1 HOUR", "1 MINUTE", "1 SECOND")
    ),
    "time_bucket(INTERVAL 1 MONTH, d), time_bucket(INTERVAL 1 WEEK, d)",
    "date_part('year', d), date_part('week', m), datepart('isodow', d), extract(isoyear FROM d)",
    "extract(decade FROM d), extract(century FROM m), extract(epoch FROM m), epoch(m), epoch(d), century(d)",
    "extract(year FROM age(DATE '2024-02-29', d)), date_part('year', age(d, DATE '2020-02-29'))",
    "extract(year FROM age(m, TIMESTAMP '2020-01-31 10:11:13')), extract(year FROM age(DATE '1969-12-31', m))",
    *(
        f"date_diff('{part}', d, m), date_diff('{part}', m, d), datediff('{part}', DATE '2024-07-01', d)"
        for part in ("year", "quarter", "month", "week", "day", "hour", "minute", "second")
    ),
    "make_date(2020, 2, x), make_date(x + 2000, x, x)",
    "greatest(d, DATE '2020-06-01'), least(m, d), nullif(x, 3), ifnull(x, 9), TRY_CAST(s AS INT)",
    "trunc(y), trunc(e), trunc(x), log2(y), log10(x), pi(), sin(y), cos(x), tan(y), atan(y), atan2(y, x)",
    "asin(e), acos(e), radians(x), degrees(y)",
    "last_day(d), dayname(d), monthname(d), strftime(d, '%Y-%m'), strftime(m, '%H:%M:%S %j/%y'), date(m)",
    "hour(m), minute(m), second(m), dayofweek(d), weekday(d), dayofyear(d), week(d), isodow(d)",
    "if(x > 2, 1, 2), mod(x, 2), pow(x, 2), len(string_split(s, '-')), array_length(string_split(s, 'l'))",
]  # fmt: skip


@pytest.fixture(scope="module")
def engine():
    found = duckdb.connect()
    found.execute(
        "CREATE TABLE t (x BIGINT, y DOUBLE, e DECIMAL(9, 2), s VARCHAR, d DATE, m TIMESTAMP)"
    )
    found.execute(
        "INSERT INTO t VALUES (2, 1.5, 0.25, 'a', '2020-01-31', '2020-01-31 10:11:12.345'),"
        " (3, -2.5, 1.5, 'b-c.', '2020-02-29', '2021-02-28 23:59:59'), (31, 0, -1, 'a', '1999-12-31', NULL),"
        " (NULL, NULL, NULL, NULL, NULL, '1969-12-31 00:00:01'), (7, 5, 0, 'Hello World', '2024-07-04',"
        " '2024-07-04 12:00:00'), (-7, 1e10, 10, '', '2001-01-01', '2000-12-31 23:59:59.999999'),"
        " (12, 3.5, 0.5, 'naïve café', '2021-01-03', '2016-02-29 00:00:00')"
    )
    return found


def alike(value):
    if isinstance(value, float):
        return "NaN" if math.isnan(value) else float(f"{value:.9g}")
    return value


def answers(engine, text):
    plan = normalize(from_sql(text, CATALOG))
    rows = engine.execute("SELECT * FROM t").fetchall()
    every = engine.execute(text).fetchall(), engine.execute(lower(plan)).fetchall()
    return [
        sorted((tuple(map(alike, row)) for row in found), key=repr)
        for found in (*every, evaluate(plan, {"t": rows}))
    ]


@pytest.mark.parametrize("written", WRITTEN)
def test_they_mean_what_the_engine_means(engine, written):
    text = f"SELECT {written.replace('make_date(2020, 2, x)', 'TRY(make_date(2020, 2, x))')} FROM t"
    if "make_date" in written:
        text = text.replace("make_date(x + 2000, x, x)", "TRY(make_date(x + 2000, x, x))")
        plan = make_total(normalize(from_sql(f"SELECT {written} FROM t", CATALOG)))
        rows = engine.execute("SELECT * FROM t").fetchall()
        wanted = engine.execute(text).fetchall()
        assert sorted(evaluate(plan, {"t": rows}), key=repr) == sorted(wanted, key=repr)
        assert sorted(engine.execute(lower(plan)).fetchall(), key=repr) == sorted(wanted, key=repr)
        return
    typed, printed, computed = answers(engine, text)
    assert typed == printed == computed


@pytest.mark.parametrize(
    ("written", "same"),
    [
        ("nvl(x, 1)", "coalesce(x, 1)"),
        ("to_char(d, 'YYYY-MM')", "strftime(d, '%Y-%m')"),
        ("iff(x > 1, 2, 3)", "CASE WHEN x > 1 THEN 2 ELSE 3 END"),
        ("octet_length(s)", "strlen(s)"),
        ("lpad(s, 3)", "lpad(s, 3, ' ')"),
        ("square(x)", "x * x"),
        ("regexp_like(s, 'a')", "s ~ 'a'"),
    ],
)
def test_names_of_other_engines(written, same):
    one, other = (
        lower(normalize(from_sql(f"SELECT {e} AS c FROM t", CATALOG))) for e in (written, same)
    )
    assert one == other


def test_buckets(engine):
    text = "SELECT width_bucket(y, 0, 10, 5), width_bucket(x, 2, 3, 10), width_bucket(e, -1.5, 1.5, 3) FROM t"
    plan = normalize(from_sql(text, CATALOG))
    rows = engine.execute("SELECT * FROM t").fetchall()
    found = evaluate(plan, {"t": rows})
    assert sorted(engine.execute(lower(plan)).fetchall(), key=repr) == sorted(found, key=repr)
    assert found[0] == (1, 1, 2)
    assert found[1] == (0, 11, 4)


@pytest.mark.parametrize(
    ("written", "words", "hint"),
    [
        ("lenght(s)", "the function lenght", "did you mean length?"),
        ("regexp_match(s, 'a')", "the function regexp_match", "did you mean regexp_matches?"),
        ("string_agg(s, ',')", "string_agg is not accepted: it shows values of single rows", "count"),
        ("Any_Value(s)", "Any_Value is not accepted", "mode(x)"),
        ("Lenght(s)", "the function Lenght", "did you mean length?"),
        ("MyLib.Score(x)", "the function MyLib.Score", "sql-accepted"),
        ("skewness(x)", "skewness is not accepted", "corr"),
        ("approx_top_k(s, 3)", "approx_top_k", "ORDER BY n DESC LIMIT k"),
        ("log(x)", "different bases", "log10(x)"),
        ("age(d)", "age", "date_diff"),
        ("extract(year FROM age(d))", "follows the clock", "write the day"),
        ("extract(month FROM age(d, d))", "only the years", "date_diff"),
        ("date_part('moon', d)", "no part moon", "quarter"),
        ("split_part(s, s, 1)", "constants", "write them out"),
        ("split_part(s, '-', 0)", "from 1", ""),
        ("lpad(s, 100000, 'x')", "from 0 to 1000", ""),
        ("s ~ s", "written as a text", ""),
        (r"s ~ '\bx'", r"\b is not accepted", "sql-accepted"),
        ("s ~ '(?=x)'", "(? is not accepted", ""),
        ("s ~ '(a'", "not closed", ""),
        ("s SIMILAR TO 'a%'", "SIMILAR TO", "LIKE"),
        ("regexp_replace(s, 'x*', 'y')", "empty text", ""),
        ("strftime(d, '%c')", "format", ""),
        ("width_bucket(x, 3, 3, 2)", "lower first", ""),
        ("repeat(s, 2000)", "from 0 to 1000", ""),
        ("x << 2", "is not accepted", ""),
        ("s LIKE s ESCAPE '!'", "ESCAPE takes one character", "x LIKE"),
        ("s LIKE '!a' ESCAPE '!'", "ESCAPE takes one character", ""),
        ("s ILIKE 'a' ESCAPE '!'", "ESCAPE takes one character", ""),
        ("time_bucket(INTERVAL 5 DAY, m)", "time_bucket takes", "date_trunc"),
    ],
)  # fmt: skip
def test_what_is_refused_is_named_as_it_was_written(written, words, hint):
    with pytest.raises(SqlError) as caught:
        from_sql(f"SELECT {written} FROM t", CATALOG)
    assert caught.value.code == "SQL-006"
    assert words in caught.value.message
    assert hint in caught.value.hint


def test_patterns_are_written_out():
    assert portable(r"^\d{2,3}.\w*$") == r"^[0-9]{2,3}[^\n][0-9A-Za-z_]*$"
    assert portable(r"(?:a|[^\s]+)\.") == r"(?:a|[^\t\n\f\r ]+)\."
    for wrong in ("*a", "a**", "a{900}", "[a", "a)", "]", r"\1", "[[:alpha:]]", "(?i)a", "a{,}b{"):
        with pytest.raises(ValueError, match=r".+"):
            portable(wrong)
