"""What softening gives, and what the branches of a union agree on before each is softened."""

from __future__ import annotations

from dataclasses import field
from fractions import Fraction

from secant.plan import nodes as n
from secant.records import frozen


@frozen
class Softened:
    """What is released instead of the user's aggregate, and how the user's outputs come of it."""

    aggregate: n.Aggregate
    outputs: tuple[n.Named, ...]
    notes: tuple[str, ...]
    exact: bool
    """Whether every filter is exact for values that move in their declared steps."""
    listed: bool = False
    """Whether groups are those of a protected column's declared values (derivative.listed)."""


@frozen
class Agreed:
    """What the branches of a union agree on before each is softened, by the name of an aggregate (derivative.union)."""

    ends: dict[str, tuple[Fraction, Fraction]] = field(default_factory=dict)
    """Least and greatest value of any branch."""
    kept: frozenset[str] = frozenset()
    """Counts that are public in every branch."""
    exact: frozenset[str] = frozenset()
    """Sums of plain columns of one type in every branch."""
