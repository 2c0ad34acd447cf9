"""How much of epsilon each measure gets, and the noise that follows. Public facts only, never an answer.

The error of an output is a sum of errors of its measures; minimising the weighted sum of squared relative errors
w_i / epsilon_i^2 under a fixed total gives epsilon_i in proportion to the cube root of w_i.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction

from secant.analysis.certificate import Certificate, Clipped, Curve, Surveyed, is_still
from secant.analysis.derivative.tuning import smoothness
from secant.analysis.portfolio import Bounded
from secant.errors import Refused
from secant.mechanisms.smooth import OptimalNoise, Rounding, SmoothNoise
from secant.mechanisms.whole import WholeLaplace, WholeLaw, epsilon_of_rho, normal_for
from secant.release.laws import NormalPart, Plain, choose_normal
from secant.release.ranked import RankNoise, rank_noise
from secant.terms.bounds import GlobalBound, SmoothBound
from secant.terms.events import (
    SMALLEST,
    ApproximateEvent,
    Composed,
    ConcentratedEvent,
    Event,
    PureEvent,
)
from secant.terms.policy import Protection

GRAIN = (
    2**40
)  # shares are whole multiples of epsilon / GRAIN, rounded down: their sum never exceeds epsilon


CHOOSING = Fraction(1, 5)
"""What of a measure's share the private choice of a limit takes, where a largest one is declared."""
CHOOSING_FREELY = Fraction(3, 10)
"""The same where none is: more limits to choose from, and a wrong choice costs more."""
SMOOTHNESS = 10
"""Epsilon over beta where joins are surveyed: bounds that grow slowly with 1/beta, noise 13 % above Laplace's."""
SLACK = Fraction(1, 2**18)
"""What floats and rounding up may add to a smooth bound, relatively (D-FLOATS)."""


@dataclass(frozen=True, slots=True)
class MeasureNoise:
    """Noise of one measure, in whole steps: plain noise of a public scale, or smooth noise.

    Neither, where nothing protected is seen: `still` says so, and noise is never left out without it.
    """

    epsilon: Fraction
    scale: Fraction | None
    """Of discrete Laplace noise; None for another law, and where a limit is chosen first."""
    smooth: SmoothNoise | None = None
    curve: Curve | Surveyed | None = None
    """What the smooth bound is computed by."""
    beta: Fraction | None = None
    """Smoothness of the bound that is computed; the noise allows for floats on top."""
    clipped: Clipped | None = None
    """Where what units add is cut down: to what. A scale is known only where there is nothing to choose."""
    still: bool = False
    """Whether no protection is moved, so that the measure is public."""
    choosing: Fraction = Fraction(0)
    """What of epsilon the choice of the limit takes."""
    racing: Fraction = Fraction(0)
    """What of epsilon each limit gets where they race."""
    rho: Fraction = Fraction(0)
    """Its part of rho, where normal noise is added."""
    squared: Fraction = Fraction(0)
    """The squared length that normal noise hides, where no limit is chosen."""

    @property
    def widening(self) -> Fraction:
        """What a smooth bound is widened by, for measures that are computed in floats."""
        return 2 * self.curve.rounding if isinstance(self.curve, Curve) else Fraction(0)

    @property
    def cap(self) -> Fraction | None:
        """The most that a smooth bound comes to, if that is public."""
        return None if self.curve is None or self.curve.cap is None else self.curve.cap

    def law(self, limit: int | None = None) -> WholeLaw | None:
        """Give the law of plain noise, once a limit is chosen where one is; None where there is no such noise."""
        if limit is None:
            if self.rho and not self.choosing:
                return normal_for(self.squared, self.rho)
            return None if self.scale is None else WholeLaplace(self.scale)
        if self.rho:
            assert self.clipped is not None
            return normal_for(self.clipped.squared(limit), self.rho)
        return WholeLaplace(Fraction(limit) / (self.epsilon - self.choosing))


