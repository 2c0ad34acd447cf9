"""`secant bench laud`: what is asked of the engine, what is written, what is compared with the print."""

import json
import math
from fractions import Fraction
from pathlib import Path

import pytest
from bench.suites.laud import compare, database, forms, measure

import secant
from secant.errors import Refused

SECONDS = ({"compile": 0.010, "plain": 0.2, "release": 0.5},) * 2 + (
    {"compile": 0.020, "plain": 0.1, "release": 0.6},
)


def inspected(**changes):
    """One output column as `inspect` gives it."""
    return {
        "column": "answer",
        "exact": 100.0,
        "softened": 90.0,
        "sensitivity": 2.0,
        "beta": 0.1,
        "noise_scale": 20.0,
        "error95": 30.0,
        "relative_error95": 0.3,
        "mechanism": "smooth",
        "analysis": "derivative",
        "seconds": SECONDS[0],
    } | changes


@pytest.fixture
def file(monkeypatch, tmp_path):
    """Put a place in the stead of a generated database."""
    made = []

    def duckdb_file(scale, directory):
        made.append((scale, directory))
        return tmp_path / "made.duckdb"

    monkeypatch.setattr(database, "duckdb_file", duckdb_file)
    return made


# ── the command ──────────────────────────────────────────────────────────────────────────────────


def test_elsewhere_than_in_a_clone_the_command_says_where_benchmarks_are(
    run, monkeypatch, tmp_path
):
    monkeypatch.setattr(secant, "__file__", str(tmp_path / "lib" / "secant" / "__init__.py"))
    status, _, told = run("bench", "laud")
    assert status == 2
    assert "clone the repository" in told


def test_measurements_are_written_in_the_promised_shape(connection, file, run, tmp_path):
    connection.result = [inspected()]
    target = tmp_path / "out.json"
    words = ("--profile", "native", "--scale", "0.10", "--queries", "b6,b1_1", "--repeat", "2")
    status, out, _ = run("bench", "laud", *words, "--json", str(target))
    assert status == 0
    assert file[0][0] == "0.1"
    (first, second) = json.loads(target.read_text())["queries"]
    assert (first["query"], second["query"]) == ("b1_1", "b6")
    assert set(first) == {"query", "seconds", *measure.NUMBERS}
    assert first["relative_error95"] == 0.3
    assert set(first["seconds"]) == {"compile", "plain", "release"}
    assert len(connection.asked) == 4
    assert connection.opened["source"].startswith("duckdb:")
    assert "geometric mean 2.50" in out
    assert "b6" in out


def test_native_answers_stand_beside_the_errors_of_the_authors(connection, file, run):
    connection.result = [inspected(relative_error95=0.1)]
    status, out, _ = run("bench", "laud", "--queries", "b6,b1_1")
    assert status == 0
    assert "authors" in out
    assert "17.2%" in out
    assert "not below the authors': b1_1\n" in out


def test_the_printed_numbers_stand_beside_ours(connection, file, run):
    connection.result = [inspected(softened=17_090_100.0, sensitivity=95.0)]
    _, out, _ = run("bench", "laud", "--profile", "paper", "--queries", "b6")
    assert "17.09M" in out
    assert "192.5K" in out
    assert "not as printed: none" in out
    connection.result = [inspected(softened=17_100_000.0, sensitivity=95.0)]
    _, out, _ = run("bench", "laud", "--profile", "paper", "--queries", "b6")
    assert "not as printed: b6" in out


def test_every_printed_number_that_differs_is_said(connection, file, run):
    """Table 6 prints 258.9K for b19, whatever is made of the query: "none" was printed in its place."""
    connection.result = [inspected(softened=207_810.0, sensitivity=1434.0)]
    _, out, _ = run("bench", "laud", "--profile", "paper-l1", "--queries", "b19")
    assert "not as printed: b19" in out.splitlines()
    assert "softened 207.81K, sensitivity 1.43K; printed 258.9K and 28.48K" in out
    assert "no reading of the query" in out
    _, out, _ = run("bench", "laud", "--profile", "paper", "--queries", "b19")
    assert "not as printed: none" in out.splitlines()


def test_no_judgment_at_another_scale(connection, file, run):
    connection.result = [inspected()]
    status, out, _ = run("bench", "laud", "--profile", "paper", "--scale", "2")
    assert status == 0
    assert "not as printed" not in out
    assert "of scale 0.1, not of 2." in out


