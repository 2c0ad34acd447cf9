"""noise.grid: a real-valued noise, released on a public grid, with exactly the stated distribution.

In: an offset and a scale (either may be private) and the law of |V|. Out: the index m of the grid
cell that holds offset + scale · V. The cells are fixed by the public grid alone; a float only says
where to look first, and exact arithmetic says whether it was right.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Protocol

from flint import arb, fmpq

from secant.noise.mechanisms.randomness import LazyUniform, word
from secant.numeric.ball import Ball, decide

_START = 64  # bits; few draws are left open by these unless the grid is very fine
_RARE = 2.0**-16  # below this the known bits of a uniform say too little for floats
_ENOUGH = 60  # bits of a uniform that floats need
_LIMIT = 1e300  # where a guess stops; heavier draws are found by doubling


class Law(Protocol):
    """The law of a magnitude |V|: how likely it is to exceed v, and where to look first."""

    @property
    def sharp(self) -> bool:
        """Promise that `quantile` errs by less than 2^-44 · (1 + v) wherever u is above 2^-16."""
        ...

    def survival(self, v: Ball, precision: int) -> Ball:
        """Enclose P(|V| > v) for every positive v in the ball."""
        ...

    def quantile(self, u: float) -> float:
        """Give about the v with P(|V| > v) = u; any answer is allowed, a near one is fast."""
        ...


def rational(value: Fraction | int) -> fmpq:
    """Give a rational in the form that balls are made of."""
    if isinstance(value, int):
        return fmpq(value)
    return fmpq(value.numerator, value.denominator)


def draw_cell(law: Law, offset: fmpq, scale: fmpq) -> int:
    """Give the m with m - 1/2 ≤ offset + scale · V < m + 1/2; V has a fair sign and law |V|.

    `offset` and `scale` are in units of the grid. The result is a function of the offset, the
    scale, a sign and one uniform real, all of them exact.
    """
    head = word()
    minus = head & 1
    # A mirror image: the cell of -y is minus the cell of y, except on edges, which have no mass.
    cell = cell_of(law, -offset if minus else offset, scale, LazyUniform(head >> 1, 63))
    return -cell if minus else cell


def cell_of(law: Law, offset: fmpq, scale: fmpq, uniform: LazyUniform) -> int:
    """Give the m with m - 1/2 ≤ offset + scale · |V| < m + 1/2, where P(|V| > ·) meets U."""
    first = int((offset + fmpq(1, 2)).floor())  # the cell of the offset itself: |V| ≥ 0
    near = (uniform.numerator + 0.5) * 2.0**-uniform.known
    guess = min(law.quantile(near), _LIMIT)
    if law.sharp and near > _RARE and uniform.known >= _ENOUGH:
        quick = _by_float(offset, scale, guess)
        if quick is not None:
            return quick
    steps = offset + scale * _exactly(guess) + fmpq(1, 2)
    cell = max(first, int(steps.floor()))

    # The position is monotone in the cell: a wrong guess says in which direction to go on.
    low, high, stride = first, -1, 1
    bracketed = [False, False]
    while True:
        side = _position(law, offset, scale, uniform, cell, first)
        if side == 0:
            return cell
        if side > 0:
            low, bracketed[0] = cell + 1, True
        else:
            high, bracketed[1] = cell - 1, True
        if all(bracketed):
            cell = (low + high) // 2
        elif side > 0:
            cell = low + stride
        else:
            cell = max(low, high - stride)
        stride *= 2


def _by_float(offset: fmpq, scale: fmpq, v: float) -> int | None:
    """Give the cell if every |V| within 2^-40 · (1 + v) of `v` has the same one."""
    whole = offset.floor()
    remainder = offset - whole
    try:
        width = int(scale.p) / int(scale.q)
    except OverflowError:
        return None
    position = int(remainder.p) / int(remainder.q) + width * v + 0.5
    guard = 2.0**-40 * (1.0 + width * (1.0 + v))
    cell = math.floor(position - guard)
    return int(whole) + cell if cell == math.floor(position + guard) else None


def _exactly(value: float) -> fmpq:
    numerator, denominator = value.as_integer_ratio()
    return fmpq(numerator, denominator)


def _position(
    law: Law, offset: fmpq, scale: fmpq, uniform: LazyUniform, cell: int, first: int
) -> int:
    """Say whether |V| lies in the cell (0), beyond it (1), or before it (-1), for certain."""
    near_edge = (fmpq(2 * cell - 1, 2) - offset) / scale
    far_edge = near_edge + 1 / scale

    def attempt(precision: int) -> int | None:
        target = uniform.enclosure(precision - 1)
        beyond = law.survival(arb(far_edge), precision) - target
        if not beyond < 0:  # U below the tail at the far edge means |V| farther out
            return 1 if beyond > 0 else None
        if cell == first:
            return 0
        before = law.survival(arb(near_edge), precision) - target
        if before > 0:
            return 0
        return -1 if before < 0 else None

    return int(decide(attempt, _START))
