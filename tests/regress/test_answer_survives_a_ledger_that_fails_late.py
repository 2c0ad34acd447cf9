"""Ours: when the ledger could not be written at the end of a release, the answer was thrown away.

It had been paid for: the charge is kept from the moment before the first statement on.
"""

from secant.errors import BudgetError
from secant.ledger.store import Ledger


def test_a_paid_answer_is_given_although_it_cannot_be_settled(single, monkeypatch):
    def full(ledger, release_id, outcome):
        raise BudgetError("BUD-002", "the disk of the ledger is full")

    before = next(iter(single.budget.values())).spent_epsilon
    monkeypatch.setattr(Ledger, "record_settled", full)
    answer = single.sql("SELECT count(*) AS n FROM orders", epsilon=0.5)
    assert isinstance(answer.rows[0][0], int)
    assert next(iter(single.budget.values())).spent_epsilon > before
    assert single.ledger.history()[-1].status == "sent"
