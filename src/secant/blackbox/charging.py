"""Which protections may pay for a black box, and what the promise then takes on trust.

In: a budget. Out: the same, or a refusal. A protection promises plain differential privacy, which a
random one would weaken; so its owner must have accepted that by name. The charge itself is that of
`secant.stats`, written down as what it is, a `RandomEvent`, whose γ adds up in the ledger like ε.
"""

from __future__ import annotations

from secant.errors import Refused
from secant.stats.budget import Allowance, budget_of

ACCEPTED = "random differential privacy"
"""What an owner lists under `accept` to let releases of this kind draw on a protection."""


def check_budget(budget: object) -> Allowance | None:
    """Refuse early what could not be charged later; reads nothing but the budget."""
    found = budget_of(budget)
    if found is None:
        return None
    if found.protection.personal is not None:
        raise Refused(
            "REF-101",
            f"people under the protection {found.name!r} give different amounts of epsilon",
            hint="ask in SQL, or with secant.stats.personal",
        )
    if ACCEPTED not in found.accept:
        raise Refused(
            "REF-101",
            f"the protection {found.name!r} promises differential privacy, and this is weaker",
            hint=f"the data owner can add {ACCEPTED!r} to `accept`, or leave out the budget",
        )
    if not found.gamma:
        raise Refused(
            "REF-101",
            f"the protection {found.name!r} allows no share gamma of databases without a promise",
            hint=f"the data owner can set `gamma` in [protections.{found.name}]; shares of releases add up",
        )
    return found


def trusted(budget: Allowance | None) -> tuple[str, ...]:
    """Say what the promise takes on trust because of who pays."""
    if budget is None:
        return ()
    found = budget.assumptions()
    if budget.neighbors != "replace":
        found += (f"the number of records is public, also under protection {budget.name!r}",)
    return found
