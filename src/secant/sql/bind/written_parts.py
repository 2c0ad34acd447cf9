"""Parts of columns as a query writes them: fields of documents, lengths and elements of arrays, seconds.

In: syntax. Out: the column, which way of taking a part, and the place of it. Whether the column has such parts, its
type says, and nobody asks for it here.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from sqlglot import exp

from secant.schema.parts import Path

ColumnPart = tuple[str, str, Path]
"""The column in lower case, the way, and where or what is looked for."""
JSON = (exp.JSONExtract, exp.JSONExtractScalar, exp.JSONBExtractScalar)


def column_parts(tree: exp.Expression) -> Iterator[ColumnPart]:
    """Give all parts that a query writes, of whatever columns."""
    for node in tree.walk():
        part = column_part(node)
        if part is not None:
            column, way, path = part
            yield column.name.lower(), way, path


def column_part(tree: Any) -> tuple[exp.Column, str, Path] | None:
    """Read what may be a part of a column; whether it is one, the column's type says."""
    if isinstance(tree, (exp.JSONExtractScalar, exp.JSONBExtractScalar)):
        return _field(tree)
    if isinstance(tree, (exp.Cast, exp.TryCast)):
        return _number(tree)
    if isinstance(tree, exp.Extract) and tree.name.lower() == "epoch":
        return _whole_column(tree.expression, "seconds")
    if isinstance(tree, (exp.Length, exp.ArraySize)):
        return _whole_column(tree.this, "count")
    if isinstance(tree, exp.Anonymous) and len(tree.expressions) == 1:
        way = {"cardinality": "count", "epoch": "seconds"}.get(tree.name.lower())
        return None if way is None else _whole_column(tree.expressions[0], way)
    if isinstance(tree, exp.ArrayContains):
        return _holds(tree.this, tree.expression)
    if isinstance(tree, exp.EQ) and isinstance(tree.expression, exp.Any):
        return _holds(tree.expression.this, tree.this)
    return None


def bare(tree: Any) -> Any:
    """Take off parentheses."""
    while isinstance(tree, exp.Paren):
        tree = tree.this
    return tree


def _whole_column(tree: Any, way: str) -> tuple[exp.Column, str, Path] | None:
    inner = bare(tree)
    return (inner, way, ()) if isinstance(inner, exp.Column) else None


def _holds(array: Any, element: Any) -> tuple[exp.Column, str, Path] | None:
    column, value = bare(array), bare(element)
    if isinstance(value, exp.Cast):
        value = bare(value.this)
    if not isinstance(column, exp.Column) or not isinstance(value, exp.Literal):
        return None
    if value.is_string:
        return column, "has", (value.name,)
    return (column, "has", (int(value.name),)) if value.name.isdecimal() else None


def _field(tree: Any) -> tuple[exp.Column, str, Path] | None:
    steps: list[str | int] = []
    while isinstance(tree, JSON):
        inner_steps = _steps(tree)
        if inner_steps is None:
            return None
        steps = [*inner_steps, *steps]
        tree = bare(tree.this)
    return (tree, "field", tuple(steps)) if isinstance(tree, exp.Column) and steps else None


_NUMBERS = {
    **dict.fromkeys(("DOUBLE", "FLOAT", "DECIMAL"), "number"),
    **dict.fromkeys(("INT", "BIGINT", "SMALLINT", "TINYINT"), "whole"),
}


def _number(tree: Any) -> tuple[exp.Column, str, Path] | None:
    """Read a field that is cast to a number; a decimal with a scale is made of the field's text instead."""
    way = _NUMBERS.get(tree.to.this.name if isinstance(tree.to, exp.DataType) else "")
    inner = bare(tree.this)
    field = (
        _field(inner)
        if isinstance(inner, JSON) and way is not None and not tree.to.expressions
        else None
    )
    return None if field is None or way is None else (field[0], way, field[2])


def _steps(tree: Any) -> list[str | int] | None:
    path = tree.expression
    if (
        isinstance(path, exp.Literal)
        and path.is_string
        and not isinstance(tree, exp.JSONBExtractScalar)
    ):
        # A key that the parser does not take for a path.
        return None if not path.name or path.name[0] in "/$" else [path.name]
    if isinstance(path, exp.Literal) and path.is_string:  # PostgreSQL's '{a,b}'
        match = re.fullmatch(r"\{([^{}\"\\]*)\}", path.name)
        names = match[1].split(",") if match else []
        return [name.strip() for name in names] if names and all(map(str.strip, names)) else None
    steps: list[str | int] = []
    for step in path.expressions if isinstance(path, exp.JSONPath) else [path]:
        if isinstance(step, exp.JSONPathRoot):
            continue
        if not isinstance(step, (exp.JSONPathKey, exp.JSONPathSubscript)):
            return None
        if not isinstance(step.this, (str, int)):
            return None  # a pattern, not a place
        steps.append(step.this)
    # Behind an arrow the parser takes 'a.b' for a path, and engines for one key: a path has an arrow for each step.
    return steps if len(steps) == 1 or "only_json_types" not in tree.args else None
