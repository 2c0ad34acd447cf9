"""Soften an aggregate whatever its rows are: those of a join, of a union, or inner groups.

In: an aggregate, and what is known beside it. Out: what is released instead. Branches of a union are softened each by
itself, in the same way: what they must agree on is settled first, the ends of a value, whether a sum stays exact,
whether a count is public (derivative.union). Inner groups are softened before what is made of them (derivative.nested).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from fractions import Fraction

from secant.plan import nodes as n
from secant.plan.facts.reads import scans
from secant.plan.functions.aggregates import SPREAD
from secant.plan.rewrites.rewrite import replaced
from secant.plan.show import same
from secant.plan.typing import fields_of, type_of
from secant.policy.policy import Policy, Protection
from secant.schema import types as t
from secant.sensitivity.certificate import CannotBound
from secant.sensitivity.derivative.soften.branches import spread, together
from secant.sensitivity.derivative.soften.emptiness import moves
from secant.sensitivity.derivative.soften.nested import inner_of, moving_calls
from secant.sensitivity.derivative.soften.sets import (
    Member,
    counted_once,
    members,
    membership,
    set_of,
    sides_of,
)
from secant.sensitivity.derivative.soften.soften import Softener
from secant.sensitivity.derivative.soften.softened import Agreed, Softened
from secant.sensitivity.derivative.soften.stripped import unshared
from secant.sensitivity.derivative.space import space_of

_WITH_ENDS = ("avg", "min", "max", "product", *SPREAD)
"""Aggregates whose softened form is written with the ends of their value's range."""


def soften(
    aggregate: n.Aggregate,
    policy: Policy,
    protections: tuple[Protection, ...],
    epsilon: Fraction,
    rows: Callable[[n.Relation], int | None],
    ends: Callable[[str, str], tuple[Fraction, Fraction] | None],
) -> Softened:
    """Soften one aggregate under protections of kind `cells`, or raise CannotBound."""
    protected = frozenset(_variables(protections, aggregate))
    if inner_of(aggregate.input, protected) is not None:
        source = unshared(aggregate.input)
        inner = inner_of(source, frozenset(_variables(protections, source)))
        assert inner is not None, "other names change nothing"
        inner_softened = soften(inner, policy, protections, epsilon, rows, ends)
        moving = moving_calls(
            inner_softened.aggregate, frozenset(_variables(protections, inner_softened.aggregate))
        )
        above = replace(aggregate, input=_with_groups(source, inner, inner_softened))
        # How many groups there are is public, but nobody has counted them: it only chooses widths.
        outer = Softener(
            above, policy, protections, epsilon, lambda relation: None, ends, inner=moving
        ).soften()
        return replace(
            outer,
            notes=(*inner_softened.notes, *outer.notes),
            exact=inner_softened.exact and outer.exact,
        )
    if set_of(aggregate.input, protected) is not None:
        return _over_set(aggregate, policy, protections, epsilon, rows, ends)
    branches = spread(aggregate.input, protected)
    if len(branches) == 1:
        try:
            return Softener(aggregate, policy, protections, epsilon, rows, ends).soften()
        except CannotBound as verdict:
            counted = counted_once(aggregate) if verdict.rule == "derivative.distinct" else None
            if counted is None:
                raise
            return soften(counted, policy, protections, epsilon, rows, ends)
    seen: set[str] = set()
    alone = [replace(aggregate, input=unshared(b, seen)) for b in branches]
    softeners = [Softener(a, policy, protections, epsilon, rows, ends) for a in alone]
    agreed = _agreed(softeners)
    for softener in softeners:
        softener.agreed = agreed
    return _together(aggregate, [s.soften() for s in softeners])


