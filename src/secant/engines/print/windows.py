"""Window calls as SQL text.

In: a call, how its columns are written, and all columns of its rows, which break ties. Out: `f(x) OVER (…)`. Engines
differ in the types of counters and of sums; all else is written in the common way.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from secant.engines.dialect import type_name
from secant.engines.print.blocks import Env, Writer
from secant.errors import BackendError
from secant.plan import nodes as n
from secant.plan.functions.windows import WINDOW_FUNCTIONS, breaks_ties
from secant.plan.typing import type_of
from secant.schema.types import DOUBLE, INTEGER, Type

Write = Callable[[Writer, n.Scalar, Env], str]


def window_text(
    w: Writer, call: n.WindowCall, scope: Env, alike: Sequence[str], write: Write
) -> str:
    """Write one window call."""
    over = f" OVER ({' '.join(_over(w, call, scope, alike, write))})"
    kind = type_of(call)
    if kind.kind == "NULL":
        return "NULL"  # of nothing but NULL; PostgreSQL would ask of which type
    if call.function in WINDOW_FUNCTIONS:
        return f"{call.function}({', '.join(_arguments(w, call, kind, scope, write))}){over}"
    if not call.arguments:
        return f"count(*){over}"
    (argument,) = call.arguments
    argument_type = type_of(argument)
    text = _cast(
        w, argument, argument_type if argument_type.kind != "NULL" else INTEGER, scope, write
    )
    own = w.dialect.windows
    if own is None:
        return f"{call.function}({text}){over}"
    if call.function in ("min", "max") and argument_type.kind == "BOOLEAN":
        return f"{'bool_and' if call.function == 'min' else 'bool_or'}({text}){over}"
    double = type_name(w.dialect, DOUBLE)
    if call.function in ("sum", "avg") and argument_type.kind != "DOUBLE":
        exact = own.whole if argument_type.kind == "INTEGER" else own.decimals
        if exact:
            text = f"CAST({text} AS {exact})"
        if call.function == "avg" and not own.averages:
            return f"(CAST(sum({text}){over} AS {double}) / count({text}){over})"
    elif call.function not in ("count", "min", "max"):
        text = f"CAST({text} AS {double})"
    called = f"{call.function}({text}){over}"
    return f"CAST({called} AS {double})" if call.function == "avg" else called


def _over(
    w: Writer, call: n.WindowCall, scope: Env, alike: Sequence[str], write: Write
) -> list[str]:
    parts = []
    if call.partition:
        parts.append("PARTITION BY " + ", ".join(write(w, p, scope) for p in call.partition))
    orders = [
        f"{write(w, k.expression, scope)} {'DESC' if k.descending else 'ASC'} "
        f"NULLS {'FIRST' if k.nulls_first else 'LAST'}"
        for k in call.order
    ]
    if breaks_ties(call):
        # Rows of a partition do not differ in what it is made by; other engines number no rows without an order.
        same = {write(w, p, scope) for p in call.partition} if w.dialect.windows is None else set()
        orders += [f"{column} ASC NULLS LAST" for column in alike if column not in same]
    if orders:
        parts.append("ORDER BY " + ", ".join(orders))
    if call.frame is not None and call.frame.unit == "rows" and not orders:
        return parts  # without order every frame is the whole partition
    if call.frame is not None:
        own = w.dialect.windows
        if call.frame.unit == "groups" and own is not None and not own.groups:
            hint = "write the frame with ROWS or RANGE, or keep the data in DuckDB or PostgreSQL"
            raise BackendError("BAK-003", "the engine has no frames of GROUPS", hint=hint)
        ends = _end(call.frame.start, "PRECEDING"), _end(call.frame.end, "FOLLOWING")
        parts.append(f"{call.frame.unit.upper()} BETWEEN {ends[0]} AND {ends[1]}")
    return parts


def _end(value: int | None, side: str) -> str:
    if value is None:
        return f"UNBOUNDED {side}"
    if value == 0:
        return "CURRENT ROW"
    return f"{abs(value)} {'PRECEDING' if value < 0 else 'FOLLOWING'}"


def _arguments(w: Writer, call: n.WindowCall, kind: Type, scope: Env, write: Write) -> list[str]:
    """Write values in the type of the result, and counters in the type that the engine counts by."""
    counters = {"ntile": (0,), "lag": (1,), "lead": (1,), "nth_value": (1,)}.get(call.function, ())
    texts = []
    for index, argument in enumerate(call.arguments):
        if index not in counters:
            texts.append(_cast(w, argument, kind, scope, write))
        elif w.dialect.windows is None:
            texts.append(_cast(w, argument, INTEGER, scope, write))
        else:
            texts.append(f"CAST({write(w, argument, scope)} AS {w.dialect.windows.counter})")
    return texts


def _cast(w: Writer, scalar: n.Scalar, kind: Type, scope: Env, write: Write) -> str:
    text = write(w, scalar, scope)
    if type_of(scalar) == kind or kind.kind == "NULL":
        return text
    return f"CAST({text} AS {type_name(w.dialect, kind)})"
