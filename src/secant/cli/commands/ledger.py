"""`secant ledger`: what was spent, on what, and whether the books still add up."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from secant.cli.options import Json, PolicyPath, Source, flag, named, policy_file, refuse_beside
from secant.errors import BackendError, UsageError

if TYPE_CHECKING:
    from secant.ledger.history import Release

History = Annotated[bool, flag("--history", "List every release.")]
Export = Annotated[
    str | None,
    named(
        "--export",
        "Write a copy that proves itself (JSON lines), or a .csv; `-` is standard output.",
        "FILE",
        hyphen=True,
    ),
]
Verify = Annotated[bool, flag("--verify", "Check the chain of records from its start.")]

Restored = Annotated[
    bool,
    flag(
        "--restored",
        "OWNER ONLY: take the ledger for whole after a backup was put back or it was moved.",
    ),
]


def ledger(
    *,
    history: History = False,
    export: Export = None,
    verify: Verify = False,
    restored: Restored = False,
    policy: PolicyPath = None,
    source: Source = None,
    json: Json = False,
) -> int:
    """Show budgets and, if asked, the history; export or verify the records. Never starts a ledger."""
    from secant.cli import show

    if export == "-":  # which has standard output for itself
        also = {"--history": history, "--verify": verify, "--restored": restored, "--json": json}
        refuse_beside("--export -", also)
    path = policy_file(policy)
    if restored:
        _take_for_whole(path)
    needed = verify or export is not None
    with _books(path, source, needed=needed) as (books, accounts_now):
        report: dict[str, object] = {}
        if export is not None:
            _write(books.export("csv" if export.endswith(".csv") else "jsonl"), export)
            if export == "-":
                return 0
            report["exported"] = export
        if verify:
            end = books.verify()
            report["verified"] = {"records": end.sequence, "digest": end.digest}
        accounts = accounts_now()
        unnamed = books.unnamed()
        releases = books.history() if history else []
    if json:
        if unnamed:
            report["unnamed"] = sorted(unnamed)
        report["budget"] = accounts.to_list()
        if history:
            report["history"] = [_entry(release) for release in releases]
        show.print_json(report)
        return 0
    show.print_budget(accounts)
    if unnamed:
        names = ", ".join(sorted(unnamed))
        show.say(f"The policy does not name protections that have spent: {names}", style="bold red")
    if restored:
        show.say(
            "The ledger counts as whole from here on; that this was asked for is in its records."
        )
    if export is not None:
        show.say(f"Exported to {export}. Keep the copy where the ledger's writers cannot reach it.")
    if verify:
        show.say(f"The chain of {end.sequence} records is intact; it ends in {end.digest}")
    if history:
        show.print_records([_line(release) for release in releases], empty="No release yet.")
    return 0


@contextmanager
def _books(
    policy: str, source: str | None, *, needed: bool
) -> Iterator[tuple[Any, Callable[[], Any]]]:
    """Open the ledger; the books can be read when the data source is away, and before there are any."""
    import secant
    from secant.ledger import opening

    try:
        database = secant.connect(source, policy=policy, create=False)
    except BackendError:
        if source is not None:  # it was asked for, and is not there
            raise
        owner_policy = secant.load_policy(policy)
        location = opening.ledger_place(owner_policy)
        with opening.open_ledger(owner_policy, location, create=False) as books:
            yield books, lambda: opening.accounts_of(books)
        return
    with database:
        if not needed and not database.has_ledger:
            with tempfile.TemporaryDirectory() as folder:
                empty = Path(folder) / "empty.ledger"
                with opening.open_ledger(database.policy, empty, create=True) as books:
                    yield books, lambda: opening.accounts_of(books)
            return
        yield database.ledger, lambda: database.budget


def _take_for_whole(policy: str) -> None:
    import secant
    from secant.ledger import opening

    owner_policy = secant.load_policy(policy)
    location = opening.ledger_place(owner_policy)
    opening.open_ledger(owner_policy, location, create=False, restored=True).close()


def _write(lines: Iterable[str], target: str) -> None:
    if target == "-":
        sys.stdout.writelines(_ended(line) for line in lines)
        return
    try:
        with Path(target).open("x", encoding="utf-8", newline="") as file:
            file.writelines(_ended(line) for line in lines)
    except FileExistsError:
        raise UsageError("USE-001", f"{target} exists; it is not overwritten") from None
    except OSError as error:
        raise UsageError("USE-001", f"cannot write {target}: {error.strerror}") from None


def _ended(line: str) -> str:
    return line if line.endswith("\n") else line + "\n"


def _entry(release: Release) -> dict[str, object]:
    """Give one release; its note holds public fields only."""
    return {
        "release_id": release.release_id,
        "time": release.time,
        "analyst": release.analyst,
        "status": release.status,
        "charges": [
            {"protection": c.protection, "epsilon": c.epsilon / 10**9, "delta": c.delta / 10**18}
            for c in release.charges
        ],
        "note": release.note,
    }


def _line(release: Release) -> dict[str, str]:
    charges = ", ".join(
        f"{c.protection} ε {c.epsilon / 10**9:g} δ {c.delta / 10**18:g}" for c in release.charges
    )
    return {
        "time (UTC)": f"{release.time:%Y-%m-%d %H:%M:%S}",
        "release": release.release_id,
        "analyst": release.analyst,
        "status": release.status,
        "charged": charges if release.spent else "",
    }
