"""Algorithm 1 of the sensitivity sampler: how far a function moves when one record is replaced.

In: a function, a public distribution, the number of records, γ. Out: an estimate that can be
plotted, kept, and used for many releases. Protected data are never seen here, so nothing is spent;
m and k are fixed before the first draw (blackbox.exchange, blackbox.binomial, blackbox.dkw).
"""

from __future__ import annotations

import os
import secrets
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any

from numpy import ndarray
from numpy.random import Generator, SeedSequence, default_rng

from secant.blackbox.design import Design, Method, design, roomy
from secant.blackbox.distributions import Distribution, distribution_of
from secant.blackbox.estimate import Probe, Sensitivity, name_of
from secant.blackbox.identity import fingerprint
from secant.blackbox.measure import (
    Distance,
    Misbehaved,
    Ruler,
    ruler_of,
)
from secant.blackbox.records import neighbors, size_of
from secant.blackbox.state import RunState, run_state
from secant.blackbox.workers import Beat, Runs, Task, TimedOut, guarded, run_apart, run_here
from secant.display.progress import progress as shown
from secant.errors import UsageError, public_api
from secant.numeric.parameters import Number, count_of, positive
from secant.records import frozen
from secant.sensitivity.bounds import Norm

MOST_SAMPLES = 10**7
_SAMPLER = "the sampler"
PROBES = 3
"""So many samples are kept with their results, to be evaluated again when an estimate is used again."""
_REPEAT_EVERY = 1000  # samples; of each so many, one is evaluated twice to find randomness


@frozen
class _Pair:
    """One sample: two databases, two results, one distance. Runs in a child process."""

    function: Callable[[Any], Any]
    distribution: Distribution
    ruler: Ruler
    n: int
    seed: int

    def __call__(self, number: int, beat: Beat) -> tuple[float, tuple[int, ...] | None, str]:
        generator = default_rng(SeedSequence(self.seed, spawn_key=(number,)))
        beat()
        records = guarded(partial(self.distribution.draw, self.n + 1, generator), f"{_SAMPLER} ")
        try:
            enough = size_of(records) > self.n
        except UsageError:
            raise Misbehaved(f"{_SAMPLER} gave something other than records") from None
        if not enough:
            raise Misbehaved(f"{_SAMPLER} gave too few records: {self.n + 1} were asked for")
        one, two = neighbors(records, self.n)
        beat()
        first = self.ruler.read(self.function(one))
        beat()
        second = self.ruler.read(self.function(two))
        distance = self.ruler.apart(first, second)
        if number % _REPEAT_EVERY == 0:
            beat()
            again = self.ruler.read(self.function(neighbors(records, self.n)[0]))
            if self.ruler.apart(first, again) > 0:
                raise Misbehaved("is random: it gave two results for the same records")
        return distance, self.ruler.shape(first), _seal(first, second) if number < PROBES else ""


def _seal(first: Any, second: Any) -> str:
    if not (isinstance(first, ndarray) and isinstance(second, ndarray)):
        return ""
    return sha256(first.tobytes() + second.tobytes()).hexdigest()[:32]


