"""Stage *bound*: one enforced aggregate, proved under every protection.

In: an aggregate that was enforced, and the context of its question. Out: a release with one certificate per
protection, or all reasons against it. Chooses by public fields only: among global bounds the smallest wins.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from functools import cache

from secant.plan.facts.reads import tables_read
from secant.plan.rewrites.enforce import MeasuredAggregate
from secant.plan.rewrites.measures import Measure
from secant.plan.rewrites.order_statistics import Ranked
from secant.policy.keys import in_order
from secant.policy.policy import Protection
from secant.records import frozen
from secant.sensitivity.bounds import GlobalBound
from secant.sensitivity.certificate import (
    CannotBound,
    Certificate,
    ClippedContribution,
    Move,
    Refusal,
    SmoothSensitivity,
    Step,
    is_still,
)
from secant.sensitivity.combined import CombinedAnalysis, adds_up
from secant.sensitivity.context import Context
from secant.sensitivity.derivative.analysis import DerivativeAnalysis
from secant.sensitivity.derivative.soften.softened import Softened
from secant.sensitivity.enforce import EnforcedAggregate
from secant.sensitivity.interface import Analysis, LazyAnalysis, Request
from secant.sensitivity.joins import JoinsAnalysis
from secant.sensitivity.stability.analysis import StabilityAnalysis
from secant.sensitivity.truncation.analysis import TruncationAnalysis
from secant.sensitivity.truncation.keys import with_keys


@cache
def _smt() -> Analysis:
    from secant.sensitivity.smt.analysis import SmtAnalysis

    return SmtAnalysis()


ANALYSES: tuple[Analysis, ...] = (
    StabilityAnalysis(),
    TruncationAnalysis(),
    LazyAnalysis("smt", ("rows",), _smt),
    JoinsAnalysis(),
    DerivativeAnalysis(),
    CombinedAnalysis(),
)


@frozen
class CertifiedRelease:
    """A release and the certificates that it rests on, one for each protection in force."""

    release: MeasuredAggregate
    certificates: tuple[Certificate, ...]
    tried: tuple[Refusal, ...]
    softened: Softened | None = None
    """How the user's aggregate was softened, where values are protected."""


def bound(enforced: EnforcedAggregate, context: Context) -> CertifiedRelease | Sequence[Refusal]:
    """Bound one enforced aggregate under every protection, or give all reasons against it."""
    certificates, refusals = _certificates(enforced, context)
    if len(certificates) < len(context.protections):
        return tuple(refusals)
    release = enforced.release
    if context.stepped is None:
        certificates = _beside(certificates, release, context)
    settled = _one_noise(certificates, release)
    if isinstance(settled, Refusal):
        return (settled, *refusals)
    return CertifiedRelease(release, settled, tuple(refusals), enforced.softened)


def _certificates(
    enforced: EnforcedAggregate, context: Context
) -> tuple[list[Certificate], list[Refusal]]:
    """Ask for a certificate under each protection; fewer of them than protections where one is refused."""
    release = enforced.release
    certificates: list[Certificate] = []
    refusals: list[Refusal] = []
    for protection in context.protections:
        public_rows = enforced.public_rows.get(protection.name, {})
        request = Request(release, context.facts, protection, public_rows, context.open)
        certificate, against = ask(request)
        if certificate is not None:
            certificates.append(_for_those_who_give_least(certificate, protection, release))
            refusals += against
        else:  # what stands in the way comes first: the analyst is told to mend that
            refusals[:0] = against
    return certificates, refusals


def ask(request: Request) -> tuple[Certificate | None, list[Refusal]]:
    """Ask the analyses in turn, and put together what they prove; a public number ends the search for `rows`."""
    kind = request.protection.kind
    certificates: list[Certificate] = []
    refusals: list[Refusal] = []
    for analysis in [r for r in ANALYSES if kind in r.kinds] or ANALYSES:
        if kind == "rows" and any(_is_global(c) for c in certificates):
            break
        outcome = analysis.bound(request)
        if isinstance(outcome, Certificate):
            certificates.append(outcome)
            refusals += outcome.tried
        else:
            refusals += (outcome, *outcome.others)
    together = _limited if kind == "unit" else _least
    certificate = together(certificates, request)
    if certificate is None:
        return None, refusals
    try:
        return with_keys(certificate, request), refusals
    except CannotBound as reason:
        return None, [reason.refusal("truncation"), *refusals]


