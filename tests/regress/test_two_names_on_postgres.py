"""The family of two names for the same rows, on PostgreSQL: children with two parents, foreign partitions, views,
the server's own schemas; and functions of the schema that fit a call better than the server's.
"""

import psycopg
import pytest

from apart import apart
from secant.engines.postgres import catalog as postgres_catalog
from secant.engines.sources import open_source
from secant.errors import BackendError, UsageError

pytestmark = pytest.mark.postgres


def told(address, *statements):
    with psycopg.connect(address, autocommit=True) as connection:
        for statement in statements:
            connection.execute(statement)


def names(address):
    backend = apart(open_source(address))
    try:
        return sorted(backend.catalog().tables)
    finally:
        backend.close()


PLAIN = "CREATE TABLE other (v bigint)"
TWO_PARENTS = (
    "CREATE TABLE people (v bigint)",
    "CREATE TABLE things (v bigint)",
    "CREATE TABLE both_of_them () INHERITS (people, things)",
    "INSERT INTO both_of_them VALUES (7001)",
)
SECOND_NAMES = {
    "two parents": TWO_PARENTS,
    "two parents further up": (
        "CREATE TABLE a (v bigint)",
        "CREATE TABLE b (v bigint)",
        "CREATE TABLE below_b () INHERITS (b)",
        "CREATE TABLE both_of_them () INHERITS (a, below_b)",
    ),
    "a view": ("CREATE VIEW everyone AS SELECT * FROM other",),
    "a materialized view": ("CREATE MATERIALIZED VIEW everyone AS SELECT * FROM other",),
    "another schema": ("CREATE SCHEMA hidden", "CREATE TABLE hidden.people (v bigint)"),
    "a foreign table": (
        "CREATE FOREIGN DATA WRAPPER nothing",
        "CREATE SERVER loop FOREIGN DATA WRAPPER nothing",
        "CREATE FOREIGN TABLE everyone (v bigint) SERVER loop",
    ),
    "a foreign partition": (
        "CREATE FOREIGN DATA WRAPPER nothing",
        "CREATE SERVER loop FOREIGN DATA WRAPPER nothing",
        "CREATE TABLE everyone (v bigint) PARTITION BY LIST (v)",
        "CREATE FOREIGN TABLE part PARTITION OF everyone DEFAULT SERVER loop",
    ),
    "a name of the server's own": ("CREATE TABLE pg_class (v bigint)",),
}


@pytest.mark.parametrize("second", SECOND_NAMES)
def test_only_tables_whose_rows_are_their_own_are_offered(postgres_database, second):
    told(postgres_database, PLAIN, *SECOND_NAMES[second])
    assert names(postgres_database) == ["other"]


def test_children_and_partitions_of_one_parent_are_its_rows(postgres_database):
    told(
        postgres_database,
        "CREATE TABLE people (v bigint)",
        "CREATE TABLE child () INHERITS (people)",
        "CREATE TABLE grandchild () INHERITS (child)",
        "CREATE TABLE parted (v bigint) PARTITION BY LIST (v)",
        "CREATE TABLE part PARTITION OF parted DEFAULT",
    )
    assert names(postgres_database) == ["parted", "people"]


def test_planted_a_child_of_two_is_shown_twice(postgres_database, monkeypatch):
    told(postgres_database, *TWO_PARENTS)
    planted = postgres_catalog._TABLES.replace(") > 1", ") > 9")
    monkeypatch.setattr(postgres_catalog, "_TABLES", planted)
    assert names(postgres_database) == ["people", "things"]


@pytest.mark.parametrize("schema", ["pg_catalog", "information_schema", "pg_toast"])
def test_the_servers_own_schemas_are_no_source(postgres_database, schema):
    with pytest.raises(UsageError, match="server's own"):
        open_source(f"{postgres_database}&schema={schema}")


def test_names_that_differ_in_case_are_refused(postgres_database):
    told(postgres_database, 'CREATE TABLE "People" (v bigint)', "CREATE TABLE people (v bigint)")
    with pytest.raises(BackendError, match="differ in case"):
        names(postgres_database)


MEANINGS = {
    "function": "CREATE FUNCTION floor(bigint) RETURNS bigint LANGUAGE sql IMMUTABLE AS 'SELECT 7::bigint'",
    "aggregate": "CREATE AGGREGATE sum(text) (SFUNC = textcat, STYPE = text)",
    "operator": "CREATE OPERATOR + (LEFTARG = bigint, RIGHTARG = text, FUNCTION = odd)",
}
ODD = (
    "CREATE FUNCTION odd(bigint, text) RETURNS bigint LANGUAGE sql IMMUTABLE AS 'SELECT 7::bigint'"
)


@pytest.mark.parametrize("meaning", MEANINGS)
def test_a_schema_gives_sql_no_meaning_of_its_own(postgres_database, meaning):
    told(postgres_database, PLAIN, ODD, MEANINGS[meaning])
    with pytest.raises(BackendError, match="name of SQL's own"):
        names(postgres_database)


def test_planted_a_function_of_the_schema_goes_first(postgres_database):
    told(postgres_database, PLAIN)
    backend = apart(open_source(postgres_database))
    told(postgres_database, MEANINGS["function"])  # later, in a session that names no table
    assert backend.rows("SELECT floor(CAST(3 AS bigint))") == [(7,)]
    backend.close()


def test_functions_for_types_of_their_own_do_no_harm(postgres_database):
    told(
        postgres_database,
        PLAIN,
        "CREATE TYPE color AS ENUM ('red')",
        "CREATE FUNCTION floor(color) RETURNS bigint LANGUAGE sql IMMUTABLE AS 'SELECT 7::bigint'",
    )
    assert names(postgres_database) == ["other"]
