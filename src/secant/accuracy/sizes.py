"""How large will an answer be, roughly? Read off declared and public sizes, for what is said before anything is spent.

In: a job, its public keys, the policy, public facts. Out: about what each measure will be in one group, in whole steps.
Rows are taken to lie evenly in declared ranges and groups, so a guess is good to about a factor of ten; nothing that is
released depends on it, and no statement about privacy or about a printed error does.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

from secant.plan import nodes as n
from secant.plan.facts.cardinality import expected_size
from secant.policy.policy import Policy
from secant.records import frozen
from secant.release.release_plan import Keys, ReleasePlan
from secant.sensitivity.bound import CertifiedRelease
from secant.sensitivity.certificate import CannotBound
from secant.sensitivity.public_facts import PublicFacts
from secant.sensitivity.summands import ends_of_row


@frozen
class Guess:
    """About what one group of a release holds."""

    rows: float
    """Rows that are expected behind one number."""
    steps: Mapping[str, tuple[float, float]]
    """Measure column -> the ends between which it is expected, in whole steps; alike where one number is expected."""


def guesses(
    job: ReleasePlan, keys: Mapping[str, Keys | None], policy: Policy, facts: PublicFacts
) -> dict[str, Guess]:
    """Give for each release what is expected of it; none where a table's size or the number of groups is not public."""
    by_name: dict[str, Guess] = {}
    for b in job.prepared.bounded:
        shown = keys[b.release.name]
        rows = expected_size(b.release.original.input, policy, facts.count, facts.fan)
        if rows is not None and shown:
            by_name[b.release.name] = _guess(b, rows / usual_groups(shown))
    return by_name


def usual_groups(keys: Keys) -> int:
    """Give among how many groups rows are expected: those without NULL, if there are some."""
    return sum(None not in key for key in keys) or len(keys)


def _guess(b: CertifiedRelease, rows: float) -> Guess:
    steps: dict[str, tuple[float, float]] = {}
    for measure, call in zip(b.release.measures, b.release.exact.aggregations, strict=True):
        each = _each(call, measure.step)
        if each is not None:
            low, high = each
            steps[measure.column] = (rows * low, rows * high)
    return Guess(rows, steps)


def _each(call: n.Aggregation, step: Fraction) -> tuple[float, float] | None:
    """Give what a usual row adds, in whole steps: half of what it can add, if values lie evenly."""
    if call.distinct:
        return None  # how many different values there are, rows do not tell
    if call.function == "count":
        return 1.0, 1.0
    try:
        high, low = (float(x) for x in ends_of_row(call, step))
    except CannotBound:
        return None
    # A summand of one sign adds up; with both signs, sums on either side of zero are usual.
    return ((low + high) / 2,) * 2 if low * high == 0 else (low / 2, high / 2)
