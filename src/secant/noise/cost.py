"""What noise costs a protection: epsilon of pure laws, rho of normal noise, delta of keys that are chosen."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

from secant.noise.events import (
    SMALLEST,
    ApproximateEvent,
    Composed,
    ConcentratedEvent,
    Event,
    PureEvent,
)
from secant.noise.laws import NormalPart
from secant.noise.mechanisms.whole import epsilon_of_rho
from secant.records import frozen

ZERO = Fraction(0)


@frozen
class Cost:
    """What a protection pays: epsilon of its own, rho and the (epsilon, delta) that it is priced at, delta for keys."""

    pure: Fraction = ZERO
    rho: Fraction = ZERO
    normal: tuple[Fraction, Fraction] = (ZERO, ZERO)
    keys: Fraction = ZERO

    def __add__(self, other: Cost) -> Cost:
        """Add what further noise costs; rho is priced last, all of it at once."""
        return replace(
            self, pure=self.pure + other.pure, rho=self.rho + other.rho, keys=self.keys + other.keys
        )

    def priced(self, part: NormalPart) -> Cost:
        """Put the price of normal noise beside its rho: what all of it has, or less where less is moved."""
        if not self.rho:
            return self
        epsilon = part.epsilon
        if self.rho < part.rho:
            epsilon = epsilon_of_rho(self.rho, part.delta, part.epsilon)
        return replace(self, normal=(epsilon, part.delta))

    @property
    def price(self) -> tuple[Fraction, Fraction]:
        """Give (epsilon, delta)."""
        return self.pure + self.normal[0], self.keys + self.normal[1]

    @property
    def event(self) -> Event | None:
        """Say what is done to the protection: the noise of pure laws, the choice of keys, normal noise beside it."""
        parts: list[Event] = []
        if self.keys:
            # An event has a positive epsilon; without any, the least that there is comes with a choice of keys.
            parts.append(ApproximateEvent(self.pure or SMALLEST, self.keys))
        elif self.pure:
            parts.append(PureEvent(self.pure))
        if self.rho:
            parts.append(ConcentratedEvent(self.rho, *self.normal))
        return parts[0] if len(parts) == 1 else Composed(parts) if parts else None
