"""How commands that spend open a connection: with a line that says so, and with a ledger if there is none yet."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from secant.engine import Connection


@contextmanager
def asking(
    policy: str, source: str | None, *, no_create: bool, quiet: bool
) -> Iterator[Connection]:
    """Open the data and the ledger for as long as questions are asked."""
    import secant
    from secant.cli import show

    create = False if no_create else None
    with (
        show.working("asking", quiet=quiet),
        secant.connect(source, policy=policy, create=create) as database,
    ):
        yield database
