"""What floats leave open is settled exactly: every fallback, forced, agrees with exact arithmetic."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import pytest

from secant.noise.mechanisms import geometric, laplace
from secant.noise.mechanisms.geometric import shape_of
from secant.noise.mechanisms.laws import CauchyLaw, OptimalLaw
from secant.noise.mechanisms.randomness import LazyUniform, word
from secant.noise.mechanisms.selection import pick_exponential
from secant.numeric.ball import ball, interval, lower, upper, working_precision


def test_blocks_that_floats_leave_open_come_out_the_same() -> None:
    shape = shape_of(Fraction(50, 7))
    unsure = replace(shape, low=shape.low * 0.9, high=shape.high * 1.1)
    heads = [word() >> 11 for _ in range(400)]
    settled = [geometric.blocks_of(unsure, head) for head in heads]
    assert settled == [geometric.blocks_of(shape, head) for head in heads]
    assert max(settled) > 10  # the draws are spread out, so that the guard did leave some open


def test_a_uniform_of_which_nothing_is_known_yet() -> None:
    """A head of zero: the logarithm is unbounded until further bits are drawn."""
    shape = shape_of(Fraction(1))
    assert geometric.blocks_of(shape, 0) >= 36  # U < 2^-53


def test_edges_that_floats_leave_open_come_out_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    shape = shape_of(Fraction(5, 3))
    edges = [(n, 64) for n in range(1, 65)] * 4
    fresh = [word() for _ in edges]

    def passed() -> list[bool]:
        left = iter(fresh)
        monkeypatch.setattr(laplace, "word", lambda: next(left))
        return [laplace._pass_edge(shape, 3 / 5, *edge) for edge in edges]

    quick = passed()
    monkeypatch.setattr(laplace, "GUARD", 0.2)
    assert passed() == quick
    monkeypatch.setattr(laplace, "_STEEP", 1.0)  # a rate that floats cannot hold: all is exact
    assert passed() == quick


def test_the_optimal_tail_across_its_joint() -> None:
    law = OptimalLaw(Fraction(10))
    with working_precision(100):
        across = law.survival(interval(Fraction(9, 10), Fraction(11, 10)), 100)
        for v in (Fraction(9, 10), Fraction(1), Fraction(11, 10)):
            point = law.survival(ball(v), 100)
            assert lower(across) <= lower(point) <= upper(point) <= upper(across)


@pytest.mark.parametrize("law", [CauchyLaw(Fraction(2)), CauchyLaw(Fraction(101, 100))])
@pytest.mark.parametrize("u", [1e-300, 1e-20, 0.5, 1 - 1e-16])
def test_guesses_are_finite_however_heavy_the_tail(law: CauchyLaw, u: float) -> None:
    assert 0 <= law.quantile(u) <= 1e300


def test_the_plain_cauchy_tail_is_the_general_one() -> None:
    plain, general = CauchyLaw(Fraction(2)), CauchyLaw(Fraction(2) + Fraction(1, 10**25))
    for v in (Fraction(1, 100), Fraction(1), Fraction(50)):
        with working_precision(160):
            one, two = plain.survival(ball(v), 160), general.survival(ball(v), 160)
        assert abs(float((lower(one) - lower(two)) / lower(one))) < 1e-20


def test_a_choice_next_to_the_end_of_the_uniform(monkeypatch: pytest.MonkeyPatch) -> None:
    """All known bits are ones: the first attempt cannot tell, further bits do."""
    asked: list[int] = []

    class Stubborn(LazyUniform):
        def enclosure(self, precision: int) -> object:
            asked.append(precision)
            if len(asked) == 1:
                return interval(0, 1)
            return ball(Fraction(99, 100))

    monkeypatch.setattr("secant.noise.mechanisms.selection.LazyUniform", Stubborn)
    assert pick_exponential([1, 1], [Fraction(0), Fraction(0)]) == 1
    assert asked == [64, 128]
