"""The engines of the corpus: one record each, and every suite of this folder takes it as a parameter.

A new engine is one record in `ENGINES`: how tables come to it, what starts its server, and what it cannot say.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import pytest
from bench.postgres_data import copy_tables

from apart import Opened, apart
from chance import LONG
from secant.engines.print.print_sql import lower
from secant.engines.sources import open_source
from secant.plan import nodes as n

Keys = Mapping[str, tuple[str, ...]]
Tables = duckdb.DuckDBPyConnection


@dataclass(frozen=True, slots=True)
class Engine:
    """One engine, as the suites take it."""

    name: str
    put: Callable[[Tables, Iterable[str], Keys, Path, Any], str]
    """Copy tables of a DuckDB connection to it, with the keys that it can hold; gives the source that policies name."""
    server: str | None = None
    """The fixture that starts its server; the mark of its tests is the part before the underscore."""
    sparing: bool = False
    """Whether planning takes most of the time: the fast profile asks a few of the cases, the long one all."""
    refuses: frozenset[str] = frozenset()
    """What it computes otherwise than plans mean, over the table person: each is refused by name."""
    writes_floats: bool = True
    """Whether its text of a float is the shortest that reads back."""
    endless_days: bool = True
    """Whether it has dates before and after all others."""
    has_keys: bool = True
    """Whether its tables say which columns are unique."""
    unreachable: tuple[str, ...] = ()
    """Sources whose server is not there; no part of them may be told."""
    misspelled: tuple[str, ...] = ()
    """Sources that are not understood."""

    @property
    def marks(self) -> list[pytest.MarkDecorator]:
        """Give the marks of its tests."""
        return [] if self.server is None else [getattr(pytest.mark, self.server.split("_")[0])]


def in_a_file(source: Tables, tables: Iterable[str], keys: Keys, folder: Path, _: Any) -> str:
    """Copy tables into a DuckDB file."""
    source.execute(f"ATTACH '{folder / 'copied.duckdb'}' AS copied")
    for table in tables:
        source.execute(f'CREATE TABLE copied."{table}" AS FROM "{table}"')
        if table in keys:
            source.execute(f'ALTER TABLE copied."{table}" ADD PRIMARY KEY ({", ".join(keys[table])})')  # fmt: skip
    source.execute("DETACH copied")
    return f"duckdb:{folder / 'copied.duckdb'}"


def in_a_database(source: Tables, tables: Iterable[str], keys: Keys, _: Path, server: Any) -> str:
    """Copy tables into a new database of a PostgreSQL server."""
    address: str = server.address(server.create_database())
    copy_tables(source, tables, address, keys)
    return address


def in_parquet(source: Tables, tables: Iterable[str], _: Keys, folder: Path, server: Any) -> str:
    """Write each table to a Parquet file, which a Spark server reads; such files have no keys."""
    folder.mkdir(exist_ok=True)
    for table in tables:
        source.execute(f"COPY \"{table}\" TO '{folder / table}.parquet' (FORMAT parquet)")
    return f"{server.address}?parquet={folder}"


DUCKDB = Engine("duckdb", in_a_file)
POSTGRES = Engine(
    "postgres", in_a_database, server="postgres_server",
    refuses=frozenset((
        "product(height)", "quantile_cont(balance, 0.3)", "quantile_disc(DISTINCT age, 0.3)", "height % 2e0",
        "regexp_extract(name, 'a+')", "regexp_replace(name, 'a', 'b')", "log2(length(name))",
        "round(height, CAST(age AS BIGINT))", "seen + (seen - seen)",
    )),
    unreachable=("postgresql://SECRET_SMITH:87654321@127.0.0.1:1/nowhere", "postgresql://u@[SECRET_TOWN/x",
                 "postgres://?x=987654321"),
    misspelled=("postgresql://127.0.0.1/x?statement_seconds=soon",),
)  # fmt: skip
SPARK = Engine(
    "spark", in_parquet, server="spark_server", sparing=True, writes_floats=False, endless_days=False,
    has_keys=False,
    refuses=frozenset((
        # Java before 19 does not write the shortest text that reads back as the same number: nobody can tell it to.
        "CAST(height AS VARCHAR)", "product(age)", "quantile_disc(DISTINCT age, 0.5)", "median(balance)",
        "height % 2e0", "regexp_extract(name, 'a+')", "regexp_replace(name, 'a', 'b')", "seen - seen",
    )),
    unreachable=("spark:sc://SECRET_SMITH:1", "spark:sc://127.0.0.1:1/;token=87654321"),
    misspelled=("spark:", "spark:host:15002", "spark:sc://h?x=1", "spark:sc://h?schema=a&parquet=b"),
)  # fmt: skip
ENGINES = (DUCKDB, POSTGRES, SPARK)
OTHERS = tuple(engine for engine in ENGINES if engine is not DUCKDB)
"""Engines whose values are compared with those of DuckDB."""
PROMPT = tuple(engine for engine in ENGINES if not engine.sparing)
"""Engines that are asked everything. Spark, where a statement takes long, is not yet asked operators that no text
contains nor aggregates of hostile values."""


def on_engines(
    names: str = "",
    cases: Iterable[Sequence[object]] = ((),),
    *,
    few: Iterable[Sequence[object]] | None = None,
    engines: Iterable[Engine] = ENGINES,
) -> pytest.MarkDecorator:
    """Run a test for every case on every engine.

    The fast profile asks the `few` of an engine where planning takes long.
    """
    cases = list(cases)
    spared = cases if LONG or few is None else list(few)
    asked = [
        pytest.param(engine, *case, marks=engine.marks, id="-".join([engine.name, *map(str, case)]))
        for engine in engines
        for case in (spared if engine.sparing else cases)
    ]
    return pytest.mark.parametrize(("engine", *names.split()), asked, indirect=["engine"])


@dataclass(frozen=True, slots=True)
class Place:
    """Tables at an engine."""

    engine: Engine
    source: str
    backend: Opened

    def answer(self, plan: n.Relation) -> list[tuple[object, ...]]:
        """Give the rows of a plan, whose statement is checked before."""
        statement = lower(plan, self.backend.dialect)
        if not self.engine.sparing:
            self.backend.check(statement)
        return self.backend.rows(statement)


def opened(engine: Engine, source: str) -> Place:
    """Open what an engine holds."""
    return Place(engine, source, apart(open_source(source, threads=1)))
