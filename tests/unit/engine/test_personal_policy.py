"""Units that give different amounts of epsilon: charged in proportion, on both engines, from SQL and from Python."""

import duckdb
import numpy as np
import psycopg
import pytest

import secant
from filled import fill
from secant import stats
from secant.errors import BudgetError, PolicyError, Refused, UsageError
from secant.policy.file import load_policy

AMOUNTS = [0.1, 0.5, 1.0, 2.0, 0.3, 0.05, None, float("nan")]
COPIES = [1, 5, 10, 10, 1, 0, 0, 0]
SALES = np.random.default_rng(2).uniform(0, 100, 4000).round(2)
WEIGHTS = np.array([COPIES[i % 8] for i in range(4000)])
POLICY = """
[database]
source = "{source}"
[tables.people]
key = ["id"]
[tables.sales]
key = ["sid"]
references = {{ pid = "people.id" }}
[tables.sales.columns]
total = {{ range = [0, 100] }}
[protections.people]
kind = "unit"
unit = "people.id"
epsilon = 1
limits = {{ sales = 1 }}
personal = {{ column = "people.gives", offers = [0.1, 0.5, 1] }}
"""
SCHEMA = (
    "CREATE TABLE people (id INTEGER PRIMARY KEY, gives DOUBLE PRECISION)",
    "CREATE TABLE sales (sid INTEGER PRIMARY KEY, pid INTEGER, total DOUBLE PRECISION)",
)


@pytest.fixture
def on_duckdb(tmp_path):
    with duckdb.connect(str(tmp_path / "d.duckdb")) as made:
        for statement in SCHEMA:
            made.execute(statement)
        fill(made, "people", people())
        fill(made, "sales", sales())
    return "duckdb:d.duckdb"


@pytest.fixture
def on_postgres(postgres_database):
    with psycopg.connect(postgres_database, autocommit=True) as made, made.cursor() as cursor:
        for statement in SCHEMA:
            cursor.execute(statement)
        cursor.executemany("INSERT INTO people VALUES (%s, %s)", people())
        cursor.executemany("INSERT INTO sales VALUES (%s, %s, %s)", sales())
    return postgres_database


def people():
    return [(i, AMOUNTS[i % 8]) for i in range(4000)]


def sales():
    return [(i, i, float(x)) for i, x in enumerate(SALES)]


def opened(folder, source):
    place = folder / "policy.toml"
    place.write_text(POLICY.format(source=source))
    return secant.connect(policy=place)


@pytest.mark.parametrize(
    "engine", ["on_duckdb", pytest.param("on_postgres", marks=pytest.mark.postgres)]
)
def test_rows_count_in_proportion(engine, tmp_path, request):
    with opened(tmp_path, request.getfixturevalue(engine)) as db:
        (seen,) = db.inspect("SELECT avg(total) FROM sales", epsilon="0.5")
        assert seen["softened"] == pytest.approx(np.average(SALES, weights=WEIGHTS), abs=1e-6)
        (seen,) = db.inspect("SELECT count(*) FROM sales", epsilon="0.5")
        assert seen["softened"] == (WEIGHTS > 0).sum()
        assert seen["noise_scale"] == 20  # for those who give a tenth
        answer = db.sql("SELECT median(total) FROM sales", epsilon="0.5")
        middle = np.median(np.repeat(SALES, WEIGHTS))
        assert answer.rows[0][0] == pytest.approx(middle, abs=15)
        assert answer.error["leaves_out"]["personal"] == ["people"]
        assert db.budget["people"].spent_epsilon == 0.5
        with pytest.raises(BudgetError):
            db.sql("SELECT avg(total) FROM sales", epsilon="0.6")


@pytest.mark.parametrize(
    "text",
    [
        "SELECT avg(total), count(*) FROM sales",
        "SELECT avg(sid) FROM sales",
        "SELECT max(n) FROM (SELECT total, count(*) AS n FROM sales GROUP BY total) q",
    ],
)
def test_what_is_not_of_one_kind_is_refused(text, on_duckdb, tmp_path):
    with opened(tmp_path, on_duckdb) as db, pytest.raises(Refused):
        db.sql(text, epsilon="0.1")


def test_python_is_charged_for_those_who_give_least_unless_in_proportion(on_duckdb, tmp_path):
    with opened(tmp_path, on_duckdb) as db:
        budget = db.protection("people")
        stats.mean(SALES, epsilon="0.01", bounds=(0, 100), budget=budget)
        assert db.budget["people"].spent_epsilon == pytest.approx(0.1)
        shares = {"epsilons": [0.02] * 9, "offers": ["0.02", "0.1", "0.2"], "scale": 100}
        shares["budget"] = budget
        stats.personal("mean", [1.0] * 9, **shares)
        assert db.budget["people"].spent_epsilon == pytest.approx(0.3)
        with pytest.raises(UsageError, match="proportions"):
            stats.personal("mean", [1.0] * 9, **{**shares, "offers": ["0.02", "0.04"]})


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ('personal = { column = "people.gives" }', "must be {"),
        ('personal = { column = "people.gives", offers = [] }', "a list"),
        ('personal = { column = "people.gives", offers = [0.5] }', "the largest offer"),
        ('personal = { column = "sales.total", offers = [1] }', "table of the unit"),
        ('personal = { column = "people.gives", offers = [1] }\ndelta = 1e-9', "without delta"),
        ('personal = { column = "people.gives", offers = [0.0001, 1] }', "proportions"),
        ('personal = { column = "people.gives", offers = [1] }\ntruncation = "race"', "declared"),
    ],
)
def test_a_policy_says_what_is_wrong(line, words, tmp_path):
    text = POLICY.format(source="duckdb:d.duckdb")
    kept = [line if x.startswith("personal") else x for x in text.splitlines()]
    place = tmp_path / "policy.toml"
    place.write_text("\n".join(kept))
    with pytest.raises(PolicyError) as caught:
        load_policy(place)
    assert words in str(caught.value) + " ".join(caught.value.details)


def test_the_column_must_hold_numbers(on_duckdb, tmp_path):
    place = tmp_path / "policy.toml"
    place.write_text(POLICY.format(source=on_duckdb).replace("people.gives", "people.nothing"))
    with pytest.raises(PolicyError, match="of numbers"):
        secant.connect(policy=place)
