"""Which noise a sampled sensitivity calls for (blackbox.induced).

In: a mechanism by name or of the caller's own, an estimate, ε, δ, all public. Out: calibrated noise,
and a function that turns the private result into what is released. The private result passes
through that function once and is kept nowhere.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np

from secant.blackbox.estimate import Sensitivity
from secant.blackbox.measure import NORMS, Distance
from secant.blackbox.posterior import PosteriorSampler
from secant.blackbox.workers import guarded
from secant.errors import Refused, UsageError
from secant.noise.mechanisms.bernstein import BernsteinNoise, LatticeNoise
from secant.noise.mechanisms.gaussian import GaussianNoise, NormalNoise
from secant.noise.mechanisms.laplace import GlobalNoise, LaplaceNoise
from secant.noise.mechanisms.selection import Choice, ExponentialNoise, PermuteAndFlip
from secant.noise.secrecy import Private
from secant.numeric.parameters import Number, positive
from secant.sensitivity.bounds import GlobalBound, Norm

Custom = Callable[[Any, float, float, float], Any]
"""A mechanism of the caller's own: takes result, sensitivity, ε, δ and gives what is released."""
Respond = Callable[[Any], Any]
Listed = (
    LaplaceNoise
    | GaussianNoise
    | ExponentialNoise
    | PermuteAndFlip
    | BernsteinNoise
    | PosteriorSampler
)
NoisePlan = GlobalNoise | NormalNoise | Choice | LatticeNoise

MECHANISMS: tuple[Listed, ...] = (
    LaplaceNoise(),
    GaussianNoise(),
    ExponentialNoise(),
    PermuteAndFlip(),
    BernsteinNoise(),
    PosteriorSampler(),
)
# The norm that each is calibrated in; the lattice values of a function are a vector in l1 (blackbox.lattice).
_NEEDS: dict[str, Norm] = {
    "laplace": "l1",
    "gaussian": "l2",
    "exponential": "linf",
    "permute-and-flip": "linf",
    "bernstein": "l1",
    "posterior": "linf",
}
_FINE = 20  # bits between the noise and the grid that it is released on


OWN = "the mechanism of the caller's own is (ε, δ)-private wherever results are as near as sampled"


def mechanism_of(mechanism: object) -> Listed | Custom:
    """Give the mechanism that is meant: a name, one with parameters, or the caller's own."""
    if isinstance(mechanism, str):
        for listed in MECHANISMS:
            if listed.name == mechanism:
                return listed
        names = ", ".join(listed.name for listed in MECHANISMS)
        raise UsageError("USE-001", f"a mechanism is one of: {names}; or a function of your own")
    if isinstance(mechanism, Listed):
        return mechanism
    if not callable(mechanism):
        raise UsageError("USE-001", "a mechanism is a name, one with parameters, or a function")
    own: Custom = mechanism
    return own


def check_delta(mechanism: Listed | Custom, delta: Fraction) -> None:
    """Refuse a delta that the mechanism lacks, or would not use."""
    if isinstance(mechanism, GaussianNoise):
        if not delta:
            raise Refused("REF-103", "normal noise needs a positive delta")
    elif delta and isinstance(mechanism, Listed):
        raise UsageError("USE-003", f"the {mechanism.name} mechanism takes no delta")


def norm_for(norm: Norm | Distance | None, mechanism: Listed | Custom) -> Norm | Distance:
    """Give the norm to sample in."""
    if not isinstance(mechanism, Listed):
        if norm is None:
            raise UsageError(
                "USE-001", "a mechanism of your own needs the norm that it is private in"
            )
        return norm
    if norm is None:
        return _NEEDS[mechanism.name]
    if not isinstance(norm, str) or norm not in NORMS:
        raise UsageError("USE-001", f"the {mechanism.name} mechanism needs l1, l2 or linf as norm")
    return norm


def lattice_of(mechanism: Listed | Custom) -> list[tuple[float, ...]] | None:
    """Give the points at which a function is released; the last coordinate runs fastest."""
    if not isinstance(mechanism, BernsteinNoise):
        return None
    side = [at / mechanism.cover for at in range(mechanism.cover + 1)]
    return list(itertools.product(side, repeat=mechanism.dimension))


