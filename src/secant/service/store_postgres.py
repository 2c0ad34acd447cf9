"""The service's store in a schema of a PostgreSQL database, beside the ledger's.

In: the address of the ledger. Out: a Store. Nothing of the address enters a message: it may hold a password.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, LiteralString

from secant.errors import UsageError
from secant.ledger.postgres import split_address
from secant.ledger.sessions import PostgresSession, psycopg, sql
from secant.service.store import Rows, broken, prepared, upgrade

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
        with _typed():
            self._session = PostgresSession(self._address)
        try:
            self._prepare()
        except BaseException:
            self.close()
            raise

    def _prepare(self) -> None:
        with self.writing() as rows:
            rows.one("SELECT pg_advisory_xact_lock(hashtext(?))", f"secant {self._name}")
            there = rows.one(
                "SELECT 1 FROM information_schema.tables WHERE table_schema = ? AND table_name = 'meta'",
                self._name,
            )
            if there is None:
                with self._session.taken() as connection:
                    connection.execute(
                        sql.SQL("CREATE SCHEMA IF NOT EXISTS {}").format(sql.Identifier(self._name))
                    )
                prepared(rows)
            upgrade(rows)

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
        path = {"search_path": sql.Identifier(self._name).as_string(None)}
        with _typed(), self._session.transaction((begin,), path) as connection:
            yield _PostgresRows(connection)

    def close(self) -> None:
        """End the session."""
        self._session.close()


@contextmanager
def _typed() -> Iterator[None]:
    """Turn the driver's errors into ours; its own text is withheld."""
    try:
        yield
    except psycopg.Error as error:
        raise broken(
            "the store of users cannot be reached or written", "check the server"
        ) from error
