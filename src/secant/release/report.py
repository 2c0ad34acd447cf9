"""What a person is told about a release: the guarantee, the derivation, the noise; for the owner, the truth beside it.

Public values only, except in `inspection`, which is for the data owner and says so.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from secant.analysis import explain as wording
from secant.analysis.certificate import Clipped, Move, is_still
from secant.analysis.portfolio import Bounded
from secant.mechanisms.whole import WholeLaw, WholeNormal, root_up
from secant.plan import nodes as n
from secant.plan.measures import Measure
from secant.plan.ranges import as_number
from secant.plan.ranked import Ranked
from secant.plan.rewrite import columns_of
from secant.release.answer import plain
from secant.release.cautions import Caution
from secant.release.intervals import number_of
from secant.release.job import Job
from secant.release.laws import LEVEL, NormalPart
from secant.release.limits import ChosenLimit
from secant.release.ranked import mechanism_of, scale_of, words_of
from secant.release.reliance import Names, Reliance, reliance
from secant.release.run import Shown
from secant.release.shares import Calibrated, MeasureNoise
from secant.release.stated import public_error
from secant.terms.bounds import GlobalBound
from secant.terms.policy import Protection


@dataclass(frozen=True, slots=True)
class Explanation:
    """Why an answer would be private, and what it would cost. Made without reading data."""

    text: str
    record: Mapping[str, Any]
    statements: tuple[str, ...]
    warnings: tuple[Caution, ...] = ()
    """What should be known before this is asked for real."""

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
    norms = "; ".join(f"{table} by {norm}" for table, norm in sorted(protection.distance.items()))
    return (
        f"any move of values by a distance of 1 ({norms}), a longer one at its length times epsilon"
    )


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


def mechanisms(job: Job, limits: Mapping[str, ChosenLimit]) -> list[dict[str, Any]]:
    """Give names and public parameters of all noise, with the limits that were chosen privately."""
    found = []
    for b in job.prepared.bounded:
        for measure in b.release.measures:
            noise = job.noise.noise[measure.column]
            found.append(
                {
                    "measure": measure.words,
                    "epsilon": float(noise.epsilon),
                    "step": float(measure.step),
                    **_noise_of(noise, measure, limits.get(measure.column)),
                }
            )
        found += [mechanism_of(r, job.noise.ranks[r.column]) for r in b.release.ranked]
        choice = job.noise.choices.get(b.release.name)
        if choice is not None:
            found.append(
                {"measure": "keys", "mechanism": "threshold", "threshold": choice.threshold}
            )
    return found


def _noise_of(noise: MeasureNoise, measure: Measure, limit: ChosenLimit | None) -> dict[str, Any]:
    """Give the name of one measure's noise, and what of its size is public."""
    if noise.smooth is not None:
        return {"mechanism": "optimal smooth noise", "beta": float(noise.beta or 0)}
    if noise.racing:
        limits = len(noise.clipped.limits) if noise.clipped else 0
        return {"mechanism": "race to the top", "limits": limits}
    name = "gaussian" if noise.rho else "discrete laplace"
    if noise.choosing:
        return {
            "mechanism": f"{name} within a limit that is chosen privately",
            "choosing": float(noise.choosing),
            "limit": None if limit is None else float(limit.limit * measure.step),
        }
    law = noise.law()
    if law is None:
        return {"mechanism": "none", "scale": 0.0}
    if isinstance(law, WholeNormal):
        size = {"deviation": float(law.deviation * measure.step), "rho": float(noise.rho)}
        return {"mechanism": name, **size}
    return {"mechanism": name, "scale": float(law.scale * measure.step)}


def explanation(
    text: str,
    job: Job,
    in_force: tuple[Protection, ...],
    warnings: tuple[Caution, ...],
    *,
    assumed: bool,
) -> Explanation:
    """Put the whole argument for a release into words."""
    lines: list[str] = []
    epsilon = job.noise.epsilon
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
        "warnings": [w.to_dict() for w in warnings],
    }
    statements = tuple(job.statements.values()) or (job.rest,)
    lines += ["warnings", *(f"  {line}" for w in warnings for line in str(w).split("\n"))] * bool(
        warnings
    )
    return Explanation("\n".join(lines), record, statements, warnings)


