"""What was done to the protected data, in the vocabulary between mechanisms and the ledger.

In: parameters of one release as numbers or text. Out: frozen records that hold them exactly, and a
JSON form that every later version reads. Kinds are never removed and never redefined; an unknown
kind is refused at any depth. Nothing is priced here, and no record ever holds a value that came
from the data.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field
from fractions import Fraction
from itertools import pairwise
from typing import ClassVar, TypeAlias

from secant.errors import BudgetError, UsageError
from secant.numeric.parameters import Number, exact
from secant.records import frozen

Json: TypeAlias = "str | int | Sequence[Json] | Mapping[str, Json]"

# Outside these ranges a parameter is a mistake: less than 1e-30 buys nothing, more than 1e9
# protects nothing.
SMALLEST = Fraction(1, 10**30)
LARGEST = Fraction(10**9)
SMALLEST_DELTA = Fraction(1, 10**300)
DEEPEST = 50


def exact_epsilon(value: Number, *, what: str = "epsilon") -> Fraction:
    """Give a privacy parameter exactly, or refuse it: finite, positive, between 1e-30 and 1e9."""
    number = exact(value, what=what, code="USE-002")
    if number <= 0:
        raise UsageError("USE-002", f"{what} must be greater than 0")
    if not SMALLEST <= number <= LARGEST:
        raise UsageError("USE-002", f"{what} must lie between 1e-30 and 1e9")
    return number


def exact_delta(value: Number, *, what: str = "delta") -> Fraction:
    """Give a probability exactly, or refuse it: 0, or between 1e-300 and less than 1."""
    number = exact(value, what=what, code="USE-003")
    if not 0 <= number < 1:
        raise UsageError("USE-003", f"{what} must be at least 0 and less than 1")
    if 0 < number < SMALLEST_DELTA:
        raise UsageError("USE-003", f"{what} must be 0 or at least 1e-300")
    return number


def exact_count(value: object, *, what: str = "a count") -> int:
    """Give a number of releases, or refuse it: whole and at least 1."""
    number = exact(value, what=what)
    if isinstance(value, float) or number.denominator != 1 or number < 1:
        raise UsageError("USE-001", f"{what} must be a whole number of at least 1")
    return int(number)


@frozen
class PureEvent:
    """A release that is ε-differentially private and of which nothing more is known.

    Discrete Laplace noise belongs here: with a sensitivity of one grid step its privacy loss is +ε
    or -ε and nothing between.
    """

    kind: ClassVar[str] = "pure"
    epsilon: Fraction

    def __init__(self, epsilon: Number) -> None:
        object.__setattr__(self, "epsilon", exact_epsilon(epsilon))


@frozen
class ApproximateEvent:
    """A release that is (ε, δ)-differentially private and of which nothing more is known."""

    kind: ClassVar[str] = "approximate"
    epsilon: Fraction
    delta: Fraction

    def __init__(self, epsilon: Number, delta: Number) -> None:
        object.__setattr__(self, "epsilon", exact_epsilon(epsilon))
        object.__setattr__(self, "delta", exact_delta(delta))


@frozen
class LaplaceEvent:
    """One number with continuous Laplace noise of scale sensitivity/ε, perhaps rounded later."""

    kind: ClassVar[str] = "laplace"
    epsilon: Fraction

    def __init__(self, epsilon: Number) -> None:
        object.__setattr__(self, "epsilon", exact_epsilon(epsilon))


@frozen
class GaussianEvent:
    """A vector with continuous Gaussian noise: deviation = `noise_multiplier` · ℓ2 sensitivity.

    Discrete Gaussian noise is not this distribution: it is a `ZCdpEvent`.
    """

    kind: ClassVar[str] = "gaussian"
    noise_multiplier: Fraction

    def __init__(self, noise_multiplier: Number) -> None:
        number = exact(noise_multiplier, what="noise multiplier")
        if not 1 / LARGEST <= number <= 1 / SMALLEST:
            raise UsageError("USE-001", "the noise multiplier must lie between 1e-9 and 1e30")
        object.__setattr__(self, "noise_multiplier", number)


@frozen
class ZCdpEvent:
    """A release that is ρ-zero-concentrated differentially private."""

    kind: ClassVar[str] = "zcdp"
    rho: Fraction

    def __init__(self, rho: Number) -> None:
        number = exact(rho, what="rho")
        if not SMALLEST**2 <= number <= LARGEST**2:
            raise UsageError("USE-001", "rho must lie between 1e-60 and 1e18")
        object.__setattr__(self, "rho", number)


@frozen
class ConcentratedEvent:
    """A release that is ρ-zero-concentrated differentially private, and was priced as (ε, δ).

    Both hold. Discrete Gaussian noise that is added to answers belongs here.
    """

    kind: ClassVar[str] = "concentrated"
    rho: Fraction
    epsilon: Fraction
    delta: Fraction

    def __init__(self, rho: Number, epsilon: Number, delta: Number) -> None:
        object.__setattr__(self, "rho", ZCdpEvent(rho).rho)
        object.__setattr__(self, "epsilon", exact_epsilon(epsilon))
        object.__setattr__(self, "delta", exact_delta(delta))


@frozen
class RenyiEvent:
    """A release whose Rényi divergence of each listed order is at most the value beside it."""

    kind: ClassVar[str] = "renyi"
    curve: tuple[tuple[Fraction, Fraction], ...]

    def __init__(self, curve: Iterable[tuple[Number, Number]]) -> None:
        points = tuple(
            (exact(order, what="Rényi order"), exact(value, what="Rényi divergence"))
            for order, value in curve
        )
        orders = [order for order, _ in points]
        if not points or any(not 1 < order <= LARGEST for order in orders):
            raise UsageError("USE-001", "a Rényi curve needs orders greater than 1 and at most 1e9")
        if any(left >= right for left, right in pairwise(orders)):
            raise UsageError("USE-001", "the orders of a Rényi curve must increase")
        if any(not 0 <= value <= LARGEST**2 for _, value in points):
            raise UsageError("USE-001", "a Rényi divergence must lie between 0 and 1e18")
        object.__setattr__(self, "curve", points)


@frozen
class MetricEvent:
    """A release that is ε·d-private between any two databases at distance d (`cells`)."""

    kind: ClassVar[str] = "metric"
    epsilon: Fraction

    def __init__(self, epsilon: Number) -> None:
        object.__setattr__(self, "epsilon", exact_epsilon(epsilon))


@frozen
class RandomEvent:
    """A release that is (ε, δ)-private except on a share γ of an assumed law's databases."""

    kind: ClassVar[str] = "random"
    epsilon: Fraction
    delta: Fraction
    gamma: Fraction

    def __init__(self, epsilon: Number, delta: Number, gamma: Number) -> None:
        object.__setattr__(self, "epsilon", exact_epsilon(epsilon))
        object.__setattr__(self, "delta", exact_delta(delta))
        object.__setattr__(self, "gamma", exact_delta(gamma, what="gamma"))


