"""Columns with `moves` in the policy: answered without a range on both engines, refused where nothing is proved."""

import duckdb
import numpy as np
import psycopg
import pytest

import secant
from filled import fill
from secant.errors import PolicyError, Refused
from secant.policy.file import load_policy

VALUES = np.random.default_rng(4).normal(40, 10, 1500).round(3)
POLICY = """
[database]
source = "{source}"
[tables.people]
key = ["id"]
[tables.people.columns]
ward = {{ values = ["a", "b", "c"], null = false }}
income = {{ moves = {{ avg = 0.1, median = 0.1, quantile = 0.1, min = 1, max = 1, variance = 2 }}, center = 30 }}
[protections.people]
kind = "{kind}"
{unit}
epsilon = 100000
"""
TRUTH = {
    "avg(income)": VALUES.mean(),
    "median(income)": np.median(VALUES),
    "quantile_cont(income, 0.9)": np.quantile(VALUES, 0.9),
    "var_pop(income)": VALUES.var(),
    "stddev_pop(income)": VALUES.std(),
}


def rows():
    people = [(i, "ab"[i % 2], float(x)) for i, x in enumerate(VALUES)]
    return [*people, (9001, "a", None), (9002, None, float("nan"))]


def policy_for(folder, source, kind="unit"):
    unit = 'unit = "people.id"' if kind == "unit" else ""
    place = folder / "policy.toml"
    place.write_text(POLICY.format(source=source, kind=kind, unit=unit))
    return place


@pytest.fixture
def on_duckdb(tmp_path):
    with duckdb.connect(str(tmp_path / "d.duckdb")) as made:
        made.execute("CREATE TABLE people (id INTEGER PRIMARY KEY, ward VARCHAR, income DOUBLE)")
        fill(made, "people", rows())
    return "duckdb:d.duckdb"


@pytest.fixture
def on_postgres(postgres_database):
    with psycopg.connect(postgres_database, autocommit=True) as made:
        made.execute(
            "CREATE TABLE people (id BIGINT PRIMARY KEY, ward TEXT, income DOUBLE PRECISION)"
        )
        with made.cursor() as cursor:
            cursor.executemany("INSERT INTO people VALUES (%s, %s, %s)", rows())
    return postgres_database


@pytest.mark.parametrize("kind", ["rows", "unit"])
@pytest.mark.parametrize(
    "engine", ["on_duckdb", pytest.param("on_postgres", marks=pytest.mark.postgres)]
)
def test_statistics_without_a_range(engine, kind, tmp_path, request):
    place = policy_for(tmp_path, request.getfixturevalue(engine), kind)
    with secant.connect(policy=place) as db:
        answer = db.sql(f"SELECT {', '.join(TRUTH)} FROM people", epsilon=5000)
        for shown, truth in zip(answer.rows[0], TRUTH.values(), strict=True):
            assert shown == pytest.approx(truth, abs=0.2)
        groups = db.sql("SELECT ward, avg(income) FROM people GROUP BY ward", epsilon=1000)
        assert [w for w, _ in groups.rows] == ["a", "b", "c"]
        assert groups.rows[0][1] == pytest.approx(VALUES[::2].mean(), abs=0.1)
        assert groups.rows[2][1] == pytest.approx(30, abs=0.1)  # nobody is there: the center
        assert answer.error["leaves_out"]["moves"][0] == {
            "measure": "average of people.income",
            "moves": 0.1,
        }


def test_what_one_row_moves_is_the_noise(on_duckdb, tmp_path):
    with secant.connect(policy=policy_for(tmp_path, on_duckdb)) as db:
        told = db.explain("SELECT avg(income) FROM people", epsilon=2)
        assert "stability.moves" in told.text
        assert "discrete Laplace of scale 0.05" in told.text
        (seen,) = db.inspect("SELECT avg(income) FROM people WHERE id < 9000", epsilon=2)
        assert seen["softened"] == pytest.approx(seen["exact"], abs=1e-9)


@pytest.mark.parametrize(
    "text",
    [
        "SELECT sum(income) FROM people",
        "SELECT avg(income * 2) FROM people",
        "SELECT avg(DISTINCT income) FROM people",
        "SELECT var_samp(income) FROM people",
        "SELECT quantile_disc(income, 0.5) FROM people",
    ],
)
def test_what_needs_a_range_does_not_rest_on_moves(text, on_duckdb, tmp_path):
    """Such a range is found privately, or the question is refused."""
    with secant.connect(policy=policy_for(tmp_path, on_duckdb)) as db:
        try:
            told = db.explain(text, epsilon=1).text
        except Refused:
            return
        assert "stability.moves" not in told


@pytest.mark.parametrize(
    ("facts", "words"),
    [
        ("{ moves = 0.5 }", "center"),
        ("{ moves = 0, center = 1 }", "moves"),
        ("{ moves = { mode = 1 }, center = 1 }", "must be a number, or numbers for some of"),
        ("{ moves = { variance = 1 }, center = 1 }", "goes with moves"),
        ("{ center = 1 }", "goes with moves"),
        ("{ moves = { avg = -1 }, center = 1 }", "moves"),
    ],
)
def test_a_policy_says_what_is_wrong(facts, words, tmp_path):
    place = tmp_path / "policy.toml"
    text = POLICY.format(source="duckdb:d.duckdb", kind="rows", unit="")
    lines = [f"income = {facts}" if x.startswith("income") else x for x in text.splitlines()]
    place.write_text("\n".join(lines))
    with pytest.raises(PolicyError) as caught:
        load_policy(place)
    assert words in str(caught.value) + " ".join(caught.value.details)


def test_only_numbers_move(on_duckdb, tmp_path):
    place = policy_for(tmp_path, on_duckdb)
    text = place.read_text().replace(
        'ward = { values = ["a", "b", "c"], null = false }', "ward = { moves = 1, center = 0 }"
    )
    place.write_text(text)
    with pytest.raises(PolicyError, match="moves needs a number"):
        secant.connect(policy=place)
