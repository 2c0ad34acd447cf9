"""Who pays for a statistic or a black box: a protection of an open connection, charged before data are touched.

In: a protection, the way to its ledger. Out: a reservation that is durable. What the protection hides
is compared with what a release on loose values hides; what is taken on trust is named.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import field
from fractions import Fraction
from typing import Any

from secant.errors import UsageError
from secant.evidence import Evidence, document, software
from secant.ledger.amounts import Charge
from secant.ledger.reserve import Reservation
from secant.ledger.store import Ledger
from secant.noise.events import ApproximateEvent, Event, PureEvent, RandomEvent
from secant.noise.mechanisms.gaussian import NormalNoise
from secant.noise.mechanisms.laplace import GlobalNoise
from secant.noise.mechanisms.selection import Choice
from secant.noise.mechanisms.smooth import SmoothNoise
from secant.plan.serialize import plain_value
from secant.policy.policy import Protection
from secant.records import frozen
from secant.stats.results import ADD_REMOVE, REPLACE, Cost, Neighbors


@frozen
class Done:
    """What a charge is for: what is computed, what is publicly known of it, and the noise that it gets."""

    name: str
    noise: object = None
    """None where several draws share the charge."""
    facts: Mapping[str, Any] = field(default_factory=dict)
    gamma: Fraction = Fraction(0)
    """The share of databases that a black box makes no promise for; nothing else has one."""


@frozen
class Allowance:
    """What `db.protection(NAME)` gives: a protection together with the ledger that it spends from."""

    protection: Protection
    ledger: Callable[[], Ledger]
    """Opens the ledger, or gives the open one."""
    not_covered: tuple[str, ...] = ()
    """Other protections of the policy: a release on loose values is not charged to them."""
    analyst: str = ""
    accept: tuple[str, ...] = ()
    """Assumptions that the owner accepts by name."""
    in_proportion: bool = False
    """Whether a release costs everybody in proportion to what they give; else it costs all alike."""

    @property
    def name(self) -> str:
        """The name of the protection."""
        return self.protection.name

    @property
    def neighbors(self) -> Neighbors:
        """The neighbor relation that the protection is stated in."""
        return REPLACE if self.protection.kind == "rows" and self.protection.replace else ADD_REMOVE

    @property
    def gamma(self) -> Fraction:
        """The share of databases that releases of random differential privacy may leave out together."""
        return self.protection.gamma

    def assumptions(self) -> tuple[str, ...]:
        """Say what a release on loose values takes on trust."""
        one = "row"
        if self.protection.kind == "unit" and self.protection.unit is not None:
            one = f"unit of {'.'.join(self.protection.unit)}"
        assumptions = [f"no {one} under protection {self.name!r} has more than one of the values"]
        if self.in_proportion:
            assumptions.append(
                "the epsilon beside each value is in proportion to what its unit gives"
            )
        if self.not_covered:
            assumptions.append("the protections " + ", ".join(self.not_covered) + " are not meant")
        return tuple(assumptions)

    def reserve(
        self, epsilon: Fraction, delta: Fraction = Fraction(0), *, done: Done
    ) -> Reservation:
        """Hold the price, or raise BUD-001. Nothing may be read before its `mark_sent()` returns."""
        price = epsilon, delta
        offers = self.protection.personal
        if offers is not None and not self.in_proportion:
            epsilon /= (
                offers.least
            )  # what costs all alike must be affordable to those who give least
        if done.gamma:
            kind, note = "black box", {"kind": "black box"}
            event: Event = RandomEvent(epsilon, delta, done.gamma)
            details: dict[str, Any] = {"gamma": done.gamma}
        else:
            kind, note = "statistic", {"statistic": done.name}
            event = ApproximateEvent(epsilon, delta) if delta else PureEvent(epsilon)
            details = {"in proportion": self.in_proportion}
        charge = Charge.of(self.name, epsilon, delta, event=event)
        facts = {"neighbors": self.neighbors, **details, **done.facts}
        evidence = loose_evidence(kind, done.name, facts, done.noise, self.protection, price)
        return self.ledger().reserve([charge], analyst=self.analyst, note=note, evidence=evidence)


def budget_of(budget: object) -> Allowance | None:
    """Give the budget of a call, or None where the release is charged to nobody."""
    if budget is None:
        return None
    if not isinstance(budget, Allowance):
        raise UsageError(
            "USE-001",
            "a budget is a protection of an open connection",
            hint="Pass budget=db.protection(NAME), with db = secant.connect(…).",
        )
    if budget.protection.kind == "window":
        raise UsageError(
            "USE-005",
            f"the protection {budget.name!r} hides stretches of time: only streams are charged to it",
        )
    if budget.protection.kind not in ("rows", "unit"):
        raise UsageError(
            "USE-005", f"the protection {budget.name!r} hides how far values move, not whole values"
        )
    return budget


def neighbors_of(neighbors: object, budget: Allowance | None) -> Neighbors:
    """Give the relation of a call: the one asked for, the budget's, or add/remove."""
    own = budget.neighbors if budget is not None else ADD_REMOVE
    if neighbors is None:
        return own
    for relation in (ADD_REMOVE, REPLACE):
        if neighbors == relation:
            if budget is not None and relation != own:
                raise UsageError(
                    "USE-005", f"the protection {budget.name!r} is stated for {own} neighbors"
                )
            return relation
    raise UsageError("USE-001", "neighbors are 'add-remove' or 'replace'")


@contextmanager
def paid(
    budget: Allowance | None,
    epsilon: Fraction,
    done: Done,
    *,
    delta: Fraction = Fraction(0),
) -> Iterator[Cost]:
    """Charge durably, then let the data be read (I6); what was reserved then stays spent."""
    if budget is None:
        yield Cost(None, float(epsilon), float(delta))
        return
    with budget.reserve(epsilon, delta, done=done) as reservation:
        reservation.mark_sent()
        yield Cost(budget.name, float(epsilon), float(delta), reservation.release_id)


# ── the papers of releases that no plan describes: statistics of loose values, and black boxes ─────


def loose_evidence(
    kind: str,
    name: str,
    facts: Mapping[str, Any],
    noise: object,
    protection: object,
    price: tuple[Fraction, Fraction],
) -> Evidence:
    """Write down what is computed (`kind`, `name`), its public facts, and the noise that goes on it.

    Nobody names a version of loose values.
    """
    values = {key: plain_value(value) for key, value in facts.items()}
    costs = {key: str(value) for key, value in zip(("epsilon", "delta"), price, strict=True)}
    documents = {
        "text": document({"text": f"{kind}: {name}", "parameters": None}),
        "plan": document({"kind": kind, "name": name, "facts": values}),
        "policy": document({"protections": [plain_value(protection)]}),
        "certificate": document(
            {"kind": kind, "name": name, "facts": values, "noise": _noise(noise), **costs}
        ),
    }
    return Evidence(documents, software(), "")


def _noise(noise: object) -> dict[str, str]:
    if isinstance(noise, GlobalNoise):
        return {"kind": "laplace", "size": str(noise.scale)}
    if isinstance(noise, NormalNoise):
        return {"kind": "normal", "size": str(noise.sigma)}
    if isinstance(noise, Choice):
        return {"kind": "choice", "sharpness": str(noise.sharpness)}
    if isinstance(noise, SmoothNoise):
        return {"kind": "smooth", "beta": str(noise.beta), "rate": str(noise.rate)}
    return {"kind": "other"}