def check_estimate(estimate: Sensitivity, n: int, mechanism: Listed | Custom) -> None:
    """Refuse an estimate that was made for another number of records, or for other points."""
    if estimate.n != n:
        raise UsageError("USE-001", "the estimate was made for another number of records")
    lattice = lattice_of(mechanism)
    if lattice is not None and estimate.ruler.points != tuple(lattice):
        raise UsageError("USE-001", "the estimate was made for other points than the lattice")


def calibrated(
    mechanism: Listed | Custom,
    estimate: Sensitivity,
    epsilon: Fraction,
    delta: Fraction,
    least: Fraction,
    grid: Number | None,
    candidates: Sequence[Any] | None,
) -> tuple[NoisePlan | None, Respond]:
    """Fix the noise by public numbers alone, and give what turns the private result into a release."""
    if not isinstance(mechanism, Listed):
        if candidates is not None:
            raise UsageError("USE-001", "candidates go with a choice")
        own, widest = mechanism, float(_above_zero(max(estimate.value, least)))
        price, slack = float(epsilon), float(delta)
        # what it raises may quote the result, so only that it raised is told
        return None, lambda private: guarded(partial(own, private, widest, price, slack))
    norm = _NEEDS[mechanism.name]
    bound = GlobalBound(_above_zero(max(estimate.bound(norm), least)), norm)
    if isinstance(mechanism, ExponentialNoise | PermuteAndFlip | PosteriorSampler):
        if candidates is not None and len(candidates) != estimate.size:
            raise UsageError("USE-001", "there is one score for each candidate")
        choice = mechanism.calibrate(bound, epsilon=epsilon)
        counts = mechanism.prior if isinstance(mechanism, PosteriorSampler) else None
        return choice, lambda private: _chosen(choice, private, candidates, counts)
    if candidates is not None:
        raise UsageError("USE-001", "candidates go with a choice")
    step = _step(bound.value / epsilon) if grid is None else positive(grid, "grid")
    if isinstance(mechanism, BernsteinNoise):
        each = GlobalBound(bound.value / estimate.size, "linf")
        lattice = mechanism.calibrate(each, epsilon=epsilon, grid=step)
        return lattice, lambda private: lattice.draw(_sealed(private))
    if isinstance(mechanism, GaussianNoise):
        normal = mechanism.calibrate(bound, epsilon=epsilon, delta=delta, grid=step)
        return normal, lambda private: _shaped(normal.draw_many(_sealed(private)), estimate)
    laplace = mechanism.calibrate(bound, epsilon=epsilon, grid=step)
    return laplace, lambda private: _shaped(laplace.draw_many(_sealed(private)), estimate)


def _above_zero(bound: Fraction) -> Fraction:
    if not bound:
        raise Refused(
            "REF-101",
            "the sampled sensitivity is zero: the result would be released without noise",
            hint="give least=, a public amount by which one record may move the result",
        )
    return bound


def _step(scale: Fraction) -> Fraction:
    """Give a power of two about 2^-20 of the scale; both are public."""
    power = scale.numerator.bit_length() - scale.denominator.bit_length() - _FINE
    return Fraction(2) ** power


def _sealed(private: Any) -> list[Private[float]]:
    return [Private(number) for number in private.ravel().tolist()]


def _shaped(values: Sequence[Fraction], estimate: Sensitivity) -> Any:
    numbers = np.array([float(value) for value in values])
    return float(numbers[0]) if estimate.shape == () else numbers.reshape(estimate.shape or ())


def alternatives(mechanism: Listed | Custom, size: int) -> int:
    """Give how many candidates the stated error of a choice must reckon with."""
    return mechanism.candidates(size) if isinstance(mechanism, PosteriorSampler) else size


def _chosen(
    choice: Choice,
    private: Any,
    candidates: Sequence[Any] | None,
    counts: Sequence[int] | None,
) -> Any:
    index = choice.draw(_sealed(private), counts)
    return index if candidates is None else candidates[index]
