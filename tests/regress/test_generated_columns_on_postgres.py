"""Ours, on PostgreSQL: generated columns, and all else by which a stored value can follow from another.

STORED columns of protected ones were public like those of DuckDB (`test_generated_columns.py`); a key that
`ALTER TABLE ONLY` puts on a partitioned table was believed although its partitions do not have it.
"""

import psycopg
import pytest

import secant
from secant.engines.postgres import catalog as postgres_catalog
from secant.engines.sources import open_source
from secant.errors import BackendError, PolicyError, Refused, SqlError

pytestmark = pytest.mark.postgres

SHIPS = """
CREATE TABLE ships (
    id integer GENERATED ALWAYS AS IDENTITY, speed double precision,
    copy double precision GENERATED ALWAYS AS (speed) STORED,
    rounded integer GENERATED ALWAYS AS (speed * 2) STORED,
    twice integer GENERATED ALWAYS AS (id * 2) STORED,
    odd text GENERATED ALWAYS AS (repeat('x', speed::integer)) STORED,
    listed integer[] GENERATED ALWAYS AS (ARRAY[speed::integer]) STORED
)
"""
PLAIN = "CREATE TABLE ships (id integer PRIMARY KEY, speed double precision)"
TOTALS = "CREATE TABLE totals (n double precision)"
CELLS = {"kind": "cells", "epsilon": 1000, "distance": {"ships": "speed"}}
UNIT = {"kind": "unit", "unit": "ships.id", "epsilon": 9}
ROWS = {"kind": "rows", "epsilon": 9}


def made(address, *statements):
    with psycopg.connect(address, autocommit=True) as connection:
        for statement in statements:
            connection.execute(statement)


def opened(address, protection, *, public=(), accept=(), tables=None):
    policy = {"protections": {"it": protection}}
    policy |= {"accept": list(accept)} if accept else {}
    policy |= {"database": {"public": list(public)}} if public else {}
    policy["tables"] = tables or {"ships": {"columns": {"speed": {"range": [0, 50]}}}}
    return secant.connect(address, policy=policy, ledger=":memory:")


def version(address):
    with psycopg.connect(address) as connection:
        return connection.info.server_version


def test_no_question_gives_a_stored_copy_for_nothing(postgres_database):
    """Brute force: what costs nothing is the same before and after protected values move."""
    made(
        postgres_database, SHIPS, "INSERT INTO ships (speed) SELECT i FROM generate_series(1, 9) i"
    )
    free = "SELECT id, twice FROM ships"
    guarded = [
        "SELECT id, copy FROM ships",
        "SELECT id FROM ships WHERE copy > 3",
        "SELECT rounded, count(*) FROM ships GROUP BY rounded",
        "SELECT a.id FROM ships AS a JOIN ships AS b ON a.copy = b.copy",
        "SELECT sum(copy) FROM ships",
    ]
    seen = []
    for move in ("", "UPDATE ships SET speed = speed + 1 WHERE id % 2 = 0"):
        made(postgres_database, *filter(None, [move]))
        with opened(postgres_database, CELLS) as database:
            answer = database.sql(free, epsilon=1)
            seen.append((answer.guarantee[0]["epsilon"], answer.rows))
            for question in guarded:
                try:
                    charged = database.sql(question, epsilon=1).guarantee[0]["epsilon"]
                except Refused:
                    continue
                assert charged == 1, question
            for column in ("odd", "cardinality(listed)"):
                with pytest.raises(SqlError):
                    database.sql(f"SELECT {column} FROM ships", epsilon=1)
    assert seen[0] == seen[1]
    assert seen[0][0] == 0


def test_where_no_value_moves_a_stored_column_is_read(postgres_database):
    made(
        postgres_database, SHIPS, "INSERT INTO ships (speed) SELECT i FROM generate_series(1, 9) i"
    )
    with opened(postgres_database, ROWS) as database:
        statement = database.explain("SELECT count(*) FROM ships WHERE odd = 'xx'", epsilon=1)
        assert statement is not None
        assert not database.catalog.derived


def test_a_virtual_column_is_computed_by_the_question(postgres_database):
    if version(postgres_database) < 180_000:
        pytest.skip("virtual columns came with version 18")
    made(
        postgres_database,
        "CREATE TABLE ships (id integer, speed double precision, "
        "copy double precision GENERATED ALWAYS AS (speed + 1) VIRTUAL, "
        "odd text GENERATED ALWAYS AS (repeat('x', speed::integer)) VIRTUAL)",
        "INSERT INTO ships VALUES (1, 2), (2, 3)",
    )
    with opened(postgres_database, CELLS) as database:
        with pytest.raises(Refused):
            database.sql("SELECT copy FROM ships", epsilon=1)
        answer = database.sql("SELECT sum(copy) FROM ships", epsilon=500)
        assert abs(answer.rows[0][0] - 7) < 1  # noise of scale 1/500: e^-500 is no chance
    with opened(postgres_database, ROWS) as database, pytest.raises(SqlError, match="may fail"):
        database.sql("SELECT odd FROM ships", epsilon=1)


