"""The fold: what a chain of records means.

In: records in order, each checked against the one before. Out: what is spent and what is open.
Nothing here reads a clock, a file or a budget; the same records always give the same state.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any, NamedTuple

from secant.ledger.amounts import Charge, Spent, gamma_units
from secant.ledger.records import START, Anchor, Record, broken, canonical, check_link
from secant.noise.events import Event, event_from_json, to_json
from secant.policy.windows import read_span, span_fields
from secant.records import frozen

SUMMARY_INTERVAL = 1000
"""So many records, at least, lie between two summaries."""


class Price(NamedTuple):
    """A charge without its protection; `event` is canonical JSON, or empty if it is not known."""

    epsilon: int
    delta: int
    event: str
    span: str = ""
    """Canonical JSON, where it is the price of some periods only (ledger.window)."""


def gamma_of(price: Price) -> int:
    """Give the share of databases for which a charge promises nothing, in ledger units."""
    # Most events have none, and reading JSON takes time.
    return _event_gamma(price.event) if '"random"' in price.event else 0


@lru_cache(maxsize=10_000)
def _event_gamma(event: str) -> int:
    return gamma_units(event_from_json(json.loads(event)))


@frozen
class OpenRelease:
    """A reservation that has neither been settled nor returned."""

    release_id: str
    analyst: str
    month: str
    charges: tuple[tuple[str, Price], ...]
    lease_until: float
    sent: bool = False


@frozen
class StreamState:
    """How far a stream has come (ledger.stream)."""

    declared: int
    """Sequence number of its declaration."""
    through: int = 0
    """All numbers that fall due up to this step are drawn, and none later."""
    lost: bool = False
    """Whether an owner took the chain for whole afterwards: numbers may be out that it does not hold."""


@dataclass(slots=True)
class RunningSum:
    """A sum over the prices of an account that is brought up to date when somebody asks for it.

    A budget that was spent in a hundred thousand different prices is not added up again for each question.
    """

    pending: list[tuple[Price, int]]
    total: int = 0
    unknown: int = 0
    """So many charges have no such amount."""

    def up_to_date(self, amount: Callable[[Price], int | None]) -> RunningSum:
        """Take in what has changed; `amount` is the same function each time."""
        while self.pending:
            price, count = self.pending[-1]
            worth = amount(price)
            if worth is None:
                self.unknown += count
            else:
                self.total += count * worth
            self.pending.pop()
        return self


@dataclass(slots=True)
class Account:
    """What one analyst took from one protection in one calendar month (UTC)."""

    spent: Spent = field(default_factory=Spent)
    prices: Counter[Price] = field(default_factory=Counter)
    sums: dict[Hashable, RunningSum] = field(default_factory=dict, compare=False, repr=False)
    """By what they add up; made when they are first asked for."""
    gathered: Counter[Event] | None = field(default=None, compare=False, repr=False)
    """Releases by what `gather` makes of their prices; made when it is first asked for."""
    waiting: list[tuple[Price, int]] = field(default_factory=list, compare=False, repr=False)

    def events(self, gather: Callable[[Price], Event]) -> Counter[Event]:
        """Count releases by the event that `gather`, the same function each time, makes of each price."""
        if self.gathered is None:
            self.gathered, self.waiting = Counter(), list(self.prices.items())
        while self.waiting:
            price, count = self.waiting.pop()
            event = gather(price)
            self.gathered[event] += count
            if not self.gathered[event]:
                del self.gathered[event]
        return self.gathered

    def running(self, key: Hashable, amount: Callable[[Price], int | None]) -> RunningSum:
        """Give the sum of `amount` over all charges; `key` names that function."""
        if key not in self.sums:
            self.sums[key] = RunningSum(list(self.prices.items()))
        return self.sums[key].up_to_date(amount)

    def change(self, price: Price, count: int) -> None:
        """Count a price `count` times more."""
        for running in self.sums.values():
            running.pending.append((price, count))
        if self.gathered is not None:
            self.waiting.append((price, count))
        self.spent = Spent(
            self.spent.epsilon + count * price.epsilon,
            self.spent.delta + count * price.delta,
            self.spent.gamma + count * gamma_of(price),
        )
        self.prices[price] += count
        if not self.prices[price]:
            del self.prices[price]


@dataclass(slots=True)
class State:
    """Everything that the records up to `anchor` say. Spent includes what is reserved."""

    anchor: Anchor = START
    ledger_id: str = ""
    summary_at: int = 0
    """Sequence number of the last summary."""
    latest: float = 0.0
    """The latest time of a record: the clock of the books, which never goes back."""
    accounts: dict[str, dict[tuple[str, str], Account]] = field(default_factory=dict)
    """By protection, then by analyst and month."""
    open: dict[str, OpenRelease] = field(default_factory=dict)
    streams: dict[str, StreamState] = field(default_factory=dict)

    def advance(self, records: Iterable[Record]) -> None:
        """Take in the records that follow, in order."""
        for record in records:
            check_link(self.anchor, record)
            fields = record.fields
            try:
                _MEANING[fields["kind"]](self, record.sequence, fields)
                self.latest = max(self.latest, fields["time"])
            except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
                raise broken(record.sequence, "lacks a field") from error
            self.anchor = Anchor(record.sequence, record.digest)

    def change(self, release: OpenRelease, count: int) -> None:
        """Count the charges of a release `count` times more."""
        key = (release.analyst, release.month)
        for protection, price in release.charges:
            accounts = self.accounts.setdefault(protection, {})
            account = accounts.setdefault(key, Account())
            account.change(price, count)
            if not account.prices:
                del accounts[key]

    def open_release(self, sequence: int, release_id: str) -> OpenRelease:
        """Give the open reservation of that name."""
        release = self.open.get(release_id)
        if release is None:
            raise broken(sequence, "speaks of a release that is not open")
        return release

    def matching(
        self,
        protection: str,
        *,
        also: Collection[str] = (),
        whose: Callable[[str], bool] | None = None,
        month: str | None = None,
    ) -> Iterator[Account]:
        """Give the accounts of a protection, of some analysts only or of one month only.

        `also` names protections that it continues. How a name is written does not tell two apart.
        """
        names = {protection.casefold(), *(name.casefold() for name in also)}
        for recorded, accounts in self.accounts.items():
            if recorded.casefold() not in names:
                continue
            for (analyst, period), account in accounts.items():
                if (whose is None or whose(analyst)) and month in (None, period):
                    yield account

    def wants_summary(self) -> bool:
        """Say whether a summary would pay: it is not repeated more often than it is long."""
        if self.anchor.sequence - self.summary_at < SUMMARY_INTERVAL:
            return False
        size = len(self.open) + sum(
            len(account.prices) for by_key in self.accounts.values() for account in by_key.values()
        )
        return self.anchor.sequence - self.summary_at >= size

    def summary(self) -> dict[str, Any]:
        """Give the state as plain values, in the one order that they have (ledger.summary)."""
        return {
            "ledger": self.ledger_id,
            "latest": self.latest,
            "accounts": [
                [
                    protection,
                    analyst,
                    month,
                    [[*_price_fields(p), n] for p, n in sorted(account.prices.items())],
                ]
                for protection, by_key in sorted(self.accounts.items())
                for (analyst, month), account in sorted(by_key.items())
            ],
            "open": [
                {
                    "release": release.release_id,
                    "analyst": release.analyst,
                    "month": release.month,
                    "charges": [
                        [protection, *_price_fields(price)] for protection, price in release.charges
                    ],
                    "lease_until": release.lease_until,
                    "sent": release.sent,
                }
                for _, release in sorted(self.open.items())
            ],
            "streams": [
                [name, stream.declared, stream.through, stream.lost]
                for name, stream in sorted(self.streams.items())
            ],
        }


def starting_at(record: Record) -> State:
    """Begin with a summary instead of with the first record."""
    fields = record.fields
    if fields["kind"] != "summary":
        raise broken(record.sequence, "is no summary")
    state = State(
        anchor=Anchor(record.sequence, record.digest),
        ledger_id=fields["ledger"],
        summary_at=record.sequence,
        latest=max(fields["time"], fields.get("latest", 0.0)),
    )
    for protection, analyst, month, prices in fields["accounts"]:
        account = state.accounts.setdefault(protection, {})[analyst, month] = Account()
        for *parts, count in prices:
            account.change(Price(*parts), count)
    for item in fields["open"]:
        state.open[item["release"]] = OpenRelease(
            item["release"],
            item["analyst"],
            item["month"],
            tuple((protection, Price(*price)) for protection, *price in item["charges"]),
            item["lease_until"],
            item["sent"],
        )
    for name, *parts in fields.get("streams", ()):
        state.streams[name] = StreamState(*parts)
    return state


def month_of(time: float) -> str:
    """Give the calendar month (UTC) of a moment, such as 2026-11."""
    return datetime.fromtimestamp(time, UTC).strftime("%Y-%m")


def spent_of(accounts: Iterable[Account]) -> Spent:
    """Add up what was spent."""
    spent = Spent()
    for account in accounts:
        spent = spent.plus(account.spent)
    return spent


def merged(accounts: Iterable[Account]) -> Counter[Price]:
    """Count the charges of several accounts together."""
    counts: Counter[Price] = Counter()
    for account in accounts:
        counts.update(account.prices)
    return counts


def price_of(charge: Charge) -> Price:
    """Give the price of a charge as the fold counts it."""
    event = "" if charge.event is None else canonical(to_json(charge.event))
    span = "" if charge.span is None else canonical(span_fields(charge.span))
    return Price(charge.epsilon, charge.delta, event, span)


def charge_fields(charge: Charge) -> dict[str, Any]:
    """Give a charge as a record holds it."""
    event = None if charge.event is None else to_json(charge.event)
    fields = {
        "protection": charge.protection,
        "epsilon": charge.epsilon,
        "delta": charge.delta,
        "event": event,
    }
    return fields if charge.span is None else {**fields, "span": span_fields(charge.span)}


def _price(fields: Mapping[str, Any]) -> Price:
    event = fields.get("event")  # version 1 knew no events
    epsilon, delta = fields["epsilon"], fields["delta"]
    if not (type(epsilon) is int and type(delta) is int and epsilon >= 0 and delta >= 0):
        raise ValueError("amounts are whole numbers of at least 0")
    span = fields.get("span")
    return Price(
        epsilon,
        delta,
        "" if event is None else canonical(event),
        "" if span is None else canonical(span_fields(read_span(span))),
    )


def _price_fields(price: Price) -> list[Any]:
    """Give a price as a summary holds it: without a span as ever."""
    return [*price] if price.span else [price.epsilon, price.delta, price.event]


def _opened(state: State, sequence: int, fields: dict[str, Any]) -> None:
    if sequence != 1:
        raise broken(sequence, "opens a ledger that is open already")
    state.ledger_id = fields["ledger"]


def _reserved(state: State, sequence: int, fields: dict[str, Any]) -> None:
    if fields["release"] in state.open:
        raise broken(sequence, "reserves twice under one name")
    release = OpenRelease(
        fields["release"],
        fields["analyst"],
        month_of(fields["time"]),
        tuple((item["protection"], _price(item)) for item in fields["charges"]),
        fields["lease_until"],
    )
    state.open[release.release_id] = release
    state.change(release, 1)


def _sent(state: State, sequence: int, fields: dict[str, Any]) -> None:
    release = state.open_release(sequence, fields["release"])
    state.open[release.release_id] = replace(release, sent=True)


def _settled(state: State, sequence: int, fields: dict[str, Any]) -> None:
    release = state.open_release(sequence, fields["release"])
    if not release.sent:
        raise broken(sequence, "settles a release that was not sent")
    del state.open[release.release_id]


def _returned(state: State, sequence: int, fields: dict[str, Any]) -> None:
    release = state.open_release(sequence, fields["release"])
    if release.sent:
        # The heart of I6: once a statement may have gone out, nothing gives the budget back.
        raise broken(sequence, "returns the budget of a release that was sent")
    del state.open[release.release_id]
    state.change(release, -1)


def _migrated(state: State, sequence: int, fields: dict[str, Any]) -> None:
    if not fields["from"] < fields["to"]:
        raise broken(sequence, "turns the ledger back to an earlier version")


def _restored(state: State, sequence: int, fields: dict[str, Any]) -> None:
    if "expected" not in fields:
        raise broken(sequence, "does not say what was lost")
    for name, stream in state.streams.items():
        state.streams[name] = replace(stream, lost=True)


def _declared(state: State, sequence: int, fields: dict[str, Any]) -> None:
    if fields["stream"] in state.streams:
        raise broken(sequence, "declares a stream twice")
    if not isinstance(fields["declaration"], dict):
        raise broken(sequence, "declares nothing")
    state.streams[fields["stream"]] = StreamState(sequence)


def _drawn(state: State, sequence: int, fields: dict[str, Any]) -> None:
    stream = state.streams.get(fields["stream"])
    if stream is None or fields["step"] != stream.through + 1 or stream.lost:
        # The heart of ledger.stream: a step that was drawn is never drawn again, and none is left out.
        raise broken(sequence, "draws a step of a stream that is not its next one")
    if not all(type(value) is int for value in fields["values"].values()):
        raise broken(sequence, "holds numbers of a stream that are not whole")
    state.streams[fields["stream"]] = replace(stream, through=stream.through + 1)


def _summarized(state: State, sequence: int, fields: dict[str, Any]) -> None:
    expected = state.summary()
    if fields["version"] < 3:
        del expected["latest"]
    if fields["version"] < 4:
        del expected["streams"]
    if canonical(expected) != canonical({name: fields[name] for name in expected}):
        raise broken(sequence, "does not agree with the records before it")
    state.summary_at = sequence


_MEANING: dict[str, Callable[[State, int, dict[str, Any]], None]] = {
    "open": _opened,
    "reserve": _reserved,
    "sent": _sent,
    "settle": _settled,
    "return": _returned,
    "schema": _migrated,
    "summary": _summarized,
    "restored": _restored,
    "stream": _declared,
    "drawn": _drawn,
}
