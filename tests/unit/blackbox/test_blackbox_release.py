"""Algorithm 2: what is released, what it promises, what is refused, and when it is paid."""

import dataclasses
import json
import math
import xml.etree.ElementTree as Tree
from fractions import Fraction

import numpy as np
import pytest

from secant.blackbox import (
    ACCEPTED,
    exponential,
    release,
    resample,
    sample_sensitivity,
    together,
    uniform,
)
from secant.errors import BudgetError, Refused, UsageError
from secant.ledger import Budget, Ledger
from secant.noise.events import RandomEvent
from secant.noise.mechanisms.bernstein import BernsteinNoise
from secant.policy.policy import Protection
from secant.stats.budget import Allowance

DATA = np.random.default_rng(11).random(40)
TOUCHED = []


def mean(records):
    return records.mean()


def watched_mean(records):
    """Notes when it sees the protected data; every other database is sampled."""
    if records is DATA:
        TOUCHED.append(1)
    return records.mean()


def pair(records):
    return [records.mean(), records.std()]


def scores(records):
    return [-abs(records.mean() - at) for at in (0.0, 0.5, 1.0)]


def curve(records):
    return lambda point: float((records < point[0]).mean())


def quick(function=mean, sampler=None, **options):
    options = {"epsilon": 1, "gamma": 0.1, "workers": 0, **options}
    return release(function, DATA, sampler or uniform(), **options)


def test_a_number():
    found = quick(epsilon=50)
    assert isinstance(found.value, float)
    assert found.value == pytest.approx(DATA.mean(), abs=0.05)
    assert found.mechanism == "laplace"
    # Laplace: the error at level 0.95 is ln(20) scales
    scale = found.sensitivity.estimate / 50
    assert found.error == pytest.approx(math.log(20) * scale, rel=1e-4)
    assert found.cost.endswith("charged to nobody: no budget was named")
    assert found.release_id is None


def test_processes_release_the_same_kind_of_thing():
    found = quick(workers=2, epsilon=50)
    assert found.value == pytest.approx(DATA.mean(), abs=0.05)


def test_a_vector_with_normal_noise():
    found = quick(pair, mechanism="gaussian", delta=1e-6, epsilon=5)
    assert found.value.shape == (2,)
    assert found.value == pytest.approx(pair(DATA), abs=0.5)
    assert found.guarantee.delta == Fraction(1, 10**6)
    assert found.sensitivity.norm == "l2"


def test_a_matrix_keeps_its_shape():
    found = quick(lambda records: np.outer(pair(records), pair(records)), epsilon=100)
    assert found.value.shape == (2, 2)


@pytest.mark.parametrize("mechanism", ["exponential", "permute-and-flip"])
def test_a_choice(mechanism):
    found = quick(scores, mechanism=mechanism, epsilon=60, candidates=["low", "middle", "high"])
    assert found.value == "middle"
    assert quick(scores, mechanism=mechanism, epsilon=60).value == 1
    assert found.sensitivity.norm == "linf"
    assert found.error > 0


def test_a_function():
    found = quick(curve, mechanism=BernsteinNoise(1, 8, 2), epsilon=200)
    assert found.value((0.5,)) == pytest.approx((DATA < 0.5).mean(), abs=0.2)
    assert found.sensitivity.shape == (9,)
    mechanism = BernsteinNoise(2, 3, 1)
    flat = quick(
        lambda records: lambda point: records.mean() * point[0] + point[1], mechanism=mechanism
    )
    assert [tuple(map(float, point)) for point in flat.noise.points()] == list(
        flat.sensitivity.ruler.points
    )


def test_lattice_values_in_l1_need_less_noise_than_the_paper_takes():
    ours, seed = (
        quick(curve, mechanism="bernstein", norm=norm, generator=np.random.default_rng(2))
        for norm in (None, "linf")
    )
    assert seed.noise.noise.scale == pytest.approx(11 * seed.sensitivity.estimate, rel=1e-6)
    assert ours.noise.noise.scale < seed.noise.noise.scale
    assert ours.noise.noise.scale == pytest.approx(ours.sensitivity.estimate, rel=1e-6)


