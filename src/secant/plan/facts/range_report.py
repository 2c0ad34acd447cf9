"""Which ranges follow from declared facts, and from what: for `secant explain --ranges`.

In: a normalized plan and the policy. Out: one record for each value that is aggregated, each group key and each
condition, and sentences. Everything shown is the owner's or the analyst's own writing; no data is read. A range here
is what values are clamped to, never what privacy rests on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

from secant.numeric import interval as iv
from secant.plan import nodes as n
from secant.plan.evaluate.values import date_of
from secant.plan.facts.keys import identifies, keys_after
from secant.plan.facts.range_filters import judge, values_of
from secant.plan.facts.ranges import Ranges, declared, declared_keys, each_condition, ranges_of
from secant.plan.rewrites.rewrite import columns_of
from secant.plan.show import show_scalar
from secant.plan.typing import type_of
from secant.plural import several
from secant.policy.policy import Policy

MOST_SHOWN = 12  # longer lists of values are only counted


def range_report(
    plan: n.Relation,
    policy: Policy,
    rows: Callable[[n.Aggregate], int | None] = lambda inner: None,
) -> list[dict[str, Any]]:
    """Give what was derived about every aggregate of a plan.

    Args:
        plan: As `normalize` gives it.
        policy: Its declared facts.
        rows: How many rows one inner group can have, where limits say so.
    """
    entries = []
    for node in n.walk(plan):
        if isinstance(node, n.Aggregate):
            ranges = ranges_of(node.input, policy, rows)
            entry = {
                "keys": [_expression(ranges, key.expression) for key in node.keys],
                "values": [
                    {"function": call.function, **_expression(ranges, part)}
                    for call in node.aggregations
                    for part in (call.argument, call.second)
                    if part is not None
                ],
                "conditions": [
                    {"condition": show_scalar(c), "passes": judge(before, c).word}
                    for before, c in each_condition(ranges)
                ],
                "empty": ranges.empty,
                "one_row_a_group": _one_row(node, policy),
            }
            entries.append(entry)
    return entries


def _one_row(node: n.Aggregate, policy: Policy) -> bool:
    keys = frozenset(k.expression.name for k in node.keys if isinstance(k.expression, n.Column))
    return bool(keys) and identifies(
        keys_after(node.input, lambda scan: declared_keys(policy, scan)), keys
    )


def _expression(ranges: Ranges, scalar: n.Scalar) -> dict[str, Any]:
    """Describe one expression: its range, its values if they are few, and where they come from."""
    interval = ranges.of(scalar)
    values = values_of(ranges, scalar)
    plain = replace(ranges, root=None, filtered={}).of(scalar)
    return {
        "expression": show_scalar(scalar),
        "range": shown_range(interval, scalar),
        "without_the_query": shown_range(plain, scalar),
        "possible_values": _few(values),
        "from": list(dict.fromkeys(_sources(ranges, scalar, set()))),
    }


def _few(values: Sequence[object] | None) -> list[object] | None:
    if values is None or len(values) > MOST_SHOWN:
        return None
    return [v if isinstance(v, (str, int, float)) else str(v) for v in values]


def shown_range(range_: iv.Interval, scalar: n.Scalar) -> list[Any] | None:
    """Give the ends as plain values, None for an open side; None if nothing is known."""
    if range_ == iv.EVERYTHING:
        return None
    dated = type_of(scalar).kind == "DATE"
    return [_end(range_.low, dated), _end(range_.high, dated)]


def _end(end: Fraction | None, dated: bool) -> Any:
    if end is None:
        return None
    if dated:
        when = date_of(int(end // 1))
        return None if when is None else when.isoformat()
    if end.denominator == 1 and abs(end) < 2**63:
        return int(end)
    return float(end) if abs(end) < 10**300 else str(end)


def _sources(ranges: Ranges, scalar: n.Scalar, seen: set[str]) -> Iterator[str]:
    """Say, column by column, which facts were used."""
    columns = [part for part in n.walk(scalar) if isinstance(part, n.Column)]
    for column in columns:
        if column.name in seen:
            continue
        seen.add(column.name)
        yield from _column_sources(ranges, column, seen)
    if not isinstance(scalar, n.Column) and columns:
        yield "the functions of the expression"


def _column_sources(ranges: Ranges, column: n.Column, seen: set[str]) -> Iterator[str]:
    if column.name in ranges.origins:
        yield _declared_source(ranges, column)
    elif column.name in ranges.listed:
        yield f"{column.name}: written in the query"
    elif column.name in ranges.aggregations:
        call, group = ranges.aggregations[column.name]
        rows = ranges.rows(group)
        limit = "any number of rows" if rows is None else f"at most {several(rows, 'row')}"
        yield f"{column.name}: {call.function} over {limit} of a group"
        for part in (call.argument, call.second):
            if part is not None:
                yield from _sources(ranges, part, seen)
    elif column.name in ranges.merged:
        for side in ranges.merged[column.name]:
            yield from _sources(ranges, side, seen)
    elif column.name in ranges.definitions:
        yield from _sources(ranges, ranges.definitions[column.name], seen)
    for condition in ranges.conditions:
        names = columns_of(condition)
        if column.name in names and not n.has_subquery(condition):
            word = "filter" if len(names) == 1 else "condition between columns"
            yield f"{column.name}: {word} {show_scalar(condition)}"


def _declared_source(ranges: Ranges, column: n.Column) -> str:
    table, name = ranges.origins[column.name]
    facts = ranges.policy.column(table, name)
    shown = shown_range(declared(ranges.policy, table, name), column)
    if facts.assumed:
        assert facts.belief is not None
        return (
            f"{table}.{name}: {_ends_text(shown)}, ASSUMED from its {facts.belief.kind} distribution; "
            "values outside are clamped, so privacy does not rest on it"
        )
    if facts.range is not None:
        return f"{table}.{name}: declared range {_ends_text(shown)}"
    if facts.values is not None:
        return f"{table}.{name}: {len(facts.values)} declared values"
    return f"{table}.{name}: nothing is declared"


def range_lines(report: Sequence[Mapping[str, Any]]) -> list[str]:
    """Put a report into lines for a person."""
    lines = ["ranges: what values are clamped to, and why"]
    for number, entry in enumerate(report, start=1):
        lines.append(f"  aggregate {number}")
        for key in entry["keys"]:
            lines += _lines("key", key)
        for value in entry["values"]:
            lines += _lines(value["function"], value)
        for condition in entry["conditions"]:
            lines.append(f"    rows pass {condition['passes']}: {condition['condition']}")
        if entry["empty"]:
            lines.append("    declared facts let no row pass")
        if entry["one_row_a_group"]:
            lines.append("    the keys tell rows apart: one row per group")
    return lines


def _lines(what: str, entry: Mapping[str, Any]) -> list[str]:
    text = f"    {what} {entry['expression']}: {_ends_text(entry['range'])}"
    if entry["possible_values"] is not None:
        text += f", one of {', '.join(map(str, entry['possible_values'])) or 'nothing'}"
    if entry["without_the_query"] != entry["range"]:
        text += (
            f" ({_ends_text(entry['without_the_query'])} without conditions and repeated columns)"
        )
    return [text, *(f"      {source}" for source in entry["from"])]


def _ends_text(ends: Sequence[Any] | None) -> str:
    if ends is None:
        return "any value"
    low, high = ("..." if end is None else _digits(end) for end in ends)
    return f"[{low}, {high}]"


def _digits(end: object) -> str:
    return f"{end:.6g}" if isinstance(end, float) else str(end)
