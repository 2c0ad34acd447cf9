"""A ledger that loses charges must say so: one damaged bit in its write-ahead log used to lose them silently.

A ledger was also replaced by a fresh one, with all its budget, when its file was gone.
"""

from __future__ import annotations

import logging
import os
import random
import shutil
import signal
import sqlite3
import time
from collections.abc import Callable
from pathlib import Path

import pytest

import secant
from chance import LONG
from secant.errors import BudgetError
from secant.ledger import Budget, Charge, Ledger, sqlite, store
from secant.ledger import anchor as anchors
from secant.ledger.sqlite import SqliteJournal, SqliteTransaction

DAMAGES = 4000 if LONG else 400
BUDGETS = {"rows": Budget.of(1000)}
STORED = Path(__file__).parents[1] / "data" / "ledgers"


def release(ledger: Ledger) -> str:
    with ledger.reserve([Charge.of("rows", 1)], note={"text": "x" * 100}) as reservation:
        reservation.mark_sent()
    return reservation.release_id


def fill(path: Path, releases: int) -> set[str]:
    """Give the releases whose answers have left."""
    with Ledger.open(path, BUDGETS) as ledger:
        return {release(ledger) for _ in range(releases)}


def lost(path: Path, answered: set[str]) -> bool | None:
    """Say whether charges are lost silently; None if the ledger refuses."""
    try:
        with Ledger.open(path, BUDGETS) as ledger:
            ledger.verify()
            if ledger.started:
                return None  # said aloud
            kept = {entry.release_id for entry in ledger.history() if entry.spent}
            return not answered <= kept
    except BudgetError:
        return None


def flipped(file: Path, chance: random.Random) -> None:
    content = bytearray(file.read_bytes())
    content[chance.randrange(len(content))] ^= 1 << chance.randrange(8)
    file.write_bytes(content)


def truncated(file: Path, chance: random.Random) -> None:
    os.truncate(file, chance.randrange(file.stat().st_size))


def deleted(file: Path, chance: random.Random) -> None:
    file.unlink()


def silent_losses(folder: Path, answered: set[str], place: Path, damages: int) -> tuple[int, int]:
    """Damage copies of a folder's files; give how many lose charges silently, and how many refuse."""
    chance = random.Random()
    silent = refused = 0
    files = sorted(file.name for file in folder.iterdir() if file.stat().st_size)
    for number in range(damages):
        shutil.rmtree(place, ignore_errors=True)
        shutil.copytree(folder, place)
        harm = chance.choices((flipped, truncated, deleted), (8, 2, 1))[0]
        harm(place / files[number % len(files)], chance)
        verdict = lost(place / "shop.ledger", answered)
        silent += verdict is True
        refused += verdict is None
    return silent, refused


def test_no_damage_of_any_file_loses_a_charge_silently(tmp_path: Path) -> None:
    folder = tmp_path / "good"
    folder.mkdir()
    answered = fill(folder / "shop.ledger", 12)
    assert lost(folder / "shop.ledger", answered) is False
    silent, refused = silent_losses(folder, answered, tmp_path / "bad", DAMAGES)
    assert silent == 0
    assert refused > DAMAGES // 3  # the damages do hit something


@pytest.fixture
def hot(tmp_path: Path) -> tuple[Path, set[str]]:
    """A folder whose ledger was killed in the middle of a commit, and what was answered until then."""
    folder = tmp_path / "hot"
    folder.mkdir()
    path, answers = folder / "shop.ledger", tmp_path / "answers"
    answers.touch()
    fill(path, 1)
    chance = random.Random()
    for _ in range(200):
        child = os.fork()
        if child == 0:
            with Ledger.open(path, BUDGETS) as ledger, answers.open("a") as out:
                while True:
                    out.write(release(ledger) + "\n")
                    out.flush()
        time.sleep(chance.uniform(0.02, 0.1))
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        journal = folder / "shop.ledger-journal"
        if journal.exists() and journal.stat().st_size > 1000:
            break
    else:
        raise AssertionError("no kill ever hit a commit")
    return folder, set(answers.read_text().split())


