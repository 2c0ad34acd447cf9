"""The measures beside the figures: one statement that joins and adds up once for both (residual.answer).

In: a release and the figures of its survey. Out: a relation with a row for each figure, as the survey's own statement
has it, and one more row with the measures, which are those of the release on every database; None where that would not
be so, or where it would read more rows than the release does. Never here: a bound; data.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction

from secant.plan import nodes as n
from secant.plan.rewrites.enforce import MeasuredAggregate
from secant.plan.rewrites.rewrite import columns_of, substitute
from secant.plan.typing import fields_of, type_of
from secant.schema import types as t
from secant.sensitivity.residual.rules import Figure
from secant.sensitivity.residual.shape import Atoms, Shape
from secant.sensitivity.residual.statements import Counted, Statements
from secant.sensitivity.summands import each_row

ANSWER = -1
"""Stands in the row of the measures where the others have the number of a figure."""
LEAST = 3
"""Atoms from which on it is worth it: with two, a figure counts one table, and nothing is joined twice."""
ROWS = 10**12
"""No engine goes through more rows of a relation."""
LARGEST = 10**38
"""Exact numbers stay below it."""
Numbered = Sequence[tuple[int, Figure]]


def with_measures(release: MeasuredAggregate, shape: Shape, figures: Numbered) -> n.Relation | None:
    """Give one relation for all figures and all measures, if the measures can be read off what is counted anyway."""
    exact, form = release.exact, shape.form
    if exact.keys or release.ranked or form.conditions or len(form.atoms) < LEAST:
        return None
    for measure, call in zip(release.measures, exact.aggregations, strict=True):
        if not _adds_up(call, measure.step):
            return None
    largest_first = sorted((f for _, f in figures), key=lambda f: -len(f.atoms))
    for figure in largest_first:
        statements = Statements(shape, {}, numbered=True)
        _share(release, statements, largest_first, figure)
        whole = _answered(release, statements, figure)
        if whole is not None:
            return _beside(statements, statements.statement(figures), whole)
    return None


def _adds_up(call: n.Aggregation, step: Fraction) -> bool:
    """Whether groups can be added up first: exact numbers, so small that no sum of sums leaves their type."""
    if call.distinct or call.function not in ("count", "sum"):
        return False
    if call.argument is None:
        return True
    kind = type_of(call)
    if n.has_subquery(call.argument) or kind.kind not in ("INTEGER", "DECIMAL"):
        return False
    units = each_row(call, step) * step * Fraction(10) ** kind.scale
    return units * ROWS**2 < LARGEST


def _share(
    release: MeasuredAggregate, statements: Statements, figures: Sequence[Figure], answered: Figure
) -> None:
    """Read once what both the measures and a figure are made of, where rows are few or hold a declared key.

    A relation that is read once is kept in between. That is worth it for rows that are numbered, and for a join that a
    filter cuts down; rows of one large table are rather read twice, because the join that the measures need can then
    leave most of them out while it reads.
    """
    shape = statements.shape
    outputs = dict(shape.form.outputs)
    read = frozenset[str]().union(*(columns_of(outputs[name]) for name in _columns_read(release)))
    for figure in figures:
        if statements.ranks(figure):
            statements.read_once(figure.atoms, read)
    for figure in figures:
        if figure.atoms < answered.atoms and _worth_joining_once(shape, figure.atoms):
            rows = statements.read_once(figure.atoms, read)
            statements.done[(figure.atoms, figure.boundary)] = statements.grouped(
                rows, figure.boundary
            )
            break


def _worth_joining_once(shape: Shape, atoms: Atoms) -> bool:
    """Whether a join has no more rows than one of its atoms, by declared keys, and a filter leaves some of them out."""
    filtered = any(
        isinstance(node, n.Filter)
        for index in atoms
        for node in n.walk(shape.form.atoms[index].relation)
    )
    return len(atoms) > 1 and filtered and _follows_one(shape, atoms)


def _columns_read(release: MeasuredAggregate) -> set[str]:
    """Give the columns of the release's input that its measures read."""
    calls = release.exact.aggregations
    return {c for call in calls if call.argument is not None for c in columns_of(call.argument)}


