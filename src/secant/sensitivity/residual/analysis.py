"""The residual analysis: joins of protected tables, bounded by what the rest of the join holds for each row.

In: a release and a `rows` protection. Out: a certificate whose one survey measures figures on the engine and smooths
the polynomial that they make, or a refusal. What the figures are is decided by the query and public facts alone.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

from secant.plan.facts.conjunctive import NotConjunctive, conjunctive
from secant.plan.rewrites.enforce import MeasuredAggregate
from secant.sensitivity.certificate import CannotBound, Certificate, Figures, Refusal, Step, Survey
from secant.sensitivity.interface import Request
from secant.sensitivity.residual.answers import with_measures
from secant.sensitivity.residual.keys import Grouping, grouping_of
from secant.sensitivity.residual.rules import Growth, Residuals, polynomial
from secant.sensitivity.residual.shape import Shape, shape_of
from secant.sensitivity.residual.statements import Statements
from secant.sensitivity.residual.triangle import Triangle, triangle_of
from secant.sensitivity.smoothing import largest_discounted, largest_split, last_useful, value_at
from secant.sensitivity.surveying import Counted, Rules, surveyed

MOST_CELLS = 20_000
"""About as many splits are looked at; where there are more, every table gets all changes (residual.split)."""
_WHOLE = 2**53


class ResidualAnalysis:
    """Smooth bounds for COUNT and SUM over joins, self-joins and cross joins, under `rows`."""

    name = "residual"
    kinds: tuple[str, ...] = ("rows",)

    def bound(self, request: Request) -> Certificate | Refusal:
        """Bound every measure of the release, or say what stands in the way."""
        return surveyed(self.name, request, _count, RULES)


RULES = Rules("residual.kind", "residual.rank", "residual.form", "residual.measures")


def _count(request: Request) -> Counted:
    release, analysis = request.release, ResidualAnalysis.name
    form = conjunctive(release.exact.input, request.covered.__contains__)
    if isinstance(form, NotConjunctive):
        raise CannotBound("residual.form", form.node, form.reason, form.hint)
    shape = shape_of(form, request.facts)
    if not shape.varying:
        raise CannotBound(
            "residual.form",
            release.exact,
            "no table of this protection is read",
            "it needs no noise",
        )
    grouping = grouping_of(release, shape)
    triangle = None
    if not release.exact.keys and len(shape.tables) == 1:
        triangle = triangle_of(shape, request.facts.keys(shape.tables[0]))
    survey, counted = (
        _triangle_survey(analysis, triangle)
        if triangle
        else _survey(analysis, release, shape, grouping)
    )
    keys = None
    if release.exact.keys:
        keys = Step(
            "residual.keys",
            grouping.words,
            "1 group moves" if grouping.groups == 1 else f"{grouping.groups:,} groups move",
        )
    claims = shape.claims | (triangle.claims if triangle else frozenset())
    return Counted(survey, grouping.groups, counted, keys, claims)


def _growth_step(shape: Shape, growth: Growth, residuals: Residuals) -> Step:
    """Say what one row of a table is held against."""
    atoms = shape.form.atoms
    named = sorted(
        {
            "joined rows of " + ", ".join(atoms[i].name for i in sorted(residuals.figures[f].atoms))
            for product in growth.products
            for part in product
            for term in part
            for f in term.figures
        }
    )
    places = f"{len(growth.products)} way{'' if len(growth.products) == 1 else 's'} to stand in it"
    value = "; ".join(named) or "1 row"
    return Step("residual.copies", f"one row of {growth.table}, {places}", value)


def _triangle_survey(analysis: str, triangle: Triangle) -> tuple[Survey, Step]:
    """One row more or less changes common neighbors by one at most (residual.triangle)."""

    def rows(beta: Fraction, answers: tuple[Figures, ...]) -> Fraction:
        ((most,),) = answers[0]
        common = 0 if most is None else int(str(most))
        return largest_discounted(lambda k: triangle.times * (common + k), beta, 1)

    description = (
        f"{triangle.times} for each common neighbor of two nodes, and for each row that came"
    )
    step = Step("residual.triangle", "one edge of a triangle", description)
    return Survey(analysis, (triangle.statement,), (False,), rows), step


def _survey(
    analysis: str, release: MeasuredAggregate, shape: Shape, grouping: Grouping
) -> tuple[Survey, Step]:
    """Measure all figures in at most two statements: for each group, and for all groups."""
    residuals = Residuals(shape, merge=not grouping.types)
    growths = residuals.growths()
    statements = Statements(shape, grouping.keys)
    numbered = list(enumerate(residuals.figures))
    parts = [
        (keyed, [f for f in numbered if statements.keyed(f[1]) == keyed]) for keyed in (True, False)
    ]
    parts = [(keyed, some) for keyed, some in parts if some]
    smoothers = [_smoother(growth, len(shape.tables)) for growth in growths]

    def rows(beta: Fraction, answers: tuple[Figures, ...]) -> Fraction:
        values = [0] * len(numbered)
        for answer in answers:
            for which, value in answer:
                values[int(str(which))] = _counted(value)
        return max(smooth(beta, tuple(values)) for smooth in smoothers)

    survey = Survey(
        analysis,
        tuple(statements.statement(some) for _, some in parts),
        tuple(keyed for keyed, _ in parts),
        rows,
        _formula(shape, growths),
        answered=with_measures(release, shape, numbered) if numbered else None,
    )
    description = f"{len(numbered)} figure{'' if len(numbered) == 1 else 's'} measured"
    premises = tuple(_growth_step(shape, growth, residuals) for growth in growths)
    step = Step(
        "residual.split", f"the worst table, {description}", "discounted by exp(-beta k)", premises
    )
    return survey, step


def _formula(shape: Shape, growths: tuple[Growth, ...]) -> dict[str, Any]:
    """Write down what one row of each table can add, as `polynomial` puts it together."""
    return {
        "tables": list(shape.tables),
        "growths": [
            {
                "table": growth.table,
                "products": [
                    [
                        [{"powers": list(t.powers), "figures": list(t.figures)} for t in part]
                        for part in product
                    ]
                    for product in growth.products
                ],
            }
            for growth in growths
        ],
    }


def _counted(value: object) -> int:
    """Read a figure, rounded up where doubles are no longer exact (residual.figures)."""
    if value is None:
        return 0
    assert isinstance(value, float)
    exact = math.ceil(value)
    return exact if exact < _WHOLE else exact + exact // 2**10


def _smoother(growth: Growth, tables: int) -> Callable[[Fraction, tuple[int, ...]], Fraction]:
    """Give the smooth bound of what one row of a table adds, from the values of all figures (residual.split)."""
    degrees = _degrees(growth, tables)

    def smooth(beta: Fraction, values: tuple[int, ...]) -> Fraction:
        terms = polynomial(growth, tables, values)
        last = tuple(last_useful(beta, degree) for degree in degrees)
        cells = math.prod(1 + math.isqrt(most) for most in last)
        if sum(map(bool, degrees)) > 1 and cells <= MOST_CELLS:
            return largest_split(terms, beta, last)
        return largest_discounted(lambda k: value_at(terms, (k,) * tables), beta, sum(degrees))

    return smooth


def _degrees(growth: Growth, tables: int) -> tuple[int, ...]:
    """Give the highest power of each table's number of rows, whatever the figures are."""
    return tuple(
        max(
            (
                sum(max(term.powers[i] for term in part) for part in product)
                for product in growth.products
            ),
            default=0,
        )
        for i in range(tables)
    )
