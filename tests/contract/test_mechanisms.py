"""What every mechanism owes: admission, calibration, draws on the public grid, an error, a proof."""

from __future__ import annotations

import re
from dataclasses import FrozenInstanceError, dataclass, fields, is_dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

import secant.noise.mechanisms
from secant.errors import SecantError, UsageError
from secant.noise.mechanisms.personal import PersonalLimit
from secant.noise.mechanisms.registry import MECHANISMS
from secant.noise.mechanisms.selection import Choice
from secant.noise.secrecy import Private
from secant.sensitivity.bounds import GlobalBound, SmoothBound

GRID = Fraction(3, 7)
PROOFS = (Path(secant.noise.mechanisms.__file__).parent / "PROOFS.md").read_text(encoding="utf-8")


@dataclass(frozen=True)
class Use:
    """How one mechanism is calibrated and what it is given."""

    bound: Any
    calibration: dict[str, Any]
    inputs: tuple[Any, ...]


GLOBAL = GlobalBound(Fraction(3))
COUNTS = GlobalBound(Fraction(1), "linf")
SMOOTH = SmoothBound(Fraction(1, 50), "expression")
STEP = {"grid": GRID}
LIMITS = [PersonalLimit(Fraction(1), Fraction(1)), PersonalLimit(Fraction(1), Fraction(1, 2))]

USES: dict[str, Use] = {
    "laplace": Use(GLOBAL, {"epsilon": 1, **STEP}, (Private(1.5),)),
    "discrete-laplace": Use(GLOBAL, {"epsilon": 1, **STEP}, (Private(GRID * 5),)),
    "gaussian": Use(GLOBAL, {"epsilon": 1, "delta": 1e-6, **STEP}, (Private(1.5),)),
    "optimal": Use(SMOOTH, {"epsilon": 1, **STEP}, (Private(1.5), Private(2.5))),
    "cauchy": Use(SMOOTH, {"epsilon": 1, **STEP}, (Private(1.5), Private(2.5))),
    "smooth-laplace": Use(
        SMOOTH, {"epsilon": 1, "delta": 1e-6, **STEP}, (Private(1.5), Private(2.5))
    ),
    "many-betas": Use(SMOOTH, {"epsilon": 1, **STEP}, (Private(1.5), [Private(2.5)])),
    "exponential": Use(COUNTS, {"epsilon": 1}, ([Private(1), Private(2)],)),
    "permute-and-flip": Use(COUNTS, {"epsilon": 1}, ([Private(1), Private(2)],)),
    "bernstein": Use(COUNTS, {"epsilon": 1, **STEP}, ([Private(0.5)] * 11,)),
    "personal": Use(LIMITS, {**STEP}, (Private(1.5),)),
}

every = pytest.mark.parametrize("mechanism", MECHANISMS, ids=lambda m: repr(m)[:40])


def taking(parameter: str) -> pytest.MarkDecorator:
    """Select the mechanisms that are calibrated with this parameter."""
    chosen = [m for m in MECHANISMS if parameter in USES[m.name].calibration]
    return pytest.mark.parametrize("mechanism", chosen, ids=lambda m: repr(m)[:40])


def calibrated(mechanism: Any) -> Any:
    use = USES[mechanism.name]
    return mechanism.calibrate(use.bound, **use.calibration)


def numbers_in(released: Any) -> list[Fraction]:
    """Give every released number that must lie on the grid."""
    if isinstance(released, Fraction):
        return [released]
    if hasattr(released, "values") and not isinstance(released, dict):
        return list(released.values)
    return [released.value] if hasattr(released, "value") else []


@every
def test_records_are_frozen_and_slotted(mechanism: Any) -> None:
    for record in (mechanism, calibrated(mechanism)):
        assert is_dataclass(record)
        assert "__dict__" not in dir(record)
        for field in fields(record):
            with pytest.raises(FrozenInstanceError):
                setattr(record, field.name, None)


@every
def test_the_proof_exists(mechanism: Any) -> None:
    assert re.search(rf"^## {mechanism.proof} ", PROOFS, re.MULTILINE)


@every
def test_it_admits_its_own_bound_only(mechanism: Any) -> None:
    use = USES[mechanism.name]
    other = GLOBAL if isinstance(use.bound, SmoothBound) else SMOOTH
    assert not mechanism.admits(other)
    if mechanism.name == "personal":
        assert mechanism.admits(GLOBAL)
        return
    assert mechanism.admits(use.bound)
    with pytest.raises(UsageError):
        mechanism.calibrate(other, **use.calibration)


