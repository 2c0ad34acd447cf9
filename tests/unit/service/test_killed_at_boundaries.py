"""A service is killed at each boundary of a release, always exactly there, while another process wants the same ledger.

Boundaries are hooks that a forked child puts around functions of its own copy; the product has no place for them. The
child stops at the boundary and says so, the other process is let go, and only then the child is killed: no kill misses.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from clinic_service import COUNT, POLICY, service_at

from forking import LEDGERS, end, ledger_location, start
from secant.errors import SecantError
from secant.ledger import Budget, Charge, Ledger
from secant.ledger.history import releases_of
from secant.ledger.postgres import PostgresTransaction
from secant.ledger.reserve import Reservation
from secant.ledger.sqlite import SqliteTransaction
from secant.release import draw as drawing
from secant.service.asking import Question
from secant.service.remembered import Remembered
from secant.service.users import User

ADA = User("ada", "analyst")
BUDGETS = {"rows": Budget.of(10)}
Stop = Callable[[], None]


def before(owner: Any, name: str) -> Callable[[Stop], None]:
    """Stop before a function is called."""

    def put(stop: Stop) -> None:
        real = getattr(owner, name)
        setattr(owner, name, lambda *given, **named: (stop(), real(*given, **named))[1])

    return put


def after(owner: Any, name: str) -> Callable[[Stop], None]:
    """Stop after a function has done its work, before anybody sees its value."""

    def put(stop: Stop) -> None:
        real = getattr(owner, name)
        setattr(owner, name, lambda *given, **named: (real(*given, **named), stop())[0])

    return put


def uncommitted(kind: str) -> Callable[[Stop], None]:
    """Stop after a record of some kind was written, before it is committed."""

    def put(stop: Stop) -> None:
        for owner in (SqliteTransaction, PostgresTransaction):
            real = owner.append

            def append(self: Any, record: Any, *, real: Any = real, **named: Any) -> None:
                real(self, record, **named)
                if record.fields["kind"] == kind:
                    stop()

            owner.append = append

    return put


def attesting(stop: Stop) -> None:
    """Stop where `sent` is committed, and nothing beside the ledger says so."""
    real = Ledger.record_sent

    def record_sent(self: Ledger, release_id: str) -> None:
        before(self._journal, "attest")(stop)
        real(self, release_id)

    Ledger.record_sent = record_sent


@dataclass(frozen=True)
class Boundary:
    """Where a service is killed, and what the books say from then on."""

    put: Callable[[Stop], None]
    status: str | None
    """Of the release; None where the chain does not know it."""
    again: str = "SRV-003"
    """What the same request gets afterwards: it is not known how it ended, or the same answer."""

    @property
    def is_spent(self) -> bool:
        """Whether the charge stays: anything may have been sent (I6)."""
        return self.status in ("sent", "answered")


BOUNDARIES = {
    "before the budget is reserved": Boundary(before(Ledger, "reserve"), None),
    "reserved, not committed": Boundary(uncommitted("reserve"), None),
    "reserved": Boundary(after(Ledger, "reserve"), "reserved"),
    "sent, not committed": Boundary(uncommitted("sent"), "reserved"),
    "sent, not attested": Boundary(attesting, "sent"),
    "sent": Boundary(after(Reservation, "mark_sent"), "sent"),
    "statements have run": Boundary(after(drawing, "_released"), "sent"),
    "before it is settled": Boundary(before(Ledger, "record_settled"), "sent"),
    "settled, not committed": Boundary(uncommitted("settle"), "sent"),
    "settled": Boundary(after(Ledger, "record_settled"), "answered"),
    "before the answer is stored": Boundary(before(Remembered, "keep"), "answered"),
    "stored, not told": Boundary(after(Remembered, "keep"), "answered", again="the answer"),
}


@pytest.fixture(params=LEDGERS)
def location(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return ledger_location(request, tmp_path)


def open_ledger(location: str) -> Ledger:
    return Ledger.open(location, BUDGETS, compositions={"rows": "basic"})


@pytest.mark.parametrize("name", BOUNDARIES)
def test_a_kill_at_a_boundary(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, location: str, name: str
) -> None:
    boundary = BOUNDARIES[name]
    policy = POLICY + f"\n[ledger]\nlocation = {location!r}\n"
    open_ledger(location).close()
    waiting, go = os.pipe()

    def victim() -> None:
        def stop() -> None:
            os.write(told, b".")
            while True:
                time.sleep(60)

        boundary.put(stop)
        service = service_at(tmp_path, policy)
        service.ask(ADA, Question(COUNT, epsilon=1), key="k", reuse=False).result()

    def other() -> None:
        """Another process that has the ledger open already, and releases something meanwhile."""
        with open_ledger(location) as ledger:
            os.read(waiting, 1)
            with ledger.reserve([Charge.of("rows", 1)], analyst="bob") as reservation:
                reservation.mark_sent()

    neighbor = start(other)
    reached, told = os.pipe()
    killed = start(victim)
    os.close(told)  # so that a child that ends elsewhere is noticed
    arrived = os.read(reached, 1)
    os.write(go, b".")
    os.kill(killed, signal.SIGKILL)
    ends = end(killed), end(neighbor)
    for pipe in (reached, waiting, go):
        os.close(pipe)
    assert (arrived, ends) == (b".", (-signal.SIGKILL, 0))

    with open_ledger(location) as ledger:
        ledger.verify()
        found = {r.analyst: r.status for r in releases_of(ledger.records())}
        assert found == {"bob": "answered"} | ({"ada": boundary.status} if boundary.status else {})
        # What is reserved is held until its lease is over: nobody else can take it meanwhile.
        assert spent(ledger) == 1 + (boundary.status is not None)

    def again() -> None:
        service = service_at(tmp_path, policy)
        try:
            answer = (
                service.ask(ADA, Question(COUNT, epsilon=1), key="k", reuse=False).result().answer
            )
            (tmp_path / "again").write_text(f"the answer {answer.release_id}")
        except SecantError as error:
            (tmp_path / "again").write_text(error.code)
        service.close()

    assert end(start(again)) == 0
    said = (tmp_path / "again").read_text()
    assert said.startswith(boundary.again)

    for owner in (SqliteTransaction, PostgresTransaction):
        monkeypatch.setattr(owner, "now", lambda self: time.time() + 7 * 86_400)
    with open_ledger(location) as ledger:
        ledger.sweep()
        ledger.verify()
        releases = releases_of(ledger.records())
        mine = [release for release in releases if release.analyst == "ada"]
        assert len(releases) == 1 + len(mine) == 1 + (boundary.status is not None)
        assert [release.spent for release in mine] == [boundary.is_spent] * len(mine)
        assert spent(ledger) == 1 + boundary.is_spent
        if boundary.again == "the answer":
            assert said == f"the answer {mine[0].release_id}"


def spent(ledger: Ledger) -> float:
    return float(ledger.balances()["rows"].spent.epsilon) / 10**9
