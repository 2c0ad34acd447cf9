"""Refuse what Secant never runs, by name, before any name is resolved.

The binder accepts only what it knows (I3); this stage exists so that the common forbidden things get their own
sentence: side effects, files, volatile functions, recursion, and queries made to exhaust the machine.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from sqlglot import exp

from secant.errors import SqlError
from secant.sql.limits import MAX_DEPTH, MAX_JOINS, MAX_NODES, too_large
from secant.sql.parse import form_of, function_name, span_of

VOLATILE = (
    exp.Rand, exp.Randn, exp.CurrentDate, exp.CurrentTime, exp.CurrentTimestamp, exp.CurrentDatetime,
    exp.CurrentUser, exp.Uuid, exp.Localtime, exp.Localtimestamp,
)  # fmt: skip
VOLATILE_NAMES = frozenset({
    "random", "now", "today", "nextval", "currval", "gen_random_uuid", "uuid", "setseed",
    "clock_timestamp", "timeofday", "get_current_timestamp", "current_setting", "getvariable",
    "txid_current", "pg_sleep",
})  # fmt: skip
FILE_NAMES = frozenset({
    "read_csv", "read_csv_auto", "read_parquet", "parquet_scan", "read_json", "read_json_auto",
    "read_text", "read_blob", "glob", "sniff_csv", "parquet_metadata", "parquet_schema", "getenv",
    "query", "query_table", "sqlite_scan", "postgres_scan", "pg_read_file", "pg_ls_dir", "lo_import",
    "dblink",
})  # fmt: skip


def screen(query: exp.Query, text: str) -> exp.Query:
    """Give the query unchanged, or refuse it."""
    nodes = 0
    joins = 0
    stack: list[tuple[Any, int]] = [(query, 0)]
    while stack:
        node, depth = stack.pop()
        nodes += 1
        joins += isinstance(node, exp.Join)
        if nodes > MAX_NODES or depth > MAX_DEPTH or joins > MAX_JOINS:
            raise too_large()
        if _looked_at(node.__class__):
            _screen_node(node, text)
        depth += 1
        for part in node.args.values():  # as `iter_expressions` does, which is slower
            if isinstance(part, exp.Expr):
                stack.append((part, depth))
            elif part and isinstance(part, list):
                stack += [(x, depth) for x in part if isinstance(x, exp.Expr)]
    return query


_WRITING = (exp.DDL, exp.DML, exp.Command, exp.Into)
_READING_FILES = (exp.ReadCSV, exp.ReadParquet)
_UNKNOWN = (exp.Lateral, exp.Pivot, exp.TableSample, exp.Placeholder, exp.Parameter)
_SCREENED = (*_WRITING, exp.With, exp.Anonymous, *VOLATILE, *_READING_FILES, *_UNKNOWN)


@cache
def _looked_at(kind: type) -> bool:
    """Whether `_screen_node` knows a reason against some node of a class; most are columns, numbers and signs."""
    return issubclass(kind, _SCREENED)


def _screen_node(node: exp.Expression, text: str) -> None:
    if isinstance(node, _WRITING) and not isinstance(node, exp.Query):
        raise _refuse(node, text, f"{form_of(node)} is not accepted", "Secant only reads")
    if isinstance(node, exp.With) and node.args.get("recursive"):
        raise _refuse(node, text, "recursive queries are not accepted", "unroll the recursion")
    name = node.name.lower() if isinstance(node, exp.Anonymous) else ""
    if isinstance(node, VOLATILE) or name in VOLATILE_NAMES:
        raise _refuse(
            node,
            text,
            f"{function_name(node, text)} gives another value each time",
            "write the value as a constant",
        )
    if name in FILE_NAMES or isinstance(node, _READING_FILES):
        raise _refuse(
            node,
            text,
            "functions that read files or settings are not accepted",
            "query a table of the policy",
        )
    if isinstance(node, exp.Lateral) and isinstance(node.this, (exp.Unnest, exp.Subquery)):
        return  # FROM t, LATERAL unnest(t.array) or a subquery: the binder knows what it may be
    if isinstance(node, _UNKNOWN):
        raise _refuse(
            node,
            text,
            f"{form_of(node)} is not accepted",
            "express it with joins, GROUP BY and subqueries",
        )


def _refuse(node: exp.Expression, text: str, message: str, hint: str) -> SqlError:
    return SqlError("SQL-006", message, text=text, span=span_of(node), hint=hint)
