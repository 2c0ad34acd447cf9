"""A ledger file in bad circumstances: a typed error, and no answer leaves unpaid."""

from __future__ import annotations

import os
import resource
import shutil
import sqlite3
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from secant.errors import BudgetError
from secant.ledger import Budget, Charge, Ledger
from secant.ledger.sqlite import SqliteJournal

BUDGETS = {"rows": Budget.of(1000)}
NOBODY = 65534


def fill(path: Path, releases: int = 20) -> None:
    with Ledger.open(path, BUDGETS) as ledger:
        for _ in range(releases):
            with ledger.reserve([Charge.of("rows", 1)], note={"text": "x" * 200}) as reservation:
                reservation.mark_sent()


def in_child(action: Callable[[], None]) -> int:
    """Run an action in a forked child; give its exit status."""
    child = os.fork()
    if child == 0:
        status = 99
        try:
            action()
            status = 0
        except AssertionError as error:
            print(error, file=sys.stderr)
            status = 1
        finally:
            os._exit(status)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def expect(code: str, words: str, use: Callable[[], object]) -> None:
    with pytest.raises(BudgetError) as caught:
        use()
    assert caught.value.code == code
    assert words in caught.value.message


def as_nobody(action: Callable[[], None]) -> int:
    """Run an action without rights; root would be allowed everything."""

    def demoted() -> None:
        if os.getuid() == 0:
            os.setgroups([])
            os.setgid(NOBODY)
            os.setuid(NOBODY)
        action()

    return in_child(demoted)


@pytest.fixture
def open_path(tmp_path: Path) -> Path:
    """A ledger's path whose folders anybody may enter."""
    for folder in [tmp_path, *tmp_path.parents[:3]]:
        if folder.stat().st_uid == os.getuid() and folder != Path("/tmp"):
            folder.chmod(0o755)
    return tmp_path / "shop.ledger"


def test_a_read_only_ledger_can_be_read_and_sells_nothing(open_path: Path) -> None:
    fill(open_path)
    open_path.parent.chmod(0o777)
    open_path.chmod(0o444)
    open_path.with_name("shop.ledger.anchor").chmod(0o444)

    def use() -> None:
        with Ledger.open(open_path, BUDGETS) as ledger:
            assert ledger.balances()["rows"].spent.epsilon == 20 * 10**9
            expect("BUD-002", "read-only", lambda: ledger.reserve([Charge.of("rows", 1)]))

    assert as_nobody(use) == 0


def test_a_ledger_that_may_not_be_read(open_path: Path) -> None:
    fill(open_path)
    open_path.chmod(0o000)
    refused = as_nobody(
        lambda: expect("BUD-002", "cannot be opened", lambda: Ledger.open(open_path, BUDGETS))
    )
    assert refused == 0


def test_a_folder_that_may_not_be_written(open_path: Path) -> None:
    open_path.parent.chmod(0o555)  # also for tests that do not run as root, who owns the folder
    try:
        refused = as_nobody(
            lambda: expect("BUD-002", "cannot be opened", lambda: Ledger.open(open_path, BUDGETS))
        )
    finally:
        open_path.parent.chmod(0o755)
    assert refused == 0
    assert not open_path.exists()


def test_a_path_that_leads_nowhere(tmp_path: Path) -> None:
    expect("BUD-002", "cannot be", lambda: Ledger.open(tmp_path / "no" / "such", BUDGETS))
    expect("BUD-002", "cannot be", lambda: Ledger.open(tmp_path, BUDGETS))


def test_a_locked_ledger(tmp_path: Path) -> None:
    path = tmp_path / "shop.ledger"
    fill(path)
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with Ledger.open(path, BUDGETS, wait_seconds=0.1) as ledger:
            assert ledger.balances()["rows"].spent.epsilon == 20 * 10**9  # reading goes on
            expect("BUD-002", "locked", lambda: ledger.reserve([Charge.of("rows", 1)]))
            other.execute("ROLLBACK")
            ledger.reserve([Charge.of("rows", 1)]).give_back()


