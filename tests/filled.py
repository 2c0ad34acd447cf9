"""Rows put into a table of DuckDB by one statement; row by row, a few thousand take seconds."""

from __future__ import annotations

from collections.abc import Sequence

import duckdb


def fill(
    connection: duckdb.DuckDBPyConnection, table: str, rows: Sequence[Sequence[object]]
) -> None:
    """Insert rows."""
    columns = [list(column) for column in zip(*rows, strict=True)]
    each = ", ".join("unnest(?)" for _ in columns)
    connection.execute(f"INSERT INTO {table} SELECT {each}", columns)
