"""The command line: one small file a command. `main` is what the `secant` script calls."""

from secant.cli.program import main

__all__ = ["main"]
