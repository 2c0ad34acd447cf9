"""What a Spark server says of its tables: names, types, where their files are. Never a row.

In: a connection. Out: tables as they are offered. Only tables whose rows are Parquet files are: Spark cannot keep a
table as it is while a question is answered, but files can be compared. Constraints of Spark's catalog are not kept by
it, so none is believed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from secant.engines.dialect import Dialect, quote
from secant.engines.offered import Offer, Stored, offered
from secant.engines.spark.text import in_spark_syntax
from secant.errors import BackendError
from secant.records import frozen
from secant.schema import types as t
from secant.schema.catalog import Catalog

_PLAIN = {
    "boolean": Offer(t.BOOLEAN), "bigint": Offer(t.INTEGER), "string": Offer(t.TEXT), "date": Offer(t.DATE),
    "timestamp_ntz": Offer(t.TIMESTAMP),
    **{kind: Offer(t.INTEGER, "CAST({0} AS BIGINT)") for kind in ("tinyint", "smallint", "int")},
    # Parquet files state ends of columns without NaN: a filter must not be held against them, or a group of rows is
    # skipped, or not, as other rows decide. What `nanvl` computes is not.
    "double": Offer(t.DOUBLE, "nanvl({0}, CAST('NaN' AS DOUBLE))"),
    "float": Offer(t.DOUBLE, "nanvl(CAST({0} AS DOUBLE), CAST('NaN' AS DOUBLE))"),
    "timestamp": Offer(t.TIMESTAMP, "CAST({0} AS TIMESTAMP_NTZ)"),  # the session's zone is UTC
    "binary": Offer(t.BLOB, "sha2({0}, 256)", merges=True),
}  # fmt: skip
_OTHER_ROWS = "it is a view: its rows are those of other tables; name those"
_NO_SNAPSHOT = (
    "its rows are not kept in Parquet files, and Spark cannot say whether they stay as they are"
)


@frozen
class StoredTable:
    """A table and where its files are."""

    name: str
    place: str
    """As statements write it."""
    folder: str
    """The path of its files."""
    listed: bool
    """Whether it is in the server's catalog, which remembers its files until it is told to look again."""


def column_offer(type_text: str) -> Offer:
    """Say how a column is offered, from its type as Spark writes it."""
    if match := re.fullmatch(r"decimal\((\d+),(\d+)\)", type_text):
        return Offer(t.decimal(int(match[1]), int(match[2])))
    plain = re.sub(r"\(\d+\)$", "", type_text)
    if plain in ("char", "varchar"):
        return _PLAIN["string"]
    word = re.split(r"[ (<]", type_text, maxsplit=1)[0]
    return _PLAIN.get(type_text) or Offer(reason=f"its type, {word}, has no counterpart here")


def read_catalog(
    server: Any, schemas: tuple[str, ...], folder: str | None, dialect: Dialect
) -> tuple[Catalog, Dialect, dict[str, StoredTable]]:
    """Read the tables of some schemas, or of a folder of Parquet files; also how they are read, and where each is."""
    missing: dict[str, str] = {}
    named: tuple[str, ...] = ()
    if folder is not None:
        tables = list(_folder_tables(server, folder))
    else:
        tables, missing = _schema_tables(server, schemas)
        named = schemas
    stored = [Stored(table.name, table.place, columns_of(server, table)) for table in tables]
    # Spark takes every column of a Parquet file for one that may be NULL, so none is known to be filled.
    catalog, reading = offered(stored, dialect, (), missing, named)
    return catalog, reading, {table.name: table for table in tables}


def columns_of(server: Any, table: StoredTable) -> dict[str, Offer]:
    """Read the columns of a table, as they are now."""
    fields = server.sql(in_spark_syntax(f"SELECT * FROM {table.place}")).schema.fields
    return {field.name: column_offer(field.dataType.simpleString()) for field in fields}


def _schema_tables(
    server: Any, schemas: tuple[str, ...]
) -> tuple[list[StoredTable], dict[str, str]]:
    there = [row[0] for row in server.sql("SHOW SCHEMAS").collect()]
    tables: list[StoredTable] = []
    missing: dict[str, str] = {}
    for schema in schemas:
        if schema not in there:
            raise BackendError(
                "BAK-001",
                f"the Spark server has no schema {schema[:80]!r}",
                hint="the schemas are: " + ", ".join(there[:40]),
            )
        for row in server.sql(in_spark_syntax(f"SHOW TABLES IN {quote(schema)}")).collect():
            if row["isTemporary"]:
                continue
            table = row["tableName"]
            name = table if schema == schemas[0] else f"{schema}.{table}"
            quoted = f"{quote(schema)}.{quote(table)}"
            details = _description(server, quoted)
            if details.get("Type") == "VIEW":
                missing[name] = _OTHER_ROWS
            elif details.get("Provider", "").lower() != "parquet" or "Location" not in details:
                missing[name] = _NO_SNAPSHOT
            else:
                tables.append(StoredTable(name, quoted, details["Location"], listed=True))
    return tables, missing


def _description(server: Any, table: str) -> dict[str, str]:
    """Read what stands behind the columns in the description of a table."""
    rows = server.sql(in_spark_syntax(f"DESCRIBE TABLE EXTENDED {table}")).collect()
    names = [row[0] for row in rows]
    start = names.index("# Detailed Table Information") if names else 0
    return {row[0]: row[1] for row in rows[start + 1 :]}


def _folder_tables(server: Any, folder: str) -> Iterator[StoredTable]:
    """Find the tables of a folder: each `NAME.parquet`, a file or a folder of them, or each folder with such files."""
    root = folder.rstrip("/")
    tables = set()
    for path, _, _ in files_below(server, [root]):
        _, _, relative = path.partition(root + "/")
        first, _, below = relative.partition("/")
        if first.endswith(".parquet") or below.endswith(".parquet"):
            tables.add(first)
    if not tables:
        raise BackendError(
            "BAK-001",
            "the folder in the source holds no .parquet files that the Spark server can read",
            hint="name a folder in which each NAME.parquet, or folder of them, is a table",
        )
    for first in sorted(tables):
        path = f"{root}/{first}"
        yield StoredTable(
            first.removesuffix(".parquet"), f"parquet.{quote(path)}", path, listed=False
        )


def files_below(server: Any, folders: list[str]) -> list[tuple[str, int, int]]:
    """List files with their sizes and when they were written, in microseconds; none is opened."""
    files = server.read.format("binaryFile").option("recursiveFileLookup", "true").load(folders)
    rows = files.selectExpr(
        "path", "length", "unix_micros(CAST(modificationTime AS TIMESTAMP_LTZ)) AS at"
    ).toArrow()
    return sorted(tuple(row.values()) for row in rows.to_pylist())
