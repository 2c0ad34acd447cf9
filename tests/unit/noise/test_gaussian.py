"""Normal noise: the exact curve, the classical formula where it holds, whole numbers."""

from __future__ import annotations

import math
from fractions import Fraction

import mpmath
import pytest

from secant.errors import Refused, UsageError
from secant.noise.mechanisms import discrete_gaussian as whole
from secant.noise.mechanisms.discrete_gaussian import (
    DiscreteGaussianNoise,
    discrete_gaussian_delta,
    discrete_gaussian_noise,
    discrete_gaussian_tail,
    renyi_delta,
)
from secant.noise.mechanisms.gaussian import (
    ClassicalGaussianNoise,
    GaussianNoise,
    least_multiplier,
    suffices,
)
from secant.numeric.ball import lower, upper, working_precision
from secant.sensitivity.bounds import GlobalBound, SmoothBound

ONE = GlobalBound(Fraction(1), "l2")


def exact_delta(multiplier: float, epsilon: float) -> mpmath.mpf:
    """The hockey stick of two shifted normals, by integration of the positive part."""
    with mpmath.workdps(40):
        s, e = mpmath.mpf(multiplier), mpmath.mpf(epsilon)
        start = mpmath.mpf(1) / 2 - e * s * s  # where the log ratio equals ε; positive part below

        def part(x: mpmath.mpf) -> mpmath.mpf:
            return mpmath.npdf(x, 0, s) - mpmath.exp(e) * mpmath.npdf(x, 1, s)

        return mpmath.quad(part, [start - 40 * s, start - 5 * s, start - s, start])


@pytest.mark.parametrize("epsilon", [0.01, 0.3, 1, 5, 20])
@pytest.mark.parametrize("delta", [1e-2, 1e-5, 1e-9])
def test_the_multiplier_is_enough_and_least(epsilon: float, delta: float) -> None:
    multiplier = least_multiplier(Fraction(epsilon), Fraction(delta))
    assert exact_delta(float(multiplier), epsilon) <= delta * (1 + 1e-7)
    assert exact_delta(float(multiplier) * (1 - 1e-6), epsilon) > delta


@pytest.mark.parametrize(
    ("epsilon", "delta"), [(1e-12, 1e-150), (1e6, 1e-9), (0.5, 0.9), (1e-12, 0.999)]
)
def test_extreme_parameters_end(epsilon: float, delta: float) -> None:
    multiplier = least_multiplier(Fraction(epsilon), Fraction(delta))
    assert suffices(multiplier, Fraction(epsilon), Fraction(delta))
    assert not suffices(multiplier * Fraction(999, 1000), Fraction(epsilon), Fraction(delta))


def test_the_classical_formula() -> None:
    noise = ClassicalGaussianNoise().calibrate(ONE, epsilon=0.5, delta=1e-5, grid=1)
    assert float(noise.sigma) == pytest.approx(math.sqrt(2 * math.log(1.25e5)) / 0.5, rel=1e-12)
    analytic = GaussianNoise().calibrate(ONE, epsilon=0.5, delta=1e-5, grid=1)
    assert analytic.sigma < noise.sigma
    late = ClassicalGaussianNoise().calibrate(ONE, epsilon=0.99, delta=1e-5, grid=1)
    assert suffices(late.sigma, Fraction(99, 100), Fraction(1, 10**5))
    assert not suffices(late.sigma / 2, Fraction(99, 100), Fraction(1, 10**5))


@pytest.mark.parametrize(("epsilon", "delta"), [(1, 1e-5), (9, 1e-5), (20, 1e-5), (6, 0.1)])
def test_the_classical_formula_is_refused_where_it_is_not_valid(
    epsilon: float, delta: float
) -> None:
    with pytest.raises(Refused) as caught:
        ClassicalGaussianNoise().calibrate(ONE, epsilon=epsilon, delta=delta, grid=1)
    assert caught.value.code == "REF-101"


def test_the_classical_formula_would_break_privacy_at_epsilon_9() -> None:
    multiplier = Fraction(math.sqrt(2 * math.log(1.25e5)) / 9)
    assert not suffices(multiplier, Fraction(9), Fraction(1, 10**5))


@pytest.mark.parametrize(
    "mechanism", [GaussianNoise(), ClassicalGaussianNoise(), DiscreteGaussianNoise()]
)
def test_what_is_not_admitted(mechanism: GaussianNoise) -> None:
    assert mechanism.admits(GlobalBound(Fraction(1), "l1"))
    for bound in (GlobalBound(Fraction(1), "linf"), SmoothBound(Fraction(1), 0)):
        assert not mechanism.admits(bound)
        with pytest.raises(UsageError):
            mechanism.calibrate(bound, epsilon=0.5, delta=1e-5, grid=1)  # type: ignore[arg-type]
    with pytest.raises(Refused) as caught:
        mechanism.calibrate(ONE, epsilon=0.5, delta=0, grid=1)
    assert caught.value.code == "REF-103"


