"""The 22 TPC-H queries at scale 0.01: the statement printed for PostgreSQL gives what DuckDB gives for the text."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from postgres_small import TPCH_KEYS, load_tpch, ordered
from row_compare import difference

from apart import apart
from secant.plan.from_sql import from_sql
from secant.plan.rewrite import normalize
from secant.plan.total import make_total
from secant.release.duckdb import open_directory
from secant.release.lower import lower
from secant.release.postgres import open_server
from secant.release.postgres_scalars import POSTGRES
from secant.terms import types as t

pytestmark = pytest.mark.postgres
SCALE = 0.01
QUERIES = {
    path.stem: path.read_text()
    for path in sorted((Path(__file__).parent.parent / "data" / "tpch").glob("q*.sql"))
}


@pytest.fixture(scope="module")
def both(postgres_server, tmp_path_factory):
    """The same data on both engines."""
    directory = tmp_path_factory.mktemp("postgres_tpch")
    command = shutil.which("tpchgen-cli", path=str(Path(sys.executable).parent))
    assert command is not None
    arguments = [command, "parquet", "-s", str(SCALE), f"--output-dir={directory}"]
    subprocess.run(arguments, check=True, capture_output=True)
    address = postgres_server.address(postgres_server.create_database())
    counts = load_tpch(directory, address, SCALE)
    assert counts["orders"] == 15_000
    with pytest.raises(ValueError, match="scale 1"):
        load_tpch(directory, address, 1.0)
    ours, theirs = (
        apart(open_server(address)),
        apart(open_directory(directory, "parquet", threads=1)),
    )
    yield ours, theirs
    ours.close()
    theirs.close()


def test_the_catalogs_agree(both):
    ours, theirs = both
    assert set(ours.catalog().tables) == set(TPCH_KEYS)
    for name, table in ours.catalog().tables.items():
        assert table.columns == theirs.catalog().tables[name].columns
        assert table.unique == (TPCH_KEYS[name],)
    assert ours.catalog().tables["lineitem"].type_of("l_discount") == t.decimal(15, 2)


@pytest.mark.parametrize("shape", ["plain", "total"])
@pytest.mark.parametrize("name", QUERIES)
def test_answers_are_those_of_duckdb(both, name, shape):
    ours, theirs = both
    plan = normalize(from_sql(QUERIES[name], ours.catalog()))
    plan = plan if shape == "plain" else make_total(plan)
    statement = lower(plan, POSTGRES)
    ours.check(statement)
    want = theirs.rows(QUERIES[name])
    assert want
    assert difference(ours.rows(statement), want, ordered=ordered(plan)) is None
