"""Plans that add up what each unit contributes, and cut it down to a limit.

In: rows with a column that holds each row's one unit, group keys, whole-number measures. Out: plans made of nodes that
every engine prints. Nothing is read here, and no limit is chosen here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cache, cached_property

from secant.plan import nodes as n
from secant.plan.rewrites.measures import WHOLE, Measure, literal
from secant.plan.typing import fields_of, type_of
from secant.schema import types as t

MARGIN = 1 - Fraction(1, 2**40)
"""What scaled contributions are multiplied by, so that rounded quotients of doubles never add up to more."""


@dataclass(frozen=True)
class Additions:
    """Rows, whose they are, and what of them is added up."""

    rows: n.Relation
    unit: str
    keys: tuple[n.Named, ...]
    calls: tuple[n.Aggregation, ...]
    """COUNT and SUM without DISTINCT, named as the measures' columns."""
    measures: Mapping[str, Measure]
    together: tuple[frozenset[str], ...] = ()
    """Measures of one quotient: a unit that one of their limits cuts down is scaled down in all of them.

    Rests on truncation.weight.
    """

    alone: bool = False
    """Whether rows without a unit are added up as they are: each is a unit of its own that no limit cuts.

    Rests on truncation.nobody.
    """
    fine: Mapping[str, int] = field(default_factory=dict)
    """Measure -> parts of a whole step that cut-down numbers are counted in: most of a count of two would be lost."""
    made: n.Relation | None = None
    """What each unit adds, where it is not the rows' own sums."""

    @cached_property
    def each(self) -> n.Relation:
        """What each unit adds: one object, so that plans which begin with it can be seen to do so."""
        return each_unit(self) if self.made is None else self.made

    @cached_property
    def values(self) -> n.Distinct:
        """Which values each unit has, likewise."""
        return different_values(self)

    def partners(self, name: str) -> tuple[str, ...]:
        """Give the measures that share a weight with one, itself among them, in order."""
        family = next((f for f in self.together if name in f), frozenset((name,)))
        return tuple(c.name for c in self.calls if c.name in family)


def each_unit(a: Additions) -> n.Aggregate:
    """Give what each unit adds to each measure in each group.

    Rows without a unit stand together under NULL; they go unless each of them keeps to every limit (truncation.nobody).
    """
    unit = column_of(a.rows, a.unit)
    rows = a.rows if a.alone else n.Filter(a.rows, n.Not(n.IsNull(unit)))
    keys = tuple(k for k in a.keys if k.name != a.unit)
    return n.Aggregate(rows, (n.Named(owner_of(a), unit), *keys), a.calls)


def _size(each: n.Relation, a: Additions, size: n.Scalar) -> n.Scalar:
    """Give the size of what a unit adds; none where rows without a unit stand together, since no limit cuts them."""
    return unless_nobodys(each, a, literal(Fraction(0), type_of(size)), size)


def unless_nobodys(each: n.Relation, a: Additions, nobodys: n.Scalar, units: n.Scalar) -> n.Scalar:
    """Give one thing for units, and another for rows without one that stand together."""
    if not a.alone:
        return units
    return n.Case((n.Branch(n.IsNull(column_of(each, owner_of(a))), nobodys),), units)


def held(added: n.Column, measure: Measure) -> n.Scalar:
    """Give what a unit adds to a group as a number of 64 bits: beyond all limits it may be any (rewrite.wide)."""
    if not measure.wide or added.type.kind != "INTEGER":
        return added
    return n.Clamp(added, n.Literal(-WHOLE, t.INTEGER), n.Literal(WHOLE, t.INTEGER))


def owner_of(a: Additions) -> str:
    """Name the column of units; a group key may be the unit's column itself."""
    return a.unit if any(k.name == a.unit for k in a.keys) else f"{a.unit}.adds"


def column_of(relation: n.Relation, name: str) -> n.Column:
    """Give a column of a relation by its name."""
    for f in fields_of(relation):
        if f.name == name:
            return n.Column(f.name, f.type)
    raise KeyError(name)


def columns_of(relation: n.Relation) -> dict[str, n.Column]:
    """Give the columns of a relation by their names."""
    return {f.name: n.Column(f.name, f.type) for f in fields_of(relation)}


def totals(each: n.Relation, a: Additions) -> n.Relation:
    """Give the size of what each unit adds to each measure, all groups together."""
    columns = columns_of(each)
    sizes = [
        (c.name, _size(each, a, n.Call("abs", (held(columns[c.name], a.measures[c.name]),))))
        for c in a.calls
    ]
    unit = n.Named(f"{owner_of(a)}.total", columns[owner_of(a)])
    if not a.keys:
        return n.Project(each, (unit, *(n.Named(total_of(c), size) for c, size in sizes)))
    calls = tuple(n.Aggregation(total_of(c), "sum", size) for c, size in sizes)
    return n.Aggregate(each, (unit,), calls)


def total_of(column: str) -> str:
    """Name the size of what a unit adds to a measure, all groups together."""
    return f"{column}.total"


def amount(limit: int, measure: Measure, kind: t.Type) -> n.Literal:
    """Write a number of whole steps in the unit that the statement adds up in."""
    return literal(limit * measure.step if kind.kind == "DECIMAL" else Fraction(limit), kind)


def cut_down(a: Additions, limits: Mapping[str, int]) -> n.Aggregate:
    """Give the measures with every unit's additions scaled down to its limit where they exceed it (truncation.clip)."""
    return _cut(a, [(name, name, limit) for name, limit in limits.items()])


def cut_down_to_each(a: Additions, limits: Mapping[str, Sequence[int]]) -> n.Aggregate:
    """Give every measure once for each of its limits, measure after measure, in whole steps (truncation.race)."""
    return _cut(
        replace(a, fine={}),
        [
            (f"{name}.limit{index}", name, limit)
            for name, several in limits.items()
            for index, limit in enumerate(several)
        ],
    )


