"""What every way of putting noise on a measure answers; the ways without a limit to choose or a bound to compute.

In: public facts, and what was read, sealed. Out: what has to be read, what it costs, noisy numbers, how far they lead,
how they are described. Never here: a private value without its seal; draws are made by `secant.noise.mechanisms` (I5).
Amounts are in whole steps of the measure.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from fractions import Fraction
from functools import cache
from typing import TYPE_CHECKING, Any, ClassVar

from secant.errors import InternalError
from secant.noise.cost import ZERO, Cost
from secant.noise.intervals import NoisyNumber, Span
from secant.noise.mechanisms.whole import WholeLaplace, WholeLaw, normal_for, root_up, unmoved
from secant.noise.secrecy import Private
from secant.records import frozen
from secant.sensitivity.bounds import GlobalBound
from secant.sensitivity.certificate import Certificate, SmoothSensitivity

if TYPE_CHECKING:
    from secant.noise.limited import ClippedNoise
    from secant.noise.query_plan import Reading


@frozen
class KeyChoice:
    """How private keys are chosen: those whose noisy number of units reaches the threshold."""

    threshold: int
    groups: int
    delta: Fraction
    parts: int = 1
    """Parts of a unit that the threshold counts: weights are fractions of one."""

    @property
    def units(self) -> int:
        """Give how many units that are in one group only it takes to be shown, but for noise."""
        return -(-self.threshold // self.parts)


@frozen
class Noise(ABC):
    """What every way of putting noise on a measure answers; most is nothing unless a way says otherwise."""

    epsilon: Fraction
    """The measure's share."""
    still: ClassVar[bool] = False
    """Whether no protection moves the measure, so that it is public."""
    chosen: ClassVar[bool] = False
    """Whether a limit was chosen for it privately."""

    # what is read, drawn and paid

    def read_by(self, reading: Reading, column: str) -> None:
        """Put into a reading what has to be read for a measure."""
        reading.exact.append(column)

    @abstractmethod
    def draw(self, values: Private[Any]) -> list[int]:
        """Put noise on what was read, group by group."""

    def shown(self, drawn: list[int], others: Mapping[str, list[int]]) -> list[int]:
        """Give the measure, once the other measures of the release are drawn as well."""
        return drawn

    def cost(self, certificate: Certificate, column: str) -> Cost:
        """Give what the noise of a measure costs a protection that it moves under."""
        return Cost(pure=self.epsilon)

    def key_choice(self, delta: Fraction, groups: int, contribution: int) -> KeyChoice:
        """Give from which noisy number on keys may be shown, if this measure chooses them."""
        raise InternalError("BUG-001", "keys are chosen by a number without plain noise")

    def either(self) -> tuple[Fraction, Fraction, Fraction] | None:
        """Give (epsilon, size, squared length) where Laplace and normal noise both serve."""
        return None

    # what is public of it

    @property
    def family(self) -> str:
        """Name the law of the noise."""
        return LaplaceShare.name

    def number(self, step: Fraction, left_out: Span) -> NoisyNumber:
        """Give what is known of a number with this noise; the number itself is put in row by row."""
        return NoisyNumber(0.0, lambda level: None)  # the data decide

    def usual_error(self, level: Fraction, one: Fraction) -> int | None:
        """Give how far noise leads, with a limit of what one row adds if one is chosen; None if the data decide."""
        return None

    @abstractmethod
    def describe(self, step: Fraction) -> dict[str, Any]:
        """Give the name of the noise and what of its size is public."""

    @abstractmethod
    def words(self, step: Fraction, level: Fraction) -> str:
        """Say the same to a person."""

    # limits of what one unit adds

    @property
    def most(self) -> int | None:
        """What one unit adds at most, where it is cut down to that."""
        return None

    @property
    def partners(self) -> tuple[str, ...]:
        """The measures whose limits cut this one down."""
        return ()

    def candidates(self, groups: int) -> tuple[ClippedNoise, ...]:
        """Give what the noise may become once a limit is chosen; nothing where nothing is to be chosen."""
        return ()

    @property
    def cuts_nobody(self) -> bool:
        """Whether the limit that was chosen is all that declared limits let a unit add."""
        return False

    def units_cut(self, miss: float) -> int:
        """Give how many units the chosen limit cuts at most, but for `miss` of all choices (truncation.cut)."""
        return 0

    def left_out(self, units: int, step: Fraction) -> Span:
        """Give how far what was cut off so many units may lead from the measured number to the true one."""
        return 0.0, 0.0

    def usually_cut(
        self, step: Fraction, level: Fraction, share: float = 1.0, shown: float = math.inf
    ) -> tuple[float, float, float] | None:
        """Give how much is usually cut off a group, least, middle and most, by its share of the measure and its number.

        None where nothing tells.
        """
        return None

    @property
    def as_asked(self) -> bool:
        """Whether what is measured is what was asked for, but for limits."""
        return True

    # for the owner: `content` is what was read, without its seal

    def unnoised(self, content: Any) -> list[int]:
        """Give the measure as it would be shown without noise."""
        return list(content)

    def seen(self, content: Any) -> Noise:
        """Give the noise as one knows it who sees the data."""
        return self

    def sensitivities(self, content: Any) -> list[Fraction]:
        """Give what the noise hides: one number, or one per group."""
        return [ZERO]

    def scales(self, content: Any) -> list[Fraction]:
        """Give what the standard shape of the noise is multiplied by: one number, or one per group."""
        return [ZERO]

    def tail(self, v: float) -> float:
        """Give P(noise > v scales)."""
        return 0.0


