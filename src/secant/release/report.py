"""What a person is told about a release: the guarantee, the derivation, the noise; for the owner, the truth beside it.

Public values only, except in `inspection`, which is for the data owner and says so.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from secant.analysis import explain as wording
from secant.analysis.portfolio import Bounded
from secant.mechanisms.discrete_laplace import discrete_laplace_error
from secant.plan.measures import Measure
from secant.plan.rewrite import columns_of
from secant.release.answer import plain
from secant.release.lower import lower
from secant.release.run import Job, Shown
from secant.release.shares import Calibrated
from secant.terms.policy import Protection


@dataclass(frozen=True, slots=True)
class Explanation:
    """Why an answer would be private, and what it would cost. Made without reading data."""

    text: str
    record: Mapping[str, Any]
    statements: tuple[str, ...]

    def __str__(self) -> str:
        return self.text

    def to_dict(self) -> dict[str, Any]:
        """Give the report as plain values."""
        return dict(self.record)


def protects(protection: Protection) -> str:
    """Say in words what a protection hides."""
    if protection.kind == "rows":
        what = (
            "any row" if protection.tables is None else "any row of " + ", ".join(protection.tables)
        )
        return f"{what} replaced by another" if protection.replace else f"{what} added or removed"
    if protection.kind == "unit" and protection.unit is not None:
        return f"all rows of one unit ({'.'.join(protection.unit)}), added or removed"
    return "the values of protected cells"


def guarantee(protection: Protection, noise: Calibrated, uncovered: list[str]) -> dict[str, Any]:
    """Say what one protection is promised by a release."""
    epsilon, delta = noise.costs.get(protection.name, (Fraction(0), Fraction(0)))
    found: dict[str, Any] = {
        "protection": protection.name,
        "protects": protects(protection),
        "epsilon": _up(epsilon),
        "delta": _up(delta),
    }
    if uncovered:
        found["not_covered"] = uncovered
    return found


def _up(value: Fraction) -> float:
    """Show a price rounded up to nine digits."""
    scaled = -((-value * 10**12) // 1)
    return float(Fraction(scaled, 10**12)) if value >= Fraction(1, 10**6) else float(value)


def mechanisms(job: Job) -> list[dict[str, Any]]:
    """Give names and public parameters of all noise."""
    found = []
    for b in job.prepared.bounded:
        for measure in b.release.measures:
            noise = job.noise.noise[measure.column]
            found.append(
                {
                    "measure": measure.words,
                    "mechanism": "none" if noise.scale is None else "discrete laplace",
                    "epsilon": float(noise.epsilon),
                    "step": float(measure.step),
                    "scale": 0.0 if noise.scale is None else float(noise.scale * measure.step),
                }
            )
        choice = job.noise.choices.get(b.release.name)
        if choice is not None:
            found.append(
                {"measure": "keys", "mechanism": "threshold", "threshold": choice.threshold}
            )
    return found


def explanation(
    text: str, job: Job, in_force: tuple[Protection, ...], epsilon: Fraction, *, assumed: bool
) -> Explanation:
    """Put the whole argument for a release into words."""
    lines: list[str] = []
    if not job.prepared.bounded:
        lines.append(
            "The query reads no protected table: it is answered exactly and costs nothing."
        )
    for b in job.prepared.bounded:
        lines += wording.summary(b)
        lines.append(f"  noise at epsilon {float(epsilon):g}{' (assumed)' if assumed else ''}:")
        lines += [f"    {line}" for line in _noise_lines(b, job)]
    if job.prepared.bounded:
        lines.append("guarantee")
        for p in in_force:
            cost, delta = job.noise.costs[p.name]
            lines.append(
                f"  {p.name}: epsilon {_up(cost):g}, delta {_up(delta):g}; hides {protects(p)}"
            )
    record = {
        "query": text,
        "exact": not job.prepared.bounded,
        "releases": [_release_record(b, job) for b in job.prepared.bounded],
        "guarantee": [guarantee(p, job.noise, []) for p in in_force],
        "statements": list(job.statements.values()),
    }
    statements = tuple(job.statements.values()) or (lower(job.prepared.post),)
    return Explanation("\n".join(lines), record, statements)


def _noise_lines(b: Bounded, job: Job) -> list[str]:
    lines = []
    for measure in b.release.measures:
        noise = job.noise.noise[measure.column]
        if noise.scale is None:
            lines.append(f"{measure.words}: none, nothing protected is seen")
            continue
        error = discrete_laplace_error(noise.scale, job.level) * measure.step
        lines.append(
            f"{measure.words}: discrete Laplace of scale {float(noise.scale * measure.step):.6g} "
            f"on a grid of {float(measure.step):g} (epsilon {float(noise.epsilon):.4g}); "
            f"within {float(error):.6g} at {float(job.level):.0%}"
        )
    choice = job.noise.choices.get(b.release.name)
    if choice is not None:
        lines.append(
            f"keys: shown from a noisy count of {choice.threshold} on (delta {float(choice.delta):g})"
        )
    return lines


def _release_record(b: Bounded, job: Job) -> dict[str, Any]:
    return {
        "enforced": list(b.release.notes),
        "certificates": [
            {
                "protection": c.protection,
                "room": c.room,
                "derivation": wording.derivation(c),
                "sensitivity": {
                    m.column: plain(c.bounds[m.column].value * m.step) for m in b.release.measures
                },
            }
            for c in b.certificates
        ],
        "refusals": [wording.refusal_line(r) for r in b.tried],
        "noise": _noise_lines(b, job),
    }


def inspection(
    job: Job, exact: list[tuple[object, ...]], softened: Shown, seconds: dict[str, float]
) -> list[dict[str, Any]]:
    """One record an output column. For several rows, errors are put together as lengths of vectors."""
    found = []
    measures = {m.column: m for b in job.prepared.bounded for m in b.release.measures}
    for index, column in enumerate(softened.columns):
        truth = [plain(row[index]) for row in exact]
        soft = [plain(row[index]) for row in softened.rows]
        errors = [e[index] for e in softened.errors or []]
        known = [e for e in errors if e is not None]
        scalar = job.traced.made_of.get(column)
        used = [m for c, m in measures.items() if scalar is not None and c in columns_of(scalar)]
        scales = [float((job.noise.noise[m.column].scale or 0) * m.step) for m in used]
        numbers = [
            float(v) for v in truth if isinstance(v, (int, float)) and not isinstance(v, bool)
        ]
        length = sum(v * v for v in numbers) ** 0.5
        error = max(known) if len(known) == len(errors) and known else (0.0 if not used else None)
        together = sum(e * e for e in known) ** 0.5
        relative = together / length if error is not None and length else None
        one = len(softened.rows) == 1 and len(exact) == 1
        found.append(
            {
                "column": column,
                "exact": truth[0] if one else truth,
                "softened": soft[0] if one else soft,
                "sensitivity": [float(_sensitivity(job, m)) for m in used] or 0.0,
                "beta": None,
                "noise_scale": scales[0] if len(scales) == 1 else scales or 0.0,
                "error95" if job.level == Fraction(95, 100) else "error": error,
                "relative_error95"
                if job.level == Fraction(95, 100)
                else "relative_error": relative,
                "mechanism": "discrete laplace" if used else "none",
                "analysis": "stability" if used else "public",
                "seconds": seconds,
            }
        )
    return found


def _sensitivity(job: Job, measure: Measure) -> Fraction:
    for b in job.prepared.bounded:
        for certificate in b.certificates:
            if measure.column in certificate.bounds:
                return max(c.bounds[measure.column].value for c in b.certificates) * Fraction(
                    measure.step
                )
    return Fraction(0)
