"""Noise in proportion to a smooth bound that is computed beside the measure, group by group.

In: measures with their bounds, sealed together. Out: noise whose size only the owner knows exactly.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from secant.errors import Refused
from secant.noise.cost import ZERO
from secant.noise.intervals import NoisyNumber, Span
from secant.noise.measure_noise import Noise
from secant.noise.mechanisms.smooth import SmoothNoise
from secant.noise.secrecy import Private
from secant.numeric import optimal_law
from secant.records import frozen
from secant.sensitivity.certificate import CannotBound, SmoothSensitivity, Survey, Surveyed

if TYPE_CHECKING:
    from secant.noise.query_plan import Reading

SMOOTH = "optimal smooth noise"
SLACK = Fraction(1, 2**18)
"""What floats and rounding up may add to a smooth bound, relatively (derivative.floats)."""


@frozen
class _Smooth(Noise):
    """Noise for a smooth bound that is computed beside the measure: how large it is, the data decide."""

    smooth: SmoothNoise
    beta: Fraction
    """Smoothness of the bound that is computed; the noise allows for floats on top."""
    truthful: bool
    """Whether what is measured is what was asked for: no filter was softened beyond the steps that values move in."""

    @property
    def family(self) -> str:
        """Name the law of the noise."""
        return SMOOTH

    @property
    def widening(self) -> Fraction:
        """What a bound is widened by, for measures that are computed in floats."""
        return ZERO

    @property
    @abstractmethod
    def cap(self) -> Fraction | None:
        """The most that a bound comes to, if that is public."""

    @property
    def as_asked(self) -> bool:
        """Say so unless a filter was softened."""
        return self.truthful

    def draw(self, values: Private[list[tuple[int, Fraction]]]) -> list[int]:
        """Add noise to each number in proportion to the bound beside it."""
        return self.smooth.draw_whole(values, self.widening)

    def public_error(self, level: Fraction, step: Fraction) -> float | None:
        """Give the most that the noise moves a number at a level, by the public cap; None without one."""
        if self.cap is None:
            return None
        return float(self.smooth.error(level) * (self.cap + self.widening) * step)

    def number(self, step: Fraction, left_out: Span) -> NoisyNumber:
        """Know the cap."""
        return NoisyNumber(0.0, lambda level: self.public_error(level, step))

    def describe(self, step: Fraction) -> dict[str, Any]:
        """Tell the smoothness."""
        return {"mechanism": self.family, "beta": float(self.beta)}

    def words(self, step: Fraction, level: Fraction) -> str:
        """Say its shape, and at most how large it is."""
        most = self.public_error(level, step)
        size = (
            "its size is known only to the owner"
            if most is None
            else f"at most {most:.6g} at {float(level):.0%}, known exactly only to the owner"
        )
        return f"{SMOOTH}, beta {float(self.beta):.4g}, epsilon {float(self.epsilon):.4g}; {size}"

    def unnoised(self, content: list[tuple[int, Fraction]]) -> list[int]:
        """Leave the bounds away."""
        return [value for value, _ in content]

    def sensitivities(self, content: list[tuple[int, Fraction]]) -> list[Fraction]:
        """Give the bounds."""
        return [bound for _, bound in content]

    def scales(self, content: list[tuple[int, Fraction]]) -> list[Fraction]:
        """Give the bounds over the rate of the law."""
        return [(bound + self.widening) / self.smooth.rate for _, bound in content]

    def tail(self, v: float) -> float:
        """Ask the law that is best for smooth bounds."""
        tail = optimal_law.tail(float(self.smooth.epsilon / self.smooth.beta), abs(v)) / 2
        return tail if v >= 0 else 1 - tail


@frozen
class CurveNoise(_Smooth):
    """Noise for values that move: the bound is put together from what the rows of each scan do to the measure."""

    curve: SmoothSensitivity

    @property
    def widening(self) -> Fraction:
        """Twice the rounding: of either neighbor."""
        return 2 * self.curve.rounding

    @property
    def cap(self) -> Fraction | None:
        """The curve's."""
        return self.curve.cap

    @property
    def surveys(self) -> tuple[Survey, ...]:
        """Those of rows that come and go, where there are any."""
        return () if self.curve.coming is None else self.curve.coming.surveys

    @property
    def rate(self) -> Fraction:
        """As much as a row that comes or goes may change the bound."""
        return self.beta if self.curve.coming is None else self.beta * self.curve.coming.nearest

    def read_by(self, reading: Reading, column: str) -> None:
        """Read the measure, how it moves, and the figures of surveys where rows come and go."""
        reading.exact.append(column)
        reading.curves[column] = self
        try:
            reading.motions += self.curve.motions(self.beta)
        except CannotBound as verdict:
            raise Refused(
                "REF-104", verdict.reason, hint=verdict.hint or "ask with a larger epsilon"
            ) from None

    def bound_of(
        self, parts: Sequence[tuple[str, Fraction, bool]], rows: Sequence[Fraction]
    ) -> Fraction:
        """Put the parts of a bound together, each (scan, size, whether something below its floor was left out).

        `rows` are the joined rows that one row moves, by each survey.
        """
        by_role: dict[str, Fraction] = {}
        for role, size, floored in parts:
            least = self.curve.floors.get(role, ZERO) if floored else ZERO
            by_role[role] = max(size * self.curve.factor * (1 + SLACK), least)
        bound: Fraction = self.curve.space.reach(by_role) if by_role else ZERO
        if self.curve.least is not None:  # rows may come, also where there are none
            bound = max(bound, self.curve.least(self.beta))
        if self.curve.coming is not None:
            bound = max(bound, self.curve.coming.each(self.beta) * min(rows) * (1 + SLACK))
        return bound if self.cap is None else min(bound, self.cap)

    def seen(self, content: list[tuple[int, Fraction]]) -> Noise:
        """Take the largest bound for the cap."""
        most = max((bound for _, bound in content), default=ZERO)
        return replace(self, truthful=True, curve=replace(self.curve, cap=most))


@frozen
class SurveyNoise(_Smooth):
    """Noise for joins of protected rows: the bound is the least of what surveys of the joins give, times one row's."""

    bound: Surveyed

    @property
    def cap(self) -> Fraction | None:
        """The survey's."""
        return self.bound.cap

    @property
    def surveys(self) -> tuple[Survey, ...]:
        """All that were made."""
        return self.bound.surveys

    @property
    def rate(self) -> Fraction:
        """The smoothness itself: a row is a distance of 1."""
        return self.beta

    def read_by(self, reading: Reading, column: str) -> None:
        """Read the measure and the figures of the surveys."""
        reading.exact.append(column)
        reading.surveyed[column] = self

    def bound_of(self, rows: Sequence[Fraction]) -> Fraction:
        """Give the least bound, from how many rows differ by each survey."""
        least = self.bound.each * min(rows)
        return least if self.cap is None else min(least, self.cap)

    def seen(self, content: list[tuple[int, Fraction]]) -> Noise:
        """Take the largest bound for the cap."""
        most = max((bound for _, bound in content), default=ZERO)
        return replace(self, truthful=True, bound=replace(self.bound, cap=most))
