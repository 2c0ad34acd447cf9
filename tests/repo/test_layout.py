"""The repository keeps its own rules: every module says what it is, nothing is unfinished, no index is named."""

import ast
import os
import re

from repository import ROOT, SRC, files, named, tree_of

MODULES = tuple(sorted(SRC.rglob("*.py")))
CODE = tuple(p for p in files(".py") if not p.is_relative_to(ROOT / "requirements"))
# Put together here so that this file does not name what it forbids.
UNFINISHED = re.compile(r"\b(?:TO" + r"DO|FIX" + r"ME|X" + r"XX|NotImplemented" + r"Error)\b")
INDEX_HOSTS = re.compile(
    r"(?<!no-emit-)(?:extra-)?index-url[ =]|\b(?:pypi|files\.python" + r"hosted)\.\w+/",
    re.IGNORECASE,
)


def test_a_module_says_what_flows():
    assert MODULES
    for path in MODULES:
        assert ast.get_docstring(tree_of(path)), f"{named(path)} does not say what flows in and out"


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


def test_the_version_is_in_the_changelog():
    import secant

    assert f"## {secant.__version__}" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")


def test_no_engine_is_told_apart_by_its_name():
    """What differs between engines stands in their `Dialect`; a new one must not need a line elsewhere."""
    for path in sorted(SRC.rglob("*.py")):
        assert "dialect.name" not in path.read_text("utf-8"), named(path)
