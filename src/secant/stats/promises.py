"""What `bounded` hands back: g of the data, the promise that it keeps, its error, and an explanation.

In: what the construction found. Out: records and the sentences that they print. Everything but the promise is
computed from the data and stays private until a mechanism has drawn: these records are no release.
"""

from __future__ import annotations

from dataclasses import field
from fractions import Fraction
from typing import Literal

from secant.records import frozen
from secant.stats.results import RELATIONS, Neighbors

OPTIMALITY = (
    "no other function with this promise is closer to f on one database without being farther on another "
    "(Pareto, Lemma 4.5); its worst error, over all databases or over the parts of one, is at most twice "
    "the least that any function with this promise can have (Corollary 4.4, Lemma 4.2)"
)


@frozen
class Promise:
    """How far the value can move between neighboring databases. Public."""

    sensitivity: Fraction
    """The most that anybody can move it; what noise is calibrated to."""
    neighbors: Neighbors
    individual: tuple[Fraction, ...] | None = None
    """Where limits differ: all that individuals may have, those who are not in the data too."""
    norm: Literal["absolute", "l1"] = "absolute"
    assumptions: tuple[str, ...] = ()

    def __str__(self) -> str:
        change = RELATIONS[self.neighbors].split(";")[0]
        how = " in the l1 norm" if self.norm == "l1" else ""
        who = "; individual i by at most Δ_i" if self.individual is not None else ""
        assumed = "".join(f"; assuming that {a}" for a in self.assumptions)
        return f"moves by at most {float(self.sensitivity):g}{how} for {change}{who}{assumed}"


@frozen
class Finding:
    """What a construction knows about g and f on this database."""

    exact_value: Fraction
    target: float
    error_bound: float
    exact: bool
    reason: str
    proof: str


@frozen
class Bounded:
    """A statistic g that keeps a promise on its sensitivity, near the statistic f that was asked for."""

    statistic: str
    value: float
    """g of the data, as a float. Private."""
    exact_value: Fraction
    """The same, unrounded: what a mechanism should be given. Private."""
    promise: Promise
    error_bound: float
    """How far g lies from f on this database, at most. Private."""
    exact: bool
    """Whether g = f on this database for certain, up to the grid. Private."""
    reason: str
    """What the error bound rests on."""
    proof: str
    certain_when: str
    """The databases on which g = f is certain, in words. Public."""
    optimality: str = field(default=OPTIMALITY, repr=False)

    def __str__(self) -> str:
        return _optimality(self, f"{self.value:.12g}")


@frozen
class BoundedPair:
    """A pair g that keeps a promise on its sensitivity in the l1 norm."""

    statistic: str
    value: tuple[float, float]
    exact_value: tuple[Fraction, Fraction]
    promise: Promise
    error_bound: float
    """The l1 distance from g to f on this database, at most. Private."""
    exact: bool
    reason: str
    proof: str
    certain_when: str
    optimality: str = field(default=OPTIMALITY, repr=False)

    def __str__(self) -> str:
        return _optimality(self, f"({self.value[0]:.12g}, {self.value[1]:.12g})")


def _optimality(result: Bounded | BoundedPair, value: str) -> str:
    here = "g = f here" if result.exact else f"at most {result.error_bound:.6g} here"
    return "\n".join(
        [
            f"bounded {result.statistic} ({result.proof}; not a release: everything but the promise is private)",
            f"  value     {value}",
            f"  promise   {result.promise}",
            f"  error     {here} ({result.reason})",
            f"  certain   g = f when {result.certain_when}",
            f"  optimal   {result.optimality}",
        ]
    )
