"""Tests about the tests: each can fail, and none hides another."""

import ast
from collections import Counter

import pytest
from repository import ROOT, named

FILES = tuple(sorted((ROOT / "tests").rglob("test_*.py")))
JUDGES = ("assert", "check", "raises", "fail", "expect", "verify", "run_block")


def written_tests(path):
    """Give the test functions of a file."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")
    ]


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


@pytest.mark.parametrize("path", FILES, ids=named)
def test_every_test_can_fail(path):
    tree = ast.parse(path.read_text(encoding="utf-8"))
    functions = [n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef)]
    judging = frozenset(f.name for f in functions if can_fail(f))
    toothless = [test.name for test in written_tests(path) if not can_fail(test, judging)]
    assert toothless == []


@pytest.mark.parametrize("path", FILES, ids=named)
def test_no_test_hides_another_of_the_same_name(path):
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for scope in [tree, *(n for n in ast.walk(tree) if isinstance(n, ast.ClassDef))]:
        names = Counter(n.name for n in scope.body if isinstance(n, ast.FunctionDef))
        assert [name for name, times in names.items() if times > 1] == []


def test_no_two_test_files_share_a_name():
    # Without packages pytest imports files by their bare name.
    shared = [name for name, times in Counter(path.name for path in FILES).items() if times > 1]
    assert shared == []


def test_a_toothless_test_is_noticed():
    (toothless,) = ast.parse("def test_x():\n    print(1)").body
    (biting,) = ast.parse("def test_x():\n    assert f() == 1").body
    assert not can_fail(toothless)
    assert can_fail(biting)
