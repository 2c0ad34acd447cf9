"""`python -m secant` is the `secant` command, also where scripts are not on the path."""

from secant.cli import script

script()
