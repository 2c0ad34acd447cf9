"""Which way a statistic is released, from public facts alone: statistic.choice.

In: the ways that are possible, the number of rows if it is public, the scale. Out: the way whose mean
error is least far above the best one's on made-up data of three shapes, and a sentence that says so.
The caller's data are not an argument here.
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import NormalDist
from typing import Protocol, TypeVar

import numpy as np

from secant.errors import UsageError
from secant.records import frozen
from secant.stats.mechanisms import Mechanism
from secant.stats.results import Candidate
from secant.stats.scale import Steps

ASSUMED_ROWS = 1000
"""What examples have where the number of rows is not public."""
_MOST_ROWS = 100_000  # larger examples say nothing new
_EVEN = 1.1  # a preferred way is not given up for less
_TINY = 0.1


def examples(size: int | None, top: int) -> dict[str, Steps]:
    """Give sorted made-up values: evenly spread, in a tenth of the range, and skewed like incomes.

    >>> {name: len(values) for name, values in examples(5, 100).items()}
    {'even': 5, 'narrow': 5, 'skewed': 5}
    """
    count = min(ASSUMED_ROWS if size is None else size, _MOST_ROWS)
    places = (np.arange(count) + 0.5) / max(count, 1)
    normal = NormalDist()
    skewed = [min(1.0, 0.03 * float(np.exp(0.8 * normal.inv_cdf(p)))) for p in places.tolist()]
    shapes = {"even": places, "narrow": 0.45 + 0.1 * places, "skewed": np.array(skewed)}
    return {name: np.rint(shape * top).astype(np.int64) for name, shape in shapes.items()}


@frozen
class Decision:
    """The way that is taken, and the errors of all."""

    way: Mechanism
    why: str
    candidates: tuple[Candidate, ...]
    assumed: str


def decide_mechanism(
    groups: Sequence[Sequence[Mechanism]],
    wanted: str,
    *,
    size: int | None,
    top: int,
    measure: bool,
    on_request: Sequence[str] = (),
) -> Decision:
    """Pick the best variant of each family, then the family that is wanted or that is best.

    Args:
        groups: By family, variants in order of preference; families in order of preference.
        wanted: `auto`, or the name of a family.
        size: The number of rows, if it is public.
        top: The last index of the values' scale.
        measure: Whether errors are computed also where only one way is left.
        on_request: Families that `auto` never takes.
    """
    families = {group[0].family: group for group in groups if group}
    if wanted != "auto" and wanted not in families:
        known = ", ".join(families)
        raise UsageError(
            "USE-001", f"there is no mechanism {wanted!r} for this", hint=f"there are: {known}"
        )
    public = f"{size} rows" if size is not None else f"{ASSUMED_ROWS} rows assumed"
    open_to = [wanted] if wanted != "auto" else [f for f in families if f not in on_request]
    left = [families[family] for family in open_to]
    if not measure and len(left) == 1 and len(left[0]) == 1:
        reason = "as asked" if wanted != "auto" else "the only one for this statistic"
        return Decision(left[0][0], reason, (), public)
    data = examples(size, top)
    errors = {
        id(way): {name: way.expected(values) for name, values in data.items()}
        for group in families.values()
        for way in group
    }
    best = {family: steadiest(group, errors) for family, group in families.items()}
    candidates = tuple(Candidate(family, errors[id(way)]) for family, way in best.items())
    if wanted != "auto":
        return Decision(best[wanted], "as asked", candidates, public)
    rivals = [best[family] for family in open_to]
    way = steadiest(rivals, errors)
    worst = _worst(way, rivals, errors)
    lead = "the least error" if worst <= 1 else f"at most {worst:.3g} times the least error"
    why = f"{lead} of {', '.join(open_to)} on made-up data of three shapes ({public})"
    if on_request:
        why += (
            f"; {', '.join(on_request)} only if asked for: outliers move it farther than its noise"
        )
    return Decision(way, why, candidates, public)


class Stepping(Protocol):
    """Whatever has errors in steps."""

    @property
    def step(self) -> float:
        """Give what is as good as no error, ten times over."""
        ...


W = TypeVar("W", bound=Stepping)


def steadiest(ways: Sequence[W], errors: dict[int, dict[str, float]]) -> W:
    """Give the first way that is about as good as the one least far above the best."""
    worst = [_worst(way, ways, errors) for way in ways]
    return next(way for way, far in zip(ways, worst, strict=True) if far <= _EVEN * min(worst))


def _worst(way: W, ways: Sequence[W], errors: dict[int, dict[str, float]]) -> float:
    rivals = [errors[id(other)] for other in ways]
    own = errors[id(way)]
    tiny = _TINY * way.step  # a small part of a step of the answer is as good as nothing
    return max((own[n] + tiny) / (min(r[n] for r in rivals) + tiny) for n in own)
