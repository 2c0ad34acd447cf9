"""A peer charged after the statement had run: whoever broke off in between had the answer for nothing."""

import pytest

from apart import Wrapped
from private_shop import UNIT, open_shop
from secant.errors import BackendError
from secant.ledger import Budget
from secant.ledger.store import Ledger


class Spying(Wrapped):
    """A backend that reads the ledger, with a connection of its own, when a protected statement arrives."""

    def __init__(self, inner, place, fail):
        super().__init__(inner)
        self.place, self.fail, self.seen = place, fail, []

    def rows(self, session, statement):
        if '"orders"' in statement:
            ledger = Ledger.open(self.place, {"people": Budget.of(100_000, 0)})
            (release,) = ledger.history()
            self.seen.append((release.status, float(release.charges[0].epsilon) > 0))
            ledger.close()
            if self.fail:
                raise BackendError("BAK-002", "planted")
        return session.rows(statement)


@pytest.mark.parametrize("fail", [False, True])
def test_the_charge_is_durable_before_the_statement(tmp_path, fail):
    with open_shop(tmp_path, UNIT) as db:
        spy = db._backend = Spying(db._backend, db._place, fail)
        if fail:
            with pytest.raises(BackendError):
                db.sql("SELECT count(*) FROM orders", epsilon=1)
        else:
            db.sql("SELECT count(*) FROM orders", epsilon=1)
        assert spy.seen == [("sent", True)]
        assert db.budget["people"].spent_epsilon == 1
