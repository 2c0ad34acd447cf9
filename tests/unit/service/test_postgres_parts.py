"""The parts of the PostgreSQL port without a network: who answers a statement, values of the wire, broken messages."""

import datetime
from contextlib import suppress

import pandas
import pytest
from hypothesis import given
from hypothesis import strategies as st

import secant
from secant.errors import CODES
from secant.schema import types as t
from secant.service.postgres import messages as m
from secant.service.postgres.statements import framed, shows_nothing
from secant.service.postgres.telling import STATES, price_message
from secant.service.postgres.values import row_description, rows_text
from secant.service.remembered import Reply
from secant.sql.lexer import statements, tokens

TABLES = frozenset({"visits", "patients", "c", "columns"})


def frame(text):
    (words,) = statements(text)
    return framed(words, text, TABLES)


@pytest.mark.parametrize(
    ("text", "asked"),
    [
        ("SELECT 1 FROM visits", "SELECT 1 FROM visits"),
        ('select 1 from "public"."visits" v', 'select 1 from "public"."visits" v'),
        ("SELECT 1 FROM x, visits", "SELECT 1 FROM x, visits"),
        ("SELECT 1 FROM (visits JOIN x ON true)", "SELECT 1 FROM (visits JOIN x ON true)"),
        ("(SELECT 1 FROM visits)", "(SELECT 1 FROM visits)"),
        ("SELECT 1 WHERE EXISTS (SELECT 1 FROM VISITS)", "SELECT 1 WHERE EXISTS (SELECT 1 FROM VISITS)"),
        ("WITH x AS (SELECT 1 FROM visits) SELECT 1 FROM x", "WITH x AS (SELECT 1 FROM visits) SELECT 1 FROM x"),
        ("TABLE visits", "TABLE visits"),
        ("EXPLAIN (FORMAT text) SELECT 1 FROM visits", "SELECT 1 FROM visits"),
        ("EXPLAIN VERBOSE SELECT 1 FROM visits", "SELECT 1 FROM visits"),
        ("DECLARE c1 NO SCROLL CURSOR FOR SELECT 1 FROM visits", "SELECT 1 FROM visits"),
        ("COPY (SELECT 1 FROM visits) TO STDOUT (FORMAT csv)", "SELECT 1 FROM visits"),
        ("CREATE TEMP TABLE x AS SELECT 1 FROM visits WITH DATA", "SELECT 1 FROM visits"),
        ("CREATE TEMPORARY TABLE IF NOT EXISTS x AS SELECT 1 AS a FROM visits", "SELECT 1 AS a FROM visits"),
    ],
)  # fmt: skip
def test_questions_are_for_secant(text, asked):
    found = frame(text)
    assert found.kind not in ("shadow", "refused")
    assert found.asked == asked
    assert found.around("R") == text.replace(asked, "R")


@pytest.mark.parametrize(
    "text",
    [
        "SELECT 'visits'", "SELECT 1 -- FROM visits", "SELECT visits FROM released", "SELECT a AS visits FROM released",
        "SELECT c.relname FROM pg_catalog.pg_class c WHERE c.relname = 'visits'", "SHOW search_path",
        "SELECT * FROM information_schema.columns", "BEGIN", "SET secant.epsilon = 1", "FETCH 3 FROM kept",
        "SELECT 1 FROM x JOIN y USING (visits)", "SELECT extract(year FROM visits) FROM released",
        "DROP TABLE released", "CREATE TEMP TABLE x AS SELECT 1", "COPY (SELECT 1) TO STDOUT", "SELECT 'unclosed",
    ],
)  # fmt: skip
def test_what_names_no_data_is_for_the_shadow(text):
    assert frame(text).kind == "shadow"


@pytest.mark.parametrize(
    "text",
    [
        "DELETE FROM visits", "CREATE TEMP TABLE visits AS SELECT 1 FROM patients", "COPY visits TO STDOUT",
        "COPY visits FROM STDIN", "INSERT INTO released VALUES (1)", "EXPLAIN ANALYZE SELECT 1 FROM visits",
        "EXPLAIN (ANALYZE) SELECT 1 FROM visits", "DO $$ $$", "CREATE TABLE x (y int)", "'text'", "42",
        "PREPARE x AS SELECT 1 FROM visits", "COPY released FROM STDIN", "COPY (SELECT 1) TO '/tmp/x'",
    ],
)  # fmt: skip
def test_what_is_refused(text):
    assert frame(text).kind == "refused"


