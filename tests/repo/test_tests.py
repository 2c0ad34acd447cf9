"""Tests about the tests: each can fail, and none hides another."""

import ast
from collections import Counter

from repository import ROOT, named, tree_of

from workers import FIRST, SPARK, place_of, unit_of

FILES = tuple(sorted((ROOT / "tests").rglob("test_*.py")))
JUDGES = ("assert", "check", "raises", "fail", "expect", "verify", "run_block")


def can_fail(function: ast.FunctionDef, judging: frozenset[str] = frozenset()) -> bool:
    """Whether the function asserts something, itself or through a function that judges."""
    for node in ast.walk(function):
        if isinstance(node, ast.Assert):
            return True
        if isinstance(node, ast.Call):
            called = node.func
            name = called.attr if isinstance(called, ast.Attribute) else getattr(called, "id", "")
            if name in judging or any(word in name for word in JUDGES):
                return True
    return False


def test_every_test_can_fail():
    toothless = []
    for path in FILES:
        functions = [n for n in ast.walk(tree_of(path)) if isinstance(n, ast.FunctionDef)]
        judging = frozenset(f.name for f in functions if can_fail(f))
        toothless += [
            f"{named(path)}::{f.name}"
            for f in functions
            if f.name.startswith("test_") and not can_fail(f, judging)
        ]
    assert toothless == []


def test_no_test_hides_another_of_the_same_name():
    hidden = []
    for path in FILES:
        tree = tree_of(path)
        for scope in [tree, *(n for n in ast.walk(tree) if isinstance(n, ast.ClassDef))]:
            names = Counter(n.name for n in scope.body if isinstance(n, ast.FunctionDef))
            hidden += [f"{named(path)}::{name}" for name, times in names.items() if times > 1]
    assert hidden == []


def test_no_two_test_files_share_a_name():
    # Without packages pytest imports files by their bare name.
    shared = [name for name, times in Counter(path.name for path in FILES).items() if times > 1]
    assert shared == []


def test_a_toothless_test_is_noticed():
    (toothless,) = ast.parse("def test_x():\n    print(1)").body
    (biting,) = ast.parse("def test_x():\n    assert f() == 1").body
    assert not can_fail(toothless)
    assert can_fail(biting)


def test_workers_get_whole_files_and_all_of_spark_as_one():
    corpus = "tests/backends/test_small_corpus.py"
    assert unit_of(f"{corpus}::test_small_queries[duckdb-SELECT '::', 1-total]") == corpus
    assert unit_of(f"{corpus}::test_small_queries[spark-SELECT 1-total]") == SPARK
    assert unit_of(f"{corpus}::test_aggregates[spark]") == SPARK
    assert unit_of("tests/backends/test_spark_server.py::test_no_value_is_told") == SPARK
    assert place_of(f"{corpus}::test_aggregates[spark]") == 0


def test_what_starts_first_is_there():
    assert FIRST[0] == SPARK
    assert len(set(FIRST)) == len(FIRST)
    assert [unit for unit in FIRST[1:] if not (ROOT / unit).is_file()] == []
