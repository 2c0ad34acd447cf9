"""Small databases at engines: tables with the catalog's types, opened as Secant opens them.

In: columns by table, and rows. Out: a backend. Never here: what is asked there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import duckdb
import psycopg
from derivative_distance import Database

from apart import apart
from secant.engines.sources import open_source
from secant.schema.types import Type

Columns = Mapping[str, Sequence[tuple[str, Type]]]


def sql_type(kind: Type) -> str:
    """Write a type as DuckDB has it."""
    if kind.kind == "DECIMAL":
        return f"DECIMAL({kind.precision}, {kind.scale})"
    return {"INTEGER": "BIGINT", "TEXT": "VARCHAR"}.get(kind.kind, kind.kind)


def filled(connection: duckdb.DuckDBPyConnection, columns: Columns, database: Database) -> None:
    """Make the tables of a database."""
    for table, fields in columns.items():
        shape = ", ".join(f'"{name}" {sql_type(kind)}' for name, kind in fields)
        connection.execute(f'CREATE TABLE "{table}" ({shape})')
        for row in database[table]:
            values = [row[name] for name, _ in fields]
            places = ", ".join("?" * len(values))
            connection.execute(f'INSERT INTO "{table}" VALUES ({places})', values)


def loaded(place: Path, columns: Columns, database: Database) -> Any:
    """Write a database to a file and open it as Secant does."""
    with duckdb.connect(str(place)) as connection:
        filled(connection, columns, database)
    return apart(open_source(f"duckdb:{place}", beside=None))


def on_postgres(address: str, columns: Columns, database: Database) -> Any:
    """Write a database to a server, whole numbers in narrow columns, and open it as Secant does."""
    named = {"INTEGER": "integer", "DOUBLE": "double precision", "TEXT": "text"}
    with psycopg.connect(address) as connection:
        for table, fields in columns.items():
            shape = ", ".join(f'"{c}" {named.get(k.kind) or sql_type(k)}' for c, k in fields)
            connection.execute(f'DROP TABLE IF EXISTS "{table}"')
            connection.execute(f'CREATE TABLE "{table}" ({shape})')
            for row in database[table]:
                values = [row[name] for name, _ in fields]
                places = ", ".join(["%s"] * len(values))
                connection.execute(f'INSERT INTO "{table}" VALUES ({places})', values)
    return apart(open_source(address, beside=None))


def on_spark(server: Any, folder: Path, columns: Columns, database: Database) -> Any:
    """Write a database to Parquet files, and open these at a Spark server as Secant does."""
    folder.mkdir()
    with duckdb.connect() as connection:
        filled(connection, columns, database)
        for table in columns:
            connection.execute(f"COPY \"{table}\" TO '{folder / table}.parquet' (FORMAT parquet)")
    return apart(open_source(f"{server.address}?parquet={folder}", beside=None))
