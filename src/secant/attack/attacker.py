"""What each protection of a policy leaves to an attacker: for an answer, for all answers so far, for the whole budget.

In: an attacker, the policy, what an answer would be charged and would read, and what was charged before. Out: one
record for each protection and question (a value, or who is in the data), and sentences. Ranges, norms and priors come
from the policy; no data is read.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any

from secant.attack.beliefs import ASSUMED
from secant.attack.chances import Aimed, Amount, Chance, Reads, aimed, chance
from secant.attack.goals import Allowed, Attacker, goal_text, parse_attacker
from secant.attack.guess import membership_at, percent
from secant.attack.odds import added_at_most
from secant.errors import Refused, UsageError
from secant.policy.coverage import tables_of
from secant.policy.policy import Policy, Protection
from secant.records import frozen
from secant.schema.catalog import Catalog

NOT_READ = "the question does not read it, so its answer adds nothing"
_DELTA = "single answers are not bounded, because delta is not 0"
PARTS = ("answer", "spent", "together", "budget")
"""For what a guess is judged: this answer, all answers so far, both, the whole budget."""


@frozen
class Charged:
    """What was charged to a protection before, added up since its beginning."""

    epsilon: Fraction = Fraction(0)
    delta: Fraction = Fraction(0)
    gamma: Fraction = Fraction(0)
    """The share of databases for which releases of random differential privacy promise nothing."""


@frozen
class Question:
    """One thing that is guessed, under one protection: how well, for given amounts."""

    guesses: str
    bound: Callable[[Sequence[Amount]], Chance]
    reads_it: Callable[[Amount], bool]
    facts: Mapping[str, Any]


def attack_report(
    attacker: str | Attacker,
    policy: Policy,
    guarantees: Sequence[Mapping[str, Any]],
    catalog: Catalog | None = None,
    *,
    reads: Reads | None = None,
    charged: Mapping[str, Charged] | None = None,
) -> list[dict[str, Any]]:
    """Say, protection by protection, what an answer, all answers so far and the whole budget let an attacker guess.

    Args:
        attacker: The text of `--attacker`, or what `parse_attacker` made of it.
        policy: The policy in force.
        guarantees: What the answer would be charged: `protection`, `epsilon` and `delta` of each.
        catalog: Tells whether a column holds whole numbers or dates, which then move by steps of 1, or text.
        reads: By table, the columns that the question reads; None where that is not known.
        charged: By protection, what was charged before.
    """
    aim = parse_attacker(attacker) if isinstance(attacker, str) else attacker
    _must_exist(aim, policy, catalog)
    entries = []
    for guarantee in guarantees:
        protection = _named(policy, str(guarantee["protection"]))
        answer = Amount(_exactly(guarantee["epsilon"]), _exactly(guarantee["delta"]), reads)
        before = (charged or {}).get(protection.name, Charged())
        for question in questions_of(aim, policy, protection, catalog):
            entries.append(_entry(aim, protection, question, answer, before))
    return entries


def allowed_epsilon(
    attacker: Attacker,
    policy: Policy,
    protection: Protection,
    catalog: Catalog | None = None,
    *,
    reads: Reads | None = None,
    delta: Fraction = Fraction(0),
    charged: Charged | None = None,
) -> Fraction | None:
    """Give the largest ε that a further answer may cost a protection so that no more is guessed than is allowed.

    None where this attacker sets no limit: the question tells nothing of what is guessed, or nothing is hidden.
    """
    if attacker.allowed is None:
        raise UsageError(
            "USE-001",
            "the attacker does not say how much is allowed",
            hint='end it with "at most 30%"',
        )
    _must_exist(attacker, policy, catalog)
    before = charged or Charged()
    limits = []
    for question in questions_of(attacker, policy, protection, catalog):
        probe = Amount(Fraction(1), delta, reads)
        if question.guesses == "nothing" or not question.reads_it(probe):
            continue
        limits.append(_left(attacker.allowed, question, before, reads, delta))
    return min((f for f in limits if f is not None), default=None)


def _named(policy: Policy, name: str) -> Protection:
    named = policy.protection(name)
    assert named is not None
    return named


def _exactly(value: object) -> Fraction:
    # A float is meant as it prints.
    return Fraction(Decimal(repr(value))) if isinstance(value, float) else Fraction(str(value))


def _must_exist(aim: Attacker, policy: Policy, catalog: Catalog | None) -> None:
    for leaf in aim.attributes():
        if catalog is not None:
            table = catalog.table(leaf.table)
            exists = table is not None and table.type_of(leaf.column) is not None
        else:
            exists = leaf.column in policy.facts(leaf.table).columns
        if not exists:
            raise UsageError("USE-001", f"there is no column {leaf.table}.{leaf.column} to guess")
    if catalog is not None and catalog.table(aim.table) is None:
        raise UsageError("USE-001", f"there is no table {aim.table} to guess about")


# ── what is guessed ──────────────────────────────────────────────────────────────────────────────


def questions_of(
    aim: Attacker, policy: Policy, protection: Protection, catalog: Catalog | None
) -> Iterable[Question]:
    """Give what the attacker guesses of what a protection hides: a goal, who is in the data, or both."""
    if aim.goal is not None:
        yield _value(aimed(aim, policy, protection, catalog), protection)
    if aim.member is not None:
        yield _member(aim.member, aim.table, policy, protection)


def _value(aim: Aimed, protection: Protection) -> Question:
    secrets = list(aim.secrets.values())
    hidden = aim.hidden()
    reasons = list(dict.fromkeys(s.open_because for s in secrets if s.open_because))
    marked = sorted({s.aim.table for s in secrets} & set(protection.public_rows))
    facts: dict[str, Any] = {}
    if marked:
        names = ", ".join(marked)
        facts["not_covered"] = f"rows of {names} that the owner marks public are not covered"
    if not hidden:
        facts["words"] = "; ".join(reasons)
        return Question("nothing", lambda amounts: chance(aim, amounts), lambda a: False, facts)
    if reasons:
        facts["open"] = reasons
    alone = hidden[0].described if len(secrets) == 1 else ""
    named = [f"{s.aim.name} {s.described}" for s in hidden]
    facts["prior_words"] = alone or "; ".join(dict.fromkeys(named))
    if aim.loose:
        facts["at_most_before"] = True
    if any(s.described.endswith(ASSUMED) for s in hidden):
        facts["assumed"] = True
    kind = "value" if protection.kind == "cells" else "attribute"
    return Question(
        kind,
        lambda amounts: chance(aim, amounts),
        lambda amount: any(amount.touches(s) for s in hidden),
        facts,
    )


def _member(prior: Fraction, table: str, policy: Policy, protection: Protection) -> Question:
    covered = tables_of(policy, protection)

    def bound(amounts: Sequence[Amount]) -> Chance:
        touching = [a for a in amounts if reads_it(a)]
        epsilon = sum((a.epsilon for a in touching), Fraction(0))
        delta = sum((a.delta for a in touching), Fraction(0))
        # With `replace` somebody else stands in the row instead: the odds move as for one step.
        membership = membership_at(epsilon, prior, delta)
        added = (
            None
            if membership.posterior is None
            else max(0.0, membership.posterior - membership.prior)
        )
        least = max(membership.prior, 1 - membership.prior)
        return Chance(
            membership.prior,
            membership.posterior,
            membership.on_average,
            added,
            max(0.0, membership.on_average - least),
            added_at_most(epsilon) if not delta else None,
        )

    def reads_it(amount: Amount) -> bool:
        if amount.reads is None:
            return True
        if protection.kind == "unit":
            return any(name in covered for name in amount.reads)
        return table in amount.reads

    if protection.kind == "cells":
        reason = "who is in the data is public to this protection"
        return Question("nothing", bound, lambda a: False, {"words": reason})
    if protection.kind == "window":
        reason = "who is in the data at all is not hidden by this protection, only what lies within a stretch of time"
        return Question("nothing", bound, lambda a: False, {"words": reason})
    if table not in covered:
        reason = f"{table} is not among its tables, so it is public to this protection"
        return Question("nothing", bound, lambda a: False, {"words": reason})
    return Question("membership", bound, reads_it, {})


# ── the record ───────────────────────────────────────────────────────────────────────────────────


def _entry(
    aim: Attacker,
    protection: Protection,
    question: Question,
    answer: Amount,
    before: Charged,
) -> dict[str, Any]:
    report: dict[str, Any] = {
        "protection": protection.name,
        "kind": protection.kind,
        "guesses": question.guesses,
        # A budget that comes back has no whole: what is said holds for one period of it.
        "budget_words": f"the whole {protection.renewal} budget".replace("  ", " "),
        **question.facts,
    }
    if question.guesses == "nothing":
        return report
    spent = Amount(before.epsilon, before.delta)
    amounts = {
        "answer": [answer],
        "spent": [spent],
        "together": [spent, answer],
        "budget": [Amount(protection.epsilon, protection.delta)],
    }
    if not before.epsilon and not before.delta and not before.gamma:
        amounts = {name: some for name, some in amounts.items() if name in ("answer", "budget")}
    for name, some in amounts.items():
        report[name] = _part(question, some)
        if before.gamma and name in ("spent", "together"):
            report[name] |= _exceptional(before.gamma)
    if not question.reads_it(answer):
        report["answer"]["words"] = NOT_READ
    if aim.allowed is not None:
        report["allowed"] = _allowed(aim.allowed, question, before)
    return report


def _part(question: Question, amounts: Sequence[Amount]) -> dict[str, Any]:
    bounded = question.bound(amounts)
    delta = sum((a.delta for a in amounts), Fraction(0))
    return {
        "epsilon": float(sum((a.epsilon for a in amounts), Fraction(0))),
        "delta": float(delta),
        "prior": bounded.prior,
        "posterior": bounded.posterior,
        "advantage": bounded.advantage,
        "on_average": bounded.on_average,
        "on_average_advantage": bounded.on_average_advantage,
        "any_advantage": bounded.any_advantage,
        "words": _sentence(question, bounded),
    }


def _exceptional(gamma: Fraction) -> dict[str, Any]:
    description = (
        f"not bounded: releases of random differential privacy are among them, and for a share {float(gamma):g} "
        "of all databases these promise nothing"
    )
    nothing = dict.fromkeys(
        ("posterior", "advantage", "on_average", "on_average_advantage", "any_advantage"), None
    )
    return {**nothing, "words": description}


def _sentence(question: Question, bounded: Chance) -> str:
    member = question.guesses == "membership"
    if bounded.prior is None:
        if bounded.advantage is not None:
            return (
                f"at most {percent(bounded.advantage, up=True)} more than before, whatever that was"
            )
        if bounded.on_average_advantage is not None:
            more = percent(bounded.on_average_advantage, up=True)
            return f"at most {more} more than before on average, whatever that was; {_DELTA}"
        return "not bounded: the policy declares no range"
    at_most = "at most " if question.facts.get("at_most_before") else ""
    start = f"from {at_most}{percent(bounded.prior, up=bool(at_most))}"
    if bounded.posterior is not None:
        text = f"{start} to at most {percent(bounded.posterior, up=True)}"
        if question.facts.get("assumed") and bounded.any_advantage is not None:
            text += f"; at most {percent(bounded.any_advantage, up=True)} more for any other belief"
        return text
    if bounded.on_average is None:
        return "not bounded: the policy declares no range"
    right = "told right, in or out," if member else "guessed right"
    return f"{right} with at most {percent(bounded.on_average, up=True)} on average; {_DELTA}"


# ── how much is allowed ──────────────────────────────────────────────────────────────────────────


def reached(allowed: Allowed, bounded: Chance) -> float | None:
    """Give the number that is held against what is allowed; None if it is not bounded."""
    if allowed.advantage:
        return bounded.on_average_advantage if allowed.on_average else bounded.advantage
    return bounded.on_average if allowed.on_average else bounded.posterior


def _left(
    allowed: Allowed,
    question: Question,
    before: Charged,
    reads: Reads | None,
    delta: Fraction,
) -> Fraction | None:
    """Give the largest ε of one further answer, after what was charged before (attack.inverse)."""
    if before.gamma:
        return Fraction(0)
    spent = Amount(before.epsilon, before.delta)
    if reached(allowed, question.bound([spent, Amount(Fraction(0), delta, reads)])) is None:
        raise Refused("REF-107", "what is guessed has no bound here", hint=_why(allowed, question))

    def bound(epsilon: Fraction) -> float:
        chance_reached = reached(allowed, question.bound([spent, Amount(epsilon, delta, reads)]))
        return 1.0 if chance_reached is None else chance_reached

    # A chance is compared as the nearest float below, so that never more is promised.
    return largest_epsilon(_float_down(allowed.share), bound)


def _why(allowed: Allowed, question: Question) -> str:
    if question.bound([Amount(Fraction(1))]).prior is None and not allowed.advantage:
        return 'no prior is declared: allow an advantage instead, "advantage at most 10%"'
    if not allowed.on_average:
        return 'with a positive delta only averages are bounded: write "on average", or ask with delta 0'
    return "declare a range of the column"


def _float_down(share: Fraction) -> float:
    nearest = float(share)
    return nearest if Fraction(nearest) <= share else math.nextafter(nearest, 0)


def _allowed(allowed: Allowed, question: Question, before: Charged) -> dict[str, Any]:
    """Say which ε keeps to what is allowed: from the beginning, and after all that was charged."""
    entry: dict[str, Any] = {"share": float(allowed.share), "epsilon": None, "left": None}
    try:
        whole = _left(allowed, question, Charged(), None, Fraction(0))
        left = _left(allowed, question, before, None, Fraction(0))
    except Refused as refusal:
        return {**entry, "words": f"{allowed}: {refusal.message}; {refusal.hint}"}
    if whole is None or left is None:
        return {**entry, "words": f"{allowed}: every epsilon keeps to that"}
    entry |= {"epsilon": float(whole), "left": float(left)}
    if not whole:
        prior = question.bound([]).prior
        prior_text = "" if prior is None else f" (before any answer: {percent(prior)})"
        return {**entry, "words": f"{allowed}: no epsilon keeps to that{prior_text}"}
    description = f"{allowed}: epsilon {float(whole):.9g} in all"
    if before != Charged():
        more = f"at most {float(left):.9g} more" if left else "nothing is left of it"
        description += f", and {float(before.epsilon):g} is spent: {more}"
    return {**entry, "words": description}


def attack_lines(attacker: str | Attacker, report: Sequence[Mapping[str, Any]]) -> list[str]:
    """Put a report into sentences."""
    aim = parse_attacker(attacker) if isinstance(attacker, str) else attacker
    goals = [] if aim.goal is None else [goal_text(aim.goal)]
    goals += [f"who is in {aim.table}"] if aim.member is not None else []
    lines = [f"attacker: guesses {' and '.join(goals)}"]
    for entry in report:
        if entry["guesses"] == "nothing":
            lines.append(f"  {entry['protection']}: {entry['words']}")
            continue
        about = {"membership": "who is in the data", "attribute": "somebody's value"}
        beside = f", prior {entry['prior_words']}" if "prior_words" in entry else ""
        lines.append(f"  {entry['protection']}: {about.get(entry['guesses'], 'the value')}{beside}")
        lines += [f"    {entry['not_covered']}"] if "not_covered" in entry else []
        lines += [f"    {reason}" for reason in entry.get("open", ())]
        names = {
            "answer": "this answer",
            "spent": "all answers so far",
            "together": "both together",
            "budget": entry["budget_words"],
        }
        for what in PARTS:
            if what in entry:
                part = entry[what]
                lines.append(f"    {names[what]} (epsilon {part['epsilon']:g}): {part['words']}")
        lines += [f"    {entry['allowed']['words']}"] if "allowed" in entry else []
    return lines


# ── the largest ε that keeps a guess at or below what is allowed (attack.inverse) ──────────────────


UNITS = 10**9
"""Found to a billionth of ε, which is what a ledger counts in."""
MOST = 1_000 * UNITS
NEAR = 1e-9
"""A bound that is this close below what is allowed is close enough."""


def largest_epsilon(allowed: float, bound: Callable[[Fraction], float]) -> Fraction | None:
    """Give the largest ε at which the bound is not above what is allowed; None if every one is.

    >>> float(largest_epsilon(0.3, lambda e: 0.1 / (0.1 + 0.9 * math.exp(-e))))
    1.349926716
    """

    def at(units: int) -> float:
        return bound(Fraction(units, UNITS))

    low, reached = 0, at(0)
    if reached > allowed:
        return Fraction(0)
    high, over = UNITS, at(UNITS)
    while over <= allowed:
        if high >= MOST:
            return None
        low, reached = high, over
        high = min(8 * high, MOST)
        over = at(high)
    turn = 0
    while high - low > 1 and allowed - reached > NEAR * allowed:
        turn += 1
        middle = (low + high) // 2
        if (
            turn % 3
        ):  # logarithms of odds are nearly straight lines; every third time halve all the same
            middle = _between(low, high, (_odds(reached), _odds(over)), _odds(allowed))
        found = at(middle)
        if found <= allowed:
            low, reached = middle, found
        else:
            high, over = middle, found
    return Fraction(low, UNITS)


def _odds(share: float) -> float:
    inside = min(max(share, 1e-300), 1 - 1e-16)
    return math.log(inside) - math.log1p(-inside)


def _between(low: int, high: int, ends: tuple[float, float], target: float) -> int:
    span = ends[1] - ends[0]
    part = (target - ends[0]) / span if span > 0 else 0.5
    index = low + math.floor((high - low) * min(max(part, 0.0), 1.0))
    return min(max(index, low + 1), high - 1)
