"""One statement that yields the softened measures and, beside them, the parts of their smooth bounds.

In: a release and, for each measure and each scan of a protected table, how fast a joined row moves.
Out: a plan whose first columns are keys and measures and whose further columns are the parts of bounds,
one for each measure and scan. Rows that one protected row stands in are gathered before the largest is
taken; where every row stands alone nothing is gathered, and a single pass over the rows does it all.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import field, replace
from decimal import Decimal
from fractions import Fraction

from secant.numeric.powers import power
from secant.plan import nodes as n
from secant.plan.rewrites.enforce import MeasuredAggregate
from secant.plan.rewrites.hoist import hoisted
from secant.plan.typing import fields_of, type_of
from secant.records import frozen
from secant.schema.types import DOUBLE, INTEGER
from secant.sensitivity.derivative import shapes
from secant.sensitivity.derivative.counted import Sums, counted
from secant.sensitivity.derivative.peaks import Peak, leaf_name, peak
from secant.sensitivity.derivative.soften.branches import branches_of, pulled, together
from secant.sensitivity.derivative.space import Key, Space


@frozen
class Motion:
    """How one measure moves with the rows of one scan."""

    measure: str
    role: str
    space: Space
    entries: dict[Key, n.Scalar]
    """Gradient of one joined row, as bounds."""
    gathered: tuple[n.Column, ...] | None
    """Columns that gather joined rows, perhaps none (all together); None if each row stands alone."""
    power: Fraction | None
    """Dual exponent over rows: None takes the largest."""
    near: n.Scalar | None = None
    """A condition on joined rows: others add nothing to the measure and move it by its floor."""
    times: int | None = None
    """Where joined rows are gathered and far ones left out: how many one row can stand in."""
    floors: dict[Key, float] = field(default_factory=dict)
    """What each entry is for a far row."""
    dropped: bool = False
    """Whether columns that move the measure by less than its floor were left out."""
    branch: int = 0
    """In which branch of the release's rows the scan stands."""
    keyed: bool = False
    """Whether the columns that gather are a key that is kept or checked: then each joined row of a collection shows the
    same row."""
    rows: n.Project | None = None
    """Rows to look at where those of the release are groups of them (derivative.nested); None for the release's own."""


@frozen
class Part:
    """Where a part of a bound stands: in which statement, under which column, for which scan."""

    statement: int
    column: str
    role: str
    power: Fraction | None
    floored: bool
    """Whether something below the floor was left out, so that the part is at least that."""

    def total(self, value: object) -> Fraction:
        """Read the part that a statement found; rows that are not there do not move anything."""
        if not isinstance(value, (int, float, Decimal)):
            return Fraction(0)
        number = Fraction(value)
        if self.power is None or self.power == 1:
            return number
        high: Fraction | None = power(number, 1 / self.power).high
        assert high is not None
        return high


@frozen
class Instrument:
    """Statements to run, and where to read each measure's bound."""

    statements: tuple[n.Relation, ...]
    parts: dict[str, tuple[Part, ...]]


def instrument(release: MeasuredAggregate, motions: list[Motion]) -> Instrument:
    """Write the statements for all measures of a release."""
    rows = release.exact.input
    assert isinstance(rows, n.Project)
    if any(m.rows is not None for m in motions):
        return _beside_groups(release, motions)
    keyings = list(dict.fromkeys(_names(m) for m in motions if m.gathered is not None))
    alone = [m for m in motions if m.gathered is None]
    first = [m for m in motions if m.gathered is not None and _names(m) == keyings[0]]
    divisible = all(not c.distinct for c in release.exact.aggregations)
    parts: dict[str, list[Part]] = {}
    skipping = _near(release, motions)
    if skipping is not None:
        rows = n.Project(n.Filter(rows.input, skipping), rows.items)
    else:
        motions = [replace(m, times=None) for m in motions]
        alone, first = ([replace(m, times=None) for m in some] for some in (alone, first))
    if first and divisible:
        statements = [_gathering(release, rows, alone, first, measured=True)]
        remaining = keyings[1:]
        _note(parts, 0, [*alone, *first], skipping=skipping is not None)
    else:
        statements = [_single(release, rows, alone)]
        remaining = keyings
        _note(parts, 0, alone, skipping=skipping is not None)
    for keying in remaining:
        mine = [m for m in motions if m.gathered is not None and _names(m) == keying]
        _note(parts, len(statements), mine, skipping=skipping is not None)
        statements.append(_gathering(release, rows, [], mine, measured=False))
    parts_of = {m: tuple(p) for m, p in parts.items()}
    return Instrument(tuple(statements), parts_of)


