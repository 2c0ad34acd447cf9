"""What a room hands back: a certificate with its derivation, or a refusal with its reason. Public values only."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from secant.plan.nodes import Node
from secant.terms.bounds import GlobalBound


@dataclass(frozen=True, slots=True)
class Step:
    """One application of a rule: which rule, where, what it gives, and from what."""

    rule: str
    place: str
    value: str
    premises: tuple[Step, ...] = ()


@dataclass(frozen=True, slots=True)
class KeyClaim:
    """A key of a public table that a bound rests on. It is checked on the public data before anything is spent."""

    table: str
    columns: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Certificate:
    """For one protection: how far each measure can move, in whole steps, all groups together (an L1 bound)."""

    room: str
    protection: str
    bounds: Mapping[str, GlobalBound]
    """Measure column -> bound."""
    rows: int
    """Rows of the aggregate's input that differ between neighbors, at most."""
    groups: int
    """Groups that differ between neighbors, at most."""
    contribution: int
    """What the number by which private keys are chosen can move in one group, at most."""
    claims: tuple[KeyClaim, ...]
    derivation: tuple[Step, ...]


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a room cannot bound a query."""

    room: str
    rule: str
    reason: str
    hint: str
    node: Node | None = None
