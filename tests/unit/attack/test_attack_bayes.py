"""The owner's simulation of an attacker who knows no row: its densities, its chances, and its name."""

import json
import math
from pathlib import Path

import duckdb
import numpy as np
import pytest

import secant
from secant.attack import normal, uniform, weights
from secant.attack.bayes import Blur, drawn_from, points_of, right_guesses, targets_of
from secant.cli import main
from secant.errors import UsageError

POLICY = """
[database]
source = "duckdb:sea.duckdb"
[tables.ships]
key = "id"
[tables.ships.columns]
x = { range = [0, 20], distribution = "uniform" }
[protections.places]
kind = "cells"
epsilon = 20
distance = { ships = "0.5*x" }
"""


@pytest.mark.parametrize(("wide", "scale"), [(1.0, 0.3), (0.5, 2.0), (5.0, 0.1), (0.0, 1.0)])
def test_the_blur_is_a_bell_met_by_the_noise(wide, scale):
    gaps = np.linspace(-20, 20, 4001)
    step = gaps[1] - gaps[0]
    laplace = np.exp(-np.abs(gaps) / scale)
    expected = laplace
    if wide:
        expected = np.convolve(laplace, np.exp(-(gaps**2) / (2 * wide**2)), "same") * step
    found = np.exp(Blur(wide, scale).log_density(gaps))
    inside = np.abs(gaps) < 8
    ratio = found[inside] / expected[inside]
    assert np.allclose(ratio, ratio[len(ratio) // 2], rtol=0.02)
    bell = np.exp(Blur(wide, scale, normal=True).log_density(gaps))
    assert bell == pytest.approx(np.exp(-(gaps**2) / (2 * (wide**2 + scale**2))))


def test_points_and_draws_follow_the_prior():
    values, shares = points_of(weights([1, 2, 5], [1, 2, 1]), 50)
    assert (values.tolist(), shares.tolist()) == ([1, 2, 5], [0.25, 0.5, 0.25])
    values, shares = points_of(normal(50, 10, 0, 100), 40)
    assert len(values) == 40
    assert values @ shares == pytest.approx(50, abs=0.1)
    drawn = drawn_from(uniform(0, 10, 1), np.random.default_rng(3), 1000)
    assert set(drawn) <= set(range(11))


def test_one_row_alone_is_told_by_its_noise_only():
    """Nobody else is in the data: the best answer of Laplace noise reaches what attack.peak says."""
    values = np.arange(5.0)
    shares = np.full(5, 0.2)
    targets = targets_of(values, 0.0, None)
    found = right_guesses(values, shares, np.array([0.0, 2.0]), Blur(0.0, 1.0), targets)
    kernel = [math.exp(-k) for k in range(5)]
    assert found[0] == pytest.approx(1 / sum(kernel))
    assert found[1] == pytest.approx(1 / (1 + 2 * kernel[1] + 2 * kernel[2]))
    fixed = targets_of(values, 1.0, 1.0)
    assert fixed.tolist() == [[1, 1, 1, 0, 0]]


@pytest.fixture
def sea(tmp_path: Path) -> Path:
    with duckdb.connect(str(tmp_path / "sea.duckdb")) as connection:
        connection.execute(
            "CREATE TABLE ships AS SELECT range AS id, range % 20 AS x FROM range(9)"
        )
    file = tmp_path / "policy.toml"
    file.write_text(POLICY)
    return file


def test_it_is_told_as_a_simulation_and_lies_below_the_bound(sea, capsys):
    words = ["inspect", "SELECT sum(x) AS n FROM ships", "-p", str(sea)]
    plot = sea.parent / "simulated.svg"
    assert main([*words, "--attacker", "ships.x within 2", "--plot", str(plot)]) == 0
    told = capsys.readouterr()
    assert "OWNER ONLY" in told.err
    assert "simulation, no guarantee" in told.out
    assert "no guarantee" in plot.read_text(encoding="utf-8")
    assert main([*words, "--attacker", "ships.x within 2", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["prior"] == pytest.approx(5 / 21)
    averages = [point["on_average"] for point in found["points"]]
    assert averages[0] == pytest.approx(found["prior"], abs=0.02)
    assert averages[-1] > averages[0]
    for point in found["points"]:
        # Whoever knows less guesses worse; a hundredth is what draws and normal rests may add.
        assert point["at_this_answer"] <= point["bounds"]["places"] + 0.01
        assert point["on_average"] <= point["bounds"]["places"] + 0.01
    with secant.connect(policy=sea) as db:
        assert db.budget["places"].spent_epsilon == 0  # nothing is charged


@pytest.mark.parametrize(
    ("sql", "attacker"),
    [
        ("SELECT avg(x) AS n FROM ships", "ships.x within 2"),
        ("SELECT count(*) AS n, sum(x) AS s FROM ships", "ships.x within 2"),
        ("SELECT sum(x) AS n FROM ships", "ships.x within 2 and ships.id exactly"),
        ("SELECT sum(x) AS n FROM ships", "ships member 10%"),
        ("SELECT sum(x) AS n FROM ships", "ships.x within 2 prior any"),
    ],
)
def test_what_cannot_be_simulated_says_so(sea, sql, attacker):
    with secant.connect(policy=sea) as db, pytest.raises(UsageError):
        db.simulate(sql, attacker)
    assert main(["inspect", sql, "-p", str(sea), "--attacker", attacker, "--curve"]) == 2
