"""One number with noise of a public size: charge, read, draw, and say what was done.

In: settled terms, calibrated noise, and what computes the exact answer once it may. Out: a `Release`. For statistics
with one way only; where there is a choice, see calls.py.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

from secant.mechanisms.laplace import GlobalNoise
from secant.stats.budget import paid
from secant.stats.calls import Terms, guarantee_of, quiet
from secant.stats.plot import Curve
from secant.stats.results import Candidate, Cost, ErrorBar, Release
from secant.terms.secrecy import Private

_FAR = Fraction(10**300)  # what a float still holds


@dataclass(frozen=True, slots=True)
class Sentences:
    """What is said of a release, all of it public."""

    mechanism: str
    why: str
    of: str = ""
    """What the error is counted from, where that is not the statistic itself."""


def plain_release(
    terms: Terms,
    name: str,
    noise: GlobalNoise,
    answer: Callable[[], Fraction],
    words: Sentences,
    *,
    least: Fraction | None = None,
    candidates: tuple[Candidate, ...] = (),
) -> Release:
    """Release `answer()`, which is not called before the charge is durable."""
    cost: Cost
    with paid(terms.budget, terms.epsilon, note={"statistic": name}) as cost, quiet():
        drawn = noise.draw(Private(answer()))
    if least is not None:
        drawn = max(drawn, least)
    amount = float(noise.error(terms.level))
    said = f"within {amount:.4g} with probability {float(terms.level):g}"
    bar = ErrorBar(float(terms.level), amount, "value", said)
    if words.of:
        bar = ErrorBar(float(terms.level), None, "value", f"{said} of {words.of}")
    return Release(
        statistic=name,
        value=float(min(max(drawn, -_FAR), _FAR)),
        error=bar,
        guarantee=guarantee_of(terms),
        cost=cost,
        mechanism=words.mechanism,
        why=words.why,
        candidates=candidates,
        curve=_curve(noise, terms.level, "error, beside that" if words.of else "error"),
    )


def _curve(noise: GlobalNoise, level: Fraction, axis: str) -> Curve:
    width = float(noise.scale)
    reach = -math.log(1 - float(level)) * width
    return Curve(axis, lambda t: math.exp(-abs(t) / width) / (2 * width), reach)
