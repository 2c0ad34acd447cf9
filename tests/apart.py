"""An engine of which tests ask single statements, each in a session of its own; releases never do that."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from typing import Any

from bench.suites.tpch.rehearsal import Apart

from secant.engine import Connection
from secant.engines.backend import Backend, Session
from secant.schema.catalog import Catalog


class Opened(Apart):
    """A backend that also takes single statements."""

    def session(self, tables: Collection[str] = ()) -> Any:
        """Begin a question at the backend."""
        return self._backend.session(tables)

    def close(self) -> None:
        """Close the backend."""
        self._backend.close()


def apart(source: Backend | Connection) -> Opened:
    """Give the engine of a connection, or of a backend, for single statements."""
    return Opened(source._backend if isinstance(source, Connection) else source)


class Wrapped:
    """A backend whose sessions a test watches or spoils: override `wrap`, or the methods of a session."""

    def __init__(self, inner: Backend) -> None:
        self.inner, self.dialect = inner, inner.dialect

    def catalog(self) -> Catalog:
        """Give the backend's catalog."""
        return self.inner.catalog()

    @contextmanager
    def session(self, tables: Collection[str] = ()) -> Iterator[Session]:
        """Begin a question whose statements pass through this object."""
        with self.inner.session(tables) as session:
            yield Passing(self, session)

    def close(self) -> None:
        """Close the backend."""
        self.inner.close()

    def check(self, session: Session, statement: str) -> None:
        """Let the session check a statement."""
        session.check(statement)

    def rows(self, session: Session, statement: str) -> list[tuple[object, ...]]:
        """Let the session run a statement."""
        return session.rows(statement)

    def keep(self, session: Session, statement: str) -> str | None:
        """Let the session keep the rows of a statement."""
        return session.keep(statement)


class Passing:
    """A session whose statements pass through the backend that a test has wrapped."""

    def __init__(self, outer: Wrapped, session: Session) -> None:
        self._outer, self._session, self.dialect = outer, session, session.dialect
        self.known = session.known

    def catalog(self) -> Catalog:
        """Give the backend's catalog."""
        return self._session.catalog()

    def check(self, statement: str) -> None:
        """Check a statement."""
        self._outer.check(self._session, statement)

    def rows(self, statement: str) -> list[tuple[object, ...]]:
        """Run a statement."""
        return self._outer.rows(self._session, statement)

    def keep(self, statement: str) -> str | None:
        """Keep the rows of a statement."""
        return self._outer.keep(self._session, statement)

    def confirm(self) -> None:
        """Let the session say whether its data may have changed."""
        self._session.confirm()
