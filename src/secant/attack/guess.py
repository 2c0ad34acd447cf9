"""How well can an attacker guess a protected value after seeing answers? An upper bound, in numbers and words.

In: a prior, a target, the ε that was spent in total, and the weight of the column in the owner's norm.
Out: the chance of a good guess before, and a bound of it after, whatever was answered. Only pure ε: a
positive δ bounds averages, not single answers. The bound supposes that the attacker knows everything
else, and that this value does not depend on the rest beyond what the prior says. No data is read.
"""

from __future__ import annotations

import math
from decimal import ROUND_CEILING, ROUND_HALF_EVEN, Decimal, localcontext
from fractions import Fraction

from secant.attack.kernel import kernel_of, left_of
from secant.attack.priors import (
    MOST_ATOMS,
    Atoms,
    Pieces,
    Prior,
    Uniform,
    ends_of,
    lattice_points,
    spread,
)
from secant.attack.search import (
    Extreme,
    largest_of_atoms,
    largest_of_density,
    window,
    windows_of,
)
from secant.errors import UsageError
from secant.numeric.arrays import Floats, np
from secant.numeric.parameters import Number, delta_of, epsilon_of, exact, positive
from secant.records import frozen

TRIED_DISTANCES = 2_000
FASTEST = 1e9
"""Beyond this many units of privacy across the whole range nothing but the bound 1 is claimed."""


@frozen
class Guess:
    """Chances that a guess is good: before any answer, and at most after it."""

    prior: float
    """The best guess without an answer."""
    posterior: float
    """No answer raises the chance above this; rounded up."""
    advantage: float
    center: float
    """The middle of the target: as given, or the one that is most at risk."""
    distance: float | None
    """The a that gives `by_distance`; None where no a says anything."""
    by_distance: float
    """The simpler bound for this center that rests on one distance only (attack.distance)."""
    words: str


@frozen
class Membership:
    """Chances that an attacker is right about somebody being in the data."""

    prior: float
    posterior: float | None
    """For every single answer; None with a positive delta, which rare answers may use up."""
    on_average: float
    """Chance of the best yes or no, averaged over answers; holds for every delta."""
    words: str


def guess_probability(
    prior: Prior,
    target: Number | None,
    radius: Number,
    epsilon: Number,
    norm_weight: Number = 1,
    *,
    logarithmic: bool = False,
    distance: Number | None = None,
) -> Guess:
    """Bound the chance that a value is guessed to within `radius`.

    Args:
        prior: What the attacker believes before: `uniform`, `normal`, `weights`, `histogram`.
        target: The middle of the target, or None for the one that is most at risk.
        radius: How near a guess must be, in units of the value.
        epsilon: What all answers together have spent.
        norm_weight: The factor of the column in the owner's norm.
        logarithmic: Whether the norm measures the logarithm of the value.
        distance: The a of the simpler bound, in units of the norm; the best one if None.

    >>> from secant.attack import uniform
    >>> found = guess_probability(uniform(0, 10), 5, 0.5, epsilon=1)
    >>> round(found.prior, 3), round(found.posterior, 3), round(found.by_distance, 3)
    (0.1, 0.396, 0.787)
    """
    rate = epsilon_of(epsilon) * positive(norm_weight, "the weight in the norm")
    near = exact(radius, "the radius")
    if near < 0:
        raise UsageError("USE-001", "the radius must not be negative")
    center = None if target is None else float(exact(target, "the target"))
    shift = None if distance is None else exact(distance, "the distance") / exact(norm_weight, "")
    if shift is not None and shift < 0:
        raise UsageError("USE-001", "the distance must not be negative")
    guess = guess_at_rate(prior, center, float(near), rate, logarithmic=logarithmic, shift=shift)
    scale = float(exact(norm_weight, "the weight in the norm"))
    unscaled = None if guess.distance is None else guess.distance * scale
    description = (
        f"before any answer a guess is within {_plain(near)} with probability "
        f"{percent(guess.prior)}; after answers that cost epsilon {_plain(epsilon_of(epsilon))} in total, "
        f"with at most {percent(guess.posterior, up=True)}, whatever they are"
    )
    return Guess(
        guess.prior,
        guess.posterior,
        guess.advantage,
        guess.center,
        unscaled,
        guess.by_distance,
        description,
    )