def _cut(a: Additions, cuts: Sequence[tuple[str, str, int]]) -> n.Aggregate:
    """Add up the measures cut down to limits; wanted are (column, measure, limit)."""
    each, here = a.each, columns_of(a.each)
    items: list[n.Named] = [n.Named(k.name, here[k.name]) for k in a.keys]
    rows: n.Relation = each
    all_groups: Mapping[str, n.Column] = {}
    if a.keys:
        sizes = totals(each, a)
        all_groups = columns_of(sizes)
        same = n.Compare("=", here[owner_of(a)], all_groups[f"{owner_of(a)}.total"])
        rows = n.Join("left" if a.alone else "inner", each, sizes, same)
    limits = {name: limit for _, name, limit in cuts}

    @cache  # measures of one quotient ask for each other's
    def sized(name: str, limit: int) -> tuple[n.Scalar, n.Literal]:
        added = here[name]
        plain: n.Scalar = n.Call("abs", (held(added, a.measures[name]),))
        if a.keys:
            plain = all_groups[total_of(name)]
        size = _size(each, a, plain)
        return size, amount(limit, a.measures[name], added.type)

    for column, name, limit in cuts:
        others = [m for m in a.partners(name) if m in limits and m != name]
        weights = [sized(name, limit), *(sized(m, limits[m]) for m in others)]
        added, fine = here[name], a.fine.get(name, 1)
        if a.keys or others:
            value = _weighted(added, weights, a.measures[name], fine)
        else:
            least = amount(-limit, a.measures[name], added.type)
            within = unless_nobodys(each, a, added, n.Clamp(added, least, weights[0][1]))
            value = _in_parts(within, added.type, fine)
        items.append(n.Named(f"{column}.cut", value))
    cut = n.Project(rows, tuple(items))
    summed = columns_of(cut)
    keys = tuple(n.Named(k.name, summed[k.name]) for k in a.keys)
    calls = tuple(n.Aggregation(c, "sum", summed[f"{c}.cut"]) for c, _, _ in cuts)
    return n.Aggregate(cut, keys, calls)


def different_values(a: Additions) -> n.Distinct:
    """Give which values each unit has in each group, for a measure that counts different values.

    Rows without a unit have one value each, which no limit cuts (truncation.nobody).
    """
    (call,) = a.calls
    assert isinstance(call.argument, n.Column)
    present = n.Not(n.IsNull(call.argument))
    names = dict.fromkeys((a.unit, *(k.name for k in a.keys), call.argument.name))
    items = tuple(n.Named(c, column_of(a.rows, c)) for c in names)
    return n.Distinct(n.Project(n.Filter(a.rows, present), items))


def one_row_for_each_value(a: Additions) -> Additions:
    """Count the values of each unit, where a value belongs to one unit: they add up (truncation.distinct)."""
    (call,) = a.calls
    values = different_values(a)
    counted = replace(call, argument=None, distinct=False)
    keys = tuple(replace(k, expression=column_of(values, k.name)) for k in a.keys)
    return replace(a, rows=values, keys=keys, calls=(counted,))


def cut_values(a: Additions, limits: Mapping[str, int]) -> n.Aggregate:
    """Count different values, of which each unit brings in the first ones only (truncation.distinct)."""
    (call,) = a.calls
    values = a.values
    order = tuple(f.name for f in fields_of(values) if f.name != a.unit)
    cut = n.Truncate(values, (a.unit,), order, limits[call.name])
    return n.Aggregate(cut, a.keys, (call,))


def _weighted(
    added: n.Column,
    weights: Sequence[tuple[n.Scalar, n.Literal]],
    measure: Measure,
    fine: int,
) -> n.Scalar:
    """Scale a unit's additions by the least of several shares, toward zero, to whole parts of a step.

    Rests on truncation.weight.

    Each weight is what a unit adds to a measure, all groups together, and that measure's limit.
    """
    shares = [
        n.Arithmetic(
            "/", n.Cast(most, t.DOUBLE), n.Cast(n.Call("greatest", (size, most)), t.DOUBLE)
        )
        for size, most in weights
    ]
    step = measure.step if added.type.kind == "DECIMAL" else Fraction(1)
    parts = n.Arithmetic(
        "*",
        n.Cast(n.Call("abs", (held(added, measure),)), t.DOUBLE),
        literal(MARGIN * fine / step, t.DOUBLE),
    )
    share = shares[0] if len(shares) == 1 else n.Call("least", tuple(shares))
    whole: n.Scalar = n.Cast(n.Call("floor", (n.Arithmetic("*", parts, share),)), t.INTEGER)
    if added.type.kind == "DECIMAL":
        whole = n.Arithmetic("*", whole, literal(measure.step, added.type))
    whole = n.Cast(whole, added.type)
    nothing = literal(Fraction(0), added.type)
    signed = n.Case((n.Branch(n.Compare("<", added, nothing), n.Negate(whole)),), whole)
    inside = [n.Compare("<=", size, most) for size, most in weights]
    keeps = inside[0] if len(inside) == 1 else n.And(tuple(inside))
    return n.Case((n.Branch(keeps, _in_parts(held(added, measure), added.type, fine)),), signed)


def _in_parts(whole: n.Scalar, kind: t.Type, fine: int) -> n.Scalar:
    """Give whole steps in parts of steps."""
    # Without digits behind the point, so that the product needs no more of them than the steps do.
    number = t.decimal(t.MAX_PRECISION, 0) if kind.kind == "DECIMAL" else kind
    return n.Arithmetic("*", whole, literal(Fraction(fine), number)) if fine > 1 else whole
