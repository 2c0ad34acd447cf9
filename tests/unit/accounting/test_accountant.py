"""The accountant picks the tightest valid theorem, names it, and says what a figure holds for."""

from __future__ import annotations

import builtins
import doctest
import re
import sys
from fractions import Fraction
from pathlib import Path
from types import ModuleType

import pytest

from secant import proofs
from secant.errors import BudgetError, UsageError
from secant.ledger.accounting import FILTERS, THEOREMS, Accountant, accountant, basic
from secant.ledger.accounting.dp_accounting_bridge import dp_accounting_epsilon
from secant.ledger.accounting.tally import tally
from secant.noise import events
from secant.noise.events import (
    ApproximateEvent,
    Composed,
    Event,
    GaussianEvent,
    LaplaceEvent,
    MetricEvent,
    PureEvent,
    RandomEvent,
    RenyiEvent,
    Repeated,
    ZCdpEvent,
)

BUDGET = {"epsilon_budget": 10, "delta_budget": "1e-6"}


@pytest.mark.parametrize(
    ("events", "theorem"),
    [
        ([PureEvent(1), PureEvent(2)], "accounting.renyi"),
        ([Repeated(PureEvent("0.1"), 100)], "accounting.optimal"),
        ([Repeated(LaplaceEvent("0.1"), 100)], "accounting.loss"),
        ([PureEvent(Fraction(n, 300)) for n in range(1, 60)], "accounting.loss"),
        ([Repeated(GaussianEvent(10), 10)], "accounting.gauss"),
        ([GaussianEvent(10), PureEvent("0.1")], "accounting.loss"),
        ([ZCdpEvent("0.01")], "accounting.zcdp"),
        ([ZCdpEvent("0.01"), PureEvent(1)], "accounting.renyi"),
        ([RenyiEvent([(8, "0.1"), (64, 1)])], "accounting.renyi"),
        ([], "accounting.basic"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_the_tightest_theorem_is_named(events: list[Event], theorem: str) -> None:
    total = Accountant().total(events, delta="1e-6", adaptive=False)
    assert total.theorem == theorem
    others = Accountant(
        theorems=(
            "accounting.advanced",
            "accounting.self_adaptive",
            "accounting.zcdp",
            "accounting.renyi",
        )
    )
    if events:
        rival = others.total(events, delta="1e-6", adaptive=False)
        assert total.epsilon <= rival.epsilon * (1 + Fraction(1, 10**4))


def test_figures_of_beyond() -> None:
    # BEYOND §8, k = 100, ε = 0.1, δ = 1e-6: self-adaptive, optimum, optimum for Laplace noise.
    def at(event: Event, *theorems: str) -> float:
        accountant = Accountant(theorems=theorems) if theorems else Accountant()
        return float(accountant.total([Repeated(event, 100)], delta="1e-6", adaptive=False).epsilon)

    assert at(PureEvent("0.1"), "accounting.self_adaptive") == pytest.approx(5.756, abs=1e-3)
    assert at(PureEvent("0.1")) == pytest.approx(4.775, abs=1e-3)
    assert at(LaplaceEvent("0.1")) == pytest.approx(4.693, abs=1e-3)


def test_without_delta_pure_releases_add() -> None:
    total = Accountant().total([PureEvent(1), LaplaceEvent(2)], delta=0, adaptive=False)
    assert (total.epsilon, total.delta, total.theorem) == (3, 0, "accounting.basic")
    own = [ApproximateEvent(1, "1e-6"), ApproximateEvent(2, "1e-6")]
    total = Accountant(theorems=("accounting.basic",)).total(own, delta="1e-5", adaptive=False)
    assert (total.epsilon, total.delta) == (3, Fraction(2, 10**6))
    # Independent failures: 1 - (1 - 1e-6)² is a little less than 2e-6.
    product = 1 - (1 - Fraction(1, 10**6)) ** 2 + Fraction(1, 10**30)
    total = Accountant(theorems=("accounting.basic",)).total(own, delta=product, adaptive=False)
    assert (total.epsilon, total.delta) == (3, product)


def test_fixed_and_adaptive_are_told_apart() -> None:
    history = [Repeated(PureEvent("0.1"), 100)]
    fixed = Accountant().total(history, delta="1e-6", adaptive=False)
    running = Accountant().total(history, delta="1e-6", adaptive=True)
    assert fixed.epsilon < running.epsilon
    assert not fixed.adaptive
    assert running.adaptive
    assert "fixed in advance (accounting.optimal)" in fixed.statement()
    assert "so far, parameters chosen adaptively (accounting.odometer)" in running.statement()
    with pytest.raises(TypeError):
        Accountant().total(history, delta="1e-6")  # type: ignore[call-arg]
    between = (fixed.epsilon + running.epsilon) / 2
    decide = Accountant().fits
    assert decide(history, [], epsilon_budget=between, delta_budget="1e-6", adaptive=False)
    loose = decide(
        history, [], epsilon_budget=fixed.epsilon * Fraction(101, 100), delta_budget="1e-6"
    )
    assert not loose  # the optimum for fixed parameters is no filter


def test_a_budget_is_met_exactly() -> None:
    decide = Accountant(theorems=("accounting.basic",), filters=("accounting.filter_basic",)).fits
    tenth = PureEvent("0.1")
    for adaptive in (True, False):
        exactly = decide(
            [Repeated(tenth, 9)], [tenth], epsilon_budget=1, delta_budget=0, adaptive=adaptive
        )
        assert exactly
        above = decide(
            [Repeated(tenth, 10)],
            [PureEvent("1e-30")],
            epsilon_budget=1,
            delta_budget=0,
            adaptive=adaptive,
        )
        assert not above
        assert above.reason == "the total exceeds the budget"
        assert above.total is not None
        assert above.total.epsilon == 1 + Fraction(1, 10**30)


def test_own_delta_beyond_the_allowed_has_no_epsilon() -> None:
    events = [ApproximateEvent(1, "0.1")]
    for adaptive in (False, True):
        with pytest.raises(BudgetError) as refusal:
            Accountant().total(events, delta="0.05", adaptive=adaptive)
        assert refusal.value.code == "BUD-005"
        decision = Accountant().fits(
            [], events, epsilon_budget=5, delta_budget="0.05", adaptive=adaptive
        )
        assert not decision
        assert decision.total is None
    with pytest.raises(BudgetError):
        Accountant().total([GaussianEvent(1)], delta=0, adaptive=False)


def test_metric_releases_add_per_unit_of_distance() -> None:
    history: list[Event] = [Repeated(MetricEvent("0.1"), 50), MetricEvent("0.5")]
    for adaptive in (False, True):
        total = Accountant().total(history, delta="1e-6", adaptive=adaptive)
        assert (total.epsilon, total.delta, total.theorem) == (
            Fraction(11, 2),
            0,
            "accounting.metric",
        )
        assert "per unit of distance" in total.statement()
    near = Accountant().total(history, delta="1e-6", adaptive=False, distance="0.5")
    assert near.epsilon < Fraction(11, 4)
    assert near.theorem == "accounting.metric with accounting.loss"
    assert "only for databases at most 0.5 apart" in near.statement()
    as_pure: list[Event] = [Repeated(PureEvent("0.05"), 50), PureEvent("0.25")]
    assert near.epsilon == Accountant().total(as_pure, delta="1e-6", adaptive=False).epsilon


def test_metric_releases_do_not_mix() -> None:
    mixed: list[Event] = [MetricEvent(1), PureEvent(1)]
    for distance in (None, 1):
        with pytest.raises(BudgetError):
            Accountant().total(mixed, delta="1e-6", adaptive=False, distance=distance)
    with pytest.raises(BudgetError):
        Accountant().total([PureEvent(1)], delta="1e-6", adaptive=False, distance=1)
    with pytest.raises(UsageError):
        Accountant().total([MetricEvent(1)], delta="1e-6", adaptive=False, distance=-1)


def test_a_metric_budget_is_per_unit_of_distance() -> None:
    decide = Accountant().fits
    half = MetricEvent("0.5")
    assert decide([half], [half], epsilon_budget=1, delta_budget="1e-6")
    assert not decide([half, half], [MetricEvent("1e-9")], epsilon_budget=1, delta_budget="1e-6")


def test_random_releases_add_their_shares() -> None:
    history: list[Event] = [Repeated(RandomEvent("0.5", "1e-8", "0.01"), 3), PureEvent(1)]
    total = Accountant(theorems=("accounting.basic",)).total(history, delta="1e-6", adaptive=False)
    assert total.gamma == Fraction(3, 100)
    assert total.theorem == "accounting.random with accounting.basic"
    assert total.statement().startswith("random differential privacy:")
    assert total.epsilon == Fraction(5, 2)
    many = Accountant().total([Repeated(RandomEvent(1, 0, "0.3"), 5)], delta="1e-6", adaptive=False)
    assert many.gamma == 1  # a share above one says no more than one


def test_random_releases_need_a_share_in_the_budget() -> None:
    one = RandomEvent("0.5", 0, "0.05")
    assert not Accountant().fits([], [one], **BUDGET)
    assert not Accountant().fits([], [one], gamma_budget="0.04", **BUDGET)
    assert Accountant().fits([], [one], gamma_budget="0.05", **BUDGET)


def test_a_random_release_chosen_after_an_answer_is_refused() -> None:
    one = RandomEvent("0.5", 0, "0.01")
    decide = Accountant().fits
    late = decide([PureEvent(1)], [one], gamma_budget="0.5", **BUDGET)
    assert not late
    assert "adaptively chosen functions" in late.reason
    assert not decide([one], [one], gamma_budget="0.5", **BUDGET)
    assert decide([one], [PureEvent(1)], gamma_budget="0.5", **BUDGET)
    assert decide([Composed([one, one])], [PureEvent(1)], gamma_budget="0.5", **BUDGET)
    assert decide([PureEvent(1)], [one], gamma_budget="0.5", adaptive=False, **BUDGET)


def test_printed_figures_are_rounded_up() -> None:
    total = Accountant().total([PureEvent("1/3")], delta=0, adaptive=False)
    assert "epsilon 0.3333334;" in total.statement()


@pytest.mark.parametrize(
    "arguments",
    [
        {"epsilon_budget": 0, "delta_budget": 0},
        {"epsilon_budget": float("nan"), "delta_budget": 0},
        {"epsilon_budget": 1e300, "delta_budget": 0},
        {"epsilon_budget": 1e-300, "delta_budget": 0},
        {"epsilon_budget": 1, "delta_budget": 1},
        {"epsilon_budget": 1, "delta_budget": -1},
        {"epsilon_budget": 1, "delta_budget": 0, "gamma_budget": 1},
        {"epsilon_budget": 1, "delta_budget": 0, "distance": 0},
    ],
)
def test_bad_budgets_are_refused(arguments: dict[str, float]) -> None:
    with pytest.raises(UsageError):
        Accountant().fits([], [], **arguments)  # type: ignore[arg-type]


@pytest.mark.parametrize("delta", [1, -1, float("nan"), "x", "1e-301"])
def test_bad_deltas_are_refused(delta: object) -> None:
    with pytest.raises(UsageError) as refusal:
        Accountant().total([], delta=delta, adaptive=False)  # type: ignore[arg-type]
    assert refusal.value.code == "USE-003"


def test_unknown_theorems_are_refused() -> None:
    for wrong in (
        {"theorems": ("accounting.magic",)},
        {"filters": ("accounting.loss",)},
        {"slack_share": 1},
    ):
        with pytest.raises(UsageError):
            Accountant(**wrong)  # type: ignore[arg-type]


def test_dp_accounting_is_asked_only_on_demand(monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def without(name: str, *rest: object) -> object:
        if name.startswith("dp_accounting"):
            raise ImportError(name)
        return real(name, *rest)  # type: ignore[arg-type]

    for name in [name for name in sys.modules if name.split(".")[0] == "dp_accounting"]:
        monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.setattr(builtins, "__import__", without)
    history = [Repeated(LaplaceEvent("0.1"), 10)]
    assert Accountant().total(history, delta="1e-6", adaptive=False).epsilon > 0
    with pytest.raises(UsageError) as refusal:
        Accountant(theorems=("accounting.dp_accounting",)).total(
            history, delta="1e-6", adaptive=False
        )
    assert refusal.value.code == "USE-006"


def test_dp_accounting_is_not_asked_what_it_cannot_answer() -> None:
    assert dp_accounting_epsilon(tally([ZCdpEvent(1)]), Fraction(1, 100)) is None
    assert dp_accounting_epsilon(tally([PureEvent(1)]), Fraction(1, 10**15)) is None
    assert dp_accounting_epsilon({}, Fraction(1, 100)) is None


FOLDER = Path(accountant.__file__).parent


def test_every_id_has_a_proof_and_every_proof_a_use() -> None:
    sections = re.split(r"^## ", (FOLDER / "PROOFS.md").read_text(), flags=re.MULTILINE)[1:]
    proved = {section.split()[0] for section in sections}
    assert len(proved) == len(sections)
    for section in sections:
        for part in ("*Claim.*", "*Needs.*", "*Proof.*", "*Numerics.*"):
            assert section.count(part) == 1, section.split()[0]
    sources = "\n".join(path.read_text() for path in FOLDER.glob("*.py"))
    used = {rule for rule in proofs.ID.findall(sources) if rule.startswith("accounting.")}
    assert used == proved
    named = {rule.name for rule in THEOREMS} | {rule.theorem for rule in FILTERS}
    assert named <= proved


@pytest.mark.parametrize("module", [accountant, basic, events], ids=lambda m: m.__name__)
def test_examples_in_docstrings_run(module: ModuleType) -> None:
    result = doctest.testmod(module)
    assert result.attempted > 0
    assert result.failed == 0


def test_the_page_about_composition_prints_what_it_says(capsys: pytest.CaptureFixture[str]) -> None:
    root = Path(__file__).resolve().parents[3]
    page = (root / "docs" / "explanation" / "composition.md").read_text()
    blocks = re.findall(r"^```(python|text)\n(.*?)^```$", page, flags=re.MULTILINE | re.DOTALL)
    assert [kind for kind, _ in blocks] == ["python", "text"] * (len(blocks) // 2)
    names: dict[str, object] = {}
    for (_, code), (_, text) in zip(blocks[::2], blocks[1::2], strict=True):
        exec(code, names)
        assert capsys.readouterr().out == text
