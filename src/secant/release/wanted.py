"""Which epsilon gives the error that is wanted? Found from public facts, before anything is spent.

In: what an analyst wants (`20`, `"5%"`, `"5% of 2000"`) and what is foreseen at an epsilon. Out: the least epsilon, to
three digits and rounded up, at which every noisy number of the answer has that error at most. Never here: data, a guess
of how large an answer is. A share is a share of something public, or it is refused.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction

from secant.errors import Refused, UsageError
from secant.plan import nodes as n
from secant.plan.expected import rows_of
from secant.release.job import Job
from secant.terms.policy import Policy

Errors = Mapping[str, float | None]
"""Output -> the error that will be printed at most; None where that is known only with the answer."""
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


@dataclass(frozen=True, slots=True)
class Wanted:
    """An error: an amount, or a share of a reference that the analyst or the policy names."""

    amount: Fraction
    share: bool = False
    """Whether `amount` is a share of a reference that is still to be looked up."""

    def most(self, job: Job, policy: Policy, count: Callable[[str], int | None]) -> Fraction:
        """Give the amount itself, with a public number of rows as reference of a share."""
        if not self.share:
            return self.amount
        rows = _public_size(job, policy, count)
        if rows is None:
            raise Refused(
                "REF-106",
                "a share needs something public that it is a share of",
                hint='write what you expect, "5% of 2000"; without it, count(*) over a whole table whose `rows` '
                "the policy declares is measured by them",
            )
        return self.amount * rows


def wanted_of(value: Number, what: str) -> Wanted:
    """Read a wanted error."""
    text = str(value) if not isinstance(value, Fraction) else str(float(value))
    share, amount = _SHARE.fullmatch(text), _AMOUNT.fullmatch(text)
    if isinstance(value, bool) or (share is None and amount is None):
        raise UsageError("USE-001", f"{what} is neither a number nor a share", hint=AMOUNT_HINT)
    if amount is not None:
        found = Wanted(Fraction(amount[1]))
    else:
        assert share is not None
        part = Fraction(share[1]) / 100
        found = Wanted(part, share=True) if share[2] is None else Wanted(part * Fraction(share[2]))
    if found.amount <= 0 or found.amount > 10**300:
        raise UsageError("USE-001", f"{what} must be positive", hint=AMOUNT_HINT)
    return found


def _public_size(job: Job, policy: Policy, count: Callable[[str], int | None]) -> int | None:
    """Give the number of rows of the one table that is counted as a whole, if it is declared or public."""
    if len(job.prepared.bounded) != 1:
        return None
    asked = job.prepared.bounded[0].release.original
    table = asked.input
    while isinstance(table, n.Project):
        table = table.input
    counts = all(a.function == "count" and a.argument is None for a in asked.aggregations)
    if asked.keys or not counts or not isinstance(table, n.Scan):
        return None
    return rows_of(table.table.lower(), policy, count)


def held(errors: Errors, most: Fraction) -> bool:
    """Whether every noisy number keeps to an error; raises where one is known only with the answer."""
    for output, error in errors.items():
        if error is None:
            raise Refused(
                "REF-106",
                f"the error of {output} is known only with the answer",
                hint='ask for sums and counts instead of averages, declare `limits` with truncation = "fixed", or '
                "give epsilon and no wanted error",
            )
    return all(Fraction(error) <= most for error in errors.values() if error is not None)


def refuse_above(errors: Errors, most: Fraction) -> None:
    """Refuse to spend where a public error is larger than is allowed."""
    if not held(errors, most):
        output, error = max(errors.items(), key=lambda pair: pair[1] or 0.0)
        raise Refused(
            "REF-106",
            f"the error of {output} would be {error:.4g}, more than the {float(most):.4g} that you allow",
            hint="nothing was spent: ask with a larger epsilon, or let `--error` find it",
        )


def grid(place: int) -> Fraction:
    """Give the epsilon at a place: all numbers with three digits, in order."""
    decade, digits = divmod(place, _A_DECADE)
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
