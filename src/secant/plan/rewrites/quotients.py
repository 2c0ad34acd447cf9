"""Which sums of one aggregate does the user divide by each other? They are cut down together, like averages.

Rests on truncation.weight.

In: the whole plan. Out: families of aggregates, by name, that stand above and below one division. Never here: a bound.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from secant.plan import nodes as n
from secant.plan.rewrites.enforce import MeasuredAggregate
from secant.plan.rewrites.rewrite import columns_of

Family = frozenset[str]
Origins = Mapping[str, frozenset[tuple[int, str]]]
"""Column -> which aggregates, by their node and their name, its value is made of."""
NOTHING: frozenset[tuple[int, str]] = frozenset()


def quotients_of(plan: n.Relation) -> tuple[Family, ...]:
    """Give the aggregates that are divided by each other and count the same rows: those of one aggregate node."""
    if not n.holds(plan, n.Arithmetic):
        return ()
    origins: dict[n.Relation, Origins] = {}
    families: list[Family] = []
    for relation in n.walk(plan):
        if isinstance(relation, (n.Project, n.Filter, n.Sort)):
            below = _origins(relation.input, origins)
            families += [f for part in _scalars(relation) for f in _divided(part, below)]
    return tuple(dict.fromkeys(families))


def _scalars(relation: n.Project | n.Filter | n.Sort) -> Iterable[n.Scalar]:
    if isinstance(relation, n.Project):
        return (i.expression for i in relation.items)
    return (
        (relation.predicate,)
        if isinstance(relation, n.Filter)
        else (k.expression for k in relation.keys)
    )


def _divided(scalar: n.Scalar, below: Origins) -> Iterable[Family]:
    for node in n.walk(scalar) if n.holds(scalar, n.Arithmetic) else ():
        if isinstance(node, n.Arithmetic) and node.op == "/":
            sides = [_origins_of(side, below) for side in (node.left, node.right)]
            for aggregate in sorted({a for a, _ in sides[0]} & {a for a, _ in sides[1]}):
                yield frozenset(name for side in sides for a, name in side if a == aggregate)


def _origins_of(scalar: n.Scalar, below: Origins) -> frozenset[tuple[int, str]]:
    return NOTHING.union(*(below.get(c, NOTHING) for c in columns_of(scalar)))


def _origins(relation: n.Relation, done: dict[n.Relation, Origins]) -> Origins:
    if relation not in done:
        origins: Origins = {}
        if isinstance(relation, n.Aggregate):
            identity = id(relation)
            origins = {a.name: frozenset({(identity, a.name)}) for a in relation.aggregations}
        elif isinstance(relation, n.Project):
            below = _origins(relation.input, done)
            origins = {i.name: _origins_of(i.expression, below) for i in relation.items}
        elif isinstance(relation, (n.Filter, n.Sort, n.Limit)):
            origins = _origins(relation.input, done)
        elif isinstance(relation, n.Join):
            origins = {**_origins(relation.left, done), **_origins(relation.right, done)}
        done[relation] = origins
    return done[relation]


def cut_together(release: MeasuredAggregate, quotients: Iterable[Family]) -> MeasuredAggregate:
    """Let the measures of each quotient of sums and counts share a weight; families that meet become one."""
    adding = {
        a.name
        for a in release.original.aggregations
        if a.function in ("sum", "count", "avg") and not a.distinct
    }
    measures = {m.column for m in release.measures}
    formulas = {i.name: columns_of(i.expression) & measures for i in release.finish.items}
    families = list(release.together)
    for quotient in quotients:
        columns = frozenset().union(
            *(formulas.get(name, frozenset()) for name in quotient & adding)
        )
        meeting = [f for f in families if f & columns]
        families = [f for f in families if not f & columns]
        families.append(columns.union(*meeting))
    return replace(release, together=tuple(f for f in families if len(f) > 1))
