"""What an owner allows, held against what is spent (L-LIMIT).

In: budgets in force, a state, charges. Out: what is short, or nothing; and balances that say
whether a budget renews. Nothing is written here, and no clock is read: the month is an argument.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from secant.errors import UsageError
from secant.ledger.amounts import Budget, Charge, Spent, decimals, total
from secant.ledger.composition import BASIC, COMPOSITIONS, TIGHT, read, surely_covered
from secant.ledger.state import Account, State, spent_of

MONTHLY = "monthly"
RENEWALS = (MONTHLY,)
ANYBODY = "*"
"""Stands for every analyst that has no budget by name."""


@dataclass(frozen=True, slots=True)
class Limits:
    """The budgets in force, as the policy states them."""

    budgets: Mapping[str, Budget]
    """By protection: what all analysts together may take."""
    analysts: Mapping[str, Mapping[str, Budget]] = field(default_factory=dict)
    """By protection and analyst: what one of them may take; `*` stands for those not named."""
    renewals: Mapping[str, str] = field(default_factory=dict)
    """By protection: `monthly` if the owner declares that the budget comes back each month."""
    compositions: Mapping[str, str] = field(default_factory=dict)
    """By protection: `basic` or `tight`."""

    def __post_init__(self) -> None:
        for protection in [*self.analysts, *self.renewals, *self.compositions]:
            if protection not in self.budgets:
                raise UsageError("USE-005", f"there is no budget for protection {protection!r}")
        if not set(self.renewals.values()) <= set(RENEWALS):
            raise UsageError("USE-001", "a budget renews monthly or not at all")
        if not set(self.compositions.values()) <= set(COMPOSITIONS):
            raise UsageError("USE-001", f"a composition is one of: {', '.join(COMPOSITIONS)}")

    def share(self, protection: str, analyst: str) -> Budget | None:
        """Give what one analyst may take; None if only the common budget holds."""
        shares = self.analysts.get(protection, {})
        return shares.get(analyst, shares.get(ANYBODY))

    def composition(self, protection: str) -> str:
        """Give the chosen composition; by default the tight one wherever a δ gives it room."""
        chosen = self.compositions.get(protection)
        return chosen or (TIGHT if self.budgets[protection].delta else BASIC)


@dataclass(frozen=True, slots=True)
class Balance:
    """One account: `remaining` is never negative, also after a budget was cut.

    A release that costs no more than what remains is always granted.
    """

    budget: Budget
    spent: Spent
    """Since the beginning, or since the month began if the budget renews; by `theorem`."""
    lifetime: Spent
    """Since the beginning, added up."""
    theorem: str = "A-BASIC"
    """What `spent` rests on; see the proofs of ledger.accounting."""
    renewal: str = ""
    month: str = ""

    @property
    def remaining(self) -> Budget:
        """What is left, rounded down."""
        return Budget(
            max(0, self.budget.epsilon - self.spent.epsilon),
            max(0, self.budget.delta - self.spent.delta),
        )

    def statement(self) -> str:
        """Say what the budget promises; a renewal is never told as plain privacy (L-RENEW)."""
        now = _text(self.budget)
        if not self.renewal:
            return f"All releases together stay within {now}."
        return (
            f"Renewal declared by the owner: {now} in each calendar month. All releases so far "
            f"take {_text(self.lifetime)}, and that sum has no limit: over several months this is "
            f"not differential privacy with {now}."
        )

    def to_dict(self) -> dict[str, Any]:
        """Give the amounts as exact decimal text."""
        amounts = {
            name: decimals(amount.epsilon, amount.delta)
            for name, amount in (
                ("budget", self.budget),
                ("spent", self.spent),
                ("remaining", self.remaining),
                ("lifetime", self.lifetime),
            )
        }
        told = {"theorem": self.theorem, "renewal": self.renewal, "month": self.month}
        return {**amounts, **{name: text or None for name, text in told.items()}}


def balance(
    state: State, limits: Limits, protection: str, *, month: str, analyst: str | None = None
) -> Balance | None:
    """Give the account of a protection, or of one analyst's share of it if there is one."""
    budget = _budget(limits, protection, analyst)
    if budget is None:
        return None
    accounts = _accounts(state, limits, protection, month=month, analyst=analyst)
    reading = read(accounts, (), budget, limits.composition(protection))
    lifetime = spent_of(state.matching(protection, analyst=analyst))
    renewal = limits.renewals.get(protection, "")
    return Balance(
        budget, reading.spent, lifetime, reading.theorem, renewal, month if renewal else ""
    )


def shortfalls(
    state: State, limits: Limits, charges: Sequence[Charge], *, analyst: str, month: str
) -> tuple[str, ...]:
    """Say what is missing for these charges, one line an account; nothing if all are covered."""
    short = []
    for protection, price in total(charges).items():
        new = [charge for charge in charges if charge.protection == protection]
        for owner in (None, analyst):
            budget = _budget(limits, protection, owner)
            if budget is None:
                continue
            accounts = _accounts(state, limits, protection, month=month, analyst=owner)
            composition = limits.composition(protection)
            if surely_covered(accounts, new, budget, composition):
                continue
            reading = read(accounts, new, budget, composition)
            if not reading.fits:
                account = balance(state, limits, protection, month=month, analyst=owner)
                assert account is not None
                whose = protection if owner is None else f"{protection}, share of this analyst"
                since = f" in {month}" if account.renewal else ""
                why = f" ({reading.reason})" if not reading.theorem else ""
                short.append(
                    f"{whose}: asked for {_text(price)}; left{since}: "
                    f"{_text(account.remaining)}{why}"
                )
    return tuple(short)


def _budget(limits: Limits, protection: str, analyst: str | None) -> Budget | None:
    if analyst is None:
        return limits.budgets[protection]
    return limits.share(protection, analyst)


def _accounts(
    state: State, limits: Limits, protection: str, *, month: str, analyst: str | None
) -> list[Account]:
    """Give the accounts that count: those of this month if the budget renews, else all."""
    within = month if protection in limits.renewals else None
    return list(state.matching(protection, analyst=analyst, month=within))


def _text(amount: Budget | Spent) -> str:
    parts = decimals(amount.epsilon, amount.delta)
    return f"ε {parts['epsilon']}" + (f", δ {parts['delta']}" if amount.delta else "")
