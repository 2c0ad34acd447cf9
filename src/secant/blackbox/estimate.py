"""A sampled sensitivity as a record that is kept and used again.

In: the distances that were sampled, and how. Out: bounds for mechanisms, a picture, a fingerprint.
All of it is public; nothing here draws or calls a function.
"""

from __future__ import annotations

import hashlib
import math
from dataclasses import field
from fractions import Fraction

from secant.blackbox.design import Design
from secant.blackbox.distributions import Distribution
from secant.blackbox.measure import Ruler, converted, rounded_up
from secant.display.curves import Line, chart
from secant.display.drawing import Picture
from secant.errors import UsageError
from secant.records import frozen
from secant.sensitivity.bounds import Norm


@frozen
class Probe:
    """A sample that is kept to see whether a function is still the one that was sampled."""

    number: int
    distance: float
    seal: str
    """A digest of both results; empty where the caller brought a distance."""


@frozen
class Sensitivity:
    """A sampled sensitivity: public, so it may be shown, stored and used again (blackbox.reuse)."""

    distances: tuple[float, ...] = field(repr=False)
    """The m sampled distances, sorted."""
    design: Design
    norm: str
    distribution: str
    function: str
    code: str | None
    """A digest of the function and of all that it reaches; None if it cannot be told from others."""
    n: int
    shape: tuple[int, ...] | None
    ruler: Ruler = field(repr=False)
    law: Distribution = field(repr=False, compare=False)
    seed: int = field(repr=False)
    """What the samples were drawn from: any of them can be drawn again."""
    probes: tuple[Probe, ...] = field(repr=False)
    seconds: float = field(compare=False)

    @property
    def estimate(self) -> float:
        """Give the k-th smallest distance."""
        return self.distances[self.design.k - 1]

    @property
    def size(self) -> int:
        """Give how many numbers a result has."""
        return 1 if self.shape is None else math.prod(self.shape)

    @property
    def value(self) -> Fraction:
        """Give the sensitivity in the norm that was sampled, rounded up (blackbox.float)."""
        return rounded_up(self.estimate, self.size)

    @property
    def name(self) -> str:
        """Give a short fingerprint; releases with the same one share their γ."""
        text = repr((self.distances, self.design, self.norm, self.function, self.code, self.n))
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    def bound(self, norm: Norm) -> Fraction:
        """Give the sensitivity in the norm that a mechanism needs, rounded up (blackbox.norms)."""
        if self.shape is None or not isinstance(self.ruler.norm, str):
            raise UsageError(
                "USE-001",
                "a norm of the caller's own goes with a mechanism of the caller's own",
                hint="sample in l1, l2 or linf for this mechanism",
            )
        return converted(self.value, self.ruler.norm, norm, self.size)

    def plot(self) -> Picture:
        """Draw the share of samples at most as far as x, as a staircase, with the estimate marked."""
        m = len(self.distances)
        steps = [(self.distances[0], 0.0)]
        for index, distance in enumerate(self.distances):
            steps += [(distance, index / m), (distance, (index + 1) / m)]
        note = f"k = {self.design.k} of m = {self.design.m}, γ = {float(self.design.gamma):.4g}"
        return chart(
            [Line(steps, note)],
            title=f"{self.function}: sensitivity, {self.norm}, n = {self.n}",
            x_label="distance of the two results",
            y_label="share of the samples",
            marks=[(self.estimate, f"estimate {self.estimate:.4g}")],
        )

    def __str__(self) -> str:
        d = self.design
        return (
            f"sampled sensitivity of {self.function} in {self.norm}: {self.estimate:.6g} "
            f"(number {d.k} of {d.m} by size, gamma {float(d.gamma):.4g} by {d.proof}) for {self.n} records of "
            f"{self.distribution!r}; for random differential privacy only"
        )


def name_of(function: object) -> str:
    """Give the name under which a function's estimate is kept."""
    inner = getattr(function, "func", function)  # a partial is named after what it calls
    return str(getattr(inner, "__qualname__", type(inner).__qualname__))[:200]