def test_a_bound_in_another_norm_is_converted():
    wide = quick(pair, norm="linf", generator=np.random.default_rng(2))
    tight = quick(pair, norm="l1", generator=np.random.default_rng(2))
    assert float(wide.noise.scale) == pytest.approx(2 * wide.sensitivity.estimate, rel=1e-6)
    assert float(tight.noise.scale) == pytest.approx(tight.sensitivity.estimate, rel=1e-6)


def test_a_mechanism_of_ones_own():
    def added(result, sensitivity, epsilon, delta):
        return result + sensitivity / epsilon

    found = quick(mechanism=added, norm="l1")
    assert found.value == pytest.approx(DATA.mean() + found.sensitivity.estimate)
    assert found.error is None
    assert found.noise is None
    assert any("of the caller's own" in line for line in found.guarantee.assumptions)
    assert "your own" in str(found)
    letters = release(
        frozenset,
        list("abca"),
        resample(list("abc"), name="letters"),
        epsilon=1,
        gamma=0.2,
        workers=0,
        norm=lambda a, b: len(a ^ b),
        least=1,
        mechanism=lambda result, sensitivity, epsilon, delta: (sorted(result), sensitivity),
    )
    assert letters.value[0] == ["a", "b", "c"]


def test_a_result_that_cannot_leave_its_process():
    options = {
        "mechanism": lambda *parts: parts[0],
        "norm": lambda a, b: 0.0,
        "workers": 1,
        "least": 1,
    }
    with pytest.raises(UsageError, match="failed on the protected data"):
        quick(lambda records: lambda: records.mean(), **options)
    assert quick(lambda records: {"mean": 1.0}, **options).value == {"mean": 1.0}


def test_a_mechanism_of_ones_own_that_fails(allowance):
    def failing(result, sensitivity, epsilon, delta):
        raise ValueError(f"result {result}")

    with pytest.raises(UsageError, match="failed on the protected data") as caught:
        quick(mechanism=failing, norm="l1", budget=allowance)
    assert caught.value.__cause__ is None
    assert spent(allowance) == 1


def test_an_estimate_is_used_again():
    estimate = sample_sensitivity(mean, uniform(), n=40, gamma=0.1, workers=0)
    first, second = (
        release(mean, DATA, estimate, epsilon=epsilon, workers=0) for epsilon in (1, 2)
    )
    assert first.sensitivity is second.sensitivity is estimate
    both = together(first.guarantee, second.guarantee)
    assert (both.epsilon, both.gamma) == (3, Fraction(1, 10))
    fresh = quick()
    assert together(first.guarantee, fresh.guarantee).gamma == Fraction(1, 5)


def test_an_estimate_for_something_else_is_refused():
    estimate = sample_sensitivity(mean, uniform(), n=41, gamma=0.1, workers=0)
    with pytest.raises(UsageError, match="another number of records"):
        release(mean, DATA, estimate, epsilon=1, workers=0)
    estimate = dataclasses.replace(estimate, n=40)
    with pytest.raises(UsageError, match="another function"):
        release(pair, DATA, estimate, epsilon=1, workers=0)
    with pytest.raises(UsageError, match="lattice"):
        release(mean, DATA, estimate, epsilon=1, workers=0, mechanism="bernstein")
    for twice in ({"gamma": 0.1}, {"m": 30}, {"norm": "l1"}, {"state": "x"}, {"confidence": 0.9}):
        with pytest.raises(UsageError, match="already"):
            release(mean, DATA, estimate, epsilon=1, workers=0, **twice)


def test_no_noise_is_no_release():
    def constant(records):
        return 3.0

    with pytest.raises(Refused, match="zero") as caught:
        quick(constant)
    assert "least=" in caught.value.hint
    found = quick(constant, least=0.5)
    assert float(found.noise.scale) == pytest.approx(0.5)


