"""An attacker as a person writes one, and what each protection of a policy leaves to guess.

In: `table.column within R [of C] [prior ...] [member P]`, the policy, and what an answer would be charged.
Out: one record a protection, and sentences. Ranges and norms come from the policy; no data is read.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any

from secant.attack.guess import Guess, guess_at_rate, membership_at, percent
from secant.attack.priors import (
    Histogram,
    Normal,
    Prior,
    Weights,
    histogram,
    normal,
    stepped,
    uniform,
    weights,
)
from secant.errors import PolicyError, UsageError
from secant.numeric.parameters import exact
from secant.terms.catalog import Catalog
from secant.terms.norms import ColumnNorm, LogNorm, Norm, ScaledNorm, parse_norm
from secant.terms.policy import ColumnFacts, Policy, Protection

EXAMPLE = "write it like: people.age within 2 prior normal(40, 12)"
_SHAPE = re.compile(
    r"\s*(?P<table>\w+)\s*\.\s*(?P<column>\w+)\s+within\s+(?P<radius>[^\s]+)"
    r"(?:\s+of\s+(?P<center>[^\s]+))?"
    r"(?:\s+prior\s+(?P<kind>[a-z]+)\s*(?:\((?P<inside>[^()]*)\))?)?"
    r"(?:\s+member\s+(?P<member>[^\s]+))?\s*\Z",
    re.IGNORECASE,
)
PRIORS = ("uniform", "normal", "values", "histogram")


@dataclass(frozen=True, slots=True)
class Attacker:
    """Which value is guessed, how near a guess must be, and what is believed before."""

    table: str
    column: str
    radius: Fraction
    center: Fraction | None = None
    kind: str = ""
    """The kind of prior; empty for what the policy's facts suggest."""
    numbers: tuple[tuple[Fraction, Fraction | None], ...] = ()
    """What stands in the parentheses of the prior: numbers, each with its share if one is given."""
    member: Fraction = Fraction(1, 2)


def parse_attacker(text: str) -> Attacker:
    """Read an attacker.

    >>> parse_attacker("people.age within 2 of 40 prior uniform").center
    Fraction(40, 1)
    """
    found = _SHAPE.match(text)
    if found is None:
        raise UsageError("USE-001", "the attacker cannot be read", hint=EXAMPLE)
    kind = (found["kind"] or "").lower()
    if kind and kind not in PRIORS:
        raise UsageError("USE-001", f"there is no prior {kind}", hint=f"use {', '.join(PRIORS)}")
    inside = [part for part in (found["inside"] or "").split(",") if part.strip()]
    radius = exact(found["radius"], "the radius")
    if radius < 0:
        raise UsageError("USE-001", "the radius must not be negative")
    member = exact(found["member"] or "0.5", "the prior chance of membership")
    if not 0 < member < 1:
        raise UsageError("USE-001", "the prior chance of membership must lie between 0 and 1")
    return Attacker(
        table=found["table"].lower(),
        column=found["column"].lower(),
        radius=radius,
        center=None if found["center"] is None else _place(found["center"]),
        kind=kind,
        numbers=tuple(_pair(part) for part in inside),
        member=member,
    )


def _pair(text: str) -> tuple[Fraction, Fraction | None]:
    value, colon, share = text.partition(":")
    return _place(value), exact(share.strip(), "a share of the prior") if colon else None


def _place(text: object) -> Fraction:
    """Read a number or a date; days count from the first day of the calendar."""
    if isinstance(text, str) and re.fullmatch(r"\s*'?\d{4}-\d{2}-\d{2}'?\s*", text):
        try:
            text = datetime.date.fromisoformat(text.strip().strip("'"))
        except ValueError:
            raise UsageError("USE-001", "a date of the attacker does not exist") from None
    if isinstance(text, datetime.datetime):
        raise UsageError("USE-001", "a timestamp cannot be guessed at; only numbers and dates can")
    if isinstance(text, datetime.date):
        return Fraction(text.toordinal())
    return exact(text.strip() if isinstance(text, str) else text, "a number of the attacker")


def attack_report(
    attacker: str | Attacker,
    policy: Policy,
    guarantees: Sequence[Mapping[str, Any]],
    catalog: Catalog | None = None,
) -> list[dict[str, Any]]:
    """Say, protection by protection, what an answer and the whole budget would let an attacker guess.

    Args:
        attacker: The text of `--attacker`, or what `parse_attacker` made of it.
        policy: The policy in force.
        guarantees: What the answer would be charged: `protection`, `epsilon` and `delta` of each.
        catalog: Tells whether the column holds whole numbers or dates, which then move by steps of 1.
    """
    aim = parse_attacker(attacker) if isinstance(attacker, str) else attacker
    _must_exist(aim, policy, catalog)
    found = []
    for charge in guarantees:
        protection = policy.protection(str(charge["protection"]))
        assert protection is not None
        answer = (_exactly(charge["epsilon"]), _exactly(charge["delta"]))
        budget = (protection.epsilon, protection.delta)
        found.append(
            _for_protection(aim, policy, protection, {"answer": answer, "budget": budget}, catalog)
        )
    return found


