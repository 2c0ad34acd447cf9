"""Every block of the README and of the tutorials runs, in order, in one empty directory."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import duckdb
import pytest
import warm_programs
from repository import ROOT, Block, blocks, named

RUNNABLE = (ROOT / "README.md", *sorted((ROOT / "docs" / "tutorials").glob("*.md")))
LANGUAGES = ("sh", "python", "toml", "text")
COLD = ROOT / "README.md"
"""Its programs are started as a reader starts them; those of other pages need not import everything anew."""
QUOTED = re.compile(r"'[^']*'|\"[^\"$`\\\\]*\"")
OF_A_SHELL = re.compile(r"[|&;<>$`*?~()\\\\\"']")
"""What a shell does with a command, outside of quotes that hold nothing but text."""
FILE_NAME = re.compile(r"# ([\w./-]+\.toml)\b")


def run_block(block: Block, folder: Path) -> None:
    """Run one block; a toml block is saved under the name in its first line."""
    if block.language == "toml":
        name = FILE_NAME.match(block.text)
        assert name, f"{named(block.page)}:{block.line}: a toml block names its file in line 1"
        (folder / name[1]).write_text(block.text, encoding="utf-8")
    elif block.language == "python":
        _check(_python(block, folder), block)
    elif block.language == "sh":
        for command in _commands(block.text):
            if command.startswith("make "):
                # Set-up is tested by whoever runs it; here: the target exists and is well formed.
                _check(_cold(["make", "-n", "-C", str(ROOT), *command.split()[1:]], folder), block)
            elif not command.startswith(("git clone ", "cd ")):
                _check(_shell(command, block, folder), block)


def _python(block: Block, folder: Path) -> subprocess.CompletedProcess[str]:
    if block.page == COLD:
        return _cold([sys.executable, "-c", block.text], folder)
    return warm_programs.run(folder, program=block.text, environment=_environment())


def _shell(command: str, block: Block, folder: Path) -> subprocess.CompletedProcess[str]:
    if (
        block.page == COLD
        or not command.startswith("secant ")
        or OF_A_SHELL.search(QUOTED.sub("", command))
    ):
        return _cold(["bash", "-euo", "pipefail", "-c", command], folder)
    return warm_programs.run(folder, words=shlex.split(command)[1:], environment=_environment())


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


def _environment() -> dict[str, str]:
    tools = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    return {**os.environ, "PATH": tools}


def _cold(command: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command, cwd=folder, env=_environment(), capture_output=True, text=True, check=False
    )


def _check(result: subprocess.CompletedProcess[str], block: Block) -> None:
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
    wrong = (
        ("sh", "false\n"),
        ("sh", "secant nothing\n"),
        ("python", "1/0\n"),
        ("toml", "a = 1\n"),
    )
    for page in (COLD, ROOT / "docs" / "index.md"):
        for language, text in wrong:
            with pytest.raises(AssertionError):
                run_block(Block(page, 1, language, text), tmp_path)


def test_a_warm_program_is_alone_in_its_folder(tmp_path):
    """Nothing of one program is left in the next; what it prints and how it ends is told."""
    first = "import os, sys, secant\nsecant.left = 1\nprint(os.getcwd(), __name__, sys.argv)\nsys.exit(7)"
    done = warm_programs.run(tmp_path, program=first, environment=_environment())
    assert (done.returncode, done.stdout) == (7, f"{tmp_path} __main__ ['-c']\n")
    second = "import secant\nassert not hasattr(secant, 'left')\nraise ValueError('x')"
    done = warm_programs.run(tmp_path, program=second, environment=_environment())
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1] == "ValueError: x"
    done = warm_programs.run(tmp_path, words=["--version"], environment=_environment())
    assert (done.returncode, done.stdout) == (0, "0.1.0\n")


def test_the_readme_fits_on_a_screen_or_two():
    assert len((ROOT / "README.md").read_text().splitlines()) <= 120
