"""Joins of protected tables under `rows`: one analysis, three ways to survey how many joined rows one row moves.

In: a request. Out: a certificate that rests on the least of all surveys that were made, or a refusal that names what
every way said. `residual` is asked first; where it has an answer, only a way that looks into conditions between tables
may have a smaller one. Where a row is replaced, surveys are priced for both rows. Never here: how rows are counted.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from functools import cache

from secant.numeric.ball import ball, upper, working_precision
from secant.plan import nodes as n
from secant.plan.facts.conjunctive import Conjunctive, conjunctive
from secant.sensitivity.certificate import Certificate, Figures, Move, Refusal, Survey, Surveyed
from secant.sensitivity.growth import growth
from secant.sensitivity.interface import Analysis, LazyAnalysis, Request
from secant.sensitivity.summands import replaced_bound


@cache
def _residual() -> Analysis:
    from secant.sensitivity.residual.analysis import ResidualAnalysis

    return ResidualAnalysis()


@cache
def _elastic() -> Analysis:
    from secant.sensitivity.elastic.analysis import ElasticAnalysis

    return ElasticAnalysis()


@cache
def _multiplicity() -> Analysis:
    from secant.sensitivity.multiplicity.analysis import MultiplicityAnalysis

    return MultiplicityAnalysis()


class JoinsAnalysis:
    """Smooth bounds for COUNT and SUM over joins, self-joins, unions and inner groups, under `rows`."""

    name = "joins"
    kinds: tuple[str, ...] = ("rows",)
    ways: tuple[Analysis, ...] = (
        LazyAnalysis("residual", ("rows",), _residual),
        LazyAnalysis("elastic", ("rows",), _elastic),
        LazyAnalysis("multiplicity", ("rows",), _multiplicity),
    )

    def bound(self, request: Request) -> Certificate | Refusal:
        """Bound every measure by the least survey, or say what stands in the way."""
        residual, elastic, multiplicity = self.ways
        outcomes = [residual.bound(request)]
        if isinstance(outcomes[0], Refusal):
            outcomes += [elastic.bound(request), multiplicity.bound(request)]
        elif _looks_into_conditions(request):
            outcomes.append(multiplicity.bound(request))
        refusals = [x for x in outcomes if isinstance(x, Refusal)]
        certificates = [x for x in outcomes if isinstance(x, Certificate)]
        if not certificates:
            return replace(refusals[0], others=tuple(refusals[1:]))
        return replace(_least(certificates, request), tried=tuple(refusals))


def _looks_into_conditions(request: Request) -> bool:
    """Whether patterns may say less than residuals: only by looking into an OR between tables (combined.least)."""
    form = conjunctive(request.release.exact.input, request.covered.__contains__)
    return isinstance(form, Conjunctive) and any(
        isinstance(part, n.Or) for c in form.conditions for part in n.walk(c.scalar)
    )


def _least(certificates: list[Certificate], request: Request) -> Certificate:
    """Let all surveys hold together: the least of them is a bound, and is smooth (combined.least)."""
    if len(certificates) == 1 and not request.protection.replace:
        return certificates[0]
    bounds: dict[str, Move] = {}
    for column in certificates[0].bounds:
        surveyed = [b for c in certificates if isinstance(b := c.bounds.get(column), Surveyed)]
        if not surveyed:
            return certificates[0]
        # A group's share of epsilon must cover all surveys that it rests on.
        fewest = min(b.groups for b in surveyed)
        surveyed = [b for b in surveyed if b.groups == fewest]
        surveys = tuple(s for b in surveyed for s in b.surveys)
        each, groups = min(b.each for b in surveyed), fewest
        if request.protection.replace:
            swapped = _swapped(request, column)
            surveys = tuple(_replaced(s, grows=swapped is not None) for s in surveys)
            each = each if swapped is None else swapped
            groups = 2 * fewest if request.release.exact.keys else fewest
        bounds[column] = Surveyed(surveys, each, groups)
    return replace(
        certificates[0],
        analysis=", ".join(c.analysis for c in certificates),
        bounds=bounds,
        claims=tuple(dict.fromkeys(x for c in certificates for x in c.claims)),
        derivation=tuple(step for c in certificates for step in c.derivation),
    )


def _swapped(request: Request, column: str) -> Fraction | None:
    """Give what one row more, in place of another, moves a measure; None if a row that comes may take others away."""
    exact = request.release.exact
    if growth(exact.input, request.covered.__contains__) is None:
        return None
    step = next(m.step for m in request.release.measures if m.column == column)
    call = next(c for c in exact.aggregations if c.name == column)
    return replaced_bound(call, 1, False, step)[1]


def _replaced(survey: Survey, *, grows: bool) -> Survey:
    """One row replaced is one row less and one more: two steps of half the smoothness (combined.replace).

    Where rows only grow, what goes and what comes do not add up: the larger of the two decides.
    """

    def rows(beta: Fraction, figures: tuple[Figures, ...]) -> Fraction:
        with working_precision(128):
            factor = upper((0 if grows else 1) + ball(beta / 2).exp())
        return survey.rows(beta / 2, figures) * factor

    return replace(survey, rows=rows, replaced=True)
