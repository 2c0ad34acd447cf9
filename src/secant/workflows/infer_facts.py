"""Facts that a question lacks, paid and found privately before it is asked again; for `explain`, assumed.

In: a refusal for a missing range or limit, and what the question may spend. Out: the facts. They are charged before
anything is counted, and written into the ledger when they are found: who asks next does not pay again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

from secant.accuracy.warnings import Caution
from secant.engines.print.print_sql import lower
from secant.engines.watch import about_to_charge
from secant.errors import Refused, UsageError
from secant.evidence import Evidence, document, software
from secant.ledger.amounts import Charge
from secant.ledger.store import Ledger
from secant.noise.events import PureEvent
from secant.plan import nodes as n
from secant.policy.coverage import is_protected
from secant.records import frozen
from secant.release.answer import Answer
from secant.release.evidence import policy_document
from secant.release.inferred_facts import (
    SHARE,
    Found,
    Lacking,
    assumed,
    countable,
    discarded_text,
    find,
    in_force,
    in_outcome,
    lacking_facts,
    may_be_inferred,
    outcome_text,
    recalled,
)
from secant.release.report import Explanation
from secant.runtime.work import limited_work
from secant.sql.bind import bind
from secant.stages.ask import Question
from secant.stages.open import Source, open_snapshot

LONGEST_QUESTION = 500
"""Letters of a question that are kept beside what was found for it."""


@frozen
class Situation:
    """A question that was refused, and where it was asked."""

    refusal: Refused
    question: Question
    source: Source

    def plan(self) -> n.Relation:
        """Give the plan of the question."""
        with limited_work():
            return bind(self.question.text, self.source.catalog, self.question.parameters)

    def lacking(self) -> tuple[Lacking, ...]:
        """Give what the question lacks; raise its refusal where that cannot be found privately."""
        # what is found privately costs all units alike, and some give less
        alike = all(p.personal is None for p in self.question.protections)
        if not alike or not may_be_inferred(self.refusal):
            raise self.refusal
        policy, catalog = self.source.policy, self.source.catalog
        plan, held = self.plan(), self.question.protections
        with open_snapshot(plan, self.source) as snapshot, limited_work():
            lacking = lacking_facts(plan, policy, held, catalog, snapshot.facts)
        if not countable(lacking, policy, catalog):
            raise self.refusal
        return lacking


def find_facts(
    situation: Situation,
    epsilon: Fraction,
    price: Sequence[Charge],
    ledger: Ledger,
    warn: Callable[[Caution], object] | None,
) -> tuple[tuple[Found, ...], Fraction, Caution | None]:
    """Give the facts that a question lacks, and what of its epsilon they cost; from the ledger they cost nothing.

    `price` is what the answer would cost with facts of a usual size: its delta is another one's than that of facts.
    """
    lacking = situation.lacking()
    recorded = recalled((r.status for r in ledger.history()), lacking)
    missing = tuple(x for x in lacking if x not in {fact.lacking for fact in recorded})
    if not missing:
        return recorded, Fraction(0), None
    caution = _told(missing, epsilon * SHARE)
    if warn is not None:
        warn(caution)
    everybody = [p.name for p in situation.question.protections]
    # Whoever cannot pay for the whole question does not pay for its first part.
    deltas = Counter[str]()
    for charge in price:
        deltas[charge.protection] += charge.delta
    whole = [replace(Charge.of(p, epsilon), delta=deltas[p]) for p in everybody]
    ledger.reserve(whole, analyst=situation.question.analyst).give_back()
    paid = epsilon * SHARE
    plan, question = situation.plan(), situation.question
    told = {"facts": len(missing), "for": question.text[:LONGEST_QUESTION]}
    facts = _paid(missing, situation.source, plan, paid, ledger, told, question.analyst)
    return (*recorded, *facts), paid, caution


def _paid(
    missing: tuple[Lacking, ...],
    source: Source,
    plan: n.Relation,
    paid: Fraction,
    ledger: Ledger,
    note: Mapping[str, Any],
    analyst: str = "",
) -> tuple[Found, ...]:
    """Charge for facts, find them, and write them down."""
    names = sorted({x.protection for x in missing})
    charges = [Charge.of_event(p, PureEvent(paid)) for p in names]
    evidence = _evidence(missing, source, paid)
    with (
        open_snapshot(plan, source) as snapshot,
        ledger.reserve(charges, analyst=analyst, note=note, evidence=evidence) as reservation,
    ):
        about_to_charge()
        reservation.mark_sent()

        def count(statement: n.Aggregate) -> tuple[object, ...]:
            return snapshot.session.rows(lower(statement, snapshot.session.dialect))[0]

        facts = find(missing, source.policy, source.catalog, paid, count)
        snapshot.session.confirm()
        reservation.settle(outcome_text(facts))
    return facts


# ── for the owner ───────────────────────────────────────────────────────────────────────────────────


def named(name: str, source: Source) -> Lacking:
    """Give the fact that is called so: `visits.seconds` is the range of a column, `visits` the limit of rows."""
    table, _, column = name.lower().partition(".")
    stored = source.catalog.table(table)
    columns = {c.lower(): kind for c, kind in stored.columns} if stored else {}
    hiding = [p for p in source.policy.protections if is_protected(table, source.policy, (p,))]
    unknown = stored is None or (column and column not in columns)
    if unknown or len(hiding) != 1 or (column and not columns[column].numeric):
        raise UsageError(
            "USE-001",
            f"there is no fact called {name} that can be found privately",
            hint="name a column of numbers (visits.cost), or a table for its limit of rows (visits), "
            "of a table that one protection hides",
        )
    return Lacking(table, column or None, hiding[0].name)


def found_so_far(ledger: Ledger) -> list[dict[str, Any]]:
    """List the facts that were found and not discarded: what, when, for whom, at which price."""
    releases = ledger.history()
    known = in_force(r.status for r in releases)
    latest = {f.lacking: r for r in releases for f in in_outcome(r.status)}
    return [
        {
            **_plain(fact),
            "name": lacking.words,
            "told": str(fact),
            "time": latest[lacking].time,
            "analyst": latest[lacking].analyst,
            "release_id": latest[lacking].release_id,
            "question": latest[lacking].note.get("for"),
        }
        for lacking, fact in known.items()
    ]


def discard(name: str, ledger: Ledger) -> Lacking:
    """Write down that a fact no longer holds: whoever needs it pays for it again. What was spent stays spent."""
    known = in_force(r.status for r in ledger.history())
    fact = next((x for x in known if x.words == name.lower()), None)
    if fact is None:
        raise UsageError(
            "USE-001",
            f"nothing was found for {name}",
            hint="`secant facts` lists what `--discard` may name",
        )
    with ledger.reserve((), note={"discarded": fact.words}) as reservation:
        reservation.mark_sent()
        reservation.settle(discarded_text((fact,)))
    return fact


def find_again(name: str, epsilon: Fraction, source: Source, ledger: Ledger) -> Found:
    """Find one fact, at a price that is all its own; the latest that was found holds."""
    fact = named(name, source)
    if not countable((fact,), source.policy, source.catalog):
        raise UsageError("USE-001", f"{name} cannot be counted person by person")
    with limited_work():
        plan = bind(f'SELECT count(*) FROM "{fact.table}"', source.catalog, None)
    (found,) = _paid((fact,), source, plan, epsilon, ledger, {"facts": 1})
    return found


def _evidence(missing: tuple[Lacking, ...], source: Source, paid: Fraction) -> Evidence:
    """Write down which facts are paid for; a verifier that has no rule for that says so."""
    facts = [{"of": x.words, "protection": x.protection} for x in missing]
    name = ", ".join(x.words for x in missing)
    price = {"epsilon": str(paid), "delta": "0"}
    documents = {
        "text": document({"text": f"facts: {name}", "parameters": None}),
        "plan": document({"kind": "facts", "name": name}),
        "policy": policy_document(source.policy, source.catalog),
        "certificate": document({"kind": "facts", "name": name, "facts": facts, **price}),
    }
    return Evidence(documents, software(), "")


def _told(missing: tuple[Lacking, ...], paid: Fraction) -> Caution:
    description = ", ".join(
        f"range is declared for {x.table}.{x.column}"
        if x.column
        else f"limit is declared for {x.table}"
        for x in missing
    ).replace(", ", ", no ")
    return Caution(
        "WRN-009",
        f"no {description}: found privately, once, with epsilon {float(paid):.4g} of this question",
        "declare what everybody may know in the policy, and all of epsilon goes into the answer",
    )


def relied_upon(answer: Answer, facts: tuple[Found, ...]) -> tuple[Found, ...]:
    """Give the facts found before that an answer rests on."""
    used = (answer.error.get("leaves_out") or {}).get("undeclared", ())
    return tuple(f for f in facts if f.lacking.words in used)


def with_inferred(
    answer: Answer, facts: tuple[Found, ...], paid: Fraction, caution: Caution | None
) -> Answer:
    """Put beside an answer what was found for it: its price, and what it may leave out."""
    if not facts:
        return answer
    guarantee = _priced(answer.guarantee, facts, paid)
    left = dict(answer.error.get("leaves_out") or {})
    left["found"] = [{**_plain(fact), "told": str(fact)} for fact in facts]
    mechanisms = [
        {
            "measure": f"facts of {fact.lacking.table}",
            "mechanism": "permute-and-flip over a public list",
            "epsilon": float(fact.epsilon) if paid else 0.0,
        }
        for fact in facts
    ]
    warnings = answer.warnings if caution is None else (caution, *answer.warnings)
    return replace(
        answer,
        guarantee=guarantee,
        error={**answer.error, "leaves_out": left},
        mechanisms=[*mechanisms, *answer.mechanisms],
        warnings=warnings,
    )


def _plain(fact: Found) -> dict[str, Any]:
    low = None if fact.low is None else float(fact.low)
    numbers = {"low": low, "high": float(fact.high), "epsilon": float(fact.epsilon)}
    return {**fact.to_dict(), **numbers, "level": 0.95}


def assumed_facts(
    situation: Situation, epsilon: Fraction, ledger: Ledger | None
) -> tuple[tuple[Found, ...], Fraction, str]:
    """For `explain`: facts of the ledger, or of a usual size; what they would cost, and a sentence that says which."""
    lacking = situation.lacking()
    recorded = recalled((r.status for r in ledger.history()), lacking) if ledger else ()
    missing = tuple(x for x in lacking if x not in {fact.lacking for fact in recorded})
    lines = [str(fact) for fact in recorded]
    paid = epsilon * SHARE if missing else Fraction(0)
    if missing:
        lines.append(
            f"{_told(missing, paid).message} (truncation.range, truncation.rows). "
            "What follows assumes -1,000 to 1,000, and 1,000 rows per unit; noise grows with what is found."
        )
    return (*recorded, *(assumed(x) for x in missing)), paid, "\n".join(lines)


def explained(explanation: Explanation, description: str) -> Explanation:
    """Put in front of an explanation what it assumes."""
    return replace(
        explanation,
        text=f"{description}\n{explanation.text}",
        record={**explanation.record, "assumes": description},
    )


def paid_by(facts: tuple[Found, ...], paid: Fraction) -> dict[str, Fraction]:
    """Give what finding facts costs each protection."""
    return {fact.lacking.protection: paid for fact in facts}


def _priced(
    guarantees: list[dict[str, Any]], facts: tuple[Found, ...], paid: Fraction
) -> list[dict[str, Any]]:
    prices = paid_by(facts, paid)
    return [
        {**g, "epsilon": float(Fraction(str(g["epsilon"])) + prices[g["protection"]])}
        if g["protection"] in prices
        else g
        for g in guarantees
    ]