@public_api
def sample_sensitivity(
    function: Callable[[Any], Any],
    sampler: Distribution | Callable[[int, Generator], Any],
    *,
    n: int,
    gamma: Number | None = None,
    m: int | None = None,
    method: Method = "exchangeability",
    confidence: Number | None = None,
    norm: Norm | Distance = "l1",
    points: Sequence[Any] | None = None,
    workers: int | None = None,
    time_limit: float = 300.0,
    progress: bool | None = None,
    state: str | Path | None = None,
    generator: Generator | None = None,
) -> Sensitivity:
    """Estimate how far `function` moves when one of `n` records from a distribution is replaced.

    Args:
        function: Takes a database of n records, gives numbers, an array, or a function of a point.
        sampler: The public distribution of a record.
        n: The number of records; public.
        gamma: The share of databases that need not be protected; with m alone, the least.
        m: How many samples; by default ten times the least that γ needs.
        method: `exchangeability`, `binomial` (with a `confidence`) or `dkw`, the paper's.
        confidence: For `binomial`: how sure to be of the estimate itself.
        norm: `l1`, `l2`, `linf`, or a function of two results.
        points: Where results that are functions are compared.
        workers: Processes; 0 runs in this one, without a time limit.
        time_limit: Seconds for one call of the function or the sampler.
        progress: Whether to show a bar; by default on a terminal and in a notebook.
        state: A file that keeps the run, so that it can be resumed.
        generator: For tests only: where the seed comes from, instead of the operating system.

    >>> import numpy as np
    >>> from secant.blackbox import exponential, sample_sensitivity
    >>> found = sample_sensitivity(np.mean, exponential(1.0), n=100, gamma=0.05)
    >>> 0.015 < found.estimate < 0.15, found.design.m
    (True, 199)
    """
    if not callable(function):
        raise UsageError("USE-001", "the function to be sampled is not callable")
    law, ruler, records = distribution_of(sampler), ruler_of(norm, points), count_of(n, "n")
    chosen = _chosen(gamma, m, method, confidence)
    processes = worker_count(workers)
    limit = float(positive(time_limit, "time_limit"))
    title, code = name_of(function), fingerprint(function)
    about = {
        "function": title,
        "code": code,
        "distribution": law.name,
        "n": records,
        "method": chosen.method,
        "gamma": str(chosen.gamma),
        "m": chosen.m,
        "k": chosen.k,
        "norm": ruler.name,
        "points": None if ruler.points is None else [list(point) for point in ruler.points],
    }
    started = time.perf_counter()
    with run_state(state, about, _seed(generator)) as run:
        task = _Pair(function, law, ruler, records, run.seed)
        resumed = bool(run.measured)
        if resumed and (code is None or not _agrees(task, _probes(run), processes, limit)):
            raise UsageError(
                "USE-009",
                "the state file is about another function",
                hint="name another state file, or remove this one to start afresh",
            )
        left = [number for number in range(chosen.m) if number not in run.measured]
        _measure(_runs(task, left, processes, limit), run, chosen.m, progress)
    return Sensitivity(
        distances=tuple(sorted(run.measured.values())),
        design=chosen,
        norm=ruler.name,
        distribution=law.name,
        function=title,
        code=code,
        n=records,
        shape=run.shape,
        ruler=ruler,
        law=law,
        seed=run.seed,
        probes=_probes(run),
        seconds=time.perf_counter() - started,
    )


def check_function(
    estimate: Sensitivity, function: Callable[[Any], Any], *, workers: int, time_limit: float
) -> None:
    """Refuse an estimate unless it was made for this very function (blackbox.reuse).

    Its code and what the code reaches must be the same, and so must its results on sampled records.
    """
    hint = "pass the distribution instead: the release then samples the function itself"
    if estimate.code is None:
        raise UsageError(
            "USE-001",
            "the estimate was made for a function that cannot be told from others by its code",
            hint=hint,
        )
    task = _Pair(function, estimate.law, estimate.ruler, estimate.n, estimate.seed)
    if fingerprint(function) != estimate.code or not _agrees(
        task, estimate.probes, workers, time_limit
    ):
        raise UsageError("USE-001", "the estimate was made for another function", hint=hint)


def _probes(state: RunState) -> tuple[Probe, ...]:
    """Give the samples that are compared later: the first ones, or any if those are not there yet."""
    numbers = sorted(state.measured)[:PROBES]
    return tuple(Probe(n, state.measured[n], state.seals.get(n, "")) for n in numbers)


def _agrees(task: _Pair, probes: Sequence[Probe], workers: int, time_limit: float) -> bool:
    """Evaluate kept samples again: the same distances, and the same results."""
    by_number = {probe.number: probe for probe in probes}
    with (
        closing(_runs(task, list(by_number), workers, time_limit)) as results,
        misbehavior("on sampled records"),
    ):
        return all(
            Probe(number, distance, seal) == by_number[number]
            for number, (distance, _, seal) in results
        )


