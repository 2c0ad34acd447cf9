"""Draws questions that reach the rewrites of statements, says which of them fired, and reads releases on engines.

In: a `random.Random`. Out: questions over filters of dates, decimals and small numbers, alone and joined, as analysts
write them: sums and counts between days, below prices, before other days. Most drawn questions over floats and
arithmetic (`derivative_drawn.py`) reach none of the rewrites.
"""

from __future__ import annotations

import datetime
import random
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest
from derivative_check import Question, World, ask, world
from derivative_distance import Database

from secant.engines.dialect import Dialect
from secant.engines.optimize import narrow_joins as carried
from secant.engines.optimize import preaggregate as by_margin
from secant.engines.optimize.drop_implied import without_proved
from secant.engines.optimize.filter_by_column import decided_by_columns
from secant.engines.optimize.integer_margins import in_whole_numbers
from secant.engines.optimize.order_predicates import cheap_first
from secant.engines.optimize.preaggregate import gathered_by_margin
from secant.engines.optimize.push_down_projections import computed_early
from secant.engines.print.print_sql import lower
from secant.plan import nodes as n
from secant.plan.rewrites.rewrite import spell_out
from secant.schema import types as t
from secant.schema.catalog import Table, catalog
from secant.sensitivity.derivative import statement

COLUMNS: dict[str, tuple[tuple[str, t.Type], ...]] = {
    "sale": (
        ("id", t.INTEGER), ("part", t.INTEGER), ("day", t.DATE), ("due", t.DATE), ("came", t.DATE),
        ("price", t.decimal(15, 2)), ("rate", t.decimal(4, 2)), ("size", t.INTEGER),
    ),
    "part": (("id", t.INTEGER), ("kind", t.TEXT), ("level", t.INTEGER), ("cost", t.decimal(15, 2))),
    "offer": (("id", t.INTEGER), ("part", t.INTEGER), ("seller", t.INTEGER)),
}  # fmt: skip
START = datetime.date(2020, 1, 1)
DAYS = 100
POLICY = """
[database]
source = "duckdb:none"
[tables.sale]
key = ["id"]
[tables.sale.columns]
day = { range = ["2020-01-01", "2020-04-09"], step = "1 day" }
due = { range = ["2020-01-01", "2020-04-09"], step = "1 day" }
came = { range = ["2020-01-01", "2020-04-09"], step = "1 day" }
price = { range = [0, 20], step = 0.01 }
rate = { range = [0, 0.1], step = 0.01 }
size = { range = [0, 50], step = 1 }
[tables.part]
key = ["id"]
[tables.part.columns]
level = { range = [0, 9], step = 1 }
cost = { range = [0, 50], step = 0.01 }
[tables.offer]
key = ["id"]
[protections.cells]
kind = "cells"
epsilon = 1000.0
[protections.cells.distance]
sale = "l1(0.1*price, 50*rate, size, linf(day, due, came))"
part = "l1(level, cost)"
"""
REWRITES = (
    "by_column", "by_margin", "by_key", "early", "whole", "carried", "proved", "cheap_first", "counted",
)  # fmt: skip
ENABLED: dict[str, tuple[str, ...]] = {
    "duckdb": (
        "by_column",
        "by_margin",
        "by_key",
        "early",
        "whole",
        "carried",
        "proved",
        "counted",
    ),
    "postgres": ("by_column", "early", "cheap_first", "counted"),
    "spark": ("counted",),
}
"""Engine -> what its statements are rewritten by: `Dialect.optimize`, and what the analysis counts for all of them."""
_PASSES: dict[str, tuple[tuple[str, Callable[[n.Relation], n.Relation]], ...]] = {
    "duckdb": (
        ("by_column", decided_by_columns), ("by_margin", gathered_by_margin), ("early", computed_early),
        ("whole", in_whole_numbers), ("proved", without_proved),
    ),
    "postgres": (
        ("by_column", decided_by_columns), ("early", computed_early), ("cheap_first", cheap_first),
    ),
    "spark": (),
}  # fmt: skip


