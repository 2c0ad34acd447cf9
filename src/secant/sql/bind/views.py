"""Names that stand for queries or for released rows: put where they are used before anything is proved.

In: a binder, the syntax tree of a question, the catalog with its views. Out: the views that the question needs, bound
as WITH clauses are. What is bounded is the whole plan, so a view has no bound of its own (workflow.view). Never here:
data.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from graphlib import CycleError, TopologicalSorter
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from secant.errors import SqlError
from secant.plan import nodes as n
from secant.plan.facts.reads import columns_named
from secant.plan.rewrites.rewrite import substitute, transform
from secant.plan.typing import fields_of, type_of
from secant.schema import types as t
from secant.schema.catalog import Catalog, Constants, Formula, View
from secant.sql.bind.scope import CommonTable, Scope, Source
from secant.sql.parse import parse, span_of
from secant.sql.screen import screen

Columns = tuple[tuple[str, str, t.Type], ...]
"""Shown name, name in the plan, type."""

if TYPE_CHECKING:
    from secant.sql.bind.relations import Binder


def needed_views(binder: Binder, tree: Any, catalog: Catalog) -> dict[str, CommonTable]:
    """Bind the views that a question names, and those that they name, each once."""
    views: dict[str, CommonTable] = {}
    if catalog.views:
        _collect(binder, tree, catalog, views, ())
    return views


def _collect(
    binder: Binder,
    tree: Any,
    catalog: Catalog,
    views: dict[str, CommonTable],
    within: tuple[str, ...],
) -> None:
    for name in _named(tree):
        view = catalog.views.get(name)
        if view is None or name in views:
            continue
        if name in within:
            raise SqlError(
                "SQL-006", f"the view {name} reads itself", hint="recursion is not accepted"
            )
        if isinstance(view, Constants):
            views[name] = _constants(binder, name, view)
            continue
        inner: Any = screen(parse(view.text), view.text)
        if not view.placed:
            _without_spans(inner)
        _collect(binder, inner, catalog, views, (*within, name))
        views[name] = _bound(binder, name, view, inner, views)


def _bound(
    binder: Binder, name: str, view: View, tree: Any, views: dict[str, CommonTable]
) -> CommonTable:
    bound = binder.query(tree, None, dict(views))
    if view.columns and len(view.columns) != len(bound.columns):
        message = f"{name} has {len(bound.columns)} columns and {len(view.columns)} names for them"
        raise SqlError("SQL-008", message, span=span_of(tree), hint="name each column once")
    names = view.columns or tuple(shown for shown, _, _ in bound.columns)
    columns = tuple((a, u, k) for a, (_, u, k) in zip(names, bound.columns, strict=True))
    return CommonTable(bound.relation, columns)


def _constants(binder: Binder, name: str, view: Constants) -> CommonTable:
    alias = binder.alias(name)
    fields = tuple(n.Field(f"{alias}.{column}", kind) for column, kind in view.columns)
    columns = tuple(
        (column, f.name, kind) for (column, kind), f in zip(view.columns, fields, strict=True)
    )
    return CommonTable(n.Values(fields, view.rows), columns)


def names_read(text: str) -> tuple[str, ...]:
    """Give the names of tables and views that a query reads, lower-cased, each once; none for an empty text."""
    if not text.strip():
        return ()
    tree: Any = parse(text)
    hidden = {
        item.alias.lower() for clause in tree.find_all(exp.With) for item in clause.expressions
    }
    return tuple(name for name in _named(tree) if name not in hidden)


def _without_spans(tree: Any) -> None:
    """Forget where words stand: those places are not places of the question."""
    for node in tree.walk():
        for key in ("start", "end", "line", "col"):
            node.meta.pop(key, None)


def _named(tree: Any) -> Iterator[str]:
    """Give the names of all tables in a tree, each once; a WITH clause may hide a view behind its own name."""
    names = (t.name.lower() for t in tree.find_all(exp.Table) if not t.db)
    return iter(dict.fromkeys(names))


def with_derived(
    binder: Binder, scan: n.Scan, columns: Columns, table: str
) -> tuple[n.Relation, Columns]:
    """Compute derived columns of a table from the others; what is stored in them is not read (workflow.derived)."""
    formulas = binder.catalog.derived.get(table.lower(), {})
    if not formulas:
        return scan, columns
    raw = {shown.lower(): unique for shown, unique, _ in columns}
    stored = {c[0].lower(): c for c in columns if c[0].lower() not in formulas}
    bound: dict[str, n.Scalar] = {}
    trees = {name: _expression(formula) for name, formula in formulas.items()}
    for name in _in_order(trees):
        scope = Scope(binder.text, None, {})
        scope.add(Source(scan.alias, tuple(stored.values())), None)
        scalar = binder.scalars.bind(trees[name], scope, binder.no_aggregates("a derived column"))
        own = f"{raw[name]}'"
        bound[own] = substitute(scalar, bound)
        stored[name] = (name, own, type_of(scalar))
    derived = tuple((shown, *stored[shown.lower()][1:]) for shown, _, _ in columns)
    items = (n.Named(unique, bound.get(unique, n.Column(unique, k))) for _, unique, k in derived)
    return n.Project(scan, tuple(items)), derived


def _expression(formula: Formula) -> Any:
    tree: Any = screen(parse(f"SELECT {formula.text}", formula.dialect), formula.text)
    _without_spans(tree)
    (item,) = tree.expressions if len(tree.expressions) == 1 else (tree,)
    return item


def _in_order(trees: dict[str, Any]) -> list[str]:
    """Put derived columns behind those that they are derived from."""
    names = {
        column: {c.name.lower() for c in tree.find_all(exp.Column)} & trees.keys()
        for column, tree in trees.items()
    }
    try:
        return list(TopologicalSorter(names).static_order())
    except CycleError:
        message = "a derived column follows from itself"
        raise SqlError("SQL-006", message, hint="let it follow from stored columns") from None


def without_unused(plan: n.Relation, catalog: Catalog) -> n.Relation:
    """Leave out columns beside derived ones that nobody names: a question is not about what they follow from."""
    if not catalog.derived:
        return plan
    derived = [x for x in n.walk(plan) if isinstance(x, n.Project) and _is_derived(x)]
    inside = {x for project in derived for item in project.items for x in n.walk(item)}
    above = (columns_named(x) for x in n.walk(plan) if x not in inside)
    named = {f.name for f in fields_of(plan)}.union(*above)

    def change(node: n.Node) -> n.Node:
        if not isinstance(node, n.Project) or not _is_derived(node):
            return node
        # A row is there, whether or not anybody names a column of it.
        used = tuple(i for i in node.items if i.name in named)
        return replace(node, items=used) if used else node.input

    return transform(plan, change, n.Project)


def _is_derived(project: n.Project) -> bool:
    if not isinstance(project.input, n.Scan):
        return False
    own = {f"{f.name}'" for f in project.input.columns}
    return any(item.name in own for item in project.items)
