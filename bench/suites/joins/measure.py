"""Ask every analysis alone about a join, and the portfolio, and hold both against what is exactly true.

In: TPC-H data and the cases. Out: one record a case, as `secant bench joins --json` writes it: bounds
in rows of the join that one row more or less moves, at beta = epsilon / 10. With keys, the worst group
counts. The figures that surveys rest on are read from generated data and shown; an owner's never are.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Iterator, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import secant
from bench.suites.joins.cases import Case
from bench.suites.tpch.measure import ask
from bench.suites.tpch.rehearsal import compiled, engine_of, plain_statement
from secant.engine import Connection
from secant.engines.backend import Session
from secant.engines.print.print_sql import lower
from secant.errors import SecantError
from secant.plan import nodes as n
from secant.plan.facts.facts import Facts
from secant.plan.rewrites.enforce import enforce
from secant.plan.rewrites.measures import Problem
from secant.plan.rewrites.rewrite import normalize
from secant.policy.file import read_policy
from secant.release.public_facts import public_facts
from secant.sensitivity import bound as bounding
from secant.sensitivity.certificate import Certificate, Refusal, Survey, Surveyed
from secant.sensitivity.interface import Request
from secant.sensitivity.public_facts import OpenFacts
from secant.sql.bind import from_sql

SMOOTHNESS = 10
"""Epsilon over beta: what the noise of surveyed joins takes, too."""
Row = dict[str, Any]
Keyed = dict[tuple[str, ...], tuple[tuple[object, ...], ...]]


def measure(
    parquet: Path,
    cases: Sequence[Case],
    *,
    epsilon: Fraction,
    repeat: int = 3,
    releases: int = 200,
) -> Iterator[Row]:
    """Give a record for each case, when it is ready.

    Args:
        parquet: A directory of TPC-H tables.
        cases: What is asked.
        epsilon: Privacy of one answer; bounds are smooth for a tenth of it.
        repeat: Best times of so many runs count.
        releases: How often each is released, for the error of an answer.
    """
    with tempfile.TemporaryDirectory() as folder:
        for case in cases:
            source = f"parquet:{parquet}"
            if case.make is not None:
                made = Path(folder) / f"{case.name}.duckdb"
                case.make(made)
                source = f"duckdb:{made}"
            ledger = Path(folder) / "unused.ledger"
            with secant.connect(source, policy=read_policy(case.policy), ledger=ledger) as db:
                yield _row(db, case, epsilon, repeat, releases)


def _row(db: Connection, case: Case, epsilon: Fraction, repeat: int, releases: int) -> Row:
    beta = epsilon / SMOOTHNESS
    true = case.truth(engine_of(db), float(beta))
    asked = ask(db, case.text, epsilon, Fraction(0), releases)
    found: Row = {
        "query": case.name,
        "words": case.words,
        **asked,
        "local_sensitivity": true.local,
        "smooth_sensitivity": true.smooth,
        "exact_by": true.how,
        "analyses": [_analysis(db, case.text, analysis, beta) for analysis in _analyses(db)],
    }
    choice = _choice(db, case.text, epsilon, beta, repeat)
    if choice is not None:
        found |= {
            "analysis": choice["analysis"],
            "bound": choice["rows"],
            "ratio": choice["rows"] / true.smooth,
            "asked": choice["asked"],
            "seconds": {**asked["seconds"], **choice["seconds"]},
        }
    return found


# ── analyses, each alone ────────────────────────────────────────────────────────────────────────────


def _analyses(db: Connection) -> list[Any]:
    kinds = {p.kind for p in db.policy.protections}
    analyses = [analysis for analysis in bounding.ANALYSES if kinds & set(analysis.kinds)]
    return [way for analysis in analyses for way in getattr(analysis, "ways", (analysis,))]


def _analysis(db: Connection, text: str, analysis: Any, beta: Fraction) -> Row:
    """Give the bound of one analysis, or why it has none."""
    request = _request(db, text)
    if isinstance(request, Problem):
        return {"analysis": analysis.name, "refused": request.reason}
    outcome = analysis.bound(request)
    if isinstance(outcome, Refusal):
        return {"analysis": analysis.name, "refused": outcome.reason}
    began = time.perf_counter()
    rows, _ = _bound(outcome, len(request.release.exact.keys), beta, engine_of(db))
    return {"analysis": analysis.name, "rows": rows, "seconds": time.perf_counter() - began}


def _request(db: Connection, text: str) -> Request | Problem:
    """Put the question to an analysis as the portfolio does."""
    policy = db.policy
    plan = normalize(from_sql(text, db.catalog))
    aggregate = next(node for node in n.walk(plan) if isinstance(node, n.Aggregate))
    known = Facts(policy, db.catalog)
    release = enforce(aggregate, "release1", known, policy.protections)
    if isinstance(release, Problem):
        return release

    facts = OpenFacts(public_facts(policy, engine_of(db)), policy)
    return Request(release, known, policy.protections[0], open=facts)


def _bound(
    certificate: Certificate, keys: int, beta: Fraction, engine: Session
) -> tuple[float, str]:
    """Give rows that differ at most, in the worst group, and whose bound that is."""
    surveys = _surveys(certificate)
    if not surveys:
        return float(certificate.rows), certificate.analysis
    return _surveyed(surveys, keys, beta, engine)


def _surveys(certificate: Certificate) -> tuple[Survey, ...]:
    kept = {
        id(survey): survey
        for bound in certificate.bounds.values()
        if isinstance(bound, Surveyed)
        for survey in bound.surveys
    }
    return tuple(kept.values())


def _surveyed(
    surveys: Sequence[Survey], keys: int, beta: Fraction, engine: Session
) -> tuple[float, str]:
    """Run the surveys' statements; in each group the least survey holds, and the worst group counts."""
    results = [
        [
            _by_key(engine.rows(lower(statement, engine.dialect)), keys if keyed else 0)
            for statement, keyed in zip(survey.statements, survey.keyed, strict=True)
        ]
        for survey in surveys
    ]
    groups = {key for tables in results for table in tables for key in table if key}
    worst = (-1.0, "")
    # A group without rows has figures of its own: none.
    for group in [*sorted(groups), ("",) * keys] if keys else [()]:
        best = min(
            (float(survey.rows(beta, _figures(survey, tables, group))), survey.analysis)
            for survey, tables in zip(surveys, results, strict=True)
        )
        worst = max(worst, best)
    return worst


