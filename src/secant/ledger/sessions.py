"""A session with a PostgreSQL server, one for each process: the ledger and the users of a service are kept through it.

In: an address. Out: transactions, begun in words and ended whole. A lost connection is an error once, and is then made
anew. Nothing of the address ever enters a message: it may hold a password; who uses a session names the errors.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import LiteralString

from secant.errors import UsageError
from secant.runtime.processes import PerProcess

try:
    import psycopg
    from psycopg import errors, sql
except ImportError as error:
    raise UsageError(
        "USE-006",
        "a ledger on PostgreSQL needs the psycopg package",
        hint="install secant[postgres]",
    ) from error

__all__ = [
    "PostgresSession",
    "errors",
    "psycopg",
    "sql",
]  # with the driver, imported where its lack is told


class PostgresSession:
    """Connections to one server. Threads take turns; a forked child gets its own."""

    def __init__(self, address: str, *, wait_seconds: float = 30.0) -> None:
        self._address, self._wait_seconds = address, wait_seconds
        self._connection = PerProcess(self._connect, psycopg.Connection.close)
        self.taken = self._connection.taken

    def _connect(self) -> psycopg.Connection:
        return psycopg.connect(
            self._address,
            autocommit=True,  # transactions are begun in words, with their isolation level
            prepare_threshold=None,  # a pooler may hand us another session each time
            connect_timeout=max(2, int(self._wait_seconds)),
            keepalives=1,
            keepalives_idle=30,
        )

    @contextmanager
    def transaction(
        self, begin: tuple[LiteralString, ...], settings: dict[str, str]
    ) -> Iterator[psycopg.Connection]:
        """Begin a transaction with settings of its own; commit it at the end, or undo all of it."""
        with self.taken() as connection:
            try:
                for statement in begin:
                    connection.execute(statement)
                for name, value in settings.items():
                    connection.execute("SELECT set_config(%s, %s, true)", (name, value))
                yield connection
                connection.execute("COMMIT")
            except BaseException:
                self._undo(connection)
                raise

    def _undo(self, connection: psycopg.Connection) -> None:
        with suppress(psycopg.Error):
            connection.execute("ROLLBACK")
            return
        with suppress(psycopg.Error):
            self._connection.drop()

    def close(self) -> None:
        """End the session."""
        self._connection.drop()
