"""Release every question many times, and see whether both statements of its error hold the plain answer.

In: a data set. Out: one record per question, as `secant bench honesty --json` writes it. The truth is the user's text
as it stands, without limits, clamps and noise. Every release takes the way of an analyst's; only statements that do
not differ between two of them are run once. The printed ends are usual ones where what limits cut is estimated; the
certain ends of the same releases are judged apart.
"""

from __future__ import annotations

import statistics
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from fractions import Fraction
from pathlib import Path
from typing import Any

import secant
from bench.suites.honesty.held import Ends, judge
from bench.suites.honesty.sets import DataSet, Question
from bench.suites.tpch.accuracy import Rows
from bench.suites.tpch.rehearsal import (
    Rehearsal,
    Remembering,
    compiled,
    engine_of,
    plain_statement,
)
from secant.engine import Connection
from secant.engines.print.print_sql import lower
from secant.errors import SecantError
from secant.release.inferred_facts import SHARE, Lacking, countable, find, lacking_facts
from secant.release.print import check_statements
from secant.sensitivity.split import Decomposition, prepare
from secant.sql.bind import bind
from secant.stages.open import open_snapshot

REQUIRED = 0.93
"""At a level of 95 %, what 200 releases may show of an interval that is exact."""
CLEAR, LONGER = 0.97, 5
"""Where fewer are held than this, so many times as many releases decide: 200 of one cell are too few to tell."""
ENOUGH = 2000
"""Cells, over all releases, that are enough to tell in any case."""
DELTA = Fraction(1, 10**8)
OF_ENDS = ("held", "worst_cell", "stated", "one_sided", "half_width")
"""What differs between two statements of the same numbers."""
Row = dict[str, Any]


def measure(data: DataSet, repeat: int) -> Iterator[Row]:
    """Give a record for each question, when it is ready."""
    with (
        tempfile.TemporaryDirectory() as folder,
        # The ledger is never opened: nothing is reserved here.
        secant.connect(data.source, policy=data.policy, ledger=Path(folder) / "no.ledger") as db,
    ):
        for question in data.questions:
            yield {"data": data.name, "query": question.name, **ask(db, question, repeat)}


def ask(db: Connection, question: Question, repeat: int) -> Row:
    """Release one text again and again."""
    engine = Remembering(engine_of(db))
    try:
        lacking = lacking_in(db, question.text)
        ready = _ready(db, question, lacking, engine)
        check_statements(ready.job, engine)
        if not ready.analyses:
            return {"status": "exact"}
        truth = engine.rows(plain_statement(db, question.text))
        released: list[tuple[Rows, Ends | None]] = []
        certainly: list[tuple[Rows, Ends | None]] = []
        for runs in (repeat, LONGER * repeat):
            for _ in range(runs - len(released)):
                if lacking:  # what is found differs from release to release
                    ready = _ready(db, question, lacking, engine)
                shown = ready.shown(engine)
                released.append((shown.rows, shown.ends))
                certainly.append((shown.rows, shown.certain))
            found = judge(truth, released, ready.noisy)
            certain = judge(truth, certainly, ready.noisy)
            held = [one.held for one in (found, certain) if one.held is not None]
            if min(held, default=1.0) >= CLEAR or found.cells * repeat >= ENOUGH:
                break
    except SecantError as error:
        return {"status": "refused", "refused": error.to_dict()}
    status = "held" if min(held, default=1.0) >= REQUIRED else "broken"
    usual = sum(ends != sure for (_, ends), (_, sure) in zip(released, certainly, strict=True))
    return {
        "status": status if held else "unstated",
        "epsilon": str(question.epsilon),
        "releases": len(released),
        "usual": usual / len(released),
        **asdict(found),
        "certain": {k: v for k, v in asdict(certain).items() if k in OF_ENDS},
    }


def lacking_in(db: Connection, text: str) -> tuple[Lacking, ...]:
    """Give the ranges and limits that a question lacks, which an analyst's question would find privately first."""
    protections = db.policy.protections
    plan = bind(text, db.catalog)
    with open_snapshot(plan, db._source) as snapshot:
        facts = snapshot.facts
        if isinstance(prepare(plan, db.policy, protections, db.catalog, facts), Decomposition):
            return ()
        found = lacking_facts(plan, db.policy, protections, db.catalog, facts)
    return found if countable(found, db.policy, db.catalog) else ()


def _ready(
    db: Connection, question: Question, lacking: tuple[Lacking, ...], engine: Remembering
) -> Rehearsal:
    """Take a question as far as a release, with facts found anew where it lacks some."""
    if not lacking:
        return compiled(db, question.text, question.epsilon, DELTA)
    paid = question.epsilon * SHARE
    found = find(
        lacking,
        db.policy,
        db.catalog,
        paid,
        lambda statement: engine.rows(lower(statement, engine.dialect))[0],
    )
    return compiled(db._having(found), question.text, question.epsilon - paid, DELTA)


def mean_error(rows: Sequence[Mapping[str, Any]]) -> float | None:
    """Give the geometric mean of the errors at 95 %, of all answers that have one."""
    errors = [e for row in rows if (e := row.get("error95"))]
    return statistics.geometric_mean(errors) if errors else None


def summary(rows: Sequence[Mapping[str, Any]]) -> str:
    """Say in one line what the questions came to."""
    stated = [r for r in rows if r["status"] in ("held", "broken")]
    broken = [f"{r['data']} {r['query']}" for r in stated if r["status"] == "broken"]
    line = (
        f"printed ends and certain ends hold in at least {REQUIRED:.0%} of cells: "
        f"{len(stated) - len(broken)} of {len(stated)}"
    )
    return f"{line}; not in: {', '.join(broken)}" if broken else line
