"""How much of epsilon each measure gets, and the noise that follows. Public facts only, never an answer.

The error of an output is a sum of errors of its measures; minimising the weighted sum of squared relative errors
w_i / epsilon_i^2 under a fixed total gives epsilon_i in proportion to the cube root of w_i.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

from secant.analysis.portfolio import Bounded
from secant.errors import Refused
from secant.mechanisms.discrete_laplace import noisy_threshold
from secant.terms.policy import Protection

GRAIN = (
    2**40
)  # shares are whole multiples of epsilon / GRAIN, rounded down: their sum never exceeds epsilon


@dataclass(frozen=True, slots=True)
class MeasureNoise:
    """Exact discrete Laplace noise of one measure: scale in whole steps; None where nothing protected is seen."""

    epsilon: Fraction
    scale: Fraction | None


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


def calibrate(
    bounded: tuple[Bounded, ...],
    protections: tuple[Protection, ...],
    epsilon: Fraction,
    delta: Mapping[str, Fraction],
) -> Calibrated:
    """Share epsilon among the measures of all releases and fix their noise."""
    weights = {m.column: m.weight ** (1 / 3) for b in bounded for m in b.release.measures}
    total = sum(weights.values())
    noise: dict[str, MeasureNoise] = {}
    costs = {p.name: (Fraction(0), Fraction(0)) for p in protections}
    choices: dict[str, KeyChoice] = {}
    deltas = _deltas(bounded, delta)
    for b in bounded:
        for measure in b.release.measures:
            share = epsilon * int(GRAIN * weights[measure.column] / total) / GRAIN
            largest = max(c.bounds[measure.column].value for c in b.certificates)
            scale = largest / share if largest else None
            noise[measure.column] = MeasureNoise(share, scale)
            for certificate in b.certificates:
                spent, slack = costs[certificate.protection]
                if scale is not None:
                    spent += certificate.bounds[measure.column].value / scale
                costs[certificate.protection] = (spent, slack)
        if b.release.selector is not None:
            choices[b.release.name] = _choice(
                b, noise[b.release.selector], deltas[b.release.name], costs
            )
    return Calibrated(noise, choices, costs)


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
