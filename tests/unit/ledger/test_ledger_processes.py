"""Many processes at one ledger, some of them killed: nothing is lost, nothing is too much."""

from __future__ import annotations

import os
import random
import signal
import sqlite3
import time
from contextlib import closing
from pathlib import Path

import pytest

from chance import LONG
from forking import LEDGERS, end, ledger_location, start
from secant.errors import BudgetError
from secant.ledger import Budget, Charge, Ledger
from secant.ledger.history import releases_of
from secant.ledger.state import State, spent_of

HAMMER_SECONDS = 30.0 if LONG else 2.0
KILLS = 200 if LONG else 10


@pytest.fixture(params=LEDGERS)
def location(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return ledger_location(request, tmp_path)


def check_every_moment(location: str, budgets: dict[str, Budget]) -> None:
    """Read the chain record by record: no budget is exceeded after any of them."""
    with Ledger.open(location, budgets) as ledger:
        ledger.verify()
        records = ledger.records()
    state = State()
    for record in records:
        state.advance([record])
        for protection, budget in budgets.items():
            assert spent_of(state.matching(protection)).within(budget), record.sequence


def test_eight_processes_take_not_one_unit_too_much(location: str, tmp_path: Path) -> None:
    # The budget is used up long before the end, so that most of the time is spent at the limit,
    # where reservations that are given back are fought over.
    budgets = {"rows": Budget(8_000), "units": Budget(6_000, 10**9)}
    options = {"compositions": {"units": "basic"}}
    Ledger.open(location, budgets).close()
    deadline = time.monotonic() + HAMMER_SECONDS

    def hammer(number: int) -> None:
        chance, refusals = random.Random(), 0
        sent = {"rows": 0, "units": 0}
        with Ledger.open(location, budgets, **options) as ledger:
            while time.monotonic() < deadline or refusals < 5:
                charges = [
                    Charge("rows", chance.randint(1, 300)),
                    Charge("units", chance.randint(1, 300), chance.randint(0, 10**6)),
                ]
                try:
                    with ledger.reserve(charges, analyst=str(number)) as reservation:
                        if chance.random() < 0.4:
                            reservation.mark_sent()
                            for charge in charges:
                                sent[charge.protection] += charge.epsilon
                except BudgetError as error:
                    if error.code != "BUD-001":
                        raise
                    refusals += 1
        (tmp_path / f"sent{number}").write_text(f"{sent['rows']} {sent['units']}")

    children = [start(lambda number=number: hammer(number)) for number in range(8)]
    assert [end(child) for child in children] == [0] * 8
    told = [
        [int(part) for part in path.read_text().split()] for path in sorted(tmp_path.glob("sent*"))
    ]
    with Ledger.open(location, budgets, **options) as ledger:
        accounts = ledger.balances()
        assert accounts["rows"].spent.epsilon == sum(rows for rows, _ in told)
        assert accounts["units"].spent.epsilon == sum(units for _, units in told)
        left = min(accounts["rows"].remaining.epsilon, accounts["units"].remaining.epsilon)
        assert left < 300
        with ledger.reserve([Charge("rows", left), Charge("units", left)]) as reservation:
            reservation.mark_sent()
        with pytest.raises(BudgetError):
            ledger.reserve([Charge("rows", 1), Charge("units", 1)])
    check_every_moment(location, budgets)


def test_killed_processes_lose_no_charge(location: str, tmp_path: Path) -> None:
    budgets = {"rows": Budget.of(1_000_000)}
    answers = tmp_path / "answers"
    answers.touch()
    Ledger.open(location, budgets).close()
    chance = random.Random()

    def release_forever() -> None:
        out = os.open(answers, os.O_WRONLY | os.O_APPEND)
        with Ledger.open(location, budgets) as ledger:
            while True:
                with ledger.reserve([Charge.of("rows", 1)], lease_seconds=1) as reservation:
                    if chance.random() < 0.2:
                        continue  # given back
                    reservation.mark_sent()
                    # The answer leaves here: the strictest moment to be killed is before or after.
                    os.write(out, f"{reservation.release_id}\n".encode())

    children = [start(release_forever) for _ in range(3)]
    for _ in range(KILLS):
        time.sleep(chance.uniform(0, 0.05))
        victim = children.pop(chance.randrange(len(children)))
        os.kill(victim, signal.SIGKILL)
        assert end(victim) == -signal.SIGKILL
        children.append(start(release_forever))
    for child in children:
        os.kill(child, signal.SIGKILL)
        end(child)

    with Ledger.open(location, budgets) as ledger:
        ledger.verify()
        releases = {release.release_id: release for release in releases_of(ledger.records())}
        answered = answers.read_text().split()
        assert answered
        assert len(answered) == len(set(answered))
        for release_id in answered:
            assert releases[release_id].status not in ("reserved", "returned")
        time.sleep(1.1)
        ledger.sweep()  # the leases of the dead have run out
        ended = ledger.history()
        assert {release.status for release in ended} <= {"answered", "returned", "lease ran out"}
        paid = {release.release_id for release in ended if release.spent}
        assert set(answered) <= paid
        # A kill can hit only between marking and answering, once for each process.
        assert len(paid) - len(answered) <= KILLS + 3
        assert ledger.balances()["rows"].spent.epsilon == len(paid) * 10**9
        ledger.verify()
    check_every_moment(location, budgets)
    if not location.startswith("postgresql"):
        with closing(sqlite3.connect(location)) as connection:
            assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
