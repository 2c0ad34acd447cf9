"""Which noise a measure gets: the one place that picks, by public facts only.

In: certificates, shares of epsilon, a delta. Out: for each measure its noise.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction

from secant.errors import Refused
from secant.noise.assigned import LimitToAssign
from secant.noise.centered import NEARING, PLACING, CenterToChoose
from secant.noise.laws import NormalPart, Plain, choose_normal
from secant.noise.limited import ClippedNoise, LimitToChoose, LimitToTally, RaceNoise
from secant.noise.measure_noise import (
    LaplaceShare,
    LawfulNoise,
    Noise,
    NoNoise,
    NormalShare,
    PlainNoise,
)
from secant.noise.mechanisms.smooth import ROUGHEST, OptimalNoise, Rounding
from secant.noise.smooth import SLACK, CurveNoise, SurveyNoise
from secant.policy.policy import Protection
from secant.sensitivity.bound import CertifiedRelease
from secant.sensitivity.bounds import GlobalBound, SmoothBound
from secant.sensitivity.certificate import (
    ClippedContribution,
    SmoothSensitivity,
    Surveyed,
    is_still,
)
from secant.sensitivity.derivative.soften.tuning import (
    fanned_smoothness,
    floored_smoothness,
    smoothness,
)

CHOOSING = Fraction(1, 4)
"""What of a measure's share the private choice of a limit takes, where a largest one is declared."""
CHOOSING_FREELY = Fraction(3, 10)
"""The same where none is: more limits to choose from, and a wrong choice costs more."""
TALLYING = Fraction(3, 10)
"""The same where the limit and the usual error are read off one tally of units by octave."""
ASSIGNING = Fraction(2, 5)
"""The same where it is a limit of how many different values are assigned to one unit."""
CHOOSING_KEYS = 0.2
"""What the choice of keys by weighed units counts beside a number, where normal noise is on both."""
SMOOTHNESS = 10
"""Epsilon over beta where joins are surveyed: bounds that grow slowly with 1/beta, noise 13 % above Laplace's."""


def choose(
    bounded: Sequence[CertifiedRelease],
    protections: Sequence[Protection],
    shares: Mapping[str, Fraction],
    delta: Fraction,
) -> tuple[dict[str, Noise], NormalPart]:
    """Pick the noise of every measure by public facts, and normal noise on all that gain by it together."""
    noise = {
        m.column: _noise(b, m.column, shares[m.column], protections)
        for b in bounded
        for m in b.release.measures
    }
    weighed = [b.release.weighed for b in bounded if b.release.weighed is not None]
    for w in weighed:
        share = LaplaceShare(shares[w.column])
        noise[w.column] = PlainNoise(share.epsilon, share, w.size, w.squared)
    # A row that counts as a distance of 30 would be 30 steps of (epsilon, delta), which promise nothing.
    pure = {p.name for p in protections if p.kind not in ("rows", "unit", "cells")}
    plain = [Plain(w.column, CHOOSING_KEYS, shares[w.column], w.size, w.squared) for w in weighed]
    for b in bounded:
        for m in b.release.measures:
            moving = {c.protection for c in b.certificates if not is_still(c.bounds[m.column])}
            either = noise[m.column].either()
            if either is not None and not pure & moving:  # for `cells`: noise.apart
                plain.append(Plain(m.column, m.weight, *either))
    normal = choose_normal(plain, delta)
    for column, rho in normal.rhos.items():
        lawful = noise[column]
        assert isinstance(lawful, LawfulNoise)
        noise[column] = replace(lawful, share=NormalShare(rho))
    return noise, normal


