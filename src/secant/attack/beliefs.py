"""What an attacker believes of one column: as the attacker's words say, or as the policy declares it.

In: an attribute, the facts of its column, its type. Out: a prior with its description: a distribution of numbers,
shares of named values, so many values alike, or nothing at all. Ranges and steps are the policy's. No data is read.
"""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction

from secant.attack.goals import EXAMPLE, Attribute, number_of_text
from secant.attack.priors import (
    Histogram,
    Normal,
    Prior,
    histogram,
    normal,
    stepped,
    uniform,
    weights,
)
from secant.errors import PolicyError, UsageError
from secant.numeric.parameters import exact
from secant.policy.policy import ColumnFacts
from secant.records import frozen
from secant.schema.catalog import Catalog

ASSUMED = " (assumed: the policy declares no distribution)"
_PLACED = ("INTEGER", "DECIMAL", "DOUBLE", "DATE", "TIMESTAMP")
"""Types of values that lie on a line."""
_LINE = (int, Decimal, datetime.date)


@frozen
class Named:
    """Values without a distance between them, each with its share."""

    values: tuple[str, ...]
    shares: tuple[float, ...]


@frozen
class Alike:
    """So many values, all alike, that nobody names."""

    count: int


Belief = Prior | Named | Alike


def belief_of(
    aim: Attribute, facts: ColumnFacts, catalog: Catalog | None = None
) -> tuple[Belief | None, str]:
    """Give the attacker's prior and its description; None where nothing is believed.

    Where the attacker names no prior, what the policy declares of the column is taken for it.
    """
    if aim.kind == "any":
        if aim.numbers:
            raise UsageError("USE-001", "the prior any takes no numbers")
        return None, "any"
    if not is_placed(aim, facts, catalog):
        return _named(aim, facts)
    if isinstance(aim.center, str):
        message = f"{aim.name} holds numbers or dates, and a text is guessed"
        raise UsageError("USE-001", message)
    return _on_a_line(aim, facts, catalog)


def is_placed(aim: Attribute, facts: ColumnFacts, catalog: Catalog | None) -> bool:
    """Whether values of the column lie on a line; text and booleans have no distance."""
    table = catalog.table(aim.table) if catalog is not None else None
    kind = table.type_of(aim.column) if table is not None else None
    if kind is not None:
        return kind.kind in _PLACED
    constants = [*(facts.values or ()), *(facts.range or ())]
    if constants:
        return all(isinstance(v, _LINE) and not isinstance(v, bool) for v in constants)
    return not isinstance(aim.center, str) and not any(isinstance(v, str) for v, _ in aim.numbers)


# ── values without a distance ────────────────────────────────────────────────────────────────────


def _named(aim: Attribute, facts: ColumnFacts) -> tuple[Belief | None, str]:
    if aim.radius or (aim.center is not None and not isinstance(aim.center, str)):
        message = f"the values of {aim.name} have no distance between them"
        hint = f"write: {aim.name} exactly, or: {aim.name} is 'a value'"
        raise UsageError("USE-001", message, hint=hint)
    if aim.kind in ("normal", "histogram"):
        raise UsageError("USE-001", f"a {aim.kind} prior needs numbers or dates")
    if aim.kind == "values":
        names = [_text(value) for value, _ in aim.numbers]
        return named(names, _declared_shares(aim)), f"{len(names)} values that were named"
    belief = None if aim.kind else facts.belief
    declared = aim.kind == "uniform" or belief is not None
    if facts.values is not None:
        names = [_text(value) for value in facts.values]
        if belief is not None and belief.kind == "weights":
            return named(names, belief.shares), "declared shares of the values"
        return named(names, None), "every declared value alike" + ASSUMED * (not declared)
    if facts.total is not None:
        return Alike(facts.total), f"{facts.total} values alike" + ASSUMED * (not declared)
    return None, "any"


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def named(values: Sequence[str], shares: Sequence[Fraction] | None) -> Named:
    """Give named values with their shares; equal ones if none are given."""
    if not values or len(set(values)) < len(values):
        raise UsageError("USE-001", "a prior needs values, each once")
    parts = weights(list(range(len(values))), shares)
    chosen = [values[int(index)] for index in parts.values]
    return Named(tuple(chosen), parts.weights)


# ── values on a line ─────────────────────────────────────────────────────────────────────────────


