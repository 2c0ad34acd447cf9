"""Ask every text: is it planned, does the printed plan give the same answer, and is there a bound for one customer?

In: generated data and texts, the customers policy. Out: a row for each query. Data are generated, so true answers may
be compared; no ledger is touched and nothing is released.
"""

from __future__ import annotations

import math
import tempfile
import time
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from decimal import Decimal
from importlib.resources import files
from pathlib import Path
from typing import Any

import duckdb

from secant.engine import Connection, connect
from secant.engines.print.print_sql import lower
from secant.errors import SecantError
from secant.plan.rewrites.rewrite import normalize
from secant.policy.file import read_policy
from secant.policy.policy import Policy
from secant.sql.bind import from_sql

Row = Mapping[str, Any]
DIGITS = 9
"""Engines add reals in any order: what differs beyond so many digits is the same."""


def policy() -> Policy:
    """Give the policy that protects one customer."""
    place = files(__package__).joinpath("customers.toml")
    return read_policy(place.read_text(encoding="utf-8"))


def measure(folder: Path, names: Sequence[str], epsilon: str = "1") -> Iterator[Row]:
    """Try each query; a refusal is a result."""
    plain = duckdb.connect()
    for file in sorted((folder / "data").glob("*.parquet")):
        plain.execute(f"CREATE VIEW {file.stem} AS SELECT * FROM '{file}'")
    with _opened(folder) as db:
        for name in names:
            text = _text(folder, name)
            yield {"query": name, **_planned(db, plain, text), **_bounded(db, text, epsilon)}


@contextmanager
def _opened(folder: Path) -> Iterator[Connection]:
    with (
        tempfile.TemporaryDirectory() as unused,
        connect(
            f"parquet:{folder / 'data'}", policy=policy(), ledger=Path(unused) / "unused.ledger"
        ) as db,
    ):
        yield db


def _text(folder: Path, name: str) -> str:
    return (folder / "queries" / f"{name}.sql").read_text(encoding="utf-8")


def follow(folder: Path, names: Sequence[str], epsilon: str = "1") -> Iterator[Row]:
    """Do what the hint of each refused query says, and say where that leads."""
    place = files(__package__).joinpath("followed.toml")
    known = tomllib.loads(place.read_text(encoding="utf-8"))
    with _opened(folder) as db:
        for name in names:
            told = _bounded(db, _text(folder, name), epsilon)
            if not told["bounded"]:
                yield {"query": name, **_followed(db, told, known.get(name, ()), epsilon)}


def _followed(db: Connection, told: Row, steps: Sequence[Row], epsilon: str) -> Row:
    """Follow hint after hint; each must say what is done next."""
    done: list[str] = []
    for step in steps:
        hint = str(told["refused"]["hint"])
        if step["hint"] not in hint:
            return {"answered": False, "followed": done, "why": f"the hint is another one: {hint}"}
        done.append(step["hint"])
        results = [_bounded(db, text, epsilon) for text in step["asked"]]
        if all(r["bounded"] for r in results):
            return {"answered": True, "followed": done}
        told = next(r for r in results if not r["bounded"])
    return {"answered": False, "followed": done, "why": told["refused"]}


def _planned(db: Connection, plain: duckdb.DuckDBPyConnection, text: str) -> Row:
    try:
        statement = lower(normalize(from_sql(text, db.catalog)))
    except SecantError as error:
        return {"planned": False, "same": False, "why": error.message}
    ours = _sorted(plain.execute(statement).fetchall())
    return {"planned": True, "same": ours == _sorted(plain.execute(text).fetchall())}


def _sorted(rows: Iterable[Sequence[object]]) -> list[tuple[object, ...]]:
    return sorted((tuple(map(_rounded, row)) for row in rows), key=repr)


def _rounded(value: object) -> object:
    if isinstance(value, Decimal):
        value = float(value)
    if isinstance(value, float) and math.isfinite(value):
        return float(f"{value:.{DIGITS}g}")
    return value


def _bounded(db: Connection, text: str, epsilon: str) -> Row:
    began = time.perf_counter()
    try:
        told = db.explain(text, epsilon=epsilon)
    except SecantError as error:
        details = [str(line) for line in getattr(error, "details", ())]
        refused = {"code": error.code, "reason": details or [error.message], "hint": error.hint}
        return {"bounded": False, "seconds": time.perf_counter() - began, "refused": refused}
    warnings = len(told.warnings)
    return {"bounded": True, "seconds": time.perf_counter() - began, "warnings": warnings}


def summary(rows: Sequence[Row]) -> str:
    """Say in one line what the queries came to."""
    count = {k: sum(bool(r[k]) for r in rows) for k in ("planned", "same", "bounded")}
    return (
        f"of {len(rows)}: planned {count['planned']}, printed back to the same answer {count['same']}, "
        f"bounded {count['bounded']}"
    )
