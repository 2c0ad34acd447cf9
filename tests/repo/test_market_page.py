"""The page about markets runs from top to bottom."""

from repository import ROOT, blocks
from test_readme import run_block

PAGE = ROOT / "docs" / "how-to" / "run-a-market.md"


def test_every_block_of_the_page_runs(tmp_path):
    found = blocks(PAGE)
    assert [block.language for block in found] == ["python"] * 6
    for block in found:
        run_block(block, tmp_path)
    assert (tmp_path / "market.ledger").exists()
