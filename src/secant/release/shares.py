"""How much of epsilon each measure gets, and the noise that follows. Public facts only, never an answer.

The error of an output is a sum of errors of its measures; minimising the weighted sum of squared relative errors
w_i / epsilon_i^2 under a fixed total gives epsilon_i in proportion to the cube root of w_i.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction

from secant.analysis.certificate import Certificate, Clipped, Curve, Surveyed
from secant.analysis.derivative.tuning import smoothness
from secant.analysis.portfolio import Bounded
from secant.errors import Refused
from secant.mechanisms.discrete_laplace import noisy_threshold
from secant.mechanisms.smooth import OptimalNoise, Rounding, SmoothNoise
from secant.release.ranked import RankNoise, rank_noise
from secant.terms.bounds import GlobalBound, SmoothBound
from secant.terms.policy import Protection

GRAIN = (
    2**40
)  # shares are whole multiples of epsilon / GRAIN, rounded down: their sum never exceeds epsilon


CHOOSING = Fraction(1, 5)
"""What of a measure's share the private choice of a limit takes."""
SMOOTHNESS = 10
"""Epsilon over beta where joins are surveyed: bounds that grow slowly with 1/beta, noise 13 % above Laplace's."""
SLACK = Fraction(1, 2**18)
"""What floats and rounding up may add to a smooth bound, relatively (D-FLOATS)."""


@dataclass(frozen=True, slots=True)
class MeasureNoise:
    """Noise of one measure, in whole steps: exact discrete Laplace of a public scale, or smooth noise.

    Neither, where nothing protected is seen: `still` says so, and noise is never left out without it.
    """

    epsilon: Fraction
    scale: Fraction | None
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

    @property
    def widening(self) -> Fraction:
        """What a smooth bound is widened by, for measures that are computed in floats."""
        return 2 * self.curve.rounding if isinstance(self.curve, Curve) else Fraction(0)

    @property
    def cap(self) -> Fraction | None:
        """The most that a smooth bound comes to, if that is public."""
        return None if self.curve is None or self.curve.cap is None else self.curve.cap

    def scale_for(self, limit: Fraction) -> Fraction:
        """Give the scale of noise that hides a limit, once it is chosen."""
        return limit / (self.epsilon - self.choosing)


@dataclass(frozen=True, slots=True)
class KeyChoice:
    """How private keys are chosen: those whose noisy number of units reaches the threshold."""

    threshold: int
    groups: int
    delta: Fraction


@dataclass(frozen=True, slots=True)
class Calibrated:
    """The noise of all releases of one query, and what it costs each protection."""

    noise: Mapping[str, MeasureNoise]
    """Measure column -> noise."""
    choices: Mapping[str, KeyChoice]
    """Release name -> choice of keys."""
    costs: Mapping[str, tuple[Fraction, Fraction]]
    """Protection -> (epsilon, delta)."""
    ranks: Mapping[str, RankNoise] = field(default_factory=dict)
    """Column of an order statistic -> how its point is chosen."""
    epsilon: Fraction = Fraction(0)
    """What was shared out."""


def calibrate(
    bounded: tuple[Bounded, ...],
    protections: tuple[Protection, ...],
    epsilon: Fraction,
    delta: Mapping[str, Fraction],
) -> Calibrated:
    """Share epsilon among the measures of all releases and fix their noise."""
    weights = {m.column: m.weight ** (1 / 3) for b in bounded for m in b.release.measures}
    weights |= {r.column: r.weight ** (1 / 3) for b in bounded for r in b.release.ranked}
    total = sum(weights.values())
    noise: dict[str, MeasureNoise] = {}
    ranks: dict[str, RankNoise] = {}
    costs = {p.name: (Fraction(0), Fraction(0)) for p in protections}
    choices: dict[str, KeyChoice] = {}
    deltas = _deltas(bounded, delta)
    for b in bounded:
        for measure in b.release.measures:
            share = epsilon * int(GRAIN * weights[measure.column] / total) / GRAIN
            made = _noise(b, measure.column, share, protections)
            noise[measure.column] = made
            for certificate in b.certificates:
                spent, slack = costs[certificate.protection]
                bound = certificate.bounds[measure.column]
                if not isinstance(bound, GlobalBound):
                    spent += share
                elif made.scale is not None:
                    spent += bound.value / made.scale
                costs[certificate.protection] = (spent, slack)
        for ranked in b.release.ranked:
            share = epsilon * int(GRAIN * weights[ranked.column] / total) / GRAIN
            bounds = {c.protection: _rank_bound(c, ranked.column) for c in b.certificates}
            largest = max(bounds.values())
            ranks[ranked.column] = rank_noise(ranked, largest, share)
            for name, value in bounds.items():
                spent, slack = costs[name]
                costs[name] = (spent + (share * value / largest if largest else 0), slack)
        if b.release.selector is not None:
            choices[b.release.name] = _choice(
                b, noise[b.release.selector], deltas[b.release.name], costs
            )
    return Calibrated(noise, choices, costs, ranks, epsilon)


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
        return MeasureNoise(share, None, clipped=clipped[0], choosing=share * CHOOSING)
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
        SmoothBound(beta, "figures of the data, put together"),
        epsilon=each,
        grid=1,
        rounding=Rounding(bound=SLACK),
    )
    return MeasureNoise(share, None, smooth, bound, beta)


def _deltas(bounded: tuple[Bounded, ...], delta: Mapping[str, Fraction]) -> dict[str, Fraction]:
    """Share the smallest delta of the protections equally among the releases that choose keys."""
    choosing = [b.release.name for b in bounded if b.release.selector is not None]
    if not choosing:
        return {}
    smallest = min(delta.values(), default=Fraction(0))
    if smallest <= 0:
        raise Refused(
            "REF-103",
            "the group keys are protected, so choosing them needs a positive delta",
            hint="declare `values` for the grouped columns, or give the protection a delta",
        )
    return {name: smallest / len(choosing) for name in choosing}


def _choice(
    b: Bounded,
    noise: MeasureNoise,
    delta: Fraction,
    costs: dict[str, tuple[Fraction, Fraction]],
) -> KeyChoice:
    groups = max(1, *(c.groups for c in b.certificates))
    contribution = max(1, *(c.contribution for c in b.certificates))
    for certificate in b.certificates:
        if certificate.groups:
            spent, slack = costs[certificate.protection]
            costs[certificate.protection] = (spent, slack + delta)
    if noise.scale is None:
        return KeyChoice(1, 0, Fraction(0))
    threshold = noisy_threshold(noise.scale, delta=delta, groups=groups, contribution=contribution)
    return KeyChoice(threshold, groups, delta)
