"""Ask drawn questions outside of pytest: `python tests/fuzz/ask_many.py SEED QUESTIONS [POSTGRES-ADDRESS]`.

Findings are printed as JSON lines as they come, a summary now and then and at the end. Shards are different seeds.
"""

from __future__ import annotations

import sys
import tempfile
import warnings
from pathlib import Path

sys.path[:0] = [str(folder) for folder in Path(__file__).parents[:2]]

from fuzzing import fuzz  # noqa: E402 - the folder is no package


def main() -> int:
    """Ask, tell, and fail if anything was found."""
    warnings.simplefilter("error")
    seed, questions = int(sys.argv[1]), int(sys.argv[2])
    address = sys.argv[3] if len(sys.argv) > 3 else None
    with tempfile.TemporaryDirectory(prefix="secant-fuzz-") as directory:
        summary = fuzz(
            seed, questions, Path(directory), address, told=lambda line: print(line, flush=True)
        )
    print(summary.report())
    return 1 if summary.findings else 0


if __name__ == "__main__":
    raise SystemExit(main())
