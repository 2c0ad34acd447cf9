"""Put benchmark data into PostgreSQL: DuckDB writes CSV, the server copies it in, keys and statistics follow.

In: tables of a DuckDB connection, or a directory of TPC-H Parquet files, and the address of an empty database. Out:
tables of the same names with the number of their rows. `python -m bench.postgres_data DIRECTORY ADDRESS SCALE`.
"""

from __future__ import annotations

import argparse
import re
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path

import duckdb
import psycopg
from psycopg import sql

from secant.engines.dialect import quote, text

TPCH_KEYS = {
    "region": ("r_regionkey",), "nation": ("n_nationkey",), "supplier": ("s_suppkey",),
    "customer": ("c_custkey",), "part": ("p_partkey",), "partsupp": ("ps_partkey", "ps_suppkey"),
    "orders": ("o_orderkey",), "lineitem": ("l_orderkey", "l_linenumber"),
}  # fmt: skip
_TYPES = {
    "BOOLEAN": "boolean", "TINYINT": "smallint", "SMALLINT": "smallint", "INTEGER": "integer",
    "BIGINT": "bigint", "FLOAT": "real", "DOUBLE": "double precision", "VARCHAR": "text",
    "DATE": "date", "TIMESTAMP": "timestamp",
}  # fmt: skip
CHUNK = 1 << 20


def load_tpch(directory: str | Path, database_url: str, scale: float) -> dict[str, int]:
    """Load the eight TPC-H tables of a scale; says so if the files are of another one."""
    folder = Path(directory)
    with duckdb.connect() as source:
        for name in TPCH_KEYS:
            pattern = (
                folder / name / "*.parquet"
                if (folder / name).is_dir()
                else folder / f"{name}.parquet"
            )
            source.execute(
                f"CREATE VIEW {quote(name)} AS SELECT * FROM read_parquet({text(str(pattern))})"
            )
        ((customers,),) = source.execute("SELECT count(*) FROM customer").fetchall()
        if customers != round(150_000 * scale):
            raise ValueError(f"{folder} does not hold TPC-H of scale {scale}")
        return copy_tables(source, TPCH_KEYS, database_url, TPCH_KEYS)


def copy_tables(
    source: duckdb.DuckDBPyConnection,
    tables: Iterable[str],
    database_url: str,
    keys: Mapping[str, tuple[str, ...]] | None = None,
) -> dict[str, int]:
    """Copy tables or views of a DuckDB connection, with primary keys where they are given."""
    counts = {}
    with psycopg.connect(database_url) as target:
        for name in tables:
            _create(source, target, name)
            counts[name] = _copy(source, target, name)
            if keys and name in keys:
                columns = sql.SQL(", ").join(map(sql.Identifier, keys[name]))
                target.execute(
                    sql.SQL("ALTER TABLE {} ADD PRIMARY KEY ({})").format(
                        sql.Identifier(name), columns
                    )
                )
        target.commit()
        target.autocommit = True
        for name in counts:
            target.execute(sql.SQL("VACUUM (ANALYZE) {}").format(sql.Identifier(name)))
    return counts


def _create(source: duckdb.DuckDBPyConnection, target: psycopg.Connection, name: str) -> None:
    described = source.execute(f"DESCRIBE {quote(name)}").fetchall()
    columns = [
        sql.SQL("{} {}").format(sql.Identifier(column), sql.SQL(_type(written)))
        for column, written, *_ in described
    ]
    target.execute(
        sql.SQL("CREATE TABLE {} ({})").format(sql.Identifier(name), sql.SQL(", ").join(columns))
    )


def _type(written: str) -> str:
    if re.fullmatch(r"DECIMAL\(\d+,\s*\d+\)", written):
        return written.replace("DECIMAL", "numeric")
    return _TYPES[written]


def _copy(source: duckdb.DuckDBPyConnection, target: psycopg.Connection, name: str) -> int:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "rows.csv"
        # An empty text is quoted and a NULL is not: both sides agree on that.
        source.execute(
            f"COPY (SELECT * FROM {quote(name)}) TO {text(str(file))} (FORMAT csv, HEADER false)"
        )
        with target.cursor() as cursor:
            command = sql.SQL("COPY {} FROM STDIN (FORMAT csv)").format(sql.Identifier(name))
            with cursor.copy(command) as copy, file.open("rb") as rows:
                while chunk := rows.read(CHUNK):
                    copy.write(chunk)
            return cursor.rowcount


def main() -> None:
    """Load from the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("directory")
    parser.add_argument("address")
    parser.add_argument("scale", type=float)
    asked = parser.parse_args()
    for name, rows in load_tpch(asked.directory, asked.address, asked.scale).items():
        print(f"{name}: {rows} rows")


if __name__ == "__main__":
    main()
