"""Where drawn tests get their luck: the same in every fast run, new in the long profile (SECANT_PROFILE=long).

What is submitted is judged by the fast suite once, so its draws are decided when it is written; the long profile, which
is run by hand, looks for what nobody has seen. SECANT_SEED repeats a long run: each seed is printed.
"""

import os
import random

LONG = os.environ.get("SECANT_PROFILE") == "long"
FIXED = 7


def fresh_seed() -> int:
    """Give the seed of a test."""
    given = os.environ.get("SECANT_SEED")
    seed = int(given) if given else random.SystemRandom().randrange(2**40) if LONG else FIXED
    print(f"SECANT_SEED={seed}")
    return seed


def seeds(many: int) -> range:
    """Give the seeds of many draws, one after the other: from 0 in a fast run, from a new place in a long one."""
    first = fresh_seed()
    return range(many) if first == FIXED else range(first, first + many)


def chance() -> random.Random:
    """Give a source of draws."""
    return random.Random(fresh_seed())
