"""What is promised: for other distributions, for several releases, and how charts are drawn."""

import math
import xml.etree.ElementTree as Tree
from fractions import Fraction

import numpy as np
import pytest

from secant.blackbox import design, shifted_gamma, together
from secant.blackbox.guarantee import promise
from secant.display.curves import Line, chart
from secant.errors import UsageError


def made(epsilon=1, delta=0, estimate="a", name="P", n=10, **options):
    chosen = design(**{"gamma": 0.1, **options})
    return promise(
        Fraction(epsilon), Fraction(delta), chosen, distribution=name, n=n, estimate=estimate
    )


def test_the_shift_is_that_of_the_proof_not_of_the_print():
    assert float(shifted_gamma(0, 100, 1e-4)) == pytest.approx(math.sqrt(101e-4 / 2), rel=1e-12)
    assert float(shifted_gamma(0.05, 100, 1e-4)) == pytest.approx(0.05 + 0.0710634, abs=1e-6)
    assert shifted_gamma(0.05, 100, 0) == Fraction(1, 20)


def test_the_shift_covers_two_normal_laws_and_the_printed_one_does_not():
    # P = N(0,1), Q = N(h,1): the worst event for one record and n = 1 is a half line of two records
    h = 0.05
    tau = h**2 / 2
    moved = math.erf(math.sqrt(2) * h / 2 / math.sqrt(2))  # total variation of the two pairs
    printed = math.sqrt(2 * tau) / 2
    assert moved <= float(shifted_gamma(0, 1, tau))
    assert moved > printed


def test_a_large_shift_leaves_less_than_one():
    far = float(shifted_gamma(0, 9, 0.3))
    assert far == pytest.approx(math.sqrt(1 - math.exp(-3)), rel=1e-12)
    with pytest.raises(UsageError, match="nothing is left"):
        shifted_gamma(0.5, 9, 0.3)


@pytest.mark.parametrize(
    "slip", [(1, 9, 0), (-0.1, 9, 0), (0.1, 0, 0.1), (0.1, 9, -1), (0.1, 9, math.nan)]
)
def test_slips_of_a_shift(slip):
    with pytest.raises(UsageError):
        shifted_gamma(*slip)


def test_a_shifted_promise_names_the_other_distribution():
    moved = made().under_shift(1e-4, "Q")
    assert moved.gamma == shifted_gamma(0.1, 10, 1e-4)
    assert "'Q'" in str(moved)
    assert "KL(P ‖ Q)" in moved.to_dict()["assumptions"][-1]


def test_several_releases():
    both = together(made(1, "1/1000", "a"), made(2, "1/1000", "b"), made(3, 0, "b"))
    assert (both.epsilon, both.delta, both.gamma) == (6, Fraction(1, 500), Fraction(1, 5))
    assert both.estimates == ("a", "b")
    assert "chosen before" in both.assumptions[-1]
    for others in (
        (),
        (made(), made(name="Q")),
        (made(), made(n=11)),
        (made(method="binomial", confidence=0.9),),
        tuple(made(estimate=str(i)) for i in range(10)),
        (made(delta="1/2"), made(delta="1/2")),
    ):
        with pytest.raises(UsageError):
            together(*others)


def test_a_confidence_is_told():
    text = str(made(method="binomial", confidence=0.99))
    assert "With confidence 0.99 over the sampler's own draws: for two databases" in text
    assert "confidence" not in str(made())


def test_a_chart_is_well_formed_whatever_the_labels():
    line = Line([(x / 10, math.exp(-x)) for x in range(1, 40)], "a < b & c")
    for log in (False, True):
        picture = chart(
            [line, Line([(1.0, 1.0), (2.0, 0.5)], "dashed", dashed=True)],
            title="<title>",
            x_label="x & y",
            y_label="y",
            log_x=log,
            log_y=log,
            marks=[(1.0, "here")],
        )
        root = Tree.fromstring(picture.svg)
        words = [element.text for element in root.iter() if element.tag.endswith("text")]
        assert {"<title>", "x & y", "a < b & c", "here"} <= set(words)
        assert len([e for e in root if e.tag.endswith("polyline")]) == 2


def test_points_lie_inside_the_frame():
    generator = np.random.default_rng(0)
    points = [(float(x), float(y)) for x, y in generator.normal(size=(5000, 2))]
    root = Tree.fromstring(chart([Line(points, "")], title="", x_label="", y_label="").svg)
    (curve,) = [e for e in root if e.tag.endswith("polyline")]
    places = [tuple(map(float, p.split(","))) for p in curve.get("points").split()]
    assert 1000 < len(places) <= 2600
    assert all(0 <= x <= 640 and 0 <= y <= 400 for x, y in places)


def test_a_single_point_and_equal_values_can_be_drawn():
    for log in (False, True):
        assert (
            "polyline"
            in chart(
                [Line([(1.0, 1.0)], "")], title="", x_label="", y_label="", log_x=log, log_y=log
            ).svg
        )


@pytest.mark.parametrize(
    ("points", "log"), [([], False), ([(0.0, math.nan)], False), ([(0.0, 1.0)], True)]
)
def test_charts_that_cannot_be_drawn(points, log):
    with pytest.raises(UsageError):
        chart([Line(points, "")], title="", x_label="", y_label="", log_x=log)
