"""The 22 TPC-H queries at scale 0.01, and the 17 of the paper: each engine gives what DuckDB gives for the text.

So does the interpreter over Python rows. Plans are taken as bound, as normalized, and unable to fail.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path

import duckdb
import pytest
from bench.postgres_data import TPCH_KEYS, load_tpch
from bench.suites.laud.database import TABLES, duckdb_file, parquet_of
from bench.suites.laud.forms import QUERIES, profile_of
from bench.suites.laud.measure import measure
from engines import OTHERS, Place, on_engines, opened
from row_compare import Row, contents, difference, ordered

from apart import apart
from chance import LONG
from secant.engines.backend import Backend
from secant.engines.duckdb.session import open_directory
from secant.plan.evaluate.evaluate import evaluate
from secant.plan.rewrites.null_on_error import make_total
from secant.plan.rewrites.rewrite import normalize
from secant.schema import types as t
from secant.sql.bind import from_sql

DATA = Path(__file__).parent.parent / "data"
TPCH = {path.stem: path.read_text() for path in sorted((DATA / "tpch").glob("q*.sql"))}
SHAPES = {
    "bound": lambda plan: plan,
    "normalized": normalize,
    "total": lambda plan: make_total(normalize(plan)),
}
SCALE = "0.01"


@pytest.fixture(scope="session")
def generated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory of Parquet files."""
    return parquet_of(SCALE, tmp_path_factory.mktemp("tpch"))


@pytest.fixture(scope="session")
def tpch(generated: Path) -> Backend:
    return apart(open_directory(generated, "parquet", threads=1))


@pytest.fixture(scope="session")
def tpch_rows(tpch: Backend) -> dict[str, list[Row]]:
    return contents(tpch)


@pytest.fixture
def tpch_there(put, engine, kept, generated: Path) -> Place:
    """The same data at the engine."""

    def make() -> Place:
        with duckdb.connect() as connection:
            for table in TPCH_KEYS:
                connection.execute(f"CREATE VIEW {table} AS FROM '{generated / table}.parquet'")
            return opened(engine, put(connection, TPCH_KEYS, TPCH_KEYS))

    return kept(engine, "tpch", make)


@pytest.fixture(scope="session")
def answer_of(tpch: Backend) -> Callable[[str], list[tuple[object, ...]]]:
    """What DuckDB answers to the text of a query, asked once for all engines and shapes."""
    return cache(lambda name: tpch.rows(TPCH[name]))


def test_all_queries_are_there():
    assert list(TPCH) == [f"q{number:02}" for number in range(1, 23)]


@on_engines()
def test_the_catalogs_agree(tpch, tpch_there, engine):
    catalog = tpch_there.backend.catalog()
    assert set(catalog.tables) == set(TPCH_KEYS)
    for name, table in catalog.tables.items():
        assert table.columns == tpch.catalog().tables[name].columns
        assert table.unique == ((TPCH_KEYS[name],) if engine.has_keys else ())
    assert catalog.tables["lineitem"].type_of("l_discount") == t.decimal(15, 2)


@on_engines(
    "name shape",
    [(name, shape) for name in TPCH for shape in SHAPES],
    few=[(name, "total") for name in ("q02", "q22")],
)
def test_answers_are_those_of_the_text(tpch, tpch_there, answer_of, name, shape):
    plan = SHAPES[shape](from_sql(TPCH[name], tpch.catalog()))
    want = answer_of(name)
    assert difference(tpch_there.answer(plan), want, ordered=ordered(plan)) is None
    assert want


@pytest.mark.parametrize("name", TPCH)
def test_answers_by_the_interpreter(tpch, tpch_rows, answer_of, name):
    plan = normalize(from_sql(TPCH[name], tpch.catalog()))
    want = answer_of(name)
    assert difference(evaluate(plan, tpch_rows), want, ordered=ordered(plan)) is None


@pytest.mark.long
@pytest.mark.parametrize("name", sorted(set(TPCH) - {"q19"}))
def test_answers_as_bound_by_the_interpreter(tpch, tpch_rows, answer_of, name):
    plan = from_sql(TPCH[name], tpch.catalog())
    want = answer_of(name)
    assert difference(evaluate(plan, tpch_rows), want, ordered=ordered(plan)) is None


@pytest.mark.long
def test_a_join_inside_or_as_bound_on_a_smaller_sample(tmp_path):
    little = apart(open_directory(parquet_of("0.001", tmp_path), "parquet", threads=1))
    plan = from_sql(TPCH["q19"], little.catalog())
    got = evaluate(plan, contents(little))
    assert difference(got, little.rows(TPCH["q19"]), ordered=ordered(plan)) is None


def test_data_of_another_scale_are_not_loaded(generated):
    with pytest.raises(ValueError, match="scale 1"):
        load_tpch(generated, "postgresql://nowhere", 1.0)


# ── the 17 queries: the paper's settings, and native ones whose widths follow from public facts ──


@pytest.fixture(scope="module")
def laud(tmp_path_factory) -> Path:
    return duckdb_file(SCALE, tmp_path_factory.mktemp("laud"))


@pytest.fixture
def laud_there(put, engine, kept, laud: Path) -> str:
    def make() -> str:
        with duckdb.connect() as connection:
            connection.execute(f"ATTACH '{laud}' AS laud (READ_ONLY); USE laud")
            return put(connection, TABLES, TPCH_KEYS)

    return kept(engine, "laud", make)


@pytest.fixture(scope="module")
def measured_here(laud: Path):
    """What DuckDB measures, by form."""
    return {
        form: {row["query"]: row for row in measure(f"duckdb:{laud}", profile_of(form), QUERIES)}
        for form in ("paper", "native")
    }


@on_engines("form", [("paper",), ("native",)], few=[("native",)], engines=OTHERS)
def test_softened_answers_and_smooth_bounds(measured_here, laud_there, engine, form):
    queries = QUERIES[:1] if engine.sparing and not LONG else QUERIES
    there = {row["query"]: row for row in measure(laud_there, profile_of(form), queries)}
    for query in queries:
        ours, theirs = there[query], measured_here[form][query]
        assert ("refused" in ours) == ("refused" in theirs), query
        for number in ("exact", "softened", "sensitivity", "noise_scale"):
            wanted = theirs.get(number)
            near = wanted if wanted is None else pytest.approx(wanted, rel=1e-9)
            assert ours.get(number) == near, (query, number)
    assert sum("softened" in row for row in there.values()) >= len(queries)
