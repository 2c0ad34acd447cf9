"""Query syntax to relations: FROM, WHERE, GROUP BY, HAVING, SELECT, DISTINCT, ORDER BY, LIMIT, set operations.

Each SELECT becomes the same short stack of nodes, always in that order. Column names are made unique for the whole
query (`alias.column`, `q2.total`), so later stages never meet two columns of one name.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sqlglot import exp

from secant.errors import Span, SqlError
from secant.plan import nodes as n
from secant.plan.show import same
from secant.plan.typing import fields_of, type_of
from secant.records import frozen, replace
from secant.schema import types as t
from secant.schema.catalog import Catalog
from secant.sql.bind import calls  # noqa: F401 - registers what it binds
from secant.sql.bind.carried import check_carried
from secant.sql.bind.expressions import ScalarBinder, number
from secant.sql.bind.grouping import Grouping
from secant.sql.bind.joins import bind_joins
from secant.sql.bind.renaming import renamed
from secant.sql.bind.scope import CommonTable, Scope, Source, fresh, with_aliases
from secant.sql.bind.sources import bind_elements, bind_stored, unnested
from secant.sql.bind.views import needed_views
from secant.sql.bind.windowing import Windows, first_of_each, misplaced
from secant.sql.parse import form_of, span_of


@frozen
class Bound:
    """A query that is bound: its relation and, for each output column, the shown name, plan name and type."""

    relation: n.Relation
    columns: tuple[tuple[str, str, t.Type], ...]


@frozen
class Output:
    """One item of a SELECT list: its name and its scalar."""

    name: str
    scalar: n.Scalar


class Binder:
    """Binds one query. Counts blocks and aliases, so that every name in the plan is unique."""

    def __init__(self, catalog: Catalog, text: str) -> None:
        self.catalog = catalog
        self.text = text
        self.scalars = ScalarBinder(self, text)
        self.views: dict[str, CommonTable] = {}
        """Views that the query names, each bound once."""
        self.within: list[str] = []
        """Views whose text is being bound, the innermost last."""
        self._aliases: set[str] = set()
        self._blocks = 0

    def retold(self, text: str) -> None:
        """Let errors point into another text: that of a view."""
        self.text = self.scalars.text = text

    def bind(self, tree: exp.Query) -> n.Relation:
        """Give the plan of a whole query; its columns have the user's names."""
        bound = self.query(tree, None, needed_views(self, tree, self.catalog))
        shown: list[str] = []
        for name, _, _ in bound.columns:
            unique, count = name, 1
            while unique in shown:
                unique, count = f"{name}_{count}", count + 1
            shown.append(unique)
        if [unique for _, unique, _ in bound.columns] == shown:
            return bound.relation
        # Order and limit stay on top, where they keep their meaning for whoever reads the answer.
        return renamed(
            bound.relation, {u: s for (_, u, _), s in zip(bound.columns, shown, strict=True)}
        )

    def subquery(self, tree: exp.Expression, scope: Scope, columns: int | None) -> n.Relation:
        """Bind a subquery that may refer to the columns of `scope`."""
        inner = tree.this if isinstance(tree, exp.Subquery) else tree
        if not isinstance(inner, exp.Query):
            raise self.scalars.refuse(tree, "a subquery is expected here")
        bound = self.query(inner, scope, scope.tables)
        if columns is not None and len(bound.columns) != columns:
            raise SqlError(
                "SQL-008",
                f"the subquery must have {columns} column, it has {len(bound.columns)}",
                text=self.text,
                span=span_of(tree),
                hint="select one column",
            )
        return bound.relation

    # ── whole queries ────────────────────────────────────────────────────────────────────────────

    def query(self, tree: Any, parent: Scope | None, tables: Any) -> Bound:
        """Bind SELECT, a set operation, or a parenthesised one, with its WITH clause."""
        if not isinstance(tree, exp.Subquery):
            check_carried(self.scalars, tree)
        with_ = tree.args.get("with_")
        if with_ is not None:
            check_carried(self.scalars, with_)
            tables = dict(tables)
            for item in with_.expressions:
                tables[item.alias.lower()] = self._common_table(item, parent, tables)
        if isinstance(tree, exp.Select):
            return self._select(tree, parent, tables)
        if isinstance(tree, exp.SetOperation):
            return self._set_operation(tree, parent, tables)
        if isinstance(tree, exp.Subquery):
            self.only(tree, "this", "with_", "order", "limit", "offset", "alias")
            bound = self.query(tree.this, parent, tables)
            return self._ordered(tree, bound, Scope(self.text, parent, tables))
        if isinstance(tree, exp.Values):
            return self._values(tree, self.alias("values"))
        raise self.scalars.refuse(tree, f"{form_of(tree)} is not accepted as a query")

    def _common_table(self, item: Any, parent: Scope | None, tables: Any) -> CommonTable:
        check_carried(self.scalars, item)
        bound = self.query(item.this, parent, tables)
        return CommonTable(bound.relation, self.column_aliases(item, bound.columns))

    def column_aliases(
        self, item: exp.Expression, columns: tuple[tuple[str, str, t.Type], ...]
    ) -> tuple[tuple[str, str, t.Type], ...]:
        """Give columns under the names that an alias lists."""
        alias = item.args.get("alias")
        names = (
            [c.name for c in alias.args.get("columns") or ()]
            if isinstance(alias, exp.TableAlias)
            else []
        )
        if len(names) > len(columns):
            raise SqlError(
                "SQL-008",
                "there are more column aliases than columns",
                text=self.text,
                span=span_of(item),
            )
        renamed = [
            (names[i] if i < len(names) else c[0], c[1], c[2]) for i, c in enumerate(columns)
        ]
        return tuple(renamed)

    def _set_operation(self, tree: Any, parent: Scope | None, tables: Any) -> Bound:
        # A chain of UNIONs is left-deep; it is unrolled so that long chains do not recurse.
        chain = [tree]
        while type(chain[-1].this) in (exp.Union, exp.Intersect, exp.Except) and not _dressed(
            chain[-1].this
        ):
            chain.append(chain[-1].this)
        bound = self.query(chain[-1].this, parent, tables)
        for item in reversed(chain):
            bound = self._combine(item, bound, self.query(item.expression, parent, tables))
        return self._ordered(tree, bound, Scope(self.text, parent, tables))

    def _combine(self, tree: Any, left: Bound, right: Bound) -> Bound:
        if len(left.columns) != len(right.columns):
            raise SqlError(
                "SQL-008",
                f"one side has {len(left.columns)} columns, the other {len(right.columns)}",
                text=self.text,
                span=span_of(tree),
                hint="select the same number of columns on both sides",
            )
        block = self._block()
        columns = []
        for index, (a, b) in enumerate(zip(left.columns, right.columns, strict=True)):
            kind = t.unify(a[2], b[2])
            if kind is None:
                raise SqlError(
                    "SQL-004",
                    f"column {index + 1} is {a[2]} on one side and {b[2]} on the other",
                    text=self.text,
                    span=span_of(tree),
                    hint="cast one side",
                )
            columns.append((a[0], f"{block}.{index}.{a[0]}", kind))
        kinds: dict[type[exp.Expression], Any] = {
            exp.Union: n.Union, exp.Intersect: n.Intersect, exp.Except: n.Except,
        }  # fmt: skip
        fields = tuple(n.Field(unique, kind) for _, unique, kind in columns)
        keep_all = not tree.args.get("distinct", True)
        node = kinds[type(tree)](left.relation, right.relation, keep_all, fields, span_of(tree))
        return Bound(node, tuple(columns))

    def _ordered(self, tree: Any, bound: Bound, scope: Scope) -> Bound:
        """Apply ORDER BY and LIMIT of a set operation: they see its output columns only."""
        order = tree.args.get("order")
        relation = bound.relation
        if order is not None:
            scope.add(Source(self.alias("result"), bound.columns), None)
            keys = [
                self.sort_key(item, self._output_column(item.this, bound.columns, scope))
                for item in order.expressions
            ]
            relation = n.Sort(relation, tuple(keys))
        return Bound(self._limited(tree, relation), bound.columns)

    def _output_column(self, tree: Any, columns: Any, scope: Scope) -> n.Scalar:
        if isinstance(tree, exp.Literal) and not tree.is_string:
            _, unique, kind = columns[self.position(tree, len(columns))]
            return n.Column(unique, kind)
        return self.scalars.bind(tree, scope, self.no_aggregates("ORDER BY of a set operation"))

    # ── FROM ─────────────────────────────────────────────────────────────────────────────────────

    def _from(self, tree: exp.Select, scope: Scope) -> n.Relation:
        start = tree.args.get("from_")
        if start is None:
            return n.Values((), ((),))
        relation = self.table(start.this, scope)
        joins = list(start.this.args.get("joins") or ()) + list(tree.args.get("joins") or ())
        relation = bind_joins(self, relation, [j for j in joins if unnested(j) is None], scope)
        for join in joins:
            bind_elements(self, join, scope, relation)
        return relation

    def table(self, tree: Any, scope: Scope) -> n.Relation:
        """Bind one table expression of FROM, and make it visible."""
        span = span_of(tree)
        if isinstance(tree, exp.Table):
            return self._named_table(tree, scope, span)
        if isinstance(tree, exp.Subquery):
            self.only(tree, "this", "alias", "joins")
            if not isinstance(tree.this, exp.Query):  # a parenthesised join
                return self.joined_apart(tree.this, scope)
            # A derived table does not see its neighbors in FROM, only the enclosing query.
            bound = self.query(tree.this, scope.parent, scope.tables)
            alias = tree.alias or self.alias("derived")
            scope.add(Source(alias, self.column_aliases(tree, bound.columns)), span)
            return bound.relation
        if isinstance(tree, exp.Values):
            alias = tree.alias or "values"
            bound = self._values(tree, self.alias(alias))
            scope.add(Source(alias, self.column_aliases(tree, bound.columns)), span)
            return bound.relation
        raise self.scalars.refuse(tree, f"{form_of(tree)} is not accepted in FROM")

    def joined_apart(self, tree: Any, scope: Scope) -> n.Relation:
        """Bind a table with joins of its own: their conditions do not see what stands outside of them."""
        joins = tree.args.get("joins") or ()
        if not joins:
            return self.table(tree, scope)
        apart = Scope(self.text, scope.parent, scope.tables)
        relation = self.table(tree, apart)
        relation = bind_joins(self, relation, list(joins), apart)
        for source in apart.sources:
            scope.add(source, span_of(tree))
        scope.hidden |= apart.hidden
        return relation

    def _named_table(self, tree: Any, scope: Scope, span: Span | None) -> n.Relation:
        name = tree.name
        if not isinstance(tree.this, exp.Identifier):
            raise self.scalars.refuse(
                tree, "table functions are not accepted", "query a table of the policy"
            )
        check_carried(self.scalars, tree)
        shown = tree.alias or name
        common = scope.tables.get(name.lower()) if not tree.db else None
        stored = None if common is not None else bind_stored(self, tree, span)
        if isinstance(stored, CommonTable):  # a view is what WITH would make of its text
            common = stored
        if common is not None:
            unique = self.alias(shown)
            names: set[str] = set()
            columns = tuple(
                (c, fresh(f"{unique}.{c}", names), kind) for c, _, kind in common.columns
            )
            items = tuple(
                n.Named(new, n.Column(old, kind))
                for (_, old, kind), (_, new, _) in zip(common.columns, columns, strict=True)
            )
            parts = {
                part: n.Field(fresh(f"{unique}.{part[0]}.part", names), field.type)
                for part, field in common.parts.items()
            }
            more = tuple(
                n.Named(parts[part].name, n.Column(field.name, field.type))
                for part, field in common.parts.items()
            )
            shown_columns = self.column_aliases(tree, columns)
            scope.add(Source(shown, shown_columns, parts, common.refused), span)
            return n.Project(common.relation, items + more)
        assert stored is not None
        assert not isinstance(stored, CommonTable)
        relation, source = stored
        scope.add(replace(source, columns=self.column_aliases(tree, source.columns)), span)
        return relation

    def _values(self, tree: Any, alias: str) -> Bound:
        rows = []
        for row in tree.expressions:
            items = row.expressions if isinstance(row, exp.Tuple) else [row]
            scalars = [
                self.scalars.bind(i, Scope(self.text, None, {}), self.no_aggregates("VALUES"))
                for i in items
            ]
            if not all(isinstance(s, n.Literal) for s in scalars):
                raise self.scalars.refuse(row, "VALUES takes constants")
            rows.append(scalars)
        if len({len(r) for r in rows}) != 1:
            raise SqlError(
                "SQL-008", "the rows of VALUES differ in length", text=self.text, span=span_of(tree)
            )
        columns = []
        for index in range(len(rows[0])):
            kind: t.Type | None = t.NULL
            for row in rows:
                kind = t.unify(kind, type_of(row[index])) if kind is not None else None
            if kind is None:
                raise SqlError(
                    "SQL-004", "a column of VALUES mixes types", text=self.text, span=span_of(tree)
                )
            columns.append((f"col{index}", f"{alias}.col{index}", kind))
        constants = tuple(tuple(getattr(s, "value", None) for s in row) for row in rows)
        return Bound(
            n.Values(tuple(n.Field(u, k) for _, u, k in columns), constants), tuple(columns)
        )

    # ── SELECT ───────────────────────────────────────────────────────────────────────────────────

    def _select(self, tree: exp.Select, parent: Scope | None, tables: Any) -> Bound:
        block = self._block()
        scope = Scope(self.text, parent, tables)
        relation = self._from(tree, scope)
        where = tree.args.get("where")
        if where is not None:
            predicate = self.scalars.predicate(where.this, scope, self.no_aggregates("WHERE"))
            relation = n.Filter(relation, predicate, span_of(where))
        grouping = Grouping(self, tree, scope, block)
        windows = Windows(self, tree, grouping, block)
        outputs: list[Output] = []
        for item in tree.expressions:
            outputs += self._outputs(item, scope, outputs, windows.collect)
        if not outputs:
            raise SqlError(
                "SQL-001",
                "there is nothing between SELECT and FROM",
                text=self.text,
                span=span_of(tree),
                hint="name what to show, for example count(*)",
            )
        aliases = {o.name.lower(): o.scalar for o in reversed(outputs)}
        having = self._condition(tree, "having", with_aliases(scope, aliases), grouping.collect)
        qualify = self._condition(tree, "qualify", with_aliases(scope, aliases), windows.collect)
        orders = self._orders(tree, scope, outputs, aliases, windows.collect)
        firsts = self._first_of_each(tree, scope, outputs, aliases, windows.collect)
        settle = grouping.settle
        if grouping.needed or having is not None:
            relation = grouping.grouped(relation, outputs, aliases)
            outputs = [replace(o, scalar=settle(o.scalar)) for o in outputs]
            if having is not None:
                relation = n.Filter(relation, settle(having), span_of(tree.args["having"]))
            orders = [(settle(scalar), item) for scalar, item in orders]
            firsts = [settle(scalar) for scalar in firsts]
            qualify = settle(qualify) if qualify is not None else None
            windows.settle(settle)
        shown = [*(o.scalar for o in outputs), *(s for s, _ in orders), *firsts]
        relation = windows.over(relation, [*shown, qualify] if qualify is not None else shown)
        if qualify is not None:
            relation = n.Filter(relation, qualify, span_of(tree.args["qualify"]))
        return self._finish(tree, relation, outputs, orders, firsts, block)

    def _condition(
        self, tree: exp.Select, clause: str, scope: Scope, collect: Any
    ) -> n.Scalar | None:
        clause_tree = tree.args.get(clause)
        return (
            None
            if clause_tree is None
            else self.scalars.predicate(clause_tree.this, scope, collect)
        )

    def _outputs(self, item: Any, scope: Scope, before: list[Output], collect: Any) -> list[Output]:
        if isinstance(item, exp.Star) or (
            isinstance(item, exp.Column) and isinstance(item.this, exp.Star)
        ):
            check_carried(self.scalars, item if isinstance(item, exp.Star) else item.this)
            table = item.table if isinstance(item, exp.Column) else ""
            sources = [s for s in scope.sources if not table or s.alias.lower() == table.lower()]
            if not sources:
                raise scope.unknown(table or None, "*", span_of(item))
            return [
                Output(shown, n.Column(unique, kind, span_of(item)))
                for s in sources
                for shown, unique, kind in s.columns
                if table or unique not in scope.hidden
            ]
        inner = item.this if isinstance(item, exp.Alias) else item
        # An output may use the names of outputs before it.
        aliases = {o.name.lower(): o.scalar for o in reversed(before)}
        scalar = self.scalars.bind(inner, with_aliases(scope, aliases), collect)
        name = (
            item.alias
            if isinstance(item, exp.Alias)
            else inner.name
            if isinstance(inner, exp.Column)
            else ""
        )
        return [Output(name or self._output_name(inner), scalar)]

    def _output_name(self, tree: exp.Expression) -> str:
        """Name an unnamed output by its own text, as DuckDB does, cut to a sensible length."""
        text = tree.sql(dialect="duckdb").lower()
        return text if len(text) <= 60 else text[:57] + "..."

    def _orders(
        self,
        tree: Any,
        scope: Scope,
        outputs: list[Output],
        aliases: dict[str, n.Scalar],
        collect: Any,
    ) -> list[tuple[n.Scalar, Any]]:
        order = tree.args.get("order")
        orders: list[tuple[n.Scalar, Any]] = []
        for item in order.expressions if order is not None else ():
            check_carried(self.scalars, item)
            inner = item.this
            if isinstance(inner, exp.Var) and inner.name.upper() == "ALL":
                orders += [(o.scalar, item) for o in outputs]
                continue
            orders.append((self._output(inner, scope, outputs, aliases, collect), item))
        return orders

    def _output(
        self, tree: Any, scope: Scope, outputs: list[Output], aliases: Any, collect: Any
    ) -> n.Scalar:
        """Bind what may be a position, the name of an output (it wins), or any expression."""
        if isinstance(tree, exp.Literal) and not tree.is_string:
            return outputs[self.position(tree, len(outputs))].scalar
        if isinstance(tree, exp.Column) and not tree.table and tree.name.lower() in aliases:
            scalar: n.Scalar = aliases[tree.name.lower()]
            return scalar
        return self.scalars.bind(tree, with_aliases(scope, aliases), collect)

    def _first_of_each(
        self, tree: Any, scope: Scope, outputs: list[Output], aliases: Any, collect: Any
    ) -> list[n.Scalar]:
        """Bind the list of DISTINCT ON."""
        distinct = tree.args.get("distinct")
        on = distinct.args.get("on") if distinct is not None else None
        trees = on.expressions if isinstance(on, exp.Tuple) else [on] if on is not None else []
        return [self._output(item, scope, outputs, aliases, collect) for item in trees]

    def _finish(
        self,
        tree: Any,
        relation: n.Relation,
        outputs: list[Output],
        orders: Any,
        firsts: list[n.Scalar],
        block: str,
    ) -> Bound:
        # A key or an aggregate of the block may be called as an output is: a name means one thing in a plan.
        used = {f.name.lower() for f in fields_of(relation)}
        names = [fresh(f"{block}.{output.name}", used) for output in outputs]
        items = [n.Named(name, o.scalar) for name, o in zip(names, outputs, strict=True)]
        columns = tuple(
            (o.name, name, type_of(o.scalar)) for name, o in zip(names, outputs, strict=True)
        )

        def place(scalar: n.Scalar) -> n.Column:
            item = next((i for i in items if same(i.expression, scalar)), None)
            if item is None:  # not shown: carried along, dropped at the end
                item = n.Named(fresh(f"{block}.order{len(items)}", used), scalar)
                items.append(item)
            return n.Column(item.name, type_of(scalar))

        keys = tuple(self.sort_key(item, place(scalar)) for scalar, item in orders)
        apart = tuple(place(scalar) for scalar in firsts)
        distinct = tree.args.get("distinct")
        if distinct is not None:
            check_carried(self.scalars, distinct)
        if distinct is not None and not apart and len(items) > len(outputs):
            raise SqlError(
                "SQL-008",
                "with DISTINCT, ORDER BY may use selected columns only",
                text=self.text,
                span=span_of(tree.args["order"] or tree),
                hint="select the column, or order by a selected one",
            )
        relation = n.Project(relation, tuple(items))
        if apart:
            relation = first_of_each(relation, apart, keys, fresh(f"{block}.place", used))
        elif distinct is not None:
            relation = n.Distinct(relation, span_of(tree))
        if keys:
            relation = n.Sort(relation, keys)
        relation = self._limited(tree, relation)
        if len(items) > len(outputs) or apart:
            shown = [n.Named(name, n.Column(name, kind)) for _, name, kind in columns]
            relation = n.Project(relation, tuple(shown))
        return Bound(relation, columns)

    # ── small parts ──────────────────────────────────────────────────────────────────────────────

    def sort_key(self, item: Any, scalar: n.Scalar) -> n.SortKey:
        """Read the direction of an item of ORDER BY."""
        descending = bool(item.args.get("desc"))
        nulls_first = item.args.get("nulls_first")
        return n.SortKey(scalar, descending, bool(nulls_first))

    def _limited(self, tree: Any, relation: n.Relation) -> n.Relation:
        limit, offset = tree.args.get("limit"), tree.args.get("offset")
        if limit is None and offset is None:
            return relation
        for clause in (limit, offset):
            if clause is not None:
                check_carried(self.scalars, clause)
        count = self._whole(limit) if limit is not None else None
        skip = self._whole(offset) if offset is not None else 0
        return n.Limit(relation, count, skip or 0, span_of(tree))

    def _whole(self, tree: Any) -> int:
        inner = tree.args.get("count") if isinstance(tree, exp.Fetch) else tree.expression
        options = tree.args.get("limit_options")
        if options is not None and (options.args.get("percent") or options.args.get("with_ties")):
            raise self.scalars.refuse(tree, "FETCH takes a number of rows", "write LIMIT")
        if not isinstance(inner, exp.Literal) or not inner.name.isdecimal():
            raise self.scalars.refuse(tree, "LIMIT and OFFSET take a whole number")
        if len(inner.name) > 18:  # engines add the two in 64 bits
            raise self.scalars.refuse(tree, "LIMIT or OFFSET is too large", "leave it out")
        return int(inner.name)

    def position(self, tree: Any, count: int) -> int:
        """Read an ordinal such as GROUP BY 1."""
        value = number(self.scalars, tree).value
        if not isinstance(value, int) or not 1 <= value <= count:
            raise SqlError(
                "SQL-008",
                "the position names no output column",
                text=self.text,
                span=span_of(tree),
                hint=f"positions go from 1 to {count}",
            )
        return value - 1

    def no_aggregates(self, clause: str) -> Callable[[exp.Expression, Scope], n.Scalar]:
        """Give what refuses aggregates and window calls in a clause."""

        def refuse(tree: exp.Expression, scope: Scope) -> n.Scalar:
            if isinstance(tree, exp.Window):
                raise misplaced(self, tree, clause)
            raise SqlError(
                "SQL-008",
                f"an aggregate cannot stand in {clause}",
                text=self.text,
                span=span_of(tree),
                hint="move it to HAVING or into a subquery",
            )

        return refuse

    def only(self, tree: exp.Expression, *names: str) -> None:
        """Refuse a clause that this place does not read."""
        extra = [k for k, v in tree.args.items() if v and k not in names]
        if extra:
            raise self.scalars.refuse(tree, f"{extra[0].rstrip('_').upper()} is not accepted here")

    def alias(self, name: str) -> str:
        """Give an alias that no other table expression has."""
        # Without a dot of its own, an alias ends at the first dot of `alias.column`: no two columns get one name.
        return fresh(name.replace(".", "_"), self._aliases)

    def _block(self) -> str:
        self._blocks += 1
        return self.alias(f"q{self._blocks}")


def _dressed(tree: exp.Expression) -> bool:
    return any(tree.args.get(k) for k in ("with_", "order", "limit", "offset"))
