"""The page about frames runs as it is written, from its first block to its last."""

import subprocess
import sys

from repository import ROOT, blocks


def test_the_page_about_frames_runs(tmp_path):
    page = ROOT / "docs" / "how-to" / "start-from-a-frame.md"
    program = "\n".join(b.text for b in blocks(page) if b.language == "python")
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert "± is the usual error" in done.stdout
    assert (tmp_path / "visits.ledger").exists()
