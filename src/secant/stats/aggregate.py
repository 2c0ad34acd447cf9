"""Any function of rows: evaluated on blocks, and the median of the blocks released: statistic.blocks.

In: a function that gives one number for some rows, the rows, public bounds of its result. Out: a
`Release`. One row lies in one block, so it moves one of the results; the function itself needs no
proof. Where it fails, or gives no number, the block counts as `empty`: a failure shows in nothing.
"""

from __future__ import annotations

import math
import os
from dataclasses import replace
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from secant.errors import UsageError, public_api
from secant.numeric.parameters import Number, count_of
from secant.stats.calls import guarantee_of, release, terms_of
from secant.stats.definitions import rank_statistic, rank_ways
from secant.stats.inputs import check_values, numbers_of
from secant.stats.release import empty_index
from secant.stats.results import REPLACE, Neighbors, Release
from secant.stats.scale import Scale, Steps, scale_of
from secant.stats.time_limit import Function, check_time_limit, results_of

MOST_BLOCKS = 100_000
_EXPONENT = 60  # ε times the number of blocks: enough for the median to stand out of 2^30 points
_FEWEST_ROWS = 5  # in a block, where the number of rows is public


@public_api
def aggregate(
    function: Function,
    values: object,
    *,
    epsilon: Number,
    bounds: tuple[Number, Number],
    blocks: int | None = None,
    budget: object = None,
    neighbors: Neighbors | None = None,
    n: int | None = None,
    step: Number | None = None,
    empty: Number | None = None,
    compare: bool = False,
    mechanism: str = "auto",
    level: Number = 0.95,
    seconds: float | None = None,
) -> Release:
    """Release the typical result of a function on random blocks of rows (sample and aggregate).

    Args:
        function: Takes an array (rows, or rows by columns) and gives a number. It is called once
            for each block.
        values: The rows: anything that `median` takes, or a table of numbers. What is missing or no number is NaN.
        epsilon: The price.
        bounds: The public range of the function's results.
        blocks: How many; by default about 60/ε, and at least five rows each if n is public.
        budget: As for `median`.
        neighbors: As for `median`.
        n: As for `median`.
        step: As for `median`, of the results.
        empty: What an empty block counts as; by default the middle of the bounds.
        compare: As for `median`.
        mechanism: As for `median`.
        level: As for `median`.
        seconds: How long one block may take, measured in a process apart; a block that takes longer
            counts as empty. Without it the function runs here and must end by itself.

    >>> r = aggregate(lambda x: x.std(), [1.0, 3.0] * 5000, epsilon=2, bounds=(0, 2), step=0.01)
    >>> 0.8 < r.value < 1.2
    True
    """
    if not callable(function):
        raise UsageError("USE-001", "the function to aggregate must be callable")
    if seconds is not None:
        check_time_limit(seconds)
    terms = terms_of(
        values, epsilon=epsilon, budget=budget, neighbors=neighbors, n=n, compare=compare,
        mechanism=mechanism, level=level,
    )  # fmt: skip
    scale = scale_of(bounds, step)
    other = empty_index(empty, scale)
    columns = _columns(values)
    check_values(values, columns=columns)
    pieces = _blocks(blocks, terms.epsilon, terms.size)
    # to the median a changed row is one result replaced, whatever happened to the row
    inner = replace(terms, neighbors=REPLACE, size=pieces)
    statistic = replace(
        rank_statistic(Fraction(1, 2), scale, REPLACE, other),
        name="aggregate",
        rows=f"of the {pieces} block results",
    )
    return release(
        values,
        scale,
        statistic,
        rank_ways(statistic, inner),
        inner,
        # the function sees what is missing as NaN: a block where that fails, or gives no number, counts as empty
        read=lambda given: block_results(
            function, numbers_of(given, columns=columns), pieces, scale, other, seconds
        ),
        guarantee=guarantee_of(terms),
    )


def _blocks(blocks: int | None, epsilon: Fraction, size: int | None) -> int:
    if blocks is not None:
        if count_of(blocks, "blocks") > MOST_BLOCKS:
            raise UsageError("USE-001", f"more than {MOST_BLOCKS} blocks are not made")
        return blocks
    wanted = min(max(math.ceil(_EXPONENT / epsilon), 11), MOST_BLOCKS)
    return wanted if size is None else max(1, min(wanted, size // _FEWEST_ROWS))


def _columns(values: object) -> int | None:
    shape = getattr(values, "shape", None)
    return int(shape[1]) if isinstance(shape, tuple) and len(shape) == 2 else None


def block_results(
    function: Function,
    rows: npt.NDArray[np.float64],
    blocks: int,
    scale: Scale,
    empty: int,
    seconds: float | None = None,
) -> Steps:
    """Give the function of each block, on the scale; each row falls into a block by itself."""
    places = np.frombuffer(os.urandom(8 * len(rows)), dtype=np.uint64) % np.uint64(blocks)
    order = np.argsort(places, kind="stable")
    ends = np.searchsorted(places[order], np.arange(blocks + 1, dtype=np.uint64))
    parts = [
        rows[order[start:end]]
        for start, end in zip(ends[:-1].tolist(), ends[1:].tolist(), strict=True)
    ]
    found = results_of(function, parts, seconds)
    known = np.array([np.nan if result is None else result for result in found])
    steps = np.full(blocks, empty, dtype=np.int64)
    good = np.isfinite(known)
    steps[good] = scale.snap(known[good])
    return steps
