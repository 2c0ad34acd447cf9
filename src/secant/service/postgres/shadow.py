"""The shadow: a PostgreSQL server with the names and types of the data's tables, and not one row of them.

In: catalog and policy, which are public. Out: connections under roles that may read nothing but catalogs and what
they put into temporary tables themselves: tables of the data look as if they could be read, because tools list no
others, and whatever plans to read one fails. Never here: anything from the data but released rows, for one session.
"""

from __future__ import annotations

import asyncio
import logging
import os
import re
import shutil
import signal
import tempfile
from collections.abc import Collection, Mapping
from contextlib import suppress
from pathlib import Path

from secant.errors import UsageError
from secant.policy.policy import Policy
from secant.schema.catalog import Catalog
from secant.schema.types import Type
from secant.service.postgres.link import Gone, Link, ShadowSays
from secant.service.postgres.messages import SYNC, Reader, parse_message, target_message
from secant.service.postgres.own_views import views_text
from secant.service.postgres.server_process import Ceilings, Server, start_server
from secant.service.postgres.supervision import Supervised
from secant.service.postgres.values import literal, quoted
from secant.service.settings import Postgres

_SUPERUSER = "secant_shadow"
_NAMED = re.compile(r"(?!template\d)[a-z_][\w-]{0,62}", re.IGNORECASE | re.ASCII)
"""Names that a database of the shadow can have."""
_RESERVED = re.compile(r"pg_.*|public|none|secant_shadow|secant_typist", re.IGNORECASE)

SETTINGS: dict[str, object] = {
    "shared_buffers": "16MB",
    "fsync": "off",
    "full_page_writes": "off",
    "wal_level": "minimal",
    "max_wal_senders": 0,
    # A kilobyte of catalog rows for each temporary table: old ones are taken again, and the log of them stays small.
    "min_wal_size": "2MB",
    "max_wal_size": "32MB",
    "autovacuum_naptime": "10s",
    "jit": "off",
    # Workers would take memory that nobody counts.
    "max_worker_processes": 0,
    "max_logical_replication_workers": 0,
    "max_parallel_workers": 0,
    "max_parallel_workers_per_gather": 0,
    # A process that crashed takes all others with it: another server begins anew, whatever it left.
    "restart_after_crash": "off",
    # What analysts write, and released rows, are theirs: no log and no view of the server shows them to others.
    "track_activities": "off",
    "log_statement": "none",
    "log_min_error_statement": "panic",
    "log_min_messages": "fatal",
    "logging_collector": "off",
}
_OVERHEAD = 32_000_000
"""Bytes of private memory that a process of the server has before anybody asks it anything, generously."""
_STARTING = 10.0
"""Seconds that a login waits for a server that is being started again."""
_TYPING = 5.0
"""Seconds that the types of one statement may take: everybody waits in one line for them."""
_BLOCKED = "55P03"

_log = logging.getLogger("secant.service")


