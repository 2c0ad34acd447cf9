"""Copies of a ledger to keep elsewhere: JSON lines that prove themselves, CSV for a spreadsheet.

In: records. Out: text, and from JSON lines the end of the chain again. A copy kept where the
ledger's writers cannot reach it shows later whether the ledger was cut or rewritten (ledger.chain).
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime

from secant.errors import UsageError
from secant.ledger.amounts import decimals
from secant.ledger.records import START, Anchor, Record, broken, canonical
from secant.ledger.state import State

FORMATS = ("jsonl", "csv")
COLUMNS = (
    "sequence",
    "time",
    "kind",
    "release",
    "analyst",
    "protection",
    "epsilon",
    "delta",
    "remark",
    "digest",
)


def export_lines(records: Iterable[Record], form: str) -> Iterator[str]:
    """Give the ledger as text, line by line, each with its line end."""
    if form not in FORMATS:
        raise UsageError("USE-001", f"a ledger is exported as one of: {', '.join(FORMATS)}")
    return _json_lines(records) if form == "jsonl" else _csv_lines(records)


def _json_lines(records: Iterable[Record]) -> Iterator[str]:
    end = START
    for record in records:
        end = Anchor(record.sequence, record.digest)
        yield canonical({**record.fields, "sequence": end.sequence, "digest": end.digest}) + "\n"
    yield canonical({"kind": "end", "sequence": end.sequence, "digest": end.digest}) + "\n"


def check_export(lines: Iterable[str]) -> Anchor:
    """Check exported JSON lines without the ledger; give the end of the chain."""
    state = State()
    for line in lines:
        try:
            fields = json.loads(line)
            sequence, digest = fields.pop("sequence"), fields.pop("digest")
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise broken(state.anchor.sequence + 1, "is not readable in the export") from error
        if fields == {"kind": "end"}:
            if Anchor(sequence, digest) != state.anchor:
                raise broken(state.anchor.sequence, "is not the last one that was exported")
            return state.anchor
        state.advance([Record(sequence, canonical(fields), digest)])
    raise broken(state.anchor.sequence + 1, "or the end of the export is missing")


def _csv_lines(records: Iterable[Record]) -> Iterator[str]:
    yield _csv_row(COLUMNS)
    for record in records:
        fields = record.fields
        shared = {
            "sequence": str(record.sequence),
            "time": datetime.fromtimestamp(fields["time"], UTC).isoformat(),
            "kind": fields["kind"],
            "release": fields.get("release", ""),
            "analyst": fields.get("analyst", ""),
            "remark": fields.get("outcome", fields.get("reason", "")),
            "digest": record.digest,
        }
        for charge in fields.get("charges") or [None]:
            amounts = decimals(charge["epsilon"], charge["delta"]) if charge else {}
            protection = {"protection": charge["protection"]} if charge else {}
            row = {**shared, **amounts, **protection}
            yield _csv_row([row.get(column, "") for column in COLUMNS])


def _csv_row(cells: Iterable[str]) -> str:
    buffer = io.StringIO()
    # Ledgers of before may hold names that are no text; a spreadsheet gets their codes.
    cells = [cell.encode("utf-8", "backslashreplace").decode("utf-8") for cell in cells]
    # A spreadsheet runs a cell that begins like a formula; an analyst's name is not ours to trust.
    csv.writer(buffer).writerow(["'" + c if c[:1] in tuple("=+-@\t\r") else c for c in cells])
    return buffer.getvalue()
