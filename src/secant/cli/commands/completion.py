"""`secant completion`: the words that a shell completes after `secant`.

In: a shell's name. Out: its script, made from the commands and options that there are.
"""

from __future__ import annotations

import sys
from typing import Annotated, Literal

from cyclopts import Parameter

from secant.cli.output import writing


def completion(
    shell: Annotated[
        Literal["bash", "zsh", "fish"], Parameter(help="bash, zsh or fish, which will read it.")
    ],
    /,
) -> int:
    """Print a script that completes commands and options: `eval "$(secant completion bash)"`."""
    from secant.cli.program import program

    with writing():
        sys.stdout.write(program().generate_completion(shell=shell) + "\n")
    return 0