def rewriting_world() -> World:
    """Give a world in which filters are asked of days, decimals and small numbers."""
    return world(catalog(*(Table(name, fields) for name, fields in COLUMNS.items())), POLICY)


# ── questions ────────────────────────────────────────────────────────────────────────────────────


def _date(draw: random.Random) -> str:
    return f"DATE '{START + datetime.timedelta(draw.randrange(5, DAYS - 5))}'"


def _condition(draw: random.Random, tables: tuple[str, ...]) -> str:
    drawn: dict[str, list[Callable[[], str]]] = {
        "sale": [
            lambda: f"sale.day {draw.choice(('>=', '<', '<=', '>'))} {_date(draw)}",
            lambda: f"sale.came {draw.choice(('>=', '<'))} {_date(draw)}",
            lambda: f"sale.day BETWEEN {_date(draw)} AND {_date(draw)}",
            lambda: f"sale.rate BETWEEN 0.0{draw.randrange(5)} AND 0.0{draw.randrange(5, 10)}",
            lambda: f"sale.size {draw.choice(('<', '>='))} {draw.randrange(5, 45)}",
            lambda: f"sale.price < {draw.randrange(2, 19)}",
            lambda: draw.choice(("sale.due < sale.came", "sale.day < sale.due", "sale.day < sale.came")),
        ],
        "part": [
            lambda: f"part.level {draw.choice(('<', '>=', '='))} {draw.randrange(1, 9)}",
            lambda: f"part.level IN ({draw.randrange(4)}, {draw.randrange(4, 10)})",
            lambda: f"part.kind {draw.choice(('=', '<>'))} 'a'",
            lambda: f"part.cost < {draw.randrange(5, 45)}",
        ],
        "offer": [lambda: f"offer.seller <> {draw.randrange(3)}"],
    }  # fmt: skip
    return draw.choice(drawn[draw.choice(tables)])()


_SOURCES: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("sale", ("sale",)), ("sale", ("sale",)), ("sale", ("sale",)),
    ("sale JOIN part ON sale.part = part.id", ("sale", "sale", "part")),
    ("part JOIN sale ON sale.part = part.id", ("sale", "part")),
    ("part JOIN offer ON offer.part = part.id", ("part", "part", "offer")),
    ("offer JOIN sale ON offer.part = sale.part", ("sale", "sale", "offer")),
    ("part JOIN offer ON offer.part = part.id JOIN sale ON sale.part = part.id", ("part", "sale", "offer")),
)  # fmt: skip
_SUMMED = {
    "sale": ("sale.price", "sale.size", "sale.price * sale.rate", "sale.price * (1 - sale.rate)", "sale.rate"),
    "part": ("part.level", "part.cost", "part.cost * part.level"),
    "offer": ("offer.seller",),
}  # fmt: skip


def drawn_text(draw: random.Random) -> str:
    """Draw the text of a question."""
    source, tables = draw.choice(_SOURCES)
    function = draw.choice(("count", "sum", "sum", "max"))
    value = "count(*)" if function == "count" else f"{function}({draw.choice(_SUMMED[tables[0]])})"
    parts = [_condition(draw, tables) for _ in range(draw.choice((0, 1, 1, 2, 3, 4)))]
    where = f" WHERE {' AND '.join(parts)}" if parts else ""
    return f"SELECT {value} FROM {source}{where}"


def _window(draw: random.Random, column: str) -> str:
    """Draw a stretch of days that has both ends."""
    first = draw.randrange(5, 60)
    ends = (START + datetime.timedelta(d) for d in (first, first + draw.randrange(10, 35)))
    low, high = (f"DATE '{day}'" for day in ends)
    return f"{column} >= {low} AND {column} < {high}"


