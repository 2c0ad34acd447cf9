"""A script of views, released tables and questions, asked as one: what each output costs each source.

In: statements, and how one question is explained and asked. Out: the answers, the table of ε by output and source, how
many rows of each view a row of a source moves, and what flows where. Everything is explained before anything is spent.
Never here: a bound; each statement is bounded whole, with its views put in (workflow.view).
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Mapping
from dataclasses import field, replace
from decimal import Decimal
from fractions import Fraction
from typing import Any

from secant.display.drawing import Picture
from secant.display.flow import Box, Flow, flow_picture, flow_text
from secant.errors import SecantError, SqlError
from secant.ledger.opening import Accounts, accounts_of
from secant.ledger.store import Ledger
from secant.plan.facts.facts import Facts
from secant.plan.facts.keys import distinguishing_columns
from secant.plan.facts.parts import Part
from secant.plan.typing import fields_of
from secant.policy.policy import Policy
from secant.records import frozen
from secant.release.answer import Answer
from secant.release.cost_by_source import Source, costs_by_source, parts_by_table, together
from secant.release.release_plan import ReleasePlan
from secant.runtime.work import limited_work
from secant.schema.catalog import Catalog, Constants, View
from secant.schema.types import Type
from secant.sensitivity.stability.analysis import rows_moved
from secant.sql.bind import bind
from secant.sql.bind.views import names_read
from secant.sql.script import Statement, read_script
from secant.stages.ask import Question

Price = tuple[Fraction, Fraction]
"""(epsilon, delta)"""


@frozen
class Asking:
    """How one statement is explained and asked, under a catalog that knows what was defined before it."""

    policy: Policy
    question: Question
    planned: Callable[[Catalog, Question], ReleasePlan]
    answered: Callable[[Catalog, Question], Answer]
    ledger: Ledger | None
    """Where the budget is kept; None if nothing is to be spent."""


@frozen
class Workflow:
    """What a script gave: answers by name, and what each cost each source."""

    answers: Mapping[str, Answer]
    """Released tables and `answer1`, `answer2`, …; empty where the script was only explained."""
    costs: Mapping[str, Mapping[Source, Price]]
    """Output -> source -> (epsilon, delta) by which its noise hides one row of the source."""
    stabilities: Mapping[str, Mapping[str, int | None]]
    """View -> table -> rows of the view that one row of the table moves, at most; None: no number bounds them."""
    flow: Flow
    parts: Mapping[str, Mapping[str, list[Part] | None]] = field(default_factory=dict)
    """Output -> table -> the part of the table that the output looks at, where that is known."""
    budget: Accounts = field(default_factory=Accounts)
    """What is left, once something was asked."""
    stopped: SecantError | None = None
    """Why the script ended before its end; what was answered until then is paid for, and here."""

    @property
    def spent(self) -> dict[Source, Price]:
        """Give what all outputs cost each source: by accounting.basic, over disjoint parts by workflow.parts."""
        return _together(self.costs, self.parts)

    def __str__(self) -> str:
        """Give the answers and the tables as `secant run` prints them."""
        shown = [f"-- {name}\n{answer}" for name, answer in self.answers.items()]
        return "\n\n".join([*shown, "\n".join(flow_text(self.flow))])

    def plot(self) -> Picture:
        """Draw what flows where, with ε beside each arrow; `.save("flow.svg")` writes a file."""
        return Picture(flow_picture(self.flow))

    def to_dict(self) -> dict[str, Any]:
        """Give the object that `secant run --json` prints."""
        return {
            "answers": {name: answer.to_dict() for name, answer in self.answers.items()},
            "costs": [
                {
                    "output": name,
                    "protection": source.protection,
                    "source": source.table,
                    "epsilon": float(epsilon),
                    "delta": float(delta),
                }
                for name, row in self.costs.items()
                for source, (epsilon, delta) in row.items()
            ],
            "together": [
                {
                    "protection": source.protection,
                    "source": source.table,
                    "epsilon": float(epsilon),
                    "delta": float(delta),
                }
                for source, (epsilon, delta) in self.spent.items()
            ],
            "stabilities": {v: dict(row) for v, row in self.stabilities.items()},
            "budget": [{"protection": n, **a.to_dict()} for n, a in self.budget.items()],
            "stopped": None if self.stopped is None else self.stopped.to_dict(),
        }


def _together(
    costs: Mapping[str, Mapping[Source, Price]],
    parts: Mapping[str, Mapping[str, list[Part] | None]],
) -> dict[Source, Price]:
    prices: dict[Source, Price] = {}
    for source in dict.fromkeys(s for row in costs.values() for s in row):
        looked_at = {name: row.get(source.table) for name, row in parts.items()}
        paid = {name: row[source] for name, row in costs.items() if source in row}
        epsilon, delta = (
            together({name: price[i] for name, price in paid.items()}, looked_at) for i in (0, 1)
        )
        prices[source] = epsilon, delta
    return prices


def run_workflow(script: str, catalog: Catalog, asking: Asking) -> Workflow:
    """Explain all statements with tables that are not released yet as placeholders, then ask them in order."""
    try:
        workflow = _ran(script, catalog, asking)
    except SecantError as error:
        _point_into(script, error)
        raise
    if workflow.stopped is not None:
        _point_into(script, workflow.stopped)
    return workflow


def _point_into(script: str, error: SecantError) -> None:
    """Let an error show the script: its place may be in a view, and not in the statement that was asked."""
    if error.span is not None and error.text.strip() in script:
        error.text = script


def _ran(script: str, catalog: Catalog, asking: Asking) -> Workflow:
    statements = read_script(script)
    catalog = _defining(statements, catalog)
    outputs = [s for s in statements if s.kind != "view"]
    assert asking.question.epsilon is not None, "a script is asked with an epsilon"
    share = replace(asking.question, epsilon=asking.question.epsilon / len(outputs))
    extended, costs, parts = _foreseen(outputs, catalog, asking, share)
    paying = sum(1 for row in costs.values() if row)
    if 0 < paying < len(outputs):  # what reads public numbers only needs no share
        share = replace(asking.question, epsilon=asking.question.epsilon / paying)
        extended, costs, parts = _foreseen(outputs, catalog, asking, share)
    stabilities = _stabilities(statements, asking, extended)
    if asking.ledger is None:
        flow = _flow(statements, catalog, asking.policy, costs, parts, stabilities, {})
        return Workflow({}, costs, stabilities, flow, parts)
    answers: dict[str, Answer] = {}
    stopped = None
    extended = catalog
    for statement in outputs:
        try:
            # Bounds may follow the numbers that were drawn: what is shown is what this one costs.
            job = asking.planned(extended, replace(share, text=statement.text))
            answer = asking.answered(extended, replace(share, text=statement.text))
        except SecantError as error:
            if not answers:
                raise
            stopped = error
            break
        answers[statement.name], costs[statement.name] = answer, _costs(asking, extended, job)
        parts[statement.name] = _parts(asking, extended, job)
        extended = extended.knowing(_kept(statement, _drawn(job, statement, answer)))
    costs = {name: row for name, row in costs.items() if name in answers}
    budget = accounts_of(asking.ledger)
    left = {name: account.remaining_epsilon for name, account in budget.items()}
    flow = _flow(statements, catalog, asking.policy, costs, parts, stabilities, left)
    return Workflow(answers, costs, stabilities, flow, parts, budget, stopped)


def _foreseen(
    outputs: list[Statement], catalog: Catalog, asking: Asking, share: Question
) -> tuple[Catalog, dict[str, dict[Source, Price]], dict[str, dict[str, list[Part] | None]]]:
    """Explain all outputs before anything is spent, with placeholders for tables that are not drawn yet."""
    extended, costs, parts = catalog, {}, {}
    for statement in outputs:
        job = asking.planned(extended, replace(share, text=statement.text))
        costs[statement.name] = _costs(asking, extended, job)
        parts[statement.name] = _parts(asking, extended, job)
        extended = extended.knowing(_kept(statement, _placeholder(extended, statement, job)))
    return extended, costs, parts


def _defining(statements: tuple[Statement, ...], catalog: Catalog) -> Catalog:
    """Give the catalog with the views of the script; each may read what stands before it."""
    extended, seen = catalog, set[str]()
    for s in statements:
        if catalog.table(s.name) is not None or s.name in {*catalog.views, *catalog.stored_views}:
            message = f"there is a table or a view {s.name} already"
            raise SqlError("SQL-003", message, hint="use another name")
        defined = {o.name for o in statements} - seen
        early = [name for name in names_read(s.text) if name in defined]
        if early:
            message = f"{s.name} reads {early[0]}, which is not defined before it"
            raise SqlError("SQL-002", message, hint="define it first; recursion is not accepted")
        if s.kind == "view":
            extended = extended.knowing({s.name: View(s.text, s.columns, placed=True)})
        seen.add(s.name)
    return extended


def _costs(asking: Asking, catalog: Catalog, job: ReleasePlan) -> dict[Source, Price]:
    return costs_by_source(job, asking.question.protections, Facts(asking.policy, catalog))


def _parts(asking: Asking, catalog: Catalog, job: ReleasePlan) -> dict[str, list[Part] | None]:
    return parts_by_table(job, asking.question.protections, Facts(asking.policy, catalog))


def _kept(statement: Statement, table: Constants) -> dict[str, Constants]:
    return {statement.name: table} if statement.kind == "release" else {}


def _columns(job: ReleasePlan, statement: Statement) -> tuple[tuple[str, Type], ...]:
    """Give names and types of the columns of a released table, as noise made them."""
    fields = fields_of(job.prepared.post)
    names = statement.columns or tuple(f.name for f in fields)
    if len(names) != len(fields):
        message = f"{statement.name} has {len(fields)} columns and {len(names)} names for them"
        raise SqlError("SQL-008", message, hint="name each column once")
    return tuple((name, f.type) for name, f in zip(names, fields, strict=True))


def _drawn(job: ReleasePlan, statement: Statement, answer: Answer) -> Constants:
    rows = answer.raw or answer.rows
    return Constants(_columns(job, statement), tuple(tuple(row) for row in rows))


_STANDING: dict[str, tuple[object, object]] = {
    "INTEGER": (1, 2),
    "DOUBLE": (1.0, 2.0),
    "DECIMAL": (Decimal(1), Decimal(2)),
    "TEXT": ("a", "b"),
    "DATE": (datetime.date(2000, 1, 1), datetime.date(2000, 1, 2)),
    "BOOLEAN": (False, True),
}


def _placeholder(catalog: Catalog, statement: Statement, job: ReleasePlan) -> Constants:
    """Give rows that stand for a table that is not drawn yet: keys that tell them apart, and numbers that do not."""
    columns = _columns(job, statement)
    keys = distinguishing_columns(bind(statement.text, catalog))
    apart = [keys is not None and f.name in keys for f in fields_of(job.prepared.post)]
    numbers = (0,) if keys == frozenset() else (0, 1) if keys else (0, 0, 1)

    def value(index: int, number: int) -> object:
        pair = _STANDING.get(columns[index][1].kind)
        return None if pair is None else pair[0 if keys and not apart[index] else number]

    places = range(len(columns))
    return Constants(columns, tuple(tuple(value(i, k) for i in places) for k in numbers))


def _stabilities(
    statements: tuple[Statement, ...], asking: Asking, catalog: Catalog
) -> dict[str, dict[str, int | None]]:
    """Give for each view and each protected table how many rows of the view one row of the table moves."""
    facts = Facts(asking.policy, catalog)
    covered = [p for p in asking.question.protections if p.kind == "rows"]
    tables = [t for t in catalog.tables if any(t in facts.covered(p) for p in covered)]
    stabilities: dict[str, dict[str, int | None]] = {}
    for s in statements:
        if s.kind == "view":
            with limited_work():
                plan = bind(f'SELECT * FROM "{s.name}"', catalog)
                stabilities[s.name] = {table: rows_moved(plan, table, facts) for table in tables}
    return stabilities


def _flow(
    statements: tuple[Statement, ...],
    catalog: Catalog,
    policy: Policy,
    costs: Mapping[str, Mapping[Source, Price]],
    parts: Mapping[str, Mapping[str, list[Part] | None]],
    stabilities: Mapping[str, Mapping[str, int | None]],
    left: Mapping[str, Fraction],
) -> Flow:
    """Put together what is shown and drawn: tables, steps, what reads what, and the numbers beside them."""
    boxes: dict[str, Box] = {}

    def add(name: str, kind: str, text: str) -> None:
        if name in boxes:
            return
        reads = [
            n for n in names_read(text) if n in defined or n in catalog.views or catalog.table(n)
        ]
        for other in reads:
            if other not in defined:
                view = catalog.views.get(other)
                add(other, "view" if view else "table", view.text if isinstance(view, View) else "")
        boxes[name] = Box(name, kind, tuple(reads))

    defined = {s.name for s in statements}
    for s in statements:
        add(s.name, s.kind, s.text)
    rows = {
        name: {source.words: price[0] for source, price in row.items()}
        for name, row in costs.items()
    }
    tables = {s.words: s.table for row in costs.values() for s in row}
    protections = {s.words: s.protection for row in costs.values() for s in row}
    remaining = {name: left[p] for name, p in protections.items() if p in left}
    changed = {view: {t: n for t, n in row.items() if n != 0} for view, row in stabilities.items()}
    total = {source.words: price[0] for source, price in _together(costs, parts).items()}
    return Flow(tuple(boxes.values()), rows, tables, total, remaining, changed)
