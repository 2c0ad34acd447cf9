"""Budgets, charges and the durable record of every release."""

from secant.ledger.amounts import Budget, Charge, Spent
from secant.ledger.history import Release
from secant.ledger.limits import Balance, Limits
from secant.ledger.records import Anchor
from secant.ledger.reserve import Reservation
from secant.ledger.store import Ledger

__all__ = [
    "Anchor",
    "Balance",
    "Budget",
    "Charge",
    "Ledger",
    "Limits",
    "Release",
    "Reservation",
    "Spent",
]
