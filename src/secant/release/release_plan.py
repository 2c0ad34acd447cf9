"""What a release needs, settled before any budget is touched."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

from secant.accuracy.trace import Traced
from secant.noise.query_plan import Reading
from secant.noise.shares import NoisePlan
from secant.records import frozen
from secant.sensitivity.portfolio import Decomposition

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
