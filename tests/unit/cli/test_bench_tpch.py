"""`secant bench tpch`: what counts as an error, what is asked of the engine, what is written."""

import json
import math
from fractions import Fraction
from pathlib import Path

import pytest
from bench.suites.laud import database
from bench.suites.tpch import accuracy, measure, rehearsal, texts

import secant
from secant.policy.file import load_policy

ONE, TINY = Fraction(1), Fraction(1, 10**8)
KEYED = (False, True)


@pytest.fixture(scope="session")
def data(tmp_path_factory):
    place = tmp_path_factory.mktemp("bench_tpch")
    database.parquet_of("0.01", place)
    return place


@pytest.fixture
def db(data, tmp_path):
    ledger = tmp_path / "x.ledger"
    with secant.connect(
        f"parquet:{data}/sf0.01", policy=texts.policy_of(None), ledger=ledger
    ) as opened:
        yield opened


# ── errors ───────────────────────────────────────────────────────────────────────────────────────


def test_the_error_is_the_median_cell_of_what_95_of_100_releases_keep_to():
    truth = [("a", 10), ("b", 100), ("c", 1000)]
    released = [[("a", 10), ("b", 100 + i), ("c", 1000 + 20 * i)] for i in range(1, 101)]
    found = accuracy.judge(truth, released, KEYED)
    assert found.useful
    assert found.best_cell == 0.0
    assert found.relative_error == pytest.approx(0.95)
    assert found.cells == 3
    assert found.vector_error == pytest.approx(math.hypot(95, 1900) / math.hypot(10, 100, 1000))
    assert (found.missing, found.extra_rows, found.varied) == (0, 0, True)


def test_rows_are_found_by_their_exact_columns_and_not_by_their_place():
    truth = [("a", 10), ("b", 100)]
    found = accuracy.judge(truth, [[("b", 100), ("a", 10)]], KEYED)
    assert found.relative_error == 0


def test_a_cell_that_is_not_shown_is_infinitely_far_off():
    truth = [("a", 10), ("b", 100)]
    released = [[("a", 11), ("z", 3)]] * 20
    found = accuracy.judge(truth, released, KEYED)
    assert found.best_cell == pytest.approx(0.1)
    assert found.relative_error == math.inf
    assert (found.missing, found.extra_rows) == (0.5, 1)
    assert found.useful


def test_a_null_in_place_of_a_number_is_not_shown():
    found = accuracy.judge([("a", 10)], [[("a", None)]], KEYED)
    assert found.best_cell == math.inf
    assert not found.useful


@pytest.mark.parametrize(
    ("released", "useful"),
    [
        ([("a", 20), ("b", 201)], True),  # 100 % off, and not more
        ([("a", 21), ("b", 201)], False),
        ([], False),
    ],
)
def test_useless_is_a_table_whose_every_cell_is_off_by_more_than_100_percent(released, useful):
    truth = [("a", 10), ("b", 100)]
    assert accuracy.judge(truth, [released] * 3, KEYED).useful is useful


def test_an_answer_without_true_numbers_is_of_no_use():
    assert not accuracy.judge([(None,)], [[(5,)]], (True,)).useful
    assert not accuracy.judge([], [[("a", 5)]], KEYED).useful


def test_a_true_zero_has_no_relative_error_but_zero():
    assert accuracy.judge([(0,)], [[(0,)]], (True,)).relative_error == 0
    assert accuracy.judge([(0,)], [[(1,)]], (True,)).relative_error == math.inf


def test_without_noisy_numbers_rows_too_many_and_too_few_count():
    truth = [("a", 1), ("b", 2), ("c", 3), ("d", 4)]
    exact = (False, False)
    assert accuracy.judge(truth, [truth], exact).relative_error == 0
    found = accuracy.judge(truth, [[*truth[:3], ("z", 9)]], exact)
    assert (found.relative_error, found.missing, found.extra_rows) == (0.5, 0.25, 1)
    assert found.useful
    assert not accuracy.judge(truth, [[]], exact).useful
    assert not accuracy.judge(truth, [[("z", i) for i in range(9)]], exact).useful


def test_numbers_that_never_vary_are_noticed():
    assert not accuracy.judge([(7,)], [[(7,)]] * 30, (True,)).varied
    rows = [{"query": "q06", "status": "answered", "varied": False}]
    assert measure.summary(rows).endswith("NO NOISE WAS SEEN: q06")


# ── releasing again and again ────────────────────────────────────────────────────────────────────


class Counting:
    """An engine that counts what it is asked."""

    def __init__(self, engine):
        self._engine, self.dialect, self.asked = engine, engine.dialect, []

    def rows(self, statement):
        self.asked.append(statement)
        return self._engine.rows(statement)