@dataclass(frozen=True, slots=True)
class KeyChoice:
    """How private keys are chosen: those whose noisy number of units reaches the threshold."""

    threshold: int
    groups: int
    delta: Fraction


@dataclass(frozen=True, slots=True)
class Cost:
    """What a protection pays: epsilon of its own, rho and the (epsilon, delta) that it is priced at, delta for keys."""

    pure: Fraction = Fraction(0)
    rho: Fraction = Fraction(0)
    normal: tuple[Fraction, Fraction] = (Fraction(0), Fraction(0))
    keys: Fraction = Fraction(0)

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


@dataclass(frozen=True, slots=True)
class Calibrated:
    """The noise of all releases of one query, and what it costs each protection."""

    noise: Mapping[str, MeasureNoise]
    """Measure column -> noise."""
    choices: Mapping[str, KeyChoice]
    """Release name -> choice of keys."""
    paid: Mapping[str, Cost]
    """Protection -> what it pays."""
    ranks: Mapping[str, RankNoise] = field(default_factory=dict)
    """Column of an order statistic -> how its point is chosen."""
    epsilon: Fraction = Fraction(0)
    """What was shared out."""
    normal: NormalPart = field(default_factory=NormalPart)
    """What takes normal noise, and how the two laws of plain noise compare."""

    @property
    def costs(self) -> dict[str, tuple[Fraction, Fraction]]:
        """Protection -> (epsilon, delta)."""
        return {name: cost.price for name, cost in self.paid.items()}


def calibrate(
    bounded: tuple[Bounded, ...],
    protections: tuple[Protection, ...],
    epsilon: Fraction,
    delta: Mapping[str, Fraction],
) -> Calibrated:
    """Share epsilon among the measures of all releases and fix their noise."""
    shares = shares_of(bounded, epsilon)
    deltas, slack = _deltas(bounded, delta)
    normal = choose_normal(_plain(bounded, protections, shares), slack)
    noise: dict[str, MeasureNoise] = {}
    ranks: dict[str, RankNoise] = {}
    paid = {p.name: Cost() for p in protections}
    choices: dict[str, KeyChoice] = {}
    for b in bounded:
        for measure in b.release.measures:
            share = shares[measure.column]
            made = _noise(b, measure.column, share, protections)
            if measure.column in normal.rhos:
                made = _normal_noise(b, measure.column, made, normal)
            noise[measure.column] = made
            for c in b.certificates:
                paid[c.protection] = _with(paid[c.protection], c, measure.column, made)
        for ranked in b.release.ranked:
            share = shares[ranked.column]
            bounds = {c.protection: _rank_bound(c, ranked.column) for c in b.certificates}
            largest = max(bounds.values())
            ranks[ranked.column] = rank_noise(ranked, largest, share)
            for name, value in bounds.items():
                more = share * value / largest if largest else Fraction(0)
                paid[name] = replace(paid[name], pure=paid[name].pure + more)
        if b.release.selector is not None:
            # What normal noise does not take of delta is for the keys.
            both = deltas[b.release.name] if normal.rhos else 2 * deltas[b.release.name]
            choices[b.release.name] = _choice(b, noise[b.release.selector], both)
            for c in b.certificates:
                if c.groups:
                    keys = paid[c.protection].keys + both
                    paid[c.protection] = replace(paid[c.protection], keys=keys)
    return Calibrated(
        noise, choices, {n: _priced(c, normal) for n, c in paid.items()}, ranks, epsilon, normal
    )


def _with(cost: Cost, certificate: Certificate, column: str, noise: MeasureNoise) -> Cost:
    """Add what the noise of one measure costs a protection."""
    bound = certificate.bounds[column]
    if is_still(bound):
        return cost
    if noise.rho:
        rho = noise.rho
        if isinstance(bound, GlobalBound):
            rho *= certificate.squared(column) / noise.squared
        return replace(cost, pure=cost.pure + noise.choosing, rho=cost.rho + rho)
    if not isinstance(bound, GlobalBound) or noise.scale is None:
        return replace(cost, pure=cost.pure + noise.epsilon)
    return replace(cost, pure=cost.pure + bound.value / noise.scale)


