"""Which rows of an aggregate count: those whose argument, or both of a pair, has a value.

In: arguments. Out: arguments that have a value on the same rows, written so that equal conditions are seen to be equal:
a number of rows that several statistics need is then measured, and paid, once.
"""

from __future__ import annotations

from secant.plan import nodes as n
from secant.plan.show import same
from secant.plan.typing import type_of
from secant.schema import types as t

NOTHING = n.Literal(None, t.NULL)


def where(condition: n.Scalar, value: n.Scalar) -> n.Case:
    """Give CASE WHEN condition THEN value END."""
    return n.Case((n.Branch(condition, value),), NOTHING)


def paired(y: n.Scalar, x: n.Scalar) -> tuple[n.Scalar, n.Scalar]:
    """Give both sides of a pair with NULL wherever one of them has no value."""
    if _limited(y) is not None and _limited(x) is not None and same(presence(y), presence(x)):
        return y, x
    both = n.And((n.Not(n.IsNull(y)), n.Not(n.IsNull(x))))
    return where(both, y), where(both, x)


def presence(argument: n.Scalar) -> n.Scalar:
    """Give what has a value wherever the argument has.

    CASE WHEN c AND x IS NOT NULL THEN x END has a value exactly where the condition holds, whatever x is.
    """
    condition = _limited(argument)
    return argument if condition is None else where(condition, n.Literal(1, t.INTEGER))


def valued(argument: n.Scalar) -> n.Scalar:
    """Give the value that stands in a pair, without the condition that both sides are there."""
    if _limited(argument) is None or not isinstance(argument, n.Case):
        return argument
    value = argument.branches[0].value
    return argument if isinstance(value, n.Literal) else value


def _limited(argument: n.Scalar) -> n.Scalar | None:
    """Give the condition that says by itself whether the argument has a value; None if there is none."""
    if not isinstance(argument, n.Case) or len(argument.branches) != 1:
        return None
    (branch,), default = argument.branches, argument.default
    if not isinstance(default, n.Literal) or default.value is not None:
        return None
    if isinstance(branch.value, n.Literal):
        return branch.condition if branch.value.value is not None else None
    implied = any(
        isinstance(part, n.Not)
        and isinstance(part.operand, n.IsNull)
        and same(part.operand.operand, branch.value)
        for part in n.conjuncts(branch.condition)
    )
    return branch.condition if implied else None


def is_truth(call: n.Aggregation) -> bool:
    """Whether the least or greatest of truth values is asked for."""
    return (
        call.function in ("min", "max")
        and call.argument is not None
        and type_of(call.argument).kind == "BOOLEAN"
    )
