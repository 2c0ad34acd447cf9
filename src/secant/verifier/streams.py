"""Streams: what all numbers of all steps together lose, whatever comes.

In: how the steps of a measure are released, and how far one unit or row moves them all together. Out: what that loses
at least. Blocks of one level of a tree are disjoint: each level sees a move once. An encoder adds steps with weights.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from secant.verifier.noise import Paid
from secant.verifier.plans import NotKnown, Wrong

GROWTH = 10
"""Epochs have 10, 100, 1000, … steps."""
FIXED = 100
"""Binary places that an encoder's weights are worked out to."""
MOST_WORK = 20_000_000
"""Products of weights that are added up for one encoder, at most."""


def stream_price(
    column: str, noise: dict[str, Any], size: Fraction, squared: Fraction, often: int
) -> Paid:
    """Give what the noise of all steps costs: `size` and `squared` are of the move over all steps and groups.

    It appears at `often` steps of one group, at most.
    """
    if not noise["parts"]:
        raise Wrong(f"no step of {column} has noise")
    worst = Paid()
    for index, part in enumerate(noise["parts"]):
        spread = Fraction(part["size"])
        if spread <= 0:
            raise Wrong(f"the noise of {column} has no size")
        if noise["epochs"] and part["steps"] != GROWTH ** (index + 1):
            raise Wrong(f"epoch {index + 1} of {column} has another length")
        paid = _part(noise, part, spread, size, squared, often)
        # Epochs share out the move, and what one loses is in proportion to its part (never more than all of it).
        worst = Paid(max(worst.pure, paid.pure), max(worst.rho, paid.rho))
    return worst


def _part(
    noise: dict[str, Any],
    part: dict[str, Any],
    spread: Fraction,
    size: Fraction,
    squared: Fraction,
    often: int,
) -> Paid:
    if part["design"] == "tree":
        branching, levels = int(part["branching"]), int(part["levels"])
        if branching < 2 or levels < 1:
            raise Wrong("a tree has two branches and one level at least")
        if noise["law"] == "laplace":
            return Paid(levels * size / spread)
        if noise["epochs"]:
            length = levels * size**2
        else:
            blocks = (branching**level for level in range(levels))
            length = sum((min(size**2, squared * min(often, b)) for b in blocks), Fraction(0))
        return Paid(rho=length / (2 * spread**2))
    if part["design"] == "encoder" and noise["law"] == "normal":
        steps, fineness = int(part["length"]), int(part["fineness"])
        length = size**2 * _weights(steps, fineness, 1)
        if not noise["epochs"]:
            length = min(length, squared * _weights(steps, fineness, often))
        return Paid(rho=length / (2 * spread**2))
    raise NotKnown(f"{part['design']} with {noise['law']} noise is not checked here")


def _weights(length: int, fineness: int, often: int) -> int:
    """Give the largest row sum of the encoder's products, over so many of its steps."""
    steps = min(often, length)
    lags = min(length, steps // 2 + 1)
    if length * lags > MOST_WORK:
        raise NotKnown("an encoder of so many steps is not checked here")
    weights, fixed, half = [], fineness << FIXED, 1 << (FIXED - 1)
    for j in range(length):
        fixed = fixed * (2 * j - 1) // (2 * j) if j else fixed
        whole, remainder = fixed >> FIXED, fixed & ((1 << FIXED) - 1)
        if remainder == half:  # exactly in the middle: to the even one
            weights.append(whole + whole % 2)
        else:  # what was cut off so far is added: a weight that is too large only makes the move larger
            weights.append((fixed + j + half) >> FIXED)
    products = [
        sum(weights[j] * weights[j + lag] for j in range(length - lag)) for lag in range(lags)
    ]
    largest = sorted([products[0], *(p for p in products[1:] for _ in range(2))], reverse=True)
    return sum(largest[:steps])
