"""The ledger: who may spend how much, decided and written down in one transaction.

In: budgets in force (from the policy), charges, the journal's records. Out: reservations, balances,
history. No answer leaves before its charge is durable; two processes never both get the last ε.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from secant.errors import BudgetError, UsageError
from secant.evidence import Evidence
from secant.ledger.amounts import Budget, Charge, Spent
from secant.ledger.anchor import forgotten
from secant.ledger.export import export_lines
from secant.ledger.history import Release, releases_of
from secant.ledger.journal import Head, Journal, Transaction
from secant.ledger.limits import Balance, Limits, amount_text, balance, shortfalls
from secant.ledger.records import (
    START,
    VERSION,
    Anchor,
    Record,
    broken,
    check_link,
    following,
    plain_note,
)
from secant.ledger.reserve import Reservation
from secant.ledger.sqlite import SqliteJournal
from secant.ledger.state import State, charge_fields, month_of, starting_at
from secant.policy.policy import LONGEST_NAME
from secant.policy.windows import Window
from secant.records import frozen
from secant.runtime.processes import ProcessLock

LONGEST_LEASE = 31 * 24 * 3600
"""Seconds; a longer lease would lock budget for good when its process is killed."""


@frozen
class StreamAccount:
    """A stream as the books have it. Public: nothing secret is kept."""

    declaration: Mapping[str, Any]
    through: int
    """All numbers that fall due up to this step are drawn."""
    values: Mapping[str, int]
    """Name of a number -> the number, with its noise."""
    lost: bool
    """Whether the ledger was restored afterwards: nothing more can be drawn."""


class Ledger:
    """An open ledger. Close it, or use it as a context manager."""

    def __init__(self, journal: Journal, limits: Limits) -> None:
        self._journal = journal
        self._limits = limits
        self._state = State()
        self._lock = ProcessLock()
        self._trusting = False
        self._seen = START
        self._process = os.getpid()
        self._numbers: dict[str, tuple[int, dict[str, int]]] = {}
        """By stream: up to which record its numbers were read, and the numbers."""

    @classmethod
    def open(
        cls,
        location: str | Path,
        budgets: Mapping[str, Budget],
        *,
        analysts: Mapping[str, Mapping[str, Budget]] | None = None,
        renewals: Mapping[str, str] | None = None,
        compositions: Mapping[str, str] | None = None,
        continues: Mapping[str, Sequence[str]] | None = None,
        windows: Mapping[str, Window] | None = None,
        retired: Sequence[str] = (),
        create: bool = True,
        restored: bool = False,
        wait_seconds: float = 30.0,
    ) -> Ledger:
        """Open the ledger at a path or a `postgresql://` address, creating it when it never was there.

        Args:
            location: A file for the processes of one machine, or a database for several machines.
            budgets: Those in force now; when they change between runs, the history stays.
            analysts: By protection and analyst, what one analyst may take; `*` for all not named together.
            renewals: By protection, `monthly` where the owner declares that the budget comes back.
            compositions: By protection, `basic` or `tight`; by default tight where there is a δ.
            continues: By protection, names that it had before: what they spent counts as spent.
            windows: By protection, the stretch of time whose worst place has to keep to the budget.
            retired: Protections that the owner has given up; others that the ledger knows stop it.
            create: Whether a missing ledger is made; otherwise it is an error. `started` says that it was.
            restored: The owner's word that the chain is whole although it does not go through the anchor
                beside it, because a backup was put back or the file was moved. It is written down.
            wait_seconds: How long to wait for other writers before giving up with BUD-002.
        """
        limits = Limits(
            dict(budgets),
            dict(analysts or {}),
            dict(renewals or {}),
            dict(compositions or {}),
            {name: tuple(before) for name, before in (continues or {}).items()},
            dict(windows or {}),
            tuple(retired),
        )
        if not 0 < wait_seconds <= 3600:
            raise UsageError("USE-001", "a ledger waits between 0 and 3600 seconds for its turn")
        journal = _journal(location, create=create, wait_seconds=wait_seconds, restored=restored)
        ledger = cls(journal, limits)
        try:
            if restored:
                ledger._take_for_whole()
            with ledger._reading():
                return ledger  # what can be read was read, and the chain from its last summary on
        except BaseException:
            ledger.close()
            raise

    def _take_for_whole(self) -> None:
        """Move the anchor to the end of the chain as it is, and write down that this was asked for."""
        self._trusting = True
        with self._writing() as transaction:
            fresh = State()
            fresh.advance(transaction.after(0))
            lost = transaction.witness
            fields = {"expected": None if lost is None else [lost.sequence, lost.digest]}
            self._append(transaction, "restored", self._time(transaction.now()), fields)
        self._journal.attest(self._state.anchor, backward=True)
        self._trusting = False

    @property
    def started(self) -> bool:
        """Say whether opening it began a new ledger, with all its budget."""
        return self._journal.started

    def unnamed(self) -> dict[str, Spent]:
        """Give protections that have spent and are not in force now, unless the owner accounts for them."""
        with self._reading():
            return self._limits.unnamed(self._state)

    def close(self) -> None:
        """Let go of the file or connection."""
        self._journal.close()

    def __enter__(self) -> Ledger:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def reserve(
        self,
        charges: Sequence[Charge],
        *,
        analyst: str = "",
        note: Mapping[str, Any] | None = None,
        evidence: Evidence | None = None,
        lease_seconds: int = 3600,
    ) -> Reservation:
        """Hold budget for a release in all protections at once, or raise BUD-001 and hold none.

        `papers` are kept, and named in the record, so that the release can be checked later.
        """
        all_charges = tuple(charges)
        if not 1 <= lease_seconds <= LONGEST_LEASE:
            raise UsageError("USE-001", f"a lease lasts between 1 and {LONGEST_LEASE} seconds")
        check_analyst(analyst)
        for charge in all_charges:
            if charge.protection not in self._limits.budgets:
                raise UsageError(
                    "USE-005", f"there is no budget for protection {charge.protection!r}"
                )
        fields = self._reserved(all_charges, analyst, plain_note(note))
        with self._writing() as transaction:
            now, when, short = self._short(transaction, all_charges, analyst)
            if not short:
                fields["lease_until"] = now + lease_seconds
                self._keep(transaction, evidence, fields)
                self._append(transaction, "reserve", when, fields)
        if short:  # raised after the transaction, so that what the sweep found stays written
            raise BudgetError(
                "BUD-001",
                "the budget does not cover this release",
                details=short,
                hint="ask with a smaller epsilon, or ask the data owner for more budget",
            )
        return Reservation(self, fields["release"], all_charges)

    @staticmethod
    def _keep(transaction: Transaction, evidence: Evidence | None, fields: dict[str, Any]) -> None:
        """Keep the papers of a release, and name them in its record."""
        if evidence is not None:
            fields["papers"] = evidence.fields
            for digest, paper in evidence.bodies.items():
                transaction.keep(digest, paper)

    def _reserved(
        self, charges: Sequence[Charge], analyst: str, note: Mapping[str, Any]
    ) -> dict[str, Any]:
        """Give the fields of a reservation, but for how long it holds."""
        return {
            "release": secrets.token_hex(16),
            "analyst": analyst,
            "charges": [charge_fields(charge) for charge in charges],
            "budgets": self._in_force(charges),
            "note": note,
        }

    def _short(
        self, transaction: Transaction, charges: Sequence[Charge], analyst: str
    ) -> tuple[float, float, tuple[str, ...]]:
        """Give the clock, the time of the books, and what some charges lack, after what has lapsed is swept."""
        _check_named(self._limits.unnamed(self._state))
        now = transaction.now()
        self._sweep(transaction, now)
        when = self._time(now)
        month = month_of(when)
        return (
            now,
            when,
            shortfalls(self._state, self._limits, charges, analyst=analyst, month=month),
        )

    def declare_stream(
        self,
        name: str,
        declaration: Mapping[str, Any],
        charges: Sequence[Charge],
        *,
        analyst: str = "",
        evidence: Evidence | None = None,
    ) -> dict[str, Any]:
        """Pay for a stream and declare it, both or neither; give what was declared, now or before (ledger.stream).

        The first declaration of a name holds for ever: a caller compares what it gets.
        """
        check_analyst(analyst)
        all_charges, note = tuple(charges), plain_note(declaration)
        with self._writing() as transaction:
            stream_state = self._state.streams.get(name)
            short: tuple[str, ...] = ()
            if stream_state is None:
                now, when, short = self._short(transaction, all_charges, analyst)
                if not short:
                    fields = self._reserved(all_charges, analyst, {"stream": name})
                    release = fields["release"]
                    self._keep(transaction, evidence, fields)
                    self._append(transaction, "reserve", when, {**fields, "lease_until": now})
                    self._append(transaction, "sent", when, {"release": release})
                    outcome = {"release": release, "outcome": "stream declared"}
                    self._append(transaction, "settle", when, outcome)
                    declared = {"stream": name, "release": release, "declaration": note}
                    self._append(transaction, "stream", when, declared)
            stored = self._declaration(transaction, name)
            reached = self._state.anchor
        if short:
            raise BudgetError(
                "BUD-001",
                f"the budget does not cover the stream {name}",
                details=short,
                hint="declare it with a smaller epsilon, or give the protection more budget",
            )
        assert stored is not None
        # Only now is the charge promised, as in `record_sent`.
        self._journal.attest(reached)
        return stored

    def draw_stream(self, name: str, first: int, steps: Sequence[Mapping[str, int]]) -> bool:
        """Make the numbers of the next steps durable; say no if somebody else drew the first of them before.

        Nothing may be shown unless this returns True; after a no, what was drawn here must be forgotten.
        """
        with self._writing() as transaction:
            state = self._state.streams.get(name)
            if state is None or state.lost:
                raise broken_stream(name)
            if state.through != first - 1:
                return False
            when = self._time(transaction.now())
            for number, values in enumerate(steps, start=first):
                fields = {"stream": name, "step": number, "values": dict(values)}
                self._append(transaction, "drawn", when, fields)
            reached = self._state.anchor
        # A chain that loses these numbers from here on does not reach its anchor: nobody draws them again.
        self._journal.attest(reached)
        return True

    def stream(self, name: str) -> StreamAccount | None:
        """Give a stream as the books have it, with all of its numbers; None if it was never declared."""
        with self._reading() as transaction:
            state = self._state.streams.get(name)
            if state is None:
                return None
            declaration = self._declaration(transaction, name)
            assert declaration is not None
            # Records never change: only those that came since the last call are read.
            start, values = self._numbers.get(name, (state.declared, {}))
            newer: dict[str, int] = {}
            for record in transaction.after(start):
                fields = record.fields
                if fields["kind"] == "drawn" and fields["stream"] == name:
                    newer.update(fields["values"])
            values = {**values, **newer} if newer else values
            self._numbers[name] = (self._state.anchor.sequence, values)
            return StreamAccount(declaration, state.through, values, state.lost)

    def check_writable(self) -> None:
        """Raise what a reservation would raise before its price is looked at: BUD-002, BUD-003, BUD-007, BUD-008."""
        with self._writing() as transaction:
            _check_named(self._limits.unnamed(self._state))
            transaction.touch()
        self._journal.check_room()

    def clock(self) -> float:
        """Give the time of the books, in seconds since 1970 (UTC). It never goes back."""
        with self._reading() as transaction:
            return self._time(transaction.now())

    def _declaration(self, transaction: Transaction, name: str) -> dict[str, Any] | None:
        state = self._state.streams.get(name)
        record = None if state is None else transaction.at(state.declared)
        return None if record is None else dict(record.fields["declaration"])

    def _in_force(self, charges: Sequence[Charge]) -> dict[str, list[int | str]]:
        budgets = {charge.protection: self._limits.budgets[charge.protection] for charge in charges}
        return {
            name: [budget.epsilon, budget.delta, self._limits.composition(name)]
            for name, budget in budgets.items()
        }

    def record_sent(self, release_id: str) -> None:
        """Write that statements may go out; raise BUD-006 if the reservation has ended."""
        with self._writing() as transaction:
            release, now = self._state.open.get(release_id), transaction.now()
            if release is None or (not release.sent and release.lease_until <= now):
                raise BudgetError(
                    "BUD-006", "the lease of the reservation has run out", hint="reserve again"
                )
            if not release.sent:
                self._append(transaction, "sent", self._time(now), {"release": release_id})
            reached = self._state.anchor
        # Only now is the charge promised: a chain that loses it from here on does not reach its anchor.
        self._journal.attest(reached)

    def record_settled(self, release_id: str, outcome: str) -> None:
        """Write that a sent release is over; a release that was swept already is over too."""
        with self._writing() as transaction:
            if release_id in self._state.open:
                fields = {"release": release_id, "outcome": outcome}
                self._append(transaction, "settle", self._time(transaction.now()), fields)

    def record_returned(self, release_id: str, reason: str) -> None:
        """Write that the budget of an unsent release goes back."""
        with self._writing() as transaction:
            release = self._state.open.get(release_id)
            if release is not None and not release.sent:
                fields = {"release": release_id, "reason": reason}
                self._append(transaction, "return", self._time(transaction.now()), fields)

    def sweep(self) -> None:
        """End every reservation whose lease has run out: spent if it was sent, returned if not."""
        with self._writing() as transaction:
            self._sweep(transaction, transaction.now())

    def _sweep(self, transaction: Transaction, now: float) -> None:
        expired = [release for release in self._state.open.values() if release.lease_until <= now]
        now = self._time(now)
        for release in expired:
            fields = {"release": release.release_id}
            if release.sent:
                self._append(transaction, "settle", now, {**fields, "outcome": "lease ran out"})
            else:
                self._append(transaction, "return", now, {**fields, "reason": "lease ran out"})

    def balances(self, *, analyst: str | None = None) -> dict[str, Balance]:
        """Give each protection's budget, what is spent (with what is reserved) and what remains.

        With an analyst: that analyst's shares, where the owner has limited them.
        """
        with self._reading() as transaction:
            month = month_of(self._time(transaction.now()))
            accounts = {
                protection: balance(
                    self._state, self._limits, protection, month=month, analyst=analyst
                )
                for protection in self._limits.budgets
            }
        return {name: account for name, account in accounts.items() if account is not None}

    def history(
        self, *, protection: str | None = None, analyst: str | None = None
    ) -> list[Release]:
        """List the releases, oldest first; those of one protection or analyst only, if asked."""
        return [
            release
            for release in releases_of(self.records())
            if analyst in (None, release.analyst)
            and (protection is None or any(c.protection == protection for c in release.charges))
        ]

    def records(self) -> list[Record]:
        """Give every record, oldest first, at one moment."""
        with self._reading() as transaction:
            return list(transaction.after(0))

    def paper(self, digest: str) -> str | None:
        """Give a document that a record names by its digest; None if it is not kept."""
        with self._reading() as transaction:
            return transaction.paper(digest)

    def export(self, form: str = "jsonl") -> Iterator[str]:
        """Give the whole ledger as lines of text: `jsonl` (see `check_export`) or `csv`.

        The last line of `jsonl` is the end of the chain. Keep it where the ledger's writers cannot
        reach it: `verify` takes it as an anchor.
        """
        return export_lines(self.records(), form)

    def verify(self, anchor: Anchor | None = None) -> Anchor:
        """Check the chain from its first record, and that it goes through `anchor`; give its end.

        Raises BUD-003 if a record was changed, removed, moved or added, or the tail is missing.
        """
        fresh = State()
        with self._reading() as transaction:
            fresh.advance(transaction.after(0))
            _check_end(fresh, transaction.head())
        if anchor is not None and not self.goes_through(anchor):
            raise broken(anchor.sequence, "is not the one that the anchor names")
        return fresh.anchor

    def end(self) -> Anchor:
        """Give the end of the chain as it is now, for an anchor that is kept elsewhere."""
        with self._reading():
            return self._state.anchor

    def goes_through(self, anchor: Anchor) -> bool:
        """Say whether a record of the chain is the one that an anchor names."""
        with self._reading() as transaction:
            record = transaction.at(anchor.sequence)
            return record is not None and record.digest == anchor.digest

    @contextmanager
    def _writing(self) -> Iterator[Transaction]:
        with self._lock:
            anchor = None
            try:
                with self._journal.writing() as transaction:
                    self._catch_up(transaction)
                    anchor = self._state.anchor
                    if transaction.witness is None:
                        # Before the first charge of a new ledger, or of an old one that has no anchor.
                        self._journal.attest(anchor)
                    if transaction.version < VERSION:
                        self._upgrade(transaction)
                    yield transaction
                self._seen = self._state.anchor
            except BaseException:
                if anchor != self._state.anchor:
                    self._state = State()  # what was appended is rolled back: read afresh
                raise

    @contextmanager
    def _reading(self) -> Iterator[Transaction]:
        with self._lock, self._journal.reading() as transaction:
            self._catch_up(transaction)
            yield transaction

    def _catch_up(self, transaction: Transaction) -> None:
        if self._process != os.getpid():  # a fork may have copied it in the middle of a transaction
            self._process, self._state = os.getpid(), State()
        head = transaction.head()
        # Also after an error made us forget the state: another ledger in its place is not gone on with.
        last = transaction.at(self._seen.sequence) if self._seen.sequence else None
        if self._seen.sequence and (last is None or last.digest != self._seen.digest):
            raise broken(self._seen.sequence, "is not the one that was read before")
        if not self._state.anchor.sequence and head is not None and head.summary_at:
            self._state = _from_summary(transaction, head.summary_at)
        try:
            self._state.advance(transaction.after(self._state.anchor.sequence))
            _check_end(self._state, head)
            if not self._trusting:
                _check_witness(transaction)
            self._seen = self._state.anchor
        except BaseException:
            self._state = State()
            raise

    def _upgrade(self, transaction: Transaction) -> None:
        fields = {"from": transaction.version, "to": VERSION}
        transaction.upgrade(Head(self._state.anchor, self._state.summary_at))
        self._append(transaction, "schema", self._time(transaction.now()), fields)

    def _time(self, now: float) -> float:
        """Give the time of the books. A clock that was set back must not open a month that is over."""
        return max(now, self._state.latest)

    def _append(
        self, transaction: Transaction, kind: str, now: float, fields: Mapping[str, Any]
    ) -> None:
        record = following(self._state.anchor, kind, now, fields)
        self._state.advance([record])
        transaction.append(record, summary_at=self._state.summary_at)
        if kind != "summary" and self._state.wants_summary():
            self._append(transaction, "summary", now, self._state.summary())


def broken_stream(name: str) -> BudgetError:
    """Give the error for a stream whose numbers may not all be known."""
    return BudgetError(
        "BUD-009",
        f"the ledger was restored after the stream {name} began: numbers may be out that it does not hold",
        hint="declare a new stream, under a new name; what is known of the old one stays",
    )


def check_analyst(name: object) -> None:
    """Refuse a name that could not be told from another, printed or exported."""
    if not isinstance(name, str) or len(name) > LONGEST_NAME or not name.isprintable():
        raise UsageError(
            "USE-001",
            f"an analyst's name has up to {LONGEST_NAME} characters, all of them printable",
        )


def _check_named(unnamed: Mapping[str, Spent]) -> None:
    """Raise if a protection that spent has left the policy: under a new name it would start at 0."""
    if unnamed:
        raise BudgetError(
            "BUD-008",
            "the ledger holds charges of protections that the policy does not name",
            details=tuple(f"{name}: {amount_text(spent)}" for name, spent in unnamed.items()),
            hint='say `continues = ["OLD"]` in the protection that took its place, or'
            ' `retired = ["OLD"]` under [ledger] if it is given up',
        )


def _check_witness(transaction: Transaction) -> None:
    seen = transaction.witness
    if seen is not None:
        record = transaction.at(seen.sequence)
        if record is None or record.digest != seen.digest:
            raise forgotten(
                f"the ledger does not go through its anchor, record {seen.sequence}: charges are lost"
            )


def _journal(location: str | Path, *, create: bool, wait_seconds: float, restored: bool) -> Journal:
    if isinstance(location, str) and location.startswith(("postgresql://", "postgres://")):
        from secant.ledger.postgres import PostgresJournal  # the driver is an extra

        return PostgresJournal(location, create=create, wait_seconds=wait_seconds)
    return SqliteJournal(
        Path(location), create=create, wait_seconds=wait_seconds, restored=restored
    )


def _from_summary(transaction: Transaction, sequence: int) -> State:
    record, before = transaction.at(sequence), transaction.at(sequence - 1)
    if record is None or before is None:
        raise broken(sequence, "is missing")
    check_link(Anchor(before.sequence, before.digest), record)
    return starting_at(record)


def _check_end(state: State, head: Head | None) -> None:
    if not state.anchor.sequence:
        raise broken(1, "is missing")
    if head is not None and head.anchor != state.anchor:
        raise broken(max(head.anchor.sequence, state.anchor.sequence), "is not the last one")
