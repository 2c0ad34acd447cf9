"""Which letters `lower` and `upper` change, for engines that would change more than one letter into one other.

In: the name of a function. Out: two text constants for `translate`: the letters, and what each becomes.
"""

from __future__ import annotations

from functools import cache

from secant.engines.dialect import text
from secant.plan.functions.scalar import FUNCTIONS

_LAST_LETTER = 0x20000
"""Beyond are no letters of two cases."""


@cache
def letters(function: str) -> str:
    """Write the letters that a function changes, and what they become."""
    change = FUNCTIONS[function].apply
    every = (chr(code) for code in range(1, _LAST_LETTER) if not 0xD800 <= code < 0xE000)
    pairs = [(a, b) for a in every if (b := str(change(a))) != a]
    return ", ".join(text("".join(side)) for side in zip(*pairs, strict=True))