@pytest.mark.parametrize("mechanism", [GaussianNoise(), DiscreteGaussianNoise()])
def test_a_global_zero_is_noiseless(mechanism: GaussianNoise) -> None:
    noise = mechanism.calibrate(GlobalBound(Fraction(0), "l2"), epsilon=1, delta=1e-6, grid=1)
    assert noise.noiseless
    assert noise.draw_many([4, 5]) == [4, 5]


# --- whole numbers


@pytest.mark.parametrize("variance", [Fraction(1, 7), Fraction(1), Fraction(50, 3)])
def test_the_coin_turns_the_proposal_into_the_target(
    variance: Fraction, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Proposal weight times coin is exp(-z²/2v) times a constant, as an identity of exponents."""
    proposals, asked, scales = list(range(-6, 7)), [], []

    def propose(count: int, *, scale: Fraction) -> list[int]:
        scales.append(scale)
        return proposals

    monkeypatch.setattr(whole, "discrete_laplace_noise", propose)
    monkeypatch.setattr(whole, "flip_exponential", lambda x: asked.append(x) or True)
    assert discrete_gaussian_noise(len(proposals), variance=variance) == proposals
    total = [abs(z) / scales[0] + x for z, x in zip(proposals, asked, strict=True)]
    constants = {
        t - Fraction(z * z) / (2 * variance) for z, t in zip(proposals, total, strict=True)
    }
    assert len(constants) == 1
    assert all(exponent >= 0 for exponent in asked)


@pytest.mark.parametrize("variance", [Fraction(1, 4), Fraction(1), Fraction(30)])
@pytest.mark.parametrize("start", [-3, 0, 1, 4])
def test_the_tail_is_the_sum_of_its_terms(variance: Fraction, start: int) -> None:
    with mpmath.workdps(40):
        v = mpmath.mpf(variance.numerator) / variance.denominator
        terms = {n: mpmath.exp(-mpmath.mpf(n * n) / (2 * v)) for n in range(-300, 301)}
        truth = sum(t for n, t in terms.items() if n >= start) / sum(terms.values())
        with working_precision(128):
            tail = discrete_gaussian_tail(variance, start)
        middle = (lower(tail) + upper(tail)) / 2
        assert abs(mpmath.mpf(middle.numerator) / middle.denominator - truth) < 1e-25


@pytest.mark.parametrize(("epsilon", "delta"), [(1, 1e-6), (0.2, 1e-4), (5, 1e-6)])
@pytest.mark.parametrize("steps", [1, 3])
def test_the_discrete_variance_is_enough_by_brute_force(
    epsilon: float, delta: float, steps: int
) -> None:
    noise = DiscreteGaussianNoise().calibrate(
        GlobalBound(Fraction(steps), "l2"), epsilon=epsilon, delta=delta, grid=1
    )
    v = float(noise.variance)
    reach = int(40 * math.sqrt(v)) + 20
    with mpmath.workdps(30):
        p = {n: mpmath.exp(-mpmath.mpf(n * n) / (2 * v)) for n in range(-reach, reach + steps + 1)}
        total = sum(p.values())
        for move in range(1, steps + 1):
            gap = sum(
                max(p[n] - mpmath.exp(epsilon) * p.get(n - move, 0), 0)
                for n in range(-reach + steps, reach)
            ) / total  # fmt: skip
            assert gap <= delta * (1 + 1e-9)
    if steps == 1:  # term by term: close to the continuous optimum, and nearly least
        with working_precision(128):
            slightly_less = discrete_gaussian_delta(
                noise.variance * Fraction(98, 100), Fraction(epsilon)
            )
        assert upper(slightly_less) > Fraction(delta)


def test_the_renyi_route_is_a_little_above_the_analytic_curve() -> None:
    noise = DiscreteGaussianNoise().calibrate(
        GlobalBound(Fraction(10**6), "l2"), epsilon=1, delta=1e-6, grid=1
    )
    ratio = (
        math.sqrt(float(noise.variance))
        / 1e6
        / float(least_multiplier(Fraction(1), Fraction(1, 10**6)))
    )
    assert 1 < ratio < 1.1


def test_the_conversion_formula_bounds_the_exact_normal_delta() -> None:
    for order in (Fraction(3, 2), Fraction(3), Fraction(10), Fraction(40)):
        with working_precision(128):
            bound = float(upper(renyi_delta(Fraction(1, 2 * 16), Fraction(1), order)))
        assert bound >= float(exact_delta(4.0, 1.0))


def test_the_error_of_whole_noise_holds() -> None:
    noise = DiscreteGaussianNoise().calibrate(ONE, epsilon=1, delta=1e-6, grid=1)
    for level in (0.5, 0.95, 0.999):
        t = int(noise.error(level))
        with working_precision(128):
            miss = 2 * upper(discrete_gaussian_tail(noise.variance, t + 1))
        assert miss <= 1 - Fraction(level)


def test_normal_noise_without_a_delta_is_refused_at_once():
    with pytest.raises(UsageError, match="positive delta"):
        least_multiplier(Fraction(1), Fraction(0))
