"""What an owner allows, held against what is spent (ledger.limit).

In: budgets in force, a state, charges. Out: what is short, or nothing; and balances that say
whether a budget renews. Nothing is written here, and no clock is read: the month is an argument.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from typing import Any

from secant.errors import UsageError
from secant.ledger.amounts import Budget, Charge, Spent, decimals, total
from secant.ledger.composition import BASIC, COMPOSITIONS, TIGHT, Reading, read, surely_covered
from secant.ledger.sliding import read_sliding
from secant.ledger.state import Account, State, spent_of
from secant.policy.windows import Window
from secant.records import frozen

MONTHLY = "monthly"
RENEWALS = (MONTHLY,)
ANYBODY = "*"
"""Stands for all analysts without a budget by name: they have one share together."""


_RANDOM = (
    "this is random differential privacy: nothing is promised for a share γ of the databases that the assumed "
    "distributions draw, and all functions must have been chosen before the first answer was seen"
)


@frozen
class Limits:
    """The budgets in force, as the policy states them."""

    budgets: Mapping[str, Budget]
    """By protection: what all analysts together may take."""
    analysts: Mapping[str, Mapping[str, Budget]] = field(default_factory=dict)
    """By protection and analyst: what one may take; `*` is what all who are not named take together."""
    renewals: Mapping[str, str] = field(default_factory=dict)
    """By protection: `monthly` if the owner declares that the budget comes back each month."""
    compositions: Mapping[str, str] = field(default_factory=dict)
    """By protection: `basic` or `tight`."""
    continues: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """By protection: names that it had before; what they spent counts as spent."""
    windows: Mapping[str, Window] = field(default_factory=dict)
    """By protection: the stretch of time whose worst place has to keep to the budget (ledger.window)."""
    retired: tuple[str, ...] = ()
    """Protections that the owner has given up; what they spent counts nowhere."""

    def __post_init__(self) -> None:
        named = [self.analysts, self.renewals, self.compositions, self.continues, self.windows]
        for protection in [name for names in named for name in names]:
            if protection not in self.budgets:
                raise UsageError("USE-005", f"there is no budget for protection {protection!r}")
        protections = {name.casefold() for name in self.budgets}
        if len(protections) < len(self.budgets):
            raise UsageError(
                "USE-005", "two protections differ only in how their names are written"
            )
        before = [name for names in self.continues.values() for name in names]
        for name in (*before, *self.retired):
            if name.casefold() in protections:
                raise UsageError("USE-005", f"protection {name!r} is in force, and not of the past")
        if not set(self.renewals.values()) <= set(RENEWALS):
            raise UsageError("USE-001", "a budget renews monthly or not at all")
        if not set(self.compositions.values()) <= set(COMPOSITIONS):
            raise UsageError("USE-001", f"a composition is one of: {', '.join(COMPOSITIONS)}")

    def share(self, protection: str, analyst: str) -> Budget | None:
        """Give what one analyst may take; None if only the common budget holds."""
        shares = self.analysts.get(protection, {})
        return shares.get(analyst, shares.get(ANYBODY))

    def sharers(self, protection: str, analyst: str) -> Callable[[str], bool]:
        """Tell who takes from the same share: whoever is not named takes from the common one.

        A name is a claim until there are logins; an invented one must not come with a budget.
        """
        named = {name for name in self.analysts.get(protection, {}) if name != ANYBODY}
        return analyst.__eq__ if analyst in named else lambda other: other not in named

    def unnamed(self, state: State) -> dict[str, Spent]:
        """Give what protections have spent that are neither in force nor accounted for."""
        configured = {name.casefold() for name in (*self.budgets, *self.retired)}
        configured |= {name.casefold() for names in self.continues.values() for name in names}
        return {
            name: spent_of(accounts.values())
            for name, accounts in state.accounts.items()
            if accounts and name.casefold() not in configured
        }

    def read(
        self, protection: str, accounts: Sequence[Account], new: Sequence[Charge], budget: Budget
    ) -> Reading:
        """Read accounts and new charges against a budget, as the protection adds them up."""
        window = self.windows.get(protection)
        if window is not None:
            return read_sliding(accounts, new, budget, window)
        return read(accounts, new, budget, self.composition(protection))

    def surely_covered(
        self, protection: str, accounts: Sequence[Account], new: Sequence[Charge], budget: Budget
    ) -> bool:
        """Say yes only if `read` would say that it fits; quicker, for the time before ε runs short."""
        if protection in self.windows:
            return False
        return surely_covered(accounts, new, budget, self.composition(protection))

    def composition(self, protection: str) -> str:
        """Give the chosen composition; by default the tight one wherever a δ gives it analysis."""
        chosen = self.compositions.get(protection)
        return chosen or (TIGHT if self.budgets[protection].delta else BASIC)


@frozen
class Balance:
    """One account: `remaining` is never negative, also after a budget was cut.

    A release that costs no more than what remains is always granted.
    """

    budget: Budget
    spent: Spent
    """Since the beginning, or since the month began if the budget renews; by `theorem`."""
    lifetime: Spent
    """Since the beginning, added up."""
    theorem: str = "accounting.basic"
    """What `spent` rests on; see the proofs of the ledger's accounting."""
    renewal: str = ""
    month: str = ""
    window: Window | None = None
    """Where the account slides: `spent` is then what its worst stretch of time has taken."""

    @property
    def remaining(self) -> Budget:
        """What is left, rounded down."""
        return Budget(
            max(0, self.budget.epsilon - self.spent.epsilon),
            max(0, self.budget.delta - self.spent.delta),
            max(0, self.budget.gamma - self.spent.gamma),
        )

    def statement(self) -> str:
        """Say what the budget promises; a renewal is never told as plain privacy (ledger.renew)."""
        now = amount_text(self.budget)
        if self.budget.gamma or self.spent.gamma:
            now += f"; {_RANDOM}"
        if self.window is not None:
            return (
                f"In any {self.window} in a row all releases together stay within {now}. Over a longer time they add "
                f"up: so far they take {amount_text(self.lifetime)}."
            )
        if not self.renewal:
            return f"All releases together stay within {now}."
        return (
            f"Renewal declared by the owner: {now} in each calendar month. All releases so far "
            f"take {amount_text(self.lifetime)}, and that sum has no limit: over several months this is "
            f"not differential privacy with {now}."
        )

    def to_dict(self) -> dict[str, Any]:
        """Give the amounts as exact decimal text."""
        amounts = {
            name: decimals(amount.epsilon, amount.delta, amount.gamma)
            for name, amount in (
                ("budget", self.budget),
                ("spent", self.spent),
                ("remaining", self.remaining),
                ("lifetime", self.lifetime),
            )
        }
        fields = {"theorem": self.theorem, "renewal": self.renewal, "month": self.month}
        if self.window is not None:
            fields["window"] = str(self.window)
        return {**amounts, **{name: text or None for name, text in fields.items()}}


