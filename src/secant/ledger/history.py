"""The history as people read it: one entry per release.

In: records. Out: releases with their charges and what became of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import field, replace
from datetime import UTC, datetime
from typing import Any

from secant.ledger.amounts import Charge
from secant.ledger.records import Record
from secant.noise.events import event_from_json
from secant.policy.windows import read_span
from secant.records import frozen


@frozen
class Release:
    """One release, from its reservation to its end."""

    release_id: str
    time: datetime
    analyst: str
    charges: tuple[Charge, ...]
    status: str
    """`reserved`, `sent`, `returned` (nothing spent), or the outcome that it was settled with."""
    note: Mapping[str, Any] = field(default_factory=dict)
    papers: Mapping[str, str] = field(default_factory=dict)
    """Digests of text, plan, policy and certificate, and the versions of software and data."""

    @property
    def spent(self) -> bool:
        """Say whether the charges count: all do but those that were returned."""
        return self.status != "returned"


def releases_of(records: Iterable[Record]) -> list[Release]:
    """Gather the records of each release, in the order in which they were reserved."""
    releases: dict[str, Release] = {}
    for record in records:
        fields = record.fields
        kind = fields["kind"]
        if kind == "reserve":
            releases[fields["release"]] = Release(
                fields["release"],
                datetime.fromtimestamp(fields["time"], UTC),
                fields["analyst"],
                tuple(_charge(item) for item in fields["charges"]),
                "reserved",
                fields["note"],
                fields.get("papers", {}),
            )
        elif kind in _STATUS:
            release = releases[fields["release"]]
            status = fields["outcome"] if kind == "settle" else _STATUS[kind]
            releases[release.release_id] = replace(release, status=status)
    return list(releases.values())


_STATUS = {"sent": "sent", "settle": "", "return": "returned"}


def _charge(fields: Mapping[str, Any]) -> Charge:
    event = fields.get("event")
    return Charge(
        fields["protection"],
        fields["epsilon"],
        fields["delta"],
        event=None if event is None else event_from_json(event),
        span=None if (span := fields.get("span")) is None else read_span(span),
    )
