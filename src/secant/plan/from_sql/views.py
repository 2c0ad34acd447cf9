"""Names that stand for queries or for released rows: put where they are used before anything is proved.

In: a binder, the syntax tree of a question, the catalog with its views. Out: the views that the question needs, bound
as WITH clauses are. What is bounded is the whole plan, so a view has no bound of its own (workflow.view). Never here:
data.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from secant.errors import SqlError
from secant.plan import nodes as n
from secant.plan.from_sql.scope import CommonTable, Scope, Source
from secant.plan.typing import type_of
from secant.sql.parse import parse, span_of
from secant.sql.screen import screen
from secant.terms import types as t
from secant.terms.catalog import Catalog, Constants, View

Columns = tuple[tuple[str, str, t.Type], ...]
"""Shown name, name in the plan, type."""

if TYPE_CHECKING:
    from secant.plan.from_sql.relations import Binder


def needed_views(binder: Binder, tree: Any, catalog: Catalog) -> dict[str, CommonTable]:
    """Bind the views that a question names, and those that they name, each once."""
    found: dict[str, CommonTable] = {}
    if catalog.views:
        _collect(binder, tree, catalog, found, ())
    return found


def _collect(
    binder: Binder,
    tree: Any,
    catalog: Catalog,
    found: dict[str, CommonTable],
    within: tuple[str, ...],
) -> None:
    for name in _named(tree):
        view = catalog.views.get(name)
        if view is None or name in found:
            continue
        if name in within:
            raise SqlError(
                "SQL-006", f"the view {name} reads itself", hint="recursion is not accepted"
            )
        if isinstance(view, Constants):
            found[name] = _constants(binder, name, view)
            continue
        inner: Any = screen(parse(view.text), view.text)
        if not view.placed:
            _without_places(inner)
        _collect(binder, inner, catalog, found, (*within, name))
        found[name] = _bound(binder, name, view, inner, found)


def _bound(
    binder: Binder, name: str, view: View, tree: Any, found: dict[str, CommonTable]
) -> CommonTable:
    bound = binder.query(tree, None, dict(found))
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


def _without_places(tree: Any) -> None:
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
    derived = binder.catalog.derived.get(table.lower(), {})
    if not derived:
        return scan, columns
    stored = tuple(c for c in columns if c[0].lower() not in derived)
    scope = Scope(binder.text, None, {})
    scope.add(Source(scan.alias, stored), None)
    found: list[tuple[str, str, t.Type]] = []
    items: list[n.Named] = []
    for shown, unique, kind in columns:
        text = derived.get(shown.lower())
        scalar: n.Scalar = n.Column(unique, kind)
        if text is not None:
            tree: Any = screen(parse(f"SELECT {text}"), text)
            _without_places(tree)
            (item,) = tree.expressions if len(tree.expressions) == 1 else (tree,)
            scalar = binder.scalars.bind(item, scope, binder.no_aggregates("a derived column"))
        kind = type_of(scalar)
        found.append((shown, f"{unique}'", kind) if text is not None else (shown, unique, kind))
        items.append(n.Named(found[-1][1], scalar))
    return n.Project(scan, tuple(items)), tuple(found)
