"""Window calls of one SELECT: `f(x) OVER (PARTITION BY … ORDER BY … frame)`, QUALIFY, and DISTINCT ON.

In: syntax, bound over the rows of the SELECT; `settle` moves it onto groups. Out: a Window node over a projection that
holds exactly what the SELECT still needs, since a window may break ties by every column of its rows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from secant.errors import SqlError
from secant.plan import nodes as n
from secant.plan.facts.scopes import free_columns
from secant.plan.functions.windows import WINDOW_AGGREGATES, WINDOW_FUNCTIONS
from secant.plan.show import same
from secant.plan.typing import Mistyped, fields_of, type_of
from secant.schema import types as t
from secant.sql.bind.carried import check_carried
from secant.sql.bind.expressions import aggregate_named
from secant.sql.bind.scope import Scope, fresh
from secant.sql.parse import span_of

if TYPE_CHECKING:
    from secant.sql.bind.grouping import Grouping
    from secant.sql.bind.relations import Binder

CALLED: dict[type[exp.Expression], str] = {
    exp.RowNumber: "row_number", exp.Rank: "rank", exp.DenseRank: "dense_rank", exp.PercentRank: "percent_rank",
    exp.CumeDist: "cume_dist", exp.Ntile: "ntile", exp.Lag: "lag", exp.Lead: "lead",
    exp.FirstValue: "first_value", exp.LastValue: "last_value", exp.NthValue: "nth_value",
}  # fmt: skip
FARTHEST = 2**31 - 1
"""Engines count the rows of a frame in 32 bits."""


def misplaced(binder: Binder, tree: exp.Expression, clause: str) -> SqlError:
    """Build the error for a window call where none can stand."""
    return SqlError(
        "SQL-008",
        f"a window function cannot stand in {clause}",
        text=binder.text,
        span=span_of(tree),
        hint="select it in a subquery, or filter by it with QUALIFY",
    )


class Windows:
    """The window calls of one SELECT while it is being bound."""

    def __init__(self, binder: Binder, tree: exp.Select, grouping: Grouping, block: str) -> None:
        self.binder = binder
        self.grouping = grouping
        self.block = block
        self.calls: list[n.WindowCall] = []
        self._named = {
            item.this.name.lower(): item for item in tree.args.get("windows") or () if item.this
        }

    def collect(self, tree: exp.Expression, scope: Scope) -> n.Scalar:
        """Register a window call and give its column; hand aggregates on to the groups of the SELECT."""
        if not isinstance(tree, exp.Window):
            return self.grouping.collect(tree, scope)
        check_carried(self.binder.scalars, tree)
        function, arguments = self._called(tree.this, scope)
        partition, order, spec = self._over(tree, set())
        keys = [self._bound(part, scope) for part in partition]
        sorts = [self.binder.sort_key(o, self._bound(o.this, scope)) for o in order]
        framed = function not in WINDOW_FUNCTIONS or WINDOW_FUNCTIONS[function].framed
        frame = self._frame(spec, bool(order)) if framed else None
        call = n.WindowCall(
            f"{self.block}.{function}.{len(self.calls)}",
            function,
            tuple(arguments),
            tuple(keys),
            tuple(sorts),
            frame,
            span_of(tree),
        )
        try:
            kind = type_of(call)
        except Mistyped as error:
            hint = "see docs/reference/sql-accepted.md for what it takes"
            raise self.binder.scalars.unfit(tree, str(error), hint) from None
        for earlier in self.calls:
            if same(replace(call, name=earlier.name), earlier):
                return n.Column(earlier.name, kind)
        self.calls.append(call)
        return n.Column(call.name, kind, span_of(tree))

    def _bound(self, tree: exp.Expression, scope: Scope) -> n.Scalar:
        scalar = self.binder.scalars.bind(tree, scope, self._inside)
        if n.has_subquery(scalar):
            raise self.binder.scalars.refuse(
                tree, "a window call takes no subquery", "compute the subquery in FROM"
            )
        return scalar

    def _inside(self, tree: exp.Expression, scope: Scope) -> n.Scalar:
        if isinstance(tree, exp.Window):
            raise misplaced(self.binder, tree, "another one")
        return self.grouping.collect(tree, scope)

    def _called(self, tree: Any, scope: Scope) -> tuple[str, list[n.Scalar]]:
        """Read the function: one of the window functions, or an aggregate, perhaps with a FILTER."""
        scalars, condition = self.binder.scalars, None
        if isinstance(tree, exp.Filter):
            condition = scalars.predicate(tree.expression.this, scope, self._inside)
            tree = tree.this
        if isinstance(tree, (exp.IgnoreNulls, exp.RespectNulls)):
            raise scalars.refuse(
                tree, "IGNORE NULLS is not accepted", "filter the rows in a subquery first"
            )
        check_carried(scalars, tree)
        function = CALLED.get(type(tree)) or aggregate_named(tree)
        if function not in WINDOW_FUNCTIONS and function not in WINDOW_AGGREGATES:
            accepted = ", ".join((*WINDOW_FUNCTIONS, *WINDOW_AGGREGATES))
            raise scalars.refuse(
                tree, f"{scalars.word(tree)} is not accepted over a window", f"accepted: {accepted}"
            )
        assert function is not None
        trees = [tree.args.get(slot) for slot in ("this", "offset", "default")]
        if isinstance(tree.this, exp.Distinct):
            raise scalars.refuse(
                tree,
                "DISTINCT is not accepted over a window",
                "count distinct values in a subquery",
            )
        if isinstance(tree.this, exp.Star):
            trees = []
        arguments = [self._bound(item, scope) for item in trees if item is not None]
        if condition is not None:
            if function in WINDOW_FUNCTIONS:
                raise scalars.refuse(tree, "FILTER belongs to aggregates")
            value = arguments[0] if arguments else n.Literal(1, t.INTEGER)
            arguments = [n.Case((n.Branch(condition, value),), n.Literal(None, t.NULL))]
        return function, arguments

    def _over(self, tree: Any, seen: set[str]) -> tuple[list[Any], list[Any], Any]:
        """Read PARTITION BY, ORDER BY and the frame, also those of a window that is named."""
        partition = list(tree.args.get("partition_by") or ())
        order = tree.args.get("order")
        orders = list(order.expressions) if order is not None else []
        spec = tree.args.get("spec")
        for item in orders:
            check_carried(self.binder.scalars, item)
        name = tree.args.get("alias")
        if name is None:
            return partition, orders, spec
        base = self._named.get(name.name.lower())
        if base is None or name.name.lower() in seen:
            raise SqlError(
                "SQL-002",
                f"there is no window {name.name}",
                text=self.binder.text,
                span=span_of(tree),
                hint="name it after FROM: WINDOW w AS (PARTITION BY …)",
            )
        below = self._over(base, seen | {name.name.lower()})
        return below[0] + partition, below[1] + orders, spec or below[2]

    def _frame(self, spec: Any, ordered: bool) -> n.Frame:
        if spec is None:
            return n.Frame("range", None, 0) if ordered else n.Frame("rows", None, None)
        check_carried(self.binder.scalars, spec)
        unit = str(spec.args.get("kind") or "").lower()
        start = self._end(spec, "start")
        end = self._end(spec, "end") if spec.args.get("end") is not None else 0
        if unit not in ("rows", "range", "groups"):
            raise self.binder.scalars.refuse(spec, "a frame counts ROWS, RANGE or GROUPS")
        if unit == "range" and not {start, end} <= {None, 0}:
            raise self.binder.scalars.refuse(
                spec,
                "RANGE takes UNBOUNDED and CURRENT ROW here",
                "count ROWS, or join the rows that lie in the range",
            )
        if unit != "rows" and not ordered:
            if unit == "groups":
                raise self.binder.scalars.refuse(spec, "GROUPS needs an ORDER BY")
            return n.Frame("rows", None, None)  # all rows are alike
        if start is not None and end is not None and start > end:
            raise self.binder.scalars.refuse(spec, "the frame ends before it starts")
        return n.Frame(unit, start, end)

    def _end(self, spec: Any, which: str) -> int | None:
        value, side = spec.args.get(which), str(spec.args.get(f"{which}_side") or "").upper()
        word = value.upper() if isinstance(value, str) else ""
        if word == "CURRENT ROW":
            return 0
        if word == "UNBOUNDED":
            if side != ("PRECEDING" if which == "start" else "FOLLOWING"):
                raise self.binder.scalars.refuse(spec, "the frame ends before it starts")
            return None
        if isinstance(value, exp.Literal) and not value.is_string and value.name.isdecimal():
            count = int(value.name)
            if count <= FARTHEST:
                return -count if side == "PRECEDING" else count
        raise self.binder.scalars.refuse(
            spec,
            "a frame is written with whole numbers",
            "ROWS BETWEEN 6 PRECEDING AND CURRENT ROW",
        )

    def settle(self, change: Callable[[n.Scalar], n.Scalar]) -> None:
        """Rewrite the calls onto the groups of the SELECT."""
        self.calls = [
            replace(
                call,
                arguments=tuple(map(change, call.arguments)),
                partition=tuple(map(change, call.partition)),
                order=tuple(replace(k, expression=change(k.expression)) for k in call.order),
            )
            for call in self.calls
        ]

    def over(self, relation: n.Relation, shown: Sequence[n.Scalar]) -> n.Relation:
        """Put the calls on top of a relation of which `shown` is still needed."""
        if not self.calls:
            return relation
        names = frozenset().union(*(free_columns(s) for s in shown))
        items = [
            n.Named(f.name, n.Column(f.name, f.type))
            for f in fields_of(relation)
            if f.name in names
        ]
        used = {f.name.lower() for f in fields_of(relation)} | {c.name.lower() for c in self.calls}

        def column(scalar: n.Scalar) -> n.Scalar:
            if isinstance(scalar, n.Literal):
                return scalar
            item = next((i for i in items if same(i.expression, scalar)), None)
            if item is None:
                own = scalar.name if isinstance(scalar, n.Column) else ""
                name = own or fresh(f"{self.block}.over{len(items)}", used)
                item = n.Named(name, scalar)
                items.append(item)
            return n.Column(item.name, type_of(scalar))

        self.settle(column)
        return n.Window(n.Project(relation, tuple(items)), tuple(self.calls), self.calls[0].span)


def first_of_each(
    relation: n.Relation, keys: tuple[n.Column, ...], order: tuple[n.SortKey, ...], name: str
) -> n.Relation:
    """Give DISTINCT ON: of all rows that are alike in `keys`, the first."""
    call = n.WindowCall(name, "row_number", (), keys, order)
    first = n.Compare("=", n.Column(name, t.INTEGER), n.Literal(1, t.INTEGER))
    return n.Filter(n.Window(relation, (call,)), first)
