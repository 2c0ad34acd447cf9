"""Numbers of rows as formulas over measured figures and the distance k, which never fall when either rises.

Rests on elastic.smooth.

In: constants, figures, sums, products, the least and the most. Out: a formula that knows how fast it grows, its
figures, and a function that computes it. Never here: data; figures come in as numbers when a survey is computed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import field

from secant.plan import nodes as n
from secant.plan.facts.reads import scans
from secant.records import by_identity


@by_identity
class Figure:
    """How many rows of a relation agree in some columns, none of them NULL, at most; without columns: all rows."""

    relation: n.Relation
    columns: tuple[str, ...]
    keys: tuple[str, ...] | None
    """The columns that hold the release's keys: the figure is measured for each group then."""


@by_identity
class Amount:
    """A formula. `degree` d promises: c times the distance gives at most c^d times the amount, for c >= 1."""

    op: str  # "number", "figure", "sum", "product", "least" or "most"
    degree: int = 0
    value: int = 0
    parts: tuple[Amount, ...] = field(default=())
    """What is put together; for a figure, how many rows one changed row can add to it."""
    figure: Figure | None = None


ZERO = Amount("number")
ONE = Amount("number", value=1)


def number(value: int) -> Amount:
    """Give a constant."""
    return Amount("number", value=value)


def measured(figure: Figure, rate: Amount) -> Amount:
    """Give a figure that `rate` rows can be added to at each step of distance."""
    return Amount("figure", 1 if rate is not ZERO else 0, parts=(rate,), figure=figure)


def add(*parts: Amount) -> Amount:
    """Give the sum."""
    return _folded("sum", parts, sum, 0)


def times(*parts: Amount) -> Amount:
    """Give the product."""
    if any(_is(part, 0) for part in parts):
        return ZERO
    return _folded("product", parts, math.prod, 1)


def most(*parts: Amount) -> Amount:
    """Give the largest part; 0 if there is none."""
    return _folded("most", parts, max, 0)


def least(*parts: Amount) -> Amount:
    """Give the smallest part."""
    if any(_is(part, 0) for part in parts):
        return ZERO
    return _folded("least", parts, min, None)


def _is(amount: Amount, value: int) -> bool:
    return amount.op == "number" and amount.value == value


def _folded(
    op: str, parts: Sequence[Amount], fold: Callable[[list[int]], int], neutral: int | None
) -> Amount:
    """Put constants together first, and leave out what changes nothing."""
    open_parts = list(dict.fromkeys(p for p in parts if p.op != "number"))
    if op in ("sum", "product"):
        open_parts = [p for p in parts if p.op != "number"]
    constants = [p.value for p in parts if p.op == "number"]
    if constants:
        constant = fold(constants)
        if constant != neutral or not open_parts:
            open_parts.append(ZERO if constant == 0 else number(constant))
    if not open_parts:
        return ZERO
    if len(open_parts) == 1:
        return open_parts[0]
    degrees = [p.degree for p in open_parts]
    return Amount(op, sum(degrees) if op == "product" else max(degrees), parts=tuple(open_parts))


Compute = Callable[[Sequence[int], int], int]
_FOLDS: dict[str, Callable[[list[int]], int]] = {
    "sum": sum,
    "product": math.prod,
    "least": min,
    "most": max,
}


def computation(amount: Amount) -> tuple[tuple[Figure, ...], Compute]:
    """Give the figures of an amount, and the function from their values and the distance to the amount's value."""
    order = _in_order(amount)
    index_of = {part: index for index, part in enumerate(order)}
    figures = tuple(dict.fromkeys(p.figure for p in order if p.figure is not None))
    steps = [
        (
            part.op,
            figures.index(part.figure) if part.figure is not None else part.value,
            [index_of[p] for p in part.parts],
        )
        for part in order
    ]

    def compute(values: Sequence[int], distance: int) -> int:
        taken_values: list[int] = []
        for op, which, below in steps:
            if op == "number":
                taken_values.append(which)
            elif op == "figure":
                taken_values.append(values[which] + taken_values[below[0]] * distance)
            else:
                taken_values.append(_FOLDS[op]([taken_values[index] for index in below]))
        return taken_values[-1]

    return figures, compute


def is_convex(amount: Amount) -> bool:
    """Whether no chord lies below the values: sums, products and maxima keep that, minima do not."""
    return all(part.op != "least" for part in _in_order(amount))


def _in_order(amount: Amount) -> list[Amount]:
    """Give all parts, each once, those below first."""
    done: dict[Amount, None] = {}
    pending = [(amount, False)]
    while pending:
        part, ready = pending.pop()
        if part in done:
            continue
        if ready:
            done[part] = None
            continue
        pending.append((part, True))
        pending += [(p, False) for p in part.parts]
    return list(done)


def shown(amount: Amount, depth: int = 5) -> str:
    """Write an amount for people, only so deep; figures by name, never by value."""
    if amount.op == "number":
        return str(amount.value)
    if amount.figure is not None:
        return _shown_figure(amount.figure, amount.parts[0])
    if depth == 0:
        return "..."
    parts = [shown(part, depth - 1) for part in amount.parts]
    if amount.op in ("least", "most"):
        return f"{amount.op}({', '.join(parts)})"
    if amount.op == "sum":
        return " + ".join(parts)
    return " x ".join(
        f"({text})" if part.op == "sum" else text
        for part, text in zip(amount.parts, parts, strict=True)
    )


def _shown_figure(figure: Figure, rate: Amount) -> str:
    tables = sorted({s.table for s in scans(figure.relation)})
    columns = ", ".join(c.rsplit(".", 1)[-1] for c in figure.columns)
    name = f"rows of {', '.join(tables) or 'constants'}"
    if columns:
        name += f" for one {columns}"
    if rate is ZERO:
        return f"[{name}]"
    pace = "k" if _is(rate, 1) else f"{shown(rate)} k"
    return f"[{name} + {pace}]"