def _noise(
    b: CertifiedRelease, column: str, share: Fraction, protections: Sequence[Protection]
) -> Noise:
    """Pick by the kind of the bound; one that varies is the only one that is not zero (combined.one)."""
    bounds = {c.protection: c.bounds[column] for c in b.certificates}
    truthful = b.softened is None or b.softened.exact
    for bound in bounds.values():
        if isinstance(bound, ClippedContribution):
            return _clipped(bound, share)
        if isinstance(bound, Surveyed):
            return _surveyed(bound, share, truthful)
        if isinstance(bound, SmoothSensitivity):
            owners = [p for p in protections if bounds.get(p.name) is bound]
            beta = next((p.beta for p in owners if p.beta is not None), None)
            return _curved(bound, share, beta, truthful)
    size = max(x.value for x in bounds.values() if isinstance(x, GlobalBound))
    if not size:
        return NoNoise(share)
    squared = max(c.squared(column) for c in b.certificates)
    return PlainNoise(share, LaplaceShare(share), size, squared)


def _clipped(bound: ClippedContribution, share: Fraction) -> Noise:
    largest = bound.limits[-1]
    if len(bound.limits) == 1:
        return ClippedNoise(share, LaplaceShare(share), bound, largest)
    if bound.race:
        return RaceNoise(share, bound)
    if bound.assigned:
        choosing = share * ASSIGNING
        return LimitToAssign(share, LaplaceShare(share - choosing), bound, largest, choosing)
    if bound.centering is not None:
        placing, nearing = share * PLACING, share * NEARING
        rest = share - placing - nearing
        noising = rest * (1 - TALLYING)
        choosing = share - noising
        lawful = LaplaceShare(noising)
        return CenterToChoose(share, lawful, bound, largest, choosing, placing, nearing)
    if bound.octaves:
        choosing = share * TALLYING
        return LimitToTally(share, LaplaceShare(share - choosing), bound, largest, choosing)
    choosing = share * (CHOOSING_FREELY if bound.cap is None else CHOOSING)
    return LimitToChoose(share, LaplaceShare(share - choosing), bound, largest, choosing)


def _surveyed(bound: Surveyed, share: Fraction, truthful: bool) -> Noise:
    """Share epsilon among the groups that one row moves, and let each have smooth noise of its own.

    Rests on combined.groups.
    """
    each = share / bound.groups
    # Rounder than needed at a very large epsilon: what a replaced row adds to a bound grows with e^(beta/2).
    beta = min(each / SMOOTHNESS, ROUGHEST)
    smooth = OptimalNoise().calibrate(
        SmoothBound(beta, "figures of the data, put together", jumps=True),
        epsilon=each,
        grid=1,
        rounding=Rounding(bound=SLACK),
    )
    return SurveyNoise(share, smooth, beta, truthful, bound)


def _curved(
    curve: SmoothSensitivity, share: Fraction, beta: Fraction | None, truthful: bool
) -> Noise:
    # Once for the bound, once for cap and floor beside it.
    rounding = Rounding(bound=2 * SLACK, resolution=curve.resolution)
    drawn = share
    if curve.coming is not None:
        drawn = share / curve.coming.groups
        if beta is None:
            beta = drawn / fanned_smoothness(drawn, curve.coming.each, curve.coming.nearest)
    if beta is None and curve.least is not None:
        ratio = floored_smoothness(share, curve.least, curve.cap, usual_steps(curve))
        if ratio is None:
            assert curve.cap is not None, "a floor stands below a cap"
            size = curve.cap + 2 * curve.rounding
            return PlainNoise(share, LaplaceShare(share), size, size**2)
        beta = share / ratio
    if beta is None:
        beta = share / smoothness(share, capped=curve.bounded, typical=curve.typical)
    if rounding.smoothness(beta) > drawn:
        raise Refused(
            "REF-104",
            "this epsilon is too small for the smoothness that the policy sets",
            hint="ask with a larger epsilon, or let the owner set a smaller beta",
        )
    bound = SmoothBound(beta, "the parts of the statement, put together")
    smooth = OptimalNoise().calibrate(bound, epsilon=drawn, grid=1, rounding=rounding)
    return CurveNoise(share, smooth, beta, truthful, curve)


def usual_steps(curve: SmoothSensitivity) -> Callable[[Fraction], float | None]:
    """Give how large the bound of one row is where values lie evenly, in whole steps."""

    def usual(beta: Fraction) -> float | None:
        size = curve.usual(beta)
        return None if size is None else size * float(curve.factor)

    return usual
