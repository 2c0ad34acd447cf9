"""Ask drawn questions outside of pytest: `python tests/fuzz/ask_many.py SEED QUESTIONS [POSTGRES-ADDRESS]`.

With `--policies` the policies are drawn as well.
Findings are printed as JSON lines as they come, a summary now and then and at the end. Shards are different seeds.
"""

from __future__ import annotations

import sys
import tempfile
import warnings
from pathlib import Path

sys.path[:0] = [str(folder) for folder in Path(__file__).parents[:2]]

from fuzzing import fuzz, fuzz_policies  # noqa: E402 - the folder is no package


def main() -> int:
    """Ask, tell, and fail if anything was found."""
    warnings.simplefilter("error")
    given = [a for a in sys.argv[1:] if a != "--policies"]
    ask = fuzz if len(given) == len(sys.argv) - 1 else fuzz_policies
    seed, questions = int(given[0]), int(given[1])
    address = given[2] if len(given) > 2 else None
    with tempfile.TemporaryDirectory(prefix="secant-fuzz-") as directory:
        summary = ask(
            seed, questions, Path(directory), address, told=lambda line: print(line, flush=True)
        )
    print(summary.report())
    return 1 if summary.findings else 0


if __name__ == "__main__":
    raise SystemExit(main())
