"""Events hold their parameters exactly, refuse what cannot be meant, and survive JSON."""

from __future__ import annotations

import json
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from secant.errors import BudgetError, UsageError
from secant.noise.events import (
    DEEPEST,
    EVENTS,
    ApproximateEvent,
    Composed,
    ConcentratedEvent,
    Event,
    GaussianEvent,
    LaplaceEvent,
    MetricEvent,
    PureEvent,
    RandomEvent,
    RenyiEvent,
    Repeated,
    ZCdpEvent,
    event_from_json,
    to_json,
)

SAMPLES: tuple[Event, ...] = (
    PureEvent("0.1"),
    ApproximateEvent(Fraction(1, 3), 1e-6),
    LaplaceEvent(0.1),
    GaussianEvent(4),
    ZCdpEvent(Decimal("0.005")),
    ConcentratedEvent("0.005", "0.4", "1e-7"),
    RenyiEvent([(2, "0.1"), ("2.5", "1/3")]),
    MetricEvent("0.25"),
    RandomEvent("0.1", 0, "0.05"),
    Composed([]),
    Composed([PureEvent(1), Composed([LaplaceEvent(2)])]),
    Repeated(Composed([PureEvent(1), GaussianEvent(2)]), 7),
)


def test_every_kind_has_a_sample() -> None:
    assert {type(event) for event in SAMPLES} == set(EVENTS)


@pytest.mark.parametrize("event", SAMPLES, ids=lambda event: event.kind)
def test_json_gives_the_event_back(event: Event) -> None:
    text = json.dumps(to_json(event), sort_keys=True)
    back = event_from_json(json.loads(text))
    assert back == event
    assert hash(back) == hash(event)
    assert type(back) is type(event)


def test_the_written_form_is_stable() -> None:
    # What an old ledger holds must be read for ever: these texts are never edited.
    written = [
        {"kind": "pure", "epsilon": "1/10"},
        {"kind": "approximate", "epsilon": "1/2", "delta": "1/1000000"},
        {"kind": "laplace", "epsilon": "2"},
        {"kind": "gaussian", "noise_multiplier": "4"},
        {"kind": "zcdp", "rho": "1/200"},
        {"kind": "concentrated", "rho": "1/200", "epsilon": "1/2", "delta": "1/1000000"},
        {"kind": "renyi", "curve": [["2", "1/10"], ["5/2", "1/3"]]},
        {"kind": "metric", "epsilon": "1/4"},
        {"kind": "random", "epsilon": "1/10", "delta": "0", "gamma": "1/20"},
        {"kind": "composed", "events": [{"kind": "pure", "epsilon": "1"}]},
        {"kind": "repeated", "count": 3, "event": {"kind": "pure", "epsilon": "1"}},
    ]
    assert {entry["kind"] for entry in written} == {record.kind for record in EVENTS}
    for entry in written:
        assert to_json(event_from_json(entry)) == entry


@given(st.floats(1e-30, 1e9), st.floats(1e-300, 0.999))
@settings(max_examples=200, deadline=None)
def test_floats_are_taken_exactly(epsilon: float, delta: float) -> None:
    event = ApproximateEvent(epsilon, delta)
    assert float(event.epsilon) == epsilon
    assert event.epsilon == Fraction(epsilon)
    assert event_from_json(to_json(event)) == event


def test_numbers_of_other_libraries_are_taken() -> None:
    assert PureEvent(np.float64(0.5)) == PureEvent("1/2")
    assert PureEvent(np.int64(2)) == PureEvent(2)
    assert Repeated(PureEvent(1), np.int64(3)).count == 3  # type: ignore[arg-type]


BAD_EPSILONS = (
    *(0, -1, True, None, [], b"1", 1j),
    *(float("nan"), float("inf"), -float("inf"), 1e-300, 1e300),
    *("1e-300", "1e300", "1e999999999", "-1e999999999", "nan", "inf", "sNaN"),
    *("", "x", "1/0", "0x10", "9" * 5000, "9" * 9000 + "/1"),
    *(Decimal("NaN"), Decimal("Infinity"), Decimal("1e-999999"), Fraction(1, 3**5000) + 1),
)


