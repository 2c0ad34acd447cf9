"""P-RELEASE: statistics of values without a range: a sensitivity that one chooses, then noise.

In: values, the public Δ, the public value of no values, ε, and who pays. Out: a `Release`. No bounds are needed and
none are guessed; how far the preprocessed statistic lies from the statistic itself stays private. Whatever the values
are, there is an answer: a size that is slow to visit is visited.
"""

from __future__ import annotations

import math
import sys
from fractions import Fraction
from statistics import NormalDist

import numpy as np

from secant.errors import UsageError
from secant.mechanisms.laplace import GlobalNoise, LaplaceNoise
from secant.numeric.parameters import Number, positive
from secant.stats.bounded import specified, uniform_finding
from secant.stats.calls import Terms
from secant.stats.choice import ASSUMED_ROWS
from secant.stats.inputs import FAR, Values, clamped, public_number, values_of, written
from secant.stats.ordered import EXTENDED
from secant.stats.ordered_statistics import Statistic
from secant.stats.plain import Sentences, plain_release
from secant.stats.registered import OrderedFunction
from secant.stats.results import REPLACE, Candidate, Release, comparison
from secant.terms.bounds import GlobalBound

FAMILY = "preprocessing"
_FINE = 1 << 10  # grid steps in one Δ: rounding is far below the noise
_MOST_MADE_UP = 2000
Spec = Statistic | OrderedFunction | str
_VARIANCE = "the variance is at most n·Δ/2 and nobody's part of it more than Δ (Theorem 1.8)"


def release_unbounded(
    values: object,
    name: str,
    terms: Terms,
    *,
    delta_f: Number,
    empty: Number | None,
    q: Number | None = None,
    trim: Number | None = None,
) -> Release:
    """Release a statistic by name, made to move by at most `delta_f` (P-RELEASE)."""
    spec = specified(name, q, trim)
    assert spec is not None
    if terms.mechanism not in ("auto", FAMILY):
        raise UsageError(
            "USE-001",
            f"there is no mechanism {terms.mechanism!r} without bounds",
            hint="Pass bounds, or leave the mechanism out: delta_f stands for preprocessing.",
        )
    if not EXTENDED and name in ("mean", "trimmed_mean"):
        raise UsageError("USE-001", "on this machine floats are too short for that without bounds")
    delta = delta_of_call(delta_f)
    center = Fraction(0) if empty is None else public_number(empty, "empty")
    limit = delta / 2 if terms.neighbors == REPLACE else delta  # one value leaves, one comes
    noise = LaplaceNoise().calibrate(GlobalBound(delta), epsilon=terms.epsilon, grid=delta / _FINE)
    found: tuple[Candidate, ...] = ()
    if terms.compare:
        found = (_made_up(spec, terms, limit, center, noise),)
        size = ASSUMED_ROWS if terms.size is None else terms.size
        about = f"{size} values around `empty`, in stretches of n·Δ, a tenth and ten times that"
        sys.stdout.write(comparison(found, FAMILY, about) + "\n")

    def answer() -> Fraction:
        data = np.sort(clamped(values_of(values), None))
        return uniform_finding(spec, data, limit, center).exact_value

    same = _VARIANCE if isinstance(spec, str) else spec.certain_when
    words = Sentences(
        f"{FAMILY}, {noise.name}",
        f"one value moves it by {float(delta):g} at most, as asked; no range was needed",
        f"the preprocessed statistic, which is the statistic when {same}",
    )
    least = Fraction(0) if name == "variance" else None
    shown = name.replace("_", " ") if q is None else f"quantile {float(written(q, 'q')):g}"
    return plain_release(terms, shown, noise, answer, words, least=least, candidates=found)


def delta_of_call(delta_f: Number) -> Fraction:
    """Give the Δ of a call, or refuse it."""
    delta = positive(written(delta_f, "delta_f"), "delta_f")
    if not Fraction(1, 10**150) <= delta <= Fraction(FAR):
        raise UsageError("USE-001", "delta_f is out of range")
    return delta


def _made_up(
    spec: Spec, terms: Terms, limit: Fraction, center: Fraction, noise: GlobalNoise
) -> Candidate:
    """Give the mean error on made-up values: of the noise, and of the statistic that it goes on."""
    size = min(ASSUMED_ROWS if terms.size is None else terms.size, _MOST_MADE_UP)
    places = (np.arange(size) + 0.5) / max(size, 1)
    bell = np.array([NormalDist().inv_cdf(p) for p in places.tolist()]) / 6
    reach = float(limit) * size
    if isinstance(spec, str):
        reach = math.sqrt(reach)  # Δ of a variance is in squares
    shapes: dict[str, Values] = {
        "even": places - 0.5,
        "bell": bell,
        "narrow": (places - 0.5) / 10,
        "wide": (places - 0.5) * 10,
    }
    expected = {}
    for label, shape in shapes.items():
        data = np.sort(shape * reach + float(center))
        found = uniform_finding(spec, data, limit, center)
        off = abs(float(found.exact_value) - found.target)
        scale = float(noise.scale)
        expected[label] = off + scale * math.exp(-off / scale)  # of |off + Laplace|
    return Candidate(FAMILY, expected)
