"""Inner results that are a function of the rows: exact sums of reals, and a LIMIT that leaves no choice.

Rests on rewrite.exact.

In: the rows of a statement that will be bounded, and the policy. Out: the same rows, with inner sums and means of reals
counted in whole steps and the order under each LIMIT made total; or a refusal. Never here: the measures themselves,
which are whole numbers already.

Engines add reals in whatever order threads come: two runs on one file differ in the last digits, and a filter above
turns that into rows. A bound says how far neighbors are apart, so a statement must give one answer for one database.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from secant.plan import nodes as n
from secant.plan.facts.ranges import Ranges
from secant.plan.functions.aggregates import AGGREGATES, SPREAD
from secant.plan.rewrites.measures import Problem, Stopped, summed_range, whole_steps
from secant.plan.rewrites.rewrite import transform
from secant.plan.typing import fields_of, type_of
from secant.schema import types as t


def make_exact(
    rows: n.Relation, ranges: Callable[[n.Relation], Ranges], read: frozenset[str] | None
) -> n.Relation:
    """Give rows that depend on the database alone.

    `read` are the columns that something reads; None where values move, which must not decide what a LIMIT keeps.
    """

    def change(node: n.Node) -> n.Node:
        if isinstance(node, n.Limit):
            return _ordered(node, read)
        if isinstance(node, n.Aggregate) and n.holds(node, n.Scan):
            return _summed(node, ranges)
        return node

    return transform(rows, change, n.Limit, n.Aggregate)


def _loose(call: n.Aggregation) -> bool:
    """Whether an engine's answer depends on the order of rows."""
    if call.function in ("sum", "avg"):
        assert call.argument is not None
        return type_of(call.argument).kind == "DOUBLE"
    return call.function in (*SPREAD, "product") or AGGREGATES[call.function].pairs


def _summed(node: n.Aggregate, ranges: Callable[[n.Relation], Ranges]) -> n.Relation:
    """Sum reals in whole steps of a public grid, and turn the whole numbers back above the groups."""
    if not any(map(_loose, node.aggregations)):
        return node
    calls: list[n.Aggregation] = []
    items = [n.Named(k.name, n.Column(k.name, type_of(k.expression))) for k in node.keys]
    ranges_below = ranges(node.input)
    apart: list[n.Named] = []
    for call in node.aggregations:
        if not _loose(call):
            calls.append(call)
            items.append(n.Named(call.name, n.Column(call.name, type_of(call))))
            continue
        if call.function not in ("sum", "avg"):
            raise Stopped(
                Problem(
                    "rewrite.exact",
                    call,
                    f"an inner {call.function} follows the order of rows in its last digits",
                    "compute it from sums of x and of x * x, which are exact",
                )
            )
        assert call.argument is not None
        low, high = summed_range(call, ranges_below)
        argument = call.argument
        if n.has_subquery(argument):  # engines take none inside an Attempt
            apart.append(n.Named(f"{call.name}.argument", argument))
            argument = n.Column(apart[-1].name, type_of(argument))
        whole = whole_steps(argument, low, high)
        # It is clamped and cannot fail; the wrap says so to whoever walks the plan.
        total = replace(call, name=f"{call.name}.steps", function="sum", argument=n.Attempt(whole))
        calls.append(total)
        value: n.Scalar = n.Arithmetic(
            "*",
            n.Cast(n.Column(total.name, t.INTEGER), t.DOUBLE),
            n.Literal(float(whole.step), t.DOUBLE),
        )
        if call.function == "avg":
            count = replace(total, name=f"{call.name}.count", function="count")
            calls.append(count)
            number = n.Cast(n.Column(count.name, t.INTEGER), t.DOUBLE)
            value = n.Arithmetic("/", value, number)
        items.append(n.Named(call.name, value))
    rows = _beside(node.input, apart) if apart else node.input
    return n.Project(replace(node, input=rows, aggregations=tuple(calls)), tuple(items))


def _beside(rows: n.Relation, more: list[n.Named]) -> n.Relation:
    """Compute expressions beside all columns of some rows."""
    columns = (n.Named(f.name, n.Column(f.name, f.type)) for f in fields_of(rows))
    return n.Project(rows, (*columns, *more))


def _ordered(node: n.Limit, read: frozenset[str] | None) -> n.Limit:
    """Break ties under a LIMIT by every column that is read: rows that are left equal are the same row."""
    if read is None:
        raise Stopped(
            Problem(
                "rewrite.exact",
                node,
                "which of equal rows LIMIT keeps is not fixed, and protected values must not decide it",
                "filter by a condition instead",
            )
        )
    fields = [f for f in fields_of(node.input) if f.name in read]
    remaining = tuple(n.SortKey(n.Column(f.name, f.type), False, False) for f in fields)
    if isinstance(node.input, n.Sort):
        keys = (*node.input.keys, *remaining)
        return replace(node, input=n.Sort(node.input.input, keys))
    return replace(node, input=n.Sort(node.input, remaining)) if remaining else node
