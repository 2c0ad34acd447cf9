"""The anchor beside a ledger file: how far the chain had come when a charge was last promised.

In: a place in the chain that is durable. Out: a small file that only moves forward. It is written after
the chain and before anything is sent, so it is never ahead of an honest chain: a chain that does not go
through it has lost charges (ledger.witness).
"""

from __future__ import annotations

import fcntl
import json
import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from secant.errors import BudgetError
from secant.ledger.records import Anchor, canonical

RESTORED = "if you put a backup back or moved the file on purpose: `secant ledger --restored`"
"""What an owner can do who knows why the anchor and the chain disagree."""


def anchor_file(ledger: Path) -> Path:
    """Say where the anchor of a ledger file is kept."""
    return ledger.with_name(f"{ledger.name}.anchor")


def read_anchor(ledger: Path) -> Anchor | None:
    """Give the anchor of a ledger file; None if it has none."""
    return read_anchor_at(anchor_file(ledger))


def read_anchor_at(path: Path) -> Anchor | None:
    """Give the anchor that a file holds; None if there is no file."""
    try:
        text = path.read_text(encoding="ascii")
    except FileNotFoundError:
        return None
    except ValueError:
        text = ""
    try:
        fields = json.loads(text)
        anchor = Anchor(fields["sequence"], fields["digest"])
        if text != _line(anchor):  # a number of another kind, a key too many, a changed bit
            raise ValueError
    except (ValueError, KeyError, TypeError, RecursionError):
        raise forgotten(f"the anchor of the ledger, {path.name}, is damaged") from None
    return anchor


def write_anchor(ledger: Path, anchor: Anchor, *, backward: bool = False) -> None:
    """Make durable that the chain has come as far as `anchor`; an anchor that is farther stays.

    `backward` lets it go back, which only an owner may ask for.
    """
    mode = stat.S_IMODE(ledger.stat().st_mode) & 0o666  # whoever shares the ledger shares it
    write_anchor_at(anchor_file(ledger), anchor, mode=mode, backward=backward)


def write_anchor_at(
    target: Path, anchor: Anchor, *, mode: int = 0o600, backward: bool = False
) -> None:
    """Make durable, in a file anywhere, that a chain has come as far as `anchor`."""
    draft = target.with_name(f".{target.name}.{secrets.token_hex(8)}.new")
    # Two processes may come here in the other order than they were in the chain.
    with _alone(target.parent) as folder:
        current = None if backward else read_anchor_at(target)
        if current is not None and current.sequence >= anchor.sequence:
            return
        descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            with os.fdopen(descriptor, "w", encoding="ascii") as file:
                os.fchmod(file.fileno(), mode)
                file.write(_line(anchor))
                file.flush()
                os.fsync(file.fileno())
            draft.replace(target)
        except BaseException:
            draft.unlink(missing_ok=True)
            raise
        os.fsync(folder)


def try_to_write(beside: Path, size: int) -> None:
    """Write so many bytes beside a file, and take them away again; what the system says is raised."""
    draft = beside.with_name(f".{beside.name}.{secrets.token_hex(8)}.room")
    try:
        descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            left = memoryview(bytes(size))
            while left:
                left = left[os.write(descriptor, left) :]
            os.fsync(descriptor)  # some file systems find out that they are full only here
        finally:
            os.close(descriptor)
    finally:
        draft.unlink(missing_ok=True)


def forgotten(what: str, *, hint: str = "") -> BudgetError:
    """Give the error for a ledger that knows less than it should."""
    return BudgetError(
        "BUD-007",
        what,
        hint=hint or f"stop releasing and restore the newest copy; {RESTORED}",
    )


def _line(anchor: Anchor) -> str:
    return canonical({"sequence": anchor.sequence, "digest": anchor.digest}) + "\n"


@contextmanager
def _alone(folder: Path) -> Iterator[int]:
    """Lock the folder."""
    # The ledger itself must not be opened here: closing it would end SQLite's locks.
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield descriptor
    finally:
        os.close(descriptor)
