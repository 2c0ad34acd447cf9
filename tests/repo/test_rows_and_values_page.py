"""The page about rows and values runs from top to bottom, and refuses what it says is refused."""

import dataclasses

from repository import ROOT, blocks
from test_readme import run_block

PAGE = ROOT / "docs" / "how-to" / "protect-rows-and-values.md"


def test_every_block_of_the_page_runs(tmp_path):
    for block in blocks(PAGE):
        if block.language == "sh":
            for line in block.text.replace("\\\n", " ").splitlines():
                run_block(dataclasses.replace(block, text=line), tmp_path)
        else:
            run_block(block, tmp_path)
