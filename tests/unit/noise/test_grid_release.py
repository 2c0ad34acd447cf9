"""Every real-valued law lands in its cells with exactly its probability."""

from __future__ import annotations

from fractions import Fraction

import mpmath
import pytest
from flint import fmpq

from secant.noise.mechanisms import grid
from secant.noise.mechanisms.grid import Law, cell_of, draw_cell
from secant.noise.mechanisms.laws import (
    CauchyLaw,
    GaussianLaw,
    LaplaceLaw,
    OptimalLaw,
    reach,
)
from secant.noise.mechanisms.randomness import LazyUniform, word
from secant.numeric.ball import ball, lower, upper, working_precision

LAWS = [
    LaplaceLaw(),
    GaussianLaw(),
    OptimalLaw(Fraction(1)),
    OptimalLaw(Fraction(3, 2)),
    OptimalLaw(Fraction(10)),
    CauchyLaw(Fraction(4)),
    CauchyLaw(Fraction(5, 4)),
]
BITS = 160


def density(law: Law) -> object:
    """The density of |V| from its definition, up to a constant."""
    if isinstance(law, LaplaceLaw):
        return lambda v: mpmath.exp(-v)
    if isinstance(law, GaussianLaw):
        return lambda v: mpmath.exp(-v * v / 2)
    if isinstance(law, OptimalLaw):
        k = mpmath.mpf(law.k.numerator) / law.k.denominator
        joint = (1 - 1 / k) ** (k - 1) * (1 + 1 / k) ** (k + 1) if k > 1 else mpmath.mpf(4)
        return lambda v: (
            ((1 - v / k) ** (k - 1) if k > 1 else mpmath.mpf(1))
            if v < 1
            else joint * (1 + v / k) ** (-(k + 1))
        )
    gamma = mpmath.mpf(law.gamma.numerator) / law.gamma.denominator
    return lambda v: 1 / (1 + v**gamma)


def tail(law: Law, v: mpmath.mpf) -> mpmath.mpf:
    """P(|V| > v) by integrating the density: knows nothing of the closed forms."""
    f = density(law)
    # v = t/(1-t) maps to a bounded interval; heavy tails become integrable powers at t = 1
    g = lambda t: f(t / (1 - t)) / (1 - t) ** 2  # noqa: E731
    knots = [mpmath.mpf(0), mpmath.mpf(1) / 2, mpmath.mpf(9) / 10, mpmath.mpf(1)]
    start = v / (1 + v)
    inner = [start, *(knot for knot in knots if knot > start)]
    return mpmath.quad(g, inner, maxdegree=10) / mpmath.quad(g, knots, maxdegree=10)


@pytest.mark.parametrize("law", LAWS, ids=repr)
@pytest.mark.parametrize("v", [Fraction(1, 100), Fraction(1), Fraction(5)])
def test_the_tail_is_the_integral_of_the_density(law: Law, v: Fraction) -> None:
    with mpmath.workdps(30):
        truth = tail(law, mpmath.mpf(v.numerator) / v.denominator)
        with working_precision(128):
            value = law.survival(ball(v), 128)
        middle = (lower(value) + upper(value)) / 2
        slow = isinstance(law, CauchyLaw)  # heavy tails limit the quadrature
        assert abs(mpmath.mpf(middle.numerator) / middle.denominator - truth) < (
            1e-8 if slow else 1e-15
        )


@pytest.mark.parametrize("law", LAWS, ids=repr)
@pytest.mark.parametrize("offset", [Fraction(0), Fraction(1, 3), Fraction(-7, 4)])
@pytest.mark.parametrize("scale", [Fraction(1, 2), Fraction(3)])
def test_each_cell_owns_exactly_its_share_of_the_uniform(
    law: Law, offset: Fraction, scale: Fraction
) -> None:
    """Bisection for the uniform at which the cell changes finds the tail at the cell's edge."""
    first = (offset + Fraction(1, 2)).__floor__()
    for cell in range(first, first + 3):
        low, high = 1, (1 << BITS) - 2  # a large uniform means a near cell
        while high - low > 1:
            middle = (low + high) // 2
            uniform = LazyUniform(middle, BITS)
            found = cell_of(
                law,
                fmpq(offset.numerator, offset.denominator),
                fmpq(scale.numerator, scale.denominator),
                uniform,
            )
            low, high = (low, middle) if found <= cell else (middle, high)
        edge = (cell + Fraction(1, 2) - offset) / scale
        with working_precision(400):
            share = law.survival(ball(edge), 400)
        assert lower(share) * (1 << BITS) - 2 <= low <= upper(share) * (1 << BITS) + 2


