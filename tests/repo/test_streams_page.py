"""The page about streams: its block runs, and its figures are the library's own."""

import re
from fractions import Fraction

import pytest
from repository import ROOT, blocks
from test_readme import run_block

from secant.noise.continual import StreamFacts, choose

PAGE = ROOT / "docs" / "explanation" / "streams.md"
ROW = re.compile(
    r"^\| (\w+) \| ([\d.]+) / ([\d.]+) \| ([\d.]+) / ([\d.]+) \| ([\d.]+) / ([\d.]+) \|$", re.M
)
STEPS = (64, 1024, 16384)


def test_the_block_of_the_page_runs(tmp_path):
    (block,) = blocks(PAGE)
    run_block(block, tmp_path)


def test_the_figures_of_the_page_are_the_librarys_own():
    rows = {row[0]: [float(x) for x in row[1:]] for row in ROW.findall(PAGE.read_text("utf-8"))}
    assert set(rows) == {"increments", "tree", "toeplitz", "binary"}
    for i, steps in enumerate(STEPS):
        found = choose(StreamFacts(steps, Fraction(1), Fraction(1, 10**8), 1)).compared
        for candidate in found:
            if candidate.law == ("normal" if candidate.name == "toeplitz" else "laplace"):
                mean, largest = rows[candidate.name][2 * i : 2 * i + 2]
                assert mean == pytest.approx(candidate.mean, abs=0.051)
                assert largest == pytest.approx(candidate.largest, abs=0.051)
