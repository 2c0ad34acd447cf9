"""`secant ledger`: what was spent, on what, and whether the books still add up."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from secant.cli.options import Json, PolicyPath, Source
from secant.errors import BackendError, UsageError

if TYPE_CHECKING:
    from secant.ledger.history import Release

History = Annotated[bool, Parameter(name="--history", negative="", help="List every release.")]
Export = Annotated[
    str | None,
    Parameter(
        name="--export",
        metavar="FILE",
        allow_leading_hyphen=True,
        help="Write a copy that proves itself (JSON lines), or a .csv; `-` is standard output.",
    ),
]
Verify = Annotated[
    bool, Parameter(name="--verify", negative="", help="Check the chain of records from its start.")
]


def ledger(
    *,
    history: History = False,
    export: Export = None,
    verify: Verify = False,
    policy: PolicyPath = "policy.toml",
    source: Source = None,
    json: Json = False,
) -> int:
    """Show budgets and, if asked, the history; export or verify the records."""
    from secant.cli import show

    with _books(policy, source) as (books, accounts_now):
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
        releases = books.history() if history else []
    if json:
        report["budget"] = {name: _account(account) for name, account in accounts.items()}
        if history:
            report["history"] = [_entry(release) for release in releases]
        show.print_json(report)
        return 0
    show.print_budget(accounts)
    if export is not None:
        show.say(f"Exported to {export}. Keep the copy where the ledger's writers cannot reach it.")
    if verify:
        show.say(f"The chain of {end.sequence} records is intact; it ends in {end.digest}")
    if history:
        show.print_records([_line(release) for release in releases], empty="No release yet.")
    return 0


@contextmanager
def _books(policy: str, source: str | None) -> Iterator[tuple[Any, Callable[[], Any]]]:
    """Open the ledger; the books can be read when the data source is away."""
    import secant
    from secant import engine

    try:
        database = secant.connect(source, policy=policy)
    except BackendError:
        owner_policy = secant.load_policy(policy)
        with engine.open_ledger(owner_policy, engine.ledger_place(owner_policy)) as books:
            yield books, lambda: engine.accounts_of(books)
        return
    with database:
        yield database.ledger, lambda: database.budget


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


def _account(account: object) -> dict[str, object]:
    names = ("epsilon", "delta", "spent_epsilon", "spent_delta")
    more = ("remaining_epsilon", "remaining_delta")
    return {name: getattr(account, name) for name in names + more}


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
