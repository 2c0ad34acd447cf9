"""Where does an expression fail? PostgreSQL has no TRY, so the question is asked before the expression is computed.

In: an expression of a plan. Out: conditions in the order in which they must be asked: each may raise only where an
earlier one holds. What cannot be asked beforehand is refused (BAK-003). Never here: a statement that can fail on
one row and not on another.
"""

from __future__ import annotations

from collections.abc import Callable

from secant.engines.postgres import casts
from secant.engines.print.blocks import Env, Writer
from secant.engines.print.failures import conditions
from secant.engines.print.print_sql import write
from secant.errors import BackendError
from secant.plan import nodes as n
from secant.plan.functions.scalar import FUNCTIONS
from secant.plan.rewrites.null_on_error import WHOLE
from secant.plan.typing import type_of
from secant.schema import types as t
from secant.schema.types import Type

SUBSTRING_LIMIT = 2**32
_LIMITS = {"first": "TIMESTAMP '4714-11-24 BC'", "last": "TIMESTAMP '294247-01-10'"}


def failures(w: Writer, node: n.Node, env: Env) -> list[str]:
    """Give the conditions under which computing the expression fails."""
    return conditions(w, node, env, _own)


# ── what a node itself does ──────────────────────────────────────────────────────────────────────


def _own(w: Writer, node: n.Node, env: Env) -> list[str]:
    tests = _cannot_meet(w, node, env)
    if isinstance(node, n.Arithmetic):
        tests += _arithmetic(w, node, env)
    elif isinstance(node, n.Negate):
        tests += _smallest_whole(w, node, node.operand, env)
    elif isinstance(node, n.Cast):
        tests += _cast(w, node, env)
    elif isinstance(node, n.Call) and node.function in _CALLS:
        tests += _CALLS[node.function](w, node, env)
    return tests


def _cast(w: Writer, node: n.Cast, env: Env) -> list[str]:
    source, target = type_of(node.operand), node.type
    if source.kind in ("INTEGER", "DECIMAL") and target.kind in ("INTEGER", "DECIMAL"):
        half = 0 if target.scale >= source.scale else 1
        most = WHOLE if target.kind == "INTEGER" else 10 ** (target.precision - target.scale)
        if w.reach.within(node.operand, half - most, most - 1 - half):
            return []
    return casts.fails(write(w, node.operand, env), source, target, w.alias, w.dialect.version)


def whole_64_bits(w: Writer, scalar: n.Scalar) -> bool:
    """Whether a whole number has 64 bits for sure: a sum may have more."""
    if isinstance(scalar, (n.Arithmetic, n.Negate, n.Cast)):
        return True
    return w.reach.within(scalar, -WHOLE - 1, WHOLE)


def _arithmetic(w: Writer, node: n.Arithmetic, env: Env) -> list[str]:
    result = type_of(node)
    kinds = type_of(node.left).kind, type_of(node.right).kind
    if "NULL" in kinds or result.kind == "DOUBLE":
        return []
    left, right = (write(w, part, env) for part in (node.left, node.right))
    if {"DATE", "TIMESTAMP", "INTERVAL"} & {*kinds, result.kind}:
        return _time(w, node, kinds, left, right)
    if result.kind == "INTEGER":
        tests = [
            casts.beyond_64_bits(text)
            for part, text in ((node.left, left), (node.right, right))
            if not whole_64_bits(w, part)
        ]
        return tests + _whole_result(w, node, left, right)
    most = 10 ** (result.precision - result.scale)
    if (
        result.precision < t.MAX_PRECISION
        or node.op == "%"
        or w.reach.within(node, 1 - most, most - 1)
    ):
        return []
    return [
        f"(abs({left} {node.op} {right}) >= {casts.power_of_ten(result.precision - result.scale)})"
    ]


def _whole_result(w: Writer, node: n.Arithmetic, left: str, right: str) -> list[str]:
    if node.op in ("//", "%"):
        if isinstance(node.right, n.Literal) and node.right.value != -1:
            return []
        return [f"({left} = {-WHOLE - 1} AND {right} = -1)"]
    if w.reach.within(node, -WHOLE - 1, WHOLE):
        return []
    wide = f"(CAST({left} AS numeric) {node.op} CAST({right} AS numeric))"
    return [casts.beyond_64_bits(wide)]


