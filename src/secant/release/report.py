"""What a person is told about a release: the guarantee, the derivation, the noise; for the owner, the truth beside it.

Public values only, except in `inspection`, which is for the data owner and says so.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field
from fractions import Fraction
from functools import partial
from typing import Any

from secant.accuracy.binding_facts import stays_open
from secant.accuracy.warnings import Caution
from secant.noise.calibrate import NoisePlan
from secant.noise.laws import LEVEL, NormalPart
from secant.noise.measure_noise import Noise
from secant.noise.ranked import description_of, mechanism_of
from secant.plan.facts.facts import Facts
from secant.plan.rewrites.measures import Measure
from secant.policy.policy import Policy, Protection
from secant.records import frozen
from secant.release.answer import Answer, plain
from secant.release.components import Component, components_of
from secant.release.finish import Result, error_of
from secant.release.release_plan import ReleasePlan
from secant.sensitivity import explain as wording
from secant.sensitivity.bound import CertifiedRelease
from secant.sensitivity.bounds import GlobalBound
from secant.sensitivity.certificate import ClippedContribution, Move


@frozen
class Explanation:
    """Why an answer would be private, and what it would cost. Made without reading data."""

    text: str
    record: Mapping[str, Any]
    statements: tuple[str, ...]
    warnings: tuple[Caution, ...] = ()
    """What should be known before this is asked for real."""
    components: Callable[[], tuple[Component, ...]] = field(
        default=tuple, compare=False, repr=False
    )
    """What each table and each column by itself does to the answer; found when it is asked for (combined.parts)."""
    noisy: tuple[str, ...] = ()
    """The columns that noise moves, as an answer would have them."""

    def __str__(self) -> str:
        return self.text

    def _repr_html_(self) -> str:
        """Give the explanation as a notebook shows it: what it costs, and the proof to be opened."""
        from secant.display.page import explanation_page

        return explanation_page(self.record, self.text)

    def to_dict(self) -> dict[str, Any]:
        """Give the report as plain values."""
        return dict(self.record)


def protects(protection: Protection, delta: Fraction = Fraction(0)) -> str:
    """Say in words what a protection hides, if an answer takes this delta of it."""
    if protection.kind == "rows":
        what = (
            "any row" if protection.tables is None else "any row of " + ", ".join(protection.tables)
        )
        return f"{what} replaced by another" if protection.replace else f"{what} added or removed"
    if protection.kind == "unit" and protection.unit is not None:
        return f"all rows of one unit ({'.'.join(protection.unit)}), added or removed"
    if protection.kind == "window" and protection.unit is not None:
        tables = ", ".join(sorted(protection.time))
        unit = ".".join(protection.unit)
        return f"what one unit ({unit}) has in {tables} within any {protection.within} in a row, added or removed"
    rows = ""
    if protection.add_remove:
        counted = sorted(protection.add_remove.items())
        weights = ", ".join(f"{float(weight):g} for one of {table}" for table, weight in counted)
        rows = f", and any row added or removed, which counts as a distance of {weights}"
    norms = "; ".join(f"{table} by {norm}" for table, norm in sorted(protection.distance.items()))
    longer = "a longer one at its length times epsilon"
    if delta:  # noise.apart
        steps = "1 + e^epsilon + ... + e^((k - 1) epsilon)"
        longer = f"one of up to k at k times epsilon and {steps} times delta"
    return f"any move of values by a distance of 1 ({norms}), {longer}{rows}"


def guarantee(
    protection: Protection,
    noise: NoisePlan,
    uncovered: list[str],
    paid: Mapping[str, Fraction] | None = None,
) -> dict[str, Any]:
    """Say what one protection is promised by a release, and by what the same question paid before, by protection."""
    epsilon, delta = noise.costs.get(protection.name, (Fraction(0), Fraction(0)))
    epsilon += (paid or {}).get(protection.name, Fraction(0))
    entry: dict[str, Any] = {
        "protection": protection.name,
        "protects": protects(protection, delta),
        "epsilon": _up(epsilon),
        "delta": _up(delta),
    }
    if uncovered:
        entry["not_covered"] = uncovered
    return entry


def _up(value: Fraction) -> float:
    """Show a price rounded up to nine digits."""
    scaled = -((-value * 10**12) // 1)
    return float(Fraction(scaled, 10**12)) if value >= Fraction(1, 10**6) else float(value)


def mechanisms(job: ReleasePlan, settled: Mapping[str, Noise]) -> list[dict[str, Any]]:
    """Give names and public parameters of all noise, with the limits that were chosen privately."""
    entries = []
    for b in job.prepared.bounded:
        for measure in b.release.measures:
            noise = settled[measure.column]
            entries.append(
                {
                    "measure": measure.words,
                    "epsilon": float(noise.epsilon),
                    "step": float(measure.step),
                    **noise.describe(measure.step),
                }
            )
        entries += [mechanism_of(r, job.noise.ranks[r.column]) for r in b.release.ranked]
        weighed = b.release.weighed
        if weighed is not None:
            noise = job.noise.noise[weighed.column]
            size = {"epsilon": float(noise.epsilon), "step": float(weighed.step)}
            entries.append({"measure": weighed.words, **size, **noise.describe(weighed.step)})
        choice = job.noise.choices.get(b.release.name)
        if choice is not None:
            entries.append({"measure": "keys", "mechanism": "threshold", "threshold": choice.units})
    return entries


def explanation(
    text: str,
    job: ReleasePlan,
    protections: tuple[Protection, ...],
    warnings: tuple[Caution, ...],
    facts: Facts,
    *,
    assumed: bool,
    paid: Mapping[str, Fraction] | None = None,
) -> Explanation:
    """Put the whole argument for a release into words; `paid` is what finding facts takes of the same question."""
    lines: list[str] = []
    epsilon = job.noise.epsilon
    promised = [guarantee(p, job.noise, [], paid) for p in protections]
    if not job.prepared.bounded:
        lines.append(
            "The query reads no protected table: it is answered exactly and costs nothing."
        )
    for b in job.prepared.bounded:
        lines += wording.summary(b)
        lines.append(f"  noise at epsilon {float(epsilon):g}{' (assumed)' if assumed else ''}:")
        lines += [f"    {line}" for line in _noise_lines(b, job)]
    lines += [f"  {line}" for line in stays_open(job)]
    if job.prepared.bounded:
        lines.append("guarantee")
        lines += [
            f"  {g['protection']}: epsilon {g['epsilon']:g}, delta {g['delta']:g}; hides {g['protects']}"
            for g in promised
        ]
    record = {
        "query": text,
        "exact": not job.prepared.bounded,
        "releases": [_release_record(b, job) for b in job.prepared.bounded],
        "guarantee": promised,
        "statements": list(job.statements.values()),
        "warnings": [w.to_dict() for w in warnings],
    }
    statements = tuple(job.statements.values()) or (job.rest,)
    lines += ["warnings", *(f"  {line}" for w in warnings for line in str(w).split("\n"))] * bool(
        warnings
    )
    parts = partial(components_of, job, protections, facts)
    return Explanation("\n".join(lines), record, statements, warnings, parts)


def _noise_lines(b: CertifiedRelease, job: ReleasePlan) -> list[str]:
    lines = []
    for m in b.release.measures:
        description = job.noise.noise[m.column].words(m.step, job.level)
        lines.append(f"{m.words}: {description}{_other_law(job.noise.normal, m)}")
    lines += [description_of(r, job.noise.ranks[r.column], job.level) for r in b.release.ranked]
    weighed = b.release.weighed
    if weighed is not None:
        noise = job.noise.noise[weighed.column].words(weighed.step, job.level)
        lines.append(f"{weighed.words}: {noise}")
    choice = job.noise.choices.get(b.release.name)
    if choice is not None:
        lines.append(
            f"keys: shown from a noisy count of {choice.units} on (delta {float(choice.delta):g})"
        )
    return lines


def _other_law(normal: NormalPart, measure: Measure) -> str:
    """Say what the law that was not taken would have come to, where both were possible."""
    both = normal.compared.get(measure.column)
    if both is None:
        return ""
    is_normal = measure.column in normal.rhos
    name, steps = ("Laplace", both.laplace) if is_normal else ("Gaussian", both.normal)
    far = f"{float(steps * measure.step):.6g} at {float(LEVEL):.0%}"
    return f" ({name} would be within {far}; not used)"


def _public_bound(bound: Move, measure: Measure) -> object:
    """Give a bound's public part: all of a global one, the cap of a smooth one, the largest limit."""
    if isinstance(bound, ClippedContribution):
        return plain(bound.limits[-1] * measure.step)
    value = bound.value if isinstance(bound, GlobalBound) else bound.cap
    return None if value is None else plain(value * measure.step)


