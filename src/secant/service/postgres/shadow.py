"""The shadow: a PostgreSQL server with the names and types of the data's tables, and not one row of them.

In: catalog and policy, which are public. Out: connections under roles that may read nothing but catalogs and what
they put into temporary tables themselves. Never here: anything from the data but released rows, for one session.
"""

from __future__ import annotations

import asyncio
import re
from pathlib import Path

from secant.service.postgres.link import Gone, Link, ShadowSays
from secant.service.postgres.messages import SYNC, Reader, parse_message, target_message
from secant.service.postgres.server_process import Server, start_server
from secant.service.postgres.values import literal, quoted
from secant.terms.catalog import Catalog
from secant.terms.policy import Policy
from secant.terms.types import Type

_SUPERUSER = "secant_shadow"
_DATABASE = "secant"
_RESERVED = re.compile(r"pg_.*|public|none|secant_shadow", re.IGNORECASE)

SETTINGS: dict[str, object] = {
    "shared_buffers": "16MB",
    "fsync": "off",
    "full_page_writes": "off",
    "wal_level": "minimal",
    "max_wal_senders": 0,
    "autovacuum": "off",
    "jit": "off",
    "max_parallel_workers": 0,
    "max_parallel_workers_per_gather": 0,
    "temp_file_limit": "512MB",
    "statement_timeout": "60s",
    "idle_in_transaction_session_timeout": "1h",
    # What analysts write, and released rows, are theirs: no log and no view of the server shows them to others.
    "track_activities": "off",
    "log_statement": "none",
    "log_min_error_statement": "panic",
    "log_min_messages": "fatal",
    "logging_collector": "off",
}


class Shadow:
    """A running shadow. Begin it in a thread that lives as long as it does."""

    def __init__(self, connections: int) -> None:
        self._server: Server = start_server(
            _SUPERUSER, {**SETTINGS, "max_connections": connections + 10}
        )
        self._lock = asyncio.Lock()
        self._ours: Link | None = None
        self._typing: Link | None = None
        self._typing_lock = asyncio.Lock()
        self._roles: set[str] = set()
        self._built = ""

    @property
    def folder(self) -> Path:
        """Give where its files are."""
        return self._server.folder

    async def fit(self, catalog: Catalog, policy: Policy) -> None:
        """Give the shadow the tables of a catalog; what it had before goes."""
        wanted = schema_text(catalog, policy)
        async with self._lock:
            if wanted == self._built:
                return
            if self._ours is None:
                first = await self._opened("postgres")
                await first.run(f"CREATE DATABASE {_DATABASE}")
                first.close()
                self._ours = await self._opened(_DATABASE)
            await self._ours.run(f"SET lock_timeout = '5s'; BEGIN; {_EMPTY}; {wanted}; COMMIT")
            self._built = wanted

    async def connect(self, name: str, pairs: dict[str, str]) -> Link:
        """Connect for a user, under a role of their own: no session sees what another does."""
        role = f"user_{name}" if _RESERVED.fullmatch(name) else name
        async with self._lock:
            if role not in self._roles and self._ours is not None:
                await self._ours.run(f"CREATE ROLE {quoted(role)} LOGIN")
                self._roles.add(role)
        return await Link.open(self._server.socket, {**pairs, "user": role, "database": _DATABASE})

    async def types_of(self, text: str, types: tuple[int, ...]) -> tuple[int, ...] | None:
        """Give the types of the parameters of a query as the shadow infers them, or None where it cannot."""
        async with self._typing_lock:
            try:
                if self._typing is None:
                    self._typing = await self._opened(_DATABASE)
                link = self._typing
                link.send(parse_message("", text, types) + target_message(b"D", "S", "") + SYNC)
                found: tuple[int, ...] | None = None
                while True:
                    kind, body = await link.read()
                    if kind == b"t":
                        reader = Reader(body)
                        count = reader.whole(2, signed=False)
                        found = tuple(reader.whole(4, signed=False) for _ in range(count))
                    elif kind == b"Z":
                        return found
            except (Gone, ShadowSays):
                self._typing = None
                return None

    def close(self) -> None:
        """Stop the server."""
        for link in (self._ours, self._typing):
            if link is not None:
                link.close()
        self._server.stop()

    async def _opened(self, database: str) -> Link:
        return await Link.open(self._server.socket, {"user": _SUPERUSER, "database": database})


_EMPTY = """
DROP SCHEMA public CASCADE; CREATE SCHEMA public;
GRANT USAGE ON SCHEMA public TO PUBLIC;
REVOKE ALL ON DATABASE secant FROM PUBLIC; GRANT CONNECT, TEMPORARY ON DATABASE secant TO PUBLIC
"""


def schema_text(catalog: Catalog, policy: Policy) -> str:
    """Write the tables with their declared keys and references. Reading is granted to nobody."""
    parts: list[str] = []
    for schema in catalog.schemas[1:]:
        parts.append(f"DROP SCHEMA IF EXISTS {quoted(schema)} CASCADE")
        parts.append(f"CREATE SCHEMA {quoted(schema)}")
        parts.append(f"GRANT USAGE ON SCHEMA {quoted(schema)} TO PUBLIC")
    for key in sorted(catalog.tables):
        table = catalog.tables[key]
        columns = ", ".join(f"{quoted(name)} {_type(kind)}" for name, kind in table.columns)
        place = _place(catalog, table.name)
        parts.append(f"CREATE TABLE {place} ({columns})")
        declared = policy.tables.get(key)
        held = {name.lower() for name, _ in table.columns}
        if declared is not None and declared.key and {c.lower() for c in declared.key} <= held:
            _, names = catalog.spelled(table.name, declared.key)
            listed = ", ".join(quoted(name) for name in names)
            parts.append(f"ALTER TABLE {place} ADD PRIMARY KEY ({listed})")
        told = (
            "public: answered exactly" if key in policy.public else "protected: answered with noise"
        )
        parts.append(f"COMMENT ON TABLE {place} IS {literal(told)}")
        # REFERENCES lets the catalogs of the standard list a table to who may not read it.
        parts.append(f"GRANT REFERENCES ON {place} TO PUBLIC")
    parts += _references(catalog, policy)
    return ";\n".join(parts) or "SELECT 1"


def _references(catalog: Catalog, policy: Policy) -> list[str]:
    """Write declared references to declared keys: tools draw their joins from them."""
    found = []
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
                found.append(
                    f"ALTER TABLE {_place(catalog, here.name)} ADD FOREIGN KEY ({quoted(mine)})"
                    f" REFERENCES {_place(catalog, there.name)} ({quoted(theirs)})"
                )
    return found


def _place(catalog: Catalog, name: str) -> str:
    """Write a table in the schema that its name tells, as the source has it."""
    schema, dot, rest = name.partition(".")
    if dot and schema in catalog.schemas[1:]:
        return f"{quoted(schema)}.{quoted(rest)}"
    return f"public.{quoted(name)}"


def _type(kind: Type) -> str:
    return {
        "BOOLEAN": "boolean", "INTEGER": "bigint", "DOUBLE": "double precision", "TEXT": "text",
        "DATE": "date", "TIMESTAMP": "timestamp", "INTERVAL": "interval", "NULL": "text",
        "DECIMAL": f"numeric({kind.precision},{kind.scale})",
    }[kind.kind]  # fmt: skip
