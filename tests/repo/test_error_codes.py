"""Error codes are unique, documented, raised somewhere, and carry their family's exit status."""

import re

from repository import SRC, docs_tool

from secant import errors

CODE = re.compile(r"\b(?:USE|SQL|POL|REF|BUD|BAK|AUT|SRV|BUG)-\d{3}\b")


def test_codes_are_unique_and_well_formed():
    codes = [code for code, _ in errors.CODES]
    assert len(set(codes)) == len(codes)
    for code, meaning in errors.CODES:
        assert CODE.fullmatch(code)
        assert meaning
        assert meaning == meaning.strip().rstrip(".")


def test_every_code_is_raised_somewhere_and_every_raised_code_is_listed():
    raised = set()
    for path in SRC.rglob("*.py"):
        written, _, _ = path.read_text(encoding="utf-8").partition("\nCODES: ")  # the list itself
        raised |= set(CODE.findall(written))
    assert raised == {code for code, _ in errors.CODES}


def test_the_page_of_codes_is_level_with_the_code():
    made = docs_tool("error_codes")
    assert made.PAGE.read_text("utf-8") == made.page(), "run: python docs/tools/error_codes.py"


def test_the_exit_status_of_each_family():
    expected = {
        "USE": 2,
        "SQL": 2,
        "POL": 2,
        "REF": 3,
        "BUD": 4,
        "BAK": 5,
        "AUT": 6,
        "SRV": 7,
        "BUG": 70,
    }
    families = errors.SecantError.__subclasses__()
    assert {family.family: family.exit_status for family in families} == expected