def _rank_bound(bound: Move) -> object:
    """Give how far the rank distances of two points move apart, in rows; what a unit weighs where that is limited."""
    if isinstance(bound, ClippedContribution):
        return plain(bound.limits[-1])
    assert isinstance(bound, GlobalBound)
    return plain(bound.value)


def _release_record(b: CertifiedRelease, job: ReleasePlan) -> dict[str, Any]:
    return {
        "enforced": list(b.release.notes),
        "certificates": [
            {
                "protection": c.protection,
                "analysis": c.analysis,
                "derivation": wording.derivation(c),
                "sensitivity": {
                    m.column: _public_bound(c.bounds[m.column], m) for m in b.release.measures
                }
                | {r.column: _rank_bound(c.bounds[r.column]) for r in b.release.ranked},
            }
            for c in b.certificates
        ],
        "refusals": [wording.refusal_line(r) for r in b.tried],
        "noise": _noise_lines(b, job),
    }


def answer_of(
    shown: Result,
    job: ReleasePlan,
    policy: Policy,
    protections: tuple[Protection, ...],
    warnings: tuple[Caution, ...],
    release_id: str | None,
    left: Mapping[str, Any],
) -> Answer:
    """Put together what an analyst gets."""
    uncovered = [p.name for p in policy.protections if p not in protections]
    return Answer(
        columns=list(shown.columns),
        rows=shown.rows,
        guarantee=[guarantee(p, job.noise, uncovered) for p in protections],
        error=error_of(shown, job),
        mechanisms=mechanisms(job, shown.settled),
        budget=left,
        release_id=release_id,
        warnings=warnings,
        raw=shown.rows if shown.raw is None else shown.raw,
    )