def test_statements_over_protected_rows_run_once(db):
    ready = rehearsal.compiled(db, "SELECT count(*) FROM orders", ONE, TINY)
    engine = Counting(rehearsal.engine_of(db))
    memory = rehearsal.Remembering(engine)
    shown = {ready.release(memory)[0][0] for _ in range(20)}
    assert len(shown) > 1
    read = [s for s in engine.asked if s in ready.job.statements.values()]
    assert len(read) == 1


@pytest.mark.parametrize(
    ("query", "noisy"),
    [
        ("q01", (False, False) + (True,) * 8),
        ("q05", (False, True)),
        ("q13", (False, True)),
        ("q14", (True,)),
        ("q15", (False, False, False, False, True)),
        ("q16", (False,) * 4),
    ],
)
def test_columns_that_noise_decides_are_told_apart(db, query, noisy):
    ready = rehearsal.compiled(db, texts.text_of(query), ONE, TINY)
    assert ready.noisy == noisy
    assert bool(ready.analyses) is any(noisy)


def test_the_truth_is_the_users_own_query(db):
    text = "SELECT count(*) FROM orders WHERE o_totalprice > 100000"
    ((true,),) = rehearsal.engine_of(db).rows(text)
    ((plain,),) = rehearsal.engine_of(db).rows(rehearsal.plain_statement(db, text))
    assert plain == true


# ── the command ──────────────────────────────────────────────────────────────────────────────────


def test_measurements_are_written_in_the_promised_shape(data, run, tmp_path):
    target = tmp_path / "out.json"
    words = ("--scale", "0.01", "--data", str(data), "--queries", "q1,q02,q3,q6", "--repeat", "5")
    status, out, _ = run("bench", "tpch", *words, "--json", str(target))
    assert status == 0
    rows = {r["query"]: r for r in json.loads(target.read_text())["queries"]}
    assert {q: r["status"] for q, r in rows.items()} == {
        "q01": "answered", "q02": "exact", "q03": "refused", "q06": rows["q06"]["status"],
    }  # fmt: skip
    for row in rows.values():
        assert {"query", "status", "relative_error95", "analysis", "seconds"} <= set(row)
    assert 0 < rows["q01"]["best_cell"] <= rows["q01"]["relative_error95"]
    assert rows["q01"]["cells"] == 32
    assert set(rows["q01"]["seconds"]) == {"compile", "plain", "release"}
    assert rows["q02"]["relative_error95"] == 0
    assert rows["q03"]["refused"]["code"] == "REF-101"
    assert rows["q03"]["refused"]["hint"]
    assert "answered usefully: " in out
    assert not list(data.rglob("*ledger*"))


def test_another_policy_is_obeyed_and_its_ledger_left_alone(data, run, tmp_path):
    policy = tmp_path / "mine.toml"
    head = texts.customers_text().split("[protections.customers]")[0]
    head = head.replace("public = [", 'public = ["customer", "orders", ')
    protection = '[protections.rows]\nkind = "rows"\nepsilon = 0.01\ntables = ["lineitem"]\n'
    policy.write_text(head + protection)
    target = tmp_path / "out.json"
    words = ("--scale", "0.01", "--data", str(data), "--queries", "q6", "--repeat", "30")
    run("bench", "tpch", *words, "--policy", str(policy), "--json", str(target))
    (row,) = json.loads(target.read_text())["queries"]
    assert row["status"] == "answered"
    assert row["relative_error95"] < 0.2  # one line item, where a customer's 200 would drown it
    assert sorted(p.name for p in tmp_path.iterdir()) == ["mine.toml", "out.json"]


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("--queries", "q23"), "USE-001"),
        (("--repeat", "0"), "USE-001"),
        (("--profile", "paper"), "USE-001"),
        (("--engine", "postgres"), "USE-001"),
        (("--scale", "0"), "USE-001"),
        (("--epsilon", "nan"), "USE-002"),
        (("--epsilon", "-1"), "USE-002"),
        (("--delta", "1"), "USE-003"),
        (("--json", "no/such/folder/x.json"), "USE-001"),
        (("--policy", "no/such/file.toml"), "POL-"),
    ],
)
def test_wrong_use_is_refused_before_anything_is_made(run, tmp_path, words, code):
    place = tmp_path / "data"
    status, _, err = run("bench", "tpch", "--data", str(place), *words)
    assert status != 0
    assert code in err
    assert not place.exists()


def test_options_of_one_benchmark_are_not_swallowed_by_another(run):
    status, _, err = run("bench", "laud", "--epsilon", "1")
    assert status == 2
    assert "--epsilon is not an option of the benchmark laud" in err


def test_the_installed_policy_is_the_one_that_tests_read():
    assert len(texts.QUERIES) == len(list(Path(texts.__file__).parent.glob("queries/*.sql")))
    (protection,) = texts.policy_of(None).protections
    here = Path(__file__).parents[2] / "data" / "policies" / "customers.toml"
    assert load_policy(here).protections == (protection,)
