"""`python -m secant` is the `secant` command, also where scripts are not on the path."""

import sys

from secant.cli import main

sys.exit(main())