def _priced(cost: Cost, normal: NormalPart) -> Cost:
    """Put the price of normal noise beside its rho: what all of it has, or less where less is moved."""
    if not cost.rho:
        return cost
    epsilon = normal.epsilon
    if cost.rho < normal.rho:
        epsilon = epsilon_of_rho(cost.rho, normal.delta, normal.epsilon)
    return replace(cost, normal=(epsilon, normal.delta))


def _plain(
    bounded: tuple[Bounded, ...],
    protections: tuple[Protection, ...],
    shares: Mapping[str, Fraction],
) -> list[Plain]:
    """Give the measures that either law serves: not per unit of distance, and not where limits race."""
    metric = {p.name for p in protections if p.kind not in ("rows", "unit")}
    found = []
    for b in bounded:
        for m in b.release.measures:
            moves = {c.protection: c for c in b.certificates if not is_still(c.bounds[m.column])}
            if not moves or metric & moves.keys():
                continue
            sizes = [_sizes(c, m.column) for c in moves.values()]
            share = shares[m.column]
            choosing = _noise(b, m.column, share, protections).choosing
            known = [x for x in sizes if x is not None]
            if len(known) == len(sizes):
                size, squared = max(x for x, _ in known), max(x for _, x in known)
                found.append(Plain(m.column, m.weight, share - choosing, size, squared))
    return found


