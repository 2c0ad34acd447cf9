"""The page about released statistics runs, block by block, and its table is level with the figures."""

from __future__ import annotations

import doctest
import re
import subprocess
import sys
from pathlib import Path

import pytest

import secant.stats  # noqa: F401

ROOT = Path(__file__).parents[3]
PAGE = ROOT / "docs" / "how-to" / "release-statistics.md"
BLOCKS = re.findall(r"^```python\n(.*?)^```$", PAGE.read_text("utf-8"), re.MULTILINE | re.DOTALL)
MODULES = (
    "aggregate", "choice", "counting", "groups", "preprocessing.layers", "moments", "release",
    "results", "scale", "triangles",
)  # fmt: skip


@pytest.mark.parametrize("block", BLOCKS, ids=lambda b: b.splitlines()[-1][:30])
def test_a_block_of_the_page_runs(block, tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", block], cwd=tmp_path, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("name", MODULES)
def test_examples_in_docstrings_hold(name):
    failed, tried = doctest.testmod(sys.modules[f"secant.stats.{name}"])
    assert tried > 0
    assert failed == 0


def test_the_automatic_choice_is_near_the_best_in_the_table():
    """On the four kinds of data of the page only; what happens on others is on the page too."""
    page = (ROOT / "docs" / "reference" / "statistics-accuracy.md").read_text("utf-8")
    ratios = dict(re.findall(r"^\| ([a-z0-9. ]+) \| ([0-9.]+) \|$", page, re.MULTILINE)[:8])
    by_rank = ("median", "quantile 0.25", "quantile 0.9", "minimum", "maximum")
    assert {name for name in by_rank if float(ratios[name]) > 1.3} == set()
    assert "These ratios flatter" in page, "the choice was settled with these data in view"
    assert "above 1.3" in page
