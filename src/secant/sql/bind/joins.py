"""JOIN of every kind to relations: inner, left, right, full, cross, with ON, USING or NATURAL.

In: syntax and the rows so far. Out: Join nodes; a FULL JOIN is the LEFT JOIN with the right rows that met nobody below
it, so that whatever is known of joins, unions and subqueries holds for it as well.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from secant.errors import SqlError
from secant.plan import nodes as n
from secant.plan.facts.equalities import equal_columns
from secant.plan.facts.scopes import free_columns
from secant.plan.typing import fields_of
from secant.schema import types as t
from secant.sql.bind.scope import Scope, Source, fresh
from secant.sql.parse import span_of

if TYPE_CHECKING:
    from secant.sql.bind.relations import Binder


def bind_joins(binder: Binder, relation: n.Relation, joins: list[Any], scope: Scope) -> n.Relation:
    """Join the tables of FROM: a comma binds less than JOIN, which pads no rows from before it."""
    apart: list[n.Relation] = []
    for tree in joins:
        if isinstance(tree.this, exp.Lateral):
            relation = _lateral(binder, _crossed([*apart, relation]), tree, scope)
            apart = []
        elif any(tree.args.get(x) for x in ("on", "using", "side", "kind", "method")):
            relation = _bind_join(binder, relation, tree, scope, apart)
        else:
            apart.append(relation)
            relation = _joined(binder, tree, scope)
    return _crossed([*apart, relation])


def _crossed(relations: list[n.Relation]) -> n.Relation:
    relation = relations[0]
    for other in relations[1:]:
        relation = n.Join("cross", relation, other, None)
    return relation


LATEST = (
    "which of equal rows it takes is the engine's choice: write (SELECT max(r.t) FROM r WHERE r.k = l.k AND r.t <= "
    "l.t) AS latest in a derived table over l, and join r ON r.k = l.k AND r.t = l.latest, where k and t are a key of r"
)
ONE_ROW = (
    "join a subquery instead, grouped by the columns that tie it: JOIN (SELECT k, … FROM t GROUP BY k) AS s ON s.k = "
    "…; LATERAL takes aggregates without GROUP BY"
)


def _lateral(binder: Binder, left: n.Relation, tree: Any, scope: Scope) -> n.Relation:
    """Put the one row of a subquery that sees the rows so far beside each: scalar subqueries of its columns."""
    carrier, on = tree.this, tree.args.get("on")
    plain = on is None or on == exp.true()
    if not isinstance(carrier.this, exp.Subquery) or (tree.side and not plain):
        raise binder.scalars.refuse(tree, "this form of LATERAL is not accepted", ONE_ROW)
    binder.only(tree, "this", "on", "side", "kind")
    bound = binder.query(carrier.this.this, scope, scope.tables)
    rows = bound.relation
    while isinstance(rows, n.Project):
        rows = rows.input
    if not isinstance(rows, n.Aggregate) or rows.keys:
        raise binder.scalars.refuse(tree, "LATERAL may give several rows here", ONE_ROW)
    alias, names = binder.alias(carrier.alias or "lateral"), set[str]()
    span = span_of(tree)
    items = [n.Named(f.name, n.Column(f.name, f.type)) for f in fields_of(left)]
    shown = []
    for name, unique, kind in binder.column_aliases(carrier, bound.columns):
        own = fresh(f"{alias}.{name}", names)
        value = n.Project(bound.relation, (n.Named(f"{own}.value", n.Column(unique, kind)),))
        items.append(n.Named(own, n.ScalarSubquery(value, span)))
        shown.append((name, own, kind))
    scope.add(Source(carrier.alias or alias, tuple(shown)), span)
    relation = n.Project(left, tuple(items))
    if plain:
        return relation
    return n.Filter(relation, binder.scalars.predicate(on, scope, binder.no_aggregates("ON")), span)


def _joined(binder: Binder, tree: Any, scope: Scope) -> n.Relation:
    if isinstance(tree.this, exp.Table):
        return binder.joined_apart(tree.this, scope)
    return binder.table(tree.this, scope)


def _bind_join(
    binder: Binder, left: n.Relation, tree: Any, scope: Scope, apart: list[n.Relation]
) -> n.Relation:
    """Join the next table of FROM. `apart` stands before a comma, and is taken in where the condition names it."""
    side, kind = (tree.side or "").upper(), (tree.kind or "").upper()
    method = (tree.args.get("method") or "").upper()
    if (
        method not in ("", "NATURAL")
        or side not in ("", "LEFT", "RIGHT", "FULL")
        or kind not in ("", "INNER", "CROSS", "OUTER")
    ):
        word = " ".join(w for w in (method, side, kind) if w)
        hint = "INNER, LEFT, RIGHT, FULL, CROSS and NATURAL joins are"
        raise binder.scalars.refuse(
            tree, f"{word} JOIN is not accepted", LATEST if method == "ASOF" else hint
        )
    binder.only(tree, "this", "on", "side", "kind", "using", "method")
    earlier = list(scope.sources)
    right = _joined(binder, tree, scope)
    new = [s for s in scope.sources if s not in earlier]
    span = span_of(tree)
    names = [(item.name, item) for item in tree.args.get("using") or ()]
    if method:
        names = [(name, tree) for name in _shared_names(earlier, new, scope)]
    merged: list[tuple[str, str, str]] = []
    if names:
        condition = _using(binder, names, earlier, new, scope, side, merged)
    elif tree.args.get("on") is not None:
        condition = binder.scalars.predicate(tree.args["on"], scope, binder.no_aggregates("ON"))
    elif method:
        condition = n.Literal(True, t.BOOLEAN)  # nothing in common: every pair
    elif side or kind in ("INNER", "OUTER"):
        raise binder.scalars.refuse(
            tree, "the join has no condition", "write ON or USING, or CROSS JOIN"
        )
    else:
        return n.Join("cross", left, right, None, span)
    before = {f.name for r in apart for f in fields_of(r)}
    if before & free_columns(condition):
        if side in ("RIGHT", "FULL"):
            raise binder.scalars.refuse(
                tree,
                f"{side} JOIN names a table before the comma",
                "write CROSS JOIN for the comma",
            )
        left = _crossed([*apart, left])
        apart.clear()
    if side == "RIGHT":
        return n.Join("left", right, left, condition, span)
    if side == "FULL":
        return _full(binder, n.Join("left", left, right, condition, span), scope, merged)
    return n.Join("left" if side == "LEFT" else "inner", left, right, condition, span)


def _visible(sources: list[Source], name: str, scope: Scope) -> list[tuple[str, t.Type]]:
    return [h for s in sources for h in s.find(name) if h[0] not in scope.hidden]


def _shared_names(earlier: list[Source], new: list[Source], scope: Scope) -> list[str]:
    """Give the column names that both sides of a NATURAL JOIN show, in the order of the left one."""
    shown = [c for s in earlier for c, unique, _ in s.columns if unique not in scope.hidden]
    return [c for c in dict.fromkeys(shown) if _visible(new, c, scope)]


def _using(
    binder: Binder,
    names: list[tuple[str, Any]],
    earlier: list[Source],
    new: list[Source],
    scope: Scope,
    side: str,
    merged: list[tuple[str, str, str]],
) -> n.Scalar:
    """Bind equality of columns of one name; the merged column is the one that is never padded with NULL."""
    parts: list[n.Scalar] = []
    for name, item in names:
        columns = []
        for sources in (earlier, new):
            hits = _visible(sources, name, scope)
            if len(hits) != 1:
                raise SqlError(
                    "SQL-003" if hits else "SQL-002",
                    f"USING needs exactly one column {name} on each side",
                    text=binder.text,
                    span=span_of(item),
                    hint="write the condition with ON",
                )
            columns.append(n.Column(*hits[0]))
        if not t.comparable(columns[0].type, columns[1].type):
            message = f"{name} is {columns[0].type} on one side and {columns[1].type} on the other"
            hint = "write the condition with ON, and cast one side"
            raise binder.scalars.unfit(item, message, hint)
        parts.append(n.Compare("=", columns[0], columns[1], span_of(item)))
        if side == "FULL":
            if columns[0].type != columns[1].type:
                raise binder.scalars.refuse(
                    item, f"{name} has two types", "write the condition with ON"
                )
            merged.append((name, columns[0].name, columns[1].name))
        else:
            scope.hidden.add(columns[0].name if side == "RIGHT" else columns[1].name)
    return n.conjunction(tuple(parts)) or n.Literal(True, t.BOOLEAN)


def _full(
    binder: Binder, join: n.Join, scope: Scope, merged: list[tuple[str, str, str]]
) -> n.Relation:
    """Give LEFT JOIN, and below it the right rows that meet no left row.

    Columns that the condition holds equal are carried merged as well: the left value, or the right one where there is
    no left row. USING shows them, and whose a row is can be told by them.
    """
    lefts, rights = fields_of(join.left), fields_of(join.right)
    alias = binder.alias("full")
    inside = frozenset(f.name for f in rights)
    assert join.condition is not None
    met = n.Exists(n.Filter(join.left, _from_outside(join.condition, inside)), join.span)
    alone = n.Filter(join.right, n.Not(met), join.span)
    names: set[str] = set()
    new = {f.name: fresh(f"{alias}.{_short(f.name)}", names) for f in (*lefts, *rights)}
    kinds = {f.name: f.type for f in (*lefts, *rights)}
    pairs = list(dict.fromkeys((a, b) for a, b in equal_columns(join) if kinds[a] == kinds[b]))
    both = {pair: fresh(f"{alias}.{_short(pair[0])}.either", names) for pair in pairs}

    def padded(own: frozenset[str], pick: int, rows: n.Relation, word: str) -> n.Project:
        items = [
            n.Named(
                f"{new[f.name]}.{word}",
                n.Column(f.name, f.type) if f.name in own else n.Literal(None, f.type),
            )
            for f in (*lefts, *rights)
        ]
        items += [
            n.Named(f"{name}.{word}", n.Column(pair[pick], kinds[pair[pick]]))
            for pair, name in both.items()
        ]
        return n.Project(rows, tuple(items))

    everything = inside | {f.name for f in lefts}
    columns = [n.Field(new[f.name], f.type) for f in (*lefts, *rights)]
    columns += [n.Field(name, kinds[pair[0]]) for pair, name in both.items()]
    _rename(scope, new)
    for name, a, b in merged:
        scope.hidden |= {new[a], new[b]}
        shown = ((name, both[a, b], kinds[a]),)
        scope.sources.insert(0, Source(binder.alias("using"), shown))
    return n.Union(
        padded(everything, 0, join, "met"),
        padded(inside, 1, alone, "alone"),
        True,
        tuple(columns),
        join.span,
    )


def _from_outside(condition: n.Scalar, outside: frozenset[str]) -> n.Scalar:
    """Write a condition of a join as seen from a subquery over its left side."""

    @n.once
    def change(node: n.Node) -> n.Node:
        if isinstance(node, n.Column) and node.name in outside:
            return n.Outer(node.name, node.type, node.span)
        return n.rebuild(node, change)

    changed = change(condition)
    assert isinstance(changed, n.Scalar)
    return changed


def _rename(scope: Scope, new: dict[str, str]) -> None:
    """Let the tables of FROM so far stand for the columns of the padded rows."""
    scope.sources[:] = [
        replace(
            s,
            columns=tuple(
                (shown, new.get(unique, unique), kind) for shown, unique, kind in s.columns
            ),
            parts={
                part: n.Field(new.get(field.name, field.name), field.type)
                for part, field in s.parts.items()
            },
        )
        for s in scope.sources
    ]
    scope.hidden = {new.get(name, name) for name in scope.hidden}


def _short(name: str) -> str:
    return name.rsplit(".", 1)[-1]