def _noise_lines(b: Bounded, job: Job) -> list[str]:
    lines = []
    for measure in b.release.measures:
        noise = job.noise.noise[measure.column]
        if noise.smooth is not None:
            lines.append(f"{measure.words}: {_smooth_words(noise, job.level, measure)}")
            continue
        if noise.racing:
            lines.append(
                f"{measure.words}: limits race, each at epsilon {float(noise.racing):.4g}; the largest "
                "answer wins that noise does not explain, so it tends to be too small"
            )
            continue
        other = _other_law(job.noise.normal, measure)
        if noise.choosing:
            lines.append(f"{measure.words}: {_limit_words(noise, job.level, measure)}{other}")
            continue
        law = noise.law()
        if law is None:
            lines.append(f"{measure.words}: none, no protection moves it")
            continue
        error = law.error(job.level) * measure.step
        lines.append(
            f"{measure.words}: {_law_words(law, noise, measure)}; "
            f"within {float(error):.6g} at {float(job.level):.0%}{other}"
        )
    lines += [words_of(r, job.noise.ranks[r.column], job.level) for r in b.release.ranked]
    choice = job.noise.choices.get(b.release.name)
    if choice is not None:
        lines.append(
            f"keys: shown from a noisy count of {choice.threshold} on (delta {float(choice.delta):g})"
        )
    return lines


def _law_words(law: WholeLaw, noise: MeasureNoise, measure: Measure) -> str:
    """Name the law of plain noise, its size and what it costs."""
    grid = f"on a grid of {float(measure.step):g}"
    if isinstance(law, WholeNormal):
        wide = f"Gaussian of deviation {float(law.deviation * measure.step):.6g}"
        return f"{wide} {grid} (rho {float(noise.rho):.4g})"
    wide = f"discrete Laplace of scale {float(law.scale * measure.step):.6g}"
    return f"{wide} {grid} (epsilon {float(noise.epsilon):.4g})"


def _other_law(normal: NormalPart, measure: Measure) -> str:
    """Say what the law that was not taken would have come to, where both were possible."""
    both = normal.compared.get(measure.column)
    if both is None:
        return ""
    taken = measure.column in normal.rhos
    name, steps = ("Laplace", both.laplace) if taken else ("Gaussian", both.normal)
    far = f"{float(steps * measure.step):.6g} at {float(LEVEL):.0%}"
    return f" ({name} noise: {far})"


def _smooth_words(noise: MeasureNoise, level: Fraction, measure: Measure) -> str:
    """Say what is public of smooth noise: its shape, and at most how large it is."""
    assert noise.smooth is not None
    most = public_error(noise, level, measure)
    told = (
        "its size is known only to the owner"
        if most is None
        else f"at most {most:.6g} at {float(level):.0%}, known exactly only to the owner"
    )
    return (
        f"optimal smooth noise, beta {float(noise.beta or 0):.4g}, "
        f"epsilon {float(noise.epsilon):.4g}; {told}"
    )


def _limit_words(noise: MeasureNoise, level: Fraction, measure: Measure) -> str:
    """Say what is public of noise whose limit is chosen first: between which sizes it lies."""
    assert noise.clipped is not None
    ends = [
        float(law.error(level) * measure.step)
        for limit in (noise.clipped.limits[0], noise.clipped.limits[-1])
        if (law := noise.law(limit)) is not None
    ]
    after = f"discrete Laplace of scale limit / {float(noise.epsilon - noise.choosing):.4g}"
    if noise.rho:
        after = f"Gaussian (rho {float(noise.rho):.4g})"
    return (
        f"a limit of what one unit adds is chosen privately (epsilon {float(noise.choosing):.4g}), then "
        f"{after}; noise within "
        f"{ends[0]:.6g} to {ends[1]:.6g} at {float(level):.0%}, besides what is cut off above the limit"
    )


