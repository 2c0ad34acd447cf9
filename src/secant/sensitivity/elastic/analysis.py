"""The elastic analysis: a smooth bound for joins, from how many rows of each table agree in the join's columns.

In: a release and a `rows` protection. Out: a certificate whose bounds are surveys, or a refusal. What the surveys
read is computed by the engine and stays private; nothing here sees it before a survey is called with it.
"""

from __future__ import annotations

import math
from fractions import Fraction

from secant.plan import nodes as n
from secant.plan.facts.reads import tables_read
from secant.plan.rewrites.enforce import MeasuredAggregate
from secant.sensitivity.certificate import Certificate, Figures, Refusal, Step, Survey
from secant.sensitivity.elastic.amounts import (
    ZERO,
    Amount,
    Figure,
    computation,
    is_convex,
    most,
    shown,
)
from secant.sensitivity.elastic.figures import told_apart
from secant.sensitivity.elastic.groups import Pins, plain, reached
from secant.sensitivity.elastic.rules import Elastic
from secant.sensitivity.interface import Request
from secant.sensitivity.smoothing import largest_discounted
from secant.sensitivity.surveying import Counted, Rules, only_known_keys, surveyed, unknown_groups


class ElasticAnalysis:
    """Smooth bounds for COUNT, COUNT DISTINCT and SUM over joins, unions and inner groups, under `rows`."""

    name = "elastic"
    kinds: tuple[str, ...] = ("rows",)

    def bound(self, request: Request) -> Certificate | Refusal:
        """Bound every measure of the release, or say what stands in the way."""
        return surveyed(self.name, request, _count, RULES)


RULES = Rules("elastic.kind", "elastic.rank", "elastic.public", "elastic.measures")


def _count(request: Request) -> Counted | None:
    release = request.release
    varying = frozenset(t for t in tables_read(*release.aggregates) if t in request.covered)
    if not varying:
        return None
    work = Elastic(varying, request.facts)
    pins = _pins(release)
    work.row_by_row(release.exact)
    found = work.of(release.exact.input, pins)
    total = most(*found.rows.values())
    groups = _groups(release, total, pins, varying)
    premises = tuple(found.steps[t] for t in sorted(varying) if found.rows[t] is not ZERO)
    words = f"the largest of {shown(total)}, discounted by exp(-beta k), over all k >= 0"
    smooth = Step("elastic.smooth", "the worst table", words, premises)
    said = "1 group moves" if groups == 1 else f"{groups} groups move"
    keys = Step("elastic.keys", "keys beside one row", said) if release.exact.keys else None
    survey = _survey(ElasticAnalysis.name, total)
    return Counted(survey, groups, smooth, keys, frozenset(work.claims))


def _pins(release: MeasuredAggregate) -> Pins:
    """Give the columns of the rows that hold the keys, if each stands for its own group only."""
    keys = [k.expression for k in release.exact.keys]
    names = tuple(k.name for k in keys if isinstance(k, n.Column) and k.type.kind != "DOUBLE")
    return names if names and len(names) == len(keys) else None


def _survey(analysis: str, total: Amount) -> Survey:
    """Give the survey that measures the figures of an amount and smooths it (elastic.smooth)."""
    figures, compute = computation(total)
    statements, which = told_apart(figures)
    keyed = {place: figure.keys is not None for place, figure in zip(which, figures, strict=True)}

    convex = is_convex(total)

    def rows(beta: Fraction, answers: tuple[Figures, ...]) -> Fraction:
        found = [_one_number(answers[place]) for place in which]
        return largest_discounted(lambda k: compute(found, k), beta, total.degree, convex=convex)

    return Survey(analysis, statements, tuple(keyed[i] for i in range(len(statements))), rows)


def _one_number(answer: Figures) -> int:
    """Read a figure; a group without rows, or a relation without rows, has none."""
    value = answer[0][0] if answer else None
    return 0 if value is None else int(str(value))


def _groups(release: MeasuredAggregate, total: Amount, pins: Pins, varying: frozenset[str]) -> int:
    """Bound the groups that one row moves, by their measures or by their figures (elastic.keys)."""
    if not release.exact.keys:
        return 1
    only_known_keys(release, rule="elastic.keys")
    ordered, listed = list(release.listed_values), release.listed_groups
    figures, _ = computation(total)
    shared = any(f.keys is None and _varies(f.relation, varying) for f in figures)
    # A figure that all groups share moves the noise of all of them.
    moved = listed if shared or pins is None else _moved(release, figures, pins, varying, ordered)
    if moved is None or (listed is not None and listed < moved):
        moved = listed
    if moved is None:
        raise unknown_groups(release, rule="elastic.keys")
    return max(1, moved)


def _moved(
    release: MeasuredAggregate,
    figures: tuple[Figure, ...],
    pins: tuple[str, ...],
    varying: frozenset[str],
    sizes: list[int | None],
) -> int | None:
    """Count the ways in which a row has a group, each as often as there are keys that do not follow from the row."""
    ways = reached(release.exact.input, plain(pins), varying)
    for figure in figures:
        if figure.keys is not None:
            ways |= reached(figure.relation, plain(figure.keys), varying)
    largest = 0
    for table in varying:
        counts = [
            _product([size for size, source in zip(sizes, how, strict=True) if source is None])
            for name, how in ways
            if name == table
        ]
        known = [c for c in counts if c is not None]
        if len(known) < len(counts):
            return None
        largest = max(largest, sum(known))
    return largest


def _product(sizes: list[int | None]) -> int | None:
    known = [size for size in sizes if size is not None]
    return math.prod(known) if len(known) == len(sizes) else None


def _varies(relation: n.Relation, varying: frozenset[str]) -> bool:
    return not varying.isdisjoint(tables_read(relation))
