"""Which noisy numbers does an answer rest on? Followed through everything that comes after a release.

In: the plan that runs on released tables. Out: for each output the released columns that decide its value, and those
that decide which rows are shown. Unlike `error`, which gives up where it cannot say *how* an output is made, this
follows aggregates, subqueries, unions and earlier stages, too: what is not listed here is exact. A relation without a
rule raises.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import field

from secant.plan import nodes as n
from secant.plan.facts.domains import Chosen
from secant.plan.functions.windows import breaks_ties
from secant.plan.rule_table import RuleTable
from secant.plan.typing import fields_of
from secant.records import frozen
from secant.release.release_plan import ReleasePlan
from secant.sensitivity.bound import CertifiedRelease

Names = frozenset[str]
NOTHING: Names = frozenset()


@frozen
class NoiseLineage:
    """What decides the values of a relation, column by column, and what decides its rows."""

    columns: Mapping[str, Names]
    """Column -> noisy released columns that its values depend on."""
    rows: Names
    """Noisy released columns that decide which rows there are."""
    order: Names = NOTHING
    """Noisy released columns that decide the order of the rows, and nothing else."""

    def all(self) -> Names:
        """Give everything that anything here depends on."""
        return self.rows.union(self.order, *self.columns.values())


Rule = Callable[..., NoiseLineage]
RELIES: RuleTable[Rule] = RuleTable("reliance on noise")


@frozen
class _Lineage:
    releases: Mapping[str, NoiseLineage]
    outer: Mapping[str, Names] = field(default_factory=dict)
    """Columns of the queries around a subquery."""
    done: dict[n.Node, NoiseLineage] = field(default_factory=dict)

    def of(self, relation: n.Relation) -> NoiseLineage:
        if relation not in self.done:
            rule = RELIES.find(relation)
            if rule is None:
                raise AssertionError(f"no rule says what {type(relation).__name__} relies on")
            self.done[relation] = rule(relation, self)
        return self.done[relation]

    def scalar(self, scalar: n.Node | None, columns: Mapping[str, Names]) -> Names:
        """Give what an expression depends on: its columns, and all of its subqueries."""
        if scalar is None:
            return NOTHING
        if isinstance(scalar, n.Column):
            return columns.get(scalar.name, NOTHING)
        if isinstance(scalar, n.Outer):
            return self.outer.get(scalar.name, NOTHING)
        names = NOTHING
        for child in n.children(scalar):
            if isinstance(child, n.Relation):
                names |= _Lineage(self.releases, {**self.outer, **columns}).of(child).all()
            else:
                names |= self.scalar(child, columns)
        return names


def noise_lineage(job: ReleasePlan) -> NoiseLineage:
    """Say which noisy measures decide the values of each output, and which rows are shown."""
    releases: dict[str, NoiseLineage] = {}
    for b in job.prepared.bounded:
        releases[b.release.name] = _released(b, job, releases)
    lineage = _Lineage(releases).of(job.traced.plan)
    return NoiseLineage(
        {o: lineage.columns[o] for o in job.traced.outputs}, lineage.rows, lineage.order
    )


def _released(
    b: CertifiedRelease, job: ReleasePlan, before: Mapping[str, NoiseLineage]
) -> NoiseLineage:
    """Say what a release shows: its own noise, and the noise of what it read."""
    read = {
        node.name
        for a in b.release.aggregates
        for node in n.walk(a)
        if isinstance(node, n.Released)
    }
    earlier = NOTHING.union(*(before[name].all() for name in read))
    drawn = {m.column for m in b.release.measures if not job.noise.noise[m.column].still}
    drawn |= {r.column for r in b.release.ranked}
    table = b.release.finish.input
    assert isinstance(table, n.Released)
    keys = {k.name: NOTHING for k in b.release.exact.keys}  # which there are is the matter of rows
    columns = {f.name: earlier | ({f.name} & drawn) for f in table.columns} | keys
    if not any(isinstance(d, Chosen) for d in b.release.domains):
        return NoiseLineage(columns, NOTHING)
    weighed = b.release.weighed
    chosen = {b.release.selector or ""} & drawn if weighed is None else {weighed.column}
    return NoiseLineage(columns, earlier | chosen)


def _union(parts: Iterable[Names]) -> Names:
    return NOTHING.union(*parts)


@RELIES.rule(n.Scan)
def _scan(node: n.Scan, lineage: _Lineage) -> NoiseLineage:
    return NoiseLineage({f.name: NOTHING for f in fields_of(node)}, NOTHING)


@RELIES.rule(n.Values)
def _values(node: n.Values, lineage: _Lineage) -> NoiseLineage:
    return NoiseLineage({f.name: NOTHING for f in node.columns}, NOTHING)


@RELIES.rule(n.Released)
def _read(node: n.Released, lineage: _Lineage) -> NoiseLineage:
    return lineage.releases[node.name]


@RELIES.rule(n.Filter)
def _filter(node: n.Filter, lineage: _Lineage) -> NoiseLineage:
    below = lineage.of(node.input)
    chosen = lineage.scalar(node.predicate, below.columns)
    return NoiseLineage(below.columns, below.rows | chosen, below.order)


@RELIES.rule(n.Project)
def _project(node: n.Project, lineage: _Lineage) -> NoiseLineage:
    below = lineage.of(node.input)
    items = {i.name: lineage.scalar(i.expression, below.columns) for i in node.items}
    return NoiseLineage(items, below.rows, below.order)


@RELIES.rule(n.Join)
def _join(node: n.Join, lineage: _Lineage) -> NoiseLineage:
    left, right = lineage.of(node.left), lineage.of(node.right)
    columns = {**left.columns, **right.columns}
    chosen = lineage.scalar(node.condition, columns) | right.rows
    if node.kind == "left":  # whether a value or NULL stands there
        columns = {**left.columns, **{c: x | chosen for c, x in right.columns.items()}}
    return NoiseLineage(columns, left.rows | chosen, left.order | right.order)


@RELIES.rule(n.Aggregate)
def _aggregate(node: n.Aggregate, lineage: _Lineage) -> NoiseLineage:
    below = lineage.of(node.input)
    keys = {k.name: lineage.scalar(k.expression, below.columns) for k in node.keys}
    grouped = _union(keys.values())
    aggregations = {
        a.name: lineage.scalar(a.argument, below.columns)
        | lineage.scalar(a.second, below.columns)
        | below.rows
        | grouped
        for a in node.aggregations
    }
    return NoiseLineage({**keys, **aggregations}, below.rows | grouped if node.keys else NOTHING)


@RELIES.rule(n.Window)
def _window(node: n.Window, lineage: _Lineage) -> NoiseLineage:
    below = lineage.of(node.input)
    ties = (
        below.rows.union(*below.columns.values()) if any(map(breaks_ties, node.calls)) else NOTHING
    )
    windows = {c.name: lineage.scalar(c, below.columns) | below.rows | ties for c in node.calls}
    return NoiseLineage({**below.columns, **windows}, below.rows, below.order)


@RELIES.rule(n.Distinct)
def _distinct(node: n.Distinct, lineage: _Lineage) -> NoiseLineage:
    below = lineage.of(node.input)
    return NoiseLineage(below.columns, below.rows.union(*below.columns.values()), below.order)


@RELIES.rule(n.Sort)
def _sort(node: n.Sort, lineage: _Lineage) -> NoiseLineage:
    below = lineage.of(node.input)
    order = _union(lineage.scalar(k.expression, below.columns) for k in node.keys)
    return NoiseLineage(below.columns, below.rows, below.order | order)


@RELIES.rule(n.Limit)
def _limit(node: n.Limit, lineage: _Lineage) -> NoiseLineage:
    below = lineage.of(node.input)
    return NoiseLineage(below.columns, below.rows | below.order, below.order)


@RELIES.rule(n.Union, n.Intersect, n.Except)
def _set(node: n.Union | n.Intersect | n.Except, lineage: _Lineage) -> NoiseLineage:
    left, right = lineage.of(node.left), lineage.of(node.right)
    names = [f.name for f in node.columns]
    pairs = zip(left.columns.values(), right.columns.values(), strict=True)
    columns = {name: a | b for name, (a, b) in zip(names, pairs, strict=True)}
    plain = isinstance(node, n.Union) and node.all
    rows = left.rows | right.rows | (NOTHING if plain else _union(columns.values()))
    return NoiseLineage(columns, rows)
