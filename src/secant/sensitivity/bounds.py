"""How far an answer can move between neighboring databases, as a mechanism needs to know it.

In: what an analysis has proved. Out: records. A global bound is a public number. The value of a
smooth bound is computed from the data and never stands here: only its smoothness and the expression
that yields it.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Literal

from secant.errors import UsageError
from secant.records import frozen

Norm = Literal["l1", "l2", "linf"]


@frozen
class GlobalBound:
    """No two neighbors' answers differ by more than `value`, whatever the data."""

    value: Fraction
    """Public, exact, at least 0. Zero means that the answer depends on nothing protected."""
    norm: Norm = "l1"
    """For an answer of several numbers: the norm that the difference is measured in."""

    def __post_init__(self) -> None:
        if not isinstance(self.value, Fraction) or self.value < 0:
            raise UsageError("USE-001", "a global bound is an exact number of at least 0")
        if self.norm not in ("l1", "l2", "linf"):
            raise UsageError("USE-001", "the norm of a bound is l1, l2 or linf")


@frozen
class SmoothBound:
    """A bound that varies with the data, by at most a factor exp(beta) between neighbors."""

    beta: Fraction
    """Public smoothness, per unit of distance."""
    expression: object
    """What computes the bound from the data. Its value is private."""
    cap: Fraction | None = None
    """A public global bound of the same answer: the mechanism takes the least of the two."""
    jumps: bool = False
    """Whether neighbors are at distance one and the bound holds on both sides, as for rows and units (noise.jump)."""

    def __post_init__(self) -> None:
        if not isinstance(self.beta, Fraction) or self.beta <= 0:
            raise UsageError("USE-001", "the smoothness of a bound is an exact positive number")
        if self.cap is not None and (not isinstance(self.cap, Fraction) or self.cap <= 0):
            raise UsageError("USE-001", "the cap of a smooth bound is an exact positive number")


Bound = GlobalBound | SmoothBound
