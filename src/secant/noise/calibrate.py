"""How much of epsilon each measure gets, and what all noise costs. Public facts only, never an answer.

The error of an output is a sum of errors of its measures; minimizing the weighted sum of squared relative errors
w_i / epsilon_i^2 under a fixed total gives epsilon_i in proportion to the cube root of w_i.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, replace
from fractions import Fraction
from itertools import pairwise

from secant.errors import Refused
from secant.noise.choosing import choose
from secant.noise.cost import Cost
from secant.noise.laws import NormalPart
from secant.noise.measure_noise import KeyChoice, Noise
from secant.noise.ranked import RankNoise, rank_noise, weighted_noise
from secant.plan.rewrites.order_statistics import Ranked
from secant.plan.rewrites.weighed_keys import PARTS, weight
from secant.policy.policy import Protection
from secant.records import frozen
from secant.sensitivity.bound import CertifiedRelease
from secant.sensitivity.bounds import GlobalBound
from secant.sensitivity.certificate import Certificate, ClippedContribution, is_still

GRAIN = (
    2**40
)  # shares are whole multiples of epsilon / GRAIN, rounded down: their sum never exceeds epsilon
KEYS = Fraction(1, 5)
"""What of epsilon the choice of keys takes by weighed units."""
KEYS_OF_ONES = Fraction(2, 5)
"""The same where a unit adds one to a group: such numbers have little noise, and which are shown matters more."""

BESIDE = 1 / 20
"""What of its weight a count has that a sum about a center is divided by: what is left of the sum is small, and so is
what the count's error makes of it."""


@frozen
class NoisePlan:
    """The noise of all releases of one query, and what it costs each protection."""

    noise: Mapping[str, Noise]
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
    bounded: tuple[CertifiedRelease, ...],
    protections: tuple[Protection, ...],
    epsilon: Fraction,
    delta: Mapping[str, Fraction],
) -> NoisePlan:
    """Share epsilon among the measures of all releases, choose their noise, and say what each protection pays."""
    shares = shares_of(bounded, epsilon)
    deltas, slack = _deltas(bounded, delta)
    noise, normal = choose(bounded, protections, shares, slack)
    ranks: dict[str, RankNoise] = {}
    choices: dict[str, KeyChoice] = {}
    for b in bounded:
        for ranked in b.release.ranked:
            ranks[ranked.column] = _rank_noise(b, ranked, shares[ranked.column])
        if b.release.chooses_keys:
            # What normal noise does not take of delta is for the keys.
            both = deltas[b.release.name] if normal.rhos else 2 * deltas[b.release.name]
            choices[b.release.name] = replace(_key_choice(b, noise, both), delta=both)
    nothing = {p.name: Cost() for p in protections}
    return repriced(NoisePlan(noise, choices, nothing, ranks, epsilon, normal), bounded)


def _key_choice(b: CertifiedRelease, noise: Mapping[str, Noise], delta: Fraction) -> KeyChoice:
    """Say from which noisy number on the keys of a release are shown."""
    weighed = b.release.weighed
    if weighed is not None:
        # A unit with more keys weighs less in each, and has more to be shown: the worst number of keys counts.
        ends = [*(2**k for k in range(weighed.most.bit_length())), weighed.most + 1]
        choices = [
            noise[weighed.column].key_choice(delta, last - 1, weight(first))
            for first, last in pairwise(ends)
        ]
        worst = max(choices, key=lambda choice: choice.threshold)
        return replace(worst, groups=weighed.most, parts=PARTS)
    assert b.release.selector is not None
    groups = max(1, *(c.groups for c in b.certificates))
    contribution = max(1, *(c.contribution for c in b.certificates))
    return noise[b.release.selector].key_choice(delta, groups, contribution)


def repriced(drawn: NoisePlan, bounded: tuple[CertifiedRelease, ...]) -> NoisePlan:
    """Say what the noise of all releases costs each protection."""
    paid = dict.fromkeys(drawn.paid, Cost())
    for b in bounded:
        for c in b.certificates:
            paid[c.protection] += cost_of(drawn, b, c)
    return replace(drawn, paid={name: cost.priced(drawn.normal) for name, cost in paid.items()})


