"""Plans that count units by how much they add: one bucket for each limit, instead of one count and one sum for each.

In: what each unit adds, and limits to choose from. Out: one statement for all measures, with few rows. Who adds more
than a limit, and what is left if every unit is cut down to it, follows from the buckets (truncation.tally). Nothing is
read here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from secant.plan import nodes as n
from secant.plan.rewrites.measures import Measure
from secant.schema import types as t
from secant.sensitivity.certificate import Tallies
from secant.sensitivity.summands import never_negative
from secant.sensitivity.truncation.clipping import (
    Additions,
    amount,
    column_of,
    columns_of,
    total_of,
    totals,
    unless_nobodys,
)

Limits = Mapping[str, tuple[int, ...]]


def above_limits(a: Additions, limits: Limits) -> Tallies:
    """Count the units by what they add to each measure, all groups together."""
    return _by_total(totals(a.each, a), limits, a.measures)


def above_values(a: Additions, limits: tuple[int, ...]) -> Tallies:
    """Count the units by how many different values they have, all groups together."""
    (call,) = a.calls
    column = column_of(a.values, a.unit)
    unit = n.Named(f"{a.unit}.total", column)
    owned = n.Filter(a.values, n.Not(n.IsNull(column)))
    sizes = n.Aggregate(owned, (unit,), (n.Aggregation(total_of(call.name), "count", None),))
    return _by_total(sizes, {call.name: limits}, a.measures)


def each_value(a: Additions, limits: tuple[int, ...]) -> Tallies:
    """Without keys, give each unit with each of its different values: which to count is found outside of the engine."""
    (call,) = a.calls
    return Tallies(a.values, {call.name: limits}, assigned=True)


def _by_total(sizes: n.Relation, limits: Limits, measures: Mapping[str, Measure]) -> Tallies:
    columns = columns_of(sizes)
    buckets = [
        _bucket(columns[total_of(name)], several, measures[name])
        for name, several in limits.items()
    ]
    return Tallies(_tallied(sizes, tuple(limits), buckets), limits)


def at_once(a: Additions, limits: Limits) -> Tallies:
    """Without keys, count the units by what they add to each measure, and sum that up bucket by bucket.

    The units are added up once. Rows without a unit stand together in the bucket that no limit cuts.
    """
    each = a.each
    signed = frozenset(c.name for c in a.calls if c.name in limits and not never_negative(c))
    buckets, added = [], []
    for name, several in limits.items():
        column = column_of(each, name)
        inside = n.Literal(len(several) if name in signed else 0, t.INTEGER)
        ends = (*(-limit - 1 for limit in reversed(several)), *several)
        bucket = _bucket(column, ends if name in signed else several, a.measures[name])
        buckets.append(
            unless_nobodys(each, a, inside, _bucket_value(column, bucket, inside, name in signed))
        )
        added.append(column)
    return Tallies(_tallied(each, tuple(limits), buckets, added), limits, signed, True)


def _bucket_value(column: n.Column, bucket: n.Bucket, inside: n.Literal, signed: bool) -> n.Scalar:
    """What is not there lies below all limits: among those of both signs that is not where nothing lies."""
    return n.Case((n.Branch(n.IsNull(column), inside),), bucket) if signed else bucket


def _bucket(size: n.Column, limits: Sequence[int], measure: Measure) -> n.Bucket:
    if size.type.kind == "INTEGER":
        return n.Bucket(size, tuple(limits))
    return n.Bucket(size, tuple(amount(x, measure, size.type).value for x in limits))


def _tallied(
    rows: n.Relation,
    names: tuple[str, ...],
    buckets: Sequence[n.Scalar],
    added: Sequence[n.Column] = (),
) -> n.Aggregate:
    """Count rows by measure and bucket; a row is counted once for each measure."""
    bucket, sums = buckets[-1], list(added)
    keys: list[n.Named] = []
    chosen: Sequence[n.Scalar] = added
    if len(names) > 1:
        number = n.Field(f"{names[0]}.measure", t.INTEGER)
        places = n.Values((number,), tuple((i,) for i in range(len(names))))
        rows = n.Join("cross", rows, places, None)
        which = n.Column(number.name, number.type)
        here = [n.Compare("=", which, n.Literal(i, t.INTEGER)) for i in range(len(names))]
        pairs = zip(here, buckets[:-1], strict=False)
        bucket = n.Case(tuple(n.Branch(test, x) for test, x in pairs), bucket)
        chosen = [
            n.Case((n.Branch(test, x),), n.Literal(None, x.type))
            for test, x in zip(here, sums, strict=False)
        ]
        keys.append(n.Named(f"{names[0]}.place", which))
    keys.append(n.Named(f"{names[0]}.bucket", bucket))
    units = n.Aggregation(f"{names[0]}.units", "count", None)
    summed = [
        n.Aggregation(f"{name}.sum", "sum", x) for name, x in zip(names, chosen, strict=False)
    ]
    return n.Aggregate(rows, tuple(keys), (units, *summed))
