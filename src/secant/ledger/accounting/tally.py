"""What a history amounts to, whatever its nesting: how often each elementary release occurred.

In: events at any depth. Out: exact counts, the (ε, δ) view of them, and what is left of a δ after
the releases' own. Repeats are multiplied out here and nowhere else, so that n of one release and
one release n times cannot be priced differently. Nothing is priced here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from fractions import Fraction
from typing import TypeAlias

from secant.noise.events import (
    EVENTS,
    ApproximateEvent,
    Composed,
    ConcentratedEvent,
    Event,
    LaplaceEvent,
    Leaf,
    PureEvent,
    RandomEvent,
    Repeated,
    ZCdpEvent,
    unknown_event,
)
from secant.numeric.ball import Ball, ball, upper, working_precision
from secant.records import frozen

Tally: TypeAlias = Mapping[Leaf, int]

PRECISION = 384
"""Bits of every ball: ε = 1e-30 costs 200 of them in 1 + ε², the rest is more than a float has."""
_KEPT_BITS = 80


def tally(events: Iterable[Event]) -> dict[Leaf, int]:
    """Count the elementary releases of a history; an unknown event is refused at any depth (I3)."""
    counts: dict[Leaf, int] = {}
    waiting: list[tuple[Event, int]] = [(event, 1) for event in events]
    waiting.reverse()
    while waiting:
        event, times = waiting.pop()
        if type(event) not in EVENTS:
            raise unknown_event()
        if isinstance(event, Composed):
            waiting.extend((part, times) for part in reversed(event.events))
        elif isinstance(event, Repeated):
            waiting.append((event.event, times * event.count))
        else:
            counts[event] = counts.get(event, 0) + times
    return counts


@frozen
class EqualReleases:
    """`count` releases that are (ε, δ)-private each."""

    epsilon: Fraction
    delta: Fraction
    count: int


def approximate_view(counts: Tally) -> tuple[EqualReleases, ...] | None:
    """Give every release by its own (ε, δ), equal ones together; None if one has no such pair."""
    merged: dict[tuple[Fraction, Fraction], int] = {}
    for leaf, count in counts.items():
        if isinstance(leaf, PureEvent | LaplaceEvent):
            pair = leaf.epsilon, Fraction(0)
        elif isinstance(leaf, ApproximateEvent):
            pair = leaf.epsilon, leaf.delta
        else:
            return None
        merged[pair] = merged.get(pair, 0) + count
    return tuple(EqualReleases(*pair, count) for pair, count in merged.items())


def by_price(counts: Tally) -> dict[Leaf, int]:
    """Read every concentrated release by its (ε, δ) (accounting.both)."""
    return _read_as(counts, lambda leaf: ApproximateEvent(leaf.epsilon, leaf.delta))


def by_rho(counts: Tally) -> dict[Leaf, int]:
    """Read every concentrated release by its ρ (accounting.both)."""
    return _read_as(counts, lambda leaf: ZCdpEvent(leaf.rho))


def _read_as(counts: Tally, reading: Callable[[ConcentratedEvent], Leaf]) -> dict[Leaf, int]:
    leaves: dict[Leaf, int] = {}
    for leaf, count in counts.items():
        if isinstance(leaf, ConcentratedEvent):
            leaf = reading(leaf)
        leaves[leaf] = leaves.get(leaf, 0) + count
    return leaves


def without_failures(counts: Tally) -> dict[Leaf, int]:
    """Replace every (ε, δ) release by the ε release that it is when it does not fail (accounting.split)."""
    leaves: dict[Leaf, int] = {}
    for leaf, count in counts.items():
        if isinstance(leaf, ApproximateEvent):
            leaf = PureEvent(leaf.epsilon)
        leaves[leaf] = leaves.get(leaf, 0) + count
    return leaves


def on_good_databases(counts: Tally) -> dict[Leaf, int]:
    """Replace every random-DP release by its promise outside the exceptional share (accounting.random)."""
    leaves: dict[Leaf, int] = {}
    for leaf, count in counts.items():
        if isinstance(leaf, RandomEvent):
            leaf = ApproximateEvent(leaf.epsilon, leaf.delta)
        leaves[leaf] = leaves.get(leaf, 0) + count
    return leaves


def exact_sum(values: Iterable[Fraction]) -> Fraction:
    """Add without rounding, in a tree: a running sum of unlike denominators grows quadratically."""
    row = list(values)
    while len(row) > 1:
        row = [sum(row[i : i + 2], Fraction(0)) for i in range(0, len(row), 2)]
    return row[0] if row else Fraction(0)


def own_deltas(counts: Tally) -> Fraction:
    """Add up the δ of all releases that have one."""
    return exact_sum(
        count * leaf.delta for leaf, count in counts.items() if isinstance(leaf, ApproximateEvent)
    )


def concentrated_deltas(counts: Tally) -> Fraction:
    """Add up the δ by which concentrated releases were priced."""
    return exact_sum(
        count * leaf.delta for leaf, count in counts.items() if isinstance(leaf, ConcentratedEvent)
    )


def failures(counts: Tally) -> Ball:
    """Enclose ln of the probability that none of the (ε, δ) releases fails."""
    total = ball(0)
    for leaf, count in counts.items():
        if isinstance(leaf, ApproximateEvent):
            total += count * ball(-leaf.delta).log1p()
    return total


def slack(counts: Tally, delta: Fraction) -> Fraction | None:
    """Give the δ' with 1 - (1-δ')·∏(1-δᵢ) ≤ δ, rounded down; None if nothing is left (accounting.split)."""
    if not any(isinstance(leaf, ApproximateEvent) and leaf.delta for leaf in counts):
        return delta if delta > 0 else None
    with working_precision(PRECISION):
        left = downward(-(ball(-delta).log1p() - failures(counts)).expm1())
    return left if left > 0 else None


def total_delta(counts: Tally, remaining: Fraction) -> Fraction:
    """Give 1 - (1-δ')·∏(1-δᵢ), rounded up: what ERRATA 1.25 puts in the misprint's place."""
    with working_precision(PRECISION):
        return min(Fraction(1), upward(-(ball(-remaining).log1p() + failures(counts)).expm1()))


def upward(value: Ball) -> Fraction:
    """Give a number of few digits that is at least everything in the ball (I4)."""
    end = upper(value)
    shift = _KEPT_BITS - end.numerator.bit_length() + end.denominator.bit_length()
    grid = Fraction(2) ** shift
    return -(-end * grid // 1) / grid


def downward(value: Ball) -> Fraction:
    """Give a number of few digits that is at most everything in the ball (I4)."""
    return -upward(-value)
