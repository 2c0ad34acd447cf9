"""One number with noise: charge, read, draw, and say what was done.

In: settled terms, calibrated noise, and what computes the exact answer once it may be read. Out: a `Release`.
For statistics with one way only; where there is a choice, see calls.py.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any

from secant.noise.mechanisms.laplace import GlobalNoise
from secant.noise.secrecy import Private
from secant.records import frozen
from secant.stats.budget import Done, paid
from secant.stats.calls import Terms, guarantee_of, quiet
from secant.stats.plot import Curve
from secant.stats.results import Candidate, Cost, ErrorBar, Release

_FAR = Fraction(10**300)  # what a float still holds


@frozen
class Sentences:
    """What is said of a release, all of it public."""

    mechanism: str
    why: str
    of: str = ""
    """What the error is counted from, where that is not the statistic itself."""


@frozen
class Drawing:
    """How one number is drawn, and what may be said of its noise."""

    draw: Callable[[], Fraction]
    """Reads the values; not called before the charge is durable."""
    error: ErrorBar
    curve: Curve


def plain_release(
    terms: Terms,
    name: str,
    noise: GlobalNoise,
    answer: Callable[[], Fraction],
    sentences: Sentences,
    *,
    least: Fraction | None = None,
    candidates: tuple[Candidate, ...] = (),
    facts: Mapping[str, Any] | None = None,
) -> Release:
    """Release `answer()` with noise of a public size; `facts` are those that its bound follows from."""
    drawing = public_drawing(noise, answer, terms.level, sentences.of)
    done = Done(name, noise, facts or {})
    return drawn_release(terms, done, drawing, sentences, least=least, candidates=candidates)


def drawn_release(
    terms: Terms,
    done: Done,
    drawing: Drawing,
    sentences: Sentences,
    *,
    least: Fraction | None = None,
    candidates: tuple[Candidate, ...] = (),
) -> Release:
    """Charge, draw, and say what was done."""
    cost: Cost
    with paid(terms.budget, terms.epsilon, done) as cost, quiet():
        drawn = drawing.draw()
    if least is not None:
        drawn = max(drawn, least)
    return Release(
        statistic=done.name,
        value=float(min(max(drawn, -_FAR), _FAR)),
        error=drawing.error,
        guarantee=guarantee_of(terms),
        cost=cost,
        mechanism=sentences.mechanism,
        why=sentences.why,
        candidates=candidates,
        curve=drawing.curve,
    )


def public_drawing(
    noise: GlobalNoise, answer: Callable[[], Fraction], level: Fraction, of: str = ""
) -> Drawing:
    """Give noise of a public size; `of` is what the error is counted from, where that is not the statistic."""
    amount = float(noise.error(level))
    description = f"within {amount:.4g} with probability {float(level):g}"
    bar = ErrorBar(float(level), amount, "value", description)
    if of:
        bar = ErrorBar(float(level), None, "value", f"{description} of {of}")
    width = float(noise.scale)
    extent = -math.log(1 - float(level)) * width
    axis = "error, beside that" if of else "error"
    curve = Curve(axis, lambda t: math.exp(-abs(t) / width) / (2 * width), extent)
    return Drawing(lambda: noise.draw(Private(answer())), bar, curve)