def _beside_groups(release: MeasuredAggregate, motions: list[Motion]) -> Instrument:
    """Measure the groups, and look at the rows that they are made of in statements of their own."""
    named = {k.expression.name for k in release.exact.keys if isinstance(k.expression, n.Column)}
    parts: dict[str, list[Part]] = {}
    statements: list[n.Relation] = [release.exact]
    apart: dict[tuple[int, tuple[str, ...]] | None, list[Motion]] = {}
    for m in motions:
        motion = replace(m, times=None)
        apart.setdefault(None if m.gathered is None else _names(m), []).append(motion)
    for keying, mine in apart.items():
        below = mine[0].rows
        assert below is not None, "all motions of a release look at the same rows"
        rows = replace(below, items=tuple(i for i in below.items if i.name in named))
        _note(parts, len(statements), mine, skipping=False)
        if keying is None:
            statements.append(_single(release, rows, mine, measured=False))
        else:
            statements.append(_gathering(release, rows, [], mine, measured=False))
    return Instrument(tuple(statements), {m: tuple(p) for m, p in parts.items()})


def _near(release: MeasuredAggregate, motions: list[Motion]) -> n.Scalar | None:
    """Give the condition under which a joined row matters to any measure; None if all rows do (derivative.floor)."""
    nears = {m.measure: m.near for m in motions if m.near is not None}
    measures = {m.column for m in release.measures}
    plain = all(
        m.near is not None and m.power is None and (m.gathered is None or m.times is not None)
        for m in motions
    )
    if release.exact.keys or not plain or set(nears) != measures:
        return None
    conditions = list(nears.values())
    return conditions[0] if len(conditions) == 1 else n.Or(tuple(conditions))


def _names(motion: Motion) -> tuple[int, tuple[str, ...]]:
    return motion.branch, tuple(c.name for c in motion.gathered or ())


def _note(
    parts: dict[str, list[Part]], statement: int, motions: list[Motion], *, skipping: bool
) -> None:
    for m in motions:
        floored = m.dropped or skipping
        part = Part(statement, _column(m), m.role, m.power, floored)
        parts.setdefault(m.measure, []).append(part)


def _column(motion: Motion) -> str:
    return f"{motion.measure}.{motion.role}.bound"


def _collected(motion: Motion, summand: n.Scalar) -> n.Aggregation:
    """Take the largest over rows, or the sum of powers that an exponent asks for."""
    if motion.power is None:
        return n.Aggregation(_column(motion), "max", summand)
    return n.Aggregation(_column(motion), "sum", _powered(motion, summand))


def _powered(motion: Motion, summand: n.Scalar) -> n.Scalar:
    if motion.power is None or motion.power == 1:
        return summand
    return shapes.call("power", summand, shapes.number(float(motion.power)))


def _keys(release: MeasuredAggregate) -> tuple[n.Named, ...]:
    return tuple(
        n.Named(k.name, n.Column(k.name, type_of(k.expression))) for k in release.exact.keys
    )


def _single(
    release: MeasuredAggregate, rows: n.Project, alone: list[Motion], *, measured: bool = True
) -> n.Relation:
    """One pass: measures are summed and the largest motion is taken side by side."""
    items: list[_Item] = []
    calls = []
    for m in alone:
        for item, call in _leaves(m):
            items.append((m.branch, item))
            calls.append(call)
    extended = _extended(rows, items, release)
    own = release.exact.aggregations if measured else ()
    extended_aggregate = n.Aggregate(
        extended, release.exact.keys, (*own, *calls), release.exact.span
    )
    return _finished(extended_aggregate, alone)


def _peak(motion: Motion) -> Peak:
    """Say which aggregates the part of a motion is made of where every row stands alone."""
    row = motion.space.dual_expression(motion.role, motion.entries)
    if motion.power is None:
        return peak(row, _column(motion))
    whole = n.Column(leaf_name(_column(motion), 0), DOUBLE)
    return Peak((("sum", _powered(motion, row)),), whole)


def _leaves(motion: Motion) -> Iterator[tuple[n.Named, n.Aggregation]]:
    """Give for each aggregate of a motion what it takes of a row, and the aggregate."""
    for number, (function, scalar) in enumerate(_peak(motion).leaves):
        name = leaf_name(_column(motion), number)
        item = n.Named(f"{name}.row", scalar)
        yield item, n.Aggregation(name, function, n.Column(item.name, type_of(scalar)))


def _finished(aggregate: n.Aggregate, alone: list[Motion]) -> n.Relation:
    """Put the parts together from their aggregates, once for each group; other columns stay."""
    if not alone:
        return aggregate
    peaks = {_column(m): _peak(m) for m in alone}
    leaf_names = {leaf_name(name, i) for name, p in peaks.items() for i in range(len(p.leaves))}
    stay = tuple(
        n.Named(f.name, n.Column(f.name, f.type))
        for f in fields_of(aggregate)
        if f.name not in leaf_names
    )
    items = tuple(n.Named(name, p.whole) for name, p in peaks.items())
    return n.Project(aggregate, (*stay, *items))


