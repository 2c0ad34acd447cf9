"""What BI tools ask of the catalogs before they show a table: each question in the form that the tool gives it."""

from __future__ import annotations

import psycopg
import pytest
from hostile_client import Raw

from postgres_port import GROUPS, PASSWORD, USER
from secant.service.postgres.shadow import database_of

SHOP = {"customers", "orders", "towns", "nothing", "holes"}

METABASE_TABLES = """
SELECT n.nspname AS "schema", c.relname AS "name", d.description, c.relkind
FROM pg_catalog.pg_class AS c JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
LEFT JOIN pg_catalog.pg_description AS d ON c.oid = d.objoid AND d.objsubid = 0 AND d.classoid = 'pg_class'::regclass
WHERE n.nspname !~ '^pg_' AND n.nspname <> 'information_schema' AND c.relkind IN ('r', 'p', 'v', 'f', 'm')
"""
METABASE_PRIVILEGES = """
WITH told AS (
    SELECT t.schemaname AS "schema", t.objectname AS "table",
        pg_catalog.has_any_column_privilege(
            current_user, quote_ident(t.schemaname) || '.' || quote_ident(t.objectname), 'select') AS "select",
        pg_catalog.has_table_privilege(
            current_user, quote_ident(t.schemaname) || '.' || quote_ident(t.objectname), 'delete') AS "delete"
    FROM (SELECT schemaname, tablename AS objectname FROM pg_catalog.pg_tables
        UNION SELECT schemaname, viewname FROM pg_catalog.pg_views
        UNION SELECT schemaname, matviewname FROM pg_catalog.pg_matviews) AS t
    WHERE t.schemaname !~ '^pg_' AND t.schemaname <> 'information_schema'
        AND pg_catalog.has_schema_privilege(current_user, t.schemaname, 'usage')
)
SELECT "table" FROM told WHERE "select" AND NOT "delete" AND "schema" = 'public'
"""
METABASE_FIELDS = """
SELECT c.column_name, c.udt_name, c.ordinal_position - 1, c.table_schema, c.table_name, pk.column_name IS NOT NULL,
    col_description(format('%I.%I', c.table_schema, c.table_name)::regclass, c.ordinal_position),
    c.column_default IS NULL AND c.is_nullable = 'NO' AND c.is_identity = 'NO'
FROM information_schema.columns AS c LEFT JOIN (
    SELECT tc.table_schema, tc.table_name, kc.column_name FROM information_schema.table_constraints AS tc
    JOIN information_schema.key_column_usage AS kc ON tc.constraint_name = kc.constraint_name
        AND tc.table_schema = kc.table_schema AND tc.table_name = kc.table_name
    WHERE tc.constraint_type = 'PRIMARY KEY'
) AS pk ON c.table_schema = pk.table_schema AND c.table_name = pk.table_name AND c.column_name = pk.column_name
WHERE c.table_schema !~ '^information_schema|catalog_history|pg_' AND c.table_name = 'orders' ORDER BY 3
"""
METABASE_REFERENCES = """
SELECT fk.relname, fa.attname, pk.relname, pa.attname FROM pg_constraint AS c
JOIN pg_class AS fk ON c.conrelid = fk.oid JOIN pg_class AS pk ON c.confrelid = pk.oid
JOIN pg_attribute AS fa ON fa.attrelid = fk.oid AND fa.attnum = ANY(c.conkey)
JOIN pg_attribute AS pa ON pa.attrelid = pk.oid AND pa.attnum = ANY(c.confkey)
WHERE c.contype = 'f' AND fk.relnamespace::regnamespace::text !~ '^information_schema|pg_' ORDER BY 1, 2
"""
DBEAVER_DATABASES = """
SELECT db.oid, db.* FROM pg_catalog.pg_database AS db
WHERE datallowconn AND NOT datistemplate OR db.datname = %s ORDER BY db.datname
"""
DBEAVER_TABLES = """
SELECT c.oid, c.*, d.description, pg_catalog.pg_get_expr(c.relpartbound, c.oid) AS partition_expr,
    pg_catalog.pg_get_partkeydef(c.oid) AS partition_key, pg_catalog.pg_total_relation_size(c.oid) AS size
FROM pg_catalog.pg_class AS c
LEFT JOIN pg_catalog.pg_description AS d ON d.objoid = c.oid AND d.objsubid = 0 AND d.classoid = 'pg_class'::regclass
WHERE c.relnamespace = 'public'::regnamespace AND c.relkind NOT IN ('i', 'I', 'c')
"""
DBEAVER_SESSION = """
SELECT current_schema(), session_user;
SELECT n.oid, n.*, d.description FROM pg_catalog.pg_namespace AS n
LEFT JOIN pg_catalog.pg_description AS d ON d.objoid = n.oid AND d.objsubid = 0 ORDER BY nspname;
SELECT * FROM pg_catalog.pg_settings;
SHOW search_path;
SELECT a.oid, a.* FROM pg_catalog.pg_roles AS a ORDER BY a.rolname;
SELECT t.oid, t.*, c.relkind, format_type(nullif(t.typbasetype, 0), t.typtypmod) FROM pg_catalog.pg_type AS t
LEFT JOIN pg_catalog.pg_class AS c ON c.oid = t.typrelid WHERE t.typname IS NOT NULL;
SELECT c.relname, a.*, pg_catalog.pg_get_expr(ad.adbin, ad.adrelid, true), d.description
FROM pg_catalog.pg_attribute AS a JOIN pg_catalog.pg_class AS c ON a.attrelid = c.oid
LEFT JOIN pg_catalog.pg_attrdef AS ad ON a.attrelid = ad.adrelid AND a.attnum = ad.adnum
LEFT JOIN pg_catalog.pg_description AS d ON c.oid = d.objoid AND a.attnum = d.objsubid
WHERE NOT a.attisdropped AND c.oid = 'public.orders'::regclass ORDER BY a.attnum;
SELECT i.*, c.relname, pg_catalog.pg_get_indexdef(i.indexrelid) FROM pg_catalog.pg_index AS i
JOIN pg_catalog.pg_class AS c ON c.oid = i.indexrelid WHERE i.indrelid = 'public.orders'::regclass;
SELECT c.oid, c.*, t.relname, pg_catalog.pg_get_constraintdef(c.oid, true) FROM pg_catalog.pg_constraint AS c
JOIN pg_catalog.pg_class AS t ON t.oid = c.conrelid WHERE t.relnamespace = 'public'::regnamespace
"""
GRAFANA_TABLES = """
SELECT CASE WHEN quote_ident(table_schema) IN (
    SELECT CASE WHEN trim(s[i]) = '"$user"' THEN user ELSE trim(s[i]) END
    FROM generate_series(array_lower(string_to_array(current_setting('search_path'), ','), 1),
        array_upper(string_to_array(current_setting('search_path'), ','), 1)) AS i,
        string_to_array(current_setting('search_path'), ',') AS s
) THEN quote_ident(table_name) ELSE quote_ident(table_schema) || '.' || quote_ident(table_name) END AS "table"
FROM information_schema.tables
WHERE quote_ident(table_schema) NOT IN ('information_schema', 'pg_catalog') ORDER BY 1
"""
GRAFANA_COLUMNS = """
SELECT quote_ident(column_name) AS "column", data_type AS "type" FROM information_schema.columns
WHERE quote_ident(table_schema) IN ('public') AND quote_ident(table_name) = 'orders'
"""
SUPERSET_COMMENTS = """
SELECT pgd.description FROM pg_catalog.pg_description AS pgd
WHERE pgd.objsubid = 0 AND pgd.objoid = 'public.towns'::regclass
"""


