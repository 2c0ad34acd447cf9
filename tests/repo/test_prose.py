"""What the pages name exists: paths, links, commands, packages, error codes."""

import re
import tomllib

import pytest
from repository import ROOT, SRC, blocks, named, pages

from secant import errors
from secant.cli.program import COMMANDS
from secant.terms.policy_file import read_policy

FOLDERS = ("src/", "tests/", "docs/", "bench/", "requirements/", ".ci/")
INLINE = re.compile(r"`([^`\n]+)`")
LINK = re.compile(r"\]\(([^)#\s]+)(?:#[^)]*)?\)")
CODE = re.compile(r"\b(?:USE|SQL|POL|REF|BUD|BAK|BUG)-\d{3}\b")
MADE_BY_MAKE = ("bench/results", "bench/data")


@pytest.mark.parametrize("page", pages(), ids=named)
def test_paths_in_prose_exist(page):
    prose = re.sub(r"^```.*?^```$", "", page.read_text("utf-8"), flags=re.MULTILINE | re.DOTALL)
    for word in INLINE.findall(prose):
        if word.startswith(FOLDERS) and " " not in word and not word.startswith(MADE_BY_MAKE):
            shape = word.rstrip("/").replace("<room>", "*")
            assert list(ROOT.glob(shape)), f"{named(page)} names {word}"


@pytest.mark.parametrize("page", pages(), ids=named)
def test_links_lead_somewhere(page):
    for target in LINK.findall(page.read_text("utf-8")):
        if not target.startswith(("http://", "https://", "mailto:")):
            assert (page.parent / target).exists(), f"{named(page)} links to {target}"


@pytest.mark.parametrize("page", pages(), ids=named)
def test_error_codes_in_prose_exist(page):
    known = {code for code, _ in errors.CODES}
    assert set(CODE.findall(page.read_text("utf-8"))) <= known


def test_the_map_names_every_package_and_no_other():
    text = (ROOT / "ARCHITECTURE.md").read_text("utf-8")
    (tree,) = [b.text for b in blocks(ROOT / "ARCHITECTURE.md") if "src/secant/" in b.text]
    on_map = set(re.findall(r"^  (\w+)/", tree, re.MULTILINE))
    on_disk = {path.parent.name for path in SRC.glob("*/__init__.py")}
    assert on_map == on_disk
    for package, names in re.findall(r"^  (plan)/ +(.*)$", tree, re.MULTILINE):
        for name in names.split(", "):
            assert list((SRC / package).glob(f"{name}*")), f"{package}/{name}"
    for number in range(1, 9):
        assert f"**I{number}**" in text


def test_every_command_is_documented():
    readme = (ROOT / "README.md").read_text("utf-8")
    for name, _, _ in COMMANDS:
        assert f"secant {name}" in readme


@pytest.mark.parametrize("page", pages(), ids=named)
def test_policies_in_the_pages_are_read(page):
    for block in blocks(page):
        if block.language == "toml":
            tomllib.loads(block.text)
            if "[protections." in block.text:
                assert read_policy(block.text).protections
