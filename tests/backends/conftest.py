"""The small schema in a DuckDB file, opened as Secant opens it."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pytest
from row_compare import Row, contents

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