def _exactly(value: object) -> Fraction:
    # A float is meant as it prints.
    return Fraction(Decimal(repr(value))) if isinstance(value, float) else Fraction(str(value))


def _must_exist(aim: Attacker, policy: Policy, catalog: Catalog | None) -> None:
    if catalog is not None:
        table = catalog.table(aim.table)
        known = table is not None and table.type_of(aim.column) is not None
    else:
        known = aim.column in policy.facts(aim.table).columns
    if not known:
        raise UsageError("USE-001", f"there is no column {aim.table}.{aim.column} to guess")


def _for_protection(
    aim: Attacker,
    policy: Policy,
    protection: Protection,
    spent: Mapping[str, tuple[Fraction, Fraction]],
    catalog: Catalog | None,
) -> dict[str, Any]:
    report: dict[str, Any] = {
        "protection": protection.name,
        "kind": protection.kind,
        # A budget that comes back has no whole: what is said holds for one period of it.
        "budget_words": f"the whole {protection.renewal} budget".replace("  ", " "),
    }
    if aim.table in protection.public_rows:
        report["not_covered"] = f"rows of {aim.table} that the owner marks public are not covered"
    if protection.kind in ("rows", "unit"):
        if protection.tables is not None and aim.table not in protection.tables:
            words = f"{aim.table} is not among its tables, so it is public to this protection"
            return {**report, "guesses": "nothing", "words": words}
        return {**report, "guesses": "membership", **_each(spent, lambda e, d: _member(aim, e, d))}
    if policy.column(aim.table, aim.column).exact:
        words = f"{aim.table}.{aim.column} is declared exact, so there is nothing left to guess"
        return {**report, "guesses": "nothing", "words": words}
    weight = weight_of(protection, aim.table, aim.column)
    if weight is None:
        words = f"{aim.table}.{aim.column} is not in its norm, so it is public to this protection"
        return {**report, "guesses": "nothing", "words": words}
    factor, logarithmic = weight
    prior, described = prior_of(aim, policy.column(aim.table, aim.column), catalog)

    def value(epsilon: Fraction, delta: Fraction) -> dict[str, Any]:
        return _value(aim, prior, epsilon * factor, delta, logarithmic)

    return {**report, "guesses": "value", "prior_words": described, **_each(spent, value)}


def _each(
    spent: Mapping[str, tuple[Fraction, Fraction]],
    bound: Callable[[Fraction, Fraction], dict[str, Any]],
) -> dict[str, Any]:
    return {
        what: {"epsilon": float(epsilon), "delta": float(delta), **bound(epsilon, delta)}
        for what, (epsilon, delta) in spent.items()
    }


def _member(aim: Attacker, epsilon: Fraction, delta: Fraction) -> dict[str, Any]:
    found = membership_at(epsilon, aim.member, delta)
    return {
        "prior": found.prior,
        "posterior": found.posterior,
        "on_average": found.on_average,
        "words": found.words,
    }


def _value(
    aim: Attacker, prior: Prior, rate: Fraction, delta: Fraction, logarithmic: bool
) -> dict[str, Any]:
    center = None if aim.center is None else float(aim.center)
    if delta:
        before = guess_at_rate(
            prior, center, float(aim.radius), Fraction(0), logarithmic=logarithmic
        )
        words = "not bounded for single answers, because delta is not 0"
        return {"prior": before.prior, "posterior": None, "advantage": None, "words": words}
    found: Guess = guess_at_rate(prior, center, float(aim.radius), rate, logarithmic=logarithmic)
    return {
        "prior": found.prior,
        "posterior": found.posterior,
        "advantage": found.advantage,
        "words": f"from {percent(found.prior)} to at most {percent(found.posterior, up=True)}",
    }


def weight_of(protection: Protection, table: str, column: str) -> tuple[Fraction, bool] | None:
    """Give how far a cell moves per unit, and whether the unit is one of ln; None if it is public.

    Where one coordinate moves alone, every ℓp combination, of columns, rows or tables, is that one
    coordinate's move, so the weight is the product of the factors above it (K-CELL).
    """
    text = protection.distance.get(table)
    return None if text is None else _weight(parse_norm(text), column)


def _weight(norm: Norm, column: str) -> tuple[Fraction, bool] | None:
    if isinstance(norm, (ColumnNorm, LogNorm)):
        return (Fraction(1), isinstance(norm, LogNorm)) if norm.column == column else None
    if isinstance(norm, ScaledNorm):
        inner = _weight(norm.inner, column)
        return None if inner is None else (norm.factor * inner[0], inner[1])
    return next((found for part in norm.parts if (found := _weight(part, column))), None)