def _time(
    w: Writer, node: n.Arithmetic, kinds: tuple[str, str], left: str, right: str
) -> list[str]:
    if kinds == ("DATE", "DATE"):
        return []
    if set(kinds) <= {"DATE", "TIMESTAMP"}:
        return [f"(NOT isfinite({left}) OR NOT isfinite({right}))"]
    if "INTEGER" in kinds and "DATE" in kinds:
        date, days = (left, right) if kinds[0] == "DATE" else (right, left)
        there = f"({date} - DATE '2000-01-01')"  # the calendar has these many days around it
        landed = f"({there} {node.op} CAST({days} AS numeric)) NOT BETWEEN -2451545 AND 2145031948"
        return [
            f"({days} NOT BETWEEN {-(2**31)} AND {2**31 - 1})",
            f"CASE WHEN isfinite({date}) THEN {landed} ELSE FALSE END",
        ]
    interval = node.right if kinds[1] == "INTERVAL" else node.left
    moment = left if kinds[1] == "INTERVAL" else right
    if not isinstance(interval, n.Literal) or kinds in (
        ("INTERVAL", "INTERVAL"),
        ("INTERVAL", "INTEGER"),
        ("INTEGER", "INTERVAL"),
    ):
        raise _cannot("intervals that are computed")
    return _leaves_calendar(moment, node.op, interval)


def _leaves_calendar(moment: str, op: str, interval: n.Literal) -> list[str]:
    """Ask whether a moment stays in the calendar, with a margin at the ends that it is moved to."""
    assert isinstance(interval.value, tuple)
    months, days, micros = interval.value
    shift = abs(months) * 31 + abs(days) + abs(micros) // 86_400_000_000 + 1
    if shift > 10_000_000:
        raise _cannot("intervals of thousands of years")
    margin = f"INTERVAL '{shift} days'"
    finite = f"isfinite({moment})"
    ways = {(part > 0) == (op == "+") for part in interval.value if part}
    late = f"{moment} > {_LIMITS['last']} - {margin}"
    if ways == {False}:  # it comes nearer; a date that has no timestamp is late all the same
        late = f"{moment} >= {_LIMITS['last']} + INTERVAL '1 day'"
    early = [] if ways == {True} else [f"{moment} < {_LIMITS['first']} + {margin}"]
    outside = [late, *early]
    return [f"({finite} AND ({' OR '.join(outside)}))"]


def inline_only(w: Writer, scalar: n.Scalar, env: Env) -> bool:
    """Whether only sums and products of exact numbers can fail, and NULL in place of one makes the whole NULL.

    Then each can look after itself, and nothing is computed twice.
    """
    for node in n.walk(scalar):
        strict = isinstance(
            node, (n.Column, n.Outer, n.Literal, n.Arithmetic, n.Negate, n.Cast, n.Extract)
        )
        if not strict and not (isinstance(node, n.Call) and not FUNCTIONS[node.function].null_safe):
            return False
        if _own(w, node, env) and not _looks_after_itself(w, node):
            return False
    return True


def _looks_after_itself(w: Writer, node: n.Node) -> bool:
    if not isinstance(node, n.Arithmetic) or node.op not in ("+", "-", "*"):
        return False
    kinds = {type_of(node.left).kind, type_of(node.right).kind}
    short = whole_64_bits(w, node.left) and whole_64_bits(w, node.right)
    return kinds <= {"INTEGER", "DECIMAL"} and (type_of(node).kind == "DECIMAL" or short)


def null_if_too_large(w: Writer, node: n.Arithmetic, left: str, right: str) -> str:
    """Write a sum or a product of exact numbers that is NULL where it does not fit its type."""
    kind = type_of(node)
    if kind.kind == "INTEGER":
        if w.reach.within(node, -WHOLE - 1, WHOLE):
            return f"({left} {node.op} {right})"
        wide = f"CAST({left} AS numeric) {node.op} CAST({right} AS numeric)"
        return f"CAST({_null_from(wide, str(-WHOLE - 2), str(WHOLE + 1))} AS bigint)"
    value = f"({left} {node.op} {right})"
    most = 10 ** (kind.precision - kind.scale)
    if kind.precision < t.MAX_PRECISION or w.reach.within(node, 1 - most, most - 1):
        return value
    end = f"1e{kind.precision - kind.scale}"
    return _null_from(value, f"-{end}", end)


def _null_from(value: str, low: str, high: str) -> str:
    """Write a value that is NULL from two ends on. NULL itself is taken to an end, and from there to NULL."""
    return f"NULLIF(NULLIF(least(greatest({value}, {low}), {high}), {high}), {low})"


