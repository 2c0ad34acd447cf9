"""Sums that are measured about a center: which center, which limit, and what lies beyond it, read in steps.

Rests on truncation.center.

In: noise whose center is yet to be chosen, and what runs a plan over protected rows. Out: the noise with its center and
its limit, which are public, and what units add beyond the center, cut down to the limit, which is private. Each step is
drawn before the next is asked, for the next depends on it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from secant.noise.centered import CenteredLimit, CenterToChoose, points_around
from secant.noise.secrecy import Private
from secant.plan import nodes as n
from secant.release.tallies import Tally, read_tallies
from secant.sensitivity.certificate import Tallies

Run = Callable[[n.Relation], list[tuple[Any, ...]]]
"""How the rows of a plan are computed."""


def center_of(noise: CenterToChoose, rows: int, run: Run) -> int:
    """Choose a center privately: by where units' averages lie, then by the sum about that; `rows` is a noisy count."""
    centering = noise.centering
    center = centering.anchor
    for _ in range(2):
        points = points_around(centering, center)
        counted = {int(place): int(units) for place, units in run(centering.placed(points))}
        center = noise.placed(points, Private(counted))
    tallies = centering.whole(center).at_once
    assert tallies is not None, "without groups, all is counted at once"
    look = noise.first_look()
    tally = _tally(tallies, run)
    settled = look.settled(Private(tally.above), 1)
    (beyond,) = settled.draw(Private([tally.cut[look.bound.limits.index(settled.limit)]]))
    return noise.moved(center, beyond, settled, rows)


def read_about(
    noise: CenterToChoose, center: int, groups: int, run: Run
) -> tuple[CenteredLimit, list[tuple[Any, ...]]]:
    """Choose a limit for what lies beyond a center; give rows of keys and what is left, in parts of a step."""
    contributions = noise.centering.about(center)
    tallies = contributions.at_once or contributions.above
    assert tallies is not None, "a tally chooses the limit"
    tally = _tally(tallies, run)
    settled = noise.settled(Private(tally.above), groups)
    if contributions.at_once is not None:
        rows = [(tally.cut[noise.bound.limits.index(settled.limit)],)]
    else:
        (column,) = tallies.limits
        rows = run(contributions.clipped({column: settled.limit}))
    return noise.about(center, settled), rows


def _tally(tallies: Tallies, run: Run) -> Tally:
    (column,) = tallies.limits
    counted = read_tallies(tallies, run(tallies.plan), lambda _, x: 0 if x is None else int(x))
    return counted[column]
