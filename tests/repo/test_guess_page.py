"""The page about guesses runs from top to bottom."""

from repository import ROOT, blocks
from test_readme import run_block

PAGE = ROOT / "docs" / "explanation" / "guessing.md"


def test_every_block_of_the_page_runs(tmp_path):
    found = blocks(PAGE)
    assert [block.language for block in found].count("python") == 4
    for block in found:
        run_block(block, tmp_path)
    for name in ("curve.svg", "guess.svg", "simulated.svg"):
        assert (tmp_path / name).read_text(encoding="utf-8").startswith("<svg")
