"""What the rows of one unit may weigh that are ranked, read off a noisy tally of units by octave: truncation.weights.

In: the tally, and how far noise leads in ranks for each limit. Out: the limit with which the quantile of weighted rows
lies nearest to that of all rows, usually, and how far apart the two usually are. All of it is post-processing of the
tally.
"""

from __future__ import annotations

import math
import random
from fractions import Fraction

from secant.noise.tail import OctaveTally, last_seen, likeliest_octave, people_above

SIDES = 1.5
"""How many deviations a usual unit's rows may lead to one side."""
USUAL = 0.9
"""Of the draws of who has how many rows, how many are told to have been worse."""


def limit_of_weights(tally: OctaveTally, q: Fraction, noise: float) -> tuple[int, float]:
    """Give which limit to take, and by how many rows the rank of the weighted quantile is usually off.

    `noise` is how many rows noise leads away for a limit of 1; it grows with the limit, and so does what all rows
    weigh. What a limit cuts of a unit with more rows is missed on the side on which these lie, and that is one side or
    the other for each unit by itself.
    """
    last = last_seen(tally, strict=True)
    if last is None:
        last = likeliest_octave(tally)
    seed = repr((tally.edges, tally.counts, tally.epsilon, last))
    generator = random.Random(seed)  # noqa: S311 - post-processing: nothing private rests on it
    people = people_above(tally, last, generator)
    side = SIDES * math.sqrt(float(q * (1 - q)))
    best: tuple[float, int, float] | None = None
    for index, edge in enumerate(tally.edges[1:-1]):
        missed = sorted(
            math.sqrt(math.fsum(many * (at - edge) ** 2 for many, at in draw if at > edge))
            for draw in people
        )
        weights = sorted(math.fsum(many * min(at, edge) for many, at in draw) for draw in people)
        usual = side * missed[int(USUAL * (len(missed) - 1))]
        cost = (usual + noise * edge) / max(weights[len(weights) // 2], 1.0)
        if best is None or cost < best[0]:
            best = cost, index, usual
    assert best is not None, "there is a limit"
    return best[1], best[2]
