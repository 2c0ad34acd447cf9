"""The law of a weighted sum of independent Laplace noises: how likely it is far from zero (noise.sum, noise.quotient).

In: scales of noises, all public. Out: probabilities and error bounds for sums and quotients of noisy numbers, rounded
so that intervals hold. Nothing is drawn here, and nothing private is seen.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache

from secant.records import frozen

APART = 1.002
"""Scales are spread until neighbors differ by this factor: wider noise is never less likely to be far."""
FEW = 6
"""So many scales are put together by partial fractions; more of them by a Fourier series."""
COARSE = 50
"""Scales of more whole steps than this, for each noise of a sum, are as good as real-valued."""
SLIP = 1e-5
"""What a computed probability may be too small by. It is added, so that intervals hold; rarer errors are bounded by
exponents, which know no such slip."""


def tail_of_sum(scales: Sequence[float], distance: float, normal: float = 0.0) -> float:
    """Give P(|Σ sᵢ·Lᵢ + normal·N| > distance) for independent standard Laplace and normal noises, rounded up."""
    if distance <= 0:
        return 1.0
    positive = tuple(sorted((s for s in scales if s > 0), reverse=True))
    if normal > 0:
        if not positive:
            return math.erfc(distance / normal / math.sqrt(2))
        computed = _series(positive, normal).beyond(distance)
        return (
            computed
            if computed > 2 * SLIP
            else min(computed, _chernoff(positive, distance, normal))
        )
    if not positive:
        return 0.0
    if len(positive) == 1:
        return math.exp(-distance / positive[0])
    few = len(positive) <= FEW
    computed = _fractions(positive, distance) if few else _series(positive, 0.0).beyond(distance)
    return computed if computed > 2 * SLIP else min(computed, _chernoff(positive, distance))


def sum_error(scales: Sequence[float], level: float, deviations: Sequence[float] = ()) -> float:
    """Give t with P(|Σ sᵢ·Lᵢ + Σ dᵢ·Nᵢ| ≤ t) ≥ level, rounded up."""
    normal = math.hypot(*deviations)
    return _sum_error(tuple(sorted(s for s in scales if s > 0)), level, normal)


@lru_cache(maxsize=256)
def _sum_error(scales: tuple[float, ...], level: float, normal: float) -> float:
    if not scales and not normal:
        return 0.0
    miss = 1 - level
    return _where_rare(lambda t: tail_of_sum(scales, t, normal), miss, max((normal, *scales)))


def whole_sum_error(scales: Sequence[float], level: float) -> int:
    """Give the smallest whole t with P(|Σ Zᵢ| ≤ t) ≥ level for independent discrete Laplace noises, rounded up.

    Beyond COARSE whole steps a noise, its real-valued law and a step for each noise serve as well.
    """
    return _whole_sum_error(tuple(sorted(s for s in scales if s > 0)), level)


@lru_cache(maxsize=256)
def _whole_sum_error(scales: tuple[float, ...], level: float) -> int:
    if not scales:
        return 0
    if max(scales) > COARSE * len(scales):
        return math.ceil(_sum_error(scales, level, 0.0)) + len(scales)
    miss = 1 - level
    law = _WholeSeries(scales)
    falling = tuple(reversed(scales))
    low, high = -1, law.reach
    while _chernoff(falling, high) > miss:  # rarer than what lies beyond `reach`
        low, high = high, high * 2
    while high - low > 1:
        middle = (low + high) // 2
        rare = min(law.beyond(middle), _chernoff(falling, middle + 1)) <= miss
        low, high = (low, middle) if rare else (middle, high)
    return high


def quotient_ends(
    above: tuple[float, float],
    below: tuple[float, float],
    scales: Sequence[tuple[float, float]],
    level: float,
    deviations: Sequence[tuple[float, float]] = (),
) -> tuple[float, float] | None:
    """Give the ends of all r for which `n - r·d` is explained by noise at the level; None if they have no end.

    Args:
        above: The noisy numerator, and how far whole steps may lead it from the real-valued law.
        below: The same for the denominator.
        scales: For each independent Laplace noise the (signed) scale with which it enters numerator and denominator.
        level: How often the true quotient is to lie between the ends.
        deviations: The same for normal noises.
    """
    (n, n_steps), (d, d_steps) = above, below
    miss = 1 - level
    own = [abs(b) for _, b in scales]
    normal = math.hypot(*(b for _, b in deviations))
    if abs(d) <= d_steps or tail_of_sum(own, abs(d) - d_steps, normal) > miss:
        return None  # the denominator may be zero

    def explained(r: float) -> float:
        distance = abs(n - r * d) - n_steps - abs(r) * d_steps
        normal = math.hypot(*(a - r * b for a, b in deviations))
        return tail_of_sum([abs(a - r * b) for a, b in scales], distance, normal)

    middle = n / d
    noise = sum(abs(a - middle * b) for a, b in (*scales, *deviations))
    width = (noise + n_steps + abs(middle) * d_steps) / abs(d)
    if width == 0:
        return middle, middle
    high = _where_rare(lambda t: explained(middle + t), miss, width)
    low = _where_rare(lambda t: explained(middle - t), miss, width)
    if not (math.isfinite(low) and math.isfinite(high)):
        return None
    return middle - low, middle + high


def _where_rare(tail: Callable[[float], float], miss: float, guess: float) -> float:
    """Give a t with tail(t) ≤ miss, hardly more than the first one: the logarithm of a tail is nearly straight."""
    low, at_low, high = 0.0, -math.log(miss), guess
    while (at_high := _height(tail(high), miss)) > 0:
        low, at_low, high = high, at_high, high * 2
        if math.isinf(high):
            return math.inf
    for _ in range(60):
        if high - low <= 1e-7 * high:
            break
        middle = high - at_high * (high - low) / (at_high - at_low)
        # Just past the line, so that both sides close in.
        middle = min(
            max(middle + 1e-8 * high, low + 0.01 * (high - low)), high - 0.01 * (high - low)
        )
        height = _height(tail(middle), miss)
        if height > 0:
            low, at_low, at_high = middle, height, at_high / 2
        else:
            high, at_high, at_low = middle, height, at_low / 2
    return high


def _height(probability: float, miss: float) -> float:
    """Give how far a probability is above what may be missed, as a logarithm; at most 0 means rare enough."""
    return math.log(max(probability, 1e-300) / miss)


def _fractions(scales: tuple[float, ...], distance: float) -> float:
    """Sum up Aᵢ·exp(-w/sᵢ), Aᵢ = Π sᵢ²/(sᵢ² - sⱼ²), over scales that were spread apart."""
    spread: list[float] = []
    for s in reversed(scales):  # from the least on, so that each is moved up
        spread.append(max(s, spread[-1] * APART) if spread else s)
    total = 0.0
    for i, s in enumerate(spread):
        weight = 1.0
        for j, other in enumerate(spread):
            if i != j:
                # (s - o)(s + o): no cancellation beyond that of s - o, which is at least a 500th
                weight *= s * s / ((s - other) * (s + other))
        total += weight * math.exp(-distance / s)
    return min(1.0, max(total, 0.0) + SLIP)


class _Series:
    """P(|S| > t) by the Fourier series of S on a circle so long that almost nothing wraps around."""

    def __init__(self, scales: tuple[float, ...], normal: float) -> None:
        largest = scales[0]
        self.reach = _farthest(scales, normal)
        """Beyond this, sums are rarer than SLIP."""
        self.around = 2 * self.reach
        self.scales, self.normal = scales, normal
        self.terms: list[float] = []
        counted = Counter(scales).items()
        k = 1
        while True:
            u = 2 * math.pi * k / self.around
            fall = sum(math.log1p((s * u) ** 2) * count for s, count in counted)
            value = math.exp(-((normal * u) ** 2) / 2 - fall)
            self.terms.append(value)
            if value < SLIP / 4 and (largest * u >= 1 or normal * u >= 2):
                break  # what is left out adds up to less than 0.64 times the last term
            k += 1

    def beyond(self, distance: float) -> float:
        """Give the probability, rounded up."""
        if distance >= self.reach:
            return _chernoff(self.scales, distance, self.normal)
        angle = 2 * math.pi * distance / self.around
        inside = 2 * distance / self.around + sum(
            2 / (math.pi * k) * math.sin(k * angle) * value for k, value in enumerate(self.terms, 1)
        )
        return min(1.0, max(0.0, 1 - inside) + SLIP)


class _WholeSeries:
    """The same for whole-number noises, on a circle of whole numbers."""

    def __init__(self, scales: tuple[float, ...]) -> None:
        self.reach = math.ceil(_farthest(tuple(reversed(scales)))) + len(scales)
        self.around = 2 * self.reach + 1
        self.terms: list[tuple[float, float]] = []
        ratios = [(math.exp(-1 / s), count) for s, count in Counter(scales).items()]
        for k in range(1, self.reach + 1):
            angle = 2 * math.pi * k / self.around
            # 1 - 2 r cos(a) + r^2 = (1 - r)^2 + 4 r sin(a/2)^2, without cancellation
            half = math.sin(angle / 2)
            value = 1.0
            for r, count in ratios:
                value /= (1 + 4 * r * (half / (1 - r)) ** 2) ** count
            self.terms.append((angle, value / half))
            if value * self.reach < SLIP * half / 8:
                break  # terms fall from here on, and there are no more than `reach`

    def beyond(self, distance: int) -> float:
        """Give the probability that the sum is more than a whole number away from zero, rounded up."""
        inside = (2 * distance + 1) / self.around
        inside += sum(math.sin((distance + 0.5) * a) * v for a, v in self.terms) * 2 / self.around
        return min(1.0, max(0.0, 1 - inside) + SLIP)


def _farthest(scales: tuple[float, ...], normal: float = 0.0) -> float:
    """Give how far sums almost never get: beyond, they are rarer than a tenth of SLIP."""
    width = max(8 * scales[0], 4 * normal)
    while _chernoff(scales, width, normal) > SLIP / 10:
        width *= 1.25
    return width


def _chernoff(scales: tuple[float, ...], distance: float, normal: float = 0.0) -> float:
    """Bound the tail by the best of a few exponents; `scales` fall. Whole-number noise has a lighter tail."""
    counted = Counter(scales).items()
    variance = sum(2 * s * s * count for s, count in counted) + normal * normal
    best = 1.0
    for part in (0.1, 0.2, 0.35, 0.5, 0.65, 0.8, 0.9, 0.95, distance * scales[0] / variance):
        rate = min(part, 0.98) / scales[0]
        size = -sum(math.log1p(-((s * rate) ** 2)) * count for s, count in counted)
        size += (normal * rate) ** 2 / 2
        best = min(best, 2 * math.exp(min(0.0, size - rate * distance)))
    return best


@lru_cache(maxsize=256)
def _series(scales: tuple[float, ...], normal: float) -> _Series:
    return _Series(scales, normal)


# ── weighted sums of whole noises ────────────────────────────────────────────────────────────────

HIGHEST = 0.9999
"""Rarer errors of weighted sums than one in ten thousand are not told apart."""
SMOOTH, FOLDS, CUT, FAR = 0.04, 16, 2.74, 16
"""Sums are smoothed over this part of a deviation by so many uniform laws; beyond this argument the power of sin(x)/x
is below 1e-7; beyond so many deviations, or steps, sums lie with a chance below 1e-6."""
HALVINGS = 17
WIDE = 100
"""Deviations, in steps, from which on the real-valued law and a step for each noise serve as well."""


@frozen
class Weighted:
    """So many independent whole noises of one law, each with this weight, at most 1."""

    scale: float
    """Of discrete Laplace noise, or the deviation of rounded normal noise; in whole steps."""
    weight: float
    count: int
    normal: bool = False


@lru_cache(maxsize=256)
def whole_variance(scale: float, *, normal: bool = False) -> float:
    """Give the variance of whole noise, in squared steps."""
    if normal:
        return scale**2 + 1 / 12
    half = 1 / (2 * scale)
    return 0.0 if half > 300 else 1 / (2 * math.sinh(half) ** 2)


@lru_cache(maxsize=4096)
def weighted_error(noises: tuple[Weighted, ...], level: float) -> float:
    """Give t with P(|Σ wᵢ·Zᵢ| ≤ t) ≥ level for whole noises, rounded up (noise.agree)."""
    variance = sum(x.count * x.weight**2 * whole_variance(x.scale, normal=x.normal) for x in noises)
    if not variance:
        return 0.0
    top = max(math.sqrt(variance), 0.25)
    if top > WIDE:
        real = [x.weight * x.scale for x in noises for _ in range(x.count) if not x.normal]
        normal = [x.weight * x.scale for x in noises for _ in range(x.count) if x.normal]
        return sum_error(real, level, normal) + sum(x.count * x.weight for x in noises)
    half, smooth = FAR * max(top, 1.0), SMOOTH * top
    terms = math.ceil(CUT * FOLDS * half / (math.pi * smooth))
    least = SLIP / terms
    # What is spread most makes a term small first; one that is too small already is not worked out.
    ordered = sorted(noises, key=lambda x: -x.count * x.weight**2)
    series: list[tuple[float, float]] = []
    for k in _waves(noises, half, terms, -math.log(least * math.pi / 2)):
        u = math.pi * k / half
        x = u * smooth / FOLDS
        fall = FOLDS * math.log(math.sin(x) / x)
        lowest = math.log(least * math.pi * k / 2)
        for one in ordered:
            if one.normal:  # within half a step of a normal noise, which is added below
                fall -= one.count * (one.weight * one.scale * u) ** 2 / 2
            else:
                spread = 2 * whole_variance(one.scale) * math.sin(one.weight * u / 2) ** 2
                fall -= one.count * math.log1p(spread)
            if fall < lowest:
                break
        else:
            series.append((u, 2 / (math.pi * k) * math.exp(fall)))
    low, high = 0.0, half
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        inside = middle / half + sum(v * math.sin(middle * u) for u, v in series)
        low, high = (low, middle) if inside >= level + 2 * SLIP else (middle, high)
    rounding = sum(x.count * x.weight for x in noises if x.normal) / 2
    return high + smooth + rounding


def _waves(noises: Sequence[Weighted], half: float, terms: int, deep: float) -> Iterator[int]:
    """Go through the waves that noises of one kind alone do not make smaller than exp(-deep)."""
    candidates = []
    for x in noises:
        if x.normal:
            far = math.sqrt(2 * deep / x.count) / max(x.weight * x.scale, 1e-300)
            candidates.append((min(terms, far * half / math.pi), math.inf))
        elif x.weight:
            # Whole noise has waves of full height again and again, near the places where the sine is zero.
            most = math.expm1(min(700.0, deep / x.count)) / (2 * whole_variance(x.scale) or 1e-300)
            apart = 2 * half / x.weight
            candidates.append((math.asin(min(1.0, most) ** 0.5) / math.pi * apart, apart))
    wide, apart = min(candidates, key=lambda k: k[0] * (1 + 2 * terms / k[1]))
    last = 0
    for turn in range(math.ceil(terms / apart) + 1):
        middle = turn * apart if turn else 0.0
        for k in range(
            max(last + 1, math.floor(middle - wide)), min(terms, math.ceil(middle + wide)) + 1
        ):
            yield k
            last = k
