"""The statistics of one column as records, and the one path that releases any of them.

In: a record, values, the call as it was typed. Out: a `Release`. A record says what is computed, what is proved of it
and which ways there are; terms are checked and the way is chosen by public facts before anything is charged. The empty
column has an answer like any other, so that its emptiness shows in nothing.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import field, replace
from fractions import Fraction

from secant.errors import UsageError
from secant.numeric.parameters import Number
from secant.records import frozen
from secant.stats.budget import Done, paid
from secant.stats.calls import Terms, clean_values, guarantee_of, quiet, release, terms_of
from secant.stats.counting import count
from secant.stats.definitions import (
    by_size_mechanisms,
    mean_statistic,
    rank_mechanisms,
    rank_statistic,
    variance_statistic,
)
from secant.stats.inputs import Values, check_values, decimal_of, mask_of, public_number, values_of
from secant.stats.mechanisms import Mechanism, Statistic
from secant.stats.preprocessing import ordered_statistics as ordered
from secant.stats.preprocessing.unbounded import FAMILY, delta_of_call, release_unbounded
from secant.stats.results import ADD_REMOVE, REPLACE, Neighbors, Release
from secant.stats.scale import Scale, Steps, scale_of

PRIVATE = "private"
"""What is passed as n."""
HALF = Fraction(1, 2)
_FOR_COUNTING = Fraction(1, 10)  # of ε, and of the chance that the error bar fails
_FINEST_SHARE = 10**9


@frozen
class Call:
    """What the caller typed, unchecked."""

    epsilon: Number
    budget: object
    neighbors: Neighbors | None
    n: int | str | None
    compare: bool
    mechanism: str
    level: Number
    bounds: tuple[Number, Number] | None = None
    delta_f: Number | None = None
    empty: Number | None = None
    step: Number | None = None

    def terms(self, values: object) -> Terms:
        """Check what all statistics take."""
        return terms_of(
            values, epsilon=self.epsilon, budget=self.budget, neighbors=self.neighbors, n=self.n,
            compare=self.compare, mechanism=self.mechanism, level=self.level,
        )  # fmt: skip


@frozen
class ColumnStatistic:
    """A statistic of one column."""

    name: str
    """Of the function that is called; a private number of rows is charged under it."""
    proved: Callable[[Scale, Terms, int], Statistic]
    """What is proved of it on a scale; the last number is the place of what no values give."""
    ways: Callable[[Statistic, Terms, Fraction | None], list[list[Mechanism]]]
    """The ways to release it, the preferred first; the last number is Δ, where the call gave one."""
    unbounded: str = ""
    """What it is called where delta_f stands for a range."""
    parameters: Mapping[str, Number] = field(default_factory=dict)
    read: Callable[[object], Values] = values_of


def mean_of(share: Fraction, trim: Number | None = None) -> ColumnStatistic:
    """Give the mean without a share at each end; `trim` is that share as it was typed."""
    name, shown, spec = "mean", "mean", ordered.mean_statistic()
    if trim is not None:
        name, shown = "trimmed_mean", "trimmed mean"
        spec = ordered.mean_statistic(share, shown)
    return ColumnStatistic(
        name,
        lambda scale, terms, empty: mean_statistic(shown, scale, terms, share, empty),
        lambda statistic, terms, delta: by_size_mechanisms(statistic, terms, spec, delta),
        name,
        {} if trim is None else {"trim": trim},
    )


def trimmed(trim: Number) -> ColumnStatistic:
    """Give the mean of what lies between two quantiles."""
    share = decimal_of(trim, "trim")
    if not 0 <= share < HALF or share.denominator > _FINEST_SHARE:
        raise UsageError("USE-001", "trim must be at least 0 and less than 0.5, of up to 9 digits")
    return mean_of(share, trim)


def rank_of(q: Number) -> ColumnStatistic:
    """Give the q-quantile; 0, 1/2 and 1 have names of their own."""
    share = decimal_of(q, "q")
    if not 0 <= share <= 1 or share.denominator > _FINEST_SHARE:
        raise UsageError("USE-001", "q must lie between 0 and 1, with up to 9 digits")
    name = {Fraction(0): "minimum", HALF: "median", Fraction(1): "maximum"}.get(share)
    return ColumnStatistic(
        "quantile",
        lambda scale, terms, empty: rank_statistic(share, scale, terms.neighbors, empty),
        rank_mechanisms,
        name or "quantile",
        {} if name else {"q": share},
    )


MEAN = mean_of(Fraction(0))
VARIANCE = ColumnStatistic(
    "variance",
    lambda scale, terms, empty: variance_statistic(scale, terms),
    lambda statistic, terms, delta: by_size_mechanisms(statistic, terms, "variance", delta),
    "variance",
)
PROPORTION = ColumnStatistic(
    "proportion",
    lambda scale, terms, empty: mean_statistic("proportion", scale, terms, Fraction(0), empty),
    lambda statistic, terms, delta: by_size_mechanisms(statistic, terms),
    read=mask_of,
)


def released(of: ColumnStatistic, values: object, call: Call) -> Release:
    """Release a statistic: check, choose, charge, read, draw."""
    if call.n == PRIVATE:
        return _with_private_n(of, values, call)
    terms = call.terms(values)
    if call.delta_f is not None and call.bounds is None:
        if call.step is not None:
            raise UsageError("USE-001", "a step goes with bounds")
        return release_unbounded(
            values, of.unbounded, terms, delta_f=call.delta_f, empty=call.empty, **of.parameters
        )
    terms, delta = _preprocessed(terms, call.delta_f)
    scale = scale_of(call.bounds, call.step)
    statistic = of.proved(scale, terms, empty_index(call.empty, scale))
    ways = of.ways(statistic, terms, delta)
    check_values(values, mask=of.read is mask_of)

    def read(given: object) -> Steps:
        numbers = mask_of(given) if of.read is mask_of else given
        return scale.snap(clean_values(numbers, scale, terms))

    return release(values, scale, statistic, ways, terms, read=read)


def empty_index(empty: Number | None, scale: Scale) -> int:
    """Give the place of what stands for the statistic of no values; by default the middle."""
    if empty is None:
        return scale.top // 2
    return scale.index(public_number(empty, "empty"))


def _preprocessed(terms: Terms, delta_f: Number | None) -> tuple[Terms, Fraction | None]:
    """Give the terms with what delta_f asks for, and the Δ itself."""
    if delta_f is None:
        return terms, None
    if terms.mechanism not in ("auto", FAMILY):
        raise UsageError("USE-001", "delta_f is for the mechanism 'preprocessing'")
    return replace(terms, mechanism=FAMILY), delta_of_call(delta_f)


def _with_private_n(of: ColumnStatistic, values: object, call: Call) -> Release:
    """Release with a tenth of ε for the number of rows, so that an error can be stated (statistic.private_n).

    The chance that the error bar fails is split alike: a tenth for the number, the rest for the statistic.
    """
    terms = replace(call, n=None, compare=False, mechanism="auto").terms(values)
    if terms.neighbors == REPLACE:
        raise UsageError(
            "USE-001",
            "where neighbors replace one value, how many there are is public",
            hint="Leave n out.",
        )
    miss = 1 - terms.level
    inner = replace(
        call,
        epsilon=terms.epsilon * (1 - _FOR_COUNTING),
        level=1 - miss * (1 - _FOR_COUNTING),
        neighbors=ADD_REMOVE,
        budget=None,
        n=None,
    )
    check_values(values, mask=of.read is mask_of)
    # mistakes in the terms are found before anything is charged
    released(of, [], replace(inner, compare=False))
    with paid(terms.budget, terms.epsilon, Done(of.name)) as cost, quiet():
        data = of.read(values)  # what is left out is not counted either
        counted = count(
            data, epsilon=terms.epsilon * _FOR_COUNTING, neighbors=ADD_REMOVE,
            level=1 - miss * _FOR_COUNTING,
        )  # fmt: skip
        assert counted.error.amount is not None
        least = max(0, math.floor(counted.value - counted.error.amount))
        found = released(of, data, replace(inner, n=least))
    why = f"{found.why}; a tenth of epsilon estimated the number of rows: {counted.value:.0f}, at least {least}"
    bar = found.error
    if bar.amount is not None and bar.unit == "value":
        description = f"within {bar.amount:.4g} with probability {float(terms.level):g}"
        bar = replace(
            bar,
            level=float(terms.level),
            words=f"{description}, the number of rows being estimated",
        )
    return replace(found, error=bar, guarantee=guarantee_of(terms), cost=cost, why=why)