def test_a_ledger_that_is_locked_between_reserving_and_sending(tmp_path: Path) -> None:
    path = tmp_path / "shop.ledger"
    with Ledger.open(path, BUDGETS, wait_seconds=0.1) as ledger:
        with (
            ledger.reserve([Charge.of("rows", 1)]) as reservation,
            closing(sqlite3.connect(path, isolation_level=None)) as other,
        ):
            other.execute("BEGIN IMMEDIATE")
            expect("BUD-002", "locked", reservation.mark_sent)  # so nothing may be sent
            other.execute("ROLLBACK")
            reservation.mark_sent()
        assert ledger.balances()["rows"].spent.epsilon == 10**9


def test_an_empty_file_is_no_new_ledger(tmp_path: Path) -> None:
    path = tmp_path / "shop.ledger"
    path.touch()
    expect("BUD-003", "empty", lambda: Ledger.open(path, BUDGETS))
    assert path.stat().st_size == 0


def test_files_that_are_no_ledger(tmp_path: Path) -> None:
    text = tmp_path / "notes.txt"
    text.write_text("not a database at all, but longer than a header " * 50)
    expect("BUD-003", "no ledger", lambda: Ledger.open(text, BUDGETS))
    other = tmp_path / "other.db"
    with closing(sqlite3.connect(other)) as connection:
        connection.execute("CREATE TABLE records (sequence, body, digest)")
        connection.commit()
    expect("BUD-002", "not a Secant ledger", lambda: Ledger.open(other, BUDGETS))


@pytest.mark.parametrize("share", [0.02, 0.1, 0.3, 0.5, 0.8, 0.97])
def test_a_truncated_file(tmp_path: Path, share: float) -> None:
    path = tmp_path / "shop.ledger"
    fill(path, 40)
    os.truncate(path, int(path.stat().st_size * share))

    def use() -> None:
        with Ledger.open(path, BUDGETS) as ledger:
            ledger.verify()

    with pytest.raises(BudgetError) as caught:
        use()
    assert caught.value.code in ("BUD-002", "BUD-003")


def test_a_lost_table(tmp_path: Path) -> None:
    path = tmp_path / "shop.ledger"
    fill(path)
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("DROP TABLE head")
        connection.commit()
    expect("BUD-003", "lost", lambda: Ledger.open(path, BUDGETS))


def test_damaged_bytes_show(tmp_path: Path) -> None:
    path = tmp_path / "shop.ledger"
    fill(path, 40)
    content = path.read_bytes()
    place = content.rindex(b'"kind":"reserve"')
    path.write_bytes(content[:place] + b'"kind":"rEserve"' + content[place + 16 :])
    with pytest.raises(BudgetError) as caught, Ledger.open(path, BUDGETS) as ledger:
        ledger.verify()
    assert caught.value.code == "BUD-003"


def test_a_full_disk_lets_no_answer_leave_unpaid(tmp_path: Path) -> None:
    path, answers = tmp_path / "shop.ledger", tmp_path / "answers"
    fill(path, 2)

    def use() -> None:
        with Ledger.open(path, BUDGETS) as ledger:
            # From here on a file cannot grow beyond this: every further write fails.
            limit = 60_000
            resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
            failures = []
            for _ in range(200):
                try:
                    with ledger.reserve([Charge.of("rows", 1)], note={"text": "x" * 500}) as held:
                        held.mark_sent()
                        with answers.open("a") as file:
                            file.write(held.release_id + "\n")
                except BudgetError as error:
                    failures.append(error.code)
            assert len(failures) > 100, failures
            assert set(failures) == {"BUD-002"}, failures

    assert in_child(use) == 0
    left = answers.read_text().split()
    assert left  # some were answered before the disk was full
    with Ledger.open(path, BUDGETS) as ledger:
        paid = {release.release_id for release in ledger.history() if release.spent}
        assert set(left) <= paid
        ledger.verify()
        assert ledger.balances()["rows"].spent.epsilon == len(paid) * 10**9
        with ledger.reserve([Charge.of("rows", 1)]) as reservation:  # space again: it goes on
            reservation.mark_sent()