def prior_of(
    aim: Attacker, facts: ColumnFacts, catalog: Catalog | None = None
) -> tuple[Prior, str]:
    """Give the attacker's prior and its description; ranges and steps are the policy's.

    Where the attacker names no prior, what the policy declares of the column is taken for it.
    """
    if aim.kind == "values":
        return _named_values(aim), f"{len(aim.numbers)} values that were named"
    belief = None if aim.kind else facts.belief
    if belief is not None and belief.kind == "weights":
        assert facts.values is not None
        places = [_place(value) for value in facts.values]
        return weights(places, belief.shares), "declared shares of the values"
    if not aim.kind and facts.range is None and facts.values is not None:
        return weights([_place(v) for v in facts.values]), "every declared value alike"
    if facts.range is None:
        raise PolicyError(
            "POL-003",
            f"the policy declares no range of {aim.table}.{aim.column}",
            hint="declare it, or name the values in the attacker's prior",
        )
    low, high = (_place(end) for end in facts.range)
    step = _step(aim, facts, catalog)
    shown = f"[{facts.range[0]}, {facts.range[1]}]"
    stairs = "" if step is None else f" in steps of {float(step):g}"
    if belief is not None and belief.kind in ("normal", "histogram"):
        if belief.kind == "normal":
            assert belief.deviation is not None
            declared: Normal | Histogram = normal(_place(belief.mean), belief.deviation, low, high)
        else:
            declared = histogram([_place(edge) for edge in belief.edges], belief.shares)
        told = "declared normal, cut to " + shown if belief.kind == "normal" else "declared pieces"
        return (declared if step is None else stepped(declared, low, step)), told + stairs
    if aim.kind in ("", "uniform"):
        if aim.numbers:
            raise UsageError(
                "USE-001", "a uniform prior takes no numbers; the range is the policy's"
            )
        return uniform(low, high, step), f"uniform on {shown}{stairs}"
    prior = _bell(aim, low, high) if aim.kind == "normal" else _bins(aim, low, high)
    described = f"normal, cut to {shown}" if aim.kind == "normal" else "a histogram"
    return (prior if step is None else stepped(prior, low, step)), described + stairs


def _named_values(aim: Attacker) -> Weights:
    values, shares = [v for v, _ in aim.numbers], [s for _, s in aim.numbers]
    given = [s for s in shares if s is not None]
    if given and len(given) < len(shares):
        raise UsageError("USE-001", "either all values of the prior have a share, or none has")
    return weights(values, given or None)


def _bell(aim: Attacker, low: Fraction, high: Fraction) -> Normal:
    if len(aim.numbers) != 2 or any(share is not None for _, share in aim.numbers):
        raise UsageError("USE-001", "a normal prior needs a mean and a deviation", hint=EXAMPLE)
    (mean, _), (deviation, _) = aim.numbers
    return normal(mean, deviation, low, high)


def _bins(aim: Attacker, low: Fraction, high: Fraction) -> Histogram:
    edges, shares = [v for v, _ in aim.numbers], [s for _, s in aim.numbers]
    if len(shares) < 2 or shares[-1] is not None or None in shares[:-1]:
        raise UsageError(
            "USE-001",
            "every edge of a histogram but the last has the share of its bin",
            hint="write it like: histogram(0: 1, 10: 3, 20)",
        )
    if edges[0] < low or edges[-1] > high:
        raise UsageError("USE-001", "the histogram leaves the range that the policy declares")
    return histogram(edges, [s for s in shares if s is not None])


def _step(aim: Attacker, facts: ColumnFacts, catalog: Catalog | None) -> Fraction | None:
    if facts.step is not None:
        return exact(facts.step, "the step of the column")
    table = catalog.table(aim.table) if catalog is not None else None
    kind = table.type_of(aim.column) if table is not None else None
    # A guess of a whole number can be right; that of a real number is only ever near.
    return Fraction(1) if kind is not None and kind.kind in ("INTEGER", "DATE") else None


def attack_lines(attacker: str | Attacker, report: Sequence[Mapping[str, Any]]) -> list[str]:
    """Put a report into sentences."""
    aim = parse_attacker(attacker) if isinstance(attacker, str) else attacker
    lines = [f"attacker: guesses {aim.table}.{aim.column} within {float(aim.radius):g}"]
    for entry in report:
        if entry["guesses"] == "nothing":
            lines.append(f"  {entry['protection']}: {entry['words']}")
            continue
        about = "who is in the data" if entry["guesses"] == "membership" else "the value"
        beside = f", prior {entry['prior_words']}" if "prior_words" in entry else ""
        lines.append(f"  {entry['protection']}: {about}{beside}")
        if entry.get("not_covered"):
            lines.append(f"    {entry['not_covered']}")
        for what, name in (("answer", "this answer"), ("budget", entry["budget_words"])):
            part = entry[what]
            lines.append(f"    {name} (epsilon {part['epsilon']:g}): {part['words']}")
    return lines
