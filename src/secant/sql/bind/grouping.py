"""GROUP BY and aggregates of one SELECT: collects aggregate calls, then settles expressions onto the group's columns.

Expressions are first bound over the input. `settle` then replaces what equals a key by the key's column; any input
column that is left over is an error, because it has no single value in a group.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from secant.errors import SqlError
from secant.plan import nodes as n
from secant.plan.functions.aggregates import QUANTILES
from secant.plan.rewrites.present import paired, where
from secant.plan.show import same, same_call
from secant.plan.typing import Mistyped, fields_of, type_of
from secant.schema import types as t
from secant.sql.bind.carried import check_carried
from secant.sql.bind.expressions import COMPARE_IT, aggregate_named, number
from secant.sql.bind.scope import Scope
from secant.sql.bind.statistics import ONE, PAIRS, TRUTHS
from secant.sql.bind.windowing import misplaced
from secant.sql.parse import span_of

if TYPE_CHECKING:
    from secant.sql.bind.relations import Binder, Output

HALF = Fraction(1, 2)
MOST_SETS = 64
MOST_MARKS = 32


class Grouping:
    """The aggregates and keys of one SELECT while it is being bound."""

    def __init__(self, binder: Binder, tree: exp.Select, scope: Scope, block: str) -> None:
        self.binder = binder
        self.tree = tree
        self.scope = scope
        self.block = block
        self.aggregations: list[n.Aggregation] = []
        self._keys: tuple[n.Named, ...] = ()
        self._marks: list[tuple[str, tuple[n.Scalar, ...]]] = []
        """Columns that hold GROUPING(…), and what each asks about."""
        self._all_sets: list[list[n.Scalar]] = [[]]

    @property
    def needed(self) -> bool:
        """Whether the SELECT groups at all."""
        return bool(self.aggregations) or self.tree.args.get("group") is not None

    def collect(self, tree: exp.Expression, scope: Scope) -> n.Scalar:
        """Register an aggregate call and give the column that will hold it; equal calls share one."""
        condition = None
        if isinstance(tree, exp.Window):
            raise misplaced(self.binder, tree, "HAVING")
        if isinstance(tree, (exp.Grouping, exp.GroupingId)):
            return self._mark(tree, scope)
        if isinstance(tree, exp.Filter):
            condition = self.binder.scalars.predicate(
                tree.expression.this, self.scope, self._nested
            )
            tree = tree.this
        if isinstance(tree, exp.WithinGroup):
            tree = self._rewritten(tree)
        function = aggregate_named(tree)
        if function is None:
            raise self.binder.scalars.unknown(tree)
        check_carried(self.binder.scalars, tree)
        argument, distinct = self._argument(tree)
        if function in PAIRS:
            return self._of_pair(tree, function, argument, distinct, condition)
        if function == "mode" and distinct:
            raise self.binder.scalars.refuse(
                tree, "of different values none is more frequent", "leave out DISTINCT"
            )
        fraction = self._fraction(tree) if function in QUANTILES else None
        if function in ("median", "quantile_cont") and _is_date(argument):
            # between two dates there need be none: the answer is one of the dates
            function, fraction = "quantile_disc", fraction if fraction is not None else HALF
        if condition is not None:
            argument = where(condition, argument if argument is not None else ONE)
        if function in TRUTHS and argument is not None:
            self._truth_value(tree, function, argument)
            if function == "count_if":
                argument = where(argument, ONE)
            function = TRUTHS[function]
        if function == "approx_count_distinct":
            function, distinct = "count", True
        if function in ("min", "max"):
            distinct = False  # repetition does not move an extreme
        return self._registered(tree, function, argument, distinct, fraction)

    def _truth_value(self, tree: exp.Expression, function: str, argument: n.Scalar) -> None:
        if type_of(argument).kind not in ("BOOLEAN", "NULL"):
            raise self.binder.scalars.unfit(tree, f"{function} takes a condition", COMPARE_IT)

    def _of_pair(
        self,
        tree: Any,
        function: str,
        y: n.Scalar | None,
        distinct: bool,
        condition: n.Scalar | None,
    ) -> n.Scalar:
        """Bind a statistic of pairs, which is made of variances, averages, numbers and one covariance."""
        if distinct or y is None or tree.expression is None:
            raise self.binder.scalars.refuse(
                tree, f"{function} takes two arguments", f"{function}(y, x)"
            )
        x = self.binder.scalars.bind(tree.expression, self.scope, self._nested)
        if condition is not None:
            y = where(condition, y)
        sides = paired(y, x)

        def made(name: str, *arguments: n.Scalar) -> n.Scalar:
            return self._registered(tree, name, arguments[0], False, None, *arguments[1:])

        return PAIRS[function](*sides, made)

    def _registered(
        self,
        tree: exp.Expression,
        function: str,
        argument: n.Scalar | None,
        distinct: bool,
        fraction: Fraction | None,
        second: n.Scalar | None = None,
    ) -> n.Scalar:
        """Give the column of an aggregate; equal ones share one."""
        call = n.Aggregation(
            f"{self.block}.{function}{len(self.aggregations)}",
            function,
            argument,
            distinct,
            span_of(tree),
            fraction,
            second,
        )
        try:
            kind = type_of(call)
        except Mistyped as error:
            raise self.binder.scalars.unfit(tree, str(error), "aggregate a number") from None
        for earlier in self.aggregations:
            if same_call(earlier, call):
                return n.Column(earlier.name, kind)
        self.aggregations.append(call)
        return n.Column(call.name, kind, span_of(tree))

    def _rewritten(self, tree: Any) -> Any:
        """PERCENTILE_CONT(q) WITHIN GROUP (ORDER BY x) is QUANTILE_CONT(x, q)."""
        inner, order = tree.this, tree.expression
        check_carried(self.binder.scalars, tree)
        if not isinstance(order, exp.Order):
            raise self.binder.scalars.refuse(tree, "WITHIN GROUP takes an ORDER BY")
        check_carried(self.binder.scalars, order)
        one = isinstance(inner, (exp.PercentileCont, exp.PercentileDisc)) and not inner.expression
        if isinstance(inner, exp.Mode) and inner.this is None and len(order.expressions) == 1:
            return exp.Mode(this=order.expressions[0].this)
        if not one or len(order.expressions) != 1:
            raise self.binder.scalars.refuse(tree, "this form of aggregate is not accepted")
        (key,) = order.expressions
        if key.args.get("desc"):
            raise self.binder.scalars.refuse(
                tree, "quantiles are counted from the smallest value", "write 1 - q for q"
            )
        return type(inner)(this=key.this, expression=inner.this)

    def _fraction(self, tree: Any) -> Fraction:
        argument = tree.args.get("quantile") or tree.args.get("expression")
        if isinstance(argument, exp.Literal) and not argument.is_string:
            value = number(self.binder.scalars, argument).value
            assert isinstance(value, (int, float, Decimal))
            if 0 <= value <= 1:
                return Fraction(str(value))
        raise self.binder.scalars.refuse(
            tree, "a quantile is asked for by one number from 0 to 1", "quantile_cont(x, 0.25)"
        )

    def _argument(self, tree: Any) -> tuple[n.Scalar | None, bool]:
        inner, others = tree.this, tree.expressions
        if isinstance(tree, exp.Anonymous):
            # A call of a name that sqlglot has no node for: its arguments stand in a list.
            inner, others = (others[0] if others else None), others[1:]
        distinct = False
        if others:
            raise self.binder.scalars.refuse(tree, "an aggregate takes one argument")
        if isinstance(inner, exp.Distinct):
            check_carried(self.binder.scalars, inner)
            if len(inner.expressions) != 1:
                raise self.binder.scalars.refuse(tree, "DISTINCT takes one argument here")
            distinct, inner = True, inner.expressions[0]
        if isinstance(inner, (exp.Order, exp.IgnoreNulls, exp.RespectNulls, exp.HavingMax)):
            raise self.binder.scalars.refuse(tree, "this form of aggregate is not accepted")
        if isinstance(inner, exp.Star) or inner is None:
            if not isinstance(tree, exp.Count) or distinct:
                raise self.binder.scalars.refuse(tree, "only COUNT takes *")
            return None, False
        return self.binder.scalars.bind(inner, self.scope, self._nested), distinct

    def _nested(self, tree: exp.Expression, scope: Scope) -> n.Scalar:
        raise SqlError(
            "SQL-008",
            "an aggregate cannot stand inside another one",
            text=self.binder.text,
            span=span_of(tree),
            hint="aggregate in a subquery first",
        )

    def _mark(self, tree: Any, scope: Scope) -> n.Scalar:
        check_carried(self.binder.scalars, tree)
        scalars = tuple(self.binder.scalars.bind(x, scope, self._nested) for x in tree.expressions)
        if len(scalars) > MOST_MARKS or not scalars:
            raise self.binder.scalars.refuse(tree, f"GROUPING takes 1 to {MOST_MARKS} keys")
        name = f"{self.block}.grouping{len(self._marks)}"
        self._marks.append((name, scalars))
        return n.Column(name, t.INTEGER, span_of(tree))

    def grouped(
        self, relation: n.Relation, outputs: list[Output], aliases: dict[str, n.Scalar]
    ) -> n.Relation:
        """Group rows by the GROUP BY list; several grouping sets are one aggregate each, put together."""
        sets, span = self._sets(outputs, aliases), span_of(self.tree)
        keys: list[n.Scalar] = []
        for scalar in (x for one in sets for x in one):
            if not any(same(scalar, k) for k in keys):
                keys.append(scalar)
        several = len(sets) > 1
        self._keys = tuple(
            n.Named(
                key.name if isinstance(key, n.Column) and not several else f"{self.block}.key{i}",
                key,
            )
            for i, key in enumerate(keys)
        )
        if not several and not self._marks:
            return n.Aggregate(relation, self._keys, tuple(self.aggregations), span)
        marked = [(name, self._listed_keys(scalars)) for name, scalars in self._marks]
        union: n.Relation | None = None
        for index, one in enumerate(sets):
            number = len(sets) - index  # names of what is put together must differ
            part = self._set(relation, one, marked, number)
            if union is None:
                union = part
                continue
            kinds = [f.type for f in fields_of(part)]
            last = index == len(sets) - 1
            names = self._shown(marked) if last else [f"{x}.to{index}" for x in self._shown(marked)]
            columns = tuple(n.Field(c, kind) for c, kind in zip(names, kinds, strict=True))
            union = n.Union(union, part, True, columns, span)
        assert union is not None
        return union

    def _shown(self, marked: list[tuple[str, list[n.Named]]]) -> list[str]:
        keys = [k.name for k in self._keys]
        return [*keys, *(a.name for a in self.aggregations), *(name for name, _ in marked)]

    def _listed_keys(self, scalars: tuple[n.Scalar, ...]) -> list[n.Named]:
        keys = [next((k for k in self._keys if same(k.expression, x)), None) for x in scalars]
        if None in keys:
            raise SqlError(
                "SQL-008",
                "GROUPING takes keys of GROUP BY",
                text=self.binder.text,
                span=span_of(self.tree),
                hint="write the key as it stands in GROUP BY",
            )
        return [k for k in keys if k is not None]

    def _set(
        self,
        relation: n.Relation,
        one: list[n.Scalar],
        marked: list[tuple[str, list[n.Named]]],
        number: int,
    ) -> n.Relation:
        """Give the groups of one grouping set with NULL for keys that it leaves out."""
        own = [k for k in self._keys if any(same(k.expression, x) for x in one)]
        keys = tuple(
            n.Named(f"{self.block}.set{number}.{_last(k.name)}", k.expression) for k in own
        )
        calls = tuple(replace(a, name=f"{a.name}.set{number}") for a in self.aggregations)
        rows = n.Aggregate(relation, keys, calls, span_of(self.tree))
        by_name = dict(zip((k.name for k in own), keys, strict=True))
        items: list[tuple[str, n.Scalar]] = []
        for k in self._keys:
            kind = type_of(k.expression)
            there = by_name.get(k.name)
            items.append(
                (k.name, n.Literal(None, kind) if there is None else n.Column(there.name, kind))
            )
        items += [
            (a.name, n.Column(call.name, type_of(call)))
            for a, call in zip(self.aggregations, calls, strict=True)
        ]
        for name, scalars in marked:
            bits = sum((k.name not in by_name) << i for i, k in enumerate(reversed(scalars)))
            items.append((name, n.Literal(bits, t.INTEGER)))
        end = f".of{number}" if len(self._all_sets) > 1 else ""
        return n.Project(rows, tuple(n.Named(f"{name}{end}", x) for name, x in items))

    def _sets(self, outputs: list[Output], aliases: dict[str, n.Scalar]) -> list[list[n.Scalar]]:
        """Bind the GROUP BY list: columns first, then positions and output names; give its grouping sets."""
        group = self.tree.args.get("group")
        sets: list[list[n.Scalar]] = [[]]
        if group is not None:
            check_carried(self.binder.scalars, group)
            if group.args.get("all"):
                shown = [o.scalar for o in outputs if not self._has_aggregate(o.scalar)]
                sets = [shown]
            for item in group.expressions:
                parts = self._parts(item, outputs, aliases)
                if len(sets) * len(parts) > MOST_SETS:
                    raise self.binder.scalars.refuse(
                        item,
                        f"there are more than {MOST_SETS} grouping sets",
                        "name the sets you need",
                    )
                sets = [[*one, *more] for one in sets for more in parts]
        self._all_sets = sets
        return sets

    def _parts(
        self, item: Any, outputs: list[Output], aliases: dict[str, n.Scalar]
    ) -> list[list[n.Scalar]]:
        """Give the grouping sets of one item of the list."""

        def together(tree: Any) -> list[n.Scalar]:
            inner = tree.expressions if isinstance(tree, exp.Tuple) else [tree]
            return [self._key(x, outputs, aliases) for x in inner]

        if isinstance(item, (exp.Rollup, exp.Cube, exp.GroupingSets)):
            check_carried(self.binder.scalars, item)
        if isinstance(item, exp.GroupingSets):
            return [s for x in item.expressions for s in self._parts(x, outputs, aliases)]
        if not isinstance(item, (exp.Rollup, exp.Cube)):
            return [together(item)]
        parts = [together(x) for x in item.expressions]
        if isinstance(item, exp.Rollup):
            chosen = [range(i) for i in range(len(parts), -1, -1)]
            return [[x for i in some for x in parts[i]] for some in chosen]
        if len(parts) > MOST_SETS.bit_length() - 1:
            raise self.binder.scalars.refuse(
                item, f"there are more than {MOST_SETS} grouping sets", "name the sets you need"
            )
        masks = range(2 ** len(parts) - 1, -1, -1)
        return [
            [x for i, part in enumerate(parts) if mask >> i & 1 for x in part] for mask in masks
        ]

    def _key(self, item: Any, outputs: list[Output], aliases: dict[str, n.Scalar]) -> n.Scalar:
        if isinstance(item, exp.Literal) and not item.is_string:
            scalar = outputs[self.binder.position(item, len(outputs))].scalar
        elif (
            isinstance(item, exp.Column)
            and not item.table
            and item.name.lower() in aliases
            and not any(s.find(item.name) for s in self.scope.sources)
        ):
            scalar = aliases[item.name.lower()]
        else:
            scalar = self.binder.scalars.bind(item, self.scope, self._nested_key)
        if self._has_aggregate(scalar):
            raise self._nested_key(item, self.scope)
        return scalar

    def _nested_key(self, tree: exp.Expression, scope: Scope) -> Any:
        raise SqlError(
            "SQL-008",
            "an aggregate cannot stand in GROUP BY",
            text=self.binder.text,
            span=span_of(tree),
            hint="aggregate in a subquery first",
        )

    def _has_aggregate(self, scalar: n.Scalar) -> bool:
        names = {a.name for a in self.aggregations} | {name for name, _ in self._marks}
        visible = {unique for s in self.scope.sources for unique in s.names}
        return any(
            isinstance(x, n.Column) and (x.name in names or x.name not in visible)
            for x in _own(scalar)
        )

    def settle(self, scalar: n.Scalar) -> n.Scalar:
        """Rewrite an expression over the input into one over the groups."""
        columns = {a.name for a in self.aggregations}
        visible = {unique for s in self.scope.sources for unique in s.names}
        names = {k.name for k in self._keys}

        @n.once
        def change(node: n.Node) -> n.Node:
            if isinstance(node, n.Scalar):
                for key in self._keys:
                    if same(node, key.expression):
                        return n.Column(key.name, type_of(key.expression))
            if isinstance(node, n.Column) and node.name not in columns and node.name in visible:
                raise self._ungrouped(node)
            if isinstance(node, n.Outer) and node.name in visible and node.name not in names:
                raise self._ungrouped(node)
            if isinstance(node, n.Relation):
                return _inside(node)
            return n.rebuild(node, change)

        @n.once
        def _inside(node: n.Node) -> n.Node:
            # Inside a subquery only correlated references belong to this SELECT.
            if isinstance(node, n.Outer) and node.name in visible and node.name not in names:
                raise self._ungrouped(node)
            return n.rebuild(node, _inside)

        settled = change(scalar)
        assert isinstance(settled, n.Scalar)
        return settled

    def _ungrouped(self, node: n.Column | n.Outer) -> SqlError:
        return SqlError(
            "SQL-008",
            f"the column {node.name.rsplit('.', 1)[-1]} is neither grouped nor aggregated",
            text=self.binder.text,
            span=node.span,
            hint="add it to GROUP BY, or aggregate it",
        )


def _own(scalar: n.Scalar) -> Iterator[n.Node]:
    """Give the parts of an expression that stand on its own rows, not those of its subqueries."""
    nodes = n.reached(scalar, lambda node: not isinstance(node, n.Relation))
    return (node for node in nodes if not isinstance(node, n.Relation))


def _last(name: str) -> str:
    return name.rsplit(".", 1)[-1]


def _is_date(argument: n.Scalar | None) -> bool:
    return argument is not None and type_of(argument).kind == "DATE"