def _public_bound(bound: Move, measure: Measure) -> object:
    """Give a bound's public part: all of a global one, the cap of a smooth one, the largest limit."""
    if isinstance(bound, Clipped):
        return plain(bound.limits[-1] * measure.step)
    value = bound.value if isinstance(bound, GlobalBound) else bound.cap
    return None if value is None else plain(value * measure.step)


def _rank_bound(bound: Move) -> object:
    """Give how far the rank distances of two points move apart, in rows."""
    assert isinstance(bound, GlobalBound)
    return plain(bound.value)


def _release_record(b: Bounded, job: Job) -> dict[str, Any]:
    return {
        "enforced": list(b.release.notes),
        "certificates": [
            {
                "protection": c.protection,
                "room": c.room,
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


def inspection(
    job: Job,
    exact: list[tuple[object, ...]],
    softened: Shown,
    bounds: Mapping[str, list[Fraction]],
    seconds: dict[str, float],
) -> list[dict[str, Any]]:
    """One record an output column, for the owner. For several rows, errors are put together as lengths of vectors.

    `error` is the distance to the true answer that noise and softening together keep to, at the level; None where
    nothing says how far noise leads. `noisy_rows` says whether noise decides which rows are shown.
    """
    found = []
    relied = reliance(job)
    measures = {m.column: m for b in job.prepared.bounded for m in b.release.measures}
    ranked = {r.column: r for b in job.prepared.bounded for r in b.release.ranked}
    percent = "95" if job.level == Fraction(95, 100) else ""
    for index, column in enumerate(softened.columns):
        truth = [plain(row[index]) for row in exact]
        soft = [plain(row[index]) for row in softened.rows]
        scalar = job.traced.made_of.get(column)
        noisy = relied.columns[column]
        named = columns_of(scalar) if scalar is not None else frozenset()
        # Measures that nobody can move are told, too, with a bound of zero; beside an exact value in a row that noise
        # chose, the noise that chose it.
        behind = (noisy or relied.rows) | named
        used = [m for c, m in measures.items() if c in behind]
        ranks = [r for c, r in ranked.items() if c in behind]
        if noisy and not noisy <= named:
            errors = _stated_errors(index, exact, softened)  # other noise than the expression shows
        elif relied.rows and not noisy:
            errors = [None] * len(
                softened.rows
            )  # the value is exact, its place in the answer is not
        elif ranks:
            errors = _strays(job, column, index, ranks, exact, softened, bounds)
        else:
            level = _level_of_chosen(job, relied, noisy, softened)
            errors = _errors_of(job, column, index, used, exact, softened, bounds, level)
        known = [e for e in errors if e is not None]
        numbers = [
            float(v) for v in truth if isinstance(v, (int, float)) and not isinstance(v, bool)
        ]
        length = sum(v * v for v in numbers) ** 0.5
        shown = None if used or ranks or relied.rows else 0.0
        error = max(known) if len(known) == len(errors) and known else shown
        together = sum(e * e for e in known) ** 0.5
        relative = together / length if error is not None and length else None
        one = len(softened.rows) == 1 and len(exact) == 1
        sensitivities = [_seen(_sensitivity(job, m, bounds)) for m in used]
        sensitivities += [_most_ranks(job, r) for r in ranks]
        scales = [_seen(_scales(job, m, bounds)) for m in used]
        scales += [scale_of(job.noise.ranks[r.column]) for r in ranks]
        betas = [float(b) for m in used if (b := job.noise.noise[m.column].beta) is not None]
        smooth = any(job.noise.noise[m.column].smooth is not None for m in used)
        rooms = [_rooms(job, m) for m in used] + [_rooms(job, r) for r in ranks]
        found.append(
            {
                "column": column,
                "exact": truth[0] if one else truth,
                "softened": soft[0] if one else soft,
                "sensitivity": _single(sensitivities),
                "beta": _single(betas) if betas else None,
                "noise_scale": _single(scales),
                f"error{percent}": error,
                f"relative_error{percent}": relative,
                "mechanism": ", ".join(
                    [("optimal smooth noise" if smooth else _names(job, used))] * bool(used)
                    + [r["mechanism"] for r in _choices(job, ranks)]
                )
                or "none",
                "analysis": ", ".join(dict.fromkeys(rooms)) or "public",
                "noisy_rows": bool(relied.rows),
                "seconds": seconds,
            }
        )
    return found


def _single(values: list[Any]) -> Any:
    return values[0] if len(values) == 1 else values or 0.0


def _seen(values: list[Fraction]) -> Any:
    return _single([float(v) for v in values])


def _choices(job: Job, ranks: list[Ranked]) -> list[dict[str, Any]]:
    found = [mechanism_of(r, job.noise.ranks[r.column]) for r in ranks]
    return list({r["mechanism"]: r for r in found}.values())


def _most_ranks(job: Job, ranked: Ranked) -> float:
    """Give how far rank distances move apart at most, under all protections, in rows."""
    noise = job.noise.ranks[ranked.column]
    return 0.0 if noise.choice is None else float(noise.epsilon / noise.choice.sharpness)


def _strays(
    job: Job,
    column: str,
    index: int,
    ranks: list[Ranked],
    exact: list[tuple[object, ...]],
    softened: Shown,
    bounds: Mapping[str, list[Fraction]],
) -> list[float | None]:
    """Give for each row how far draws of an order statistic stray, and the grid besides; dates in days."""
    scalar = job.traced.made_of.get(column)
    while isinstance(scalar, n.Attempt):
        scalar = scalar.operand
    groups = bounds[ranks[0].column]
    rows = list(zip(exact, softened.rows, groups, strict=False))
    if not isinstance(scalar, n.Column) or not len(exact) == len(softened.rows) == len(groups):
        return [None] * len(softened.rows)
    found: list[float | None] = []
    for true, soft, far in rows:
        numbers = as_number(true[index]), as_number(soft[index])
        if numbers[0] is None or numbers[1] is None:
            found.append(None)
        else:
            found.append(float(far + abs(numbers[0] - numbers[1])))
    return found


def _rooms(job: Job, measure: Measure | Ranked) -> str:
    for b in job.prepared.bounded:
        if measure in b.release.measures or measure in b.release.ranked:
            certificates = [c for c in b.certificates if not is_still(c.bounds[measure.column])]
            return ", ".join(dict.fromkeys(c.room for c in certificates)) or "public"
    return "public"


def _sensitivity(
    job: Job, measure: Measure, bounds: Mapping[str, list[Fraction]]
) -> list[Fraction]:
    """Give a measure's bound, one a group where it is smooth."""
    if measure.column in bounds:
        return [x * measure.step for x in bounds[measure.column]]
    noise = job.noise.noise[measure.column]
    if noise.rho:
        return [root_up(noise.squared) * measure.step]
    return [(noise.scale or Fraction(0)) * noise.epsilon * measure.step]


def _scales(job: Job, measure: Measure, bounds: Mapping[str, list[Fraction]]) -> list[Fraction]:
    """Give the scale of a measure's noise: what the standard shape is multiplied by."""
    noise = job.noise.noise[measure.column]
    found = bounds.get(measure.column, [])
    if noise.smooth is not None:
        return [(x + noise.widening) / noise.smooth.rate * measure.step for x in found]
    laws = [noise.law(int(x)) for x in found] if noise.choosing else [noise.law()]
    return [_size_of(law) * measure.step for law in laws]


def _size_of(law: WholeLaw | None) -> Fraction:
    if law is None:
        return Fraction(0)
    return law.deviation if isinstance(law, WholeNormal) else law.scale


def _names(job: Job, measures: list[Measure]) -> str:
    """Name the laws of plain noise."""
    normal = [bool(job.noise.noise[m.column].rho) for m in measures]
    return ", ".join(["discrete laplace"] * (not all(normal)) + ["gaussian"] * any(normal))


def _errors_of(
    job: Job,
    column: str,
    index: int,
    used: list[Measure],
    exact: list[tuple[object, ...]],
    softened: Shown,
    bounds: Mapping[str, list[Fraction]],
    level: Fraction,
) -> list[float | None]:
    """Give for each row how far noise and softening together may lead from the truth."""
    if len(exact) != len(softened.rows):
        return [None] * len(softened.rows)
    found: list[float | None] = []
    for i, (true, soft) in enumerate(zip(exact, softened.rows, strict=True)):
        pair = [plain(true[index]), plain(soft[index])]
        if not all(isinstance(v, (int, float)) and not isinstance(v, bool) for v in pair):
            found.append(None)
            continue
        bias = abs(float(pair[1]) - float(pair[0]))
        if len(used) == 1 and _is_plain(job, column, used[0]):
            scale = _scale_in_row(job, used[0], bounds, i)
            found.append(_together(job.noise.noise[used[0].column], scale, bias, level))
        else:
            noise = softened.noise[i][index] if softened.noise else None
            found.append(None if noise is None and used else bias + (noise or 0.0))
    return found


def _stated_errors(
    index: int, exact: list[tuple[object, ...]], softened: Shown
) -> list[float | None]:
    """Give for each row what an answer would state, about softened numbers; None where it states nothing."""
    if softened.noise is None or len(exact) != len(softened.rows):
        return [None] * len(softened.rows)
    found: list[float | None] = []
    for true, soft, noise in zip(exact, softened.rows, softened.noise, strict=True):
        numbers = number_of(plain(true[index])), number_of(plain(soft[index]))
        far = noise[index]
        if far is None or numbers[0] is None or numbers[1] is None:
            found.append(None)
        else:
            found.append(far + abs(numbers[1] - numbers[0]))
    return found


def _level_of_chosen(job: Job, relied: Reliance, noisy: Names, softened: Shown) -> Fraction:
    """Give the level at which all candidates hold together, where noise decides which of them are shown."""
    if not relied.rows:
        return job.level
    candidates = 1
    for b in job.prepared.bounded:
        if noisy & {m.column for m in b.release.measures}:
            candidates *= max(1, softened.groups.get(b.release.name, 1))
    return 1 - (1 - job.level) / candidates


def _is_plain(job: Job, column: str, measure: Measure) -> bool:
    """Whether an output is one measure, perhaps kept inside limits."""
    scalar = job.traced.made_of.get(column)
    while isinstance(scalar, (n.Call, n.Clamp, n.Attempt)):
        if isinstance(scalar, n.Call) and scalar.function not in ("greatest", "least"):
            return False
        scalar = scalar.arguments[0] if isinstance(scalar, n.Call) else scalar.operand
    return isinstance(scalar, n.Column) and scalar.name == measure.column


def _scale_in_row(
    job: Job, measure: Measure, bounds: Mapping[str, list[Fraction]], row: int
) -> float:
    """Give the scale of a measure's noise in one row; smooth noise varies from group to group."""
    scales = _scales(job, measure, bounds)
    return float(scales[row] if len(scales) > row else scales[0]) if scales else 0.0


def _together(noise: MeasureNoise, scale: float, bias: float, level: Fraction) -> float:
    """Give t with P(|bias + noise| <= t) = level: noise may also lead back to the truth."""
    miss = 1 - float(level)
    if scale <= 0:
        return bias
    ratio = None
    if noise.smooth is not None:
        ratio = float(noise.smooth.epsilon / noise.smooth.beta)

    def beyond(t: float) -> float:
        if noise.rho:
            root = scale * 2**0.5
            return (math.erfc((t - bias) / root) + math.erfc((t + bias) / root)) / 2
        return tail((t - bias) / scale, ratio) + tail((t + bias) / scale, ratio)

    low, high = 0.0, bias + scale
    while beyond(high) > miss:
        high *= 2
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if beyond(middle) > miss else (low, middle)
    return high


def tail(v: float, ratio: float | None) -> float:
    """Give P(V > v) for noise in units of sensitivity/epsilon: Laplace, or the optimal law of k = ratio."""
    if v < 0:
        return 1 - tail(-v, ratio)
    if ratio is None:
        return 0.5 * math.exp(-v)
    k = ratio
    a = (1 - 1 / k) ** (k - 1)
    total = 1 + 2 * a / k
    if v < 1:
        return float(0.5 * (1 - (1 - (1 - v / k) ** k) / total))
    outer = a * (1 + 1 / k) * ((1 + 1 / k) / (1 + v / k)) ** k
    return float(0.5 * outer / total)