_Item = tuple[int, n.Named]
"""A further column, and the branch that computes it."""


def _extended(rows: n.Project, items: Iterable[_Item], release: MeasuredAggregate) -> n.Project:
    """Add items to a projection; what measures and motions share is computed once.

    Of a union each branch computes its own items; rows of other branches have nothing there, and maxima and sums
    pass over them (derivative.union).
    """
    items = list(items)
    branches = branches_of(rows)
    if len(branches) == 1:
        added = tuple(item for _, item in items)
        relation, projected = hoisted(rows.input, (*rows.items, *added), release.name)
        return n.Project(relation, projected)
    kinds = [type_of(item.expression) for _, item in items]
    projections = []
    for number, branch in enumerate(branches):
        assert isinstance(branch, n.Project)
        own = tuple(
            item if index == number else n.Named(item.name, n.Literal(None, kind))
            for (index, item), kind in zip(items, kinds, strict=True)
        )
        below, computed = pulled(branch)
        relation, projected = hoisted(below, (*computed, *own), f"{release.name}.of{number}")
        projections.append(n.Project(relation, projected))
    whole = together(projections)
    names = tuple(n.Named(f.name, n.Column(f.name, f.type)) for f in fields_of(whole))
    return n.Project(whole, names)


def _with_far_rows(summed: n.Scalar, near: n.Column, times: int, floor: float) -> n.Scalar:
    """Add what the rows that were left out would have been: floor each, up to the most there can be.

    Rests on derivative.floor.
    """
    left = n.Arithmetic("-", shapes.number(float(times)), n.Cast(near, DOUBLE))
    return shapes.plus(summed, shapes.times(floor, left))


def _gathering(
    release: MeasuredAggregate,
    rows: n.Project,
    alone: list[Motion],
    gathered: list[Motion],
    *,
    measured: bool,
) -> n.Relation:
    """Two steps: joined rows of one protected row first, then all of them."""
    items: list[_Item] = []
    inner: list[n.Aggregation] = []
    outer: list[n.Aggregation] = []
    between: list[n.Named] = []
    own = tuple(
        (gathered[0].branch, n.Named(f"{c.name}.gathered", c)) for c in gathered[0].gathered or ()
    )
    nearby = n.Column(f"{release.name}.near", INTEGER)
    if any(m.times is not None for m in gathered):
        inner.append(n.Aggregation(nearby.name, "count", None))
    if measured:
        for call in release.exact.aggregations:
            name = f"{call.name}.part"
            inner.append(replace(call, name=name))
            again = {"count": "sum", "sum": "sum", "min": "min", "max": "max"}[call.function]
            kind = type_of(inner[-1])
            between.append(n.Named(name, n.Column(name, kind)))
            outer.append(n.Aggregation(call.name, again, n.Column(name, kind)))
    for m in alone:
        for item, call in _leaves(m):
            items.append((m.branch, item))
            passed = n.Column(f"{call.name}.part", type_of(call))
            inner.append(replace(call, name=passed.name))
            between.append(n.Named(passed.name, passed))
            outer.append(replace(call, argument=passed))
    for m in gathered:
        summed: dict[Key, n.Scalar] = {}
        for index, (key, entry) in enumerate(m.entries.items()):
            row, part = f"{_column(m)}.row{index}", f"{_column(m)}.part{index}"
            items.append((m.branch, n.Named(row, entry)))
            inner.append(n.Aggregation(part, "sum", n.Column(row, type_of(entry))))
            summed[key] = n.Column(part, type_of(inner[-1]))
            if m.times is not None:
                summed[key] = _with_far_rows(summed[key], nearby, m.times, m.floors[key])
        name = f"{_column(m)}.gathered"
        between.append(n.Named(name, m.space.dual_expression(m.role, summed)))
        outer.append(_collected(m, n.Column(name, type_of(between[-1].expression))))
    keys = _keys(release)
    if gathered[0].keyed and not alone and not keys and len(branches_of(rows)) == 1:
        summands = (*rows.items, *(item for _, item in items))
        columns = gathered[0].gathered or ()
        sums = Sums(
            gathered[0].role, columns, rows.input, summands, (*inner,), (*between,), (*outer,)
        )
        if (aggregate := counted(sums, release.name)) is not None:
            return replace(aggregate, span=release.exact.span)
    extended = _extended(rows, [*items, *own], release)
    kinds = {f.name: f.type for f in fields_of(extended)}
    collections = n.Aggregate(
        extended,
        (*keys, *(n.Named(o.name, n.Column(o.name, kinds[o.name])) for _, o in own)),
        tuple(inner),
    )
    below = n.Project(collections, (*keys, *between))
    return _finished(n.Aggregate(below, keys, tuple(outer), release.exact.span), alone)