def _sizes(certificate: Certificate, column: str) -> tuple[Fraction, Fraction] | None:
    """Give how far a measure moves, as a sum and as a squared length; by a small limit where one is chosen."""
    bound = certificate.bounds[column]
    if isinstance(bound, GlobalBound):
        return bound.value, certificate.squared(column)
    if isinstance(bound, Clipped) and not bound.race:
        # The larger the limit the more normal noise gains: it has to gain at most of the limits.
        limit = bound.limits[len(bound.limits) // 4]
        return Fraction(limit), bound.squared(limit)
    return None


def _normal_noise(b: Bounded, column: str, made: MeasureNoise, normal: NormalPart) -> MeasureNoise:
    """Put normal noise in the place of discrete Laplace noise."""
    squared = Fraction(0)
    for c in b.certificates:
        bound = c.bounds[column]
        if isinstance(bound, GlobalBound):
            squared = max(squared, c.squared(column))
        elif isinstance(bound, Clipped):
            squared = max(squared, bound.squared(bound.limits[-1]))
    return replace(made, scale=None, rho=normal.rhos[column], squared=squared)


def shares_of(bounded: tuple[Bounded, ...], epsilon: Fraction) -> dict[str, Fraction]:
    """Share epsilon among what moves; what no protection moves is public, and needs none."""
    weights: dict[str, float] = {}
    for b in bounded:
        asked = {m.column: m.weight for m in b.release.measures}
        asked |= {r.column: r.weight for r in b.release.ranked}
        for column, weight in asked.items():
            bounds = [c.bounds.get(column) for c in b.certificates]
            still = all(bound is not None and is_still(bound) for bound in bounds)
            weights[column] = 0.0 if still else weight ** (1 / 3)
    total = sum(weights.values()) or 1.0
    return {c: epsilon * int(GRAIN * weight / total) / GRAIN for c, weight in weights.items()}


def _rank_bound(certificate: Certificate, column: str) -> Fraction:
    """Give what a certificate says of an order statistic; one that says nothing proves nothing (I3)."""
    bound = certificate.bounds.get(column)
    if not isinstance(bound, GlobalBound):
        raise Refused(
            "REF-101",
            f"ranks are not bounded under the protection {certificate.protection}",
            hint="ask for counts, sums or averages instead",
        )
    return bound.value


def _noise(
    b: Bounded, column: str, share: Fraction, protections: tuple[Protection, ...]
) -> MeasureNoise:
    """Fix the noise of one measure: smooth where its bound is a curve, plain otherwise."""
    bounds = {c.protection: c.bounds[column] for c in b.certificates}
    clipped = [x for x in bounds.values() if isinstance(x, Clipped)]
    if clipped:
        limits = clipped[0].limits
        if len(limits) == 1:
            return MeasureNoise(share, limits[0] / share, clipped=clipped[0])
        if clipped[0].race:
            return MeasureNoise(share, None, clipped=clipped[0], racing=share / len(limits))
        part = CHOOSING_FREELY if clipped[0].cap is None else CHOOSING
        return MeasureNoise(share, None, clipped=clipped[0], choosing=share * part)
    surveyed = [x for x in bounds.values() if isinstance(x, Surveyed)]
    if surveyed:
        return _surveyed_noise(surveyed[0], share)
    curved = [(name, x) for name, x in bounds.items() if isinstance(x, Curve)]
    if not curved:
        largest = max(x.value for x in bounds.values() if isinstance(x, GlobalBound))
        return MeasureNoise(share, largest / share if largest else None, still=not largest)
    ((name, curve),) = curved
    owner = next(p for p in protections if p.name == name)
    rounding = Rounding(bound=2 * SLACK)  # once for the bound, once for cap and floor beside it
    beta = owner.beta
    if beta is None:
        beta = share / smoothness(share, capped=curve.bounded, typical=curve.typical)
    if rounding.smoothness(beta) > share:
        raise Refused(
            "REF-104",
            "this epsilon is too small for the smoothness that the policy sets",
            hint="ask with a larger epsilon, or let the owner set a smaller beta",
        )
    bound = SmoothBound(beta, "the parts of the statement, put together")
    smooth = OptimalNoise().calibrate(bound, epsilon=share, grid=1, rounding=rounding)
    return MeasureNoise(share, None, smooth, curve, beta)


def _surveyed_noise(bound: Surveyed, share: Fraction) -> MeasureNoise:
    """Share epsilon among the groups that one row moves, and let each have smooth noise of its own (C-GROUPS)."""
    each = share / bound.groups
    beta = each / SMOOTHNESS
    smooth = OptimalNoise().calibrate(
        SmoothBound(beta, "figures of the data, put together", jumps=True),
        epsilon=each,
        grid=1,
        rounding=Rounding(bound=SLACK),
    )
    return MeasureNoise(share, None, smooth, bound, beta)


def _deltas(
    bounded: tuple[Bounded, ...], delta: Mapping[str, Fraction]
) -> tuple[dict[str, Fraction], Fraction]:
    """Give half of the smallest delta to the releases that choose keys, equally; and what is left for normal noise."""
    choosing = [b.release.name for b in bounded if b.release.selector is not None]
    smallest = min(delta.values(), default=Fraction(0))
    if not choosing:
        moved = {
            c.protection
            for b in bounded
            for c in b.certificates
            if not all(map(is_still, c.bounds.values()))
        }
        return {}, min((delta[name] for name in moved), default=Fraction(0))
    if smallest <= 0:
        raise Refused(
            "REF-103",
            "the group keys are protected, so choosing them needs a positive delta",
            hint="declare `values` for the grouped columns, or give the protection a delta",
        )
    return {name: smallest / (2 * len(choosing)) for name in choosing}, smallest / 2


def _choice(b: Bounded, noise: MeasureNoise, delta: Fraction) -> KeyChoice:
    groups = max(1, *(c.groups for c in b.certificates))
    contribution = max(1, *(c.contribution for c in b.certificates))
    law = noise.law()
    if law is None:
        return KeyChoice(1, 0, Fraction(0))
    threshold = law.threshold(delta=delta, groups=groups, contribution=contribution)
    return KeyChoice(threshold, groups, delta)
