"""What many releases about the same data cost together.

In: the events of a history. Out: exact sums, totals by the tightest theorem that holds, decisions
against a budget. Proofs stand in PROOFS.md beside this file, one section for each id.
"""

from secant.ledger.accounting.accountant import (
    DEFAULT_FILTERS,
    DEFAULT_THEOREMS,
    THEOREMS,
    Accountant,
    Decision,
    Total,
)
from secant.ledger.accounting.basic import basic_composition
from secant.ledger.accounting.filters import FILTERS
from secant.ledger.accounting.tally import tally

__all__ = [
    "DEFAULT_FILTERS",
    "DEFAULT_THEOREMS",
    "FILTERS",
    "THEOREMS",
    "Accountant",
    "Decision",
    "Total",
    "basic_composition",
    "tally",
]
