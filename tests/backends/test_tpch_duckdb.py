"""Text → plan → SQL gives what the text gives on DuckDB, and so does `evaluate`.

Three ways to answer each query must agree: DuckDB on the user's text, DuckDB on the statement that
is printed from the plan, and the interpreter over Python rows. Plans are taken as bound and as
normalized.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from row_compare import Row, contents, difference

from apart import apart
from secant.plan import nodes as n
from secant.plan.evaluate import evaluate
from secant.plan.from_sql import from_sql
from secant.plan.rewrite import normalize
from secant.release.backend import Backend
from secant.release.duckdb import open_directory
from secant.release.lower import lower

DATA = Path(__file__).parent.parent / "data"
TPCH = {path.stem: path.read_text() for path in sorted((DATA / "tpch").glob("q*.sql"))}
SMALL = [
    line
    for line in (DATA / "small_queries.sql").read_text().splitlines()
    if line and not line.startswith("--")
]
SHAPES: dict[str, Callable[[n.Relation], n.Relation]] = {
    "bound": lambda plan: plan,
    "normalized": normalize,
}


def ordered(plan: n.Relation) -> bool:
    while isinstance(plan, n.Project | n.Limit):
        plan = plan.input
    return isinstance(plan, n.Sort)


# ── TPC-H ────────────────────────────────────────────────────────────────────────────────────────


def generated(directory: Path, scale: str) -> Backend:
    command = shutil.which("tpchgen-cli", path=str(Path(sys.executable).parent))
    assert command is not None
    subprocess.run(
        [command, "parquet", "-s", scale, f"--output-dir={directory}"],
        check=True,
        capture_output=True,
    )
    return apart(open_directory(directory, "parquet", threads=1))


@pytest.fixture(scope="session")
def tpch(tmp_path_factory: pytest.TempPathFactory) -> Backend:
    return generated(tmp_path_factory.mktemp("tpch"), "0.01")


@pytest.fixture(scope="session")
def tpch_rows(tpch: Backend) -> dict[str, list[Row]]:
    return contents(tpch)


@pytest.fixture(scope="session")
def little_tpch(tmp_path_factory: pytest.TempPathFactory) -> Backend:
    return generated(tmp_path_factory.mktemp("little_tpch"), "0.001")


def test_all_queries_are_there():
    assert list(TPCH) == [f"q{number:02}" for number in range(1, 23)]
    assert len(SMALL) >= 150


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("name", TPCH)
def test_tpch_through_the_plan(tpch, name, shape):
    plan = SHAPES[shape](from_sql(TPCH[name], tpch.catalog()))
    want = tpch.rows(TPCH[name])
    assert difference(tpch.rows(lower(plan)), want, ordered=ordered(plan)) is None
    assert want


@pytest.mark.parametrize("name", TPCH)
def test_tpch_by_the_interpreter(tpch, tpch_rows, name):
    plan = normalize(from_sql(TPCH[name], tpch.catalog()))
    want = tpch.rows(TPCH[name])
    assert difference(evaluate(plan, tpch_rows), want, ordered=ordered(plan)) is None


@pytest.mark.long
@pytest.mark.parametrize("name", sorted(set(TPCH) - {"q19"}))
def test_tpch_as_bound_by_the_interpreter(tpch, tpch_rows, name):
    plan = from_sql(TPCH[name], tpch.catalog())
    want = tpch.rows(TPCH[name])
    assert difference(evaluate(plan, tpch_rows), want, ordered=ordered(plan)) is None


@pytest.mark.long
def test_a_join_inside_or_as_bound_on_a_smaller_sample(little_tpch):
    plan = from_sql(TPCH["q19"], little_tpch.catalog())
    want = little_tpch.rows(TPCH["q19"])
    got = evaluate(plan, contents(little_tpch))
    assert difference(got, want, ordered=ordered(plan)) is None


# ── a small schema with everything that bites ────────────────────────────────────────────────────


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("query", SMALL)
def test_small_queries_three_ways(small, small_rows, query, shape):
    plan = SHAPES[shape](from_sql(query, small.catalog()))
    want = small.rows(query)
    by_plan, by_hand = small.rows(lower(plan)), evaluate(plan, small_rows)
    assert difference(by_plan, want, ordered=ordered(plan)) is None
    assert difference(by_hand, want, ordered=ordered(plan)) is None


def test_the_comparison_can_fail():
    assert difference([(1,)], [(1,), (1,)], ordered=False) is not None
    assert difference([(1,), (2,)], [(2,), (1,)], ordered=True) is not None
    assert difference([(1,), (2,)], [(2,), (1,)], ordered=False) is None
    assert difference([(1.0,)], [(1.0 + 1e-6,)], ordered=False) is not None
    assert difference([(1.0,)], [(1.0 + 1e-12,)], ordered=False) is None
    assert difference([(1,)], [(1.0,)], ordered=False) is not None
    assert difference([(None,)], [(0,)], ordered=False) is not None
    assert difference([(float("nan"),)], [(float("nan"),)], ordered=False) is None
