"""What a release needs, settled before any budget is touched."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from fractions import Fraction

from secant.accuracy.trace import Traced
from secant.noise.calibrate import NoisePlan
from secant.noise.query_plan import Reading
from secant.plan import nodes as n
from secant.records import frozen
from secant.sensitivity.bound import CertifiedRelease
from secant.sensitivity.split import Decomposition

Keys = list[tuple[object, ...]]


@frozen
class ReleasePlan:
    """Everything that a release needs, settled before any budget is touched."""

    prepared: Decomposition
    noise: NoisePlan
    statements: Mapping[str, str]
    """Release name -> the statement over protected rows; further ones of a release are numbered."""
    readings: Mapping[str, Reading]
    """Release name -> how its measures are read."""
    traced: Traced
    level: Fraction
    rest: str
    """What follows the releases, as the engine would be told it if nothing were released."""
    groups: int
    """The most groups of the answer."""
    reads: Mapping[str, frozenset[str]]
    """Table -> the columns that some statement over protected rows reads of it."""
    keys: Mapping[str, Keys | None] = field(default_factory=dict)
    """Release name -> the keys that will be shown, once they are looked up; None where the release will find them."""
    certain: bool = False
    """Whether the ends that are told have to hold for every database."""


def released_fields(b: CertifiedRelease) -> tuple[n.Field, ...]:
    """Give the columns of the table that is released: keys, then measures."""
    released = b.release.finish.input
    assert isinstance(released, n.Released)
    return released.columns