def guess_at_rate(
    prior: Prior,
    center: float | None,
    radius: float,
    rate: Fraction,
    *,
    logarithmic: bool = False,
    shift: Fraction | None = None,
) -> Guess:
    """Do the work of `guess_probability` for a rate ε·weight, which may be 0; distances are unweighted."""
    fall = _float_up(rate)
    shape: Atoms | Pieces | None = None
    if _closed(prior, center, logarithmic):
        assert isinstance(prior, Uniform)
        before, after = _even(prior, 0.0, radius), _even(prior, fall, radius)
        if not _too_many(prior):
            shape = spread(prior, logarithmic=False)
    else:
        shape = spread(prior, logarithmic=logarithmic)
        before = _largest(shape, 0.0, radius, center)
        after = _largest(shape, fall, radius, center) if rate else before
    posterior, best, distance = max(after.bound, before.found), 1.0, None
    if shape is not None and not _possible(shape, after.center, radius):
        posterior, best = 0.0, 0.0
    elif shape is not None and not _drowned(shape, fall):
        best, distance = _by_distance(shape, after.center, radius, fall, shift)
    gain = max(0.0, posterior - before.found)
    return Guess(before.found, posterior, gain, after.center, distance, best, "")


def bound_at_rate(
    prior: Prior, center: float | None, radius: float, rate: Fraction, *, logarithmic: bool = False
) -> float:
    """Give the posterior of `guess_at_rate` alone, which is much quicker; for a prior share above 0."""
    fall = _float_up(rate)
    if _closed(prior, center, logarithmic):
        assert isinstance(prior, Uniform)
        return _even(prior, fall, radius).bound
    shape = spread(prior, logarithmic=logarithmic)
    extreme = _largest(shape, fall, radius, center)
    return extreme.bound if _possible(shape, extreme.center, radius) else 0.0


def membership_probability(
    epsilon: Number, prior: Number = Fraction(1, 2), delta: Number = 0
) -> Membership:
    """Bound the chance that an attacker is right about somebody being in the data (attack.member).

    >>> round(membership_probability(1).posterior, 3)
    0.731
    """
    return membership_at(epsilon_of(epsilon), exact(prior, "the prior"), delta_of(delta))


def membership_at(epsilon: Fraction, prior: Fraction, delta: Fraction) -> Membership:
    """Do the work of `membership_probability`; epsilon may be 0."""
    if not 0 < prior < 1:
        raise UsageError("USE-001", "the prior chance of membership must lie between 0 and 1")
    p, d = float(prior), float(delta)
    fall = math.exp(-_float_up(epsilon))
    posterior = _up(p / (p + fall * (1 - p))) if not delta else None
    average = _up(max(p + (1 - p) * d, 1 - p + p * d, (1 + d * fall) / (1 + fall)))
    description = f"somebody who is in the data with probability {percent(p)} beforehand "
    if posterior is not None:
        description += f"is known to be with at most {percent(posterior, up=True)} after any answer"
    else:
        description += (
            f"is told right, in or out, with at most {percent(average, up=True)} on average; "
            "single answers are not bounded, because delta is not 0"
        )
    return Membership(p, posterior, average, description)


def percent(share: float, *, up: bool = False) -> str:
    """Print a chance; a bound is rounded up."""
    with localcontext() as context:
        context.prec, context.rounding = 3, ROUND_CEILING if up else ROUND_HALF_EVEN
        return f"{_plain(+(Decimal(share) * 100))} %"


def _plain(value: Decimal | Fraction) -> str:
    if isinstance(value, Decimal) and value and -4 < value.adjusted() < 4:
        return f"{value.normalize():f}"
    return f"{float(value):g}"


def _float_up(value: Fraction) -> float:
    nearest = float(value)
    return nearest if Fraction(nearest) >= value else math.nextafter(nearest, math.inf)


def _up(share: float) -> float:
    return min(1.0, share * (1 + 1e-12))


# ── the tight bound ──────────────────────────────────────────────────────────────────────────────


def _largest(shape: Atoms | Pieces, rate: float, radius: float, center: float | None) -> Extreme:
    middle = _lowest(shape) if center is None else center
    if isinstance(shape, Pieces) and radius == 0:
        return Extreme(0.0, 0.0, middle)
    if _drowned(shape, rate):
        return Extreme(1.0, 0.0, middle)
    if isinstance(shape, Atoms):
        return largest_of_atoms(shape, rate, radius, center)
    return largest_of_density(shape, rate, radius, center)


def _lowest(shape: Atoms | Pieces) -> float:
    if isinstance(shape, Atoms):
        return float(shape.values[0])
    return math.exp(shape.edges[0]) if shape.logarithmic else float(shape.edges[0])


def _drowned(shape: Atoms | Pieces, rate: float) -> bool:
    places = shape.places if isinstance(shape, Atoms) else shape.edges
    return rate * float(places[-1] - places[0]) > FASTEST


def _possible(shape: Atoms | Pieces, center: float, radius: float) -> bool:
    """Whether the target has any prior share, however small; a density gives none to a single value."""
    if isinstance(shape, Atoms):
        first, last = windows_of(shape, radius, center)
        return bool(first[0] <= last[0])
    start, stop = window(kernel_of(shape, 0.0), np.array([center]), radius)
    meets = (shape.edges[:-1] < stop) & (shape.edges[1:] > start)
    return bool(np.any(meets & np.isfinite(shape.heights)))


