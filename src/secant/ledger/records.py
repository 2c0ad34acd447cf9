"""The ledger's records: append-only JSON bodies, each bound to all before it by a digest.

In: what happened to a release. Out: canonical text and its digest; reading back, the same fields.
A record is never changed after it was written; a mistake is answered by a further record (ledger.chain).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from hashlib import sha256
from typing import Any

from secant.errors import BudgetError, UsageError
from secant.records import frozen

VERSION = 6
"""The version that this code writes. Bodies of every earlier version stay readable:

1. `open`, `reserve`, `sent`, `settle`, `return`; a charge is protection, epsilon, delta.
2. A charge may carry its event; `reserve` names the budgets in force; `schema` marks a migration;
   `summary` repeats what the records before it add up to, so that a reader may begin there.
3. `restored` marks that an owner took the chain for whole although it did not go through its anchor.
   Times never go back; a summary holds the latest.
4. `stream` declares a stream that was paid for just before; `drawn` holds the numbers of its next step.
5. A charge may say of which periods it is the price (`span`); it then counts in stretches of time that meet them.
6. `reserve` may name the papers of its release: digests of text, plan, policy and certificate, the versions of software
   and data. The store keeps the documents themselves by digest.
"""
KINDS = (
    "open",
    "reserve",
    "sent",
    "settle",
    "return",
    "schema",
    "summary",
    "restored",
    "stream",
    "drawn",
)
"""Never removed, never redefined (I8)."""
LONGEST_NOTE = 1_000_000
"""Characters. A note is for a few names and numbers; a longer one would slow every later reader."""


@frozen
class Anchor:
    """A place in the chain. Kept elsewhere, it shows whether the ledger still goes through it."""

    sequence: int
    digest: str


START = Anchor(0, "0" * 64)
"""What the first record of a ledger is bound to."""


@frozen
class Record:
    """One line of the ledger."""

    sequence: int
    """1, 2, 3, … without gaps."""
    body: str
    """Canonical JSON, ASCII only."""
    digest: str
    """Hexadecimal SHA-256 over the previous digest, the sequence number and the body."""

    @property
    def fields(self) -> dict[str, Any]:
        """Read the body; refuse what a newer version wrote, or what is no record."""
        try:
            fields = json.loads(self.body)
            version = fields["version"]
            if version > VERSION:
                raise newer(version)
        except (ValueError, KeyError, TypeError) as error:
            raise broken(self.sequence, "is not readable") from error
        if fields.get("kind") not in KINDS:
            raise broken(self.sequence, "is of no known kind")
        return dict(fields)


def broken(sequence: int, what: str) -> BudgetError:
    """Give the error for a ledger that does not add up."""
    return BudgetError(
        "BUD-003",
        f"record {sequence} of the ledger {what}",
        hint="stop releasing; compare the ledger with its last export or backup",
    )


def newer(version: object) -> BudgetError:
    """Give the error for a ledger that a later Secant has written to."""
    return BudgetError(
        "BUD-004",
        f"the ledger has version {version}; this Secant knows versions up to {VERSION}",
        hint="use the newer Secant that wrote it",
    )


def digest_of(previous: str, sequence: int, body: str) -> str:
    """Bind a body to its place in the chain."""
    return sha256(f"{previous}\n{sequence}\n{body}".encode()).hexdigest()


def canonical(value: object) -> str:
    """Write JSON in the one form that a value has."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)


def plain_note(note: Mapping[str, Any] | None) -> dict[str, Any]:
    """Give the note as JSON will give it back; refuse what JSON cannot hold."""
    try:
        text = canonical(dict(note or {}))
    except (TypeError, ValueError, RecursionError) as error:
        raise UsageError("USE-001", "a note must hold plain JSON values only") from error
    if len(text) > LONGEST_NOTE:
        raise UsageError("USE-001", "a note is too long for the ledger")
    return dict(json.loads(text))


def following(anchor: Anchor, kind: str, time: float, fields: Mapping[str, Any]) -> Record:
    """Give the record that comes after `anchor`."""
    body = canonical({**fields, "kind": kind, "time": time, "version": VERSION})
    sequence = anchor.sequence + 1
    return Record(sequence, body, digest_of(anchor.digest, sequence, body))


def check_link(anchor: Anchor, record: Record) -> None:
    """Raise unless `record` is the one that comes after `anchor`."""
    if record.sequence != anchor.sequence + 1:
        raise broken(anchor.sequence + 1, "is missing")
    if record.digest != digest_of(anchor.digest, record.sequence, record.body):
        raise broken(record.sequence, "was changed after it was written")
