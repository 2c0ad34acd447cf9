"""The elastic analysis: a smooth bound for joins, from how many rows of each table agree in the join's columns.

In: a release and a `rows` protection. Out: a certificate whose bounds are surveys, or a refusal. What the surveys
read is computed by the engine and stays private; nothing here sees it before a survey is called with it.
"""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

from secant.plan import nodes as n
from secant.plan.facts.reads import tables_read
from secant.plan.rewrites.enforce import MeasuredAggregate
from secant.plan.rewrites.rewrite import transform
from secant.plan.show import same
from secant.plan.typing import fields_of
from secant.schema import types as t
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
from secant.sensitivity.elastic.groups import Pins, plain, reached
from secant.sensitivity.elastic.rules import Elastic
from secant.sensitivity.interface import Request
from secant.sensitivity.smoothing import largest_discounted
from secant.sensitivity.surveying import (
    Counted,
    Rules,
    require_listed_keys,
    surveyed,
    unknown_groups,
)


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
    reading = work.of(release.exact.input, pins)
    total = most(*reading.rows.values())
    groups = _groups(release, total, pins, varying)
    premises = tuple(reading.steps[t] for t in sorted(varying) if reading.rows[t] is not ZERO)
    description = f"the largest of {shown(total)}, discounted by exp(-beta k), over all k >= 0"
    smooth = Step("elastic.smooth", "the worst table", description, premises)
    change = "1 group moves" if groups == 1 else f"{groups} groups move"
    keys = Step("elastic.keys", "keys beside one row", change) if release.exact.keys else None
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
    statements, which = deduplicated(figures)
    keyed = {index: figure.keys is not None for index, figure in zip(which, figures, strict=True)}

    convex = is_convex(total)

    def rows(beta: Fraction, answers: tuple[Figures, ...]) -> Fraction:
        values = [_one_number(answers[index]) for index in which]
        return largest_discounted(lambda k: compute(values, k), beta, total.degree, convex=convex)

    return Survey(analysis, statements, tuple(keyed[i] for i in range(len(statements))), rows)


def _one_number(answer: Figures) -> int:
    """Read a figure; a group without rows, or a relation without rows, has none."""
    value = answer[0][0] if answer else None
    return 0 if value is None else int(str(value))


def _groups(release: MeasuredAggregate, total: Amount, pins: Pins, varying: frozenset[str]) -> int:
    """Bound the groups that one row moves, by their measures or by their figures (elastic.keys)."""
    if not release.exact.keys:
        return 1
    require_listed_keys(release, rule="elastic.keys")
    ordered, listed = list(release.listed_values), release.listed_groups
    figures, _ = computation(total)
    shared = any(f.keys is None and _varies(f.relation, varying) for f in figures)
    # A figure that all groups share moves the noise of all of them.
    changed = (
        listed
        if shared or pins is None
        else _groups_of_row(release, figures, pins, varying, ordered)
    )
    if changed is None or (listed is not None and listed < changed):
        changed = listed
    if changed is None:
        raise unknown_groups(release, rule="elastic.keys")
    return max(1, changed)


def _groups_of_row(
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
        finite = [c for c in counts if c is not None]
        if len(finite) < len(counts):
            return None
        largest = max(largest, sum(finite))
    return largest


def _product(sizes: list[int | None]) -> int | None:
    finite = [size for size in sizes if size is not None]
    return math.prod(finite) if len(finite) == len(sizes) else None


def _varies(relation: n.Relation, varying: frozenset[str]) -> bool:
    return not varying.isdisjoint(tables_read(relation))


# ── the statements that measure figures ──────────────────────────────────────────────────────────

ROWS = "elastic rows"
MOST = "elastic most"
SCANNED = "elastic"


def statement(figure: Figure) -> n.Aggregate:
    """Give the aggregate whose last column is the figure; the release's keys come first, if the figure has them."""
    kinds = {f.name: f.type for f in fields_of(figure.relation)}
    rows = figure.relation
    conditions = tuple(n.Not(n.IsNull(n.Column(c, kinds[c]))) for c in figure.columns)
    predicate = n.conjunction(conditions)
    if predicate is not None:
        rows = n.Filter(rows, predicate)
    key_names = {f"{SCANNED}.key{index}": name for index, name in enumerate(figure.keys or ())}
    keys = tuple(n.Named(key, n.Column(name, kinds[name])) for key, name in key_names.items())
    count = n.Aggregation(ROWS, "count", None)
    if not figure.columns:
        return n.Aggregate(rows, keys, (count,))
    agreeing = tuple(n.Named(c, n.Column(c, kinds[c])) for c in figure.columns)
    counted = n.Aggregate(rows, (*keys, *agreeing), (count,))
    above = tuple(n.Named(key, n.Column(key, kinds[name])) for key, name in key_names.items())
    largest = n.Aggregation(MOST, "max", n.Column(ROWS, t.INTEGER))
    return n.Aggregate(counted, above, (largest,))


def deduplicated(figures: tuple[Figure, ...]) -> tuple[tuple[n.Aggregate, ...], tuple[int, ...]]:
    """Give the different statements of these figures, and for each figure which of them measures it."""
    statements: list[n.Aggregate] = []
    which: list[int] = []
    for figure in figures:
        candidate = statement(_without_alias(figure))
        index = next((i for i, s in enumerate(statements) if same(s, candidate)), len(statements))
        if index == len(statements):
            statements.append(candidate)
        which.append(index)
    return tuple(statements), tuple(which)


def _without_alias(figure: Figure) -> Figure:
    """Copies of a table under other names have the same figures, if filters are all that stands above them."""
    node = figure.relation
    while isinstance(node, n.Filter) and not n.has_subquery(node.predicate):
        node = node.input
    if not isinstance(node, n.Scan):
        return figure
    cut = len(node.alias)
    names = {f.name: SCANNED + f.name[cut:] for f in node.columns}
    scan = node

    def change(part: n.Node) -> n.Node:
        if part is scan:
            columns = tuple(replace(f, name=names[f.name]) for f in scan.columns)
            return n.Scan(scan.table, SCANNED, columns)
        if isinstance(part, n.Column):
            return n.Column(names[part.name], part.type)
        return part

    keys = None if figure.keys is None else tuple(names[k] for k in figure.keys)
    return Figure(transform(figure.relation, change), tuple(names[c] for c in figure.columns), keys)
