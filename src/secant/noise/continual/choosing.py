"""Which way a stream is released: all candidates, compared by public facts before anything is read (continual.choice).

In: facts of a stream. Out: the way with the least error, and how the others compare. Candidates are plain increments,
open trees of 2 to 40 branches, the whole encoder where there is a delta, and the seed's binary tree for comparison.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import lru_cache

from secant.noise.continual.encoder import LONGEST, Encoder
from secant.noise.continual.ends import variance_of
from secant.noise.continual.levels import Tree
from secant.noise.continual.mechanisms import (
    GROWTH,
    STEPS_ALONE,
    Design,
    LawName,
    Mechanism,
    in_epochs,
    noise_of,
    width_of,
)
from secant.noise.continual.records import Shows, StreamFacts
from secant.numeric.arrays import Wholes, np
from secant.records import frozen

NAMES = ("increments", "tree", "toeplitz", "binary")
BRANCHES = range(2, 41)
LOOKED_AT = 1 << 14
"""Up to so many steps are judged one by one, of more of them every so many."""
SPREAD = 1 << 12
EPOCHS = 6
"""So many epochs are designed one by one, the last of a million steps."""
SHORT_EPOCH = 10_000
"""Longer epochs take no encoder."""
JUDGED = 3
"""An open stream is judged by its first epochs: 1110 steps."""


@frozen
class Candidate:
    """A way that was looked at, and its errors in whole steps of the measure."""

    name: str
    law: LawName
    parameters: str
    mean: float
    """The root of the mean squared error over all steps."""
    largest: float


@frozen
class Choice:
    """The way that was chosen, and how all kinds of ways compare, each with its best parameters."""

    chosen: Mechanism
    compared: tuple[Candidate, ...]


def choose(facts: StreamFacts) -> Choice:
    """Give the way with the least mean, or largest, error of what is shown."""
    laws: tuple[LawName, ...] = ("laplace", "normal") if facts.delta else ("laplace",)
    candidates = [
        (way, _candidate(way)) for law in laws for name in NAMES if (way := best(facts, law, name))
    ]
    # The binary tree is there to be compared with: a tree with least squares is never worse.
    serious = [pair for pair in candidates if pair[0].name != "binary"]
    chosen = min(serious, key=lambda pair: _loss(facts, pair[1].mean, pair[1].largest))[0]
    return Choice(chosen, tuple(candidate for _, candidate in candidates))


def as_it_is(facts: StreamFacts) -> Choice:
    """Give the way of what nothing protected moves: there is nothing to choose."""
    way = Mechanism("increments", "none", facts, (STEPS_ALONE,))
    return Choice(way, (Candidate(way.name, way.law, "public, as it is", 0.0, 0.0),))


def _loss(facts: StreamFacts, mean: float, largest: float) -> float:
    return mean if facts.objective == "mean" else largest


def best(facts: StreamFacts, law: LawName, name: str) -> Mechanism | None:
    """Give the best way of one name and law, if there is one."""
    if not in_epochs(facts):
        design = _design(facts, law, name, facts.horizon)
        return None if design is None else Mechanism(name, law, facts, (design,))
    designs: list[Design] = []
    for k in range(EPOCHS):
        design = _design(facts, law, name, GROWTH ** (k + 1))
        if design is None and k:  # an encoder is too long for later epochs
            design = _design(facts, law, "tree", GROWTH ** (k + 1))
        if design is None:
            return None
        designs.append(design)
    return Mechanism(name, law, facts, tuple(designs))


def _design(facts: StreamFacts, law: LawName, name: str, length: int | None) -> Design | None:
    """Give the best design of one name for so many steps."""
    losses = [
        (_loss(facts, *_judge(facts, law, design, length)), i, design)
        for i, design in enumerate(_designs(facts, law, name, length))
    ]
    return min(losses, key=lambda f: f[:2])[2] if losses else None


def _designs(facts: StreamFacts, law: LawName, name: str, length: int | None) -> Iterator[Design]:
    longest = length if isinstance(facts.shows, str) else min(length or facts.shows, facts.shows)
    if name == "increments":
        yield STEPS_ALONE
    elif facts.shows == "steps" or longest is None:
        return
    elif name == "binary":
        yield Tree(2, longest.bit_length(), weighted=False)
    elif name == "tree":
        for branching in BRANCHES:
            levels = 2
            while branching ** (levels - 1) <= longest:
                yield Tree(branching, levels)
                levels += 1
    elif law == "normal" and length is not None and length <= _longest_encoder(facts):
        yield Encoder(length)


def _longest_encoder(facts: StreamFacts) -> int:
    return SHORT_EPOCH if facts.horizon is None else LONGEST


def _judge(
    facts: StreamFacts, law: LawName, design: Design, length: int | None
) -> tuple[float, float]:
    """Give the mean and the largest error of a design; an epoch's total counts as much, since it is carried on."""
    unit = variance_of(noise_of(facts, law, design))
    mean, largest, total = _units(design, length, facts.shows)
    if in_epochs(facts):
        mean, largest = mean + total, largest + total
    return math.sqrt(unit * mean), math.sqrt(unit * largest)


@lru_cache(maxsize=4096)
def _units(design: Design, length: int | None, shows: Shows) -> tuple[float, float, float]:
    """Give the mean, the largest and the last variance of what is shown, in units of one noise."""
    width = width_of(shows)
    if isinstance(design, Encoder):
        squares = np.cumsum(design.lagged(width) ** 2)
        return float(squares.mean()), float(squares.max()), float(squares[-1])
    high = _looked_at(length, width)
    low = np.zeros_like(high) if width is None else np.maximum(high - width, 0)
    squares = design.variances(low, high)
    return float(squares.mean()), float(squares.max()), float(squares[-1])


def _looked_at(length: int | None, width: int | None) -> Wholes:
    """Give the steps that a design is judged by: all of them, or many, evenly spread."""
    first, last = 1, length
    if last is None:  # endless sums of last steps: from where windows are full
        assert width is not None
        first, last = width, width + max(SPREAD, 4 * width)
    if last - first < LOOKED_AT:
        return np.arange(first, last + 1, dtype=np.int64)
    return np.unique(np.linspace(first, last, SPREAD).astype(np.int64))


def _candidate(way: Mechanism) -> Candidate:
    """Give the errors of a way as they are told."""
    if way.epochs:
        until = sum(GROWTH ** (k + 1) for k in range(JUDGED))
        variances = way.deviations(until) ** 2
        mean, largest = math.sqrt(variances.mean()), math.sqrt(variances.max())
    else:
        mean, largest = _judge(way.facts, way.law, way.designs[0], way.facts.horizon)
    return Candidate(way.name, way.law, _parameters(way), mean, largest)


def _parameters(way: Mechanism) -> str:
    """Say in words what a way does."""
    descriptions = [_description(design) for design in way.designs[: JUDGED if way.epochs else 1]]
    if not way.epochs or len(set(descriptions)) == 1:
        return descriptions[0]
    return "epochs of 10, 100, 1000, … steps: " + "; ".join(descriptions) + "; …"


def _description(design: Design) -> str:
    if isinstance(design, Encoder):
        return f"whole coefficients, {design.length} steps"
    if design.levels == 1:
        return "each step by itself"
    plain = "" if design.weighted else ", plain sums"
    return f"blocks of {design.branching}, {design.levels} levels{plain}"
