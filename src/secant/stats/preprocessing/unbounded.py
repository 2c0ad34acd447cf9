"""preprocess.release: statistics of values without a range: a sensitivity that one chooses, then noise.

In: values, the public Δ, the public value of no values, ε, and who pays. Out: a `Release`. No bounds are needed and
none are guessed; how far the preprocessed statistic lies from the statistic itself stays private. Whatever the values
are, there is an answer: a size that is slow to visit is visited.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from fractions import Fraction
from statistics import NormalDist

import numpy as np

from secant.errors import UsageError
from secant.noise.mechanisms.laplace import GlobalNoise, LaplaceNoise
from secant.noise.secrecy import Private
from secant.numeric.parameters import Number, positive
from secant.records import frozen
from secant.sensitivity.bounds import GlobalBound
from secant.stats.bounded import specified, uniform_finding
from secant.stats.budget import Done
from secant.stats.calls import Terms
from secant.stats.choice import ASSUMED_ROWS, steadiest
from secant.stats.inputs import FAR, Values, check_values, decimal_of, public_number, values_of
from secant.stats.mechanisms import capped_description, capped_error, smooth_curve, smooth_spread
from secant.stats.plain import Drawing, Sentences, drawn_release, public_drawing
from secant.stats.preprocessing.ordered import EXTENDED
from secant.stats.preprocessing.ordered_statistics import Statistic
from secant.stats.preprocessing.registered import OrderedFunction
from secant.stats.preprocessing.smooth_median import ORDERS_BY_RANK, SmoothMedian, smooth_median
from secant.stats.preprocessing.units import Units
from secant.stats.results import REPLACE, Candidate, ErrorBar, Release, comparison

FAMILY = "preprocessing"
_FINE = 1 << 10  # grid steps in one Δ: rounding is far below the noise
_FINER = 1 << 30  # where noise may be far below Δ
_MOST_SIMULATED = 2000
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
    """Release a statistic by name, made to move by at most `delta_f` (preprocess.release)."""
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
    options: list[_Laplace | _Smooth] = [_laplace(spec, terms.epsilon, delta, limit, center)]
    if name == "median":
        options += [_smooth(terms, delta, limit, center, o) for o in ORDERS_BY_RANK]
    option = options[0]
    candidates: tuple[Candidate, ...] = ()
    if terms.compare or len(options) > 1:
        option, candidates = _decided(options, spec, terms, limit, center)
    if terms.compare:
        size = ASSUMED_ROWS if terms.size is None else terms.size
        about = f"{size} values around `empty`, in stretches of n·Δ, a tenth and ten times that"
        sys.stdout.write(comparison(candidates, option.name, about) + "\n")
    same = _VARIANCE if isinstance(spec, str) else spec.certain_when
    why = f"one value moves it by {float(delta):g} at most, as asked; no range was needed"
    if len(options) > 1:
        why += "; this noise errs least on made-up data"
    sentences = Sentences(
        option.name,
        why,
        f"the preprocessed statistic, which is the statistic when {same}",
    )
    check_values(values)
    # where the number of values is public, each counts: one that is missing as the public value of none
    other = float(center) if terms.neighbors == REPLACE else None
    drawing = option.drawing(
        lambda: np.sort(values_of(values, missing=other)), terms.level, sentences.of
    )
    least = Fraction(0) if name == "variance" else None
    shown = name.replace("_", " ") if q is None else f"quantile {float(decimal_of(q, 'q')):g}"
    return drawn_release(terms, Done(shown), drawing, sentences, least=least, candidates=candidates)


@frozen
class _Laplace:
    """Noise for the Δ that preprocessing promises."""

    noise: GlobalNoise
    answer: Callable[[Values], Fraction]

    @property
    def name(self) -> str:
        return f"{FAMILY}, {self.noise.name}"

    @property
    def step(self) -> float:
        return float(self.noise.grid)

    def expected(self, data: Values, off: float) -> float:
        """Give the mean of |off + noise| on values that are public."""
        width = float(self.noise.scale)
        return off + width * math.exp(-off / width)

    def drawing(self, read: Callable[[], Values], level: Fraction, of: str) -> Drawing:
        return public_drawing(self.noise, lambda: self.answer(read()), level, of)


@frozen
class _Smooth:
    """Noise for the smooth bound of the preprocessed median, which is Δ at most (preprocess.smooth_median)."""

    median: SmoothMedian

    @property
    def name(self) -> str:
        return f"{FAMILY}, smooth sensitivity, {self.median.noise.name} noise"

    @property
    def step(self) -> float:
        return float(self.median.noise.grid)

    def expected(self, data: Values, off: float) -> float:
        """Give the mean of |off + noise| on values that are public."""
        spread = smooth_spread(self.median.noise, self.median.bound(data))
        return float(np.maximum(spread, off).mean())

    def drawing(self, read: Callable[[], Values], level: Fraction, of: str) -> Drawing:
        noise = self.median.noise

        def draw() -> Fraction:
            data = read()
            bound = Private(self.median.bound(data))
            return noise.draw(Private(self.median.answer(data)), bound)

        description = capped_description(capped_error(noise, level), level, of)
        bar = ErrorBar(float(level), None, "value", description)
        return Drawing(draw, bar, smooth_curve(noise, level))


def _laplace(
    spec: Spec, epsilon: Fraction, delta: Fraction, limit: Fraction, center: Fraction
) -> _Laplace:
    noise = LaplaceNoise().calibrate(GlobalBound(delta), epsilon=epsilon, grid=delta / _FINE)
    return _Laplace(noise, lambda data: uniform_finding(spec, data, limit, center).exact_value)


def _smooth(
    terms: Terms, delta: Fraction, limit: Fraction, center: Fraction, order: Fraction
) -> _Smooth:
    units = Units(center, limit)
    return _Smooth(smooth_median(units, terms.epsilon, order, terms.neighbors, delta / _FINER))


def delta_of_call(delta_f: Number) -> Fraction:
    """Give the Δ of a call, or refuse it."""
    delta = positive(decimal_of(delta_f, "delta_f"), "delta_f")
    if not Fraction(1, 10**150) <= delta <= Fraction(FAR):
        raise UsageError("USE-001", "delta_f is out of range")
    return delta


def _decided(
    options: list[_Laplace | _Smooth], spec: Spec, terms: Terms, limit: Fraction, center: Fraction
) -> tuple[_Laplace | _Smooth, tuple[Candidate, ...]]:
    """Pick by the mean error on made-up values: of the noise, and of the statistic that it goes on.

    Rests on statistic.choice.
    """
    size = min(ASSUMED_ROWS if terms.size is None else terms.size, _MOST_SIMULATED)
    places = (np.arange(size) + 0.5) / max(size, 1)
    bell = np.array([NormalDist().inv_cdf(p) for p in places.tolist()]) / 6
    extent = float(limit) * size
    if isinstance(spec, str):
        extent = math.sqrt(extent)  # Δ of a variance is in squares
    shapes: dict[str, Values] = {
        "even": places - 0.5,
        "bell": bell,
        "narrow": (places - 0.5) / 10,
        "wide": (places - 0.5) * 10,
    }
    errors: dict[int, dict[str, float]] = {id(option): {} for option in options}
    for label, shape in shapes.items():
        data = np.sort(shape * extent + float(center))
        finding = uniform_finding(spec, data, limit, center)
        off = abs(float(finding.exact_value) - finding.target)
        for option in options:
            errors[id(option)][label] = option.expected(data, off)
    kinds = {option.name for option in options}
    best = {k: steadiest([o for o in options if o.name == k], errors) for k in sorted(kinds)}
    found_for = tuple(Candidate(name, errors[id(option)]) for name, option in best.items())
    return steadiest(list(best.values()), errors), found_for
