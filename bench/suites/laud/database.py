"""TPC-H data for the 17 queries: generated when first asked for, kept for the next time.

In: a scale and a directory. Out: a source that `secant.connect` opens: a DuckDB file, a folder of Parquet files, or
a PostgreSQL database, whose tables have for each date also the months that the paper's queries
compare. An existing table that this module did not make is never touched.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from fractions import Fraction
from pathlib import Path

import duckdb

from secant.errors import BackendError, UsageError
from secant.numeric.parameters import positive

TABLES = ("region", "nation", "part", "supplier", "partsupp", "customer", "orders", "lineitem")
KEYS = {
    "region": "r_regionkey",
    "nation": "n_nationkey",
    "part": "p_partkey",
    "supplier": "s_suppkey",
    "partsupp": "ps_partkey, ps_suppkey",
    "customer": "c_custkey",
    "orders": "o_orderkey",
    "lineitem": "l_orderkey, l_linenumber",
}
MARK = "secant_bench_laud"
"""A table that tells which scale was loaded into a PostgreSQL database, and that it was this module."""
SMALLEST_SCALE = Fraction(1, 100)  # below, the generator repeats keys of partsupp
LARGEST_SCALE = 1000
PART = 1 << 20  # bytes handed to the server at a time


def default_directory() -> Path:
    """Give the directory for generated data: SECANT_BENCH_DATA, or the user's cache."""
    named = os.environ.get("SECANT_BENCH_DATA")
    if named:
        return Path(named)
    cache = os.environ.get("XDG_CACHE_HOME")
    return (Path(cache) if cache else Path.home() / ".cache") / "secant" / "tpch"


def scale_of(text: str) -> str:
    """Give a scale as it stands in file names.

    >>> scale_of("0.10")
    '0.1'
    """
    scale = positive(text, "the scale")
    if not SMALLEST_SCALE <= scale <= LARGEST_SCALE:
        raise UsageError("USE-001", f"the scale must lie between 0.01 and {LARGEST_SCALE}")
    return f"{float(scale):g}"


def parquet_of(scale: str, directory: Path) -> Path:
    """Give a directory of Parquet files, generated now if it is not there."""
    place = directory / f"sf{scale}"
    if all((place / f"{table}.parquet").exists() for table in TABLES):
        return place
    beside = str(Path(sys.executable).parent)
    tool = shutil.which("tpchgen-cli", path=beside) or shutil.which("tpchgen-cli")
    if tool is None:
        raise UsageError(
            "USE-006",
            "the generator of TPC-H data is not installed",
            hint="install the package tpchgen-cli, or name a directory that has the data",
        )
    try:
        directory.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=directory) as half:
            # Under its own name only when it is whole: an interrupted run leaves nothing behind.
            made = Path(half) / "made"
            command = [tool, "parquet", "-s", scale, f"--output-dir={made}"]
            subprocess.run(command, check=True, capture_output=True)
            made.rename(place)
    except (OSError, subprocess.CalledProcessError):
        raise BackendError(
            "BAK-001",
            f"TPC-H data of scale {scale} cannot be made in {directory}",
            hint="is there room on the disk, and may it be written to? --data names another directory",
        ) from None
    return place


def duckdb_file(scale: str, directory: Path) -> Path:
    """Give a DuckDB file with all tables, built now if it is not there."""
    place = directory / f"laud-sf{scale}.duckdb"
    if place.exists():
        return place
    parquet = parquet_of(scale, directory)
    try:
        with tempfile.TemporaryDirectory(dir=directory) as half:
            made = Path(half) / "made.duckdb"
            with duckdb.connect(str(made)) as connection:
                for table in TABLES:
                    _with_months(connection, table, parquet / f"{table}.parquet")
            made.rename(place)
    except (OSError, duckdb.Error):
        raise BackendError(
            "BAK-001",
            f"the database of scale {scale} cannot be built in {directory}",
            hint="is there room on the disk? --data names another directory",
        ) from None
    return place


