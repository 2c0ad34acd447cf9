"""What is fixed when a stream begins, as plain values for the ledger, and whether it still holds.

In: a compiled stream and its groups. Out: a declaration that is written once, and the ways and groups that it names.
Nothing in it is private. A stream whose declaration has changed is refused: its first steps were released by another
(stream.once).
"""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any

from secant.errors import BudgetError, PolicyError
from secant.ledger.records import canonical
from secant.noise.continual import Mechanism, way_of
from secant.plan.facts.lineage import stored_column
from secant.plan.facts.reads import scans
from secant.plan.facts.scopes import read_columns
from secant.plan.typing import type_of
from secant.policy.policy import Policy, Protection
from secant.schema.types import Type
from secant.sensitivity.bounds import GlobalBound
from secant.streams.compiling import Compiled
from secant.streams.reading import Group

FORM = 1
"""How streams are enforced, read and named. A stream that began under another form is not gone on with."""
_FIXED = ("groups", "ways")
"""Settled when a stream begins; later ones are not compared with them but taken from them."""


def declaration(
    compiled: Compiled, policy: Policy, groups: Sequence[Group], ways: Sequence[Mechanism]
) -> dict[str, Any]:
    """Give all that must not change once a number is out."""
    stream = compiled.stream
    release = compiled.bounded.release
    bounds = {}
    for certificate in compiled.bounded.certificates:
        for measure in release.measures:
            bound = certificate.bounds[measure.column]
            assert isinstance(bound, GlobalBound)
            bounds[f"{certificate.protection}: {measure.words}"] = str(bound.value)
    return {
        "form": FORM,
        "query": " ".join(stream.query.split()),
        "step": str(stream.step),
        "start": _json_value(stream.start),
        "steps": stream.steps,
        "shows": stream.shows,
        "objective": stream.objective,
        "epsilon": str(stream.epsilon),
        "delta": str(stream.delta),
        "append_only": stream.append_only,
        "arrival": stream.arrival,
        "late": stream.late,
        "personal": None
        if stream.personal is None
        else [stream.personal.table, stream.personal.rows, str(stream.personal.period)],
        "protections": [_protected(p) for p in compiled.protections],
        "facts": _facts(compiled, policy),
        "measures": [[m.words, str(m.step), str(m.type)] for m in release.measures],
        "bounds": bounds,
        "groups": [[_json_value(v) for v in group] for group in groups],
        "ways": [way.to_dict() for way in ways],
    }


def settled(
    compiled: Compiled, began: Mapping[str, Any], now: Mapping[str, Any]
) -> tuple[list[Group], list[Mechanism]]:
    """Give the groups and ways that a stream began with; refuse one that is declared otherwise now."""
    name = compiled.stream.name
    changed = [
        f"{key}: {_text(began.get(key))} when it began, {_text(now.get(key))} now"
        for key in sorted({*began, *now} - {*_FIXED})
        if canonical(began.get(key)) != canonical(now.get(key))
    ]
    if changed:
        raise PolicyError(
            "POL-006",
            f"the stream {name} was declared otherwise when it began",
            details=tuple(changed),
            hint="put the declaration back, or declare a new stream under a new name, which is paid for anew",
        )
    kinds = _kinds(compiled)
    try:
        groups = [
            tuple(_read(v, kind) for v, kind in zip(group, kinds, strict=True))
            for group in began["groups"]
        ]
        return groups, [way_of(way) for way in began["ways"]]
    except (ValueError, KeyError, TypeError) as error:
        raise BudgetError(
            "BUD-003",
            f"the declaration of the stream {name} cannot be read",
            hint="use the Secant that wrote it, or restore the ledger",
        ) from error


def _protected(protection: Protection) -> list[Any]:
    return [
        protection.name,
        protection.kind,
        list(protection.unit or ()),
        None if protection.tables is None else list(protection.tables),
        protection.replace,
        protection.groups,
        dict(protection.limits),
        *([] if protection.within is None else [str(protection.within), dict(protection.time)]),
        *([_distances(protection)] if protection.distance else []),
    ]


def _distances(protection: Protection) -> dict[str, Any]:
    """Give by what values move, how their filters are softened, and how far off a row is that comes or goes."""
    softening, rows = protection.softening, protection.public_rows
    weights = {table: str(weight) for table, weight in sorted(protection.add_remove.items())}
    return {
        "distance": dict(protection.distance),
        "rows": dict(protection.row_norms),
        "tables": protection.table_norm,
        "softening": None if softening is None else str(softening),
        "public_rows": {table: str(distance) for table, distance in sorted(rows.items())},
        **({"add_remove": weights} if weights else {}),
    }


def _facts(compiled: Compiled, policy: Policy) -> dict[str, Any]:
    """Give the declared facts of the columns that are read, and the keys of their tables."""
    original = compiled.bounded.release.original
    read = read_columns(original)
    facts_by_table: dict[str, Any] = {}
    for scan in scans(original):
        table = scan.table.lower()
        facts = policy.facts(table)
        facts_by_table[table] = [list(facts.key), {c: list(r) for c, r in facts.references.items()}]
        for field in scan.columns:
            column = stored_column(scan, field.name).lower()
            column_facts = facts.columns.get(column)
            if field.name in read and column_facts is not None:
                facts_by_table[f"{table}.{column}"] = [
                    None
                    if column_facts.range is None
                    else [_json_value(v) for v in column_facts.range],
                    None
                    if column_facts.values is None
                    else [_json_value(v) for v in column_facts.values],
                    _json_value(column_facts.step),
                ]
    return facts_by_table


def _kinds(compiled: Compiled) -> list[Type]:
    keys = compiled.bounded.release.exact.keys
    return [type_of(k.expression) for k in keys if k.name != compiled.step_key]


def _json_value(value: object) -> Any:
    """Write a public value so that `_read` gives it back."""
    if isinstance(value, (datetime.date, datetime.datetime)):
        return value.isoformat()
    return value if value is None or isinstance(value, (bool, int, str)) else str(value)


def _read(value: Any, kind: Type) -> object:
    if value is None:
        return None
    if kind.kind == "DATE":
        return datetime.date.fromisoformat(value)
    if kind.kind == "TIMESTAMP":
        return datetime.datetime.fromisoformat(value)
    if kind.kind in ("DECIMAL", "DOUBLE"):
        return Decimal(value) if kind.kind == "DECIMAL" else float(value)
    return value


def _text(value: object) -> str:
    text = canonical(value)
    return text if len(text) <= 120 else f"{text[:117]}..."
