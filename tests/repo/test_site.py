"""The site: every page is staged and reached, generated pages are level, every block is run, every example holds."""

import doctest
import importlib
import re
import subprocess
import sys

import pytest
from repository import ROOT, SRC, blocks, docs_tool, files, named
from test_readme import run_block, write_visits

import secant
from secant import proofs

DOCS = ROOT / "docs"
RUN_HERE = (
    DOCS / "how-to" / "work-in-a-shell.md",
    DOCS / "explanation" / "noise.md",
)
TOGETHER = (DOCS / "how-to" / "work-in-a-notebook.md", DOCS / "how-to" / "coming-from.md")
"""Pages whose blocks of Python go on from each other, as cells of a notebook do."""


def test_every_page_is_staged_with_links_that_lead_somewhere(tmp_path):
    site = docs_tool("build_site")
    pages = site.stage(tmp_path)
    assert {"proofs", "project", "tutorials", "how-to", "explanation", "reference"} <= {
        page.parts[0] for page in pages
    }
    for page in pages:
        text = site.FENCED.sub("", (tmp_path / page).read_text("utf-8"))
        for link in site.LINK.finditer(text):
            if link[2] and not link[2].startswith(site.ELSEWHERE):
                assert (tmp_path / page.parent / link[2]).exists(), f"{page}: {link[2]}"


def test_a_dead_link_of_the_built_site_is_found(tmp_path):
    site = docs_tool("build_site")
    (tmp_path / "a.html").write_text('<a href="b.html#here">b</a><a href="c.html">c</a>')
    (tmp_path / "b.html").write_text('<p id="there"></p><a href="a.html?x=1">a</a>')
    assert site.dead_links(tmp_path) == ["a.html: b.html#here", "a.html: c.html"]


@pytest.mark.long
def test_the_site_is_built_without_a_warning(tmp_path):
    done = subprocess.run(
        [sys.executable, str(DOCS / "tools" / "build_site.py"), str(tmp_path)],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    page = (tmp_path / "site" / "index.html").read_text("utf-8")
    assert not re.findall(r'(?:src|href)="https?://[^"]+\.(?:js|css|woff2?)', page)


def test_every_public_name_has_an_entry_with_words():
    made = docs_tool("python").page()
    for name in secant.__all__:
        if not name.startswith("_") and callable(getattr(secant, name)) and name[0].islower():
            entry = made.partition(f"### secant.{name}\n")[2].partition("\n### ")[0]
            words = [part for part in entry.split("```")[::2] if part.strip()]
            assert words, name
    assert "### Connection.sql\n" in made
    assert "### Answer.to_dict\n" in made


def test_the_site_has_the_whole_of_the_pages_that_are_made(tmp_path):
    """The repository keeps how they begin; the table of rules names every rule."""
    docs_tool("build_site").stage(tmp_path)
    for name, word in (("python", "### secant.connect"), ("rules", "| stability.count |")):
        kept = (DOCS / "reference" / f"{name}.md").read_text("utf-8")
        staged = (tmp_path / "reference" / f"{name}.md").read_text("utf-8")
        assert word not in kept
        assert word in staged
        assert staged.splitlines()[0] == kept.splitlines()[0]
    rules = (tmp_path / "reference" / "rules.md").read_text("utf-8")
    assert [rule for rule in proofs.all_rules() if f"| {rule} |" not in rules] == []


def test_the_measured_table_and_the_code_of_peers_are_those_of_the_benchmark():
    made = docs_tool("coming_from")
    assert made.PAGE.read_text("utf-8") == made.page()
    bench = importlib.import_module("bench.frame_peers")
    shown = [block.text for block in blocks(made.PAGE)]
    for name in bench.LIBRARIES:
        assert bench.shown(name) in shown, name


@pytest.mark.parametrize(
    "name", ["what-noise-does.svg", "what-a-limit-does.svg", "soft-filter.svg", "next-ship.svg"]
)
def test_pictures_are_what_the_library_draws(name):
    made = docs_tool("pictures").PICTURES[name]()
    assert (DOCS / "figures" / name).read_text("utf-8") == made
    assert any(name in page.read_text("utf-8") for page in files(".md"))


@pytest.mark.parametrize("page", RUN_HERE, ids=named)
def test_every_block_of_a_page_runs(page, tmp_path):
    for block in blocks(page):
        run_block(block, tmp_path)


@pytest.mark.parametrize("page", TOGETHER, ids=named)
def test_blocks_that_go_on_from_each_other_run(page, tmp_path):
    program = "\n".join(block.text for block in blocks(page) if block.language == "python")
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr


def test_the_lines_of_the_index_answer(tmp_path):
    write_visits(tmp_path / "visits.parquet")
    (block,) = blocks(DOCS / "index.md")
    run_block(block, tmp_path)


def test_the_ledgers_page_runs(tmp_path):
    """Its commands are for a policy beside them; what it does in Python goes on from block to block."""
    page = DOCS / "how-to" / "operate-a-ledger.md"
    for block in blocks(page):
        if block.language == "python":
            run_block(block, tmp_path)
    subprocess.run(
        [sys.executable, "-m", "secant", "demo", "--keep", "clinic"], cwd=tmp_path, check=True
    )
    for block in blocks(page):
        if block.language == "sh":
            run_block(block, tmp_path / "clinic")


def test_every_page_with_code_is_run_by_a_test():
    tests = "\n".join(p.read_text("utf-8") for p in (ROOT / "tests").rglob("test_*.py"))
    for page in DOCS.rglob("*.md"):
        if any(block.language in ("python", "sh") for block in blocks(page)):
            known = (
                page.parent.name == "tutorials" or f'"{page.name}"' in tests or page.name in tests
            )
            assert known, f"no test runs {named(page)}"


def examples():
    return [
        ".".join(p.relative_to(SRC.parent).with_suffix("").parts)
        for p in sorted(SRC.rglob("*.py"))
        if ">>> " in p.read_text("utf-8")
    ]


@pytest.mark.parametrize("module", examples())
def test_every_example_of_a_docstring_holds(module):
    found = importlib.import_module(module)
    failed, tried = doctest.testmod(
        found, optionflags=doctest.IGNORE_EXCEPTION_DETAIL | doctest.NORMALIZE_WHITESPACE
    )
    assert tried
    assert failed == 0
