"""Every rule id in the code has its section in a PROOFS.md, and the other way round."""

import itertools
import re

import pytest
from repository import SRC, named

ID = re.compile(r"(?<![\w-])[A-Z]-[A-Z][A-Z0-9]*(?:-[A-Z0-9]+)*(?![\w-])")
HEADING = re.compile(rf"^## ({ID.pattern}(?:, {ID.pattern})*)", re.MULTILINE)
ANY_HEADING = re.compile(r"^## ", re.MULTILINE)
POINTER = re.compile(rf"\s*See (above|{ID.pattern})\.\s*\Z")
PROOFS = sorted(SRC.rglob("PROOFS.md"))


def ids_in_code() -> dict[str, set[str]]:
    """Give every id that the code names, with the files that name it."""
    found: dict[str, set[str]] = {}
    for path in SRC.rglob("*.py"):
        for rule in ID.findall(path.read_text(encoding="utf-8")):
            found.setdefault(rule, set()).add(named(path))
    return found


def sections(text: str) -> list[tuple[tuple[str, ...], str]]:
    """Give the sections of a PROOFS.md: the ids in the heading, and what stands below it."""
    marks = [mark.start() for mark in ANY_HEADING.finditer(text)] + [len(text)]
    found = []
    for start, end in itertools.pairwise(marks):
        heading, _, body = text[start:end].partition("\n")
        match = HEADING.match(heading)
        if match:
            found.append((tuple(match[1].split(", ")), body))
    return found


def proved_on(page) -> set[str]:
    return {rule for rules, _ in sections(page.read_text(encoding="utf-8")) for rule in rules}


def test_there_are_proofs():
    assert PROOFS


def test_every_id_in_the_code_is_proved():
    proved = set().union(*(proved_on(page) for page in PROOFS))
    missing = {rule: sorted(where) for rule, where in ids_in_code().items() if rule not in proved}
    assert missing == {}


@pytest.mark.parametrize("page", PROOFS, ids=named)
def test_every_proof_is_used_by_the_code(page):
    proved = proved_on(page)
    assert proved, "a PROOFS.md without a section"
    assert proved - set(ids_in_code()) == set()


@pytest.mark.parametrize("page", PROOFS, ids=named)
def test_every_section_claims_and_proves(page):
    """A section may point to another one; a refusal needs no proof."""
    here = sections(page.read_text(encoding="utf-8"))
    whole = {rule for rules, body in here if not POINTER.match(body) for rule in rules}
    for rules, body in here:
        pointer = POINTER.match(body)
        if pointer:
            assert pointer[1] in whole | {"above"}, rules
            assert set(rules) <= whole or pointer[1] != "above", rules
            continue
        assert "*Claim" in body, rules
        assert "*Proof" in body or "refus" in body, rules


@pytest.mark.parametrize("page", PROOFS, ids=named)
def test_no_id_is_proved_twice(page):
    here = sections(page.read_text(encoding="utf-8"))
    whole = [rule for rules, body in here if not POINTER.match(body) for rule in rules]
    grouped = {rule for rules, _ in here if len(rules) > 1 for rule in rules}
    assert [rule for rule in set(whole) - grouped if whole.count(rule) > 1] == []


def test_sections_are_told_apart():
    text = "# T\n## G-A, G-B-C both\n*Claim.* x\n## G-B-C\nSee above.\n## Words\ny\n"
    assert sections(text) == [
        (("G-A", "G-B-C"), "*Claim.* x\n"),
        (("G-B-C",), "See above.\n"),
    ]