@pytest.fixture
def connection(secant_port):
    with psycopg.connect(secant_port.address(), autocommit=True) as connection:
        yield connection


def column(connection, text, number=0, values=()):
    return [row[number] for row in connection.execute(text, values).fetchall()]


def test_metabase_finds_tables_columns_keys_and_references(connection):
    assert set(column(connection, METABASE_TABLES, 1)) >= SHOP
    assert set(column(connection, METABASE_PRIVILEGES)) == SHOP
    fields = connection.execute(METABASE_FIELDS, prepare=False).fetchall()
    assert [(name, kind) for name, kind, *_ in fields][:5] == [
        ("id", "int8"), ("customer", "int8"), ("status", "text"), ("day", "date"), ("total", "numeric"),
    ]  # fmt: skip
    assert [name for name, *_, key, _, _ in fields if key] == ["id"]
    assert ("orders", "customer", "customers", "id") in connection.execute(
        METABASE_REFERENCES
    ).fetchall()


def test_dbeaver_finds_the_database_and_its_tables(connection):
    assert connection.execute("SELECT current_database()").fetchone() == ("shop",)
    assert "shop" in column(connection, DBEAVER_DATABASES, 2, ("shop",))
    assert set(column(connection, DBEAVER_TABLES, 2)) >= SHOP
    for text in DBEAVER_SESSION.split(";"):
        assert connection.execute(text).fetchall(), text