@frozen
class Composed:
    """Several releases about the same data. The empty one is: nothing was done."""

    kind: ClassVar[str] = "composed"
    events: tuple[Event, ...]
    depth: int = field(compare=False, repr=False)

    def __init__(self, events: Iterable[Event]) -> None:
        parts = tuple(events)
        object.__setattr__(self, "events", parts)
        object.__setattr__(self, "depth", _depth_above(parts))


@frozen
class Repeated:
    """The same kind of release, with the same parameters, `count` times about the same data."""

    kind: ClassVar[str] = "repeated"
    event: Event
    count: int
    depth: int = field(compare=False, repr=False)

    def __init__(self, event: Event, count: int) -> None:
        object.__setattr__(self, "event", event)
        object.__setattr__(self, "count", exact_count(count))
        object.__setattr__(self, "depth", _depth_above((event,)))


Leaf: TypeAlias = (
    PureEvent
    | ApproximateEvent
    | LaplaceEvent
    | GaussianEvent
    | ZCdpEvent
    | ConcentratedEvent
    | RenyiEvent
    | MetricEvent
    | RandomEvent
)
Event: TypeAlias = Leaf | Composed | Repeated

# Explicit tuples (I8): exact classes, so that a subclass is as unknown as a stranger.
LEAVES = (
    PureEvent,
    ApproximateEvent,
    LaplaceEvent,
    GaussianEvent,
    ZCdpEvent,
    ConcentratedEvent,
    RenyiEvent,
    MetricEvent,
    RandomEvent,
)
EVENTS = (*LEAVES, Composed, Repeated)
_FIELDS: dict[str, tuple[Callable[..., Leaf], tuple[str, ...]]] = {
    "pure": (PureEvent, ("epsilon",)),
    "approximate": (ApproximateEvent, ("epsilon", "delta")),
    "laplace": (LaplaceEvent, ("epsilon",)),
    "gaussian": (GaussianEvent, ("noise_multiplier",)),
    "zcdp": (ZCdpEvent, ("rho",)),
    "concentrated": (ConcentratedEvent, ("rho", "epsilon", "delta")),
    "metric": (MetricEvent, ("epsilon",)),
    "random": (RandomEvent, ("epsilon", "delta", "gamma")),
}


