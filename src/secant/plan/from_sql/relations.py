"""Query syntax to relations: FROM, WHERE, GROUP BY, HAVING, SELECT, DISTINCT, ORDER BY, LIMIT, set operations.

Each SELECT becomes the same short stack of nodes, always in that order. Column names are made unique for the whole
query (`alias.column`, `q2.total`), so later stages never meet two columns of one name.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from sqlglot import exp

from secant.errors import Span, SqlError
from secant.plan import nodes as n
from secant.plan.from_sql.expressions import ScalarBinder, check_carried, number
from secant.plan.from_sql.grouping import Grouping
from secant.plan.from_sql.renaming import renamed
from secant.plan.from_sql.scope import CommonTable, Scope, Source, fresh, with_aliases
from secant.plan.show import same
from secant.plan.typing import fields_of, type_of
from secant.sql.parse import span_of
from secant.terms import types as t
from secant.terms.catalog import Catalog


@dataclass(frozen=True, slots=True)
class Bound:
    """A query that is bound: its relation and, for each output column, the shown name, plan name and type."""

    relation: n.Relation
    columns: tuple[tuple[str, str, t.Type], ...]


@dataclass(frozen=True, slots=True)
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
        self._aliases: set[str] = set()
        self._blocks = 0

    def bind(self, tree: exp.Query) -> n.Relation:
        """Give the plan of a whole query; its columns have the user's names."""
        bound = self.query(tree, None, {})
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
            self._only(tree, "this", "with_", "order", "limit", "offset", "alias")
            bound = self.query(tree.this, parent, tables)
            return self._ordered(tree, bound, Scope(self.text, parent, tables))
        if isinstance(tree, exp.Values):
            return self._values(tree, self._alias("values"))
        raise self.scalars.refuse(tree, f"{tree.key.upper()} is not accepted as a query")

    def _common_table(self, item: Any, parent: Scope | None, tables: Any) -> CommonTable:
        check_carried(self.scalars, item)
        bound = self.query(item.this, parent, tables)
        return CommonTable(bound.relation, self._column_aliases(item, bound.columns))

    def _column_aliases(
        self, item: exp.Expression, columns: tuple[tuple[str, str, t.Type], ...]
    ) -> tuple[tuple[str, str, t.Type], ...]:
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
            scope.add(Source(self._alias("result"), bound.columns), None)
            keys = [
                self._sort_key(item, self._output_column(item.this, bound.columns, scope))
                for item in order.expressions
            ]
            relation = n.Sort(relation, tuple(keys))
        return Bound(self._limited(tree, relation), bound.columns)

    def _output_column(self, tree: Any, columns: Any, scope: Scope) -> n.Scalar:
        if isinstance(tree, exp.Literal) and not tree.is_string:
            _, unique, kind = columns[self.position(tree, len(columns))]
            return n.Column(unique, kind)
        return self.scalars.bind(tree, scope, self._no_aggregates("ORDER BY of a set operation"))

    # ── FROM ─────────────────────────────────────────────────────────────────────────────────────

    def _from(self, tree: exp.Select, scope: Scope) -> n.Relation:
        start = tree.args.get("from_")
        if start is None:
            return n.Values((), ((),))
        relation = self._table(start.this, scope)
        joins = list(start.this.args.get("joins") or ()) + list(tree.args.get("joins") or ())
        for join in joins:
            relation = self._join(relation, join, scope)
        return relation

    def _table(self, tree: Any, scope: Scope) -> n.Relation:
        span = span_of(tree)
        if isinstance(tree, exp.Table):
            return self._named_table(tree, scope, span)
        if isinstance(tree, exp.Subquery):
            self._only(tree, "this", "alias", "joins")
            if not isinstance(tree.this, exp.Query):  # a parenthesised join
                return self._joined_apart(tree.this, scope)
            # A derived table does not see its neighbors in FROM, only the enclosing query.
            bound = self.query(tree.this, scope.parent, scope.tables)
            alias = tree.alias or self._alias("derived")
            scope.add(Source(alias, self._column_aliases(tree, bound.columns)), span)
            return bound.relation
        if isinstance(tree, exp.Values):
            alias = tree.alias or "values"
            bound = self._values(tree, self._alias(alias))
            scope.add(Source(alias, self._column_aliases(tree, bound.columns)), span)
            return bound.relation
        raise self.scalars.refuse(tree, f"{tree.key.upper()} is not accepted in FROM")

    def _joined_apart(self, tree: Any, scope: Scope) -> n.Relation:
        """Bind a table with joins of its own: their conditions do not see what stands outside of them."""
        joins = tree.args.get("joins") or ()
        if not joins:
            return self._table(tree, scope)
        apart = Scope(self.text, scope.parent, scope.tables)
        relation = self._table(tree, apart)
        for join in joins:
            relation = self._join(relation, join, apart)
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
        if common is not None:
            unique = self._alias(shown)
            taken: set[str] = set()
            columns = tuple(
                (c, fresh(f"{unique}.{c}", taken), kind) for c, _, kind in common.columns
            )
            items = tuple(
                n.Named(new, n.Column(old, kind))
                for (_, old, kind), (_, new, _) in zip(common.columns, columns, strict=True)
            )
            scope.add(Source(shown, self._column_aliases(tree, columns)), span)
            return n.Project(common.relation, items)
        table = (
            self.catalog.table(name)
            if not tree.db or tree.db.lower() in ("main", "public")
            else None
        )
        if table is None:
            raise SqlError(
                "SQL-002",
                f"there is no table {name[:80]}",
                text=self.text,
                span=span,
                hint="the tables are: " + ", ".join(sorted(self.catalog.tables)[:40]),
            )
        unique = self._alias(shown)
        fields = tuple(n.Field(f"{unique}.{column}", kind) for column, kind in table.columns)
        columns = tuple(
            (column, field.name, field.type)
            for (column, _), field in zip(table.columns, fields, strict=True)
        )
        scope.add(Source(shown, self._column_aliases(tree, columns)), span)
        return n.Scan(table.name, unique, fields, span)

    def _join(self, left: n.Relation, tree: Any, scope: Scope) -> n.Relation:
        side, kind = (tree.side or "").upper(), (tree.kind or "").upper()
        method = (tree.args.get("method") or "").upper()
        if (
            method
            or side not in ("", "LEFT", "RIGHT")
            or kind not in ("", "INNER", "CROSS", "OUTER")
        ):
            word = " ".join(w for w in (method, side, kind) if w)
            raise self.scalars.refuse(
                tree, f"{word} JOIN is not accepted", "INNER, LEFT, RIGHT and CROSS joins are"
            )
        self._only(tree, "this", "on", "side", "kind", "using")
        known = list(scope.sources)
        right = (
            self._joined_apart(tree.this, scope)
            if isinstance(tree.this, exp.Table)
            else self._table(tree.this, scope)
        )
        new = [s for s in scope.sources if s not in known]
        span = span_of(tree)
        if tree.args.get("using"):
            condition = self._using(tree, known, new, scope, side)
        elif tree.args.get("on") is not None:
            condition = self.scalars.predicate(tree.args["on"], scope, self._no_aggregates("ON"))
        elif side or kind in ("INNER", "OUTER"):
            raise self.scalars.refuse(
                tree, "the join has no condition", "write ON or USING, or CROSS JOIN"
            )
        else:
            return n.Join("cross", left, right, None, span)
        if side == "RIGHT":
            return n.Join("left", right, left, condition, span)
        return n.Join("left" if side == "LEFT" else "inner", left, right, condition, span)

    def _using(
        self, tree: Any, known: list[Source], new: list[Source], scope: Scope, side: str
    ) -> n.Scalar:
        parts: list[n.Scalar] = []
        for item in tree.args["using"]:
            found = []
            for sources in (known, new):
                hits = [h for s in sources for h in s.find(item.name) if h[0] not in scope.hidden]
                if len(hits) != 1:
                    code = "SQL-003" if hits else "SQL-002"
                    raise SqlError(
                        code,
                        f"USING needs exactly one column {item.name} on each side",
                        text=self.text,
                        span=span_of(item),
                        hint="write the condition with ON",
                    )
                found.append(n.Column(*hits[0]))
            if not t.comparable(found[0].type, found[1].type):
                raise SqlError(
                    "SQL-004",
                    f"{item.name} is {found[0].type} on one side and {found[1].type} on the other",
                    text=self.text,
                    span=span_of(item),
                    hint="write the condition with ON, and cast one side",
                )
            parts.append(n.Compare("=", found[0], found[1], span_of(item)))
            # The merged column is the one that is never padded with NULL.
            scope.hidden.add(found[0].name if side == "RIGHT" else found[1].name)
        return n.conjunction(tuple(parts)) or n.Literal(True, t.BOOLEAN)

    def _values(self, tree: Any, alias: str) -> Bound:
        rows = []
        for row in tree.expressions:
            items = row.expressions if isinstance(row, exp.Tuple) else [row]
            scalars = [
                self.scalars.bind(i, Scope(self.text, None, {}), self._no_aggregates("VALUES"))
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
            predicate = self.scalars.predicate(where.this, scope, self._no_aggregates("WHERE"))
            relation = n.Filter(relation, predicate, span_of(where))
        grouping = Grouping(self, tree, scope, block)
        outputs = [
            o for item in tree.expressions for o in self._outputs(item, scope, grouping.collect)
        ]
        if not outputs:
            raise SqlError(
                "SQL-001",
                "there is nothing between SELECT and FROM",
                text=self.text,
                span=span_of(tree),
                hint="name what to show, for example count(*)",
            )
        having_tree = tree.args.get("having")
        having_span = span_of(having_tree) if having_tree is not None else None
        aliases = {o.name.lower(): o.scalar for o in reversed(outputs)}
        having = (
            self.scalars.predicate(having_tree.this, with_aliases(scope, aliases), grouping.collect)
            if having_tree is not None
            else None
        )
        orders = self._orders(tree, scope, outputs, aliases, grouping)
        if grouping.needed or having is not None:
            keys = grouping.keys(outputs, aliases)
            relation = n.Aggregate(relation, keys, tuple(grouping.aggregations), span_of(tree))
            settle = grouping.settle
            outputs = [replace(o, scalar=settle(o.scalar)) for o in outputs]
            if having is not None:
                relation = n.Filter(relation, settle(having), having_span)
            orders = [(settle(scalar), item) for scalar, item in orders]
        return self._finish(tree, relation, outputs, orders, block)

    def _outputs(self, item: Any, scope: Scope, collect: Any) -> list[Output]:
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
        scalar = self.scalars.bind(inner, scope, collect)
        name = (
            item.alias
            if isinstance(item, exp.Alias)
            else inner.name
            if isinstance(inner, exp.Column)
            else ""
        )
        return [Output(name or self._written(inner), scalar)]

    def _written(self, tree: exp.Expression) -> str:
        """Name an unnamed output by its own text, as DuckDB does, cut to a sensible length."""
        text = tree.sql(dialect="duckdb").lower()
        return text if len(text) <= 60 else text[:57] + "..."

    def _orders(
        self,
        tree: Any,
        scope: Scope,
        outputs: list[Output],
        aliases: dict[str, n.Scalar],
        grouping: Grouping,
    ) -> list[tuple[n.Scalar, Any]]:
        order = tree.args.get("order")
        found: list[tuple[n.Scalar, Any]] = []
        for item in order.expressions if order is not None else ():
            check_carried(self.scalars, item)
            inner = item.this
            if isinstance(inner, exp.Column) and not inner.table and inner.name.lower() == "all":
                raise self.scalars.refuse(item, "ORDER BY ALL is not accepted", "list the columns")
            if isinstance(inner, exp.Literal) and not inner.is_string:
                scalar = outputs[self.position(inner, len(outputs))].scalar
            elif (
                isinstance(inner, exp.Column) and not inner.table and inner.name.lower() in aliases
            ):
                scalar = aliases[inner.name.lower()]  # an output's name wins in ORDER BY
            else:
                scalar = self.scalars.bind(inner, with_aliases(scope, aliases), grouping.collect)
            found.append((scalar, item))
        return found

    def _finish(
        self, tree: Any, relation: n.Relation, outputs: list[Output], orders: Any, block: str
    ) -> Bound:
        # A key or an aggregate of the block may be called as an output is: a name means one thing in a plan.
        taken = {f.name.lower() for f in fields_of(relation)}
        names = [fresh(f"{block}.{output.name}", taken) for output in outputs]
        items = [n.Named(name, o.scalar) for name, o in zip(names, outputs, strict=True)]
        columns = tuple(
            (o.name, name, type_of(o.scalar)) for name, o in zip(names, outputs, strict=True)
        )
        keys = []
        for scalar, item in orders:
            place = next((i for i in items if same(i.expression, scalar)), None)
            if (
                place is None
            ):  # ordered by something that is not shown: carried along, dropped at the end
                place = n.Named(fresh(f"{block}.order{len(items)}", taken), scalar)
                items.append(place)
            keys.append(self._sort_key(item, n.Column(place.name, type_of(scalar))))
        distinct = tree.args.get("distinct")
        if distinct is not None:
            check_carried(self.scalars, distinct)
        if distinct is not None and len(items) > len(outputs):
            raise SqlError(
                "SQL-008",
                "with DISTINCT, ORDER BY may use selected columns only",
                text=self.text,
                span=span_of(tree.args["order"] or tree),
                hint="select the column, or order by a selected one",
            )
        relation = n.Project(relation, tuple(items))
        if distinct is not None:
            relation = n.Distinct(relation, span_of(tree))
        if keys:
            relation = n.Sort(relation, tuple(keys))
        relation = self._limited(tree, relation)
        if len(items) > len(outputs):
            shown = [n.Named(name, n.Column(name, kind)) for _, name, kind in columns]
            relation = n.Project(relation, tuple(shown))
        return Bound(relation, columns)

    # ── small parts ──────────────────────────────────────────────────────────────────────────────

    def _sort_key(self, item: Any, scalar: n.Scalar) -> n.SortKey:
        descending = bool(item.args.get("desc"))
        written = item.args.get("nulls_first")
        return n.SortKey(scalar, descending, bool(written))

    def _limited(self, tree: Any, relation: n.Relation) -> n.Relation:
        limit, offset = tree.args.get("limit"), tree.args.get("offset")
        if limit is None and offset is None:
            return relation
        for clause in (limit, offset):
            if clause is not None and not isinstance(clause, (exp.Limit, exp.Offset)):
                raise self.scalars.refuse(tree, "FETCH is not accepted", "write LIMIT")
            if clause is not None:
                check_carried(self.scalars, clause)
        count = self._whole(limit) if limit is not None else None
        skip = self._whole(offset) if offset is not None else 0
        return n.Limit(relation, count, skip or 0, span_of(tree))

    def _whole(self, tree: Any) -> int:
        inner = tree.expression
        if not isinstance(inner, exp.Literal) or inner.is_string or not inner.name.isdecimal():
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

    def _no_aggregates(self, clause: str) -> Callable[[exp.Expression, Scope], n.Scalar]:
        def refuse(tree: exp.Expression, scope: Scope) -> n.Scalar:
            raise SqlError(
                "SQL-008",
                f"an aggregate cannot stand in {clause}",
                text=self.text,
                span=span_of(tree),
                hint="move it to HAVING or into a subquery",
            )

        return refuse

    def _only(self, tree: exp.Expression, *names: str) -> None:
        """Refuse a clause that this place does not read."""
        extra = [k for k, v in tree.args.items() if v and k not in names]
        if extra:
            raise self.scalars.refuse(tree, f"{extra[0].rstrip('_').upper()} is not accepted here")

    def _alias(self, wanted: str) -> str:
        # Without a dot of its own, an alias ends at the first dot of `alias.column`: no two columns get one name.
        return fresh(wanted.replace(".", "_"), self._aliases)

    def _block(self) -> str:
        self._blocks += 1
        return self._alias(f"q{self._blocks}")


def _dressed(tree: exp.Expression) -> bool:
    return any(tree.args.get(k) for k in ("with_", "order", "limit", "offset"))