@pytest.mark.parametrize("value", BAD_EPSILONS, ids=lambda value: repr(value)[:20])
@pytest.mark.parametrize("record", [PureEvent, LaplaceEvent, MetricEvent], ids=lambda r: r.kind)
def test_a_bad_epsilon_is_refused(record: type[PureEvent], value: object) -> None:
    with pytest.raises(UsageError) as refusal:
        record(value)  # type: ignore[arg-type]
    assert refusal.value.code == "USE-002"


@pytest.mark.parametrize("value", [1, 1.5, -1e-9, float("nan"), "1e-301", True, "x"])
def test_a_bad_delta_is_refused(value: object) -> None:
    for build in (
        lambda: ApproximateEvent(1, value),  # type: ignore[arg-type]
        lambda: RandomEvent(1, value, 0),  # type: ignore[arg-type]
        lambda: RandomEvent(1, 0, value),  # type: ignore[arg-type]
    ):
        with pytest.raises(UsageError) as refusal:
            build()
        assert refusal.value.code == "USE-003"


@pytest.mark.parametrize("count", [0, -1, True, 1.0, 2.5, "x", None, float("nan")])
def test_a_bad_count_is_refused(count: object) -> None:
    with pytest.raises(UsageError):
        Repeated(PureEvent(1), count)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "curve",
    [
        [],
        [(1, 1)],
        [("0.5", 1)],
        [(2, -1)],
        [(3, 1), (2, 1)],
        [(2, 1), (2, 1)],
        [(2, float("inf"))],
        [("1e10", 1)],
    ],
)
def test_a_bad_curve_is_refused(curve: list[tuple[object, object]]) -> None:
    with pytest.raises(UsageError):
        RenyiEvent(curve)  # type: ignore[arg-type]


@pytest.mark.parametrize("value", [0, -1, 1e-10, 1e31, float("nan")])
def test_a_bad_noise_multiplier_or_rho_is_refused(value: float) -> None:
    with pytest.raises(UsageError):
        GaussianEvent(value)
    with pytest.raises(UsageError):
        ZCdpEvent(value * 1e-60 if value == 1e-10 else value)


@pytest.mark.parametrize(
    "text",
    [
        None,
        [],
        "pure",
        {},
        {"kind": 3},
        {"kind": "pure"},
        {"kind": "pure", "epsilon": 1},
        {"kind": "pure", "epsilon": 0.5},
        {"kind": "pure", "epsilon": "1", "delta": "0"},
        {"kind": "composed", "events": {}},
        {"kind": "composed", "events": "pure"},
        {"kind": "repeated", "count": "3", "event": {"kind": "pure", "epsilon": "1"}},
        {"kind": "repeated", "count": True, "event": {"kind": "pure", "epsilon": "1"}},
        {"kind": "renyi", "curve": [["2"]]},
        {"kind": "renyi", "curve": [[2, "1"]]},
    ],
    ids=repr,
)
def test_a_malformed_text_is_refused(text: object) -> None:
    with pytest.raises(UsageError):
        event_from_json(text)


def test_unknown_kinds_are_refused_at_any_depth() -> None:
    inner: dict[str, object] = {"kind": "quantum", "epsilon": "1"}
    for _ in range(DEEPEST - 1):
        with pytest.raises(BudgetError) as refusal:
            event_from_json(inner)
        assert refusal.value.code == "BUD-005"
        inner = {"kind": "composed", "events": [{"kind": "pure", "epsilon": "1"}, inner]}


def test_what_is_no_event_is_not_written() -> None:
    with pytest.raises(BudgetError):
        to_json(object())  # type: ignore[arg-type]


def test_nesting_has_a_floor() -> None:
    event: Event = PureEvent(1)
    text: dict[str, object] = {"kind": "pure", "epsilon": "1"}
    for _ in range(DEEPEST):
        event = Composed([event])
        text = {"kind": "composed", "events": [text]}
    assert event_from_json(text) == event
    with pytest.raises(UsageError):
        Repeated(event, 2)
    for _ in range(100_000):
        text = {"kind": "composed", "events": [text]}
    with pytest.raises(UsageError):
        event_from_json(text)


def test_events_cannot_be_changed() -> None:
    event = PureEvent(1)
    with pytest.raises(AttributeError):
        event.epsilon = Fraction(2)  # type: ignore[misc]
