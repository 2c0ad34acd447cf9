"""The databases: how each is made, its policy, and what is asked of it.

In: where generated data are kept. Out: a source, a policy, and questions with the epsilon of each. Nothing is released
here.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from tempfile import TemporaryDirectory

from bench.suites.honesty import events, retail
from bench.suites.laud import database
from bench.suites.tpch import texts
from secant.cli import demo_data
from secant.cli.commands import demo
from secant.errors import UsageError
from secant.policy.file import load_policy, read_policy
from secant.policy.policy import Policy

ONE = Fraction(1)


@dataclass(frozen=True, slots=True)
class Question:
    """One text, and what it is released with."""

    name: str
    text: str
    epsilon: Fraction = ONE


@dataclass(frozen=True, slots=True)
class DataSet:
    """A database that nobody needs to protect, and what is asked of it."""

    name: str
    words: str
    source: str
    policy: Policy
    questions: tuple[Question, ...]


def _tpch(scale: str, place: Path, stack: ExitStack) -> DataSet:
    made = f"parquet:{database.parquet_of(scale, place)}"
    asked = tuple(Question(name, texts.text_of(name)) for name in texts.QUERIES)
    return DataSet("tpch", f"TPC-H at scale {scale}", made, texts.policy_of(None), asked)


def _retail(scale: str, place: Path, stack: ExitStack) -> DataSet:
    made = retail.make_retail(_folder(stack))
    asked = tuple(Question(*item) for item in retail.QUESTIONS.items())
    words = "store sales as in TPC-DS at scale 0.01"
    return DataSet("tpcds", words, f"duckdb:{made}", read_policy(retail.POLICY), asked)


def _events(scale: str, place: Path, stack: ExitStack) -> DataSet:
    made = events.make_events(_folder(stack))
    asked = tuple(Question(*item) for item in events.QUESTIONS.items())
    words = "an event log with a heavy tail, no limit declared"
    return DataSet("events", words, f"duckdb:{made}", read_policy(events.policy_text()), asked)


def _undeclared(scale: str, place: Path, stack: ExitStack) -> DataSet:
    made = events.make_events(_folder(stack))
    asked = tuple(Question(*item) for item in events.UNDECLARED_QUESTIONS.items())
    words = "the event log, ranges and limits found privately"
    policy = read_policy(events.undeclared_policy())
    return DataSet("undeclared", words, f"duckdb:{made}", policy, asked)


def _clinic(scale: str, place: Path, stack: ExitStack) -> DataSet:
    made, policy = demo_data.make_clinic(_folder(stack))
    asked = [
        Question(f"demo {i}", text, Fraction(epsilon))
        for i, (_, text, epsilon) in enumerate(demo.QUESTIONS, 1)
    ]
    asked += [Question(*item) for item in CLINIC.items()]
    words = "the clinic of `secant demo`"
    return DataSet("clinic", words, f"duckdb:{made}", load_policy(policy), tuple(asked))


CLINIC = {
    "visits": "SELECT count(*) FROM visits",
    "cost": "SELECT sum(cost) FROM visits",
    "dear": "SELECT ward, count(*) FROM visits WHERE cost > 800 GROUP BY ward",
    "ages": "SELECT district, avg(age), stddev(age) FROM patients GROUP BY district",
    "months": "SELECT date_trunc('month', day) AS month, count(*) FROM visits GROUP BY month",
    "each": "SELECT avg(n) FROM (SELECT patient_id, count(*) AS n FROM visits GROUP BY patient_id)",
    "beds": "SELECT w.ward, count(*) / max(w.beds) FROM visits v JOIN wards w ON v.ward = w.ward GROUP BY w.ward",
}
_MADE: dict[str, Callable[[str, Path, ExitStack], DataSet]] = {
    "tpch": _tpch,
    "tpcds": _retail,
    "events": _events,
    "clinic": _clinic,
    "undeclared": _undeclared,
}
SETS = tuple(_MADE)


def chosen_sets(names: str) -> tuple[str, ...]:
    """Read a list such as `events,clinic`; nothing means all.

    >>> chosen_sets("clinic, tpch")
    ('tpch', 'clinic')
    """
    wanted = {name.strip().lower() for name in names.split(",") if name.strip()}
    for name in sorted(wanted - set(SETS)):
        raise UsageError(
            "USE-001", f"there are no data {name!r}", hint=f"there are: {', '.join(SETS)}"
        )
    return tuple(name for name in SETS if not wanted or name in wanted)


def make_set(name: str, scale: str, place: Path, stack: ExitStack) -> DataSet:
    """Make a database; what is not kept in `place` goes when the stack is left."""
    return _MADE[name](scale, place, stack)


def _folder(stack: ExitStack) -> Path:
    return Path(stack.enter_context(TemporaryDirectory(prefix="secant-honesty-")))
