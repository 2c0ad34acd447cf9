"""Ledgers of earlier versions are read, and carried on when they are written to."""

from __future__ import annotations

import os
import shutil
import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from secant.errors import BudgetError
from secant.evidence import KINDS, Evidence, digest
from secant.ledger import Anchor, Budget, Charge, Ledger
from secant.ledger.export import check_export
from secant.ledger.records import VERSION
from secant.policy.windows import Span, Window

STORED = Path(__file__).parents[2] / "data" / "ledgers"
BUDGETS = {"customers": Budget.of(5, "1e-8"), "cells": Budget.of(10)}
BASIC = {"customers": "basic"}
END_OF_V1 = Anchor(12, "a974708291d90086e974de5c6b11159fb12f4e6fabc445a0e11f7df1b10a9cd3")


def version_of(path: Path) -> int:
    with closing(sqlite3.connect(path)) as connection:
        return int(connection.execute("PRAGMA user_version").fetchone()[0])


@pytest.fixture
def version_1(tmp_path: Path) -> Path:
    """A ledger that the first version wrote, and nobody has touched since."""
    path = tmp_path / "shop.ledger"
    shutil.copy(STORED / "v1.ledger", path)
    return path


def test_every_earlier_version_has_a_stored_ledger() -> None:
    assert sorted(path.name for path in STORED.glob("*.ledger")) == [
        f"v{number}.ledger" for number in range(1, VERSION)
    ]


def test_version_1_is_read_without_being_changed(version_1: Path) -> None:
    with Ledger.open(version_1, BUDGETS, compositions=BASIC) as ledger:
        accounts = ledger.balances()
        assert (accounts["customers"].spent.epsilon, accounts["customers"].spent.delta) == (
            875_000_000,
            300_000_000,
        )
        assert accounts["cells"].spent.epsilon == 2_000_000_001
        assert ledger.verify() == END_OF_V1
        assert [release.status for release in ledger.history()] == [
            "answered",
            "returned",
            "failed",
            "reserved",
            "sent",
        ]
        assert ledger.history()[1].note == {"label": "Grüße \U0001f512"}
        assert check_export(ledger.export()) == END_OF_V1
        assert len(list(ledger.export("csv"))) == 1 + 12 + 2  # two releases have two charges
    assert version_of(version_1) == 1


def test_version_1_is_carried_on_by_the_first_write(version_1: Path) -> None:
    with Ledger.open(version_1, BUDGETS, compositions=BASIC) as ledger:
        with ledger.reserve([Charge.of("customers", 1)], analyst="ada") as reservation:
            reservation.mark_sent()
        accounts = ledger.balances()
        # The unsent lease of version 1 ran out and came back; the sent one stays spent.
        assert accounts["customers"].spent.epsilon == 1_625_000_000
        assert accounts["cells"].spent.epsilon == 1_250_000_001
        kinds = [record.fields["kind"] for record in ledger.records()[12:]]
        assert kinds == ["schema", "return", "settle", "reserve", "sent", "settle"]
        ledger.verify(END_OF_V1)  # the old records are still the same chain
    assert version_of(version_1) == VERSION
    with Ledger.open(version_1, BUDGETS) as ledger:
        ledger.verify(END_OF_V1)


def test_a_process_that_was_reading_version_1_goes_on_after_the_migration(version_1: Path) -> None:
    with (
        Ledger.open(version_1, BUDGETS, compositions=BASIC) as old,
        Ledger.open(version_1, BUDGETS, compositions=BASIC) as new,
    ):
        before = old.balances()["customers"].spent.epsilon
        new.reserve([Charge.of("customers", 1)]).mark_sent()
        assert old.balances()["customers"].spent.epsilon == before + 10**9 - 250_000_000
        old.reserve([Charge.of("customers", 1)]).mark_sent()
        assert new.verify() == old.verify()


def test_a_migration_that_is_cut_short_leaves_version_1(version_1: Path) -> None:
    with Ledger.open(version_1, BUDGETS, compositions=BASIC) as ledger:
        # More than there is: nothing is reserved, but the migration itself is kept.
        with pytest.raises(BudgetError):
            ledger.reserve([Charge.of("customers", 1000)])
        assert version_of(version_1) == VERSION
    child_path = version_1.with_name("second.ledger")
    shutil.copy(STORED / "v1.ledger", child_path)
    child = os.fork()
    if child == 0:
        ledger = Ledger.open(child_path, BUDGETS, compositions=BASIC)
        with ledger._writing():
            os._exit(0)  # killed inside the transaction that migrates
    os.waitpid(child, 0)
    assert version_of(child_path) == 1
    with Ledger.open(child_path, BUDGETS) as ledger:
        assert ledger.verify() == END_OF_V1


