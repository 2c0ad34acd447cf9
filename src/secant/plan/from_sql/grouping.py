"""GROUP BY and aggregates of one SELECT: collects aggregate calls, then settles expressions onto the group's columns.

Expressions are first bound over the input. `settle` then replaces what equals a key by the key's column; any input
column that is left over is an error, because it has no single value in a group.
"""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from secant.errors import SqlError
from secant.plan import nodes as n
from secant.plan.aggregates import QUANTILES
from secant.plan.from_sql.expressions import aggregate_named, check_carried, number
from secant.plan.from_sql.scope import Scope
from secant.plan.show import same
from secant.plan.typing import Mistyped, settle, type_of
from secant.sql.parse import span_of
from secant.terms import types as t

if TYPE_CHECKING:
    from secant.plan.from_sql.relations import Binder, Output

HALF = Fraction(1, 2)


class Grouping:
    """The aggregates and keys of one SELECT while it is being bound."""

    def __init__(self, binder: Binder, tree: exp.Select, scope: Scope, block: str) -> None:
        self.binder = binder
        self.tree = tree
        self.scope = scope
        self.block = block
        self.aggregations: list[n.Aggregation] = []
        self._keys: tuple[n.Named, ...] = ()

    @property
    def needed(self) -> bool:
        """Whether the SELECT groups at all."""
        return bool(self.aggregations) or self.tree.args.get("group") is not None

    def collect(self, tree: exp.Expression, scope: Scope) -> n.Scalar:
        """Register an aggregate call and give the column that will hold it; equal calls share one."""
        condition = None
        if isinstance(tree, exp.Filter):
            condition = self.binder.scalars.predicate(
                tree.expression.this, self.scope, self._nested
            )
            tree = tree.this
        if isinstance(tree, exp.WithinGroup):
            tree = self._written_out(tree)
        function = aggregate_named(tree)
        if function is None:
            raise self.binder.scalars.refuse(
                tree, f"{self.binder.scalars.word(tree)} is not accepted"
            )
        check_carried(self.binder.scalars, tree)
        argument, distinct = self._argument(tree)
        fraction = self._fraction(tree) if function in QUANTILES else None
        if function in ("median", "quantile_cont") and _is_date(argument):
            # between two dates there need be none: the answer is one of the dates
            function, fraction = "quantile_disc", fraction if fraction is not None else HALF
        if condition is not None:
            value = argument if argument is not None else n.Literal(1, t.INTEGER)
            argument = n.Case((n.Branch(condition, value),), n.Literal(None, t.NULL))
        if function in ("min", "max"):
            distinct = False  # repetition does not move an extreme
        call = n.Aggregation(
            f"{self.block}.{function}{len(self.aggregations)}",
            function,
            argument,
            distinct,
            span_of(tree),
            fraction,
        )
        try:
            kind = settle(call, {})
        except Mistyped as error:
            raise SqlError(
                "SQL-004",
                str(error),
                text=self.binder.text,
                span=span_of(tree),
                hint="aggregate a number",
            ) from None
        assert isinstance(kind, t.Type)
        for known in self.aggregations:
            if _same_call(known, call):
                return n.Column(known.name, kind)
        self.aggregations.append(call)
        return n.Column(call.name, kind, span_of(tree))

    def _written_out(self, tree: Any) -> Any:
        """PERCENTILE_CONT(q) WITHIN GROUP (ORDER BY x) is QUANTILE_CONT(x, q)."""
        inner, order = tree.this, tree.expression
        check_carried(self.binder.scalars, tree)
        if not isinstance(order, exp.Order):
            raise self.binder.scalars.refuse(tree, "WITHIN GROUP takes an ORDER BY")
        check_carried(self.binder.scalars, order)
        one = isinstance(inner, (exp.PercentileCont, exp.PercentileDisc)) and not inner.expression
        if not one or len(order.expressions) != 1:
            raise self.binder.scalars.refuse(tree, "this form of aggregate is not accepted")
        (key,) = order.expressions
        if key.args.get("desc"):
            raise self.binder.scalars.refuse(
                tree, "quantiles are counted from the smallest value", "write 1 - q for q"
            )
        return type(inner)(this=key.this, expression=inner.this)

    def _fraction(self, tree: Any) -> Fraction:
        written = tree.args.get("quantile") or tree.args.get("expression")
        if isinstance(written, exp.Literal) and not written.is_string:
            value = number(self.binder.scalars, written).value
            assert isinstance(value, (int, float, Decimal))
            if 0 <= value <= 1:
                return Fraction(str(value))
        raise self.binder.scalars.refuse(
            tree, "a quantile is asked for by one number from 0 to 1", "quantile_cont(x, 0.25)"
        )

    def _argument(self, tree: Any) -> tuple[n.Scalar | None, bool]:
        inner, rest = tree.this, tree.expressions
        if isinstance(tree, exp.Anonymous):
            # A call of a name that sqlglot has no node for: its arguments stand in a list.
            inner, rest = (rest[0] if rest else None), rest[1:]
        distinct = False
        if rest:
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

    def keys(self, outputs: list[Output], aliases: dict[str, n.Scalar]) -> tuple[n.Named, ...]:
        """Bind the GROUP BY list: columns first, then positions and output names."""
        group = self.tree.args.get("group")
        found: list[n.Named] = []
        if group is not None:
            check_carried(self.binder.scalars, group)
            scalars = (
                [o.scalar for o in outputs if not self._has_aggregate(o.scalar)]
                if group.args.get("all")
                else [self._key(item, outputs, aliases) for item in group.expressions]
            )
            for scalar in scalars:
                if not any(same(scalar, k.expression) for k in found):
                    name = (
                        scalar.name
                        if isinstance(scalar, n.Column)
                        else f"{self.block}.key{len(found)}"
                    )
                    found.append(n.Named(name, scalar))
        self._keys = tuple(found)
        return self._keys

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
        names = {a.name for a in self.aggregations}
        return any(isinstance(x, n.Column) and x.name in names for x in n.walk(scalar))

    def settle(self, scalar: n.Scalar) -> n.Scalar:
        """Rewrite an expression over the input into one over the groups."""
        made = {a.name for a in self.aggregations}
        visible = {unique for s in self.scope.sources for _, unique, _ in s.columns}
        kept = {k.name for k in self._keys}

        def change(node: n.Node) -> n.Node:
            if isinstance(node, n.Scalar):
                for key in self._keys:
                    if same(node, key.expression):
                        return n.Column(key.name, type_of(key.expression))
            if isinstance(node, n.Column) and node.name not in made and node.name in visible:
                raise self._ungrouped(node)
            if isinstance(node, n.Outer) and node.name in visible and node.name not in kept:
                raise self._ungrouped(node)
            if isinstance(node, n.Relation):
                return _inside(node)
            return n.rebuild(node, change)

        def _inside(node: n.Node) -> n.Node:
            # Inside a subquery only correlated references belong to this SELECT.
            if isinstance(node, n.Outer) and node.name in visible and node.name not in kept:
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


def _is_date(argument: n.Scalar | None) -> bool:
    return argument is not None and type_of(argument).kind == "DATE"


def _same_call(a: n.Aggregation, b: n.Aggregation) -> bool:
    if (a.function, a.distinct, a.fraction) != (b.function, b.distinct, b.fraction):
        return False
    if a.argument is None or b.argument is None:
        return a.argument is b.argument
    return same(a.argument, b.argument)
