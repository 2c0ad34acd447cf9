"""The ledger of a policy: where it lives, which budgets are in force, and what is left of them.

In: a policy, and where its ledger was asked to be. Out: an open ledger, balances as exact numbers. A
ledger that nobody asked for is started only where none ever was, and that is said aloud.
"""

from __future__ import annotations

import atexit
import logging
import os
import shutil
import tempfile
from collections.abc import Collection
from fractions import Fraction
from pathlib import Path
from typing import Any

from secant.errors import UsageError
from secant.ledger.amounts import DELTA_UNITS, EPSILON_UNITS, Budget
from secant.ledger.anchor import anchor_file
from secant.ledger.store import Ledger
from secant.policy.policy import Policy
from secant.records import frozen

_log = logging.getLogger("secant")


@frozen
class Account:
    """The budget of one protection, exact."""

    epsilon: Fraction
    delta: Fraction
    spent_epsilon: Fraction
    spent_delta: Fraction
    remaining_epsilon: Fraction
    remaining_delta: Fraction
    gamma: Fraction = Fraction(0)
    """The share of databases for which releases of random differential privacy may promise nothing."""
    spent_gamma: Fraction = Fraction(0)

    def to_dict(self) -> dict[str, Any]:
        """Give spent and remaining amounts as plain numbers."""
        entry = {
            "total": {"epsilon": float(self.epsilon), "delta": float(self.delta)},
            "spent": {"epsilon": float(self.spent_epsilon), "delta": float(self.spent_delta)},
            "remaining": {
                "epsilon": float(self.remaining_epsilon),
                "delta": float(self.remaining_delta),
            },
        }
        if self.gamma or self.spent_gamma:
            entry["spent"]["gamma"] = float(self.spent_gamma)
            entry["remaining"]["gamma"] = float(max(Fraction(0), self.gamma - self.spent_gamma))
        return entry


class Accounts(dict[str, Account]):
    """The budget of each protection, by name; prints as the command line shows it."""

    def of(self, names: Collection[str]) -> Accounts:
        """Give the budgets of some protections."""
        return Accounts({name: account for name, account in self.items() if name in names})

    def to_list(self) -> list[dict[str, Any]]:
        """Give one object for each protection, for JSON."""
        return [{"protection": name, **account.to_dict()} for name, account in self.items()]

    def __str__(self) -> str:
        from secant.display.parts import budget_lines

        return "\n".join(budget_lines(self))

    def _repr_html_(self) -> str:
        from secant.display.page import budget_page

        return budget_page(self)


_TEMPORARY_FILE = "of-this-process.ledger"
TEMPORARY = ":memory:"
"""Asked for as the place of a ledger: it is there for this process only."""


def ledger_place(
    policy: Policy, ledger: str | Path | None = None, *, frames: bool = False
) -> str | Path:
    """Say where the ledger lives: as asked, as the policy says, or beside the policy file.

    A policy without a file has none. For frames, which live in this process, the ledger then does so, too.
    """
    if ledger == TEMPORARY:
        return _temporary()
    if ledger is not None:
        return ledger
    if frames and policy.path is None and policy.ledger is None:
        _log.warning(
            "the budget is counted for this process only, and starts anew with the next: pass ledger='FILE' to keep it"
        )
        return _temporary()
    if policy.path is None:
        if policy.ledger is not None:
            return policy.ledger
        raise UsageError(
            "USE-001",
            "a policy without a file needs a place for its ledger",
            hint="pass ledger='FILE' to connect, or ledger=':memory:' to count for this process only",
        )
    if policy.ledger is None:
        return policy.path.with_suffix(".ledger")
    return policy.ledger if "://" in policy.ledger else policy.path.parent / policy.ledger


def _temporary() -> Path:
    """Give a place that goes when this process ends; a file, so that threads and children share it."""
    folder, process = tempfile.mkdtemp(prefix="secant-ledger-"), os.getpid()

    def remove() -> None:
        if os.getpid() == process:
            shutil.rmtree(folder, ignore_errors=True)

    atexit.register(remove)
    return Path(folder) / _TEMPORARY_FILE


def open_ledger(
    policy: Policy,
    location: str | Path,
    *,
    create: bool | None = None,
    restored: bool = False,
) -> Ledger:
    """Open the ledger with the budgets that the policy puts in force. Needs no data source."""
    protections = policy.protections
    opened = Ledger.open(
        location,
        {p.name: Budget.of(p.epsilon, p.delta, p.gamma) for p in protections},
        analysts={
            p.name: {who: Budget.of(*share, p.gamma) for who, share in p.analysts.items()}
            for p in protections
            if p.analysts
        },
        renewals={p.name: p.renewal for p in protections if p.renewal},
        compositions={p.name: p.composition for p in protections if p.composition},
        continues={p.name: p.continues for p in protections if p.continues},
        windows={p.name: p.within for p in protections if p.within is not None},
        retired=policy.retired,
        create=create is not False,
        restored=restored,
    )
    if opened.started and create is None and Path(location).name != _TEMPORARY_FILE:
        # Nobody asked for it: if there was a ledger elsewhere, its spending is not known here.
        where = "on the server" if "://" in str(location) else f"at {location}"
        _log.warning("a new ledger was started %s: nothing is counted as spent yet", where)
    return opened


def ledger_was_started(location: str | Path) -> bool:
    """Say whether there is a ledger file, or what is left of one; of a server, True."""
    if "://" in str(location):
        return True
    return Path(location).exists() or anchor_file(Path(location)).exists()


def accounts_of(ledger: Ledger) -> Accounts:
    """Give the budget of each protection as exact numbers."""
    accounts = Accounts()
    for name, b in ledger.balances().items():
        (e, d), (se, sd), (re, rd) = (
            (Fraction(x.epsilon, EPSILON_UNITS), Fraction(x.delta, DELTA_UNITS))
            for x in (b.budget, b.spent, b.remaining)
        )
        shares = (Fraction(x.gamma, DELTA_UNITS) for x in (b.budget, b.spent))
        accounts[name] = Account(e, d, se, sd, re, rd, *shares)
    return accounts