@frozen
class NoNoise(Noise):
    """No protection moves the measure: it is public."""

    still: ClassVar[bool] = True

    def draw(self, values: Private[list[int]]) -> list[int]:
        """Show what is public."""
        return unmoved(values)

    def cost(self, certificate: Certificate, column: str) -> Cost:
        """Cost nothing."""
        return Cost()

    def key_choice(self, delta: Fraction, groups: int, contribution: int) -> KeyChoice:
        """Show every key that is there."""
        return KeyChoice(1, 0, ZERO)

    def number(self, step: Fraction, left_out: Span) -> NoisyNumber:
        """Know the number."""
        return NoisyNumber(0.0, lambda level: 0.0, 0.0)

    def describe(self, step: Fraction) -> dict[str, Any]:
        """Say that there is none."""
        return {"mechanism": "none", "scale": 0.0}

    def words(self, step: Fraction, level: Fraction) -> str:
        """Say why there is none."""
        return "none, no protection moves it"


@frozen
class LaplaceShare:
    """A part of epsilon for discrete Laplace noise."""

    epsilon: Fraction
    name: ClassVar[str] = "discrete laplace"

    def law(self, size: Fraction | int, squared: Fraction) -> WholeLaw:
        """Give the law that hides a move of this size (l1) and squared length (l2)."""
        return WholeLaplace(size / self.epsilon)

    def sensitivity(self, size: Fraction | int, squared: Fraction) -> Fraction:
        """Give which of the two the noise hides."""
        return Fraction(size)

    def cost(self, size: Fraction, squared: Fraction) -> Cost:
        """Give what is paid by a protection that is moved by these parts of what the noise hides."""
        return Cost(pure=self.epsilon * size)

    def describe(self, law: WholeLaw, step: Fraction) -> dict[str, Any]:
        """Give what is public of the noise."""
        return {"mechanism": self.name, "scale": float(law.size * step)}

    def words(self, law: WholeLaw, step: Fraction) -> str:
        """Name the law, its size and what it costs."""
        wide = f"discrete Laplace of scale {float(law.size * step):.6g}"
        return f"{wide} on a grid of {float(step):g} (epsilon {float(self.epsilon):.4g})"

    @property
    def once_limited(self) -> str:
        """Name the law before a limit is chosen."""
        return f"discrete Laplace of scale limit / {float(self.epsilon):.4g}"


@frozen
class NormalShare:
    """A part of rho for rounded normal noise."""

    rho: Fraction
    name: ClassVar[str] = "gaussian"

    def law(self, size: Fraction | int, squared: Fraction) -> WholeLaw:
        """Give the law that hides a move of this size (l1) and squared length (l2)."""
        return normal_for(squared, self.rho)

    def sensitivity(self, size: Fraction | int, squared: Fraction) -> Fraction:
        """Give which of the two the noise hides."""
        return root_up(squared)

    def cost(self, size: Fraction, squared: Fraction) -> Cost:
        """Give what is paid by a protection that is moved by these parts of what the noise hides."""
        return Cost(rho=self.rho * squared)

    def describe(self, law: WholeLaw, step: Fraction) -> dict[str, Any]:
        """Give what is public of the noise."""
        size = {"deviation": float(law.size * step), "rho": float(self.rho)}
        return {"mechanism": self.name, **size}

    def words(self, law: WholeLaw, step: Fraction) -> str:
        """Name the law, its size and what it costs."""
        wide = f"Gaussian of deviation {float(law.size * step):.6g}"
        return f"{wide} on a grid of {float(step):g} (rho {float(self.rho):.4g})"

    @property
    def once_limited(self) -> str:
        """Name the law before a limit is chosen."""
        return f"Gaussian (rho {float(self.rho):.4g})"


