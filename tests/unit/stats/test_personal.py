"""Releases in which everybody has their own ε: limits, the charge, bad input, and an audit of the careful."""

from __future__ import annotations

import importlib
import random
from fractions import Fraction

import numpy as np
import pytest

from chance import LONG, fresh_seed
from secant import stats
from secant.errors import UsageError
from secant.ledger.amounts import Budget
from secant.ledger.store import Ledger
from secant.policy.policy import Protection
from secant.stats.bounded import NAMES
from secant.stats.budget import Allowance
from secant.stats.preprocessing import layers

MODULE = importlib.import_module("secant.stats.preprocessing.personal")
OFFERS = ["0.25", 1]
EXTRA = {"quantile": {"q": 0.9}}


def exact(name: str, people: list[tuple[float, str]], monkeypatch) -> Fraction:
    """Give what the noise goes on, for a scale of 1/2."""
    seen: list[Fraction] = []

    def watch(terms, label, noise, answer, words, **rest):
        seen.append(answer())
        assert noise.scale == Fraction(1, 2)

    with monkeypatch.context() as patch:
        patch.setattr(MODULE, "plain_release", watch)
        stats.personal(
            name, [value for value, _ in people], epsilons=[own for _, own in people],
            offers=OFFERS, scale="0.5", **EXTRA.get(name, {}),
        )  # fmt: skip
    return seen[0]


def overstepped(name: str, monkeypatch, tries: int) -> int:
    source = random.Random(f"{fresh_seed()} {name}")
    wrong = 0
    for _ in range(tries):
        people = [
            (source.choice([-9.0, 0.0, 3.0, source.gauss(0, 5)]), source.choice(["0.25", "1"]))
            for _ in range(source.randint(1, 8))
        ]
        whole = exact(name, people, monkeypatch)
        for gone, (_, own) in enumerate(people):
            rest = people[:gone] + people[gone + 1 :]
            wrong += abs(whole - exact(name, rest, monkeypatch)) > Fraction(own) / 2
    return wrong


@pytest.mark.parametrize("name", NAMES)
def test_everybody_moves_the_statistic_by_their_epsilon_times_the_scale(name, monkeypatch):
    assert overstepped(name, monkeypatch, 2000 if LONG else 25) == 0


def test_one_limit_for_everybody_is_seen(monkeypatch):
    def careless(declared):
        return [(max(declared), Fraction(0)), (min(declared), Fraction(1))]

    monkeypatch.setattr(layers, "shares_of", careless)
    assert overstepped("mean", monkeypatch, 25) > 0


def test_the_careful_are_hidden_by_their_own_epsilon():
    """The chance that the release passes a point differs by no more than e^(1/4), by the law of the noise."""
    found = stats.personal("mean", [], epsilons=[], offers=OFFERS, scale=2)
    reach = found.curve.reach / -np.log(0.05)  # the scale, read from the picture
    assert reach == pytest.approx(2)
    assert found.guarantee.epsilon == 1


def test_it_is_near_the_truth_and_charged_the_largest(tmp_path):
    source = np.random.default_rng(2)
    values = source.normal(40, 5, 3000)
    own = source.choice([0.25, 1.0], 3000)
    people = Protection("people", "rows", Fraction(2), replace=False)
    with Ledger.open(tmp_path / "ledger", {"people": Budget.of(2)}) as ledger:
        budget = Allowance(people, lambda: ledger)
        found = stats.personal(
            "mean", values, epsilons=own, offers=OFFERS, scale="0.05", empty=30, budget=budget
        )
        assert ledger.balances()["people"].spent.epsilon == 10**9
        assert (
            abs(found.value - values.mean()) < 3
        )  # 50 times the scale, and the layers differ by little
        assert "own epsilon" in str(found)
        stats.personal("mean", [1.0], epsilons=[0.5], offers=OFFERS, scale=1, budget=budget)
        assert ledger.balances()["people"].spent.epsilon == 2 * 10**9
        replaced = Allowance(
            Protection("people", "rows", Fraction(2), replace=True), lambda: ledger
        )
        with pytest.raises(UsageError):
            stats.personal("mean", [], epsilons=[], offers=OFFERS, scale=1, budget=replaced)


@pytest.mark.parametrize(
    "wrong",
    [
        {"statistic": "mode"},
        {"offers": []},
        {"offers": "1"},
        {"offers": [0]},
        {"offers": [-1]},
        {"scale": 0},
        {"scale": None},
        {"empty": "x"},
        {"q": 0.5},
        {"statistic": "variance", "empty": 1},
        {"epsilons": [1, 1]},
        {"epsilons": np.array(["many"])},
    ],
    ids=str,
)
def test_bad_input_is_refused(wrong):
    given = {"statistic": "mean", "epsilons": [1], "offers": OFFERS, "scale": 1, **wrong}
    with pytest.raises(UsageError):
        stats.personal(given.pop("statistic"), [3.0], **given)
