"""The page about choosing a sensitivity: every block runs, each in a process of its own."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[3] / "docs" / "how-to" / "choose-a-sensitivity.md"
BLOCKS = re.findall(r"^```python\n(.*?)^```$", PAGE.read_text("utf-8"), re.MULTILINE | re.DOTALL)
EXPECTED = (
    "not a release",
    "assuming that midrange is ordered",
    "noise scale 0.5 instead of 2",
    "everybody has their own epsilon, from 0.25 to 1",
    "layers",
)


def test_the_page_has_the_blocks_that_are_looked_at():
    assert len(BLOCKS) == len(EXPECTED)


@pytest.mark.parametrize(("text", "expected"), [*zip(BLOCKS, EXPECTED, strict=False)])
def test_a_block_runs_and_says_what_it_should(text, expected, tmp_path):
    result = subprocess.run(
        [sys.executable, "-c", text], cwd=tmp_path, capture_output=True, text=True
    )
    assert result.returncode == 0, result.stderr
    assert expected in result.stdout
