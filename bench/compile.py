"""How long it takes from a text to a job that is ready to run: `python -m bench compile`.

The 17 derivative queries, the 22 texts of TPC-H and the 99 of TPC-DS, each as often as is asked for in turns; the best
of its processor times counts, the first turn is left out. A text that is refused counts until its refusal. `engine` is
the same with what the engine spends in threads of its own on public keys and facts. Milliseconds.
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from fractions import Fraction
from pathlib import Path
from typing import Any

from bench.suites.laud import database, forms
from bench.suites.tpcds import measure as tpcds
from bench.suites.tpcds import source
from bench.suites.tpch import texts
from secant.engine import Connection, connect
from secant.errors import SecantError
from secant.policy.policy import Policy
from secant.sql.query_context import query_context

PROFILE = "native"
TURNS = 5
Case = tuple[str, str, Connection, Fraction]
Times = tuple[float, float]
"""Of the thread that asks, and of the whole process."""


def run(scale: str = "0.1", turns: int = TURNS, queries: str = "") -> dict[str, Any]:
    """Compile everything; milliseconds by suite and text."""
    wanted = {name.strip() for name in queries.split(",") if name.strip()}
    with ExitStack() as held:
        cases = [c for c in _cases(scale, held) if not wanted or c[1] in wanted]
        best: dict[tuple[str, str], Times] = {}
        for turn in range(turns + 1):
            for suite, name, db, epsilon in cases:
                spent = _compiled(db, _TEXTS[suite, name], epsilon)
                if turn:  # the first fills what is made once for a connection
                    known = best.get((suite, name), spent)
                    best[suite, name] = (min(known[0], spent[0]), min(known[1], spent[1]))
    found: dict[str, Any] = {"all": _summary({f"{s} {q}": t for (s, q), t in best.items()})}
    for suite in dict.fromkeys(suite for suite, _ in best):
        times = {name: t for (of, name), t in best.items() if of == suite}
        queries = {name: round(1000 * own, 1) for name, (own, _) in times.items()}
        found[suite] = {**_summary(times), "queries": queries}
    return found


_TEXTS: dict[tuple[str, str], str] = {}


def _cases(scale: str, held: ExitStack) -> Iterator[Case]:
    place = database.default_directory()
    unused = Path(held.enter_context(tempfile.TemporaryDirectory()))
    made = iter(range(1000))

    def opened(where: str, policy: Policy) -> Connection:
        ledger = unused / f"{next(made)}.ledger"  # never opened: nothing is reserved here
        return held.enter_context(connect(where, policy=policy, ledger=ledger))

    profile = forms.profile_of(PROFILE)
    file = f"duckdb:{database.duckdb_file(scale, place)}"
    derivative = opened(file, forms.policy_of(profile, forms.QUERIES[0]))
    for query in forms.QUERIES:
        _TEXTS["derivative", query] = forms.text_of(profile, query)
        yield "derivative", query, derivative, profile.epsilon_of(query)
    customers = opened(f"parquet:{database.parquet_of(scale, place)}", texts.policy_of(None))
    for query in texts.QUERIES:
        _TEXTS["tpch", query] = texts.text_of(query)
        yield "tpch", query, customers, Fraction(1)
    folder = source.made("0.01", place)
    shoppers = opened(f"parquet:{folder / 'data'}", tpcds.policy())
    for query in source.QUERIES:
        _TEXTS["tpcds", query] = (folder / "queries" / f"{query}.sql").read_text(encoding="utf-8")
        yield "tpcds", query, shoppers, Fraction(1)


def _compiled(db: Connection, text: str, epsilon: Fraction) -> Times:
    own, whole = time.thread_time(), time.process_time()
    with suppress(SecantError), query_context(text):
        asked = db._asked(epsilon, None, None, 0.95, None)
        with db._question(text) as question:
            db._settling(text, question, asked).settled()
    return time.thread_time() - own, time.process_time() - whole


def _summary(times: dict[str, Times]) -> dict[str, Any]:
    told: dict[str, Any] = {"texts": len(times)}
    for place, what in enumerate(("", "engine_")):
        worst = max(times, key=lambda name: times[name][place])
        told[f"{what}median"] = round(1000 * statistics.median(t[place] for t in times.values()), 1)
        told[f"{what}worst"] = round(1000 * times[worst][place], 1)
        told[f"{what}worst_text"] = worst
    return told


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--scale", default="0.1")
    parser.add_argument("--turns", type=int, default=TURNS)
    parser.add_argument("--queries", default="")
    chosen = parser.parse_args()
    print(json.dumps(run(chosen.scale, chosen.turns, chosen.queries), indent=2))
