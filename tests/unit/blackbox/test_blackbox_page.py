"""Every Python block of the page on black boxes runs, in order, in one namespace."""

import importlib.util
import re
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[3] / "docs" / "how-to" / "release-a-black-box.md"
BLOCKS = re.findall(r"^```python\n(.*?)^```$", PAGE.read_text("utf-8"), re.MULTILINE | re.DOTALL)
LEARNERS = [block for block in BLOCKS if "sklearn" in block]


def run_blocks(blocks, folder, monkeypatch):
    monkeypatch.chdir(folder)
    names = {}
    for block in blocks:
        exec(compile(block, str(PAGE), "exec"), names)
    return names


def test_the_blocks_run(tmp_path, monkeypatch, capsys):
    assert len(BLOCKS) == 8
    names = run_blocks([b for b in BLOCKS if b not in LEARNERS], tmp_path, monkeypatch)
    assert "not plain differential privacy" in capsys.readouterr().out
    assert (tmp_path / "noise.svg").exists()
    assert (tmp_path / "sensitivity.svg").exists()
    assert all(law in names["laws"] for law in (names["incomes"],))
    assert names["estimate"].design.m == 199


@pytest.mark.skipif(importlib.util.find_spec("sklearn") is None, reason="scikit-learn is an extra")
def test_the_learner_runs(tmp_path, monkeypatch):
    names = run_blocks([BLOCKS[0], *LEARNERS], tmp_path, monkeypatch)
    assert names["model"].value.shape == (3,)


def test_the_learner_is_on_the_page():
    assert len(LEARNERS) == 1
