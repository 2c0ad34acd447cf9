"""The choice of a mechanism sees public facts only, and says why; pictures and tables of results."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from fractions import Fraction

import numpy as np
import pytest

from secant import stats
from secant.errors import UsageError
from secant.noise.mechanisms.laws import OptimalLaw
from secant.numeric import optimal_law
from secant.stats.choice import decide_mechanism, examples
from secant.stats.mechanisms import magnitudes
from secant.stats.plot import Curve, draw
from secant.stats.quantiles import BENT_TOP, Bend, rank_choice

ONES, MANY = [1.0] * 50, np.linspace(0, 9, 50)


@pytest.mark.parametrize("n", [None, 50])
@pytest.mark.parametrize("epsilon", [0.01, 1, 50])
def test_the_choice_is_the_same_for_all_data(n, epsilon):
    for statistic in (stats.median, stats.maximum, stats.mean, stats.trimmed_mean, stats.variance):
        found = [
            statistic(values, epsilon=epsilon, bounds=(0, 9), n=n) for values in (ONES, MANY, [])
        ]
        assert len({(r.mechanism, r.why) for r in found}) == 1
        assert len({str(r.candidates) for r in found}) == 1


def test_the_chosen_way_is_near_the_best_on_every_example():
    for n, epsilon in ((1001, 0.1), (1001, 1), (100_000, 0.1), (100_000, 1)):
        for q in (0.25, 0.5, 0.75):
            found = stats.quantile([1.0], q, epsilon=epsilon, bounds=(0, 9), n=n)
            (own,) = [c for c in found.candidates if c.mechanism in found.mechanism]
            for shape, error in own.expected.items():
                assert error <= 1.3 * min(c.expected[shape] for c in found.candidates)


def test_the_comparison_is_printed_and_names_the_choice(capsys):
    stats.median(MANY, epsilon=1, bounds=(0, 9), n=50, compare=True)
    text = capsys.readouterr().out
    for word in ("exponential *", "smooth", "laplace", "preprocessing", "not looked at", "50 rows"):
        assert word in text
    stats.median(MANY, epsilon=1, bounds=(0, 9))
    assert capsys.readouterr().out == ""
    stats.median(MANY, epsilon=1, bounds=(0, 9), compare=True, mechanism="smooth")
    text = capsys.readouterr().out
    assert "smooth *" in text
    assert "preprocessing" not in text, "it needs a public number of rows"


def test_coarse_steps_are_drawn_by_permute_and_flip():
    found = stats.median([3] * 99, epsilon=1, bounds=(0, 9), step=1)
    assert found.mechanism == "permute-and-flip"
    assert abs(found.value - 3) <= 1
    with pytest.raises(UsageError):
        stats.median([3], epsilon=1, bounds=(0, 9), mechanism="permute-and-flip")


def test_nothing_to_choose_from():
    with pytest.raises(UsageError):
        decide_mechanism([], "smooth", size=None, top=9, measure=False)


def test_examples_lie_on_the_scale():
    for name, values in examples(None, 1 << 30).items():
        assert len(values) == 1000, name
        assert values.min() >= 0
        assert values.max() <= 1 << 30
        assert (np.diff(values) >= 0).all()
    assert all(len(values) == 0 for values in examples(0, 10).values())


def test_a_bent_scale_leads_back():
    top = 1 << 30
    steps = np.array([0, 1, 1000, 1 << 20, 1 << 29, top])
    for mirrored in (False, True):
        bend = Bend(top, mirrored)
        places = bend.bent(steps)
        assert (np.diff(places) >= 0).all()
        assert np.allclose(bend.straight(places.astype(float)), steps, atol=2)
    assert Bend(top, False).bent(np.array([top]))[0] == BENT_TOP


def test_expected_errors_are_those_of_draws():
    """Mean of 600 draws against the formula: off by a third only with probability far below 1e-9."""
    values = np.arange(0, 1 << 30, 1 << 20)
    for q in (Fraction(1, 2), Fraction(0)):
        ranks = rank_choice(q, top=1 << 30, epsilon=Fraction(1), neighbors="add-remove")
        truth = float(values[max(0, int(q * len(values)) - 1)])
        points, weights = ranks.spread(values)
        formula = float((np.abs(points - truth) * weights).sum())
        drawn = [abs(float(ranks.draw(values)) - truth) for _ in range(600)]
        assert abs(np.mean(drawn) - formula) < 0.35 * formula


def test_the_optimal_density_is_that_of_its_law():
    law = OptimalLaw(Fraction(5))
    sizes = np.linspace(0, 400, 400_001)
    density = np.array([2 * optimal_law.density(5.0, v) for v in sizes[::40]])
    total = float(density.sum() * (sizes[40] - sizes[0]) - density[0] * (sizes[40] - sizes[0]) / 2)
    assert total == pytest.approx(1, abs=1e-3)
    assert np.median(magnitudes(law)) == pytest.approx(law.quantile(0.5), rel=1e-2)


@pytest.mark.parametrize(
    "release",
    [
        lambda: stats.median(MANY, epsilon=1, bounds=(0, 9)),
        lambda: stats.minimum(MANY, epsilon=1, bounds=(0, 9)),
        lambda: stats.mean(MANY, epsilon=1, bounds=(0, 9)),
        lambda: stats.mean(MANY, epsilon=1, bounds=(0, 9), neighbors="replace"),
        lambda: stats.count(MANY, epsilon=1),
    ],
)
def test_a_result_draws_itself(release, tmp_path):
    figure = release().plot()
    root = ET.fromstring(figure._repr_svg_())
    assert root.tag.endswith("svg")
    lines = [e for e in root.iter() if e.tag.endswith(("polyline", "polygon"))]
    assert len(lines) == 2  # the density, and what is filled below it
    assert "nan" not in figure.svg
    assert figure.save(tmp_path / "noise.svg").read_text("utf-8") == figure.svg


def test_a_picture_without_noise_says_so_and_text_is_escaped():
    assert "no noise" in draw("<&>", None, level=0.95).svg
    ET.fromstring(draw("<&>", Curve("a < b", lambda t: 1.0, 2.0), level=0.9).svg)
    assert "&lt;&amp;&gt;" in draw("<&>", None, level=0.95).svg
