"""What every room that surveys joins says in the same way: whom it turns away, and what its survey means for measures.

In: a request, and the room's own rule ids. Out: refusals, and the bounds and steps of a certificate. Never here: a
survey; how many rows differ is what the rooms find out.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

from secant.analysis.certificate import CannotBound, Certificate, Step, Survey, Surveyed
from secant.analysis.interface import Request
from secant.analysis.summands import amount, each_row
from secant.plan.domains import Listed, Looked
from secant.plan.enforce import Release
from secant.terms.bounds import GlobalBound


def only_rows_that_add_up(request: Request, *, kind: str, rank: str) -> None:
    """Turn away what no survey of rows bounds: other kinds of protection, and order statistics. Rules are named."""
    release, protection = request.release, request.protection
    if protection.kind != "rows":
        raise CannotBound(
            kind,
            release.exact,
            f"protections of kind {protection.kind} are not bounded here",
            "use kind `rows`",
        )
    if release.ranked:
        raise CannotBound(
            rank,
            release.exact,
            "order statistics are not bounded here",
            "ask for counts and sums in a query of their own",
        )


def only_known_keys(release: Release, *, rule: str) -> None:
    """Turn away keys that are chosen privately: which groups there are would move with the noise."""
    if not all(isinstance(d, (Listed, Looked)) for d in release.domains):
        raise CannotBound(
            rule,
            release.original,
            "keys that are chosen privately are not bounded here",
            "declare the values of the grouped columns",
        )


def unknown_groups(release: Release, *, rule: str) -> CannotBound:
    """Give the verdict on groups that one row moves and nobody can count beforehand."""
    return CannotBound(
        rule,
        release.original,
        "one row can move groups whose number is not declared",
        "declare the values of the grouped columns",
    )


def nothing_read(room: str, request: Request, *, rule: str) -> Certificate:
    """Certify that no measure moves, since no table of the protection is read."""
    step = Step(rule, "no table of this protection is read", "0 rows differ")
    still = {m.column: GlobalBound(Fraction(0)) for m in request.release.measures}
    return Certificate(room, request.protection.name, still, 0, 0, 0, (), (step,))


def measures_of(
    release: Release, survey: Survey, groups: int, counted: Step, *, rule: str
) -> tuple[Mapping[str, Surveyed], tuple[Step, ...]]:
    """Price the rows that a survey counts, measure by measure."""
    bounds: dict[str, Surveyed] = {}
    steps = []
    for measure, call in zip(release.measures, release.exact.aggregations, strict=True):
        each = each_row(call, measure.step)
        bounds[measure.column] = Surveyed((survey,), each, groups)
        value = f"moves by at most {amount(each * measure.step)} for each row that differs"
        steps.append(Step(rule, measure.words, value, (counted,)))
    return bounds, tuple(steps)
