"""The law of least noise in floats is the one that `OptimalLaw` encloses and draws from."""

from fractions import Fraction

import pytest

from secant.noise.mechanisms.laws import OptimalLaw
from secant.numeric import optimal_law
from secant.numeric.ball import ball, working_precision

ORDERS = ["1", "1.5", "2", "5", "20", "400"]
PLACES = ["0", "0.001", "0.5", "0.999", "1", "1.5", "7", "100"]


@pytest.mark.parametrize("order", ORDERS)
def test_tail_and_quantile_are_those_of_the_enclosed_law(order):
    k = Fraction(order)
    with working_precision(128):
        for place in PLACES:
            exact = OptimalLaw(k).survival(ball(Fraction(place)), 128)
            found = optimal_law.tail(float(k), float(place))
            assert found == pytest.approx(float(exact.mid()), rel=1e-11)
            if found > 1e-12:
                assert optimal_law.quantile(float(k), found) == pytest.approx(
                    float(place), rel=1e-8, abs=1e-8
                )


@pytest.mark.parametrize("order", [2.0, 3.5, 20.0])
def test_density_and_mean_belong_to_the_tail(order):
    step = 1e-5
    for place in (0.2, 0.8, 1.3, 6.0):
        fall = optimal_law.tail(order, place - step) - optimal_law.tail(order, place + step)
        assert 2 * optimal_law.density(order, place) == pytest.approx(fall / (2 * step), rel=1e-6)
    # E|V| is the integral of the tail; on v = e^s it converges where the tail is a power of v
    width = 0.001
    spots = [2.718281828459045 ** (-20 + width * i) for i in range(40_000)]
    mean = sum(optimal_law.tail(order, v) * v * width for v in spots)
    assert optimal_law.mean(order) == pytest.approx(mean, rel=1e-3)