def test_a_floor_widens_and_never_narrows():
    narrow, wide = (
        quick(least=least, generator=np.random.default_rng(2)).noise.scale for least in (0, 7)
    )
    assert wide == 7
    assert quick(least="1e-9", generator=np.random.default_rng(2)).noise.scale == narrow


def test_a_grid_of_ones_own():
    found = quick(lambda records: int((records > 0.5).sum()), grid=1)
    assert found.value == int(found.value)


@pytest.mark.parametrize(
    "slip",
    [
        {"epsilon": 0},
        {"epsilon": math.nan},
        {"epsilon": -1},
        {"epsilon": "x"},
        {"gamma": 0},
        {"gamma": 1.5},
        {"gamma": None},
        {"gamma": 0.01, "m": 9},
        {"delta": -1},
        {"delta": 1e-6},
        {"mechanism": "cauchy"},
        {"mechanism": 3},
        {"mechanism": "gaussian", "delta": 1},
        {"mechanism": max},
        {"norm": "l9"},
        {"norm": lambda a, b: 1.0},
        {"least": -1},
        {"least": math.inf},
        {"grid": 0},
        {"level": 1},
        {"candidates": ["a"]},
        {"workers": -1},
        {"time_limit": -1},
        {"budget": 3},
    ],
)
def test_slips_are_found_before_the_data_are_touched(slip):
    TOUCHED.clear()
    with pytest.raises(UsageError):
        quick(watched_mean, **slip)
    assert TOUCHED == []


def test_normal_noise_without_delta_is_refused():
    with pytest.raises(Refused, match="delta"):
        quick(mechanism="gaussian")


def test_there_is_one_score_for_each_candidate():
    with pytest.raises(UsageError, match="one score"):
        quick(scores, mechanism="exponential", candidates=["a", "b"])


@pytest.mark.parametrize("data", [[], np.array([]), 7, "text", {"a": 1}])
def test_data_without_records(data):
    with pytest.raises(UsageError, match=r"record|rows"):
        release(mean, data, uniform(), epsilon=1, gamma=0.1, workers=0)


# ── the budget ────────────────────────────────────────────────────────────────────────────────


PEOPLE = Protection(
    "people", "rows", Fraction(3), tables=("people",), replace=True, gamma=Fraction(9, 10)
)


def filled(ledger):
    """Give what `db.protection("people")` gives."""
    return Allowance(PEOPLE, lambda: ledger, analyst="ada", accept=(ACCEPTED,))


@pytest.fixture
def allowance(tmp_path):
    with Ledger.open(tmp_path / "ledger", {"people": Budget.of(3, 0, "0.9")}) as ledger:
        yield filled(ledger)


def spent(allowance):
    return allowance.ledger().balances()["people"].spent.epsilon / 10**9


def test_a_release_is_charged_as_what_it_is(allowance):
    found = quick(budget=allowance)
    assert spent(allowance) == 1
    (kept,) = allowance.ledger().history()
    assert (kept.release_id, kept.analyst, kept.status) == (found.release_id, "ada", "answered")
    assert kept.charges[0].event == RandomEvent(1, 0, "0.1")
    assert "charged to people" in found.cost
    surer = quick(budget=allowance, method="binomial", confidence=0.99)
    assert allowance.ledger().history()[1].charges[0].event.gamma == surer.sensitivity.design.total


def test_a_budget_that_is_too_small_is_found_before_the_data(allowance):
    TOUCHED.clear()
    with pytest.raises(BudgetError):
        quick(watched_mean, budget=allowance, epsilon=4)
    assert TOUCHED == []
    assert spent(allowance) == 0
    quick(watched_mean, budget=allowance, epsilon=2)
    assert TOUCHED == [1]


def test_what_is_taken_on_trust_is_named(allowance):
    assert quick(budget=allowance).guarantee.assumptions[2:] == allowance.assumptions()
    other = dataclasses.replace(allowance, protection=dataclasses.replace(PEOPLE, replace=False))
    assert "public, also under protection 'people'" in quick(budget=other).guarantee.assumptions[-1]
    assert len(quick().guarantee.assumptions) == 2


