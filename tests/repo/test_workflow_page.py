"""The page about workflows runs from top to bottom, and its table is what the library prints."""

import re

from repository import ROOT, blocks
from test_readme import run_block

import secant

PAGE = ROOT / "docs" / "how-to" / "run-a-workflow.md"


def test_every_block_of_the_page_runs(tmp_path, monkeypatch):
    found = blocks(PAGE)
    for block in found:
        if block.language != "text":
            run_block(block, tmp_path)
    assert (tmp_path / "report.svg").read_text(encoding="utf-8").startswith("<svg")
    (printed,) = [block.text for block in found if block.language == "text"]
    monkeypatch.chdir(tmp_path)
    with secant.connect(policy="workflow.toml") as db:
        told = str(db.run((tmp_path / "report.sql").read_text(), epsilon=3, explain=True))
    lines = {re.sub(r"\s+", " ", line) for line in told.splitlines()}
    for line in printed.splitlines():
        assert line == "…" or re.sub(r"\s+", " ", line) in lines, line