def _cannot(what: str) -> BackendError:
    return BackendError(
        "BAK-003",
        f"PostgreSQL raises an error on some rows for {what}, and that cannot be told beforehand",
        hint="write the expression in another way, or keep the data in DuckDB",
    )


def _smallest_whole(w: Writer, node: n.Scalar, operand: n.Scalar, env: Env) -> list[str]:
    """The smallest whole number has no counterpart."""
    if type_of(node).kind != "INTEGER" or w.reach.within(operand, -WHOLE, WHOLE):
        return []
    return [f"({write(w, operand, env)} = {-WHOLE - 1})"]


def _absolute(w: Writer, node: n.Call, env: Env) -> list[str]:
    return _smallest_whole(w, node, node.arguments[0], env)


def _round(w: Writer, node: n.Call, env: Env) -> list[str]:
    if type_of(node).kind != "INTEGER" or len(node.arguments) == 1:
        return []
    value, digits = (write(w, a, env) for a in node.arguments)
    return [casts.beyond_64_bits(rounded_whole(value, digits))]


def rounded_whole(value: str, digits: str) -> str:
    """Write a whole number rounded to tens, hundreds, ..., with unlimited width."""
    return f"round(CAST({value} AS numeric), CAST(greatest(least({digits}, 0), -100) AS integer))"


def _argument_checks(w: Writer, node: n.Call, env: Env) -> list[str]:
    least = -WHOLE - 1 if node.function == "left" else -SUBSTRING_LIMIT
    return [
        f"({write(w, a, env)} NOT BETWEEN {least} AND {SUBSTRING_LIMIT - 1})"
        for a in node.arguments[1:]
        if not (isinstance(a, n.Literal) and isinstance(a.value, int) and abs(a.value) < 2**31)
    ]


_EARLIEST = {"month": "4714-12-01 BC", "quarter": "4713-01-01 BC", "year": "4713-01-01 BC"}
"""Moments from which on such a part starts inside PostgreSQL's calendar, which begins on Monday, 4714-11-24 BC."""
_LATEST = {"month": "294247-02-01", "quarter": "294247-04-01", "year": "294248-01-01"}
"""Dates from which on such a part starts after the last day of DuckDB's timestamps, Sunday, 294247-01-10."""


def _truncation(w: Writer, node: n.Call, env: Env) -> list[str]:
    """A start that is no moment: before PostgreSQL's first one, which DuckDB has, or of a date that is too late."""
    part, moment = node.arguments
    assert isinstance(part, n.Literal)
    unit, moment_text = str(part.value), write(w, moment, env)
    outside = [f"{moment_text} < TIMESTAMP '{_EARLIEST[unit]}'"] if unit in _EARLIEST else []
    if type_of(moment).kind == "DATE":
        outside.append(f"{moment_text} >= DATE '{_LATEST.get(unit, '294247-01-11')}'")
    return [f"(isfinite({moment_text}) AND ({' OR '.join(outside)}))"] if outside else []


_CALLS: dict[str, Callable[[Writer, n.Call, Env], list[str]]] = {
    "abs": _absolute,
    "round": _round,
    "substring": _argument_checks,
    "left": _argument_checks,
    "date_trunc": _truncation,
}


def _cannot_meet(w: Writer, node: n.Node, env: Env) -> list[str]:
    """Values that meet take on one type; those that it does not hold fail."""
    if isinstance(node, n.Case):
        parts: list[n.Node] = [*(b.value for b in node.branches), node.default]
    elif isinstance(node, (n.Compare, n.SameValue, n.InList, n.Call)):
        parts = list(n.children(node))
    else:
        return []
    scalars = [p for p in parts if isinstance(p, n.Scalar)]
    met: Type | None = t.NULL
    for part in scalars:
        met = None if met is None else t.unify(met, type_of(part))
    if met is None or met.kind not in ("TIMESTAMP", "DECIMAL"):
        return []
    tests = []
    for part in scalars:
        kind = type_of(part)
        if met.kind == "TIMESTAMP" and kind.kind == "DATE" and not isinstance(part, n.Literal):
            tests.append(casts.late(write(w, part, env)))
        if met.kind == "DECIMAL" and kind != met and kind.kind != "NULL":
            most = 10 ** (met.precision - met.scale)
            if not w.reach.within(part, 1 - most, most - 1):
                value = f"abs(CAST({write(w, part, env)} AS numeric))"
                tests.append(f"({value} >= {casts.power_of_ten(met.precision - met.scale)})")
    return tests
