"""Smooth bounds for five joins as papers print them, and as they are right: what the checker must tell apart.

In: nothing. Out: analyses that answer one question each, with figures from plain SQL. The wrong ones are papers.md,
errors 7, 8 and 11, and two faults known from public systems. They share no code with the analyses, so they show that
the checker can fail whatever the analyses look like inside.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from joins_worlds import world

from secant.plan.rewrites.rewrite import normalize
from secant.sensitivity.certificate import Certificate, Step, Survey, Surveyed
from secant.sensitivity.interface import Request
from secant.sql.bind import from_sql

FAR = 600
"""Changes that are looked ahead: beyond (largest degree) / (smallest beta) nothing grows."""


def most(table: str, column: str) -> str:
    """Give the statement for how many rows agree in a column, at most."""
    return (
        f"SELECT max(n) FROM (SELECT count(*) AS n FROM {table} WHERE {column} IS NOT NULL "
        f"GROUP BY {column}) q"
    )


def smooth(at: Callable[[float], float], beta: float, last: int = FAR) -> float:
    """Give the largest discounted value over all numbers of changes up to the last."""
    return max(math.exp(-beta * k) * at(k) for k in range(last + 1))


@dataclass(frozen=True)
class Textbook:
    """An analysis that answers one question by a formula over figures; a figure of no rows is 0."""

    what: str
    text: str
    figures: Sequence[str]
    rows: Callable[..., float]
    name: str = "textbook"

    def bound(self, request: Request) -> Certificate:
        """Give the formula as a certificate."""
        plans = tuple(normalize(from_sql(text, world().catalog)) for text in self.figures)

        def rows(beta: Fraction, found: tuple[Any, ...]) -> Fraction:
            numbers = [statement[0][0] or 0 for statement in found]
            return Fraction(self.rows(float(beta), *numbers)) * (1 + Fraction(1, 2**40))

        survey = Survey(self.name, plans, (False,) * len(plans), rows)
        (measure,) = request.release.measures
        bounds = {measure.column: Surveyed((survey,), Fraction(1), 1)}
        step = (Step(self.name, "", ""),)
        return Certificate(self.name, request.protection.name, bounds, 0, 1, 0, (), step)


PAIR = "SELECT count(*) FROM r JOIN s ON r.b = s.b"
THREE = "SELECT count(*) FROM o q1, o q2, o q3 WHERE q1.a = q2.a AND q2.a = q3.a"
CHAIN = "SELECT count(*) FROM r JOIN s ON r.b = s.b JOIN t ON s.c = t.c"
TWICE = "SELECT count(*) FROM (SELECT a FROM r UNION ALL SELECT a FROM r) q"

_R, _S = most("r", "b"), most("s", "b")
_MET = "SELECT max(n) FROM (SELECT count(*) AS n FROM r JOIN s ON r.b = s.b GROUP BY r.b) q"
_SIZE = "SELECT count(*) FROM r JOIN s ON r.b = s.b"


def _chain(beta: float, r: int, s_b: int, s_c: int, t: int, later: int) -> float:
    """A row of r, of t or of s; `later` is 1 if the second join's frequency grows with k, too."""
    return smooth(
        lambda k: max(
            (s_b + k) * (t + later * k), (r + k) * (s_c + later * k), (r + k) * (t + later * k)
        ),
        beta,
    )


_CHAIN = (_R, _S, most("s", "c"), most("t", "c"))

RIGHT = (
    Textbook("a pair of tables", PAIR, (_R, _S), lambda beta, r, s: smooth(lambda k: max(r, s) + k, beta)),
    Textbook(
        "three copies", THREE, (most("o", "a"),),
        lambda beta, x: smooth(lambda k: 3 * (x + k) ** 2 + 3 * (x + k) + 1, beta),
    ),
    Textbook("a chain", CHAIN, _CHAIN, lambda *x: _chain(*x, later=1)),
    Textbook("a union with itself", TWICE, (), lambda beta: 2),
)  # fmt: skip

WRONG = (
    Textbook(
        "error 7: every copy is charged", THREE, (most("o", "a"),),
        lambda beta, x: smooth(lambda k: 3 * (x + k / 2) ** 2 + 3 * (x + k / 2) + 1, beta),
    ),
    Textbook(
        "error 7: every copy is charged, and no row is added to itself", THREE, (most("o", "a"),),
        lambda beta, x: smooth(lambda k: 3 * (x + k / 2) ** 2, beta),
    ),
    Textbook(
        "error 8: only values that both sides have", PAIR, (_R, _S, _MET),
        lambda beta, r, s, met: smooth(lambda k: max(r, s) + k, beta) if met else 0,
    ),
    Textbook(
        "error 11: the exponent holds the value", PAIR, (_R, _S),
        lambda beta, r, s: max(math.exp(-beta * k * (max(r, s) + k)) for k in range(FAR)),
    ),
    Textbook(
        "error 11: no more changes than rows", PAIR, (_R, _S, _SIZE),
        lambda beta, r, s, size: smooth(lambda k: max(r, s) + k, beta, size),
    ),
    Textbook("k is missing", PAIR, (_R, _S), lambda beta, r, s: max(r, s)),
    Textbook("k is missing after the first join", CHAIN, _CHAIN, lambda *x: _chain(*x, later=0)),
    Textbook("a union is taken for the table itself", TWICE, (), lambda beta: 1),
)  # fmt: skip
