"""Algorithm 2 of the sensitivity sampler: sample, then respond (blackbox.induced).

In: a function, protected data, a public distribution, ε, δ, γ. Out: a noisy result with its
(ε, δ, γ)-random differential privacy, error and cost. Everything that can be refused is refused
before the data are touched; the budget is held before the function sees them, and stays spent.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

from numpy.random import Generator

from secant.blackbox.design import Method
from secant.blackbox.distributions import Distribution
from secant.blackbox.estimate import Sensitivity, name_of
from secant.blackbox.guarantee import promise
from secant.blackbox.measure import Distance
from secant.blackbox.records import size_of
from secant.blackbox.respond import (
    OWN,
    Custom,
    Listed,
    alternatives,
    calibrated,
    check_delta,
    check_estimate,
    lattice_of,
    mechanism_of,
    norm_for,
)
from secant.blackbox.result import BlackboxRelease, stated_error
from secant.blackbox.sampling import check_function, evaluated, sample_sensitivity, worker_count
from secant.errors import Refused, UsageError, public_api
from secant.ledger.amounts import as_written
from secant.numeric.parameters import Number, delta_of, epsilon_of, level_of, positive
from secant.sensitivity.bounds import Norm
from secant.stats.budget import Allowance, Done, budget_of, paid


@public_api
def release(
    function: Callable[[Any], Any],
    data: Any,
    sampler: Distribution | Callable[[int, Generator], Any] | Sensitivity,
    *,
    epsilon: Number,
    gamma: Number | None = None,
    delta: Number = 0,
    mechanism: str | Listed | Custom = "laplace",
    norm: Norm | Distance | None = None,
    m: int | None = None,
    method: Method = "exchangeability",
    confidence: Number | None = None,
    candidates: Sequence[Any] | None = None,
    least: Number = 0,
    grid: Number | None = None,
    level: Number = Fraction(95, 100),
    budget: Allowance | None = None,
    workers: int | None = None,
    time_limit: float = 300.0,
    progress: bool | None = None,
    state: str | Path | None = None,
    generator: Generator | None = None,
) -> BlackboxRelease:
    """Release `function(data)` with (ε, δ, γ)-random differential privacy for a distribution.

    Args:
        function: Any program of the records: deterministic, and with results of one shape.
        data: The protected records: rows of an array, of a frame, or a list. Their number is public.
        sampler: The public distribution of a record, or an estimate that was made before.
        epsilon: The price.
        gamma: The share of databases that need not be protected; not with an earlier estimate.
        delta: For `gaussian`.
        mechanism: `laplace`, `gaussian`, `exponential`, `permute-and-flip` (the function gives a
            score for each candidate), `bernstein` (it gives a function on the unit cube),
            `posterior` (it gives the log-likelihood of each candidate), one of these with
            parameters, or a function of result, sensitivity, ε and δ.
        norm: What distances are sampled in; by default what the mechanism needs.
        m: How many samples; by default ten times the least that γ needs.
        method: `exchangeability`, `binomial` or `dkw`; see `sample_sensitivity`.
        confidence: For `binomial`: how sure to be of the estimate itself.
        candidates: For a choice: what the scores stand for.
        least: A public floor for the sensitivity; needed where the sampled one is zero.
        grid: The step that results are released on; by default far finer than the noise.
        level: For the stated error.
        budget: The protection that is charged; without it nobody is.
        workers: Processes; 0 runs in this one, without a time limit.
        time_limit: Seconds for one call of the function or the sampler.
        progress: Whether to show a bar; by default on a terminal only.
        state: A file that keeps the sampling, so that it can be resumed.
        generator: For tests only: where the seed of the sampling comes from.

    >>> import numpy as np
    >>> from secant.blackbox import exponential, release
    >>> waits = np.random.default_rng().exponential(size=500)
    >>> found = release(np.mean, waits, exponential(1.0), epsilon=1.0, gamma=0.05)
    >>> found.guarantee.gamma
    Fraction(1, 20)
    """
    price = epsilon_of(as_written(epsilon, what="epsilon", code="USE-002"))
    slack = delta_of(as_written(delta, what="delta", code="USE-003"))
    floor = as_written(least, what="least")
    if floor < 0:
        raise UsageError("USE-001", "the least sensitivity is not negative")
    sure = level_of(as_written(level, what="level", code="USE-004"))
    chosen = mechanism_of(mechanism)
    check_delta(chosen, slack)
    payer = check_budget(budget)
    processes, limit = worker_count(workers), float(positive(time_limit, "time_limit"))
    n = size_of(data)
    if n < 1:
        raise UsageError("USE-001", "there is no record: a release needs one at least")
    if isinstance(sampler, Sensitivity):
        if any(option is not None for option in (gamma, m, norm, state, confidence)):
            raise UsageError("USE-001", "an estimate has its own gamma, m, norm and state already")
        estimate = sampler
        check_estimate(estimate, n, chosen)
        check_function(estimate, function, workers=processes, time_limit=limit)
    else:
        if gamma is None and m is None:
            raise UsageError("USE-004", "a release from a distribution needs gamma")
        estimate = sample_sensitivity(
            function,
            sampler,
            n=n,
            gamma=gamma,
            m=m,
            method=method,
            confidence=confidence,
            norm=norm_for(norm, chosen),
            points=lattice_of(chosen),
            workers=workers,
            time_limit=time_limit,
            progress=progress,
            state=state,
            generator=generator,
        )
    check_estimate(estimate, n, chosen)
    reckoned = alternatives(chosen, estimate.size)
    noise, respond = calibrated(chosen, estimate, price, slack, floor, grid, candidates)
    facts = {
        "function": estimate.function,
        "code": estimate.code,
        "distribution": estimate.distribution,
        "records": n,
        "method": estimate.design.method,
        "samples": estimate.design.m,
        "order": estimate.design.k,
        "missed": estimate.design.gamma,
        "unlucky": estimate.design.rho,
        "norm": estimate.norm,
        "sensitivity": max(estimate.value, floor),
        "results": estimate.size,
    }
    done = Done(estimate.function, noise, facts, gamma=estimate.design.total)
    with paid(payer, price, done, delta=slack) as cost:
        value = evaluated(function, data, estimate, respond, workers=processes, time_limit=limit)
    return BlackboxRelease(
        value,
        promise(
            price,
            slack,
            estimate.design,
            distribution=estimate.distribution,
            n=n,
            estimate=estimate.name,
            assumptions=trusted(payer) + (() if noise is not None else (OWN,)),
        ),
        noise.name if noise is not None else f"your own: {name_of(mechanism)}",
        estimate,
        noise,
        sure,
        stated_error(noise, sure, reckoned),
        cost.charged_to,
        cost.release_id,
    )


# ── which protections may pay for a black box, and what the promise then takes on trust ────────────


ACCEPTED = "random differential privacy"
"""What an owner lists under `accept` to let releases of this kind draw on a protection."""


def check_budget(budget: object) -> Allowance | None:
    """Refuse early what could not be charged later; reads nothing but the budget."""
    allowance = budget_of(budget)
    if allowance is None:
        return None
    if allowance.protection.personal is not None:
        raise Refused(
            "REF-101",
            f"people under the protection {allowance.name!r} give different amounts of epsilon",
            hint="ask in SQL, or with secant.stats.personal",
        )
    if ACCEPTED not in allowance.accept:
        raise Refused(
            "REF-101",
            f"the protection {allowance.name!r} promises differential privacy, and this is weaker",
            hint=f"the data owner can add {ACCEPTED!r} to `accept`, or leave out the budget",
        )
    if not allowance.gamma:
        raise Refused(
            "REF-101",
            f"the protection {allowance.name!r} allows no share gamma of databases without a promise",
            hint=f"the data owner can set `gamma` in [protections.{allowance.name}]; shares of releases add up",
        )
    return allowance


def trusted(budget: Allowance | None) -> tuple[str, ...]:
    """Say what the promise takes on trust because of who pays."""
    if budget is None:
        return ()
    assumptions = budget.assumptions()
    if budget.neighbors != "replace":
        assumptions += (f"the number of records is public, also under protection {budget.name!r}",)
    return assumptions