def _figures(
    survey: Survey, tables: Sequence[Keyed], group: tuple[str, ...]
) -> tuple[tuple[tuple[object, ...], ...], ...]:
    return tuple(
        table.get(group if keyed else (), ())
        for keyed, table in zip(survey.keyed, tables, strict=True)
    )


def _by_key(rows: Sequence[tuple[object, ...]], width: int) -> Keyed:
    found: dict[tuple[str, ...], list[tuple[object, ...]]] = {}
    for row in rows:
        found.setdefault(tuple(str(v) for v in row[:width]), []).append(row[width:])
    return {key: tuple(figures) for key, figures in found.items()}


# ── the portfolio ────────────────────────────────────────────────────────────────────────────────


def _choice(
    db: Connection, text: str, epsilon: Fraction, beta: Fraction, repeat: int
) -> Row | None:
    """Give what the portfolio settles on, and its time beside the plain query's, in turns."""
    try:
        ready = compiled(db, text, epsilon, Fraction(0))
    except SecantError:
        return None
    (bounded,) = ready.job.prepared.bounded
    (certificate,) = bounded.certificates
    keys, engine, plain = len(bounded.release.exact.keys), engine_of(db), plain_statement(db, text)
    plains, bounds = [], []
    for _ in range(repeat):
        began = _clocks()
        engine.rows(plain)
        middle = _clocks()
        rows, analysis = _bound(certificate, keys, beta, engine)
        end = _clocks()
        plains.append((middle[0] - began[0], middle[1] - began[1]))
        bounds.append((end[0] - middle[0], end[1] - middle[1]))
    asked = [s.analysis for s in _surveys(certificate)] or [certificate.analysis]
    seconds = {}
    for name, times in (("plain", plains), ("bound", bounds)):
        seconds[name] = min(wall for wall, _ in times)
        seconds[f"{name}_processor"] = statistics.median(used for _, used in times)
    return {"analysis": analysis, "asked": asked, "rows": rows, "seconds": seconds}


def _clocks() -> tuple[float, float]:
    """Give the time on the wall, and that of the processors for all threads: other programs stretch only the first."""
    return time.perf_counter(), time.process_time()