def test_grafana_lists_tables_and_columns(connection):
    assert set(column(connection, GRAFANA_TABLES)) == SHOP | {"secant.budget", "secant.history"}
    assert dict(connection.execute(GRAFANA_COLUMNS).fetchall())["day"] == "date"
    assert connection.execute("SELECT current_setting('server_version_num')::int / 100").fetchone()
    assert (
        connection.execute(
            "SELECT extversion FROM pg_extension WHERE extname = 'timescaledb'"
        ).fetchall()
        == []
    )


def test_catalogs_of_the_standard_say_what_may_be_read(connection):
    granted = (
        "SELECT table_name FROM information_schema.table_privileges"
        " WHERE privilege_type = 'SELECT' AND table_schema = 'public'"
    )
    assert set(column(connection, granted)) == SHOP
    assert column(connection, SUPERSET_COMMENTS) == ["public: answered exactly"]
    told = "SELECT has_table_privilege(c.oid, 'SELECT'), has_table_privilege(c.oid, 'INSERT, UPDATE, DELETE')"
    assert connection.execute(f"{told} FROM pg_class AS c WHERE relname = 'orders'").fetchone() == (
        True,
        False,
    )


READS = [
    "SELECT * FROM orders", "SELECT count(*) FROM orders", "EXPLAIN SELECT 1 FROM orders", "TABLE orders",
    "SELECT 1 FROM orders WHERE false", "SELECT 1 WHERE EXISTS (SELECT FROM orders)",
    "SELECT o FROM orders AS o LIMIT 0",
    "SELECT 1 UNION ALL SELECT 1 FROM orders WHERE 1 = 2", "SELECT * FROM ONLY orders",
    "SELECT (orders).id FROM orders",
    "SELECT * FROM orders TABLESAMPLE system (1)", "CREATE TEMP TABLE kept AS TABLE orders", "COPY orders TO STDOUT",
    "COPY (SELECT id FROM orders) TO STDOUT", "DECLARE c CURSOR WITH HOLD FOR SELECT * FROM orders",
    "SELECT 1 FROM (SELECT 1 AS x) AS t LEFT JOIN orders AS o ON o.id = t.x",
    "PREPARE p AS SELECT * FROM orders; SET plan_cache_mode = force_generic_plan; EXECUTE p",
    "SET row_security = off; SELECT * FROM orders", "SELECT * FROM orders FOR UPDATE",
    "INSERT INTO orders (id) VALUES (1)", "UPDATE orders SET id = 1", "DELETE FROM orders", "TRUNCATE orders",
    "ALTER TABLE orders DISABLE ROW LEVEL SECURITY", "DROP POLICY answered_by_secant ON orders",
    "SELECT secant_own.not_here()", "CREATE INDEX ON orders (id)",
]  # fmt: skip


@pytest.mark.parametrize("text", READS)
def test_nothing_that_reads_a_table_of_the_shadow_has_an_answer(secant_port, text):
    """Past the port: a question that would end up there by mistake fails, though tables look readable."""
    with secant_port.shadow(USER) as shadow, pytest.raises(psycopg.errors.InsufficientPrivilege):
        shadow.execute(text)


def test_a_table_under_a_name_that_the_port_does_not_see(connection):
    """Spelled so, a name is not seen: the shadow refuses, and says what to type."""
    with pytest.raises(psycopg.errors.InsufficientPrivilege) as told:
        connection.execute('SELECT count(*) FROM U&"\\006frders"')
    assert "behind FROM or JOIN" in told.value.diag.message_hint
    assert len(connection.execute(GROUPS).fetchall()) == 4


def test_another_name_of_the_database_is_told(secant_port):
    for called in ("shop", "warehouse", USER):
        with Raw(secant_port, login=False) as client:
            client.startup(USER, database=called)
            client.scram(PASSWORD)
            told = [body for kind, body in client.until_ready() if kind == b"N"]
            assert [called.encode() in body and b'connect to "shop"' in body for body in told] == (
                [True] if called == "warehouse" else []
            )
            client.send(b"Q", b"SELECT current_database()\0")
            assert any(
                body.endswith(b"shop") for kind, body in client.until_ready() if kind == b"D"
            )


@pytest.mark.parametrize(
    ("source", "name"),
    [
        ("duckdb:clinic.duckdb", "clinic"), ("duckdb:/data/Shop.db?schema=x", "Shop"), ("csv:/data/visits", "visits"),
        ("postgresql://reader@db.example/shop?schema=sales", "shop"), ("postgresql://reader:word@db.example", "secant"),
        ("parquet:/data/*.parquet", "secant"), ("spark:sc://host:15002", "secant"), ("env:CLINIC", "secant"),
        ("duckdb:template1.duckdb", "secant"), ("", "secant"), ('duckdb:a"b.duckdb', "secant"),
    ],
)  # fmt: skip
def test_the_database_is_called_as_its_source_is(source, name):
    assert database_of(source) == name
