"""The pages about joins, limits and ranges run from top to bottom."""

import pytest
from repository import ROOT, blocks, named
from test_readme import run_block

PAGES = tuple(
    ROOT / "docs" / "explanation" / name
    for name in ("joins-and-limits.md", "ranges.md", "usual-error.md")
)


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_every_block_of_the_pages_runs(page, tmp_path):
    found = blocks(page)
    assert any(block.language in ("sh", "python") for block in found)
    for block in found:
        run_block(block, tmp_path)
