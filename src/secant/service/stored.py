"""Released answers as text, and back: for answers that are given again, to the same bit.

In: an answer. Out: JSON in which values that JSON does not have carry the name of their kind. Only released values are
ever written. A kind that is not listed cannot be stored; the answer is then given once.
"""

from __future__ import annotations

import base64
import dataclasses
import json
import math
from collections.abc import Callable, Mapping
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from fractions import Fraction
from typing import Any

from secant.accuracy.warnings import Caution
from secant.ledger.opening import Account, Accounts
from secant.release.answer import Answer

_WRITE: dict[type, tuple[str, Callable[[Any], Any]]] = {
    Decimal: ("decimal", str),
    Fraction: ("fraction", str),
    datetime: ("timestamp", datetime.isoformat),
    date: ("date", date.isoformat),
    time: ("time", time.isoformat),
    timedelta: ("interval", lambda v: [v.days, v.seconds, v.microseconds]),
    bytes: ("bytes", lambda v: base64.b64encode(v).decode()),
    tuple: ("tuple", lambda v: [_plain(item) for item in v]),
}
_RECORDS = {kind.__name__: kind for kind in (Account, Caution)}
_READ: dict[str, Callable[[Any], Any]] = {
    "decimal": Decimal,
    "fraction": Fraction,
    "timestamp": datetime.fromisoformat,
    "date": date.fromisoformat,
    "time": time.fromisoformat,
    "interval": lambda v: timedelta(*v),
    "bytes": base64.b64decode,
    "tuple": lambda v: tuple(_value(item) for item in v),
    "record": lambda v: _RECORDS[v[0]](**{name: _value(item) for name, item in v[1].items()}),
    "float": float,
    "dict": lambda v: {_value(key): _value(item) for key, item in v},
}


def write_answer(answer: Answer) -> str:
    """Give an answer as text; TypeError if it holds a value of a kind that is not listed."""
    return json.dumps(_fields(answer), separators=(",", ":"))


def read_answer(text: str) -> Answer:
    """Give the answer that a text was written from."""
    fields = {name: _value(value) for name, value in json.loads(text).items()}
    return Answer(**{**fields, "budget": Accounts(fields["budget"])})


def _fields(record: Any) -> dict[str, Any]:
    return {f.name: _plain(getattr(record, f.name)) for f in dataclasses.fields(record)}


def _plain(value: Any) -> Any:
    if value is None or type(value) in (bool, int, str):
        return value
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else {"float": repr(float(value))}
    if type(value) is list:
        return [_plain(item) for item in value]
    if isinstance(value, Mapping):
        return {"dict": [[_plain(key), _plain(item)] for key, item in value.items()]}
    if type(value) in _RECORDS.values():
        return {"record": [type(value).__name__, _fields(value)]}
    kind = _WRITE.get(Fraction if isinstance(value, Fraction) else type(value))
    if kind is None:
        raise TypeError(f"a {type(value).__name__} cannot be stored")
    name, write = kind
    return {name: write(value)}


def _value(value: Any) -> Any:
    if isinstance(value, list):
        return [_value(item) for item in value]
    if isinstance(value, dict):
        ((kind, inner),) = value.items()
        return _READ[kind](inner)
    return value
