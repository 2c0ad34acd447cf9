"""Three data sets and the three ways of asking them: declared, after `secant init` alone, with nothing declared.

In: the name of a set and of a way. Out: an open connection, with a budget that is never the reason for a bad answer.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb

import secant
from bench.suites.useful import bank, baseball, visits
from secant.cli.starter import starter_policy
from secant.engine import Connection
from secant.engines.sources import open_source
from secant.errors import UsageError

WAYS = ("declared", "init", "nothing")
BUDGET = 1_000_000
"""All epsilon that may be spent: far more than all questions ask for."""


@dataclass(frozen=True, slots=True)
class DataSet:
    """Tables as frames and as a database that keeps keys and references, and what people ask of them."""

    name: str
    tuning: bool
    tables: Mapping[str, Any]
    database: Path
    module: Any

    @property
    def questions(self) -> Mapping[str, str]:
        """Give the texts by name."""
        questions: Mapping[str, str] = self.module.QUESTIONS
        return questions


_MAKE: Mapping[str, tuple[Any, bool, Callable[[Path], Mapping[str, Any]]]] = {
    "visits": (visits, True, lambda _: visits.make()),
    "bank": (bank, True, lambda _: bank.make()),
    "baseball": (baseball, False, baseball.make),
}
SETS = tuple(_MAKE)


def make(name: str, directory: Path, packages: Path) -> DataSet:
    """Make a set, and write its database into a directory."""
    module, tuning, tables_of = _MAKE[name]
    tables, file = tables_of(packages), directory / f"{name}.duckdb"
    with duckdb.connect(str(file)) as db:
        for table, columns in module.TABLES.items():
            db.execute(f"CREATE TABLE {table} ({columns})")
            db.register("made", tables[table])
            db.execute(f"INSERT INTO {table} SELECT * FROM made")
            db.unregister("made")
    return DataSet(name, tuning, tables, file, module)


@contextmanager
def opened(made: DataSet, way: str) -> Iterator[Connection]:
    """Open a set as its owner would, with a fresh budget: what was found privately before is forgotten."""
    with {"declared": _declared, "init": _after_init, "nothing": _nothing}[way](made) as db:
        yield db


def _declared(made: DataSet) -> Connection:
    """Everything that an owner may know: references, ranges, listed values, limits."""
    module = made.module
    tables: dict[str, dict[str, Any]] = {}
    for name, columns in module.COLUMNS.items():
        tables.setdefault(name, {})["columns"] = columns
    for name, references in module.REFERENCES.items():
        tables.setdefault(name, {})["references"] = references
    protection = {
        "kind": "unit",
        "unit": module.UNIT,
        "epsilon": BUDGET,
        "delta": 1e-6,
        "limits": module.LIMITS,
    }
    policy = {"tables": tables, "protections": {"people": protection}}
    return secant.connect(f"duckdb:{made.database}", policy=policy, ledger=":memory:")


def _after_init(made: DataSet) -> Connection:
    """What `secant init` writes, as it is; only the budget is larger."""
    source = f"duckdb:{made.database}"
    with closing(open_source(source)) as backend:
        text = starter_policy(source, backend.catalog())
    file = made.database.with_suffix(".toml")
    file.write_text(re.sub(r"(?m)^epsilon = 1\.0", f"epsilon = {BUDGET}.0", text), encoding="utf-8")
    return secant.connect(policy=file, ledger=":memory:")


def _nothing(made: DataSet) -> Connection:
    """Frames, and whose rows they hold."""
    module = made.module
    if module.FRAME is not None:
        table, column = module.FRAME
        return secant.protect(
            made.tables[table], table=table, unit=column, epsilon=BUDGET, ledger=":memory:"
        )
    # one frame has a person's column; several need to be told how they belong together
    tables: dict[str, dict[str, Any]] = {
        name: {"references": ways} for name, ways in module.REFERENCES.items()
    }
    for reference in {way for ways in module.REFERENCES.values() for way in ways.values()}:
        table, _, column = reference.partition(".")
        tables.setdefault(table, {})["key"] = [column]
    protection = {"kind": "unit", "unit": module.UNIT, "epsilon": BUDGET, "delta": 1e-6}
    policy = {"tables": tables, "protections": {"people": protection}}
    return secant.connect(dict(made.tables), policy=policy, ledger=":memory:")


def chosen_sets(names: str) -> tuple[str, ...]:
    """Read a list such as `visits,bank`; nothing means all.

    >>> chosen_sets("bank, visits")
    ('visits', 'bank')
    """
    wanted = {name.strip().lower() for name in names.split(",") if name.strip()}
    for name in sorted(wanted - set(SETS)):
        raise UsageError(
            "USE-001", f"there are no data {name!r}", hint=f"there are: {', '.join(SETS)}"
        )
    return tuple(name for name in SETS if not wanted or name in wanted)
