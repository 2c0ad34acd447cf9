"""The small schema in a DuckDB file, opened as Secant opens it; and the engines, each with tables of one's choice."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import duckdb
import pytest
from engines import Engine, Keys, Place, Tables, opened
from row_compare import Row, contents
from scalar_grid import fill, grid_of

from apart import apart
from secant.engines.backend import Backend
from secant.engines.duckdb.session import open_file

SCHEMA = Path(__file__).parent.parent / "data" / "small_schema.sql"


@pytest.fixture(scope="session")
def small(tmp_path_factory: pytest.TempPathFactory) -> Backend:
    path = tmp_path_factory.mktemp("small") / "small.duckdb"
    with duckdb.connect(str(path)) as connection:
        connection.execute(SCHEMA.read_text())
    return apart(open_file(path, threads=1))


@pytest.fixture(scope="session")
def small_rows(small: Backend) -> dict[str, list[Row]]:
    return contents(small)


@pytest.fixture
def engine(request: pytest.FixtureRequest) -> Engine:
    """The engine of a case, as `on_engines` names it."""
    return request.param


@pytest.fixture(scope="session")
def kept() -> Iterator[Callable[[Engine, str, Callable[[], Any]], Any]]:
    """Make something once for each engine: pytest would make it anew whenever the next case is for another engine."""
    made: dict[tuple[str, str], Any] = {}

    def once(engine: Engine, what: str, make: Callable[[], Any]) -> Any:
        key = (engine.name, what)
        if key not in made:
            made[key] = make()
        return made[key]

    yield once
    for thing in made.values():
        if isinstance(thing, Place):
            thing.backend.close()


@pytest.fixture
def put(
    engine: Engine, request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Callable[[Tables, Iterable[str], Keys], str]:
    """Copy tables of a DuckDB connection to the engine, and give the source."""

    def copied(connection: Tables, tables: Iterable[str], keys: Keys | None = None) -> str:
        server = None if engine.server is None else request.getfixturevalue(engine.server)
        folder = tmp_path_factory.mktemp(engine.name)
        return engine.put(connection, tables, keys or {}, folder, server)

    return copied


@pytest.fixture
def small_there(put, engine: Engine, kept) -> Place:
    """The small schema at the engine."""

    def make() -> Place:
        with duckdb.connect() as connection:
            connection.execute(SCHEMA.read_text())
            return opened(engine, put(connection, ("person", "visit", "nothing")))

    return kept(engine, "small", make)


@pytest.fixture
def grid_here(engine: Engine, kept, tmp_path_factory: pytest.TempPathFactory) -> Backend:
    """The hostile values that the engine can hold, on DuckDB."""

    def make() -> Backend:
        path = tmp_path_factory.mktemp("grid") / "grid.duckdb"
        with duckdb.connect(str(path)) as connection:
            fill(connection, engine)
        return apart(open_file(path, threads=1))

    return kept(engine, "grid on DuckDB", make)


@pytest.fixture
def grid_there(put, engine: Engine, kept) -> Place:
    """The same values at the engine."""

    def make() -> Place:
        with duckdb.connect() as connection:
            fill(connection, engine)
            return opened(engine, put(connection, grid_of(engine)))

    return kept(engine, "grid", make)