def _chosen(
    gamma: Number | None, m: int | None, method: Method, confidence: Number | None
) -> Design:
    if gamma is not None and m is None:
        chosen = roomy(gamma, method, confidence)
    else:
        chosen = design(gamma=gamma, m=m, method=method, confidence=confidence)
    if chosen.m > MOST_SAMPLES:
        raise UsageError(
            "USE-001",
            f"this gamma would take {chosen.m} samples, more than {MOST_SAMPLES}",
            hint="take a larger gamma, or method='exchangeability', which needs the fewest",
        )
    return chosen


def _runs(task: Task, numbers: Sequence[int], workers: int, time_limit: float) -> Runs:
    if workers == 0:
        return run_here(task, numbers)
    return run_apart(task, numbers, workers=workers, time_limit=time_limit)


def _measure(runs: Runs, state: RunState, m: int, show_progress: bool | None) -> None:
    with closing(runs) as results, misbehavior("on sampled records"):
        first = next(results, None)  # children are forked before the bar starts its thread
        done = len(state.measured)
        with shown("sampling the sensitivity", m, done=done, requested=show_progress) as reached:
            while first is not None:
                number, (distance, shape, seal) = first
                if state.measured and state.shape != shape:
                    raise Misbehaved("gave results of different shapes")
                state.add(number, distance, shape, seal)
                reached(len(state.measured))
                state.flush()
                first = next(results, None)


@contextmanager
def misbehavior(where: str) -> Iterator[None]:
    """Turn what was found about foreign code into an error for its owner."""
    try:
        yield
    except (Misbehaved, TimedOut) as finding:
        what = str(finding)
        whose = "" if what.startswith(_SAMPLER) else "the function "
        raise UsageError(
            "USE-008", f"{whose}{what} ({where})", hint="try it on records of your own making first"
        ) from None


def _seed(generator: Generator | None) -> int:
    if generator is None:
        return secrets.randbits(256)
    if not isinstance(generator, Generator):
        raise UsageError("USE-001", "the generator is a numpy Generator, and for tests only")
    return int.from_bytes(generator.bytes(32), "little")


def worker_count(workers: int | None) -> int:
    """Give the number of processes: as asked, or one for each usable processor."""
    if workers is None:
        return (
            len(os.sched_getaffinity(0))
            if hasattr(os, "sched_getaffinity")
            else os.cpu_count() or 1
        )
    if isinstance(workers, bool) or not isinstance(workers, int) or not 0 <= workers <= 1024:
        raise UsageError("USE-001", "the number of workers is whole, between 0 and 1024")
    return workers


@frozen
class _Once:
    """The one run on protected data."""

    function: Callable[[Any], Any]
    data: Any
    ruler: Ruler

    def __call__(self, number: int, beat: Beat) -> Any:
        beat()
        return self.ruler.read(self.function(self.data))


def evaluated(
    function: Callable[[Any], Any],
    data: Any,
    estimate: Sensitivity,
    respond: Callable[[Any], Any],
    *,
    workers: int,
    time_limit: float,
) -> Any:
    """Give what `respond` makes of the result on protected data; of a failure, only that (blackbox.fail).

    The function runs in a process of its own; its result is handed to `respond` and kept nowhere.
    """
    task = _Once(function, data, estimate.ruler)
    runs = _runs(task, [0], workers, time_limit)
    with closing(runs) as results:
        try:
            _, value = next(results)
            if estimate.ruler.shape(value) != estimate.shape:
                raise Misbehaved("gave a result of another shape")
            return respond(value)
        except (Misbehaved, TimedOut):
            # which way it failed would tell more about the records than that it did
            raise UsageError(
                "USE-008",
                "the function failed on the protected data; what was charged stays charged",
                hint="make it give finite numbers of one shape for every database",
            ) from None