OWN = "CREATE FUNCTION own() RETURNS float8 LANGUAGE sql IMMUTABLE AS 'SELECT 1.0::float8'"
FIRED = "CREATE FUNCTION fired() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END'"
KEEP = "CREATE TRIGGER keep {when} ON {table} FOR EACH ROW EXECUTE FUNCTION fired()"
AFTER = KEEP.format(when="AFTER INSERT", table="ships")
PARTED = (
    "CREATE TABLE ships (id integer PRIMARY KEY, speed float8) PARTITION BY RANGE (id)",
    "CREATE TABLE few PARTITION OF ships FOR VALUES FROM (0) TO (9)",
)
RULE = "CREATE RULE also AS ON INSERT TO ships DO ALSO INSERT INTO {into} VALUES (NEW.speed)"
REFUSED = {
    "a trigger that may write elsewhere": (
        (PLAIN, TOTALS, FIRED, AFTER),
        UNIT,
        "trigger ships.keep",
    ),
    "a trigger of a partition": (
        (*PARTED, TOTALS, FIRED, KEEP.format(when="AFTER INSERT", table="few")),
        UNIT,
        "trigger ships.keep",
    ),
    "a trigger of a public table": (
        (PLAIN, TOTALS, FIRED, KEEP.format(when="BEFORE INSERT", table="totals")),
        UNIT,
        "trigger totals.keep",
    ),
    "a trigger beside values that move": (
        (PLAIN, TOTALS, FIRED, KEEP.format(when="BEFORE UPDATE", table="ships")),
        CELLS,
        "trigger ships.keep",
    ),
    "a rule": ((PLAIN, TOTALS, RULE.format(into="totals")), UNIT, "rule ships.also"),
    "a rule through a view": (
        (PLAIN, TOTALS, "CREATE VIEW door AS SELECT n FROM totals", RULE.format(into="door")),
        UNIT,
        "rule ships.also",
    ),
    "a default": (
        (PLAIN, OWN, "CREATE TABLE totals (n float8 DEFAULT own())"),
        UNIT,
        "function totals.n",
    ),
    "a stored column of a function": (
        (PLAIN, OWN, "CREATE TABLE totals (n float8 GENERATED ALWAYS AS (own()) STORED)"),
        UNIT,
        "function totals.n",
    ),
    "a check that asks a function": (
        (PLAIN, OWN, "CREATE TABLE totals (n float8 CONSTRAINT asks CHECK (n = own()))"),
        UNIT,
        "check totals.asks",
    ),
    "a check that ties": (
        (
            TOTALS,
            (
                "CREATE TABLE ships (id integer, speed float8, x float8, "
                "CONSTRAINT same CHECK (x = speed))"
            ),
        ),
        CELLS,
        "check ships.same",
    ),
    "a foreign key of two columns": (
        (
            "CREATE TABLE ships (id integer, speed float8, UNIQUE (speed, id))",
            (
                "CREATE TABLE totals (s float8, i integer, CONSTRAINT way FOREIGN KEY (s, i) "
                "REFERENCES ships (speed, id) ON UPDATE CASCADE)"
            ),
        ),
        CELLS,
        "foreign key totals.way",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_may_carry_stops_until_it_is_accepted_by_name(postgres_database, case):
    statements, protection, name = REFUSED[case]
    made(postgres_database, *statements)
    with pytest.raises(PolicyError) as stopped:
        opened(postgres_database, protection, public=["totals"])
    assert f'add "{name}" to accept' in str(stopped.value)
    opened(postgres_database, protection, public=["totals"], accept=[name]).close()


HARMLESS = {
    "a trigger where all is protected": ((PLAIN, TOTALS, FIRED, AFTER), ROWS, ()),
    "a rule into a protected table": (
        (PLAIN, TOTALS, "CREATE TABLE days (d integer)", RULE.format(into="totals")),
        {**ROWS, "tables": ["ships", "totals"]},
        ("days",),
    ),
    "what the server brings itself": (
        (
            PLAIN,
            (
                "CREATE TABLE totals (n bigserial, u uuid DEFAULT gen_random_uuid(), "
                "i integer GENERATED ALWAYS AS IDENTITY, t timestamp DEFAULT now())"
            ),
            (
                "CREATE TRIGGER quiet BEFORE UPDATE ON totals FOR EACH ROW "
                "EXECUTE FUNCTION suppress_redundant_updates_trigger()"
            ),
        ),
        UNIT,
        ("totals",),
    ),
    "a domain, an enum and a check of one column": (
        (
            PLAIN,
            "CREATE DOMAIN small AS integer CHECK (VALUE < 9)",
            "CREATE TYPE color AS ENUM ('red')",
            "CREATE TABLE totals (n small, c color, d integer CHECK (d > 0))",
        ),
        UNIT,
        ("totals",),
    ),
}


@pytest.mark.parametrize("case", HARMLESS)
def test_what_carries_nothing_hidden_to_an_open_place_is_let_be(postgres_database, case):
    statements, protection, public = HARMLESS[case]
    made(postgres_database, *statements)
    with opened(postgres_database, protection, public=public) as database:
        assert "ships" in database.catalog.tables


def test_a_trigger_that_comes_later_stops_questions_about_its_table(postgres_database):
    made(postgres_database, PLAIN, TOTALS, FIRED)
    with opened(postgres_database, UNIT, public=["totals"]) as database:
        database.sql("SELECT count(*) FROM ships", epsilon=1)
        made(postgres_database, AFTER)
        with pytest.raises(BackendError) as changed:
            database.sql("SELECT count(*) FROM ships", epsilon=1)
        assert changed.value.code == "BAK-004"


def test_a_stored_view_is_never_public(postgres_database):
    made(
        postgres_database,
        PLAIN,
        "CREATE MATERIALIZED VIEW totals AS SELECT sum(speed) AS n FROM ships",
    )
    with pytest.raises(PolicyError, match="is a stored view"):
        opened(postgres_database, UNIT, public=["totals"])


def reader_of(address):
    """Make a role that may read, and give the address under which it does."""
    with psycopg.connect(address, autocommit=True) as connection:
        role = f"reader_{connection.info.dbname}"
        connection.execute(f"CREATE ROLE {role} LOGIN")
        connection.execute(f"GRANT SELECT ON ALL TABLES IN SCHEMA public TO {role}")
    return address.replace("//secant@", f"//{role}@")


@pytest.mark.parametrize(
    ("condition", "protection", "stops"),
    [
        ("n IN (SELECT speed FROM ships)", UNIT, True),
        ("n > 3", UNIT, False),
        ("n > own()", UNIT, True),
    ],
)
def test_rows_that_a_row_policy_hides(postgres_database, condition, protection, stops):
    made(
        postgres_database,
        PLAIN,
        TOTALS,
        OWN,
        "ALTER TABLE totals ENABLE ROW LEVEL SECURITY",
        f"CREATE POLICY seen ON totals USING ({condition})",
    )
    reader = reader_of(postgres_database)
    if not stops:
        opened(reader, protection, public=["totals"]).close()
        return
    with pytest.raises(PolicyError, match=r'add "row policy totals.seen"'):
        opened(reader, protection, public=["totals"])
    opened(reader, protection, public=["totals"], accept=["row policy totals.seen"]).close()


def test_a_row_policy_over_values_that_move_stops(postgres_database):
    made(
        postgres_database,
        PLAIN,
        "ALTER TABLE ships ENABLE ROW LEVEL SECURITY",
        "CREATE POLICY seen ON ships USING (speed > 3)",
    )
    with pytest.raises(PolicyError, match=r'add "row policy ships.seen"'):
        opened(reader_of(postgres_database), CELLS)


KEYS = (
    "CREATE TABLE parted (id integer NOT NULL, v integer) PARTITION BY LIST (v)",
    "CREATE TABLE one PARTITION OF parted FOR VALUES IN (1)",
    "ALTER TABLE ONLY parted ADD CONSTRAINT k UNIQUE (id, v)",
    "INSERT INTO parted VALUES (7, 1), (7, 1)",
    "CREATE TABLE parent (id integer PRIMARY KEY)",
    "CREATE TABLE child () INHERITS (parent)",
    (
        "CREATE TABLE single (a integer UNIQUE NULLS NOT DISTINCT, b integer UNIQUE DEFERRABLE, c integer, "
        "EXCLUDE USING btree (c WITH =))"
    ),
    "CREATE UNIQUE INDEX ON single (c) WHERE a > 0",
    "CREATE UNIQUE INDEX ON single ((c + 1))",
)


def keys(address):
    backend = open_source(address)
    try:
        return {name: table.unique for name, table in backend.catalog().tables.items()}
    finally:
        backend.close()


def test_keys_that_do_not_hold_for_every_row_are_not_believed(postgres_database):
    statements = KEYS
    if version(postgres_database) < 150_000:
        statements = [s.replace(" NULLS NOT DISTINCT", "") for s in KEYS]
    made(postgres_database, *statements)
    assert keys(postgres_database) == {"parted": (), "parent": (), "single": (("a",),)}


def test_planted_a_key_that_partitions_lack_is_believed(postgres_database, monkeypatch):
    made(postgres_database, *KEYS[:4])
    planted = postgres_catalog._KEYS.replace("x.indisvalid AND", "")
    monkeypatch.setattr(postgres_catalog, "_KEYS", planted)
    assert keys(postgres_database) == {"parted": (("id", "v"),)}
