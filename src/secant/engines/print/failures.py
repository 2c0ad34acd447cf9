"""Which condition says that an expression fails? Asked part by part, in the order in which parts are computed.

In: an expression, and what an engine says of each node by itself. Out: conditions as SQL text, in the order in which
they must be asked: each may be computed only where no earlier one holds. What a branch of a CASE would fail on does
not matter where another branch is taken.
"""

from __future__ import annotations

from collections.abc import Callable

from secant.engines.print.blocks import Env, Writer
from secant.engines.print.print_sql import write
from secant.plan import nodes as n

Own = Callable[[Writer, n.Node, Env], list[str]]
"""Gives the conditions under which a node fails though its parts do not."""


def conditions(w: Writer, node: n.Node, env: Env, own: Own) -> list[str]:
    """Give the conditions under which computing the expression fails."""
    if isinstance(node, (n.Attempt, n.Relation)):
        return []
    if isinstance(node, n.Case):
        tests = _case(w, node, env, own)
    elif isinstance(node, (n.And, n.Or)):
        tests = _chain(w, node, env, own)
    elif isinstance(node, n.Call) and node.function == "coalesce":
        tests = _coalesce(w, node, env, own)
    else:
        tests = [f for child in n.children(node) for f in conditions(w, child, env, own)]
    return tests + own(w, node, env)


def _first_true(steps: list[tuple[str, str]], last: str = "FALSE") -> list[str]:
    if all(result == "FALSE" for _, result in steps) and last == "FALSE":
        return []
    return ["CASE " + " ".join(f"WHEN {c} THEN {r}" for c, r in steps) + f" ELSE {last} END"]


def _any(tests: list[str]) -> str:
    """Write that one of several conditions holds; later ones are asked only if earlier ones do not."""
    if not tests:
        return "FALSE"
    return _first_true([(c, "TRUE") for c in tests])[0]


def _case(w: Writer, node: n.Case, env: Env, own: Own) -> list[str]:
    steps: list[tuple[str, str]] = []
    for b in node.branches:
        steps += [(f, "TRUE") for f in conditions(w, b.condition, env, own)]
        steps.append((write(w, b.condition, env), _any(conditions(w, b.value, env, own))))
    return _first_true(steps, _any(conditions(w, node.default, env, own)))


def _chain(w: Writer, node: n.And | n.Or, env: Env, own: Own) -> list[str]:
    """The first operand that decides ends it."""
    steps: list[tuple[str, str]] = []
    for operand in node.operands:
        steps += [(f, "TRUE") for f in conditions(w, operand, env, own)]
        decided = "FALSE" if isinstance(node, n.And) else "TRUE"
        steps.append((f"({write(w, operand, env)} IS {decided})", "FALSE"))
    return _first_true(steps)


def _coalesce(w: Writer, node: n.Call, env: Env, own: Own) -> list[str]:
    steps: list[tuple[str, str]] = []
    for argument in node.arguments:
        steps += [(f, "TRUE") for f in conditions(w, argument, env, own)]
        steps.append((f"({write(w, argument, env)} IS NOT NULL)", "FALSE"))
    return _first_true(steps)
