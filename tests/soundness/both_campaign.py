"""Draw pairs under `rows+cells`: `python tests/soundness/both_campaign.py [PAIRS] [SEED] [SECONDS]`.

Half of them rows that stand in one joined row, half in several, with MIN and MAX. Prints how many pairs were tried, and
the largest share of what the distance allows; ends with 1 if one is above it.
"""

import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

import test_rows_and_values as single  # noqa: E402 - its folder is put on the path above
import test_rows_in_several_joined_rows as fans  # noqa: E402
from both_check import CLOSE  # noqa: E402

EACH = 400
"""Pairs that are near to each other, for each question and setting."""


def main(pairs=1_000_000, seed="campaign", seconds=3600.0):
    """Search in rounds, each with another seed."""
    began, tried, worst, rounds = time.monotonic(), 0, (0.0,), 0
    while tried < pairs and time.monotonic() - began < seconds:
        for module, texts in (
            (single, (*single.ONE, *single.TWO)),
            (fans, (*fans.TEXTS, *fans.EXTREME)),
        ):
            setting = module.SETTINGS[rounds % len(module.SETTINGS)]
            for text in texts:
                found, count = module.search((text,), (setting,), EACH, f"{seed} {rounds} {text}")
                tried += count
                worst = max(worst, found)
            print(f"{tried:,} pairs, worst {worst}", flush=True)
        rounds += 1
    return 0 if worst[0] <= 1 + CLOSE else 1


if __name__ == "__main__":
    given = sys.argv[1:]
    sys.exit(
        main(
            int(given[0]) if given else 1_000_000,
            given[1] if len(given) > 1 else "campaign",
            float(given[2]) if len(given) > 2 else 3600.0,
        )
    )
