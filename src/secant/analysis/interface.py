"""The one small interface of all rooms."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from secant.analysis.certificate import Certificate, Refusal
from secant.plan.enforce import Release
from secant.terms.catalog import Catalog
from secant.terms.policy import Policy, Protection


@dataclass(frozen=True, slots=True)
class Request:
    """What a room is asked: this release, under this protection of this policy."""

    release: Release
    policy: Policy
    protection: Protection
    catalog: Catalog


class Analysis(Protocol):
    """One way to bound how far an answer moves between neighboring databases."""

    name: str

    def bound(self, request: Request) -> Certificate | Refusal:
        """Give a certificate, or refuse with a reason; never raise because something is unknown."""
        ...
