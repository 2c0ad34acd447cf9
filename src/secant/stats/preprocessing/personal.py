"""preprocess.personal: a statistic released so that everybody has the ε that they were promised.

In: values, the ε of the person behind each, all ε that anybody may have, the scale of the noise. Out: a `Release`.
Somebody with half the ε may move the statistic half as far; the noise is that of the many. Who is present, and so which
ε are, is data: neither is looked at before the charge.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction

import numpy as np

from secant.errors import UsageError, public_api
from secant.noise.mechanisms.personal import PersonalLimit, PersonalNoise
from secant.numeric.parameters import Number, epsilon_of, positive
from secant.stats.bounded import NAMES, specified, uniform_finding
from secant.stats.budget import Allowance
from secant.stats.calls import terms_of
from secant.stats.inputs import (
    Values,
    check_lengths,
    check_values,
    clamped,
    decimal_of,
    number_of,
    numbers_of,
    public_number,
)
from secant.stats.plain import Sentences, plain_release
from secant.stats.preprocessing.layers import bounded_layers
from secant.stats.preprocessing.ordered import EXTENDED
from secant.stats.promises import Finding
from secant.stats.results import ADD_REMOVE, Release

MOST_OFFERS = 1000
_FINE = 1 << 10


@public_api
def personal(
    statistic: str,
    values: object,
    *,
    epsilons: object,
    offers: Sequence[Number],
    scale: Number,
    empty: Number | None = None,
    q: Number | None = None,
    trim: Number | None = None,
    budget: object = None,
    level: Number = 0.95,
) -> Release:
    """Release a statistic by name with an ε for each person.

    Args:
        statistic: `mean`, `trimmed_mean`, `median`, `quantile`, `minimum`, `maximum` or `variance`.
        values: One value for each person who is there.
        epsilons: The ε of each of them; one between two offers counts as the smaller, who has less than all of them
            is left out, and so is whoever has no value.
        offers: All ε that anybody may have, those who are not there too. Public.
        scale: The scale of the noise: somebody moves the statistic by at most their ε times it. Public.
        empty: The value for no people, 0 unless given; for the variance it is 0.
        q: Of a quantile.
        trim: Of a trimmed mean.
        budget: Pays the largest ε of the offers; its neighbors must add or remove a row.
        level: The probability that the error bar holds with.

    >>> found = personal("median", [4.0] * 60, epsilons=[1] * 60, offers=["0.25", 1], scale="0.1")
    >>> 2 < found.value < 6
    True
    """
    if statistic not in NAMES:
        raise UsageError("USE-001", f"a personal statistic is one of: {', '.join(NAMES)}")
    spec = specified(statistic, q, trim)
    assert spec is not None
    if not EXTENDED and statistic in ("mean", "trimmed_mean"):
        raise UsageError("USE-001", "on this machine floats are too short for that without bounds")
    declared = _offers(offers)
    width = positive(decimal_of(scale, "scale"), "scale")
    center = Fraction(0) if empty is None else public_number(empty, "empty")
    if statistic == "variance" and center:
        raise UsageError("USE-001", "the variance of no values is 0")
    most = max(declared)
    terms = terms_of((), epsilon=most, budget=budget, neighbors=ADD_REMOVE, level=level)
    terms = replace(terms, budget=_in_proportion(terms.budget, declared))
    check_values(values)
    if not isinstance(epsilons, (list, tuple)):  # lists may hold texts, as they were written
        check_values(epsilons, what="epsilons")
    check_lengths(values, epsilons)
    limits = [PersonalLimit(width * own, own) for own in declared]
    calibrated = PersonalNoise().calibrate(limits, grid=width * min(declared) / _FINE)

    def one_limit(part: Values, largest: Fraction) -> Finding:
        return uniform_finding(spec, part, largest, center)

    def answer() -> Fraction:
        numbers = numbers_of(values)
        accepted = [_offered(own, declared) for own in _floats(epsilons)]
        if len(accepted) != len(numbers):
            raise UsageError("USE-001", "each value needs the epsilon of one person")
        people = zip(numbers.tolist(), accepted, strict=True)
        here = [(x, e) for x, e in people if e is not None and not math.isnan(x)]
        data = clamped(np.array([x for x, _ in here], dtype=np.float64), None)
        own = [width * e for _, e in here]
        classes = [width * offer for offer in declared]
        return bounded_layers(data, own, classes, one_limit, center, center).exact_value

    least = float(min(declared))
    sentences = Sentences(
        f"preprocessing in layers, {calibrated.noise.name}",
        f"everybody has their own epsilon, from {least:g} to {float(most):g}",
        "the mixture of the statistics of those with more and more epsilon",
    )
    return plain_release(
        terms, statistic.replace("_", " "), calibrated.noise, answer, sentences,
        least=Fraction(0) if statistic == "variance" else None,
    )  # fmt: skip


def _in_proportion(budget: Allowance | None, declared: list[Fraction]) -> Allowance | None:
    """Let a budget be charged in proportion, where the policy says that people give in these proportions."""
    offers = None if budget is None else budget.protection.personal
    if budget is None or offers is None:
        return budget
    shares = {amount / offers.amounts[-1] for amount in offers.amounts}
    if {own / declared[-1] for own in declared} != shares:
        raise UsageError(
            "USE-005",
            f"people under the protection {budget.name!r} do not give epsilon in these proportions",
            hint="Pass the offers of the policy, or the same part of each of them.",
        )
    return replace(budget, in_proportion=True)


def _offers(offers: Sequence[Number]) -> list[Fraction]:
    if isinstance(offers, (str, bytes)) or not 0 < len(offers) <= MOST_OFFERS:
        raise UsageError("USE-001", f"offers are a public list of 1 to {MOST_OFFERS} epsilons")
    return sorted({epsilon_of(decimal_of(offer, "an offer")) for offer in offers})


def _offered(own: float, declared: list[Fraction]) -> Fraction | None:
    """Give the largest offer that is not more than somebody's ε, as floats; None, and they are left out, if none is.

    Nobody's ε makes the release fail: who has it is data.
    """
    offers = [offer for offer in declared if float(offer) <= own]
    return offers[-1] if offers else None


def _floats(epsilons: object) -> list[float]:
    """Read the ε of those present; NaN where it is none."""
    if isinstance(epsilons, (list, tuple)):  # texts and fractions too, as they were written
        return [_epsilon(own) for own in epsilons]
    numbers: list[float] = numbers_of(epsilons, what="epsilons").tolist()
    return numbers


def _epsilon(own: object) -> float:
    if not isinstance(own, str):
        return number_of(own)
    try:
        return float(decimal_of(own, "an epsilon"))
    except (UsageError, ArithmeticError):
        return math.nan