@pytest.mark.parametrize("law", LAWS, ids=repr)
def test_a_bad_guess_costs_time_and_changes_nothing(
    law: Law, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = 900  # bits: enough for every law here, so that no fresh bit is drawn
    numerators = [1 << 890, 1 << 898, (1 << 899) + 12345, 3 << 840]
    arguments = (fmpq(1, 3), fmpq(1000))
    honest = [cell_of(law, *arguments, LazyUniform(n, known)) for n in numerators]
    monkeypatch.setattr(type(law), "sharp", False)
    for guess in (0.0, 1e9):
        monkeypatch.setattr(type(law), "quantile", lambda self, u, guess=guess: guess)
        assert [cell_of(law, *arguments, LazyUniform(n, known)) for n in numerators] == honest


@pytest.mark.parametrize("law", LAWS[:6], ids=repr)
@pytest.mark.parametrize("scale", [Fraction(1, 10**9), Fraction(10**40), Fraction(1, 10**400)])
def test_scales_far_from_the_grid(law: Law, scale: Fraction) -> None:
    drawn = draw_cell(law, fmpq(1, 3), fmpq(scale.numerator, scale.denominator))
    assert type(drawn) is int


@pytest.mark.parametrize("law", LAWS, ids=repr)
@pytest.mark.parametrize("level", [Fraction(1, 100), Fraction(1, 2), Fraction(95, 100)])
def test_reach_is_enough_and_tight(law: Law, level: Fraction) -> None:
    v = reach(law, level)
    with working_precision(200):
        assert upper(law.survival(ball(v), 200)) <= 1 - level
        assert lower(law.survival(ball(v * Fraction(999, 1000)), 200)) > 1 - level


@pytest.mark.parametrize(
    "law",
    [LaplaceLaw(), *(OptimalLaw(Fraction(k)) for k in (1, "1.0001", "1.5", 10, 40, 10**6, 10**12))],
    ids=repr,
)
def test_floats_agree_with_exact_arithmetic_on_the_same_bits(
    law: Law, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The quick way and the exact way, for uniforms all over the place and next to every edge."""
    offset, scale = fmpq(10**15 + 1, 3), fmpq(700, 3)
    numerators = [word() >> 1 for _ in range(300)]
    with working_precision(256):
        for cell in range(1, 1500, 50):  # heads whose |V| lies at an edge, give or take a unit
            edge = ball(Fraction(2 * cell + 1, 2) * Fraction(3, 700))
            head = int(lower(law.survival(edge, 256)) * 2**63)
            numerators += [head - 1, head, head + 1]
        joint = int(lower(law.survival(ball(Fraction(1)), 256)) * 2**63)
    numerators += [joint + step for step in (-4096, -1, 0, 1, 4096)]
    numerators += [2**47 + 1, 2**48, 2**63 - 1, 2**63 - 2]
    numerators = [n for n in numerators if 0 < n < 2**63]
    quick = [cell_of(law, offset, scale, LazyUniform(n << 400, 463)) for n in numerators]
    used = [grid._by_float(offset, scale, law.quantile((n + 0.5) / 2**63)) for n in numerators]
    monkeypatch.setattr(grid, "_by_float", lambda *_: None)
    exact = [cell_of(law, offset, scale, LazyUniform(n << 400, 463)) for n in numerators]
    assert quick == exact
    assert sum(cell is not None for cell in used) > 300  # the quick way was taken


@pytest.mark.parametrize(
    "law",
    [LaplaceLaw(), *(OptimalLaw(Fraction(k)) for k in (1, "1.0001", "1.5", 10, 10**6))],
    ids=repr,
)
def test_the_sharp_quantiles_are_sharp(law: Law) -> None:
    """Claimed: within 2^-44 (1 + v) above u = 2^-16, for every real that starts with the bits."""
    for u in [2.0**-16 * 1.01, 1e-3, 0.1, 0.3, 0.5, 0.6, 0.66, 0.67, 0.7, 0.9, 0.999, 1 - 2.0**-50]:
        v = Fraction(law.quantile(u))
        analysis = Fraction(1, 2**44) * (1 + v)
        low, high = Fraction(u) * (1 - Fraction(1, 2**47)), Fraction(u) * (1 + Fraction(1, 2**47))
        with working_precision(256):
            assert v <= analysis or lower(law.survival(ball(v - analysis), 256)) >= min(high, 1)
            assert upper(law.survival(ball(v + analysis), 256)) <= low