def _near_an_edge(draw: random.Random) -> str:
    """Draw a sum over one table between days, shares and sizes, as the sixth question of TPC-H."""
    parts = [_window(draw, "sale.day"), _condition(draw, ("sale",))]
    parts.append(f"sale.size < {draw.randrange(10, 40)}")
    draw.shuffle(parts)
    value = draw.choice(("sale.price", "sale.price * sale.rate", "sale.price * (1 - sale.rate)"))
    return f"SELECT sum({value}) FROM sale WHERE {' AND '.join(parts)}"


def _few_shares(draw: random.Random) -> str:
    """Draw a sum between days and by one column of few values, in which prices are a factor."""
    few = draw.choice(
        (
            f"sale.rate BETWEEN 0.0{draw.randrange(5)} AND 0.0{draw.randrange(5, 10)}",
            "sale.size < 30",
        )
    )
    parts = [_window(draw, "sale.day"), few]
    parts += [f"sale.price < {draw.randrange(5, 19)}"] if draw.random() < 0.5 else []
    value = "sale.price * sale.rate" if "rate" in few and draw.random() < 0.5 else "sale.price"
    draw.shuffle(parts)
    return f"SELECT sum({value}) FROM sale WHERE {' AND '.join(parts)}"


def _several_days(draw: random.Random) -> str:
    """Draw a count over a join of rows whose days follow each other, as the twelfth question of TPC-H."""
    parts = ["sale.due < sale.came", "sale.day < sale.due", _window(draw, "sale.came")]
    parts = parts[draw.randrange(2) :]
    if draw.random() < 0.5:
        parts.append(f"(part.kind <> 'a' OR part.kind <> '{draw.choice('bc')}')")
    return f"SELECT count(*) FROM sale JOIN part ON sale.part = part.id WHERE {' AND '.join(parts)}"


def _one_column(draw: random.Random) -> str:
    """Draw a filter of one stored column."""
    value = draw.choice(("count(*)", "sum(sale.price)", "sum(sale.size)"))
    parts = (
        f"sale.size {draw.choice(('<', '>='))} {draw.randrange(5, 45)}",
        f"sale.day {draw.choice(('<', '>='))} {_date(draw)}",
        f"sale.price < {draw.randrange(2, 19)}",
    )
    return f"SELECT {value} FROM sale WHERE {draw.choice(parts)}"


def _joined_values(draw: random.Random) -> str:
    """Draw sums of one table's values over joined rows."""
    source, _ = draw.choice([x for x in _SOURCES if "JOIN" in x[0] and x[1][0] == "part"])
    value = draw.choice(
        ("sum(part.level)", "sum(part.cost)", "count(*)", "sum(part.cost * part.level)")
    )
    parts = [_condition(draw, ("part",))] if draw.random() < 0.7 else ["part.level >= 0"]
    return f"SELECT {value} FROM {source} WHERE {' AND '.join(parts)}"


SHAPES: dict[str, Callable[[random.Random], str]] = {
    "by_column": _one_column,
    "by_margin": _near_an_edge,
    "by_key": _few_shares,
    "early": _joined_values,
    "whole": _several_days,
    "carried": _several_days,
    "proved": drawn_text,
    "cheap_first": drawn_text,
    "counted": _joined_values,
}
"""Rewrite -> what draws questions that it is made for; each second question is drawn from everything."""


@dataclass(frozen=True)
class Drawn:
    """A text and what it is asked with."""

    text: str
    beta: Fraction
    epsilon: Fraction
    rows: int | None

    def asked(self, asked_in: World) -> list[Question]:
        """Ask it; none of these questions is refused."""
        found = ask(self.text, asked_in, beta=self.beta, epsilon=self.epsilon, rows=self.rows)
        assert not isinstance(found, str), (self, found)
        return found

    def asked_row_by_row(self, asked_in: World) -> list[Question]:
        """Ask it with all joined rows looked at one by one."""
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(statement, "counted", lambda sums, name: None)
            return self.asked(asked_in)


