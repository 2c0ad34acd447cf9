"""What Secant asks of an engine: its catalog, and sessions, each of which serves one question.

An engine's own messages can quote a row, so none of them passes this border: errors say what failed, not on what.
"""

from __future__ import annotations

from collections.abc import Collection
from contextlib import AbstractContextManager
from typing import Protocol

from secant.engines.dialect import Dialect
from secant.errors import BackendError
from secant.policy.policy import Limits
from secant.schema.catalog import Catalog

PublicRows = dict[str, list[tuple[object, ...]]]
"""Statement over public tables -> its rows. One that outlives a session is kept by the engine's own data only: by
files that are compared before and after every question, and refused once they differ, or by what is in memory."""

_MOST_REMEMBERED = 1000


class Session(Protocol):
    """One question at an engine: all of its statements see the same data, and nobody else sees its state."""

    dialect: Dialect

    @property
    def known(self) -> PublicRows:
        """Give what was seen of public tables, of the data that the question sees."""
        ...

    def catalog(self) -> Catalog:
        """Give names and types of all tables, as the question was resolved with them."""
        ...

    def check(self, statement: str) -> None:
        """Raise BAK-003 if the engine would not accept the statement. Reads no rows."""
        ...

    def rows(self, statement: str) -> list[tuple[object, ...]]:
        """Run a statement and give its rows; BAK-002 if it fails."""
        ...

    def keep(self, statement: str) -> str | None:
        """Keep the rows of a statement until the session ends, and name the table; None where an engine only reads."""
        ...

    def confirm(self) -> None:
        """Raise BAK-004 if the data may have changed since the session began; leaving a session does so, too."""
        ...


class Backend(Protocol):
    """An engine that holds the data. Threads may share it; a forked child opens its own sessions."""

    dialect: Dialect

    def catalog(self) -> Catalog:
        """Give names and types of all tables, as they were when the source was opened."""
        ...

    def session(self, tables: Collection[str] = ()) -> AbstractContextManager[Session]:
        """Begin a question over tables that stay as they are until it ends.

        Entering raises BAK-004 if one of the tables is no longer as the catalog says. Leaving raises it if the data
        may have changed meanwhile: then the statements have not seen one state, and the answer must not leave.
        """
        ...

    def close(self) -> None:
        """Let go of the engine; sessions that are open end by themselves."""
        ...


def public_rows(session: Session, statement: str) -> list[tuple[object, ...]]:
    """Give the rows of a statement that looks at public tables alone, run once for the data that a session knows."""
    rows = session.known.get(statement)
    if rows is None:
        rows = session.rows(statement)
        if len(session.known) >= _MOST_REMEMBERED:
            session.known.clear()
        session.known[statement] = rows
    return rows


def most_rows(limits: Limits) -> int:
    """Give how many rows one statement may bring: candidates and cells are more than the groups of an answer."""
    return 100 * limits.groups


def closed() -> BackendError:
    """Say that somebody has closed the source."""
    return BackendError("BAK-001", "the data source is closed", hint="connect again")


def failed() -> BackendError:
    """Say that a statement failed, and nothing of why."""
    return BackendError(
        "BAK-002",
        "the engine failed while running a statement; its own message is withheld, it may quote data",
        hint="the data owner can run `secant inspect` with the same query",
    )


def not_accepted() -> BackendError:
    """Say that an engine would not run a statement."""
    return BackendError(
        "BAK-003",
        "the engine does not accept the statement that the query becomes",
        hint="simplify the query; `secant explain --sql` shows the statement",
    )


def changed(what: str) -> BackendError:
    """Say that the source is no longer what was opened."""
    return BackendError(
        "BAK-004",
        f"{what} changed after the data source was opened",
        hint="connect again; budget that was reserved for a statement that was sent stays spent",
    )