def _over_set(
    aggregate: n.Aggregate,
    policy: Policy,
    protections: tuple[Protection, ...],
    epsilon: Fraction,
    rows: Callable[[n.Relation], int | None],
    ends: Callable[[str, str], tuple[Fraction, Fraction] | None],
) -> Softened:
    """Soften what decides whether a row is in a set, and weigh the members by it (derivative.sets)."""
    source = unshared(aggregate.input)
    node = set_of(source, frozenset(_variables(protections, source)))
    assert node is not None, "other names change nothing"
    seen: set[str] = set()
    sides: list[Member] = []
    softened: list[Softened] = []
    origins: dict[str, tuple[str, str]] = {}
    for side, relation in sides_of(node):
        for branch in spread(relation, frozenset(_variables(protections, relation))):
            count = n.Aggregation("set", "count", None)
            alone = n.Aggregate(unshared(branch, seen), (), (count,))
            softener = Softener(alone, policy, protections, epsilon, rows, ends, agreed=Agreed())
            shown = tuple(
                n.Named(f.name, softener.stripped.definitions[f.name]) for f in fields_of(branch)
            )
            if any(moves(x.expression, softener.protected) for x in shown):
                raise CannotBound(
                    "derivative.sets",
                    node,
                    "whether two rows are equal jumps when a protected value moves",
                    "compare public columns only, and sum or count rows instead",
                )
            softened.append(softener.soften())
            truth = softened[-1].aggregate.aggregations[0].argument
            assert truth is not None, "counts of branches are sums of soft truth"
            sides.append(Member(softened[-1].aggregate.input, shown, truth, side))
            for item in shown:
                stored = item.expression
                origin_column = (
                    softener.origins.get(stored.name) if isinstance(stored, n.Column) else None
                )
                origin = origin_column or ("", "")
                same_one = origins.setdefault(item.name, origin) == origin
                origins[item.name] = origin if same_one else ("", "")
    groups, times = members(sides, f"{fields_of(node)[0].name}.set")
    protected = frozenset(_variables(protections, groups))
    above = replace(aggregate, input=replaced(source, node, groups))
    weighing = Softener(
        above, policy, protections, epsilon, lambda relation: None, ends,
        inner=moving_calls(groups, protected), weight=membership(node, *times),
    )  # fmt: skip
    weighing.origins |= origins  # declared ranges hold for what is shown, wherever it comes from
    weighted = weighing.soften()
    notes = dict.fromkeys(x for s in (*softened, weighted) for x in s.notes)
    exact = all(s.exact for s in (*softened, weighted))
    return replace(weighted, notes=tuple(notes), exact=exact)


def _variables(protections: tuple[Protection, ...], *relations: n.Relation) -> Iterator[str]:
    used = scans(*relations)
    for protection in protections:
        yield from space_of(protection, used).variables


def _with_groups(source: n.Relation, inner: n.Aggregate, softened: Softened) -> n.Relation:
    """Put softened groups in place of the exact ones."""
    if softened.listed:
        raise CannotBound(
            "derivative.nested",
            inner,
            "inner groups by a protected value have no rule here",
            "group the inner rows by public columns",
        )
    return replaced(source, inner, n.Project(softened.aggregate, softened.outputs))


def _agreed(softeners: Sequence[Softener]) -> Agreed:
    """Settle what all branches do alike."""
    listed = [k for s in softeners for k in s.aggregate.keys if k.name in s.listed]
    if listed:
        raise CannotBound(
            "derivative.keys",
            listed[0].expression,
            "groups by a protected value have no rule over a union",
            "ask for each branch of the union by itself",
        )
    calls = softeners[0].aggregate.aggregations
    plain = frozenset(c.name for c in calls if all(s.is_kept(c) for s in softeners))
    ends = {}
    for c in calls:
        if c.function in _WITH_ENDS and not c.distinct:
            intervals = [_ends(s, c) for s in softeners]
            ends[c.name] = min(low for low, _ in intervals), max(high for _, high in intervals)
    exact = frozenset(
        c.name for c in calls if c.function == "sum" and all(s.is_exact(c) for s in softeners)
    )
    return Agreed(ends, plain, exact)


def _ends(softener: Softener, call: n.Aggregation) -> tuple[Fraction, Fraction]:
    argument = softener.argument(call)
    assert argument is not None, "only COUNT has no argument"
    return softener.ends_of(softener.numeric(argument), call)


def _together(aggregate: n.Aggregate, softened: Sequence[Softened]) -> Softened:
    """Compute the arguments in each branch, and aggregate all rows of all branches at once."""
    first = softened[0]
    for other in softened[1:]:
        alike = len(other.aggregate.aggregations) == len(first.aggregate.aggregations) and all(
            a.name == b.name and same(a.expression, b.expression)
            for a, b in zip(first.outputs, other.outputs, strict=True)
        )
        if not alike:
            raise CannotBound(
                "derivative.union",
                aggregate,
                "the branches of the union cannot be aggregated in the same way",
                "ask for each branch by itself",
            )
    branches = [_branch(s.aggregate) for s in softened]
    calls = tuple(_over_all(c) for c in first.aggregate.aggregations)
    keys = tuple(
        n.Named(k.name, n.Column(f"{k.name}.key", type_of(k.expression)))
        for k in first.aggregate.keys
    )
    union = n.Aggregate(together(branches), keys, calls, aggregate.span)
    notes = tuple(dict.fromkeys(note for s in softened for note in s.notes))
    return Softened(union, first.outputs, notes, all(s.exact for s in softened))


def _over_all(call: n.Aggregation) -> n.Aggregation:
    if call.argument is None:
        return call
    return replace(call, argument=n.Column(f"{call.name}.value", type_of(call.argument)))


def _branch(aggregate: n.Aggregate) -> n.Project:
    """Give the keys and arguments of one branch as columns."""
    items = [n.Named(f"{k.name}.key", k.expression) for k in aggregate.keys]
    items += [
        n.Named(f"{c.name}.value", c.argument)
        for c in aggregate.aggregations
        if c.argument is not None
    ]
    if not items:  # rows without any column cannot be put together
        items.append(n.Named("row", n.Literal(1, t.INTEGER)))
    return n.Project(aggregate.input, tuple(items))