Share = LaplaceShare | NormalShare


@frozen
class LawfulNoise(Noise):
    """Noise of one public law, on numbers that are counted in `fine` parts of a step."""

    share: Share

    @property
    @abstractmethod
    def hidden(self) -> tuple[Fraction, Fraction]:
        """Give the size (l1) and the squared length (l2) of the move that is hidden."""

    @property
    def fine(self) -> int:
        """Parts of a step in which the measure is read."""
        return 1

    @property
    def law(self) -> WholeLaw:
        """Give the law of the noise, in whole steps."""
        return self.share.law(*self.hidden)

    def draw(self, values: Private[list[int]]) -> list[int]:
        """Add noise to parts of steps, and round to whole ones once it is on them."""
        return coarse(self.law.finer(self.fine).add(values), self.fine)

    def key_choice(self, delta: Fraction, groups: int, contribution: int) -> KeyChoice:
        """Show keys from where one unit hardly ever leads."""
        reached = self.law.threshold(delta=delta, groups=groups, contribution=contribution)
        return KeyChoice(reached, groups, delta)

    def either(self) -> tuple[Fraction, Fraction, Fraction] | None:
        """Take either law."""
        return self.epsilon, *self.hidden

    def number(self, step: Fraction, left_out: Span) -> NoisyNumber:
        """Know the law."""
        law, fine = self.law, self.fine
        finer = law.finer(fine)

        @cache  # asked for every cell, at a few levels
        def error(level: Fraction) -> float:
            # Drawn in parts of a step, and rounded to whole ones.
            return float(Fraction(finer.error(level) + fine // 2, fine) * step)

        size = float(law.size) * float(step)
        return NoisyNumber(0.0, error, size, float(step), left_out, normal=law.normal)

    def usual_error(self, level: Fraction, one: Fraction) -> int | None:
        """Know how far the law leads."""
        return self.law.error(level)

    def describe(self, step: Fraction) -> dict[str, Any]:
        """Name the law and its size."""
        return self.share.describe(self.law, step)

    def words(self, step: Fraction, level: Fraction) -> str:
        """Name the law, its size and how far it leads."""
        error = float(self.law.error(level) * step)
        return f"{self.share.words(self.law, step)}; within {error:.6g} at {float(level):.0%}"

    @property
    def family(self) -> str:
        """Name the law."""
        return self.share.name

    def unnoised(self, content: list[int]) -> list[int]:
        """Round to whole steps."""
        return coarse(content, self.fine)

    def sensitivities(self, content: list[int]) -> list[Fraction]:
        """Give what the law hides."""
        return [self.share.sensitivity(*self.hidden)]

    def scales(self, content: list[int]) -> list[Fraction]:
        """Give the size of the law."""
        return [self.law.size]

    def tail(self, v: float) -> float:
        """Ask the law."""
        return self.law.tail(v)


@frozen
class PlainNoise(LawfulNoise):
    """Noise for a public bound."""

    size: Fraction
    """The largest move under any protection, all groups together."""
    squared: Fraction
    """Its squared length."""

    @property
    def hidden(self) -> tuple[Fraction, Fraction]:
        """Give the bound."""
        return self.size, self.squared

    def cost(self, certificate: Certificate, column: str) -> Cost:
        """Cost a protection as much less as it is moved less."""
        bound = certificate.bounds[column]
        if not isinstance(bound, GlobalBound):  # it varies below the cap that the noise hides
            public_bound = (
                bound.public.get(certificate.protection)
                if isinstance(bound, SmoothSensitivity)
                else None
            )
            part = (
                Fraction(1) if public_bound is None else min(Fraction(1), public_bound / self.size)
            )
            return self.share.cost(part, part**2)
        return self.share.cost(bound.value / self.size, certificate.squared(column) / self.squared)


def coarse(parts: list[int], fine: int) -> list[int]:
    """Round parts of steps to whole steps."""
    return [(2 * x + fine) // (2 * fine) for x in parts]