def _on_a_line(
    aim: Attribute, facts: ColumnFacts, catalog: Catalog | None
) -> tuple[Belief | None, str]:
    if aim.kind == "values":
        places = [number_of_text(value) for value, _ in aim.numbers]
        return weights(places, _declared_shares(aim)), f"{len(places)} values that were named"
    belief = None if aim.kind else facts.belief
    declared = aim.kind == "uniform" or belief is not None
    if belief is not None and belief.kind == "weights":
        assert facts.values is not None
        places = [number_of_text(value) for value in facts.values]
        return weights(places, belief.shares), "declared shares of the values"
    if aim.kind in ("", "uniform") and facts.range is None and facts.values is not None:
        places = [number_of_text(v) for v in facts.values]
        return weights(places), "every declared value alike" + ASSUMED * (not declared)
    if facts.range is None:
        if aim.kind in ("normal", "histogram", "uniform"):
            raise PolicyError(
                "POL-003",
                f"the policy declares no range of {aim.name}",
                hint="declare it, or name the values in the attacker's prior",
            )
        if facts.total is not None and not aim.radius and aim.center is None:
            return Alike(facts.total), f"{facts.total} values alike" + ASSUMED * (not declared)
        return None, "any"
    low, high = (number_of_text(end) for end in facts.range)
    step = step_of(aim, facts, catalog)
    shown = f"[{facts.range[0]}, {facts.range[1]}]"
    stairs = "" if step is None else f" in steps of {float(step):g}"
    if belief is not None and belief.kind in ("normal", "histogram"):
        if belief.kind == "normal":
            assert belief.deviation is not None
            bell: Normal | Histogram = normal(
                number_of_text(belief.mean), belief.deviation, low, high
            )
        else:
            bell = histogram([number_of_text(edge) for edge in belief.edges], belief.shares)
        description = (
            "declared normal, cut to " + shown if belief.kind == "normal" else "declared pieces"
        )
        return (bell if step is None else stepped(bell, low, step)), description + stairs
    if aim.kind in ("", "uniform"):
        if aim.numbers:
            raise UsageError(
                "USE-001", "a uniform prior takes no numbers; the range is the policy's"
            )
        return uniform(low, high, step), f"uniform on {shown}{stairs}" + ASSUMED * (not declared)
    prior = _bell(aim, low, high) if aim.kind == "normal" else _bins(aim, low, high)
    described = f"normal, cut to {shown}" if aim.kind == "normal" else "a histogram"
    return (prior if step is None else stepped(prior, low, step)), described + stairs


def _declared_shares(aim: Attribute) -> list[Fraction] | None:
    shares = [s for _, s in aim.numbers]
    defined = [s for s in shares if s is not None]
    if defined and len(defined) < len(shares):
        raise UsageError("USE-001", "either all values of the prior have a share, or none has")
    return defined or None


def _bell(aim: Attribute, low: Fraction, high: Fraction) -> Normal:
    if len(aim.numbers) != 2 or any(share is not None for _, share in aim.numbers):
        raise UsageError("USE-001", "a normal prior needs a mean and a deviation", hint=EXAMPLE)
    (mean, _), (deviation, _) = aim.numbers
    return normal(number_of_text(mean), number_of_text(deviation), low, high)


def _bins(aim: Attribute, low: Fraction, high: Fraction) -> Histogram:
    edges, shares = [number_of_text(v) for v, _ in aim.numbers], [s for _, s in aim.numbers]
    if len(shares) < 2 or shares[-1] is not None or None in shares[:-1]:
        raise UsageError(
            "USE-001",
            "every edge of a histogram but the last has the share of its bin",
            hint="write it like: histogram(0: 1, 10: 3, 20)",
        )
    if edges[0] < low or edges[-1] > high:
        raise UsageError("USE-001", "the histogram leaves the range that the policy declares")
    return histogram(edges, [s for s in shares if s is not None])


def step_of(aim: Attribute, facts: ColumnFacts, catalog: Catalog | None) -> Fraction | None:
    """Give the step in which values of a column move, or None where they may be any number."""
    if facts.step is not None:
        return exact(facts.step, "the step of the column")
    table = catalog.table(aim.table) if catalog is not None else None
    kind = table.type_of(aim.column) if table is not None else None
    # A guess of a whole number can be right; that of a real number is only ever near.
    return Fraction(1) if kind is not None and kind.kind in ("INTEGER", "DATE") else None
