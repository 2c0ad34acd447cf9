"""The repository keeps its own rules: sizes, names, nothing unfinished, nothing private."""

import ast
import os
import re

import pytest
from repository import ROOT, SRC, files, named, tree_of

WALL = 600
FORBIDDEN = {"utils", "util", "helper", "helpers", "common", "misc", "manager", "handler", "base"}
MODULES = tuple(sorted(SRC.rglob("*.py")))
CODE = tuple(p for p in files(".py") if not p.is_relative_to(ROOT / "requirements"))
# Put together here so that this file does not name what it forbids.
UNFINISHED = re.compile(r"\b(?:TO" + r"DO|FIX" + r"ME|X" + r"XX|NotImplemented" + r"Error)\b")
INDEX_HOSTS = re.compile(
    r"(?<!no-emit-)(?:extra-)?index-url[ =]|\b(?:pypi|files\.python" + r"hosted)\.\w+/",
    re.IGNORECASE,
)


def test_a_module_is_short_says_what_flows_and_has_a_clear_name():
    assert MODULES
    for path in MODULES:
        text = path.read_text(encoding="utf-8")
        assert len(text.splitlines()) <= WALL, named(path)
        assert ast.get_docstring(tree_of(path)), f"{named(path)} does not say what flows in and out"
        parts = path.relative_to(SRC).with_suffix("").parts
        assert not {word for part in parts for word in _words(part)} & FORBIDDEN, named(path)


def test_functions_and_classes_have_clear_names():
    for path in MODULES:
        for node in ast.walk(tree_of(path)):
            if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
                assert not set(_words(node.name)) & FORBIDDEN, f"{named(path)}: {node.name}"


def _words(name: str) -> list[str]:
    name = re.sub(r"common_?table", "cte", name, flags=re.IGNORECASE)  # SQL's own name
    return [word.lower() for word in re.findall(r"[A-Z]?[a-z0-9]+|[A-Z]+(?![a-z])", name)]


def test_the_words_of_a_name():
    assert _words("DataManager") == ["data", "manager"]
    assert _words("_base_rate") == ["base", "rate"]
    assert _words("HTTPHandler") == ["http", "handler"]


def test_nothing_is_unfinished():
    found = [
        f"{named(path)}: {match[0]}"
        for path in CODE
        for match in UNFINISHED.finditer(path.read_text(encoding="utf-8"))
    ]
    assert found == []


def test_no_package_index_is_named():
    texts = (p for p in files() if p.suffix in {".py", ".toml", ".lock", ".in", ".md", ".txt", ""})
    found = []
    for path in texts:
        text = path.read_text(encoding="utf-8", errors="replace")
        found += [f"{named(path)}: {match[0]}" for match in INDEX_HOSTS.finditer(text)]
    assert found == []


def test_the_submission_check_runs_the_tests():
    script = ROOT / ".ci" / "run"
    assert os.access(script, os.X_OK)
    assert "make test" in script.read_text(encoding="utf-8")


@pytest.mark.parametrize("target", ["setup", "demo", "test", "check", "bench"])
def test_the_promised_targets_exist(target):
    assert re.search(rf"^{target}:", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)


@pytest.mark.parametrize(
    "page",
    [
        "README.md",
        "ARCHITECTURE.md",
        "CONTRIBUTING.md",
        "SECURITY.md",
        "CHANGELOG.md",
        "LICENSE",
    ],
)
def test_the_documents_at_the_root_say_something(page):
    assert len((ROOT / page).read_text(encoding="utf-8")) > 400


def test_the_license_is_apache_2():
    text = (ROOT / "LICENSE").read_text(encoding="utf-8")
    assert "Apache License" in text
    assert "Version 2.0, January 2004" in text
    assert "END OF TERMS AND CONDITIONS" in text


def test_the_version_is_in_the_changelog():
    import secant

    assert f"## {secant.__version__}" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")


def test_no_engine_is_told_apart_by_its_name():
    """What differs between engines stands in their `Dialect`; a new one must not need a line elsewhere."""
    for path in sorted(SRC.rglob("*.py")):
        assert "dialect.name" not in path.read_text("utf-8"), named(path)
