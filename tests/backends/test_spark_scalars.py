"""Every function and operator on Spark, on a grid of hostile values: DuckDB's values, and never an error.

Expressions over the same two tables are one statement: what costs time here is planning.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

import duckdb
import pytest
from spark_small import copied, on_spark
from test_postgres_scalars import CASES, GRID, NARROW, ONLY_DUCKDB, UNWRITTEN, plan_of, unlike

from apart import Opened, apart
from chance import LONG
from secant.errors import BackendError
from secant.plan import nodes as n
from secant.plan.evaluate import evaluate
from secant.plan.functions import FUNCTIONS
from secant.release.duckdb import open_file
from secant.release.lower import lower
from secant.release.spark_scalars import SPARK

pytestmark = pytest.mark.spark
# No date of Spark's is without end.
OWN = {
    name: (kind, [v for v in values if "infinity" not in v])
    for name, (kind, values) in GRID.items()
}
EVERY = {**OWN, "one": ("INTEGER", ["1"])}
ENDLESS = {(f"CAST(a.v AS {kind})", "'-inf'", "1") for kind in ("DATE", "TIMESTAMP")}
REFUSED = {"CAST(a.v AS VARCHAR)": {"reals"}}
"""What Spark writes otherwise, and of which tables."""


@pytest.fixture(scope="module")
def engines(spark_server, tmp_path_factory) -> Iterator[tuple[Opened, Opened]]:
    folder = tmp_path_factory.mktemp("spark_grid")
    with duckdb.connect(str(folder / "grid.duckdb")) as connection:
        for name, (kind, values) in EVERY.items():
            connection.execute(f"CREATE TABLE {name} (k INTEGER, v {kind})")
            for k, value in enumerate(values):
                connection.execute(f"INSERT INTO {name} VALUES ({k}, {value})")
        copied(connection, EVERY, folder / "parquet")
    ours = on_spark(spark_server.address, folder / "parquet")
    theirs = apart(open_file(folder / "grid.duckdb", threads=1))
    yield ours, theirs
    ours.close()
    theirs.close()


def grouped() -> dict[tuple[str, str], list[str]]:
    found: dict[tuple[str, str], list[str]] = defaultdict(list)
    for left, right, expression in CASES:
        found[left, right].append(expression)
    return found


def refused(expression: str, *tables: str) -> bool:
    return bool(REFUSED.get(expression, set()) & set(tables))


FEW = [
    ("wides", "one"),
    ("words", "one"),
    ("days", "one"),
    ("wholes", "decimals"),
    ("reals", "reals"),
    ("words", "wholes"),
]
"""What the fast profile asks: the values that Spark's own functions raise on, or compute otherwise."""


@pytest.mark.parametrize("tables", grouped() if LONG else FEW, ids="-".join)
def test_values_are_those_of_duckdb(engines, tables):
    ours, theirs = engines
    left, right = tables
    expressions = [e for e in grouped()[tables] if not refused(e, left)]
    written = [e for e in expressions if not any(e.startswith(name) for name in UNWRITTEN)]
    plans = [plan_of(theirs, left, right, e) for e in expressions if e not in written]
    plans.append(plan_of(theirs, left, right, ", ".join(written)))
    names = [[e] for e in expressions if e not in written] + [written]
    wrong = {}
    for plan, asked in zip(plans, names, strict=True):
        got = {row[:2]: row[2:] for row in ours.rows(lower(plan, ours.dialect))}
        want = {row[:2]: row[2:] for row in theirs.rows(lower(plan))}
        assert got.keys() == want.keys()
        for key, values in want.items():
            pairs = zip(asked, got[key], values, strict=True)
            found = {(e, key): (g, w) for e, g, w in pairs if unlike(g, w)}
            wrong.update(found)
    if {left, right} & NARROW:
        wrong = {key: pair for key, pair in wrong.items() if not meant(theirs, tables, *key, pair)}
    shown = {
        (e, EVERY[left][1][i], EVERY[right][1][j]): pair for (e, (i, j)), pair in wrong.items()
    }
    assert shown.keys() <= ENDLESS, shown


def meant(theirs, tables, expression, key, pair) -> bool:
    """Whether DuckDB failed where the plan's types leave room: then `evaluate` says what the value is."""
    if pair[1] is not None:
        return False
    plan = plan_of(theirs, *tables, expression)
    rows = {name: [*theirs.rows(f"SELECT * FROM {name}")] for name in tables}
    return not unlike(pair[0], {row[:2]: row[2] for row in evaluate(plan, rows)}[key])


def test_what_spark_computes_otherwise_is_refused(engines):
    cases = [
        *((t, "one", e) for e, tables in REFUSED.items() for t in tables),
        *(("words", "one", e) for e in ("regexp_extract(a.v, 'a+')", "regexp_replace(a.v, 'a', 'b')")),
        ("reals", "reals", "a.v % b.v"),
        ("moments", "moments", "a.v - b.v"),
    ]  # fmt: skip
    for case in cases:
        with pytest.raises(BackendError) as caught:
            lower(plan_of(engines[1], *case), SPARK)
        assert caught.value.code == "BAK-003", case


def test_every_function_is_there(engines):
    called = {
        node.function
        for case in CASES
        for node in n.walk(plan_of(engines[1], *case))
        if isinstance(node, n.Call)
    }
    assert called == set(FUNCTIONS) - ONLY_DUCKDB