def drawn(draw: random.Random, aim: str) -> Drawn:
    """Draw a question that a rewrite may be made for, and what it is asked with."""
    text = (SHAPES[aim] if draw.random() < 0.7 else drawn_text)(draw)
    beta = Fraction(1, draw.choice((2, 10, 40)))
    epsilon = Fraction(draw.choice((1, 1, 2, 10)), draw.choice((1, 2)))
    return Drawn(text, beta, epsilon, draw.choice((None, 100, 1_000, 100_000)))


# ── databases ────────────────────────────────────────────────────────────────────────────────────


def drawn_rows(draw: random.Random, *, nulls: bool, most: int = 12) -> Database:
    """Draw a database with unique keys; days, prices and sizes lie on both sides of what is asked for."""

    def cell(value: Any) -> Any:
        return None if nulls and draw.random() < 0.1 else value

    def day() -> Any:
        return cell(START + datetime.timedelta(draw.randrange(-5, DAYS + 5)))

    def money(most: int) -> Any:
        return cell(Decimal(draw.randrange(-50, most * 100 + 50)).scaleb(-2))

    sold = [
        {"part": cell(draw.randrange(5)), "day": day(), "due": day(), "came": day(),
         "rate": cell(Decimal(draw.randrange(-2, 14)).scaleb(-2)), "size": cell(draw.randrange(-3, 55))}
        for _ in range(draw.randrange(2 * most))
    ]  # fmt: skip
    return {
        # Rows that agree in all but their prices are those that are gathered.
        "sale": [{"id": i, **draw.choice(sold), "price": money(20)} for i in range(2 * len(sold))],
        "part": [
            {"id": i, "kind": cell(draw.choice("ab")), "level": cell(draw.randrange(-1, 12)), "cost": money(50)}
            for i in range(draw.randrange(most) // 2)
        ],
        "offer": [
            {"id": i, "part": cell(draw.randrange(5)), "seller": cell(draw.randrange(3))}
            for i in range(draw.randrange(most))
        ],
    }  # fmt: skip


# ── what fired ───────────────────────────────────────────────────────────────────────────────────


@contextmanager
def watched(fired: Counter[str]) -> Iterator[None]:
    """Count what is rewritten inside of other rewrites, and by the analysis."""
    inside = ((by_margin, "gathered_by_key", "by_key"), (carried, "_cut", "carried"))
    with pytest.MonkeyPatch.context() as patch:
        for module, name, label in (*inside, (statement, "counted", "counted")):
            one = getattr(module, name)

            def seen(*given: Any, one: Any = one, label: str = label) -> Any:
                found = one(*given)
                fired[label] += found is not None
                return found

            patch.setattr(module, name, seen)
        yield


def rewritten_by(relation: n.Relation, engine: str, fired: Counter[str]) -> n.Relation:
    """Rewrite a statement as an engine does, and count which rewrites change it."""
    plan = spell_out(relation)
    for label, change in _PASSES[engine]:
        changed = change(plan)
        fired[label] += changed is not plan
        plan = changed
    return plan


def as_it_is(dialect: Dialect) -> Dialect:
    """Give a dialect that writes plans as they are."""
    return replace(dialect, optimize=())


# ── readings ─────────────────────────────────────────────────────────────────────────────────────


@dataclass
class OnEngine:
    """A backend as the session of a reading, with a dialect of its own."""

    backend: Any
    dialect: Dialect
    database: Database | None = None
    """Set by whoever reads; what is read stands at the engine."""

    def rows(self, statement: str) -> list[tuple[object, ...]]:
        """Run a statement."""
        return list(self.backend.rows(statement))


def asked_on(question: Question, backend: Any, dialect: Dialect) -> Question:
    """Give a question that is read on an engine instead of by the plan's own evaluation."""
    relations = question.job.readings[question.bounded.release.name].relations()
    statements = {name: lower(plan, dialect) for name, plan in relations.items()}
    job = type(question.job)(**{**vars(question.job), "statements": statements})
    session: Any = OnEngine(backend, dialect)
    return replace(question, job=job, memory=session)