def _for_those_who_give_least(
    certificate: Certificate, protection: Protection, release: MeasuredAggregate
) -> Certificate:
    """Where units give different amounts, let bounds be in shares of what those give who give most.

    Rests on stability.personal.
    """
    offers = protection.personal
    if offers is None or all(is_still(x) for x in certificate.bounds.values()):
        return certificate
    if protection.name in release.copied:
        description = f"rows count in proportion, up to {offers.copies[-1]} times"
        step = Step("stability.personal", description, "who gives less moves it less")
        return replace(certificate, derivation=(*certificate.derivation, step))
    bounds: dict[str, Move] = {}
    for column, bound in certificate.bounds.items():
        assert isinstance(bound, GlobalBound), "other bounds were refused"
        bounds[column] = replace(bound, value=bound.value / offers.least)
    description = f"everybody counts alike, so noise is for those who give {float(offers.least):.4g} of the most"
    step = Step("stability.personal", description, f"bounds times {float(1 / offers.least):.6g}")
    return replace(
        certificate, bounds=bounds, squares={}, derivation=(*certificate.derivation, step)
    )


def _is_global(certificate: Certificate) -> bool:
    return all(isinstance(b, GlobalBound) for b in certificate.bounds.values())


def _least(certificates: list[Certificate], request: Request) -> Certificate | None:
    """Take the smallest global bound, else what comes first."""
    public = [c for c in certificates if _is_global(c)]
    return min(public, key=_most) if public else next(iter(certificates), None)


def _limited(certificates: list[Certificate], request: Request) -> Certificate | None:
    """Let limits that are chosen privately take the place of declared ones, where the analysis says that it pays."""
    chosen = next(
        (
            c
            for c in certificates
            if any(isinstance(b, ClippedContribution) for b in c.bounds.values())
        ),
        None,
    )
    fixed = next((c for c in certificates if c is not chosen), None)
    release = request.release
    columns = {m.column for m in release.measures} | {r.column for r in release.ranked}
    if chosen is None:
        return None if fixed is None or release.wide or columns - set(fixed.bounds) else fixed
    declared = fixed.bounds if fixed is not None else {}
    bounds = dict(declared)
    for column, bound in chosen.bounds.items():
        assert isinstance(bound, ClippedContribution)
        cap = None if _not_declared(release, column) else declared.get(column)
        most = cap.value if isinstance(cap, GlobalBound) else None
        if most is not None and bound.within is not None:
            # A unit may also be in groups that are not listed, of which no number of listed ones speaks.
            most = max(most, Fraction(bound.limits[-1]))
        bounds[column] = replace(bound, cap=most)
    if columns - set(bounds):
        return None
    if not all(_tallied(bounds[column]) for column in release.wide):
        return None  # noise for all that a wide row may add would say nothing
    if fixed is None:
        return replace(chosen, bounds=bounds)
    return replace(
        fixed,
        analysis=f"{fixed.analysis}, {chosen.analysis}"
        if set(declared) - set(chosen.bounds)
        else chosen.analysis,
        bounds=bounds,
        derivation=(*fixed.derivation, *chosen.derivation),
    )


def _tallied(bound: Move) -> bool:
    """Whether a tally of units chooses the limit."""
    return isinstance(bound, ClippedContribution) and bound.octaves


def _not_declared(release: MeasuredAggregate, column: str) -> bool:
    """Whether what the plan lets a unit add was declared by nobody: some may add more (rewrite.wide)."""
    return column in release.wide or (release.tallied and bool(release.undeclared.limits))


def _most(certificate: Certificate) -> Fraction:
    """Compare global bounds."""
    return sum(
        (b.value for b in certificate.bounds.values() if isinstance(b, GlobalBound)), Fraction(0)
    )