def test_a_commit_that_was_cut_off_comes_back_whole_or_is_refused(
    hot: tuple[Path, set[str]], tmp_path: Path
) -> None:
    folder, answered = hot
    shutil.copytree(folder, tmp_path / "copy")
    assert lost(tmp_path / "copy" / "shop.ledger", answered) is False  # no false alarm
    silent, _ = silent_losses(folder, answered, tmp_path / "bad", DAMAGES // 4)
    assert silent == 0


def test_planted_a_write_ahead_log_without_an_anchor(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # What there was before: the newest records in a side file, and nothing that knows of them.
    settings = ("PRAGMA journal_mode = WAL", "PRAGMA synchronous = FULL")
    monkeypatch.setattr(sqlite, "_SETTINGS", settings)
    folder = tmp_path / "good"
    folder.mkdir()
    with Ledger.open(folder / "shop.ledger", BUDGETS) as ledger:
        answered = {release(ledger) for _ in range(12)}
        kept = tmp_path / "kept"
        shutil.copytree(folder, kept)  # as a kill would leave it
    for file in (kept / "shop.ledger", kept / "shop.ledger-shm", kept / "shop.ledger.anchor"):
        assert file.exists()
    assert silent_losses(kept, answered, tmp_path / "bad", 80)[0] == 0  # the anchor alone sees it
    monkeypatch.setattr(store, "_check_witness", lambda transaction: None)
    monkeypatch.setattr(SqliteTransaction, "check_anchored", lambda self: None)
    assert silent_losses(kept, answered, tmp_path / "bad", 80)[0] > 10


# --- older copies --------------------------------------------------------------------------------


def older_copy(folder: Path) -> tuple[Path, set[str]]:
    path = folder / "shop.ledger"
    answered = fill(path, 3)
    shutil.copy(path, folder / "backup")
    answered |= fill(path, 2)
    shutil.copy(folder / "backup", path)
    return path, answered


def test_an_older_copy_is_refused_until_the_owner_takes_it_for_whole(tmp_path: Path) -> None:
    path, _ = older_copy(tmp_path)
    with pytest.raises(BudgetError) as caught:
        Ledger.open(path, BUDGETS)
    assert caught.value.code == "BUD-007"
    assert "--restored" in caught.value.hint
    with Ledger.open(path, BUDGETS, restored=True) as ledger:
        assert ledger.records()[-1].fields["kind"] == "restored"
        assert ledger.records()[-1].fields["expected"][0] == 15  # the last that was marked as sent
        release(ledger)
    with Ledger.open(path, BUDGETS) as ledger:
        assert ledger.verify().sequence == 14
    shutil.copy(tmp_path / "backup", path)  # once more: the owner's word was for that one time
    with pytest.raises(BudgetError):
        Ledger.open(path, BUDGETS)


def test_planted_a_ledger_that_does_not_look_at_its_anchor(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, answered = older_copy(tmp_path)
    assert lost(path, answered) is None
    monkeypatch.setattr(store, "_check_witness", lambda transaction: None)
    assert lost(path, answered) is True


def test_a_lost_anchor_is_refused_until_the_owner_says_otherwise(tmp_path: Path) -> None:
    path = tmp_path / "shop.ledger"
    fill(path, 2)
    (tmp_path / "shop.ledger.anchor").unlink()
    for _ in range(2):
        with pytest.raises(BudgetError, match="anchor beside the ledger is missing"):
            Ledger.open(path, BUDGETS)
    with Ledger.open(path, BUDGETS, restored=True) as ledger:
        assert ledger.records()[-1].fields["expected"] is None
    fill(path, 1)


def test_a_damaged_chain_is_not_taken_for_whole(tmp_path: Path) -> None:
    path = tmp_path / "shop.ledger"
    fill(path, 3)
    connection = sqlite3.connect(path)
    connection.execute("DROP TRIGGER records_stay")
    connection.execute("DELETE FROM records WHERE sequence = 4")
    connection.commit()
    connection.close()
    with pytest.raises(BudgetError) as caught:
        Ledger.open(path, BUDGETS, restored=True)
    assert caught.value.code == "BUD-003"


# --- a ledger that is gone -----------------------------------------------------------------------

GONE: dict[str, tuple[str, ...]] = {
    "the file": ("shop.ledger",),
    "the file and its journal": ("shop.ledger", "shop.ledger-journal"),
    "all of it": ("shop.ledger", "shop.ledger-journal", "shop.ledger.anchor"),
}


def spend_ten(ledger: Ledger) -> int:
    with ledger.reserve([Charge.of("rows", 10)]) as reservation:
        reservation.mark_sent()
    return 10


@pytest.mark.parametrize("names", GONE.values(), ids=list(GONE))
def test_a_ledger_that_vanishes_while_it_is_open_sells_nothing(
    tmp_path: Path, names: tuple[str, ...]
) -> None:
    with Ledger.open(tmp_path / "shop.ledger", {"rows": Budget.of(10)}) as ledger:
        for name in names:
            (tmp_path / name).unlink(missing_ok=True)
        for _ in range(2):
            with pytest.raises(BudgetError) as caught:
                spend_ten(ledger)
            assert caught.value.code == "BUD-007"
        assert not (tmp_path / "shop.ledger").exists()


def test_a_ledger_that_vanishes_inside_a_transaction_promises_nothing(tmp_path: Path) -> None:
    with Ledger.open(tmp_path / "shop.ledger", {"rows": Budget.of(10)}) as ledger:
        reservation = ledger.reserve([Charge.of("rows", 10)])
        with pytest.raises(BudgetError) as caught, ledger._writing():
            (tmp_path / "shop.ledger").unlink()
        assert caught.value.code == "BUD-007"
        with pytest.raises(BudgetError):
            reservation.mark_sent()


def test_another_file_in_its_place_is_not_taken_for_it(tmp_path: Path) -> None:
    path = tmp_path / "shop.ledger"
    with Ledger.open(path, {"rows": Budget.of(10)}) as ledger:
        shutil.copy(path, tmp_path / "copy")
        (tmp_path / "copy").replace(path)
        with pytest.raises(BudgetError, match="removed or replaced"):
            spend_ten(ledger)


def test_planted_a_ledger_that_does_not_look_for_its_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(SqliteJournal, "_check_file", lambda self: None)
    monkeypatch.setattr(store, "_check_witness", lambda transaction: None)
    path, budgets = tmp_path / "shop.ledger", {"rows": Budget.of(10)}
    with Ledger.open(path, budgets) as ledger:
        for name in GONE["all of it"]:
            (tmp_path / name).unlink(missing_ok=True)
        with Ledger.open(path, budgets) as other:
            assert spend_ten(other) + ledger.balances()["rows"].remaining.epsilon / 10**9 == 20


def test_a_ledger_that_is_gone_is_not_replaced(tmp_path: Path) -> None:
    path = tmp_path / "shop.ledger"
    fill(path, 1)
    path.unlink()
    (tmp_path / "shop.ledger-journal").unlink()
    with pytest.raises(BudgetError) as caught:
        Ledger.open(path, BUDGETS)
    assert caught.value.code == "BUD-007"
    assert "shop.ledger.anchor" in caught.value.message
    assert not path.exists()
    (tmp_path / "shop.ledger.anchor").unlink()  # the owner starts anew
    with Ledger.open(path, BUDGETS) as ledger:
        assert ledger.started
    with Ledger.open(path, BUDGETS) as ledger:
        assert not ledger.started


def test_a_stray_journal_is_not_played_into_a_new_ledger(tmp_path: Path) -> None:
    (tmp_path / "shop.ledger-journal").write_bytes(b"\xd9\xd5\x05\xf9\x20\xa1\x63\xd7" * 100)
    with pytest.raises(BudgetError) as caught:
        Ledger.open(tmp_path / "shop.ledger", BUDGETS)
    assert caught.value.code == "BUD-007"


POLICY = """
[database]
source = "duckdb:shop.duckdb"
[protections.people]
kind = "rows"
tables = ["people"]
epsilon = 10
"""


@pytest.fixture
def policy(tmp_path: Path) -> Path:
    import duckdb

    with duckdb.connect(str(tmp_path / "shop.duckdb")) as connection:
        connection.execute("CREATE TABLE people AS SELECT range AS id FROM range(50)")
    path = tmp_path / "policy.toml"
    path.write_text(POLICY)
    return path


def test_a_new_ledger_is_said_aloud(policy: Path, caplog: pytest.LogCaptureFixture) -> None:
    for expected in (1, 0):
        caplog.clear()
        with caplog.at_level(logging.WARNING, "secant"), secant.connect(policy=policy) as db:
            db.sql("SELECT count(*) FROM people", epsilon=1)
            assert db.ledger.started is bool(expected)
        assert (
            sum("a new ledger was started" in entry.message for entry in caplog.records) == expected
        )


def test_a_ledger_is_not_started_where_that_is_not_wanted(policy: Path) -> None:
    with secant.connect(policy=policy, create=False) as db:
        with pytest.raises(BudgetError) as caught:
            db.sql("SELECT count(*) FROM people", epsilon=1)
        assert caught.value.code == "BUD-002"
    assert not policy.with_suffix(".ledger").exists()
    with secant.connect(policy=policy, create=True) as db:
        db.sql("SELECT count(*) FROM people", epsilon=1)


def test_the_files_are_the_owners_only(policy: Path) -> None:
    os.umask(os.umask(0o022))
    with secant.connect(policy=policy) as db:
        db.sql("SELECT count(*) FROM people", epsilon=1)
    files = [file for file in policy.parent.iterdir() if ".ledger" in file.name]
    assert len(files) == 3
    assert {file.stat().st_mode & 0o777 for file in files} == {0o600}


# --- kills between the steps ---------------------------------------------------------------------


def killed(action: Callable[[], None]) -> None:
    """Run an action in a child that is killed inside of it."""
    child = os.fork()
    if child == 0:
        try:
            action()
        finally:
            os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL


def die(*_: object, **__: object) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


STEPS: dict[str, tuple[object, str, bool]] = {
    # where, before which step, and whether the step itself still happens
    "before the anchor": (store.Ledger, "record_sent", False),
    "before the anchor is written": (anchors, "_line", False),
    "before the draft is the anchor": (anchors.Path, "replace", False),
    "after the draft is the anchor": (anchors.Path, "replace", True),
    "after the anchor": (SqliteJournal, "attest", True),
}


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("version", ["none", "new", "v2", "v3"])
def test_a_kill_between_two_steps_is_no_false_alarm(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str, version: str
) -> None:
    path = tmp_path / "shop.ledger"
    if version == "v2":
        shutil.copy(STORED / "v2.ledger", path)
    elif version != "none":
        fill(path, 0 if version == "new" else 2)
    budgets = {**BUDGETS, "customers": Budget.of(5, "1e-8"), "cells": Budget.of(10)}
    where, name, happens = STEPS[step]
    real = getattr(where, name)

    def step_or_die(*arguments: object, **options: object) -> None:
        if happens:
            real(*arguments, **options)
        die()

    def use() -> None:
        monkeypatch.setattr(where, name, step_or_die)
        with Ledger.open(path, budgets) as ledger:
            release(ledger)

    killed(use)
    with Ledger.open(path, budgets) as ledger:
        ledger.verify()
        release(ledger)
        ledger.verify()
    with Ledger.open(path, budgets, create=False) as ledger:
        ledger.verify()
