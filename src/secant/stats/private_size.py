"""statistic.private_n: a statistic whose number of rows is estimated on the way, so that its error can be stated.

In: the function that releases, its arguments, ε. Out: one `Release` that costs ε, a tenth of it for a count.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import Any

from secant.errors import UsageError
from secant.numeric.parameters import Number
from secant.stats.budget import Done, paid
from secant.stats.calls import guarantee_of, quiet, terms_of
from secant.stats.counting import count
from secant.stats.inputs import Values, check_values, mask_of
from secant.stats.results import ADD_REMOVE, REPLACE, Neighbors, Release

PRIVATE = "private"
"""What is passed as n."""
_FOR_COUNTING = Fraction(1, 10)  # of ε, and of the chance that the error bar fails


def with_private_n(
    function: Callable[..., Release],
    values: object,
    read: Callable[[object], Values],
    *,
    epsilon: Number,
    budget: object,
    neighbors: Neighbors | None,
    level: Number,
    **options: Any,
) -> Release:
    """Release with a tenth of ε for the number of rows, so that an error can be stated (statistic.private_n).

    The chance that the error bar fails is split alike: a tenth for the number, the rest for the statistic.
    """
    terms = terms_of(
        values, epsilon=epsilon, budget=budget, neighbors=neighbors, n=None, compare=False,
        mechanism="auto", level=level,
    )  # fmt: skip
    if terms.neighbors == REPLACE:
        raise UsageError(
            "USE-001",
            "where neighbors replace one value, how many there are is public",
            hint="Leave n out.",
        )
    miss = 1 - terms.level
    shared: dict[str, Any] = {
        "epsilon": terms.epsilon * (1 - _FOR_COUNTING),
        "level": 1 - miss * (1 - _FOR_COUNTING),
        "neighbors": ADD_REMOVE,
    }
    check_values(values, mask=read is mask_of)
    quiet_options = {**options, "compare": False}
    function(
        [], **shared, **quiet_options
    )  # mistakes in the terms are found before anything is charged
    with paid(terms.budget, terms.epsilon, Done(function.__name__)) as cost, quiet():
        data = read(values)  # what is left out is not counted either
        counted = count(
            data, epsilon=terms.epsilon * _FOR_COUNTING, neighbors=ADD_REMOVE,
            level=1 - miss * _FOR_COUNTING,
        )  # fmt: skip
        assert counted.error.amount is not None
        least = max(0, math.floor(counted.value - counted.error.amount))
        found = function(data, n=least, **shared, **options)
    why = f"{found.why}; a tenth of epsilon estimated the number of rows: {counted.value:.0f}, at least {least}"
    bar = found.error
    if bar.amount is not None and bar.unit == "value":
        said = f"within {bar.amount:.4g} with probability {float(terms.level):g}"
        bar = replace(
            bar, level=float(terms.level), words=f"{said}, the number of rows being estimated"
        )
    return replace(found, error=bar, guarantee=guarantee_of(terms), cost=cost, why=why)
