"""What a release needs, settled before any budget is touched, and what it will ask the engine."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction

from secant.analysis.certificate import Clipped, Survey, Surveyed
from secant.analysis.derivative.statement import Instrument
from secant.analysis.portfolio import Bounded, Prepared
from secant.plan import nodes as n
from secant.release.error import Traced
from secant.release.shares import Calibrated

Keys = list[tuple[object, ...]]


@dataclass(frozen=True, slots=True)
class Job:
    """Everything that a release needs, settled before any budget is touched."""

    prepared: Prepared
    noise: Calibrated
    statements: Mapping[str, str]
    """Release name -> the statement over protected rows; further ones of a release are numbered."""
    instruments: Mapping[str, Instrument]
    """Release name -> where the parts of smooth bounds stand, for releases that have them."""
    traced: Traced
    level: Fraction
    rest: str
    """What follows the releases, as the engine would be told it if nothing were released."""
    groups: int
    """The most groups of the answer."""
    reads: Mapping[str, frozenset[str]]
    """Table -> the columns that some statement over protected rows reads of it."""


def directly_measured(b: Bounded, noise: Calibrated) -> n.Aggregate:
    """Give the exact aggregate without the measures whose limits are chosen first."""
    kept = tuple(
        call
        for call, m in zip(b.release.exact.aggregations, b.release.measures, strict=True)
        if noise.noise[m.column].clipped is None
    )
    if len(kept) == len(b.release.measures):
        return b.release.exact
    return replace(b.release.exact, aggregations=kept)


def surveys_of(b: Bounded, noise: Calibrated) -> list[Survey]:
    """Give the surveys that measures of a release rest on, each once."""
    found: dict[int, Survey] = {}
    for m in b.release.measures:
        bound = noise.noise[m.column].curve
        if isinstance(bound, Surveyed):
            found |= {id(s): s for s in bound.surveys}
    return list(found.values())


def survey_name(release: str, survey: int, statement: int) -> str:
    """Name a statement of a survey."""
    return f"{release} survey {survey + 1}.{statement + 1}"


def clipped_of(b: Bounded, noise: Calibrated) -> dict[str, Clipped]:
    """Give the measures to which units add no more than a limit, in order."""
    found = {m.column: noise.noise[m.column].clipped for m in b.release.measures}
    return {column: bound for column, bound in found.items() if bound is not None}


def contributions_of(b: Bounded, noise: Calibrated) -> list[dict[str, Clipped]]:
    """Give the measures to which units add no more than a limit, those of one statement together."""
    found: dict[int, dict[str, Clipped]] = {}
    for column, bound in clipped_of(b, noise).items():
        found.setdefault(id(bound.contributions), {})[column] = bound
    return list(found.values())


def numbered(name: str, index: int) -> str:
    """Name the statements of a release that has several."""
    return f"{name} {index + 1}" if index else name
