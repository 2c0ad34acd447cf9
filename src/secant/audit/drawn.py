"""An engine in memory that holds a drawn database, with the owner's names and types.

In: a catalog, rows. Out: a Backend, so that a question takes the product's own way: compiled, printed and read as ever.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager

import duckdb

from secant.audit.neighbors import Database
from secant.engines.dialect import DUCKDB, Dialect, quote
from secant.engines.duckdb.session import DuckDBSession
from secant.policy.policy import Limits
from secant.schema.catalog import Catalog
from secant.schema.types import Type


class DrawnEngine:
    """Tables that are filled anew for each database."""

    dialect: Dialect = DUCKDB

    def __init__(self, catalog: Catalog, limits: Limits) -> None:
        self._catalog, self._limits = catalog, limits
        self._engine = duckdb.connect(":memory:")
        self._held: Database = {}
        for table in catalog.tables.values():
            columns = ", ".join(f"{quote(c)} {_written(kind)}" for c, kind in table.columns)
            self._engine.execute(f"CREATE TABLE {quote(table.name)} ({columns})")

    def put(self, database: Database) -> None:
        """Hold these rows, and no others; tables that are the same stay."""
        for name, rows in database.items():
            if self._held.get(name) is rows:
                continue
            table = self._catalog.tables[name]
            self._engine.execute(f"DELETE FROM {quote(table.name)}")
            if rows:
                places = ", ".join("?" for _ in table.columns)
                values = [[row[c.lower()] for c, _ in table.columns] for row in rows]
                self._engine.executemany(
                    f"INSERT INTO {quote(table.name)} VALUES ({places})", values
                )
        self._held = {**self._held, **database}

    def catalog(self) -> Catalog:
        """Give the owner's catalog."""
        return self._catalog

    @contextmanager
    def session(self, tables: Collection[str] = ()) -> Iterator[DuckDBSession]:
        """Begin a question."""
        yield DuckDBSession(self._engine, self.catalog, lambda: None, self._limits)

    def close(self) -> None:
        """Let go of the engine."""
        self._engine.close()


def _written(kind: Type) -> str:
    return str(kind) if kind.kind == "DECIMAL" else DUCKDB.types[kind.kind]
