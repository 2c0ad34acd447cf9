"""The one small interface of all analyses."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field
from functools import wraps
from typing import Protocol, TypeVar

from secant.plan.facts.facts import Facts
from secant.plan.nodes import Scalar
from secant.plan.rewrites.enforce import MeasuredAggregate
from secant.policy.coverage import EveryTable
from secant.policy.policy import Policy, Protection
from secant.records import frozen
from secant.schema.catalog import Catalog
from secant.sensitivity.certificate import CannotBound, Certificate, Refusal
from secant.sensitivity.public_facts import OpenFacts


@frozen
class Request:
    """What an analysis is asked: this release, under this protection, where these facts hold."""

    release: MeasuredAggregate
    facts: Facts
    protection: Protection
    public_rows: Mapping[str, Scalar] = field(default_factory=dict)
    """Scan alias -> condition on public columns under which a row does not move, for `cells`."""
    open: OpenFacts | None = None
    """Public facts of tables that no protection hides rows of; None where nothing is looked up."""

    def count(self, table: str) -> int | None:
        """Give the rows of a table, where their number is public."""
        return None if self.open is None else self.open.count(table)

    def fan(self, table: str, columns: tuple[str, ...]) -> int | None:
        """Give the rows of a table that agree in some public columns, at most, where that is public."""
        return None if self.open is None else self.open.fan(table, columns)

    @property
    def policy(self) -> Policy:
        """The owner's policy."""
        return self.facts.policy

    @property
    def catalog(self) -> Catalog:
        """The engine's tables."""
        return self.facts.catalog

    @property
    def covered(self) -> frozenset[str] | EveryTable:
        """The tables that the protection covers."""
        return self.facts.covered(self.protection)


class Analysis(Protocol):
    """One way to bound how far an answer moves between neighboring databases."""

    name: str
    kinds: tuple[str, ...]
    """The kinds of protection that it has rules for."""

    def bound(self, request: Request) -> Certificate | Refusal:
        """Give a certificate, or refuse with a reason; never raise because something is unknown."""
        ...


A = TypeVar("A", bound=Analysis)


def refusing(
    bound: Callable[[A, Request], Certificate | Refusal],
) -> Callable[[A, Request], Certificate | Refusal]:
    """Let a verdict that stops an analysis leave as its refusal."""

    @wraps(bound)
    def bound_or_refuse(analysis: A, request: Request) -> Certificate | Refusal:
        try:
            return bound(analysis, request)
        except CannotBound as verdict:
            return verdict.refusal(analysis.name)

    return bound_or_refuse


class LazyAnalysis:
    """An analysis that is imported when it is first asked: one that no question needs costs no command its start."""

    def __init__(self, name: str, kinds: tuple[str, ...], make: Callable[[], Analysis]) -> None:
        self.name, self.kinds, self._made = name, kinds, make

    def bound(self, request: Request) -> Certificate | Refusal:
        """Ask the analysis itself."""
        return self._made().bound(request)
