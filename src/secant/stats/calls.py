"""What all statistics share: reading the terms of a call, and releasing once they are settled.

In: arguments as typed. Out: a `Release`. Terms are checked, the way is chosen and the noise calibrated
before anything is charged; the charge is durable before a value is read; an error that a value causes
says nothing of it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence, Sized
from contextlib import contextmanager
from fractions import Fraction

import numpy as np

from secant.errors import InternalError, SecantError, UsageError
from secant.ledger.amounts import as_written
from secant.numeric.parameters import Number, epsilon_of, level_of
from secant.records import frozen
from secant.stats.budget import Allowance, Done, budget_of, neighbors_of, paid
from secant.stats.choice import decide_mechanism
from secant.stats.inputs import Values, check_values, values_of
from secant.stats.mechanisms import Mechanism, Statistic, noise_of
from secant.stats.results import (
    RELATIONS,
    REPLACE,
    Cost,
    Guarantee,
    Neighbors,
    Release,
    comparison,
)
from secant.stats.scale import Scale, Steps


@frozen
class Terms:
    """What a call has settled before data are touched."""

    epsilon: Fraction
    level: Fraction
    neighbors: Neighbors
    size: int | None
    """The number of rows, where it is public."""
    budget: Allowance | None
    mechanism: str
    compare: bool


def terms_of(
    values: object,
    *,
    epsilon: Number,
    budget: object,
    neighbors: object,
    level: Number,
    n: int | str | None = None,
    compare: bool = False,
    mechanism: str = "auto",
) -> Terms:
    """Check what all statistics take."""
    price = epsilon_of(as_written(epsilon, what="epsilon", code="USE-002"))
    confidence = level_of(as_written(level, what="level", code="USE-004"))
    payer = budget_of(budget)
    relation = neighbors_of(neighbors, payer)
    if not isinstance(mechanism, str):
        raise UsageError("USE-001", "a mechanism is asked for by its name")
    return Terms(
        price, confidence, relation, _size(values, relation, n), payer, mechanism, bool(compare)
    )


def _size(values: object, relation: Neighbors, n: int | str | None) -> int | None:
    if n is not None and (
        isinstance(n, (bool, str)) or not isinstance(n, (int, np.integer)) or n < 0
    ):
        raise UsageError(
            "USE-001", "n must be a whole number, how many values there publicly are, or 'private'"
        )
    if relation != REPLACE:
        return None if n is None else int(n)
    if not isinstance(values, Sized):
        raise UsageError("USE-001", "values must have a length where neighbors replace one")
    if not len(values):
        raise UsageError("USE-001", "values are empty, and replacing changes nothing")
    if n is not None and n != len(values):
        raise UsageError("USE-001", "n is not the number of values, which is public under replace")
    return len(values)


def clean_values(values: object, scale: Scale, terms: Terms) -> Values:
    """Give the numbers among values: others are left out, or count as the middle where their number is public."""
    middle = scale.value(Fraction(scale.top, 2))
    return values_of(values, missing=middle if terms.neighbors == REPLACE else None)


def guarantee_of(terms: Terms, hidden: str = "", delta: Fraction = Fraction(0)) -> Guarantee:
    """Say what the release promises, and what it takes on trust."""
    assumed = terms.budget.assumptions() if terms.budget is not None else ()
    hidden = hidden or RELATIONS[terms.neighbors]
    return Guarantee(hidden, float(terms.epsilon), float(delta), terms.neighbors, assumed)


@contextmanager
def quiet() -> Iterator[None]:
    """Let typed errors pass; of any other only its kind is said, its words may quote a value."""
    try:
        yield
    except SecantError:
        raise
    except (
        AssertionError,
        ArithmeticError,
        AttributeError,
        LookupError,
        MemoryError,
        RuntimeError,
        TypeError,
        ValueError,
    ) as error:
        raise InternalError(
            "BUG-001", f"an invariant of Secant broke ({type(error).__name__})"
        ) from None


def release(
    values: object,
    scale: Scale,
    statistic: Statistic,
    groups: Sequence[Sequence[Mechanism]],
    terms: Terms,
    *,
    read: Callable[[object], Steps] | None = None,
    guarantee: Guarantee | None = None,
) -> Release:
    """Choose, charge, read, draw, and say what was done."""
    size = terms.size
    decision = decide_mechanism(
        groups,
        terms.mechanism,
        size=size,
        top=scale.top,
        measure=terms.compare,
        on_request=[group[0].family for group in groups if group[0].family == "preprocessing"],
    )
    way = decision.way
    if read is None:
        check_values(values)
    if terms.compare and decision.candidates:
        table = comparison(decision.candidates, way.family, decision.assumed)
        sys.stdout.write(table + "\n")
    cost: Cost
    done = Done(statistic.name, noise_of(way), {"top": scale.top, "q": statistic.q, "n": size})
    with paid(terms.budget, terms.epsilon, done) as cost, quiet():
        steps = read(values) if read is not None else scale.snap(clean_values(values, scale, terms))
        index = way.draw(steps)
    # clamped after the draw: whatever was drawn, a value outside the range is not meant
    clamped = min(max(index, Fraction(0)), Fraction(statistic.scale.top))
    return Release(
        statistic=statistic.name,
        value=statistic.scale.value(clamped),
        error=way.bar(terms.level, size),
        guarantee=guarantee or guarantee_of(terms),
        cost=cost,
        mechanism=way.name,
        why=decision.why,
        candidates=decision.candidates,
        curve=way.curve(terms.level),
    )
