"""The pages about values that move run from top to bottom."""

import pytest
from repository import ROOT, blocks, named
from test_readme import run_block

PAGES = (
    (
        ROOT / "docs" / "explanation" / "cells.md",
        ("toml", "python", "python", "python", "sh", "sh", "python"),
    ),
    (
        ROOT / "docs" / "how-to" / "protect-values.md",
        ("toml", "python", "sh", "sh", "python", "sh", "python"),
    ),
    (
        ROOT / "docs" / "tutorials" / "the-next-ship.md",
        ("python", "toml", "sh", "python", "sh", "python", "sh"),
    ),
)


@pytest.mark.parametrize(
    ("page", "languages"), PAGES, ids=lambda x: named(x) if hasattr(x, "stem") else ""
)
def test_every_block_of_the_pages_runs(page, languages, tmp_path):
    found = blocks(page)
    assert tuple(block.language for block in found) == languages
    for block in found if page.parent.name != "tutorials" else ():  # `test_readme` runs tutorials
        run_block(block, tmp_path)