def test_a_broken_version_1_is_not_carried_on(version_1: Path) -> None:
    with closing(sqlite3.connect(version_1)) as connection:
        connection.execute("DELETE FROM records WHERE sequence = 8")
        connection.commit()
    with pytest.raises(BudgetError) as caught:
        Ledger.open(version_1, BUDGETS)
    assert caught.value.code == "BUD-003"
    assert version_of(version_1) == 1


def test_version_2_gives_up_its_write_ahead_log_and_gets_an_anchor(tmp_path: Path) -> None:
    path = tmp_path / "shop.ledger"
    shutil.copy(STORED / "v2.ledger", path)
    end = Anchor(12, "ec42997eb862fefcc96883270185ec953ba592e8ae9016c0bb92433cccdf575c")
    with Ledger.open(path, BUDGETS, compositions=BASIC) as ledger:
        accounts = ledger.balances()
        assert (accounts["customers"].spent.epsilon, accounts["cells"].spent.epsilon) == (
            875_000_000,
            750_000_000,
        )
        assert ledger.verify() == end
    assert version_of(path) == 2
    assert not path.with_name("shop.ledger.anchor").exists()  # reading changes nothing
    with Ledger.open(path, BUDGETS, compositions=BASIC) as ledger:
        with ledger.reserve([Charge.of("customers", 1)]) as reservation:
            reservation.mark_sent()
        assert ledger.verify(end).sequence == 18
    assert version_of(path) == VERSION
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("delete",)
    path.with_name("shop.ledger.anchor").unlink()
    with pytest.raises(BudgetError) as caught:
        Ledger.open(path, BUDGETS)
    assert caught.value.code == "BUD-007"


def test_version_3_is_carried_on_and_keeps_streams_from_then_on(tmp_path: Path) -> None:
    path = tmp_path / "shop.ledger"
    for end in ("", ".anchor"):
        shutil.copy(STORED / f"v3.ledger{end}", f"{path}{end}")
    end_of_v3 = Anchor(12, "0fa67e5e98d76e9ab166516c6c8d196877cab566f712ee9f1122c4535bd46aea")
    with Ledger.open(path, BUDGETS, compositions=BASIC) as ledger:
        assert ledger.verify() == end_of_v3
        assert ledger.stream("visits") is None
        assert version_of(path) == 3
        ledger.declare_stream("visits", {"form": 1}, [Charge.of("cells", 1)])
        assert ledger.draw_stream("visits", 1, [{"a": 5}])
        ledger.verify(end_of_v3)
    assert version_of(path) == VERSION
    with Ledger.open(path, BUDGETS) as ledger:
        found = ledger.stream("visits")
        assert found is not None
        assert (found.through, found.values) == (1, {"a": 5})


def test_version_4_is_carried_on_and_takes_charges_of_periods_from_then_on(tmp_path: Path) -> None:
    path = tmp_path / "shop.ledger"
    for end in ("", ".anchor"):
        shutil.copy(STORED / f"v4.ledger{end}", f"{path}{end}")
    end_of_v4 = Anchor(10, "c5ca3a68a4cd8f250cc247fd2381a6b30cc248d458f238001c656cae5e57b28a")
    span = Span("number", 0, 10, 1, True, 5, 5)
    with Ledger.open(path, BUDGETS, compositions=BASIC, windows={"cells": Window(5)}) as ledger:
        assert ledger.verify() == end_of_v4
        assert version_of(path) == 4
        assert ledger.stream("visits").values == {"a": 6}
        assert (
            ledger.balances()["cells"].spent.epsilon == 10**9
        )  # without periods: in every stretch
        charge = replace(Charge.of("cells", 1), span=span)
        ledger.declare_stream("recent", {"form": 1}, [charge])
        assert ledger.balances()["cells"].spent.epsilon == 2 * 10**9
        ledger.verify(end_of_v4)
    assert version_of(path) == VERSION


def test_version_5_is_carried_on_and_keeps_papers_from_then_on(tmp_path: Path) -> None:
    path = tmp_path / "shop.ledger"
    for end in ("", ".anchor"):
        shutil.copy(STORED / f"v5.ledger{end}", f"{path}{end}")
    end_of_v5 = Anchor(9, "e4829ea8a41bf666f6272a0d51485b7b2b8c76f2f57348ea4a5d59782599bfa0")
    evidence = Evidence({kind: f'"{kind}"' for kind in KINDS}, "0.1.0", "snapshot 7")
    with Ledger.open(path, BUDGETS, compositions=BASIC, windows={"cells": Window(5)}) as ledger:
        assert ledger.verify() == end_of_v5
        assert ledger.paper(digest('"text"')) is None
        assert version_of(path) == 5
        with ledger.reserve([Charge.of("customers", 1)], evidence=evidence) as reservation:
            reservation.mark_sent()
        assert [r.papers.get("data") for r in ledger.history()][-1] == "snapshot 7"
        assert ledger.paper(evidence.fields["text"]) == '"text"'
        ledger.verify(end_of_v5)
    assert version_of(path) == VERSION