def _answered(
    release: MeasuredAggregate, statements: Statements, figure: Figure
) -> n.Aggregate | None:
    """Give the measures, from what the figure counts by its boundary, joined with the atoms that are left."""
    shape, atoms = statements.shape, figure.atoms
    others = shape.everything - atoms
    if figure.boundary != shape.classes(atoms) & shape.classes(others):
        return None  # a figure that agrees in less than all that it shares with the others
    group = _counts(release, statements, figure) or _sums(release, statements, figure)
    if group is None:
        return None
    relation, names = group
    statements.done[(atoms, figure.boundary)] = relation
    while others:
        nearest = max(sorted(others), key=lambda i: len(shape.touched[i] & relation.classes.keys()))
        relation = statements.pair(relation, statements.atom(nearest))
        others -= {nearest}
    calls = zip(release.exact.aggregations, names, strict=True)
    return n.Aggregate(
        relation.relation, (), tuple(n.Aggregation(c.name, "sum", column) for c, column in calls)
    )


Group = tuple[Counted, list[n.Column]]
"""What is counted by a boundary, and for each measure the column that holds its part."""


def _counts(release: MeasuredAggregate, statements: Statements, figure: Figure) -> Group | None:
    """Count rows by what hangs on one atom; None where counts would be multiplied, or more than rows are asked for."""
    if any(call.argument is not None for call in release.exact.aggregations):
        return None
    root, below = statements.shape.roots(figure.atoms, figure.boundary)[0]
    counted = statements.hung(root, below)
    if counted.count is not None and counted.count.type != t.INTEGER:
        return None
    group = statements.grouped(counted, figure.boundary, whole=True)
    assert group.count is not None, "grouped"
    return group, [group.count for _ in release.exact.aggregations]


def _sums(release: MeasuredAggregate, statements: Statements, figure: Figure) -> Group | None:
    """Join the figure's atoms row by row, and add the summands up by its boundary."""
    shape, outputs = statements.shape, dict(statements.shape.form.outputs)
    if not _follows_one(shape, figure.atoms):
        return None
    calls, measured = release.exact.aggregations, _columns_read(release)
    read = {column for name in measured for column in columns_of(outputs[name])}
    if any(n.has_subquery(outputs[name]) for name in measured):
        return None
    if any(shape.form.home[column] not in figure.atoms for column in read):
        return None
    rows = statements.joined(figure.atoms)
    name = statements.fresh()
    values = {c: n.Named(f"{name}.value{i}", outputs[c]) for i, c in enumerate(sorted(measured))}
    columns_by_name = {column.name: column for column in rows.classes.values()}
    items = (*(n.Named(c, column) for c, column in columns_by_name.items()), *values.values())
    with_values = replace(rows, relation=n.Project(rows.relation, items))
    names: dict[str, n.Scalar] = {
        c: n.Column(value.name, type_of(value)) for c, value in values.items()
    }
    parts = tuple(
        replace(
            call,
            name=f"{name}.part{i}",
            argument=None if call.argument is None else substitute(call.argument, names),
        )
        for i, call in enumerate(calls)
    )
    group = statements.grouped(with_values, figure.boundary, parts)
    return group, [n.Column(part.name, type_of(part)) for part in parts]


def _follows_one(shape: Shape, atoms: Atoms) -> bool:
    """Whether declared keys let the atoms' join have no more rows than one of them: for costs only."""
    return any(
        shape.determined(atoms - {one}, shape.touched[one], shape.likely) == atoms - {one}
        for one in atoms
    )


def _beside(statements: Statements, figures: n.Relation, measures: n.Aggregate) -> n.Relation:
    """Put the row of the measures below the rows of the figures; each has NULLs for what the other has."""
    fields = fields_of(figures)
    name = statements.fresh()
    calls = [n.Column(f.name, f.type) for f in fields_of(measures)]
    left = [n.Named(f"{name}.figure{i}", n.Column(f.name, f.type)) for i, f in enumerate(fields)]
    left += [n.Named(f"{name}.none{i}", _nothing(c.type)) for i, c in enumerate(calls)]
    right = [n.Named(f"{name}.which", n.Literal(ANSWER, t.INTEGER))]
    right += [n.Named(f"{name}.value", _nothing(t.DOUBLE))]
    right += [n.Named(f"{name}.measure{i}", c) for i, c in enumerate(calls)]
    above = n.Project(figures, tuple(left))
    return n.Union(above, n.Project(measures, tuple(right)), True, fields_of(above))


def _nothing(kind: t.Type) -> n.Scalar:
    return n.Cast(n.Literal(None, t.NULL), kind)
