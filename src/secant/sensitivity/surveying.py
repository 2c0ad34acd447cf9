"""What every analysis that surveys joins does in the same way: whom it turns away, what its survey means.

In: a request, and what the analysis itself has to say: how to count the rows that differ, and the ids of its rules.
Out: a certificate or a refusal. Never here: a survey; how many rows differ is what the analyses find out.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

from secant.plan.facts.domains import Listed, Looked
from secant.plan.rewrites.enforce import MeasuredAggregate
from secant.policy.keys import Key, in_order
from secant.records import frozen
from secant.sensitivity.bounds import GlobalBound
from secant.sensitivity.certificate import CannotBound, Certificate, Refusal, Step, Survey, Surveyed
from secant.sensitivity.interface import Request
from secant.sensitivity.summands import amount, each_row


@frozen
class Rules:
    """The ids under which an analysis says what all of them say."""

    kind: str
    rank: str
    public: str
    measures: str


@frozen
class Counted:
    """How an analysis counts the rows that differ: its survey, the groups that one row moves, and why."""

    survey: Survey
    groups: int
    why: Step
    """What measures rest on."""
    keys: Step | None
    """Why no more groups move; None without keys."""
    claims: frozenset[Key] = frozenset()


def surveyed(
    analysis: str, request: Request, count: Callable[[Request], Counted | None], rules: Rules
) -> Certificate | Refusal:
    """Bound every measure by the rows that a survey counts, or say what stands in the way.

    `count` gives None where no table of the protection is read.
    """
    release, name = request.release, request.protection.name
    try:
        _only_rows_that_add_up(request, rules)
        counted = count(request)
        if counted is None:
            step = Step(rules.public, "no table of this protection is read", "0 rows differ")
            still = {m.column: GlobalBound(Fraction(0)) for m in release.measures}
            return Certificate(analysis, name, still, 0, 0, 0, (), (step,))
        bounds: dict[str, Surveyed] = {}
        steps = [counted.why] if counted.keys is None else [counted.why, counted.keys]
        for measure, call in zip(release.measures, release.exact.aggregations, strict=True):
            each = each_row(call, measure.step)
            bounds[measure.column] = Surveyed((counted.survey,), each, counted.groups)
            value = f"moves by at most {amount(each * measure.step)} for each row that differs"
            steps.append(Step(rules.measures, measure.words, value, (counted.why,)))
    except CannotBound as verdict:
        return verdict.refusal(analysis)
    claims = in_order(counted.claims)
    return Certificate(analysis, name, bounds, 0, counted.groups, 0, claims, tuple(steps))


def _only_rows_that_add_up(request: Request, rules: Rules) -> None:
    """Turn away what no survey of rows bounds: other kinds of protection, and order statistics."""
    release, protection = request.release, request.protection
    if protection.kind != "rows":
        raise CannotBound(
            rules.kind,
            release.exact,
            f"protections of kind {protection.kind} are not bounded here",
            "use kind `rows`",
        )
    if release.ranked:
        raise CannotBound(
            rules.rank,
            release.exact,
            "order statistics are not bounded here",
            "ask for counts and sums in a query of their own",
        )


def require_listed_keys(release: MeasuredAggregate, *, rule: str) -> None:
    """Turn away keys that are chosen privately: which groups there are would move with the noise."""
    if not all(isinstance(d, (Listed, Looked)) for d in release.domains):
        raise CannotBound(
            rule,
            release.original,
            "keys that are chosen privately are not bounded here",
            "declare the values of the grouped columns",
        )


def unknown_groups(release: MeasuredAggregate, *, rule: str) -> CannotBound:
    """Give the verdict on groups that one row moves and nobody can count beforehand."""
    return CannotBound(
        rule,
        release.original,
        "one row can move groups whose number is not declared",
        "declare the values of the grouped columns",
    )
