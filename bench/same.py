"""Did a change that should change nothing change anything? `python -m bench.same write FOLDER`, then `compare A B`.

Writes, for all texts (TPC-H, TPC-DS, the 17 derivative queries in three forms, the small corpus, the explained
questions) and for each engine: the explanation as text and as JSON with its printed statements, or the refusal, and of
the released answer the documents of the ledger (plan, policy, certificate with scales of noise) and charges. Noise is
never written. Uses only what users hold in their hands, so that the same file runs before and after a redesign.
"""

from __future__ import annotations

import argparse
import difflib
import json
import re
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import duckdb

import secant
from bench.postgres_data import TPCH_KEYS, copy_tables
from bench.suites.laud import database, forms
from bench.suites.tpcds import measure as tpcds
from bench.suites.tpcds import source as tpcds_source
from bench.suites.tpch import texts
from secant.errors import SecantError

ROOT = Path(__file__).parents[1]
SCALE, TPCDS_SCALE = "0.01", "0.01"
SMALL = """
[tables.person]
key = ["id"]
[tables.person.columns]
id = { range = [0, 1000] }
age = { range = [0, 120] }
height = { range = [-10, 10] }
balance = { range = [-1000, 10000] }
[tables.visit]
key = ["vid"]
columns = { cost = { range = [0, 500] }, rating = { range = [-5, 5] }, pid = { range = [0, 1000] } }
references = { pid = "person.id" }
"""
PROTECTIONS = {
    "unit": '[protections.p]\nkind = "unit"\nunit = "person.id"\nepsilon = 1e6\nlimits = { visit = 5 }\n',
    "rows": '[protections.p]\nkind = "rows"\ntables = ["person", "visit"]\nepsilon = 1e6\n',
}


@dataclass(frozen=True)
class Case:
    """One text, asked under one policy at one source."""

    name: str
    source: str
    policy: Any
    text: str
    epsilon: Fraction = Fraction(1)
    released: bool = True