def _closed(prior: Prior, center: float | None, logarithmic: bool) -> bool:
    return isinstance(prior, Uniform) and center is None and not logarithmic


def _even(prior: Uniform, rate: float, radius: float) -> Extreme:
    """Give the target at an end of the range, which is the worst one if all values are alike (attack.even)."""
    low, high = ends_of(prior)
    if prior.step is None:
        inside, whole = 2 * radius, high - low
    else:
        inside = prior.step * (math.floor(2 * radius / prior.step * (1 + 1e-12)) + 1)
        whole = prior.step * lattice_points(prior)
    if inside >= whole:
        return Extreme(1.0, 1.0, (low + high) / 2)
    share = inside / whole
    if rate * whole > 1e-12:
        share = math.expm1(-rate * inside) / math.expm1(-rate * whole)
    return Extreme(min(1.0, share * (1 + 1e-9)), share, low + radius)


def _too_many(prior: Prior) -> bool:
    return (
        isinstance(prior, Uniform) and prior.step is not None and lattice_points(prior) > MOST_ATOMS
    )


# ── the bound by one distance ────────────────────────────────────────────────────────────────────


def _by_distance(
    shape: Atoms | Pieces, center: float, radius: float, rate: float, shift: Fraction | None
) -> tuple[float, float | None]:
    """Give the least 1/(1 + exp(−εa)·Pr[X″]/Pr[X′]) and its a, or the one for a given a (attack.distance)."""
    if isinstance(shape, Atoms):
        reaches, ratios = _around_atoms(shape, center, radius)
    else:
        reaches, ratios = _around(shape, center, radius)
    if shift is not None:
        # The largest reach that is not beyond what was asked: X″ only grows with a.
        here = int(np.searchsorted(reaches, float(shift), side="right")) - 1
        ratio = float(ratios[here]) if here >= 0 else 0.0
        if isinstance(shape, Pieces):
            ratio = _ratio(shape, center, radius, np.array([float(shift)]))[0]
        return _odds_up(math.exp(-rate * float(shift)) * ratio), float(shift)
    if not len(reaches):
        return 1.0, None
    worth = np.exp(-rate * reaches) * ratios
    best = int(np.argmax(worth))
    if worth[best] <= 0:
        return 1.0, None
    return _odds_up(float(worth[best])), float(reaches[best])


def _odds_up(against: float) -> float:
    return min(1.0, 1 / (1 + against * (1 - 1e-9)))


def _around_atoms(atoms: Atoms, center: float, radius: float) -> tuple[Floats, Floats]:
    firsts, lasts = windows_of(atoms, radius, center)
    first, last = int(firsts[0]), int(lasts[0])
    inside = np.zeros(len(atoms.places), dtype=bool)
    inside[first : last + 1] = True
    start, stop = atoms.places[first], atoms.places[last]
    far = np.maximum(np.abs(atoms.places - start), np.abs(atoms.places - stop))[~inside]
    order = np.argsort(far)
    shares = np.cumsum(atoms.shares[~inside][order])
    return far[order], shares / np.sum(atoms.shares[inside])


def _around(pieces: Pieces, center: float, radius: float) -> tuple[Floats, Floats]:
    flat = kernel_of(pieces, 0.0)
    start, stop = (float(end[0]) for end in window(flat, np.array([center]), radius))
    least = stop - start
    most = max(stop - pieces.edges[0], pieces.edges[-1] - start)
    reaches = np.linspace(least, most, TRIED_DISTANCES)
    return reaches, _ratio(pieces, center, radius, reaches)


def _ratio(pieces: Pieces, center: float, radius: float, reaches: Floats) -> Floats:
    """Give Pr[X″]/Pr[X′], rounded down by what the pieces may be off."""
    flat = kernel_of(pieces, 0.0)
    low, high = pieces.edges[0], pieces.edges[-1]
    start, stop = window(flat, np.array([center]), radius)

    def below(places: Floats) -> Floats:
        return np.exp(left_of(flat, np.clip(places, low, high)))

    inside = below(stop) - below(start)
    ring = below(np.maximum(start + reaches, stop)) - below(stop)
    ring = ring + below(start) - below(np.minimum(stop - reaches, start))
    # Differences of sums: what rounding may have taken from X′ or added to X″ is given back.
    doubt = (1e-12 + 1e-15 * flat.magnitude) * below(pieces.edges[-1:])
    usable = np.where(reaches >= (stop - start), np.maximum(ring - doubt, 0.0), 0.0)
    return usable / (inside + doubt) * math.exp(-2 * pieces.slack)
