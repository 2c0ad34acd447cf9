"""What roles of analysts may do in the shadow beside reading catalogs: SQL that its superuser runs once.

Out: text. Functions that change something are granted by name; whatever else a version of PostgreSQL brings is revoked
(I3). Written for what sessions could do to each other: locks that all share, messages, large objects, files, the log of
changes.
"""

from __future__ import annotations

TYPIST = "secant_typist"
"""The role under which types of parameters are inferred: it may do nothing at all."""
MOST_RELATIONS = 200
"""Temporary tables of a session, with their indexes: locks and catalogs are everybody's."""

# Functions that are not pure, and that clients need (I8): nothing of them reaches beyond the session, the user's own
# other sessions, or sizes and states that the catalogs show anyway.
_GRANTED = (
    "array_sample", "array_shuffle", "clock_timestamp", "current_query", "currval", "gen_random_uuid",
    "lastval", "nextval", "pg_blocking_pids", "pg_cancel_backend", "pg_collation_actual_version",
    "pg_database_collation_actual_version", "pg_database_size", "pg_get_wait_events", "pg_indexes_size",
    "pg_is_in_recovery", "pg_jit_available", "pg_partition_ancestors", "pg_partition_tree",
    "pg_prepared_xact", "pg_relation_size", "pg_sequence_last_value", "pg_sleep", "pg_sleep_for",
    "pg_sleep_until", "pg_stat_clear_snapshot", "pg_table_size", "pg_tablespace_size",
    "pg_terminate_backend", "pg_total_relation_size", "random", "random_normal", "set_config",
    "setseed", "setval", "timeofday", "ts_rewrite", "uuidv4", "uuidv7",
)  # fmt: skip
# What makes and drops temporary tables; a function, a trigger, a type of somebody's own is never made (I8).
_TAGS = ("CREATE TABLE", "CREATE TABLE AS", "SELECT INTO", "CREATE INDEX", "DROP TABLE")


def _listed(words: tuple[str, ...]) -> str:
    return ", ".join(f"'{word}'" for word in words)


IS_RESTRICTED = "SELECT 1 FROM pg_namespace WHERE nspname = 'secant_own'"
RESTRICTED = f"""
CREATE ROLE {TYPIST} LOGIN;
REVOKE ALL ON LANGUAGE plpgsql, sql FROM PUBLIC;
DO $secant$
DECLARE one oid;
BEGIN
    FOR one IN
        SELECT p.oid FROM pg_catalog.pg_proc AS p WHERE p.provolatile = 'v' AND p.prokind = 'f'
        AND p.proname NOT IN ({_listed(_GRANTED)}) AND p.proname NOT LIKE 'pg\\_stat\\_get\\_xact\\_%'
    LOOP
        EXECUTE pg_catalog.format('REVOKE ALL ON FUNCTION %s FROM PUBLIC', one::pg_catalog.regprocedure);
    END LOOP;
END
$secant$;
CREATE SCHEMA secant_own;
CREATE FUNCTION secant_own.allowed() RETURNS event_trigger LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp AS $secant$
BEGIN
    IF (SELECT rolsuper FROM pg_roles WHERE rolname = session_user) THEN
        RETURN;
    END IF;
    IF tg_tag NOT IN ({_listed(_TAGS)}) THEN
        RAISE EXCEPTION USING ERRCODE = '42501', MESSAGE = tg_tag || ' is not accepted';
    END IF;
    IF tg_tag <> 'DROP TABLE' AND
        (SELECT count(*) FROM pg_class WHERE relnamespace = pg_my_temp_schema()) > {MOST_RELATIONS}
    THEN
        RAISE EXCEPTION USING ERRCODE = '53400',
            MESSAGE = 'a session has up to {MOST_RELATIONS} temporary tables and indexes', HINT = 'drop some';
    END IF;
END
$secant$;
CREATE EVENT TRIGGER secant_allowed ON ddl_command_end EXECUTE FUNCTION secant_own.allowed()
"""