def parquet_folder(scale: str, directory: Path) -> Path:
    """Give a folder of Parquet files with the same tables as the DuckDB file, written now if it is not there."""
    place = directory / f"laud-sf{scale}-parquet"
    if place.exists():
        return place
    file = duckdb_file(scale, directory)
    with tempfile.TemporaryDirectory(dir=directory) as half:
        made = Path(half) / "made"
        made.mkdir()
        with duckdb.connect(str(file), read_only=True) as connection:
            for table in TABLES:
                connection.execute(f"COPY {table} TO '{made / table}.parquet' (FORMAT parquet)")
        made.rename(place)
    return place


def _with_months(connection: duckdb.DuckDBPyConnection, table: str, parquet: Path) -> None:
    """Copy a table; a date `d` gets a column `dG`: months of 30 days since 1980."""
    source = "read_parquet($file)"
    file = {"file": str(parquet)}
    shape = connection.execute(f"DESCRIBE SELECT * FROM {source}", file).fetchall()
    dates = [str(row[0]) for row in shape if row[1] == "DATE"]
    months = "".join(f", ({d} - DATE '1980-01-01')::DOUBLE / 30.0 AS {d}G" for d in dates)
    connection.execute(f"CREATE TABLE {table} AS SELECT *{months} FROM {source}", file)


def postgres_address(scale: str, directory: Path, address: str) -> str:
    """Give the address of a PostgreSQL database that holds the tables, loaded now if it is empty."""
    try:
        import psycopg
    except ImportError:
        raise UsageError(
            "USE-006",
            "the package psycopg is needed for PostgreSQL",
            hint="pip install 'secant[postgres]'",
        ) from None
    file = duckdb_file(scale, directory)
    try:
        with psycopg.connect(address) as server, duckdb.connect(str(file), read_only=True) as data:
            found = server.execute(
                "SELECT table_name FROM information_schema.tables "
                "WHERE (table_schema = 'public' AND table_name = ANY(%s)) OR table_schema = %s",
                (list(TABLES), MARK),
            ).fetchall()
            if ("mark",) in found:
                (loaded,) = server.execute(f"SELECT scale FROM {MARK}.mark").fetchone() or ("",)
                if loaded == scale:
                    return address
                raise UsageError("USE-001", f"that database holds the data of scale {loaded}")
            if found:
                raise UsageError(
                    "USE-001",
                    "that database has tables of these names which the benchmark did not make",
                    hint="name an empty database",
                )
            for table in TABLES:
                _load(server, data, table)
            # In a schema of its own: a table that the policy does not name would stop every question.
            server.execute(f"CREATE SCHEMA {MARK}")
            server.execute(f"CREATE TABLE {MARK}.mark (scale text)")
            server.execute(f"INSERT INTO {MARK}.mark VALUES (%s)", (scale,))
            server.commit()
            server.autocommit = True
            server.execute("ANALYZE")
    except psycopg.Error:
        raise BackendError(
            "BAK-001",
            "the data cannot be loaded into that PostgreSQL database",
            hint="is it running, and may this user create tables in it?",
        ) from None
    return address


def _load(server: object, data: duckdb.DuckDBPyConnection, table: str) -> None:
    """Copy one table through a CSV file, which both sides read and write fast."""
    import psycopg

    assert isinstance(server, psycopg.Connection)
    columns = [(str(row[0]), str(row[1])) for row in data.execute(f"DESCRIBE {table}").fetchall()]
    types = {"DOUBLE": "DOUBLE PRECISION", "VARCHAR": "TEXT"}
    shape = ", ".join(f"{name.lower()} {types.get(kind, kind)}" for name, kind in columns)
    server.execute(f"CREATE TABLE {table} ({shape}, PRIMARY KEY ({KEYS[table]}))")
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "rows.csv"
        data.execute(f"COPY {table} TO '{file}' (HEADER false)")
        copying = f"COPY {table} FROM STDIN (FORMAT csv)"
        with file.open("rb") as rows, server.cursor().copy(copying) as copy:
            while part := rows.read(PART):
                copy.write(part)
