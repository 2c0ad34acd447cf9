"""Budget for a black box: held before the protected data are touched, and kept afterwards (I6).

In: a purse, ε, δ, γ. Out: a reservation, marked as sent. A protection promises plain differential
privacy, which a random one would weaken; so its owner must have accepted that by name, and the
charge is written down as what it is, a `RandomEvent`, whose γ adds up in the ledger like ε. Without a
purse nobody is charged.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from fractions import Fraction
from typing import Any, Protocol

from secant.errors import Refused, UsageError
from secant.ledger.amounts import Charge
from secant.ledger.loose_papers import loose_papers
from secant.ledger.store import Ledger
from secant.terms.events import RandomEvent

ACCEPTED = "random differential privacy"
"""What an owner lists under `accept` to let releases of this kind draw on a protection."""
_PARTS = ("name", "analyst", "neighbors", "accept", "gamma", "ledger", "assumptions")


class Purse(Protocol):
    """A protection that can be charged, as `db.protection(NAME)` gives it."""

    @property
    def name(self) -> str:
        """Name the protection."""
        ...

    @property
    def analyst(self) -> str:
        """Name who asks; empty if nobody is told apart."""
        ...

    @property
    def neighbors(self) -> str:
        """Give the relation that the protection is stated in, `add-remove` or `replace`."""
        ...

    @property
    def accept(self) -> tuple[str, ...]:
        """Give the assumptions that the owner accepts by name."""
        ...

    @property
    def gamma(self) -> Fraction:
        """Give the share of databases that all releases of this kind may leave out together."""
        ...

    @property
    def ledger(self) -> Callable[[], Ledger]:
        """Open the ledger that keeps its budget, or give the open one."""
        ...

    def assumptions(self) -> tuple[str, ...]:
        """Say what a release on loose records takes on trust."""
        ...


def check_purse(purse: Purse | None) -> None:
    """Refuse early what could not be charged later; reads nothing but the purse."""
    if purse is None:
        return
    if not all(hasattr(purse, part) for part in _PARTS):
        raise UsageError(
            "USE-001",
            "a budget is a protection of an open connection",
            hint="pass budget=db.protection(NAME), with db = secant.connect(…)",
        )
    if getattr(getattr(purse, "protection", None), "personal", None) is not None:
        raise Refused(
            "REF-101",
            f"people under the protection {purse.name!r} give different amounts of epsilon",
            hint="ask in SQL, or with secant.stats.personal",
        )
    if ACCEPTED not in purse.accept:
        raise Refused(
            "REF-101",
            f"the protection {purse.name!r} promises differential privacy, and this is weaker",
            hint=f"the data owner can add {ACCEPTED!r} to `accept`, or leave out the budget",
        )
    if not purse.gamma:
        raise Refused(
            "REF-101",
            f"the protection {purse.name!r} allows no share gamma of databases without a promise",
            hint=f"the data owner can set `gamma` in [protections.{purse.name}]; shares of releases add up",
        )


def trusted(purse: Purse | None) -> tuple[str, ...]:
    """Say what the promise takes on trust because of who pays."""
    if purse is None:
        return ()
    found = purse.assumptions()
    if purse.neighbors != "replace":
        found += (f"the number of records is public, also under protection {purse.name!r}",)
    return found


@contextmanager
def charged(
    purse: Purse | None,
    epsilon: Fraction,
    delta: Fraction,
    gamma: Fraction,
    *,
    facts: Mapping[str, Any],
    noise: object,
) -> Iterator[str | None]:
    """Hold the price and mark it as sent; inside the block data may be touched.

    `facts` say which function is released and how its sensitivity was sampled: all of it is public.
    """
    if purse is None:
        yield None
        return
    charge = Charge.of(purse.name, epsilon, delta, event=RandomEvent(epsilon, delta, gamma))
    note = {"kind": "black box"}
    told = {"neighbors": purse.neighbors, "gamma": gamma, **facts}
    protection = getattr(purse, "protection", None)
    name = str(facts["function"])
    papers = loose_papers("black box", name, told, noise, protection, (epsilon, delta))
    hold = purse.ledger().reserve
    with hold([charge], analyst=purse.analyst, note=note, papers=papers) as permit:
        permit.mark_sent()
        yield permit.release_id
