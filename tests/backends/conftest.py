"""The small schema in a DuckDB file, opened as Secant opens it; and the engines, each with tables of one's choice."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import duckdb
import pytest
from engines import Engine, Keys, Place, Tables, opened
from row_compare import Row, contents
from scalar_grid import fill, grid_of

from apart import apart
from secant.release.backend import Backend
from secant.release.duckdb import open_file

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


@pytest.fixture(scope="module")
def engine(request: pytest.FixtureRequest) -> Engine:
    """The engine of a case: `parametrize("engine", asked(), indirect=["engine"])`."""
    return request.param


@pytest.fixture(scope="module")
def put(
    engine: Engine, request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Callable[[Tables, Iterable[str], Keys], str]:
    """Copy tables of a DuckDB connection to the engine, and give the source."""

    def copied(connection: Tables, tables: Iterable[str], keys: Keys | None = None) -> str:
        server = None if engine.server is None else request.getfixturevalue(engine.server)
        folder = tmp_path_factory.mktemp(engine.name)
        return engine.put(connection, tables, keys or {}, folder, server)

    return copied


@pytest.fixture(scope="module")
def small_there(put, engine: Engine) -> Iterator[Place]:
    """The small schema at the engine."""
    with duckdb.connect() as connection:
        connection.execute(SCHEMA.read_text())
        place = opened(engine, put(connection, ("person", "visit", "nothing")))
    yield place
    place.backend.close()


@pytest.fixture(scope="module")
def grid_here(engine: Engine, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Backend]:
    """The hostile values that the engine can hold, on DuckDB."""
    path = tmp_path_factory.mktemp("grid") / "grid.duckdb"
    with duckdb.connect(str(path)) as connection:
        fill(connection, engine)
    backend = apart(open_file(path, threads=1))
    yield backend
    backend.close()


@pytest.fixture(scope="module")
def grid_there(put, engine: Engine) -> Iterator[Place]:
    """The same values at the engine."""
    with duckdb.connect() as connection:
        fill(connection, engine)
        place = opened(engine, put(connection, grid_of(engine)))
    yield place
    place.backend.close()