class Shadow:
    """A running shadow, started again whenever it ends."""

    def __init__(self, limits: Postgres, source: str = "") -> None:
        self.limits = limits
        self.database = limits.database or database_of(source)
        """How its only database is called, whatever a client calls it."""
        self.disk = min(limits.disk, _free(limits.folder) // 2)
        """Bytes that its folder may take."""
        self.session_disk = min(limits.session_disk, self.disk)
        """Bytes that temporary tables and files of one session may take."""
        self._supervised = Supervised(self._start)
        self._lock = asyncio.Lock()
        self._typing_lock = asyncio.Lock()
        self._wanted = ""
        self._forget()

    def _start(self) -> Server:
        limits = self.limits
        settings = {
            **SETTINGS,
            "max_connections": limits.connections + 20,
            "temp_file_limit": f"{self.session_disk // 1024}kB",
            # A session can set it to anything; `watching` holds it to the same.
            "statement_timeout": int(1000 * limits.statement_seconds),
        }
        ceilings = Ceilings(limits.session_memory + _OVERHEAD, self.session_disk)
        return start_server(_SUPERUSER, settings, limits.folder, ceilings)

    def _forget(self, server: Server | None = None) -> None:
        """Begin with a server that has nothing of ours."""
        for link in (getattr(self, "_ours", None), getattr(self, "_typing", None)):
            if link is not None:
                link.close()
        self._known = server
        self._ours: Link | None = None
        self._typing: Link | None = None
        self._roles: set[str] = set()
        self._built = ""

    @property
    def server(self) -> Server | None:
        """Give the server that runs now."""
        return self._supervised.server

    @property
    def folder(self) -> Path:
        """Give where its files are."""
        server = self.server
        if server is None:
            raise Gone
        return server.folder

    def healthy(self) -> bool:
        """Say whether the server runs and has its tables. From any thread."""
        server = self.server
        return server is not None and server is self._known and server.runs() and bool(self._built)

    async def fit(self, catalog: Catalog, policy: Policy) -> None:
        """Give the shadow the tables of a catalog; what it had before goes."""
        async with self._lock:
            self._wanted = schema_text(catalog, policy)
            await self._ready()

    async def refresh(self) -> None:
        """Give a server that was started again what its predecessor had; see whether it answers."""
        async with self._lock:
            link = await self._ready()
            await self._run(link, "SELECT 1")

    async def connect(self, name: str, pairs: dict[str, str]) -> Link:
        """Connect for a user, under a role of their own: no session sees what another does."""
        role = f"user_{name}" if _RESERVED.fullmatch(name) else name
        async with self._lock:
            link = await self._ready()
            if role not in self._roles:
                there = f"SELECT 1 FROM pg_roles WHERE rolname = {literal(role)}"
                if not await self._run(link, there):
                    await self._run(link, f"CREATE ROLE {quoted(role)} LOGIN")
                self._roles.add(role)
        return await self._opened(role, self.database, pairs)

    async def types_of(self, text: str, types: tuple[int, ...]) -> tuple[int, ...] | None:
        """Give the types of the parameters of a query as the shadow infers them, or None where it cannot."""
        async with self._typing_lock:
            try:
                async with asyncio.timeout(_TYPING):
                    return await self._inferred(text, types)
            except (Gone, ShadowSays, TimeoutError):
                link, self._typing = self._typing, None
                if link is not None:
                    await self.end(link)
                return None

    async def _inferred(self, text: str, types: tuple[int, ...]) -> tuple[int, ...] | None:
        if self._typing is None or self._typing.ended:
            self._typing = await self._opened(TYPIST, self.database)
        link = self._typing
        link.send(parse_message("", text, types) + target_message(b"D", "S", "") + SYNC)
        oids: tuple[int, ...] | None = None
        while True:
            kind, body = await link.read()
            if kind == b"t":
                reader = Reader(body)
                count = reader.whole(2, signed=False)
                oids = tuple(reader.whole(4, signed=False) for _ in range(count))
            elif kind == b"Z":
                return oids

    def serves(self, link: Link) -> bool:
        """Say whether a connection is one to the server that runs now."""
        server = self.server
        return server is not None and server.socket == link.place

    async def end(self, link: Link) -> None:
        """End a connection, and what runs on it: a process that computes does not notice that its client left."""
        alive = link.busy and not link.ended
        link.close()
        if alive and self.serves(link):
            await self.terminate([link.process])
        elif alive:  # its server is gone; nobody else can end it
            with suppress(OSError):
                os.kill(link.process, signal.SIGKILL)

    async def terminate(self, processes: Collection[int]) -> None:
        """End processes of the shadow, in a way that no statement can catch."""
        if processes:
            with suppress(Gone):
                listed = ", ".join(str(int(process)) for process in processes)
                await self.asked(
                    f"SELECT pg_terminate_backend(p) FROM unnest(ARRAY[{listed}]) AS p"
                )

    async def asked(self, text: str) -> list[list[str | None]]:
        """Ask the shadow something as its superuser; `Gone` where it cannot be asked."""
        async with self._lock:
            return await self._run(await self._ready(), text)

    def kill(self) -> None:
        """End a server that does not answer; another one takes its place."""
        server = self.server
        if server is not None:
            server.process.kill()

    def close(self) -> None:
        """Stop the server."""
        self._forget()
        self._supervised.stop()

    # ── our own connection; all of it under the lock ─────────────────────────────────────────────

    async def _ready(self) -> Link:
        """Give our own connection to the server that runs, with roles and tables as they are wanted now."""
        try:
            async with asyncio.timeout(_STARTING):
                while (server := self.server) is None:
                    await asyncio.sleep(0.05)
        except TimeoutError:
            raise Gone from None
        if server is not self._known:
            self._forget(server)
        if self._ours is None or self._ours.ended:
            self._ours = await self._prepared()
        link = self._ours
        if self._built != self._wanted:
            await self._build(link)
        return link

    async def _prepared(self) -> Link:
        """Connect; make the database if this is the first time."""
        first = await self._opened(_SUPERUSER, "postgres")
        there = f"SELECT 1 FROM pg_database WHERE datname = {literal(self.database)}"
        if not await self._run(first, there):
            await self._run(first, f"CREATE DATABASE {quoted(self.database)}")
        first.close()
        link = await self._opened(_SUPERUSER, self.database)
        # One transaction: its last traces are there exactly if all of it is.
        if not await self._run(link, IS_RESTRICTED):
            await self._run(link, RESTRICTED)
        return link

    async def _build(self, link: Link) -> None:
        empty = _EMPTY.format(quoted(self.database))
        text = f"SET lock_timeout = '1s'; BEGIN; {empty}; {self._wanted}; COMMIT"
        try:
            await link.run(text)
        except ShadowSays as error:
            await self._run(link, "ROLLBACK")
            if error.state != _BLOCKED:
                _log.error(
                    "the schema-only PostgreSQL server refused the tables of the policy (%s)",
                    error.state,
                )
                raise
            # Whoever holds on to the tables of before must not keep everybody else from those of now.
            await self._run(link, _END_HOLDERS)
            await self._run(link, text)
        except BaseException:
            self._drop(link)
            raise
        self._built = self._wanted

    async def _run(self, link: Link, text: str) -> list[list[str | None]]:
        """Run a statement of ours. A connection on which it did not end is not used again."""
        try:
            return await link.run(text)
        except BaseException as error:
            self._drop(link)
            if isinstance(error, ShadowSays):
                _log.error(
                    "the schema-only PostgreSQL server refused a statement of ours (%s)",
                    error.state,
                )
                raise Gone from None
            raise

    def _drop(self, link: Link) -> None:
        link.close()
        if self._ours is link:
            self._ours = None

    async def _opened(
        self, user: str, database: str, pairs: Mapping[str, str] | None = None
    ) -> Link:
        server = self.server
        if server is None:
            raise Gone
        own = {"statement_timeout": "0"} if user == _SUPERUSER else dict(pairs or {})
        return await Link.open(server.socket, {**own, "user": user, "database": database})


def _free(folder: Path | None) -> int:
    try:
        return shutil.disk_usage(folder or tempfile.gettempdir()).free
    except OSError:
        raise UsageError(
            "USE-001",
            "the folder of the PostgreSQL port cannot be read",
            hint="make the folder that [postgres] names, or name another",
        ) from None


_EMPTY = """
DROP SCHEMA public CASCADE; CREATE SCHEMA public;
GRANT USAGE ON SCHEMA public TO PUBLIC;
REVOKE ALL ON DATABASE {0} FROM PUBLIC; GRANT CONNECT, TEMPORARY ON DATABASE {0} TO PUBLIC
"""
_END_HOLDERS = """
SELECT pg_terminate_backend(l.pid) FROM pg_locks AS l JOIN pg_class AS c ON c.oid = l.relation
WHERE c.relpersistence = 'p' AND c.relnamespace NOT IN ('pg_catalog'::regnamespace,
'pg_toast'::regnamespace, 'information_schema'::regnamespace) AND l.pid <> pg_backend_pid()
"""


def database_of(source: str) -> str:
    """Call the database as the source is called: by its file, its folder or its database; else `secant`."""
    kind, _, place = source.partition(":")
    named = Path(place.partition("?")[0].rstrip("/").rpartition("/")[2]).stem
    known = kind in ("duckdb", "parquet", "csv", "postgresql", "postgres")
    return named if known and _NAMED.fullmatch(named) else "secant"


def schema_text(catalog: Catalog, policy: Policy) -> str:
    """Write the tables with their declared keys and references. They look as if they could be read, and cannot."""
    parts: list[str] = []
    for schema in catalog.schemas[1:]:
        parts.append(f"DROP SCHEMA IF EXISTS {quoted(schema)} CASCADE")
        parts.append(f"CREATE SCHEMA {quoted(schema)}")
        parts.append(f"GRANT USAGE ON SCHEMA {quoted(schema)} TO PUBLIC")
    parts += views_text(catalog.schemas)
    for key in sorted(catalog.tables):
        table = catalog.tables[key]
        columns = ", ".join(f"{quoted(name)} {_type(kind)}" for name, kind in table.columns)
        table_name = _table_name(catalog, table.name)
        parts.append(f"CREATE TABLE {table_name} ({columns})")
        declared = policy.tables.get(key)
        stored = {name.lower() for name, _ in table.columns}
        if declared is not None and declared.key and {c.lower() for c in declared.key} <= stored:
            _, names = catalog.spelled(table.name, declared.key)
            listed = ", ".join(quoted(name) for name in names)
            parts.append(f"ALTER TABLE {table_name} ADD PRIMARY KEY ({listed})")
        description = (
            "public: answered exactly" if key in policy.public else "protected: answered with noise"
        )
        parts.append(f"COMMENT ON TABLE {table_name} IS {literal(description)}")
        # Tools list only tables that can be read. This one can be named; a plan that reads it is never made, since
        # the planner computes a function without arguments that is IMMUTABLE, whatever rows there are.
        parts.append(f"GRANT SELECT, REFERENCES ON {table_name} TO PUBLIC")
        parts.append(f"ALTER TABLE {table_name} ENABLE ROW LEVEL SECURITY")
        parts.append(
            f"CREATE POLICY answered_by_secant ON {table_name} FOR SELECT USING (secant_own.not_here())"
        )
    parts += _references(catalog, policy)
    return ";\n".join(parts) or "SELECT 1"


def _references(catalog: Catalog, policy: Policy) -> list[str]:
    """Write declared references to declared keys: tools draw their joins from them."""
    references = []
    for key, facts in sorted(policy.tables.items()):
        for column, (other, target) in sorted(facts.references.items()):
            here, there = catalog.table(key), catalog.table(other)
            if key not in catalog.tables or here is None or there is None:
                continue
            types = (
                {c.lower(): kind for c, kind in here.columns},
                {c.lower(): kind for c, kind in there.columns},
            )
            pair = types[0].get(column.lower()), types[1].get(target.lower())
            named = tuple(c.lower() for c in policy.facts(other).key) == (target.lower(),)
            if named and pair[0] is not None and pair[0] == pair[1]:
                _, (mine,) = catalog.spelled(here.name, (column,))
                _, (theirs,) = catalog.spelled(there.name, (target,))
                references.append(
                    f"ALTER TABLE {_table_name(catalog, here.name)} ADD FOREIGN KEY ({quoted(mine)})"
                    f" REFERENCES {_table_name(catalog, there.name)} ({quoted(theirs)})"
                )
    return references


def _table_name(catalog: Catalog, name: str) -> str:
    """Write a table in the schema that its name tells, as the source has it."""
    schema, dot, bare = name.partition(".")
    if dot and schema in catalog.schemas[1:]:
        return f"{quoted(schema)}.{quoted(bare)}"
    return f"public.{quoted(name)}"


def _type(kind: Type) -> str:
    return {
        "BOOLEAN": "boolean", "INTEGER": "bigint", "DOUBLE": "double precision", "TEXT": "text",
        "DATE": "date", "TIMESTAMP": "timestamp", "INTERVAL": "interval", "NULL": "text",
        "DECIMAL": f"numeric({kind.precision},{kind.scale})",
    }[kind.kind]  # fmt: skip


# ── what roles of analysts may do in the shadow beside reading catalogs: SQL that its superuser runs once ───


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


def _listed(names: tuple[str, ...]) -> str:
    return ", ".join(f"'{word}'" for word in names)


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
CREATE FUNCTION secant_own.not_here() RETURNS boolean LANGUAGE plpgsql IMMUTABLE AS $secant$
BEGIN
    RAISE EXCEPTION USING ERRCODE = '42501', MESSAGE = 'a table of the data is read in a way that is not seen',
        HINT = 'write the name of the table as it is, behind FROM or JOIN';
END
$secant$;
CREATE EVENT TRIGGER secant_allowed ON ddl_command_end EXECUTE FUNCTION secant_own.allowed()
"""
