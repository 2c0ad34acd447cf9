"""The page about checking releases runs as it is written, and shows what is printed."""

import os
import subprocess
import sys
from pathlib import Path

from repository import ROOT, blocks
from test_readme import run_block

PAGE = ROOT / "docs" / "how-to" / "check-a-release.md"


def test_every_block_of_the_page_runs(tmp_path):
    found = blocks(PAGE)
    for block in found:
        run_block(block, tmp_path)
    shown = next(b.text for b in found if b.language == "text")
    command = [sys.executable, "-m", "secant", "verify", "last", "-p", "clinic/policy.toml"]
    done = subprocess.run(
        command, cwd=tmp_path, capture_output=True, text=True, env=dict(os.environ)
    )
    assert done.stdout.split() == shown.split()
    assert Path(tmp_path, "demo.txt").exists()
