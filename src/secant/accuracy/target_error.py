"""Which epsilon gives the error that is wanted? Found from public facts, before anything is spent.

In: what an analyst wants (`20`, `"5%"`, `"5% of 2000"`) and what is foreseen at an epsilon. Out: the least epsilon, to
three digits and rounded up, at which every noisy number of the answer has that error at most; of order statistics, so
many ranks. A share is a share of something public that is no guess, or it is refused. Never here: data.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from decimal import Decimal
from fractions import Fraction

from secant.accuracy.forecast import Forecast
from secant.errors import Refused, UsageError
from secant.plan import nodes as n
from secant.plan.facts.cardinality import one_table_rows
from secant.plan.facts.ranges import NOTHING_DECLARED, Ranges
from secant.plan.rewrites.rewrite import columns_of
from secant.policy.policy import Policy
from secant.records import frozen
from secant.release.release_plan import ReleasePlan
from secant.sensitivity.bound import CertifiedRelease
from secant.sensitivity.public_facts import PublicFacts

Number = float | int | str | Decimal | Fraction

DIGITS = 3
SMALLEST, LARGEST = -6, 3
"""Powers of ten between which an epsilon is looked for."""
_A_DECADE = 9 * 10 ** (DIGITS - 1)
_LAST = (LARGEST - SMALLEST) * _A_DECADE
_NUMBER = r"(\d+(?:\.\d*)?(?:[eE][-+]?\d+)?|\.\d+(?:[eE][-+]?\d+)?)"
_SHARE = re.compile(rf"\s*{_NUMBER}\s*%(?:\s*of\s+{_NUMBER})?\s*", re.ASCII)
_AMOUNT = re.compile(rf"\s*{_NUMBER}\s*", re.ASCII)
AMOUNT_HINT = 'give a number such as 20, or a share of one such as "5% of 2000"'


@frozen
class TargetError:
    """An error: an amount, or a share of a reference that the analyst or the policy names."""

    amount: Fraction
    share: bool = False
    """Whether `amount` is a share of a reference that is still to be looked up."""

    def most(
        self, job: ReleasePlan, forecast: Forecast, policy: Policy, facts: PublicFacts
    ) -> dict[str, Fraction]:
        """Give what each noisy output may be off: the amount itself, or a share of something public."""
        if not self.share:
            return dict.fromkeys(forecast.errors, self.amount)
        limits = {}
        for output in forecast.errors:
            whole = _reference(job, output, output in forecast.ranks, policy, facts)
            if whole is None:
                raise Refused(
                    "REF-106",
                    f"nothing public says how large {output} is, so a share of it has no meaning yet",
                    hint='write what you expect, "5% of 2000"; without it, a share is one of the rows of a whole table '
                    "whose `rows` the policy declares (counts, order statistics) or of the end of a declared range "
                    "that is nearest to zero (averages)",
                )
            limits[output] = self.amount * whole
        return limits


def target_of(value: Number, what: str) -> TargetError:
    """Read a wanted error."""
    text = str(value) if not isinstance(value, Fraction) else str(float(value))
    share, amount = _SHARE.fullmatch(text), _AMOUNT.fullmatch(text)
    if isinstance(value, bool) or (share is None and amount is None):
        raise UsageError("USE-001", f"{what} is neither a number nor a share", hint=AMOUNT_HINT)
    if amount is not None:
        target = TargetError(Fraction(amount[1]))
    else:
        assert share is not None
        part = Fraction(share[1]) / 100
        target = (
            TargetError(part, share=True)
            if share[2] is None
            else TargetError(part * Fraction(share[2]))
        )
    if target.amount <= 0 or target.amount > 10**300:
        raise UsageError("USE-001", f"{what} must be positive", hint=AMOUNT_HINT)
    return target


def _reference(
    job: ReleasePlan, output: str, in_ranks: bool, policy: Policy, facts: PublicFacts
) -> Fraction | None:
    """Give what a share of an output is a share of: rows of a whole table, or the least that a value can be."""
    expression = job.traced.made_of(output)
    if expression is None:
        return None
    counting = {c for b in job.prepared.bounded for c in _counts_all(b)}
    if in_ranks or columns_of(expression) <= counting:
        simple = isinstance(_undressed(expression), n.Column)
        rows = _whole_table(job, policy, facts) if simple else None
        return None if rows is None else Fraction(rows)
    range_ = Ranges(NOTHING_DECLARED).of(expression)
    if not range_.bounded:
        return None
    low, high = range_.ends()
    return max(low, -high) if low > 0 or high < 0 else None


def _undressed(scalar: n.Scalar) -> n.Scalar:
    """Take off what keeps a count from being shown below zero."""
    if isinstance(scalar, n.Call) and scalar.function in ("greatest", "least"):
        return scalar.arguments[0]
    return scalar


def _counts_all(b: CertifiedRelease) -> set[str]:
    return {
        a.name for a in b.release.exact.aggregations if a.function == "count" and not a.argument
    }


def _whole_table(job: ReleasePlan, policy: Policy, facts: PublicFacts) -> int | None:
    """Give the number of rows of the one table that is asked about as a whole, if it is declared or public."""
    if len(job.prepared.bounded) != 1:
        return None
    aggregate = job.prepared.bounded[0].release.original
    if aggregate.keys or any(isinstance(x, n.Filter) for x in n.walk(aggregate.input)):
        return None
    return one_table_rows(aggregate.input, policy, facts.count)


def meets_target(forecast: Forecast, most: Mapping[str, Fraction]) -> bool:
    """Whether every noisy number keeps to an error; raises where one is known only with the answer."""
    for output, error in forecast.errors.items():
        if error is None:
            raise Refused(
                "REF-106",
                f"the error of {output} is known only with the answer",
                hint="declare about how many `rows` each table has (averages), declare `limits` with truncation = "
                '"fixed", or give epsilon and no wanted error',
            )
    errors = forecast.errors.items()
    return all(Fraction(error) <= most[output] for output, error in errors if error is not None)


def refuse_above(forecast: Forecast, most: Mapping[str, Fraction]) -> None:
    """Refuse to spend where a public error is larger than is allowed."""
    if not meets_target(forecast, most):
        errors = {o: e for o, e in forecast.errors.items() if e is not None}
        output = max(errors, key=lambda o: Fraction(errors[o]) / most[o])
        what = " ranks" if output in forecast.ranks else ""
        about = "about " if output in forecast.rough else ""
        raise Refused(
            "REF-106",
            f"the error of {output} would be {about}{errors[output]:.4g}{what}, more than the "
            f"{float(most[output]):.4g} that you allow",
            hint="nothing was spent: ask with a larger epsilon, or let `--error` find it",
        )


def grid(index: int) -> Fraction:
    """Give the epsilon at a place: all numbers with three digits, in order."""
    decade, digits = divmod(index, _A_DECADE)
    return Fraction(f"{10 ** (DIGITS - 1) + digits}e{SMALLEST + decade - DIGITS + 1}")


def least_epsilon(reaches: Callable[[Fraction], bool]) -> Fraction:
    """Give the least epsilon of the grid that reaches what is wanted; all larger ones do, too."""
    low, high = -1, _LAST
    if not reaches(grid(high)):
        raise Refused(
            "REF-106",
            f"no epsilon up to {float(grid(high)):g} gives an error as small as this",
            hint="allow a larger error, or ask for coarser groups",
        )
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if reaches(grid(middle)) else (middle, high)
    return grid(high)
