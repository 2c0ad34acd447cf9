"""Which columns identify a row of a relation, and which columns settle others?

In: a relation, and the keys of its tables as the caller believes them. Out: keys and functional dependencies, in the
names of the plan, which are unique in a whole query. Rows whose key is NULL are not spoken of. Never here: a bound;
whoever rests one on a key must know that the engine keeps it or that somebody checked it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import product

from secant.plan import nodes as n
from secant.plan.facts.equalities import equal_columns, exactly_comparable
from secant.plan.facts.lineage import reused
from secant.plan.rewrites.rewrite import columns_of
from secant.plan.typing import fields_of
from secant.records import frozen

MOST_KEYS = 16  # more ways to identify a row are forgotten
Names = frozenset[str]
UniqueSets = Callable[[n.Scan], Iterable[Names]]
_NOTHING: Names = frozenset()


@frozen
class Keys:
    """Sets of columns of which no two rows agree in all, and pairs (columns, columns that they settle)."""

    keys: tuple[Names, ...] = ()
    dependencies: tuple[tuple[Names, Names], ...] = ()


def keys_after(relation: n.Relation, unique: UniqueSets) -> Keys:
    """Give what identifies the rows of a relation (range.keys)."""
    return Keys() if reused(relation) else _keys(relation, unique)


def identifies(keys: Keys, columns: Names) -> bool:
    """Whether no two rows agree in all these columns."""
    settled = closure(keys, columns)
    return any(key <= settled for key in keys.keys)


def closure(keys: Keys, columns: Names) -> Names:
    """Give all columns that these settle."""
    names = set(columns)
    grown = True
    while grown:
        grown = False
        for source, target in keys.dependencies:
            if source <= names and not target <= names:
                names |= target
                grown = True
    return frozenset(names)


def distinguishing_columns(relation: n.Relation) -> frozenset[str] | None:
    """Give columns in which any two rows differ, NULLs being equal; None if no operator makes it so."""
    if isinstance(relation, n.Distinct):
        return frozenset(f.name for f in fields_of(relation))
    if isinstance(relation, n.Aggregate):
        return frozenset(k.name for k in relation.keys)
    if isinstance(relation, (n.Filter, n.Sort, n.Truncate, n.TruncateGroups)):
        return distinguishing_columns(relation.input)
    if isinstance(relation, n.Project):
        below = distinguishing_columns(relation.input)
        names = {
            i.expression.name: i.name for i in relation.items if isinstance(i.expression, n.Column)
        }
        if below is not None and below <= names.keys():
            return frozenset(names[c] for c in below)
    return None


def _keys(node: n.Relation, unique: UniqueSets) -> Keys:
    rule = _RULES.get(type(node))
    return Keys() if rule is None else rule(node, unique)


def _scan(node: n.Scan, unique: UniqueSets) -> Keys:
    columns = frozenset(f.name for f in node.columns)
    keys = tuple(key for key in unique(node) if key <= columns)
    return Keys(keys, tuple((key, columns) for key in keys))


def _same_rows(node: n.Sort | n.Truncate | n.TruncateGroups | n.Window, unique: UniqueSets) -> Keys:
    return _keys(node.input, unique)


def _limit(node: n.Limit, unique: UniqueSets) -> Keys:
    inner = _keys(node.input, unique)
    single = (_NOTHING,) if node.count is not None and node.count <= 1 else ()
    return Keys(single + inner.keys, inner.dependencies)


def _filter(node: n.Filter, unique: UniqueSets) -> Keys:
    inner = _keys(node.input, unique)
    return Keys(inner.keys, inner.dependencies + _from_conditions(n.conjuncts(node.predicate)))


def _from_conditions(conditions: tuple[n.Scalar, ...]) -> tuple[tuple[Names, Names], ...]:
    """Read `a = b` and `a = 5`: equal columns settle each other, a constant needs nothing to be settled."""
    dependencies: list[tuple[Names, Names]] = []
    for part in conditions:
        if not isinstance(part, n.Compare) or part.op != "=":
            continue
        a, b = part.left, part.right
        if isinstance(a, n.Column) and isinstance(b, n.Column) and exactly_comparable(a, b):
            dependencies += _alike(a.name, b.name)
        for one, other in ((a, b), (b, a)):
            if isinstance(one, n.Column) and isinstance(other, n.Literal):
                dependencies.append((_NOTHING, frozenset((one.name,))))
    return tuple(dependencies)


def _alike(a: str, b: str) -> list[tuple[Names, Names]]:
    return [(frozenset((a,)), frozenset((b,))), (frozenset((b,)), frozenset((a,)))]


def _named(items: tuple[n.Named, ...]) -> tuple[tuple[Names, Names], ...]:
    """A computed column is settled by what it is computed from; a renamed one is the same column."""
    dependencies: list[tuple[Names, Names]] = []
    for item in items:
        if isinstance(item.expression, n.Column):
            if item.expression.name != item.name:
                dependencies += _alike(item.name, item.expression.name)
        elif not n.has_subquery(item.expression):
            dependencies.append((columns_of(item.expression), frozenset((item.name,))))
    return tuple(dependencies)


def _project(node: n.Project, unique: UniqueSets) -> Keys:
    inner = _keys(node.input, unique)
    return Keys(inner.keys, inner.dependencies + _named(node.items))


def _join(node: n.Join, unique: UniqueSets) -> Keys:
    left, right = _keys(node.left, unique), _keys(node.right, unique)
    both = tuple(a | b for a, b in product(left.keys, right.keys))[:MOST_KEYS]
    if node.kind != "left":
        tied = _from_conditions(n.conjuncts(node.condition))
        return Keys(both, left.dependencies + right.dependencies + tied)
    # Rows without partner get NULLs, so what holds on the right need not hold after the join. But where
    # a left row finds one partner at most, it stays one row.
    matched = frozenset(b for _, b in equal_columns(node))
    keys = left.keys if identifies(right, matched) else both
    return Keys(keys, left.dependencies)


def _aggregate(node: n.Aggregate, unique: UniqueSets) -> Keys:
    inner = _keys(node.input, unique)
    keys = frozenset(key.name for key in node.keys)
    results = frozenset(call.name for call in node.aggregations)
    return Keys((keys,), (*inner.dependencies, *_named(node.keys), (keys, results)))


def _distinct(node: n.Distinct, unique: UniqueSets) -> Keys:
    inner = _keys(node.input, unique)
    whole = frozenset(f.name for f in fields_of(node))
    return Keys((whole, *inner.keys), inner.dependencies)


def _combined(node: n.Union | n.Intersect | n.Except, unique: UniqueSets) -> Keys:
    return Keys() if node.all else Keys((frozenset(f.name for f in node.columns),))


_RULES: dict[type[n.Node], Callable[..., Keys]] = {
    n.Scan: _scan,
    n.Sort: _same_rows,
    n.Window: _same_rows,
    n.Truncate: _same_rows,
    n.TruncateGroups: _same_rows,
    n.Limit: _limit,
    n.Filter: _filter,
    n.Project: _project,
    n.Join: _join,
    n.Aggregate: _aggregate,
    n.Distinct: _distinct,
    n.Union: _combined,
    n.Intersect: _combined,
    n.Except: _combined,
}
