"""Random bits, all of them the operating system's.

In: nothing. Out: independent fair bits as words, integers, and reals in (0, 1) that are
known to as many bits as a question needs. No seed can be set, no bit is used twice, and a forked
child shares no bit with its parent.
"""

from __future__ import annotations

import os
import struct
from dataclasses import dataclass

from secant.numeric.ball import Ball, dyadic_interval

_BATCH = 512
_UNPACK = struct.Struct(f"<{_BATCH}Q").unpack
# `list.pop` is atomic, so two threads never receive the same word.
_words: list[int] = []
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_words.clear)


def word() -> int:
    """Give 64 fresh bits."""
    while True:
        try:
            return _words.pop()
        except IndexError:
            _words.extend(_UNPACK(os.urandom(8 * _BATCH)))


def bits(count: int) -> int:
    """Give a uniform integer of `count` bits."""
    if count <= 64:
        return word() >> (64 - count) if count else 0
    return int.from_bytes(os.urandom((count + 7) // 8), "little") >> (-count % 8)


def below(bound: int) -> int:
    """Give a uniform integer from 0 up to, not including, `bound`."""
    width = (bound - 1).bit_length()
    while True:
        candidate = bits(width)
        if candidate < bound:
            return candidate


@dataclass(slots=True)
class LazyUniform:
    """A uniform real in (0, 1), of which the first `known` bits have been drawn.

    It lies in [numerator, numerator + 1] / 2^known; asking for more bits narrows the interval and
    never moves it, so that a question answered from a few bits has the answer of all bits.
    """

    numerator: int = 0
    known: int = 0

    def refine(self, extra: int) -> None:
        """Draw `extra` more bits."""
        self.numerator = (self.numerator << extra) | bits(extra)
        self.known += extra

    def enclosure(self, precision: int) -> Ball:
        """Enclose the number, with at least `precision` bits drawn."""
        if self.known < precision:
            self.refine(precision - self.known)
        return dyadic_interval(self.numerator, self.known)
