"""Plans that measure a sum about a center: for averages, what a unit adds is compared with what its rows usually add.

Rests on truncation.center.

In: what each unit adds to a sum and to the count that it is divided by. Out: plans made of nodes that every engine
prints: units counted by their own average, and what each adds beyond a center times its rows. A center is chosen
elsewhere; nothing is read here.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace
from fractions import Fraction

from secant.plan import nodes as n
from secant.plan.facts.domains import Listed, Looked
from secant.plan.facts.ranges import NOTHING_DECLARED, Ranges, as_number
from secant.plan.rewrites.enforce import MeasuredAggregate
from secant.plan.rewrites.measures import Measure
from secant.plan.rewrites.rewrite import columns_of as columns_in
from secant.schema import types as t
from secant.sensitivity.certificate import Centering, ClippedContribution, Contributions
from secant.sensitivity.truncation.clipping import (
    Additions,
    column_of,
    columns_of,
    cut_down,
    owner_of,
)
from secant.sensitivity.truncation.tallying import above_limits, at_once

PARTS = 2**10
"""Parts of a whole step in which narrow summands are measured: centers lie between whole numbers."""
WIDE = 2**20
"""Whole steps from which on a summand is fine enough as it is."""
WIDEST = 2**62
"""Limits, in parts of a step, stay below this: they fit into the engine's integers."""
MANY = 2**20
"""Rows of a unit that limits allow for where nobody declared how many it may have."""


def about_centers(release: MeasuredAggregate, limit: int | None) -> dict[str, str]:
    """Give the sums that may be measured about a center: of known groups, only ever divided by one count, with that."""
    listed = all(isinstance(d, (Listed, Looked)) for d in release.domains)
    if not listed and release.weighed is None:  # groups have to be known before anything is read
        return {}
    calls = {c.name: c for c in release.exact.aggregations}
    measures = {m.column: m for m in release.measures}
    found: dict[str, str] = {}
    if release.selector is not None:
        return {}
    for family in release.together:
        counts = [c for c in family if calls[c].function == "count" and not calls[c].distinct]
        sums = sorted(family.difference(counts))
        if len(counts) != 1 or any(shift_of(calls[c]) is None for c in sums):
            continue
        if not all(_fits(calls[c], measures[c], limit) for c in sums):
            continue
        if limit is not None and any(_written(release, calls[c]) for c in sums):
            continue
        used = [columns_in(item.expression) for item in release.finish.items]
        if all(counts[0] in columns for c in sums for columns in used if c in columns):
            found |= dict.fromkeys(sums, counts[0])
    return found


def _written(release: MeasuredAggregate, call: n.Aggregation) -> bool:
    """Whether the question itself writes the values, such as 0 and 1: they fill their range, wherever a center lies."""
    names = columns_in(call)
    return any(
        _only_literals(item.expression)
        for node in n.walk(release.exact)
        if isinstance(node, n.Project)
        for item in node.items
        if item.name in names
    )


def _only_literals(value: n.Scalar) -> bool:
    if isinstance(value, n.Case):
        return all(_only_literals(x) for x in (*(b.value for b in value.branches), value.default))
    if isinstance(value, (n.Cast, n.Attempt)):
        return _only_literals(value.operand)
    return isinstance(value, n.Literal)


def shift_of(call: n.Aggregation) -> Fraction | None:
    """Give what is taken off each clamped value before it is summed; None if more than that is done to it."""
    value = call.argument
    if call.function != "sum" or call.distinct or value is None:
        return None
    if isinstance(value, n.Quantize):
        value = value.operand
    if isinstance(value, n.Clamp):
        return Fraction(0)
    if not (isinstance(value, n.Arithmetic) and value.op == "-"):
        return None
    if not (isinstance(value.left, n.Clamp) and isinstance(value.right, n.Literal)):
        return None
    return as_number(value.right.value)


def centered(
    a: Additions, call: n.Aggregation, divisor: str, limit: int | None
) -> ClippedContribution:
    """Give limits for what units add to a sum beyond a center times their rows."""
    measure = a.measures[call.name]
    low, high = _ends(call, measure)
    limits, fine = _limits(call, measure, limit)
    taken = shift_of(call)
    assert taken is not None, "asked for sums of clamped values only"
    anchor = min(max(-taken / measure.step, low), high)
    scale = measure.step if measure.type.kind == "DECIMAL" else Fraction(1)
    sums = _Sums(a, call.name, divisor, fine, scale, limits)
    centering = Centering(
        divisor,
        math.floor(low * fine),
        math.ceil(high * fine),
        round(anchor * fine),
        sums.placed,
        sums.by_group,
        sums.together,
    )
    return ClippedContribution(
        sums.by_group(centering.anchor),
        limits,
        partners=(call.name,),
        fine=fine,
        octaves=True,
        centering=centering,
    )


def _ends(call: n.Aggregation, measure: Measure) -> tuple[Fraction, Fraction]:
    """Give between what one row adds, in whole steps."""
    assert call.argument is not None
    low, high = Ranges(NOTHING_DECLARED).of(call.argument).ends()
    unit = Fraction(1) if isinstance(call.argument, n.Quantize) else measure.step
    return low / unit, high / unit


