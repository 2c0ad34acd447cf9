"""Every block of the README and of the tutorials runs, in order, in one empty directory."""

import os
import re
import subprocess
import sys
from pathlib import Path

import duckdb
import pytest
from repository import ROOT, Block, blocks, named

RUNNABLE = (ROOT / "README.md", *sorted((ROOT / "docs" / "tutorials").glob("*.md")))
LANGUAGES = ("sh", "python", "toml", "text")
FILE_NAME = re.compile(r"# ([\w./-]+\.toml)\b")


def run_block(block: Block, folder: Path) -> None:
    """Run one block; a toml block is saved under the name in its first line."""
    if block.language == "toml":
        name = FILE_NAME.match(block.text)
        assert name, f"{named(block.page)}:{block.line}: a toml block names its file in line 1"
        (folder / name[1]).write_text(block.text, encoding="utf-8")
    elif block.language == "python":
        _run([sys.executable, "-c", block.text], block, folder)
    elif block.language == "sh":
        for command in _commands(block.text):
            if command.startswith("make "):
                # Set-up is tested by whoever runs it; here: the target exists and is well formed.
                _run(["make", "-n", "-C", str(ROOT), *command.split()[1:]], block, folder)
            elif not command.startswith(("git clone ", "cd ")):
                _run(["bash", "-euo", "pipefail", "-c", command], block, folder)


def write_visits(file: Path) -> None:
    """Write a file such as the first lines of a page ask about."""
    duckdb.sql(
        "COPY (SELECT i % 1000 AS patient_id, ['Eye', 'Ear'][i % 2 + 1] AS ward, 20.0 + i % 200 AS cost "
        f"FROM range(4000) AS r(i)) TO '{file}' (FORMAT parquet)"
    )


def _commands(text: str) -> list[str]:
    """Join continued lines, drop comments, and give one command a line."""
    joined = text.replace("\\\n", " ")
    lines = (line.split(" #")[0].strip() for line in joined.splitlines())
    return [line for line in lines if line and not line.startswith("#")]


def _run(command: list[str], block: Block, folder: Path) -> None:
    tools = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    result = subprocess.run(
        command, cwd=folder, env={**os.environ, "PATH": tools}, capture_output=True, text=True
    )
    expected = 3 if "# refused" in block.text else 0
    assert result.returncode == expected, (
        f"{named(block.page)}:{block.line}: exit {result.returncode}\n{result.stderr}"
    )
    assert "Traceback" not in result.stderr


@pytest.mark.parametrize("page", RUNNABLE, ids=named)
def test_every_block_runs(page, tmp_path):
    found = blocks(page)
    assert any(block.language in ("sh", "python") for block in found)
    if page.name == "README.md":  # whose first lines are about a file that the reader has
        write_visits(tmp_path / "visits.parquet")
    for block in found:
        assert block.language in LANGUAGES, f"{named(page)}:{block.line}: which language?"
        run_block(block, tmp_path)


def test_a_block_that_fails_is_noticed(tmp_path):
    for language, text in (("sh", "false\n"), ("python", "1/0\n"), ("toml", "a = 1\n")):
        with pytest.raises(AssertionError):
            run_block(Block(ROOT / "README.md", 1, language, text), tmp_path)


def test_the_readme_fits_on_a_screen_or_two():
    assert len((ROOT / "README.md").read_text().splitlines()) <= 120
