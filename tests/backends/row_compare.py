"""Rows of an engine, and whether two answers are the same: as lists, or as bags without order."""

from __future__ import annotations

import math
from collections.abc import Sequence
from decimal import Decimal

from secant.engines.backend import Backend
from secant.plan import nodes as n

Row = Sequence[object]


def contents(backend: Backend) -> dict[str, list[Row]]:
    """Give all rows of all tables, as `evaluate` takes them."""
    return {name: [*backend.rows(f"SELECT * FROM {name}")] for name in backend.catalog().tables}


def _rank(row: Row) -> tuple[str, ...]:
    """Sort rows so that floats that differ in their last digits keep their places."""
    return tuple(f"{x:.6g}" if isinstance(x, float) else repr(x) for x in row)


def value_differs(a: object, b: object) -> bool:
    """Whether two values differ: floats by 1e-9 of their size, everything else by anything."""
    if isinstance(a, float) and isinstance(b, float):
        both_nan = math.isnan(a) and math.isnan(b)
        return not both_nan and not math.isclose(a, b, rel_tol=1e-9, abs_tol=1e-300)
    if isinstance(a, Decimal) and isinstance(b, Decimal):
        return a != b
    return type(a) is not type(b) or a != b


def difference(got: Sequence[Row], want: Sequence[Row], *, ordered: bool) -> str | None:
    """Say how two answers differ; None if they do not."""
    if len(got) != len(want):
        return f"{len(got)} rows instead of {len(want)}"
    if not ordered:
        got, want = sorted(got, key=_rank), sorted(want, key=_rank)
    for number, (a, b) in enumerate(zip(got, want, strict=True)):
        if len(a) != len(b) or any(map(value_differs, a, b)):
            return f"row {number}: {a} instead of {b}"
    return None


def ordered(plan: n.Relation) -> bool:
    """Whether the rows of a plan come in an order."""
    while isinstance(plan, n.Project | n.Limit):
        plan = plan.input
    return isinstance(plan, n.Sort)