@every
def test_it_draws_on_the_public_grid_and_tells_nothing_private(mechanism: Any) -> None:
    noise = calibrated(mechanism)
    released = [noise.draw(*USES[mechanism.name].inputs) for _ in range(3)]
    for value in released:
        for number in numbers_in(value):
            assert (number / GRID).denominator == 1
    repr(noise)  # a record that held a private value would raise here


@every
def test_it_says_what_it_costs(mechanism: Any) -> None:
    noise = calibrated(mechanism)
    use = USES[mechanism.name]
    assert noise_epsilon(noise) == Fraction(use.calibration.get("epsilon", 1))
    assert 0 <= noise_delta(noise) <= Fraction(use.calibration.get("delta", 0))


def noise_epsilon(noise: Any) -> Fraction:
    return noise.shared.epsilon if hasattr(noise, "shared") else noise.epsilon  # type: ignore[no-any-return]


def noise_delta(noise: Any) -> Fraction:
    return noise.shared.delta if hasattr(noise, "shared") else noise.delta  # type: ignore[no-any-return]


@every
def test_the_error_grows_with_the_level(mechanism: Any) -> None:
    noise = calibrated(mechanism)
    among = (2,) if isinstance(noise, Choice) else ()  # candidates
    errors = [noise.error(level, *among) for level in (0.1, 0.5, 0.95, 0.999)]
    assert errors == sorted(errors)
    assert errors[-1] > 0
    assert noise.error_unit in ("answer", "sensitivity", "score")
    for level in (0, 1, -1, float("nan")):
        with pytest.raises(UsageError) as caught:
            noise.error(level, *among)
        assert caught.value.code == "USE-004"


@every
@pytest.mark.parametrize(
    "epsilon", [0, -1, 1e-300, 1e300, float("nan"), float("inf"), None, "much"]
)
def test_an_epsilon_that_cannot_be_meant(mechanism: Any, epsilon: Any) -> None:
    use = USES[mechanism.name]
    if mechanism.name == "personal":
        with pytest.raises(UsageError):
            PersonalLimit(Fraction(1), epsilon)
        return
    with pytest.raises(UsageError) as caught:
        mechanism.calibrate(use.bound, **{**use.calibration, "epsilon": epsilon})
    assert caught.value.code == "USE-002"


@taking("delta")
@pytest.mark.parametrize("delta", [1, 2, -0.1, float("nan"), "some"])
def test_a_delta_that_cannot_be_meant(mechanism: Any, delta: Any) -> None:
    use = USES[mechanism.name]
    with pytest.raises(UsageError) as caught:
        mechanism.calibrate(use.bound, **{**use.calibration, "delta": delta})
    assert caught.value.code == "USE-003"


@taking("grid")
@pytest.mark.parametrize("grid", [0, -1, float("nan"), float("inf"), 1e-300, None])
def test_a_grid_that_cannot_be_meant(mechanism: Any, grid: Any) -> None:
    use = USES[mechanism.name]
    with pytest.raises(UsageError) as caught:
        mechanism.calibrate(use.bound, **{**use.calibration, "grid": grid})
    assert caught.value.code == "USE-001"


@taking("grid")
def test_a_grid_out_of_reach_of_the_noise_is_refused_before_anything_is_drawn(
    mechanism: Any,
) -> None:
    use = USES[mechanism.name]
    if isinstance(use.bound, GlobalBound):
        huge = GlobalBound(Fraction(10) ** 400, use.bound.norm)
        with pytest.raises(UsageError) as caught:
            mechanism.calibrate(huge, **use.calibration)
        assert caught.value.code == "USE-001"
    else:  # the scale is private: any value must be drawn with, and none may be told by an error
        noise = calibrated(mechanism)
        for size in (0, 5e-324, Fraction(1, 10**400), 1e308, Fraction(10**400)):
            inputs = (
                [Private(1.5)] if mechanism.name == "personal" else [Private(1.5), Private(size)]
            )
            if mechanism.name == "many-betas":
                inputs[1] = [inputs[1]]  # type: ignore[call-overload]
            assert numbers_in(noise.draw(*inputs))


@every
@pytest.mark.parametrize("bad", [float("nan"), None, "secret text"])
def test_a_private_value_that_is_no_number_is_never_quoted(mechanism: Any, bad: Any) -> None:
    use = USES[mechanism.name]
    noise = calibrated(mechanism)
    inputs = tuple(_spoiled(value, bad) for value in use.inputs)
    with pytest.raises(SecantError) as caught:
        noise.draw(*inputs)
    assert "secret text" not in caught.value.render()


def _spoiled(value: Any, bad: Any) -> Any:
    if isinstance(value, Private):
        return Private(bad)
    if isinstance(value, dict):
        return {key: Private(bad) for key in value}
    return [Private(bad) for _ in value]