@pytest.mark.parametrize(
    ("scale", "softened", "sensitivity", "missed"),
    [("0.5", 42_890, 0.0014, "none"), ("1", 85_670, 0.0069, "none"), ("1", 85_670, 0.0071, "b4")],
)
def test_the_paper_has_numbers_for_three_scales(
    connection, file, run, scale, softened, sensitivity, missed
):
    connection.result = [{**inspected(), "softened": softened, "sensitivity": sensitivity}]
    words = ("bench", "laud", "--profile", "paper", "--queries", "b4", "--scale", scale)
    status, out, _ = run(*words)
    assert status == 0
    assert f"not as printed: {missed}" in out.splitlines()


def test_a_refused_query_is_told_and_the_others_go_on(connection, file, run, tmp_path):
    connection.result = Refused("REF-101", "no analysis can bound this query")
    target = tmp_path / "out.json"
    status, out, _ = run("bench", "laud", "--queries", "b6,b4", "--json", str(target))
    assert status == 3
    assert out.count("REF-101 no analysis can bound this query") == 2
    (first, _) = json.loads(target.read_text())["queries"]
    assert first["refused"]["message"] == "no analysis can bound this query"
    status, out, _ = run("bench", "laud", "--profile", "paper", "--queries", "b6")
    assert "not as printed: b6" in out


@pytest.mark.parametrize(
    "words",
    [
        ("--profile", "papr"),
        ("--scale", "nan"),
        ("--scale", "-1"),
        ("--queries", "b2"),
        ("--repeat", "0"),
        ("--engine", "oracle"),
        ("--json", "no/such/folder/x.json"),
        ("--json", "."),
    ],
)
def test_wrong_use_is_refused_before_anything_is_made(connection, file, run, words):
    status, _, err = run("bench", "laud", *words)
    assert status == 2
    assert "USE-001" in err
    assert file == []
    assert connection.asked == []


def test_a_benchmark_that_does_not_exist(connection, file, run):
    status, _, err = run("bench", "load")
    assert status == 2
    assert "USE-001" in err


def test_postgres_needs_an_address(connection, file, run, monkeypatch):
    monkeypatch.delenv("SECANT_BENCH_POSTGRES", raising=False)
    status, _, err = run("bench", "laud", "--engine", "postgres")
    assert status == 2
    assert "SECANT_BENCH_POSTGRES is not set" in err


def test_postgres_is_loaded_and_asked_at_its_address(connection, file, run, monkeypatch, tmp_path):
    loaded = []
    monkeypatch.setenv("SECANT_BENCH_POSTGRES", "postgresql://here/empty")
    monkeypatch.setattr(
        database, "postgres_address", lambda *words: loaded.append(words) or words[2]
    )
    connection.result = [inspected()]
    words = ("--queries", "b4", "--data", str(tmp_path), "--engine", "postgres")
    status, _, _ = run("bench", "laud", *words)
    assert status == 0
    assert loaded == [("0.1", tmp_path, "postgresql://here/empty")]
    assert connection.opened["source"] == "postgresql://here/empty"


def test_spark_reads_a_folder_at_its_address(connection, file, run, monkeypatch, tmp_path):
    monkeypatch.delenv("SECANT_BENCH_SPARK", raising=False)
    status, _, err = run("bench", "laud", "--engine", "spark")
    assert status == 2
    assert "SECANT_BENCH_SPARK is not set" in err
    monkeypatch.setenv("SECANT_BENCH_SPARK", "sc://here:15002")
    monkeypatch.setattr(database, "parquet_folder", lambda scale, place: place / f"sf{scale}")
    connection.result = [inspected()]
    words = ("--queries", "b4", "--data", str(tmp_path), "--engine", "spark")
    status, _, _ = run("bench", "laud", *words)
    assert status == 0
    assert connection.opened["source"] == f"spark:sc://here:15002?parquet={tmp_path}/sf0.1"


# ── measuring ────────────────────────────────────────────────────────────────────────────────────


class Scripted:
    """A connection whose runs take scripted times."""

    def __init__(self):
        self.asked = []

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.asked.append("closed")

    def inspect(self, text, *, epsilon):
        self.asked.append((text, epsilon))
        return [inspected(seconds=SECONDS[(len(self.asked) - 1) % 3], sensitivity=[2.0])]