def _depth_above(parts: Sequence[object]) -> int:
    """Give the depth of a node over `parts`; refuse what is no event (I3) or nested too deep."""
    deepest = 0
    for part in parts:
        if isinstance(part, Composed | Repeated) and type(part) in EVENTS:
            deepest = max(deepest, part.depth)
        elif type(part) not in LEAVES:
            raise unknown_event()
    if deepest >= DEEPEST:
        raise UsageError("USE-001", f"events may be nested {DEEPEST} deep, not deeper")
    return deepest + 1


def unknown_event() -> BudgetError:
    """Give the refusal of an event that this version does not know (I3)."""
    return BudgetError(
        "BUD-005",
        "this version of Secant does not know this kind of event",
        hint="read the ledger with the version that wrote it, or with a newer one",
    )


def to_json(event: Event) -> dict[str, Json]:
    """Give the event as plain JSON values; `event_from_json` gives it back equal.

    >>> to_json(Repeated(PureEvent("0.1"), 3))
    {'kind': 'repeated', 'count': 3, 'event': {'kind': 'pure', 'epsilon': '1/10'}}
    """
    if type(event) not in EVENTS:
        raise unknown_event()
    if isinstance(event, Composed):
        return {"kind": event.kind, "events": [to_json(part) for part in event.events]}
    if isinstance(event, Repeated):
        return {"kind": event.kind, "count": event.count, "event": to_json(event.event)}
    if isinstance(event, RenyiEvent):
        return {"kind": event.kind, "curve": [[str(a), str(value)] for a, value in event.curve]}
    _, names = _FIELDS[event.kind]
    return {"kind": event.kind, **{name: str(getattr(event, name)) for name in names}}


def event_from_json(value: object) -> Event:
    """Give the event that `to_json` wrote; unknown kinds and missing or unknown fields are refused.

    >>> event_from_json({"kind": "pure", "epsilon": "1/10"})
    PureEvent(epsilon=Fraction(1, 10))
    """
    return _read(value, DEEPEST)


def _read(value: object, levels: int) -> Event:
    if not isinstance(value, Mapping) or not isinstance(value.get("kind"), str):
        raise UsageError("USE-001", "an event is written as an object with a kind")
    if levels < 0:
        raise UsageError("USE-001", f"events may be nested {DEEPEST} deep, not deeper")
    kind = value["kind"]
    if kind == Composed.kind:
        _expect(value, ("events",))
        return Composed(_read(part, levels - 1) for part in _list(value["events"]))
    if kind == Repeated.kind:
        _expect(value, ("count", "event"))
        if type(value["count"]) is not int:
            raise UsageError("USE-001", "the count of an event is written as a whole number")
        return Repeated(_read(value["event"], levels - 1), value["count"])
    if kind == RenyiEvent.kind:
        _expect(value, ("curve",))
        return RenyiEvent(_pair(point) for point in _list(value["curve"]))
    if kind not in _FIELDS:
        raise unknown_event()
    record, names = _FIELDS[kind]
    _expect(value, names)
    return record(**{name: _text(value[name]) for name in names})


def _expect(value: Mapping[str, object], names: tuple[str, ...]) -> None:
    if set(value) != {"kind", *names}:
        raise UsageError("USE-001", "an event of this kind has other fields", details=names)


def _list(value: object) -> Sequence[object]:
    if not isinstance(value, list | tuple):
        raise UsageError("USE-001", "a list was expected in the event")
    return value


def _pair(value: object) -> tuple[str, str]:
    pair = _list(value)
    if len(pair) != 2:
        raise UsageError("USE-001", "a point of a Rényi curve is an order and a divergence")
    return _text(pair[0]), _text(pair[1])


def _text(value: object) -> str:
    # Numbers are written as text: a JSON number would pass through a float on its way.
    if not isinstance(value, str):
        raise UsageError("USE-001", "numbers of an event are written as text")
    return value


def exceptional_share(event: Event) -> Fraction:
    """Add up the shares γ of all random-DP releases of an event (accounting.random)."""
    if isinstance(event, RandomEvent):
        return event.gamma
    if isinstance(event, Composed):
        return sum((exceptional_share(part) for part in event.events), Fraction(0))
    return (
        exceptional_share(event.event) * event.count if isinstance(event, Repeated) else Fraction(0)
    )
