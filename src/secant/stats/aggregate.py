"""Any function of rows: evaluated on blocks, and the median of the blocks released: statistic.blocks.

In: a function that gives one number for some rows, the rows, public bounds of its result. Out: a
`Release`. One row lies in one block, so it moves one of the results; the function itself needs no
proof. Where it fails, or gives no number, the block counts as `empty`: a failure shows in nothing.
"""

from __future__ import annotations

import math
import multiprocessing
import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from secant.errors import UsageError, public_api
from secant.numeric.parameters import Number, count_of
from secant.stats.calls import guarantee_of, release, terms_of
from secant.stats.definitions import rank_mechanisms, rank_statistic
from secant.stats.inputs import check_values, numbers_of
from secant.stats.results import REPLACE, Neighbors, Release
from secant.stats.scale import Scale, Steps, scale_of
from secant.stats.table import empty_index

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
        rank_mechanisms(statistic, inner),
        inner,
        # the function sees what is missing as NaN: a block where that fails, or gives no number, counts as empty
        read=lambda raw: block_results(
            function, numbers_of(raw, columns=columns), pieces, scale, other, seconds
        ),
        guarantee=guarantee_of(terms),
    )


def _blocks(blocks: int | None, epsilon: Fraction, size: int | None) -> int:
    if blocks is not None:
        if count_of(blocks, "blocks") > MOST_BLOCKS:
            raise UsageError("USE-001", f"more than {MOST_BLOCKS} blocks are not made")
        return blocks
    target = min(max(math.ceil(_EXPONENT / epsilon), 11), MOST_BLOCKS)
    return target if size is None else max(1, min(target, size // _FEWEST_ROWS))


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
    results = results_of(function, parts, seconds)
    numbers = np.array([np.nan if result is None else result for result in results])
    steps = np.full(blocks, empty, dtype=np.int64)
    good = np.isfinite(numbers)
    steps[good] = scale.snap(numbers[good])
    return steps


# ── a function of the caller's on one block after another, each with a limit of time if one is asked for ───


Rows = npt.NDArray[np.float64]
Function = Callable[[Rows], Any]


def results_of(
    function: Function, blocks: Sequence[Rows], seconds: float | None
) -> list[float | None]:
    """Call the function on each block: here, or with a limit of time in a process apart."""
    if seconds is None:
        return [_result(function, rows) for rows in blocks]
    return _results_apart(function, blocks, seconds)


def _results_apart(
    function: Function, blocks: Sequence[Rows], seconds: float
) -> list[float | None]:
    """Let a child process work through the blocks; end it where one takes too long, and go on."""
    results: list[float | None] = []
    context = _forking()
    while len(results) < len(blocks):
        answers, sender = context.Pipe(duplex=False)
        child = context.Process(
            target=_serve, args=(function, blocks[len(results) :], sender), daemon=True
        )
        child.start()
        sender.close()
        try:
            while len(results) < len(blocks):
                if not answers.poll(seconds):
                    results.append(None)
                    break
                results.append(answers.recv())
        except EOFError:  # the child died of this block
            results.append(None)
        finally:
            child.kill()
            child.join()
            answers.close()
    return results


def check_time_limit(seconds: float) -> None:
    """Refuse a limit that cannot be kept, before anything is read."""
    if not 0 < seconds <= 86_400:
        raise UsageError("USE-001", "a block may take more than 0 and at most 86400 seconds")
    _forking()


def _forking() -> Any:
    if "fork" not in multiprocessing.get_all_start_methods():
        raise UsageError(
            "USE-001",
            "a limit of time needs a system that can fork processes",
            hint="Leave out seconds, if the function surely ends.",
        )
    return multiprocessing.get_context("fork")


def _serve(function: Function, blocks: Sequence[Rows], sender: Any) -> None:
    for rows in blocks:
        sender.send(_result(function, rows))


def _result(function: Function, rows: Rows) -> float | None:
    if not len(rows):
        return None
    try:
        with np.errstate(all="ignore"):
            result = function(rows)
        return float(result) if np.ndim(result) == 0 else None
    except (Exception, SystemExit):  # noqa: BLE001 - whether a block fails depends on its rows, and must not show
        return None