def test_the_best_times_of_several_runs_count():
    database = Scripted()
    (row,) = measure.measure(
        "s", forms.PROFILES[2], ["b4"], repeat=3, connect=lambda *_, **__: database
    )
    assert row["seconds"] == {"compile": 0.010, "plain": 0.1, "release": 0.5}
    assert row["sensitivity"] == 2.0
    assert [epsilon for _, epsilon in database.asked[:3]] == [1, 1, 1]
    assert database.asked[3:] == ["closed"]


def test_each_query_is_asked_with_the_smoothness_of_the_paper():
    opened, asked = [], Scripted()

    def connect(source, *, policy, ledger):
        opened.append((policy.protections[0].beta, Path(ledger).parent.is_dir()))
        return asked

    rows = list(measure.measure("s", forms.PROFILES[0], ["b1_1", "b4", "b6"], connect=connect))
    assert [r["query"] for r in rows] == ["b1_1", "b4", "b6"]
    assert opened == [(Fraction(1, 10), True), (Fraction(16, 10), True)]
    assert [epsilon for _, epsilon in asked.asked[:3]] == [1, 1, Fraction(17, 2)]


# ── comparing ────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("text", "value", "half"),
    [
        ("3.55M", 3_550_000, 5_000),
        ("192.5K", 192_500, 5),
        ("40.0K", 40_000, 5),
        ("1.0", 1, 0.005),
        ("902.59", 902.59, 0.005),
        ("0.0006", 0.0006, 0.00005),
        ("5.01G", 5.01e9, 5e6),
    ],
)
def test_printed_numbers_are_read_with_their_rounding(text, value, half):
    number, slack = compare.printed(text)
    assert float(number) == value
    assert float(slack) == half


@pytest.mark.parametrize(
    ("softened", "sensitivity", "ok"),
    [
        (3_551_636.0, 0.9956, True),
        (3_554_999.0, 1.0049, True),
        (3_555_100.0, 1.0, False),
        (3_544_000.0, 1.0, False),
        (3_551_636.0, 1.006, False),
        (None, 1.0, False),
        (math.nan, 1.0, False),
        (3_551_636.0, math.nan, False),
        (3_551_636.0, None, False),
    ],
)
def test_parity_is_exact_in_the_answer_and_one_sided_in_the_sensitivity(softened, sensitivity, ok):
    row = {"query": "b1_1", "softened": softened, "sensitivity": sensitivity}
    (found,) = compare.parity([row], "paper")
    assert (found.ok, found.printed_softened, found.printed_sensitivity) == (ok, "3.55M", "1.0")


def test_small_ratios_do_not_carry_the_mean():
    known = compare.expected()
    rows = [
        {"query": "b6", "relative_error95": 0.2 * known["b6"]["error"] / 100},
        {"query": "b4", "relative_error95": 1e-12},
        {"query": "b5", "relative_error95": 2 * known["b5"]["error"] / 100},
        {"query": "b7", "refused": {}},
    ]
    found = compare.accuracy(rows)
    assert found.ratios["b6"] == pytest.approx(0.2)
    assert found.mean == pytest.approx((0.2 * 0.05 * 2) ** (1 / 3))
    assert found.worse == ("b5",)
    assert compare.accuracy(rows[3:]) is None


def test_an_error_that_is_not_known_is_not_better():
    found = compare.accuracy([{"query": "b6", "relative_error95": None}])
    assert found.worse == ("b6",)
    assert math.isinf(found.mean)


def test_speed_is_a_geometric_mean_of_ratios():
    rows = [{"query": q, "seconds": s} for q, s in (("b4", SECONDS[0]), ("b6", SECONDS[2]))]
    found = compare.speed(rows)
    assert found.mean == pytest.approx(math.sqrt(2.5 * 6))
    assert (found.worst, found.slowest_compile) == (pytest.approx(6), 0.02)
    assert compare.speed([]) is None


def test_the_expected_tables_are_whole():
    known = compare.expected()
    assert tuple(known) == forms.QUERIES
    for entry in known.values():
        printed = {f"{p}{scale}" for p in compare.PRINTED for scale in ("", "-0.5", "-1")}
        assert set(entry) == {"exact", "error", "ratio"} | printed
        assert all(len(entry[name]) == 2 for name in printed)
    ratios = [entry["ratio"] for entry in known.values()]
    assert math.prod(ratios) ** (1 / 17) == pytest.approx(9.5, abs=0.05)