def main(arguments: Sequence[str] | None = None) -> int:
    """Write or compare; the exit code says whether all was the same."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("action", choices=("write", "compare"))
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--postgres", help="address of a server where databases may be made")
    parser.add_argument("--only", default="", help="a regular expression for names of cases")
    parser.add_argument("--renamed", type=Path, help="lines `old new`: words that were renamed")
    asked = parser.parse_args(arguments)
    if asked.action == "write":
        written = sum(1 for _ in _write(asked.folders[0], asked.postgres, asked.only))
        print(f"{written} cases written to {asked.folders[0]}")
        return 0
    before, after = asked.folders
    renamed = _words(asked.renamed) if asked.renamed else []
    different = list(_compare(before, after, renamed))
    cases = len({*_names(before), *_names(after)})
    print(f"{cases} cases, {len(different)} differ")
    return int(bool(different) or not cases)


def _write(folder: Path, postgres: str | None, only: str) -> Iterator[None]:
    folder.mkdir(parents=True, exist_ok=True)
    with ExitStack() as stack:
        for case in _cases(stack, postgres):
            if not re.search(only, case.name):
                continue
            # A ledger for each case: none runs out because of those before it.
            with secant.connect(case.source, policy=case.policy, ledger=":memory:") as db:
                document = _described(db, case)
            file = folder / f"{case.name}.json"
            written = json.dumps(document, indent=1, sort_keys=True, default=str)
            file.write_text(written + "\n", encoding="utf-8")
            yield


def _described(db: Any, case: Case) -> Mapping[str, Any]:
    """Give all that is decided about a text before noise is drawn."""
    document: dict[str, Any] = {}
    try:
        explanation = db.explain(case.text, epsilon=case.epsilon)
        document["text"] = str(explanation).splitlines()
        document["record"] = explanation.to_dict()
    except SecantError as error:
        document["refused"] = _refusal(error)
        return document
    if not case.released:
        return document
    try:
        db.sql(case.text, epsilon=case.epsilon)
    except SecantError as error:
        document["failed"] = _refusal(error)
        return document
    if not explanation.to_dict()["exact"]:
        record = [r.fields for r in db.ledger.records() if '"kind":"reserve"' in r.body][-1]
        document["charges"] = record.get("charges")
        evidence = {k: db.ledger.paper(v) for k, v in record["papers"].items() if k != "software"}
        document["papers"] = {k: json.loads(v) for k, v in evidence.items() if v and k != "data"}
    return document


def _refusal(error: Any) -> Mapping[str, Any]:
    return {"code": error.code, "message": error.message.splitlines(), "hint": error.hint}


def _cases(stack: ExitStack, postgres: str | None) -> Iterator[Case]:
    place = database.default_directory()
    work = Path(stack.enter_context(tempfile.TemporaryDirectory()))
    tpch = f"parquet:{database.parquet_of(SCALE, place)}"
    shop = f"duckdb:{database.duckdb_file(SCALE, place)}"
    small = work / "small.duckdb"
    with duckdb.connect(str(small)) as connection:
        connection.execute((ROOT / "tests/data/small_schema.sql").read_text(encoding="utf-8"))
    places = {"duckdb": (shop, tpch, f"duckdb:{small}")}
    if postgres:
        places["postgresql"] = _on_postgres(postgres, Path(shop.split(":", 1)[1]), small)
    for engine, (derivative, customers, people) in places.items():
        yield from _derivative(engine, derivative)
        policy = texts.policy_of(None)
        for query in texts.QUERIES:
            yield Case(f"{engine}.tpch.{query}", customers, policy, texts.text_of(query))
        yield from _small(engine, people)
    folder = tpcds_source.made(TPCDS_SCALE, place)
    policy = tpcds.policy()
    for query in tpcds_source.QUERIES:
        text = (folder / "queries" / f"{query}.sql").read_text(encoding="utf-8")
        yield Case(f"duckdb.tpcds.{query}", f"parquet:{folder / 'data'}", policy, text)


def _derivative(engine: str, source: str) -> Iterator[Case]:
    for profile in forms.PROFILES:
        policies: dict[Any, Any] = {}
        for query in forms.QUERIES:
            policy = policies.setdefault(profile.beta_of(query), forms.policy_of(profile, query))
            name = f"{engine}.{profile.name}.{query}"
            text, epsilon = forms.text_of(profile, query), profile.epsilon_of(query)
            yield Case(name, source, policy, text, epsilon)


def _small(engine: str, source: str) -> Iterator[Case]:
    from secant.policy.file import read_policy

    lines = (ROOT / "tests/data/small_queries.sql").read_text(encoding="utf-8").splitlines()
    asked = [line for line in lines if line and not line.startswith("--")]
    counted = [f"SELECT count(*) AS n FROM ({line}) AS asked" for line in asked]
    for kind, protection in PROTECTIONS.items():
        policy = read_policy(
            f'[database]\nsource = "{source}"\npublic = ["nothing"]\n{SMALL}{protection}'
        )
        for number, text in enumerate((*asked, *counted)):
            yield Case(f"{engine}.small.{kind}.{number:03}", source, policy, text)


def _on_postgres(address: str, shop: Path, small: Path) -> tuple[str, str, str]:
    import psycopg

    places = []
    for name, file, keys in (("same_shop", shop, TPCH_KEYS), ("same_small", small, None)):
        with psycopg.connect(address, autocommit=True) as connection:
            connection.execute(f"DROP DATABASE IF EXISTS {name}")
            connection.execute(f"CREATE DATABASE {name}")
        there = re.sub(r"/[^/?]*(?=\?|$)", f"/{name}", address, count=1)
        with duckdb.connect(str(file), read_only=True) as connection:
            tables = [t for (t,) in connection.execute("SHOW TABLES").fetchall()]
            copy_tables(connection, tables, there, keys)
        places.append(there)
    return places[0], places[0], places[1]


def _names(folder: Path) -> list[str]:
    return sorted(p.name for p in folder.glob("*.json"))


def _words(file: Path) -> list[tuple[re.Pattern[str], str]]:
    pairs = [line.split() for line in file.read_text(encoding="utf-8").splitlines() if line.strip()]
    return [(re.compile(rf"\b{re.escape(old)}\b"), new) for old, new in pairs]


def _compare(
    before: Path, after: Path, renamed: list[tuple[re.Pattern[str], str]]
) -> Iterator[str]:
    for name in sorted({*_names(before), *_names(after)}):
        old, new = (_lines(folder / name) for folder in (before, after))
        for pattern, word in renamed:
            old = [pattern.sub(word, line) for line in old]
        if old != new:
            yield name
            print(f"── {name}")
            difference = difflib.unified_diff(old, new, "before", "after", lineterm="", n=1)
            sys.stdout.writelines(f"{line}\n" for line in list(difference)[:40])


def _lines(file: Path) -> list[str]:
    return file.read_text(encoding="utf-8").splitlines() if file.exists() else []


if __name__ == "__main__":
    sys.exit(main())
