"""Every rule id in the code has its section in the room's PROOFS.md, and the other way round."""

import re

import pytest
from repository import SRC, named

ID = re.compile(r"(?<![\w-])[A-Z]-[A-Z][A-Z0-9]*(?:-[A-Z0-9]+)*(?![\w-])")
HEADING = re.compile(rf"^## ({ID.pattern})(?= )", re.MULTILINE)
PARTS = ("*Claim*", "*Needs*", "*Proof*", "*Numerics*")
PROOFS = sorted(SRC.rglob("PROOFS.md"))


def ids_in_code() -> dict[str, set[str]]:
    """Give every id that the code names, with the files that name it."""
    found: dict[str, set[str]] = {}
    for path in SRC.rglob("*.py"):
        for rule in ID.findall(path.read_text(encoding="utf-8")):
            found.setdefault(rule, set()).add(named(path))
    return found


def sections(text: str) -> dict[str, str]:
    """Give the sections of a PROOFS.md by rule id."""
    marks = list(HEADING.finditer(text))
    ends = [mark.start() for mark in marks[1:]] + [len(text)]
    return {mark[1]: text[mark.end() : end] for mark, end in zip(marks, ends, strict=True)}


def test_there_are_proofs():
    assert PROOFS


def test_every_id_in_the_code_is_proved():
    proved = set()
    for page in PROOFS:
        proved |= set(sections(page.read_text(encoding="utf-8")))
    missing = {rule: sorted(where) for rule, where in ids_in_code().items() if rule not in proved}
    assert missing == {}


@pytest.mark.parametrize("page", PROOFS, ids=named)
def test_every_proof_is_used_by_code_in_its_room(page):
    here = set()
    for path in page.parent.rglob("*.py"):
        here |= set(ID.findall(path.read_text(encoding="utf-8")))
    proved = sections(page.read_text(encoding="utf-8"))
    assert proved, "a PROOFS.md without a section"
    assert set(proved) - here == set()


@pytest.mark.parametrize("page", PROOFS, ids=named)
def test_every_proof_has_its_four_parts(page):
    for rule, text in sections(page.read_text(encoding="utf-8")).items():
        missing = [part for part in PARTS if part not in text and part[:-1] + ".*" not in text]
        assert missing == [], f"{rule} in {named(page)}"


@pytest.mark.parametrize("page", PROOFS, ids=named)
def test_no_id_is_proved_twice(page):
    found = [m[1] for m in HEADING.finditer(page.read_text(encoding="utf-8"))]
    assert len(set(found)) == len(found)