def _limits(
    call: n.Aggregation, measure: Measure, limit: int | None
) -> tuple[tuple[int, ...], int]:
    """Give limits in whole steps, each twice the one before, and the parts of a step that they are counted in."""
    low, high = _ends(call, measure)
    width = max(1, math.ceil(high - low))
    fine = PARTS if width < WIDE else 1
    limits = [min(width * MANY, WIDEST // 2 // fine) if limit is None else width * limit]
    while limits[-1] > 1:
        limits.append(-(-limits[-1] // 2))
    return tuple(reversed(limits)), fine


def _fits(call: n.Aggregation, measure: Measure, limit: int | None) -> bool:
    limits, fine = _limits(call, measure, limit)
    return limits[-1] * fine < WIDEST


class _Sums:
    """What units add to one sum and to its divisor."""

    def __init__(
        self,
        a: Additions,
        name: str,
        divisor: str,
        fine: int,
        scale: Fraction,
        limits: tuple[int, ...],
    ) -> None:
        self.a, self.name, self.divisor = a, name, divisor
        self.fine, self.scale, self.limits = fine, scale, limits
        owner = column_of(a.each, owner_of(a))
        # Rows without a unit are nobody's: together they may add anything.
        owned = n.Filter(a.each, n.Not(n.IsNull(owner)))
        self.owned = n.Filter(owned, n.Not(n.IsNull(column_of(owned, name))))

    @property
    def all_groups(self) -> n.Relation:
        """Give what each unit adds, all groups together."""
        if not self.a.keys:
            return self.owned
        owner = n.Named(owner_of(self.a), column_of(self.owned, owner_of(self.a)))
        both = (self.name, self.divisor)
        calls = tuple(n.Aggregation(c, "sum", column_of(self.owned, c)) for c in both)
        return n.Aggregate(self.owned, (owner,), calls)

    def placed(self, points: tuple[int, ...]) -> n.Aggregate:
        """Count units by where their own average lies among some points."""
        rows = self.all_groups
        summed, counted = column_of(rows, self.name), column_of(rows, self.divisor)
        number = n.Call("greatest", (counted, n.Literal(1, t.INTEGER)))
        average = n.Arithmetic("/", n.Cast(summed, t.DOUBLE), n.Cast(number, t.DOUBLE))
        items = n.Named(f"{self.name}.average", self._in_parts(average))
        averages = n.Project(rows, (items,))
        where = n.Bucket(column_of(averages, items.name), points)
        key = n.Named(f"{self.name}.place", where)
        return n.Aggregate(averages, (key,), (n.Aggregation(f"{self.name}.units", "count", None),))

    def by_group(self, center: int) -> Contributions:
        """Give what units add beyond a center, group by group."""
        keys = tuple(k for k in self.a.keys if k.name != self.a.unit)
        kept = (*(k.name for k in keys), owner_of(self.a))
        return self._about(self.owned, center, self.a.keys, kept)

    def together(self, center: int) -> Contributions:
        """Give what units add beyond a center, all groups together."""
        return self._about(self.all_groups, center, (), (owner_of(self.a),))

    def _about(
        self, rows: n.Relation, center: int, keys: tuple[n.Named, ...], kept: Iterable[str]
    ) -> Contributions:
        here = columns_of(rows)
        number = n.Cast(here[self.divisor], t.DOUBLE)
        usual = n.Arithmetic("*", number, n.Literal(float(self._amount(center)), t.DOUBLE))
        beyond = n.Arithmetic("-", n.Cast(here[self.name], t.DOUBLE), usual)
        parts = n.Named(self.name, self._in_parts(beyond))
        items = (*(n.Named(c, here[c]) for c in dict.fromkeys(kept)), parts)
        made = n.Project(rows, items)
        call = n.Aggregation(self.name, "sum", n.Column(self.name, t.INTEGER))
        measures = {self.name: replace(self.a.measures[self.name], type=t.INTEGER)}
        about = replace(
            self.a,
            keys=keys,
            calls=(call,),
            measures=measures,
            together=(),
            alone=False,
            fine={},
            made=made,
        )
        limits = {self.name: tuple(x * self.fine for x in self.limits)}
        return Contributions(
            above_limits(about, limits) if keys else None,
            lambda chosen: cut_down(about, {c: x * self.fine for c, x in chosen.items()}),
            at_once=None if keys else at_once(about, limits),
            each=self.a.each,
        )

    def _in_parts(self, value: n.Scalar) -> n.Quantize:
        """Write a real as a whole number of parts, moved to where limits end before the engine's integers do."""
        most = self.limits[-1] * self.fine
        end = float(self._amount(most))
        ends = n.Literal(-end, t.DOUBLE), n.Literal(end, t.DOUBLE)
        return n.Quantize(n.Clamp(value, *ends), self.scale / self.fine, -most, most)

    def _amount(self, parts: int) -> Fraction:
        """Give parts of a step in the unit that the statement adds up in."""
        return parts * self.scale / self.fine