def test_a_database_that_cannot_grow_is_full(tmp_path: Path) -> None:
    path = tmp_path / "shop.ledger"
    fill(path, 1)
    with Ledger.open(path, BUDGETS) as ledger:
        journal = ledger._journal
        assert isinstance(journal, SqliteJournal)
        with journal._connection.taken() as connection:
            connection.execute("PRAGMA max_page_count = 1")  # SQLite keeps the pages that it has
        note = {"text": "x" * 50_000}
        expect("BUD-002", "full", lambda: ledger.reserve([Charge.of("rows", 1)], note=note))
        assert ledger.balances()["rows"].spent.epsilon == 10**9


def test_a_commit_that_fails_is_forgotten(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "shop.ledger"
    fill(path, 1)
    with Ledger.open(path, BUDGETS) as ledger:
        real = ledger._journal.writing

        class Failing:
            def __init__(self) -> None:
                self.inner = real()

            def __enter__(self) -> object:
                return self.inner.__enter__()

            def __exit__(self, *error: object) -> None:
                failure = OSError("the disk is gone")
                self.inner.__exit__(OSError, failure, None)

        with monkeypatch.context() as patch:
            patch.setattr(ledger._journal, "writing", Failing)
            with pytest.raises((BudgetError, OSError)):
                ledger.reserve([Charge.of("rows", 1)])
        assert ledger.balances()["rows"].spent.epsilon == 10**9
        with ledger.reserve([Charge.of("rows", 1)]) as reservation:
            reservation.mark_sent()
        ledger.verify()


def test_two_creators_make_one_ledger(tmp_path: Path) -> None:
    path = tmp_path / "shop.ledger"
    children = []
    for _ in range(6):
        child = os.fork()
        if child == 0:
            status = 1
            try:
                with Ledger.open(path, BUDGETS) as ledger:
                    ledger.reserve([Charge.of("rows", 1)]).mark_sent()
                status = 0
            finally:
                os._exit(status)
        children.append(child)
    assert [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children] == [0] * 6
    with Ledger.open(path, BUDGETS) as ledger:
        assert ledger.balances()["rows"].spent.epsilon == 6 * 10**9
    # The journal is empty: SQLite keeps it for the next transaction.
    found = {item.name: item.stat() for item in tmp_path.iterdir()}
    assert sorted(found) == ["shop.ledger", "shop.ledger-journal", "shop.ledger.anchor"]
    assert found["shop.ledger-journal"].st_size == 0
    assert {status.st_mode & 0o777 for status in found.values()} == {0o600}


def test_a_copy_of_a_closed_ledger_is_whole(tmp_path: Path) -> None:
    path, copy = tmp_path / "shop.ledger", tmp_path / "copy.ledger"
    fill(path)
    shutil.copy(path, copy)
    shutil.copy(f"{path}.anchor", f"{copy}.anchor")
    with Ledger.open(path, BUDGETS) as one, Ledger.open(copy, BUDGETS) as two:
        assert one.verify() == two.verify()


def test_leaving_the_block_hides_no_error_when_the_ledger_is_gone(tmp_path: Path) -> None:
    ledger = Ledger.open(tmp_path / "shop.ledger", BUDGETS, wait_seconds=0.1)
    reservation = ledger.reserve([Charge.of("rows", 1)])
    with closing(sqlite3.connect(tmp_path / "shop.ledger", isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(ZeroDivisionError), reservation:
            _ = 1 // 0
        other.execute("ROLLBACK")
    assert ledger.balances()["rows"].spent.epsilon == 10**9  # held until its lease runs out
    ledger.close()
