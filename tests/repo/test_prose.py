"""What the pages name exists: paths, links, commands, packages, error codes."""

import re
import tomllib

from repository import ROOT, SRC, blocks, files, named, pages

from secant import errors, proofs
from secant.cli.program import COMMANDS
from secant.policy.file import read_policy

FOLDERS = ("src/", "tests/", "docs/", "bench/", "requirements/", ".ci/")
INLINE = re.compile(r"`([^`\n]+)`")
LINK = re.compile(r"\]\(([^)#\s]+)(?:#[^)]*)?\)")
CODE = re.compile(r"\b(?:USE|SQL|POL|REF|BUD|BAK|AUT|SRV|BUG)-\d{3}\b")
CITED = re.compile(r"papers\.md,\s+errors? ((?:\d+(?:, | and | to )?)+)")
BRITISH = re.compile(
    r"(?<![.\w])(?:neighbour|colour|behaviour|honour|favour|centre[sd]?\b|towards\b|fulfil\b|whilst\b|grey\b|licence|defence"
    r"|artefact|catalogue|judgement|modell(?:ed|ing)|labell(?:ed|ing)|cancell(?:ed|ing)|travell(?:ed|ing)|signall(?:ed|ing)"
    r"|(?:normal|optim|minim|maxim|general|parameter|quant|initial|summar|organ|recogn|serial|material|special|random"
    r"|factor|penal|synchron|character|categor|standard|util)is(?:e[ds]?|ing|ation)\b)",
    re.IGNORECASE,
)
"""Spelled otherwise in American English. Methods of other libraries (`x.cancelled()`) are called as they are named."""
MADE_BY_MAKE = ("bench/results", "bench/data")


def test_paths_in_prose_exist():
    for page in pages():
        prose = re.sub(r"^```.*?^```$", "", page.read_text("utf-8"), flags=re.MULTILINE | re.DOTALL)
        for word in INLINE.findall(prose):
            if word.startswith(FOLDERS) and " " not in word and not word.startswith(MADE_BY_MAKE):
                shape = word.rstrip("/").replace("<analysis>", "*")
                assert list(ROOT.glob(shape)), f"{named(page)} names {word}"


def test_links_lead_somewhere():
    for page in pages():
        for target in LINK.findall(page.read_text("utf-8")):
            if not target.startswith(("http://", "https://", "mailto:")):
                assert (page.parent / target).exists(), f"{named(page)} links to {target}"


def test_the_index_links_to_every_page():
    index = ROOT / "docs" / "index.md"
    linked = {
        (index.parent / target).resolve() for target in LINK.findall(index.read_text("utf-8"))
    }
    missing = [
        named(page) for page in (ROOT / "docs").glob("*/*.md") if page.resolve() not in linked
    ]
    assert missing == []


def test_error_codes_in_prose_exist():
    known = {code for code, _ in errors.CODES}
    for page in pages():
        assert set(CODE.findall(page.read_text("utf-8"))) <= known, named(page)


def test_rules_in_prose_exist():
    known = set(proofs.all_rules())
    for page in pages():
        if page.name != "CONTRIBUTING.md":  # its example is a rule that somebody might add
            assert set(proofs.ID.findall(page.read_text("utf-8"))) <= known, named(page)


def test_errors_of_papers_that_are_cited_are_listed():
    listed = re.findall(r"\*\*(\d+)\. ", (ROOT / "docs/explanation/papers.md").read_text("utf-8"))
    assert [int(number) for number in listed] == list(range(1, len(listed) + 1))
    for path in files(".py", ".md"):
        for numbers in CITED.findall(path.read_text("utf-8")):
            assert set(re.findall(r"\d+", numbers)) <= set(listed), f"{named(path)} cites {numbers}"


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
    page = (ROOT / "docs/reference/commands.md").read_text("utf-8")
    listed = re.findall(r"^\| `secant (\w+)", page, re.MULTILINE)
    assert sorted(listed) == sorted(name for name, _, _ in COMMANDS)


def test_policies_in_the_pages_are_read():
    for page in pages():
        for block in blocks(page):
            if block.language == "toml":
                tomllib.loads(block.text)
                if "[protections." in block.text:
                    assert read_policy(block.text).protections, f"{named(page)}:{block.line}"


def test_spelling_is_american():
    for word in (
        "behaviour",
        "Normalised",
        "optimisation",
        "centre",
        "towards",
        "modelled",
        "fulfil",
    ):
        assert BRITISH.search(f"a {word} b"), word
    for word in (
        "precise",
        "revised",
        "exercise",
        "fulfill",
        "concentrated",
        "toward",
        "x.cancelled()",
    ):
        assert not BRITISH.search(f"a {word} b"), word
    for path in files(".py", ".md", ".toml", ".sql"):
        if path == ROOT / "tests/repo/test_prose.py" or path == ROOT / "CHANGELOG.md":
            continue  # one holds the list, the other says which name was spelled otherwise
        assert BRITISH.findall(path.read_text("utf-8")) == [], named(path)