def balance(
    state: State, limits: Limits, protection: str, *, month: str, analyst: str | None = None
) -> Balance | None:
    """Give the account of a protection, or of one analyst's share of it if there is one."""
    budget = _budget(limits, protection, analyst)
    if budget is None:
        return None
    within = _within(limits, protection, month)
    accounts = _accounts(state, limits, protection, month=within, analyst=analyst)
    reading = limits.read(protection, accounts, (), budget)
    lifetime = spent_of(_accounts(state, limits, protection, month=None, analyst=analyst))
    renewal = limits.renewals.get(protection, "")
    month = month if renewal else ""
    window = limits.windows.get(protection)
    return Balance(budget, reading.spent, lifetime, reading.theorem, renewal, month, window)


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
            accounts = _accounts(
                state, limits, protection, month=_within(limits, protection, month), analyst=owner
            )
            if limits.surely_covered(protection, accounts, new, budget):
                continue
            reading = limits.read(protection, accounts, new, budget)
            if not reading.fits:
                account = balance(state, limits, protection, month=month, analyst=owner)
                assert account is not None
                whose = protection if owner is None else _whose(limits, protection, owner)
                since = f" in {month}" if account.renewal else ""
                why = f" ({reading.reason})" if not reading.theorem else ""
                short.append(
                    f"{whose}: asked for {amount_text(price)}; left{since}: "
                    f"{amount_text(account.remaining)}{why}"
                )
    return tuple(short)


def _budget(limits: Limits, protection: str, analyst: str | None) -> Budget | None:
    if analyst is None:
        return limits.budgets[protection]
    return limits.share(protection, analyst)


def _within(limits: Limits, protection: str, month: str) -> str | None:
    """Give the month that counts if the budget renews; None if all do."""
    return month if protection in limits.renewals else None


def _accounts(
    state: State, limits: Limits, protection: str, *, month: str | None, analyst: str | None
) -> list[Account]:
    """Give the accounts that count, of one month or of all, of one share or of everybody."""
    whose = None if analyst is None else limits.sharers(protection, analyst)
    also = limits.continues.get(protection, ())
    return list(state.matching(protection, also=also, whose=whose, month=month))


def _whose(limits: Limits, protection: str, analyst: str) -> str:
    if analyst in limits.analysts.get(protection, {}):
        return f"{protection}, share of this analyst"
    return f"{protection}, share of all analysts without one of their own"


def amount_text(amount: Budget | Spent) -> str:
    """Write an amount for a message."""
    parts = decimals(amount.epsilon, amount.delta, amount.gamma)
    shown = [f"ε {parts['epsilon']}"]
    shown += [f"δ {parts['delta']}"] if amount.delta else []
    shown += [f"γ {parts['gamma']}"] if amount.gamma else []
    return ", ".join(shown)