def test_the_owner_must_have_accepted_it(allowance):
    with pytest.raises(Refused, match="weaker") as caught:
        quick(budget=dataclasses.replace(allowance, accept=()))
    assert ACCEPTED in caught.value.hint
    assert spent(allowance) == 0


@pytest.mark.parametrize("kind", ["cells", "rows+cells", "window"])
def test_a_protection_that_hides_no_whole_records_cannot_pay(allowance, kind):
    other = dataclasses.replace(allowance, protection=dataclasses.replace(PEOPLE, kind=kind))
    with pytest.raises(UsageError, match="the protection 'people' hides"):
        quick(budget=other)
    assert spent(allowance) == 0


def test_a_protection_with_tight_composition_refuses_what_it_cannot_add_up(tmp_path):
    with Ledger.open(tmp_path / "ledger", {"people": Budget.of(3, "1e-6")}) as ledger:
        with pytest.raises(BudgetError):
            quick(budget=filled(ledger))
        assert ledger.balances()["people"].spent.epsilon == 0


@pytest.mark.parametrize("slip", [{"gamma": 0}, {"mechanism": "gaussian"}, {"grid": 0}])
def test_nothing_is_spent_on_a_slip(allowance, slip):
    with pytest.raises((UsageError, Refused)):
        quick(budget=allowance, **slip)
    assert spent(allowance) == 0
    assert allowance.ledger().history() == []


def failing_on_the_data(how):
    def function(records):
        if records[0] == DATA[0]:
            if how == "raises":
                raise ValueError(f"record {records[0]}")
            return {"nan": math.nan, "shape": [1.0, 2.0], "text": "x"}[how]
        return records.mean()

    return function


@pytest.mark.parametrize("workers", [0, 1])
@pytest.mark.parametrize("how", ["raises", "nan", "shape", "text"])
def test_a_failure_on_the_data_says_only_that(allowance, how, workers):
    with pytest.raises(UsageError, match="failed on the protected data") as caught:
        quick(failing_on_the_data(how), budget=allowance, workers=workers)
    assert str(DATA[0]) not in caught.value.render()
    assert caught.value.__cause__ is None
    assert (
        caught.value.message
        == "the function failed on the protected data; what was charged stays charged"
    )
    assert spent(allowance) == 1
    assert allowance.ledger().history()[0].status == "failed"


# ── words and pictures ────────────────────────────────────────────────────────────────────────


def test_the_result_explains_itself():
    found = quick()
    text = str(found)
    for part in ("value", "error", "guarantee", "cost", "rests on", "uniform on [0, 1]"):
        assert part in text
    assert "(1, 0, 0.1)-random differential privacy" in text
    assert "not plain differential privacy" in text
    stripped = text.replace("random differential privacy", "").replace(
        "not plain differential privacy", ""
    )
    assert "differential" not in stripped
    plain = json.loads(json.dumps(found.to_dict()))
    assert plain["guarantee"]["kind"] == "random differential privacy"
    assert plain["value"] == found.value
    assert json.loads(json.dumps(quick(curve, mechanism="bernstein").to_dict()))["value"] is None


def test_the_result_does_not_hold_the_private_answer():
    found = quick(epsilon="0.001", sampler=exponential())
    exact = float(DATA.mean())
    assert repr(exact) not in repr(found) + str(found) + json.dumps(found.to_dict())


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"mechanism": "gaussian", "delta": 1e-6},
        {"function": scores, "mechanism": "exponential"},
        {"function": curve, "mechanism": "bernstein"},
        {"mechanism": lambda r, s, e, d: r, "norm": "l1"},
    ],
)
def test_every_result_plots_itself(options, tmp_path):
    found = quick(**options)
    for picture in (found.plot(), found.sensitivity.plot()):
        root = Tree.fromstring(picture._repr_svg_())
        assert root.tag.endswith("svg")
        assert any(child.tag.endswith("polyline") for child in root)
        assert picture.save(tmp_path / "x.svg").read_text() == picture.svg