def test_probing_for_columns():
    assert shows_nothing(tuple(tokens("SELECT * FROM (SELECT * FROM visits LIMIT 0)")))
    assert not shows_nothing(tuple(tokens("SELECT * FROM visits LIMIT 10")))


@given(st.binary(max_size=60))
def test_any_bytes_are_a_message_or_malformed(body):
    for read in (
        m.read_parse,
        m.read_bind,
        m.read_target,
        m.read_execute,
        m.read_query,
        m.read_startup,
    ):
        with suppress(m.Malformed):
            assert read(body) is not None


def test_rows_are_written_so_that_no_value_ends_its_quotes():
    columns = (("a", t.TEXT), ('b"c', t.DOUBLE), ("d", t.BOOLEAN))
    text = rows_text(
        columns, [("x'); DROP TABLE y; --\\", float("inf"), None), ("\0", 1e300, True)]
    )
    inside = [token for token in tokens(text) if token.kind == "string"]
    assert inside[0].text == "E'x''); DROP TABLE y; --\\\\'"
    assert not any(token.is_word("DROP") for token in tokens(text))
    assert '"b""c"' in text
    assert rows_text(columns[:1], []) == 'SELECT NULL::text AS "a" WHERE false'


def test_a_row_description_has_all_columns():
    assert (
        row_description((("n", t.INTEGER), ("x" * 100, t.TEXT)), (1,)).count(b"x" * 63 + b"\0") == 1
    )


def test_every_error_has_a_state_of_its_own_meaning():
    assert all(len(state) == 5 for _, state in STATES)
    for code, _ in CODES:
        assert any(code.startswith(start) for start, _ in STATES), code


@pytest.mark.parametrize(
    "text",
    [
        "CREATE TEMP VIEW v AS SELECT 1", "CREATE TEMP VIEW v AS SELECT count(*) FROM visits", "CREATE TEMP SEQUENCE s",
        "CREATE FUNCTION temp() RETURNS int LANGUAGE sql AS 'SELECT 1'", "CREATE TRIGGER temp AFTER INSERT ON t",
        "CREATE TABLE temp (x int)", "DO 'unclosed", "ALTER ROLE ana SET work_mem = '1GB' 'unclosed",
    ],
)  # fmt: skip
def test_only_tables_are_made_and_a_missing_quote_excuses_nothing(text):
    assert frame(text).kind == "refused"


def test_what_is_read_of_a_statement_at_once():
    assert frame("CREATE LOCAL TEMPORARY TABLE x (y int)").kind == "shadow"
    assert frame("SELECT count(*) FROM visits WHERE a = $3 AND b = $1").placeholders == 3
    assert frame(f"SELECT count(*) FROM visits WHERE a = ${'9' * 5000}").placeholders > 1000
    assert frame("SELECT * FROM visits LIMIT 0").shows_nothing
    assert frame('DEALLOCATE "A b"').drops == "A b"
    assert frame("DEALLOCATE ALL").drops_all
    assert frame("DISCARD ALL").drops_all
    assert not frame("DISCARD TEMP").drops_all


VISITS = [(person, 5 * (person % 7) + 90 * (person % 50 == 0)) for person in range(2000)] * 2


@pytest.mark.parametrize(
    ("facts", "words"),
    [
        ({"range": [0, 20]}, "not in it is what declared facts cut: values outside 0 to 20"),
        ({}, "usually off by, at 95 %: s ±"),
    ],
)
def test_a_notice_says_what_declared_facts_may_have_cut(facts, words):
    frame = pandas.DataFrame(VISITS, columns=["person", "cost"])
    policy = {
        "tables": {"visits": {"columns": {"cost": facts}}},
        "protections": {"p": {"kind": "unit", "unit": "visits.person", "epsilon": 9}},
    }
    with secant.connect({"visits": frame}, policy=policy, ledger=":memory:") as db:
        answer = db.sql("SELECT sum(cost) AS s FROM visits", epsilon=1)
    told = Reply(answer, False, datetime.datetime.now(datetime.UTC))
    detail = price_message(told).decode(errors="replace")
    assert words in detail
    assert ("declared facts" in detail) == bool(facts)
