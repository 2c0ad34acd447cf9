"""The page about the solver runs from top to bottom."""

from repository import ROOT, blocks
from test_readme import run_block

PAGE = ROOT / "docs" / "how-to" / "check-with-a-solver.md"


def test_every_block_of_the_page_runs(tmp_path):
    found = blocks(PAGE)
    assert tuple(block.language for block in found) == ("sh", "python", "python", "sh")
    for block in found[1:]:  # the first one installs the solver
        run_block(block, tmp_path)
    assert (tmp_path / "morning.smt2").exists()
    assert "(check-sat)" in (tmp_path / "dose.smt2").read_text(encoding="utf-8")
