"""Where the expression of a target stands: a function for each place of a query, and for those that only SQL has.

In: what `slot_questions` draws. Out: the text of a question.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from slot_questions import COMPARISONS, Col, SlotQuestions, Source, Target
from slot_worlds import SlotWorld

from secant.plan.rewrites.order_statistics import FUNCTIONS as RANKED


def _filter(q: SlotQuestions) -> str:
    source = q.source()
    keys, grouped = q.keys(source)
    return f"SELECT {keys}{q.plain_call(source)} AS c0 FROM {source.text} WHERE {q.make(source, 'bool')}{grouped}"


def _filter_clause(q: SlotQuestions) -> str:
    source = q.source()
    call = q.call(q.column(source, "num"), "num", source)
    return f"SELECT {call} FILTER (WHERE {q.make(source, 'bool')}) AS c0 FROM {source.text}"


def _project(q: SlotQuestions) -> str:
    """Two columns under names that may meet, all of whose rows count."""
    source, kind = q.source(), q.pick(("num", "num", "text", "bool", "date"))
    other = q.pick(source.columns)
    word = q.pick(("DISTINCT ", "DISTINCT ", ""))
    text = f"SELECT {word}{q.shown([other.text, q.make(source, kind)])} FROM {source.text}"
    outer = q.named(
        text, [Col("", other.kind, other.role, other.bounded), Col("", kind, None, True)]
    )
    where = f" WHERE {q.test(outer)}" if q.chance(0.6) else ""
    if q.chance(0.3):
        outer = q.joined(outer, q.source(0), q.pick(("JOIN", "LEFT JOIN")))
    return f"SELECT {q.plain_call(outer)} AS c0 FROM {outer.text}{where}"


def _key(q: SlotQuestions) -> str:
    source, kind = q.source(), q.pick(("num", "text", "bool", "date"))
    key = q.make(source, kind)
    return f"SELECT {key} AS k0, {q.plain_call(source)} AS c0 FROM {source.text} GROUP BY 1"


def _inner_key(q: SlotQuestions) -> str:
    source, kind = q.source(), q.pick(("num", "text", "bool"))
    key = q.make(source, kind)
    roled = [c.text for c in source.columns if c.role]
    more = f", {q.pick(roled)}" if roled and q.chance(0.6) else ""
    text = f"SELECT {key}, count(*){more} FROM {source.text} GROUP BY 1{', 3' if more else ''}"
    shown = [Col("", kind), Col("", "num")] + ([Col("", "num", "place")] if more else [])
    outer = q.named(text, shown)
    return f"SELECT {q.plain_call(outer)} AS c0 FROM {outer.text}"


def _argument(q: SlotQuestions) -> str:
    source = q.source()
    keys, grouped = q.keys(source)
    call = q.call(q.make(source, "num"), "num", source)
    return f"SELECT {keys}{call} AS c0 FROM {source.text}{grouped}"


def _second(q: SlotQuestions) -> str:
    """The other side of a pair."""
    source = q.source()
    keys, grouped = q.keys(source)
    call = q.pair(q.column(source, "num"), q.make(source, "num"))
    return f"SELECT {keys}{call} AS c0 FROM {source.text}{grouped}"


def _inner_argument(q: SlotQuestions) -> str:
    """What groups add up to, told apart by a filter or summed once more."""
    source = q.source()
    key = q.pick([c for c in source.columns if c.role] or source.columns)
    call = q.call(q.make(source, "num"), "num", source)
    text = f"SELECT {key.text}, {call} FROM {source.text} GROUP BY {key.text}"
    outer = q.named(text, [Col("", key.kind, key.role), Col("", "num", None, True)])
    where = f" WHERE {outer.columns[1].text} {q.pick(COMPARISONS)} {q.pick(('0.3', '0.6', '1'))}"
    return f"SELECT {q.pick(('count(*)', q.plain_call(outer)))} AS c0 FROM {outer.text}{where if q.chance(0.7) else ''}"


def _join(word: str) -> Callable[[SlotQuestions], str]:
    def make(q: SlotQuestions) -> str:
        left, right = q.source(0), q.source(0)
        both = Source("", left.columns + right.columns)
        condition = q.make(both, "bool")
        if q.chance(0.7):
            condition = f"{q.tie(left, right)} AND {condition}"
        source = q.joined(left, right, word, condition)
        return f"SELECT {q.plain_call(source)} AS c0 FROM {source.text}"

    return make


def _cross(q: SlotQuestions) -> str:
    source = q.joined(q.source(0), q.source(0), "CROSS JOIN")
    return f"SELECT {q.plain_call(source)} AS c0 FROM {source.text} WHERE {q.make(source, 'bool')}"


def _sort(q: SlotQuestions) -> str:
    """Rows chosen by an order, of a table or of a union of constants."""
    kind = q.pick(("num", "num", "text", "bool", "date"))
    if q.chance(0.4):
        inner = q.constants()
        (column,) = inner.columns
        union = f"SELECT {column.text} AS v FROM {inner.text} UNION ALL SELECT 5 AS v"
        outer = Source("", (replace(column, text="v"),))
        text = f"{union} ORDER BY {q.order(q.make(outer, kind))}{q.cut()}"
        shown: Sequence[Col] = inner.columns
    else:
        inner = q.source()
        shown = q.draw.sample(inner.columns, min(2, len(inner.columns)))
        some = ", ".join(c.text for c in shown)
        text = f"SELECT {some} FROM {inner.text} ORDER BY {q.order(q.make(inner, kind))}{q.cut()}"
    outer = q.named(text, shown)
    return f"SELECT {q.plain_call(outer)} AS c0 FROM {outer.text}"


def _window(q: SlotQuestions) -> str:
    """What a window says of each row: over rows that hold the expression, or of those that pass it."""
    source = q.source()
    key = q.pick([c for c in source.columns if c.role] or source.columns)
    if q.chance(0.3):
        call = f"count(*) FILTER (WHERE {q.make(source, 'bool')})"
        text = f"SELECT {key.text}, {call} OVER (PARTITION BY {key.text}) FROM {source.text}"
    else:
        text = f"SELECT {key.text}, {q.make(source, 'num')} FROM {source.text}"
        inner = q.named(text, [key, Col("", "num")])
        owner, value = (c.text for c in inner.columns)
        call = q.pick(("rank()", "row_number()", f"max({value})", "count(*)"))
        over = q.pick(("", f" ORDER BY {q.order(value)}", f", {value}"))
        text = f"SELECT {owner}, {call} OVER (PARTITION BY {owner}{over}) FROM {inner.text}"
    outer = q.named(text, [key, Col("", "num", None, True)])
    where = f" WHERE {outer.columns[1].text} {q.pick(COMPARISONS)} {q.pick('12')}"
    return f"SELECT {q.plain_call(outer)} AS c0 FROM {outer.text}{where if q.chance(0.7) else ''}"


def _having(q: SlotQuestions) -> str:
    """A condition of groups inside, or of released groups."""
    source = q.source()
    plain = [c for c in source.columns if c.kind in ("text", "bool", "num")]
    key = q.pick(plain or source.columns)
    calls = Source("", (Col("count(*)", "num", None, True), Col(key.text, key.kind)))
    test = q.make(calls, "bool")
    text = f"SELECT {key.text}, count(*) FROM {source.text} GROUP BY {key.text} HAVING {test}"
    if q.chance(0.4):
        return text
    outer = q.named(text, [key, Col("", "num")])
    return f"SELECT {q.plain_call(outer)} AS c0 FROM {outer.text}"


def _shown(q: SlotQuestions) -> str:
    """Beside an aggregate: what is done with it after the noise."""
    source = q.source()
    calls = Source("", (Col(q.call(q.column(source, "num"), "num", source), "num"),))
    return f"SELECT {q.make(calls, 'num')} AS c0, {q.plain_call(source)} AS c1 FROM {source.text}"


def _shown_order(q: SlotQuestions) -> str:
    source = q.source()
    texts = [c for c in source.columns if c.kind in ("text", "num")]
    key = q.pick(texts or source.columns)
    calls = Source("", (Col("count(*)", "num"), Col(key.text, key.kind)))
    order = q.order(q.make(calls, q.pick(("num", "bool"))))
    return f"SELECT {key.text}, count(*) FROM {source.text} GROUP BY {key.text} ORDER BY {order}{q.cut()}"


def _side(q: SlotQuestions) -> str:
    source, kind = q.source(0), q.pick(("num", "text"))
    other = q.source(0)
    word = q.pick(("UNION", "UNION ALL", "INTERSECT", "INTERSECT ALL", "EXCEPT", "EXCEPT ALL"))
    sides = [f"SELECT {q.make(source, kind)} AS s FROM {source.text}",
             f"SELECT {q.column(other, kind)} AS s FROM {other.text}"]  # fmt: skip
    q.draw.shuffle(sides)
    outer = q.named(f"{sides[0]} {word} {sides[1]}", [Col("", kind, None, True)])
    return f"SELECT {q.plain_call(outer)} AS c0 FROM {outer.text}"


def _public_rows(q: SlotQuestions) -> str:
    """Rows of a public table, each with what the expression says."""
    source = q.any_table("public")
    return f"SELECT {q.make(source, q.pick(('num', 'bool', 'text')))} AS c0 FROM {source.text}"


def _alone(q: SlotQuestions) -> str:
    return f"SELECT {q.make(Source('', ()), 'num')} AS c0"


def _common(q: SlotQuestions) -> str:
    """A common table that is read twice."""
    source, kind = q.source(0), q.pick(("num", "text"))
    key = q.pick(source.columns)
    one, two = q.alias(), q.alias()
    return (
        f"WITH w(a, b) AS (SELECT {key.text}, {q.make(source, kind)} FROM {source.text}) "
        f"SELECT count(*) AS c0 FROM w {one} JOIN w {two} ON {one}.a = {two}.a WHERE {one}.b <= {two}.b"
    )


def _staged(q: SlotQuestions) -> str:
    """A number that is released first and then read as a constant."""
    one, two = q.any_table("protected"), q.any_table("protected")
    first = f"(SELECT {q.pick(('avg', 'sum', 'max'))}({q.column(two, 'num')}) FROM {two.text})"
    keys, grouped = q.keys(one)
    more = f" AND {q.make(one, 'bool')}" if q.chance(0.5) else ""
    where = f"{q.column(one, 'num')} > {first}{more}"
    return f"SELECT {keys}{q.plain_call(one)} AS c0 FROM {one.text} WHERE {where}{grouped}"


def _looked_up(q: SlotQuestions) -> str:
    """What each row of a public table asks of protected ones."""
    outer, inner = q.any_table("public"), q.any_table("protected")
    asked = f"(SELECT {q.plain_call(inner)} FROM {inner.text} WHERE {q.tie(inner, outer)})"
    if q.chance(0.5):
        return f"SELECT {q.pick(outer.columns).text}, {asked} AS c0 FROM {outer.text}"
    more = f" AND {q.make(outer, 'bool')}" if q.chance(0.5) else ""
    return f"SELECT {q.pick(outer.columns).text} FROM {outer.text} WHERE {asked} > {q.pick('012')}{more}"


def _order_statistic(q: SlotQuestions) -> str:
    """An order statistic over protected rows."""
    source = q.any_table("protected")
    if q.chance(0.2):
        source = q.joined(source, q.any_table("public"), "JOIN")
    keys, grouped = q.keys(source)
    name = q.target.aggregate.partition(" ")[0]
    name = name if name in RANKED else q.pick(RANKED)
    column = q.column(source, "num")
    call = f"{name}({column}, 0.25)" if name.startswith("quantile") else f"{name}({column})"
    where = f" WHERE {q.make(source, 'bool')}" if q.chance(0.3) else ""
    return f"SELECT {keys}{call} AS c0 FROM {source.text}{where}{grouped}"


PLACES: Mapping[str, Callable[[SlotQuestions], str]] = {
    "Filter.predicate": _filter,
    "FILTER clause": _filter_clause,
    "Project.items": _project,
    "Aggregate.keys": _key,
    "Aggregate.keys, inside": _inner_key,
    "Aggregation.argument": _argument,
    "Aggregation.argument, inside": _inner_argument,
    "Aggregation.second": _second,
    "Join.condition": _join("JOIN"),
    "Join.condition, left": _join("LEFT JOIN"),
    "Join.condition, right": _join("RIGHT JOIN"),
    "Join, cross": _cross,
    "Sort.keys": _sort,
    "Window.input": _window,
    "HAVING": _having,
    "shown": _shown,
    "shown, ordered": _shown_order,
    "side of a set": _side,
    "public rows": _public_rows,
    "no table": _alone,
    "common table": _common,
    "staged": _staged,
    "looked up": _looked_up,
    "order statistic": _order_statistic,
}


def _syntax(template: str) -> Callable[[SlotQuestions], str]:
    def make(q: SlotQuestions) -> str:
        source = q.source(0)
        column = q.column(source, "num")
        return template.format(e=q.make(source, "num"), source=source.text, column=column)

    return make


SYNTAX: Mapping[str, Callable[[SlotQuestions], str]] = {
    "LIMIT": _syntax("SELECT count(*) FROM (SELECT {column} FROM {source} ORDER BY 1 LIMIT {e}) z"),
    "OFFSET": _syntax("SELECT count(*) FROM (SELECT {column} FROM {source} ORDER BY 1 LIMIT 1 OFFSET {e}) z"),
    "VALUES": _syntax("SELECT sum(v) FROM (VALUES (0), ({e})) z(v), {source}"),
    "OVER PARTITION BY": _syntax("SELECT sum(s) FROM (SELECT count(*) OVER (PARTITION BY {e}) AS s FROM {source}) z"),
    "OVER": _syntax("SELECT sum(s) FROM (SELECT max({e}) OVER (PARTITION BY {column}) AS s FROM {source}) z"),
    "OVER ORDER BY": _syntax("SELECT sum(s) FROM (SELECT rank() OVER (ORDER BY {e}) AS s FROM {source}) z"),
    "QUALIFY": _syntax("SELECT {column} FROM {source} QUALIFY row_number() OVER (ORDER BY {e}) = 1"),
    "DISTINCT ON": _syntax("SELECT count(*) FROM (SELECT DISTINCT ON ({e}) {column} FROM {source}) z"),
    "ORDER BY in an aggregate": _syntax("SELECT sum({column} ORDER BY {e}) FROM {source}"),
    "quantile's fraction": _syntax("SELECT quantile_cont({column}, {e}) FROM {source}"),
    "LATERAL": _syntax("SELECT sum(z.s) FROM {source}, LATERAL (SELECT {e} AS s) z"),
    "GROUP BY ROLLUP": _syntax("SELECT count(*) FROM {source} GROUP BY ROLLUP ({e})"),
    "TABLESAMPLE": _syntax("SELECT count(*), {e} FROM {source} TABLESAMPLE 50%"),
}  # fmt: skip
"""Places that SQL has and the plan may have: they are asked for as well, and most are refused."""
EVERYWHERE = {**PLACES, **SYNTAX}


def question(draw: random.Random, world: SlotWorld, target: Target) -> str:
    """Draw a question for a target."""
    return EVERYWHERE[target.place](SlotQuestions(draw, world, target))
