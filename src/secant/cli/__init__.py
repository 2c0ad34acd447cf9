"""The command line: one small file a command. `script` is what the `secant` program calls."""

from secant.cli.program import main, script

__all__ = ["main", "script"]
