"""What Secant asks of an engine: its catalog, whether a statement would run, and the rows of a statement.

An engine's own messages can quote a row, so none of them passes this border: errors say what failed, not on what.
"""

from __future__ import annotations

from typing import Protocol

from secant.release.dialect import Dialect
from secant.terms.catalog import Catalog


class Backend(Protocol):
    """An engine that holds the data."""

    dialect: Dialect

    def catalog(self) -> Catalog:
        """Give names and types of all tables."""
        ...

    def check(self, statement: str) -> None:
        """Raise BAK-003 if the engine would not accept the statement. Reads no rows."""
        ...

    def rows(self, statement: str) -> list[tuple[object, ...]]:
        """Run a statement and give its rows; BAK-002 if it fails."""
        ...

    def close(self) -> None:
        """Let go of the engine."""
        ...
