"""Tables of DuckDB on Spark: each written to a Parquet file of one folder, which the server reads."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import duckdb

from apart import Opened, apart
from secant.release.spark import open_server


def copied(connection: duckdb.DuckDBPyConnection, tables: Iterable[str], folder: Path) -> Path:
    """Write tables of a connection into a folder, one file each."""
    folder.mkdir(exist_ok=True)
    for table in tables:
        connection.execute(f"COPY \"{table}\" TO '{folder / table}.parquet' (FORMAT parquet)")
    return folder


def on_spark(address: str, folder: Path) -> Opened:
    """Open a folder of Parquet files at a server."""
    return apart(open_server(f"{address.removeprefix('spark:')}?parquet={folder}"))