def cost_of(drawn: NoisePlan, b: CertifiedRelease, certificate: Certificate) -> Cost:
    """Give what noise costs whoever moves a release as a certificate says; normal noise is not priced yet."""
    cost = Cost()
    for m in b.release.measures:
        if not is_still(certificate.bounds[m.column]):
            cost += drawn.noise[m.column].cost(certificate, m.column)
    for ranked in b.release.ranked:
        share = drawn.ranks[ranked.column].epsilon
        if drawn.ranks[ranked.column].bound is not None:  # it moves under this protection alone
            moves = not is_still(certificate.bounds[ranked.column])
            cost += Cost(pure=share if moves else Fraction(0))
            continue
        largest = max(_rank_bound(c, ranked.column) for c in b.certificates)
        value = _rank_bound(certificate, ranked.column)
        cost += Cost(pure=share * value / largest if largest else Fraction(0))
    weighed = b.release.weighed
    if weighed is not None and not is_still(certificate.bounds[weighed.column]):
        cost += drawn.noise[weighed.column].cost(certificate, weighed.column)
        cost += Cost(keys=drawn.choices[b.release.name].delta)
    if b.release.selector is not None and certificate.groups:
        cost += Cost(keys=drawn.choices[b.release.name].delta)
    return cost


def shares_of(bounded: tuple[CertifiedRelease, ...], epsilon: Fraction) -> dict[str, Fraction]:
    """Share epsilon among what moves; what no protection moves is public, and needs none."""
    weights: dict[str, float] = {}
    for b in bounded:
        counts = divisors_of(b)
        weight_of = {
            m.column: m.weight - m.divides * (1 - BESIDE) if m.column in counts else m.weight
            for m in b.release.measures
        }
        weight_of |= {r.column: r.weight for r in b.release.ranked}
        for column, x in weight_of.items():
            bounds = [c.bounds.get(column) for c in b.certificates]
            still = all(bound is not None and is_still(bound) for bound in bounds)
            weights[column] = 0.0 if still else x ** (1 / 3)
    weighing = [(b, b.release.weighed.column) for b in bounded if b.release.weighed is not None]
    keys = {column: epsilon * _keys_part(b) / len(weighing) for b, column in weighing}
    epsilon -= sum(keys.values())
    total = sum(weights.values()) or 1.0
    shares = {c: epsilon * int(GRAIN * x / total) / GRAIN for c, x in weights.items()}
    return shares | keys


def divisors_of(b: CertifiedRelease) -> set[str]:
    """Give the counts of averages that are measured about a center: they need not be known well."""
    return {
        bound.centering.divisor
        for c in b.certificates
        for bound in c.bounds.values()
        if isinstance(bound, ClippedContribution) and bound.centering is not None
    }


def _rank_noise(b: CertifiedRelease, ranked: Ranked, share: Fraction) -> RankNoise:
    """Calibrate an order statistic: limits that are chosen are those of the one protection that moves it."""
    for c in b.certificates:
        bound = c.bounds.get(ranked.column)
        if isinstance(bound, ClippedContribution):
            return weighted_noise(ranked, bound, share)
    return rank_noise(ranked, max(_rank_bound(c, ranked.column) for c in b.certificates), share)


def _keys_part(b: CertifiedRelease) -> Fraction:
    """Give what of epsilon the choice of keys takes where a release is the only one that chooses."""
    bounds = [c.bounds[m.column] for c in b.certificates for m in b.release.measures]
    ones = all(isinstance(x, ClippedContribution) and x.within == 1 for x in bounds)
    return KEYS_OF_ONES if ones and bounds else KEYS


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


def _deltas(
    bounded: tuple[CertifiedRelease, ...], delta: Mapping[str, Fraction]
) -> tuple[dict[str, Fraction], Fraction]:
    """Give half of the smallest delta to the releases that choose keys, equally; and what is left for normal noise.

    Of the protections that something here moves: the others pay nothing (`cost_of`).
    """
    choosing = [b.release.name for b in bounded if b.release.chooses_keys]
    changed = {
        c.protection
        for b in bounded
        for c in b.certificates
        if not all(map(is_still, c.bounds.values())) or (b.release.chooses_keys and c.groups)
    }
    smallest = min((delta[name] for name in changed), default=Fraction(0))
    if not choosing:
        return {}, smallest
    if smallest <= 0:
        raise Refused(
            "REF-103",
            "the group keys are protected, so choosing them needs a positive delta",
            hint="declare `values` for the grouped columns, or give the protection a delta",
        )
    return {name: smallest / (2 * len(choosing)) for name in choosing}, smallest / 2
