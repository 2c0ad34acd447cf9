"""The service's store in a schema of a PostgreSQL database, beside the ledger's.

In: the address of the ledger. Out: a Store. Nothing of the address enters a message: it may hold a password.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, LiteralString

from secant.errors import UsageError
from secant.ledger.postgres import split_address
from secant.processes import PerProcess
from secant.service.store import Rows, broken, check_version, prepared

try:
    import psycopg
    from psycopg import sql
except ImportError as error:
    raise UsageError(
        "USE-006",
        "a store on PostgreSQL needs the psycopg package",
        hint="install secant[postgres]",
    ) from error

LONGEST_SCHEMA = 63


class _PostgresRows:
    def __init__(self, connection: psycopg.Connection) -> None:
        self._connection = connection

    def _run(self, statement: str, values: tuple[object, ...]) -> psycopg.Cursor[Any]:
        # Statements are constants of this package; none holds a per cent sign or a question mark of its own.
        text = sql.SQL(statement.replace("?", "%s"))
        return self._connection.execute(text, values or None)

    def do(self, statement: str, *values: object) -> int:
        return self._run(statement, values).rowcount

    def all(self, statement: str, *values: object) -> list[tuple[Any, ...]]:
        return self._run(statement, values).fetchall()

    def one(self, statement: str, *values: object) -> tuple[Any, ...] | None:
        return self._run(statement, values).fetchone()


class PostgresStore:
    """A store in a database, for the processes of several machines."""

    def __init__(self, ledger: str) -> None:
        self._address, name = split_address(ledger)
        self._name = f"{name}_service"
        if len(self._name.encode()) > LONGEST_SCHEMA:
            raise UsageError("USE-001", "the name of a ledger with users has up to 55 bytes")
        self._connection = PerProcess(self._connect, psycopg.Connection.close)
        try:
            self._prepare()
        except BaseException:
            self.close()
            raise

    def _connect(self) -> psycopg.Connection:
        with _typed():
            return psycopg.connect(
                self._address, autocommit=True, prepare_threshold=None, connect_timeout=30
            )

    def _prepare(self) -> None:
        with self.writing() as rows:
            rows.one("SELECT pg_advisory_xact_lock(hashtext(?))", f"secant {self._name}")
            there = rows.one(
                "SELECT 1 FROM information_schema.tables WHERE table_schema = ? AND table_name = 'meta'",
                self._name,
            )
            if there is None:
                with self._connection.taken() as connection:
                    connection.execute(
                        sql.SQL("CREATE SCHEMA IF NOT EXISTS {}").format(sql.Identifier(self._name))
                    )
                prepared(rows)
            check_version(rows)

    @contextmanager
    def writing(self) -> Iterator[Rows]:
        """Begin a transaction that excludes other writers."""
        with self._transaction("BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE") as rows:
            rows.one("SELECT set_config('synchronous_commit', 'on', true)")
            # One writer at a time, as in a file: what is counted and then written stays counted rightly.
            rows.one("SELECT pg_advisory_xact_lock(hashtext(?))", f"secant write {self._name}")
            yield rows

    @contextmanager
    def reading(self) -> Iterator[Rows]:
        """Begin a transaction that only looks."""
        with self._transaction("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY") as rows:
            yield rows

    @contextmanager
    def _transaction(self, begin: LiteralString) -> Iterator[Rows]:
        with _typed(), self._connection.taken() as connection:
            try:
                connection.execute(begin)
                path = sql.Identifier(self._name).as_string(connection)
                connection.execute("SELECT set_config('search_path', %s, true)", (path,))
                yield _PostgresRows(connection)
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


@contextmanager
def _typed() -> Iterator[None]:
    """Turn the driver's errors into ours; its own text is withheld."""
    try:
        yield
    except psycopg.Error as error:
        raise broken(
            "the store of users cannot be reached or written", "check the server"
        ) from error
