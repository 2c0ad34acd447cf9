"""Units weighed by how many keys they have: what private keys are chosen by, where a unit may be in several groups.

In: rows with the column of their one unit, and the keys of groups. Out: an aggregate that adds up, key by key, the
weights of the units that have it (truncation.keys). A unit with k keys weighs 1 / sqrt(k) in each: whoever is in many
groups moves all of them together by a length of one, so that nobody's groups are left out, but for more than `most`.
"""

from __future__ import annotations

from fractions import Fraction
from math import isqrt
from typing import ClassVar

from secant.plan import nodes as n
from secant.plan.rewrites.measures import literal
from secant.plan.typing import fields_of
from secant.records import frozen
from secant.schema import types as t

PARTS = 2**20
"""Weights are whole numbers of such parts of a unit."""
MARGIN = 1 - Fraction(1, 2**40)
"""What a weight is multiplied by before it is rounded down: a root and a quotient of doubles may be too large."""
MOST = 400
"""A unit weighs in so many groups, the first of its own: with each more the threshold rises."""
FEW = 3
"""Units that have no more rows or groups than this are counted as they are: weights would gain little."""


@frozen
class WeighedUnits:
    """For each key the weights of its units, added up, in parts of a unit."""

    column: str
    units: n.Aggregate
    most: int
    """Keys that one unit weighs in, at most."""

    words: ClassVar[str] = "weights of units by key"
    step: ClassVar[Fraction] = Fraction(1, PARTS)
    """What one part is, in units."""

    @property
    def size(self) -> Fraction:
        """Give how far one unit moves the weights, all keys together, in parts."""
        return Fraction(isqrt(PARTS**2 * self.most - 1) + 1)

    @property
    def squared(self) -> Fraction:
        """Give the squared length of that move."""
        return Fraction(PARTS**2)


def weight(keys: int) -> int:
    """Give what a unit with so many keys adds to each, at most, in parts of a unit."""
    return isqrt(PARTS**2 // keys)


def weighed_units(
    rows: n.Relation, keys: tuple[n.Named, ...], unit: str, column: str, most: int
) -> WeighedUnits:
    """Give the plan that adds up the weights of units, key by key; rows of nobody choose no key."""
    (own,) = (n.Column(f.name, f.type) for f in fields_of(rows) if f.name == unit)
    owner = n.Named(f"{column}.unit", own)
    here = n.Column(owner.name, own.type)
    named = n.Project(n.Filter(rows, n.Not(n.IsNull(own))), (owner, *keys))
    order = tuple(k.name for k in keys)
    each = n.Truncate(n.Distinct(named), (owner.name,), order, most)
    number = n.Aggregation(f"{column}.number", "count", None)
    total = n.Named(f"{column}.total", here)
    numbers = n.Aggregate(each, (total,), (number,))
    same = n.Compare("=", here, n.Column(total.name, own.type))
    joined = n.Join("inner", each, numbers, same)
    root = n.Call("sqrt", (n.Cast(n.Column(number.name, t.INTEGER), t.DOUBLE),))
    share = n.Arithmetic("/", literal(PARTS * MARGIN, t.DOUBLE), root)
    whole = n.Cast(n.Call("floor", (share,)), t.INTEGER)
    groups = tuple(n.Named(f.name, n.Column(f.name, f.type)) for f in fields_of(named)[1:])
    weights = n.Project(joined, (*groups, n.Named(f"{column}.weight", whole)))
    added = n.Aggregation(column, "sum", n.Column(f"{column}.weight", t.INTEGER))
    return WeighedUnits(column, n.Aggregate(weights, groups, (added,)), most)
