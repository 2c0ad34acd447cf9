"""A shell completes what the program knows."""

import shutil
import subprocess

import pytest

from secant.cli import main
from secant.cli.program import COMMANDS


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_script_knows_every_command(shell, capsys):
    assert main(["completion", shell]) == 0
    script = capsys.readouterr().out
    for name, _, _ in COMMANDS:
        assert name in script


def test_bash_completes_commands_and_options(capsys, tmp_path):
    main(["completion", "bash"])
    script = tmp_path / "secant.bash"
    script.write_text(capsys.readouterr().out)
    asked = f"""
source {script}
complete_words() {{ COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMPREPLY=(); _secant; echo "${{COMPREPLY[@]}}"; }}
complete_words secant exp
complete_words secant query --eps
"""
    if shutil.which("bash") is None:
        pytest.skip("there is no bash")
    done = subprocess.run(["bash", "-c", asked], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["explain", "--epsilon"]


def test_another_shell_is_told_which_there_are(capsys):
    assert main(["completion", "tcsh"]) == 2
    assert "bash" in capsys.readouterr().err