def _beside(
    certificates: list[Certificate], release: MeasuredAggregate, context: Context
) -> list[Certificate]:
    """Where rows are hidden by one protection and values by another, let one bound serve both (combined.beside)."""
    changing = [
        (p, c)
        for p, c in zip(context.protections, certificates, strict=True)
        if not all(map(is_still, c.bounds.values()))
    ]
    cells = [(p, c) for p, c in changing if p.kind == "cells" and not p.public_rows]
    rows = [(p, c) for p, c in changing if p.kind == "rows" and not p.replace]
    if len(changing) != 2 or len(cells) != 1 or len(rows) != 1 or not adds_up(cells[0][0]):
        return certificates
    if release.ranked or release.chooses_keys:
        return certificates
    ((moving, curved),), ((hiding, jumping),) = cells, rows
    covered = context.facts.covered(hiding)
    weights = {t: Fraction(1) for t in tables_read(*release.aggregates) if t in covered}
    together = CombinedAnalysis().beside(Request(release, context.facts, moving), weights)
    if isinstance(together, Refusal):
        return certificates
    shared: dict[str, Move] = {}
    for column, bound in together.bounds.items():
        both = not is_still(curved.bounds[column]) and not is_still(jumping.bounds[column])
        if both and isinstance(bound, SmoothSensitivity) and not bound.steady:
            public = {c.protection: _cap(c.bounds[column]) for c in (curved, jumping)}
            caps = {name: cap for name, cap in public.items() if cap is not None}
            shared[column] = replace(bound, public=caps)
    added = tuple(
        s for s in together.derivation if s not in (*curved.derivation, *jumping.derivation)
    )
    return [
        replace(
            c,
            bounds={**c.bounds, **shared},
            claims=in_order({*c.claims, *together.claims}),
            derivation=(*c.derivation, *added) if c is curved else c.derivation,
        )
        if shared and c in (curved, jumping)
        else c
        for c in certificates
    ]


def _cap(bound: Move) -> Fraction | None:
    """Give a public number that a bound never exceeds, widened by the rounding of both databases."""
    if isinstance(bound, GlobalBound):
        return bound.value
    if isinstance(bound, SmoothSensitivity) and bound.cap is not None:
        return bound.cap + 2 * bound.rounding
    return bound.cap


def _one_noise(
    certificates: list[Certificate], release: MeasuredAggregate
) -> tuple[Certificate, ...] | Refusal:
    """One noise serves all protections (combined.one): a bound that varies only where no other protection is moved.

    A bound that is smooth in one protection's distance may leap with another's, and so may a limit that is
    chosen: beside another protection, unless it is the same bound for both (combined.beside), and where it would be its
    cap anyway, its public cap takes its place.
    """
    settled = list(certificates)
    drawn: tuple[Measure | Ranked, ...] = (*release.measures, *release.ranked)
    for measure in drawn:
        moving = [c for c in settled if not is_still(c.bounds[measure.column])]
        for index, certificate in enumerate(settled):
            bound = certificate.bounds[measure.column]
            steady = isinstance(bound, SmoothSensitivity) and bound.steady
            alone = all(c.bounds[measure.column] is bound for c in moving)
            if isinstance(bound, GlobalBound) or (alone and not steady):
                continue
            if bound.cap is None:
                return Refusal(
                    "portfolio",
                    "combined.one",
                    "several protections are moved, and one of them has no public limit",
                    "let the owner list the protections as alternatives",
                    release.original,
                )
            cap = _cap(bound)
            assert cap is not None
            value = GlobalBound(cap, "linf" if isinstance(measure, Ranked) else "l1")
            prefix = f"{measure.words}:"
            settled[index] = replace(
                certificate,
                bounds={**certificate.bounds, measure.column: value},
                derivation=tuple(
                    s
                    for s in certificate.derivation
                    if not (s.rule.startswith("truncation.") and prefix in s.place)
                )
                if isinstance(bound, ClippedContribution)
                else certificate.derivation,
            )
    return tuple(settled)
