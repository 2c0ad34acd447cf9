"""A grammar of what analysts write: windows, GROUPING SETS, QUALIFY, odd joins, JSON, arrays, subqueries about others.

In: a `random.Random`. Out: SQL text, and the names of the constructs that it holds, so that a test can count them. Most
questions are tied along references, so that many are answered; some are not.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Any

from analyst_worlds import ARRAYS, COLUMNS, PARTS, ROLES, VIEWS
from slot_questions import SIGNATURES, SIGNS

CONSTANTS = {
    "int": ("0", "1", "2", "3"), "dec": ("0.5", "1.25", "2"), "real": ("0.5", "1.5e0"), "text": ("'a'", "'b'", "'ab'"),
    "enum": ("'calm'", "'sad'"), "date": ("DATE '2024-01-02'", "DATE '2024-01-03'"), "bool": ("TRUE", "FALSE"),
    "time": ("TIMESTAMPTZ '2024-01-02 01:00:00+01'", "TIMESTAMP '2024-01-02 12:00:00'"),
    "clock": ("TIME '08:30:00'", "'12:00'"), "uuid": ("'00000000-0000-0000-0000-000000000001'",),
}  # fmt: skip
COMPARISONS = ("=", "=", "<>", "<", "<=", ">", ">=")
NUMBERS = ("int", "dec", "real")
PAIRED = (
    "corr",
    "covar_pop",
    "covar_samp",
    "regr_slope",
    "regr_intercept",
    "regr_count",
    "regr_r2",
)
DATES = ("date_trunc('month', {0})", "extract(day FROM {0})", "strftime({0}, '%Y-%m')")
AS_SIGNED = {"int": "num", "dec": "num", "real": "num", "enum": "text", "time": "time", "date": "date", "text": "text",
             "bool": "bool"}  # fmt: skip
CONSTRUCTS = (
    "window inside a unit", "window over a release", "FILTER", "QUALIFY", "GROUPING SETS", "ROLLUP", "CUBE", "GROUPING",
    "FULL JOIN", "NATURAL JOIN", "USING", "DISTINCT ON", "VALUES", "CASE key", "ordinal", "alias key", "GROUP BY ALL",
    "pairs", "truths", "mode", "rank", "function", "EXISTS others", "IN others", "sides by keys",
    "correlated aggregate", "public scalar", "JSON", "array", "unnest", "enum", "uuid", "timestamptz", "time",
    "boolean key", "view", "common", "per unit", "LATERAL", "ASOF",
)  # fmt: skip


@dataclass(frozen=True)
class Col:
    """A visible column: how it is written, its kind, its role, and what it is called where names matter."""

    text: str
    kind: str
    role: str | None = None
    uses: str | None = None


@dataclass(frozen=True)
class Source:
    """Something that stands in FROM, and what it shows."""

    text: str
    columns: tuple[Col, ...]


class Analyst:
    """Draws one question after another."""

    def __init__(
        self, draw: random.Random, favored: tuple[str, ...], *, exact: bool = False
    ) -> None:
        self.draw, self.favored = draw, favored
        self.exact = exact
        """Whether a text means one thing to all: orders are of all columns, nothing is the most frequent of several
        values or the number of none (DuckDB's count_if is NULL then)."""
        self.aliases = 0
        self.used: set[str] = set()
        self.commons: list[str] = []

    def question(self) -> str:
        """Give the text of one question."""
        self.aliases, self.used, self.commons = 0, set(), []
        text = self._answer()
        return f"WITH {', '.join(self.commons)} {text}" if self.commons else text

    # small things

    def chance(self, share: float) -> bool:
        return self.draw.random() < share

    def pick(self, options: Any) -> Any:
        return self.draw.choice(list(options))

    def alias(self) -> str:
        self.aliases += 1
        return f"t{self.aliases}"

    def use(self, name: str) -> None:
        assert name in CONSTRUCTS, name
        self.used.add(name)

    def shown(self, column: Col) -> str:
        """Write a column, and count what it stands for."""
        named = {"enum": "enum", "uuid": "uuid", "time": "timestamptz", "clock": "time"}
        for what in (column.uses, named.get(column.kind)):
            if what is not None:
                self.use(what)
        return column.text

    # sources

    def table(self, name: str | None = None) -> Source:
        name = name or (self.pick(self.favored) if self.chance(0.85) else self.pick(COLUMNS))
        if name == "visit" and self.chance(0.15):
            return self.view()
        alias = self.alias()
        columns = [Col(f"{alias}.{c}", kind, ROLES.get((name, c))) for c, kind in COLUMNS[name].items()]  # fmt: skip
        if self.chance(0.3):
            columns += [
                Col(written.format(alias), kind, None, "JSON" if "->>" in written else "array")
                for written, (kind, _) in PARTS.get(name, {}).items()
                if not (self.exact and kind == "bool")  # engines differ where there is no array
            ]  # fmt: skip
        if name in ARRAYS and self.chance(0.12):
            return self.unnested(name, alias, columns)
        return Source(f"{name} {alias}", tuple(columns))

    def unnested(self, name: str, alias: str, columns: list[Col]) -> Source:
        other, array = self.alias(), ARRAYS[name]
        kind = "text" if array == "tags" else "int"
        word = self.pick((", ", " CROSS JOIN ", " CROSS JOIN LATERAL "))
        element = Col(f"{other}.x", kind, None, "unnest")
        return Source(
            f"{name} {alias}{word}unnest({alias}.{array}) AS {other}(x)",
            (element, element, *columns),
        )

    def view(self) -> Source:
        self.use("view")
        alias = self.alias()
        columns = VIEWS["seen_visits"].items()
        return Source(
            f"seen_visits {alias}",
            tuple(Col(f"{alias}.{c}", kind, ROLES.get(("seen_visits", c))) for c, kind in columns),
        )

    def values(self) -> Source:
        self.use("VALUES")
        alias = self.alias()
        rows = self.pick(("(0, 'a'), (1, 'b')", "(1, 'a'), (2, 'ab'), (3, NULL)", "(1, 'b')"))
        return Source(
            f"(VALUES {rows}) {alias}(v, w)",
            (Col(f"{alias}.v", "int", "place"), Col(f"{alias}.w", "text")),
        )

    def source(self, depth: int = 1) -> Source:
        kind = self.draw.random()
        if depth == 0 or kind < 0.3:
            return self.table()
        if kind < 0.62:
            return self.joined()
        return self.derived()

    def joined(self) -> Source:
        """Two sources, most often on columns that belong together."""
        kind = self.draw.random()
        if kind < 0.16:
            return self.by_keys()
        if kind < 0.24:
            return self.natural()
        if kind < 0.3:
            return self.lateral()
        if kind < 0.35:
            return self.asof()
        left = self.table() if self.chance(0.8) else self.derived()
        roles = {c.role for c in left.columns} - {None}
        names = [n for (n, _), role in ROLES.items() if role in roles and n in COLUMNS]
        right = self.values() if self.chance(0.15) else self.table(self.pick(names) if names else None)  # fmt: skip
        word = self.pick(("JOIN", "LEFT JOIN", "FULL JOIN", "FULL OUTER JOIN", "RIGHT JOIN"))
        if "FULL" in word:
            self.use("FULL JOIN")
        return Source(
            f"{left.text} {word} {right.text} ON {self.tie(left, right)}",
            left.columns + right.columns,
        )

    def by_keys(self) -> Source:
        """Sales and what came back, by their common key and not by the person."""
        self.use("sides by keys")
        names = ["sale", "back"]
        self.draw.shuffle(names)
        left, right = (self.table_only(name) for name in names)
        word = self.pick(("JOIN", "JOIN", "LEFT JOIN", "FULL JOIN"))
        on = f"{left.columns[0].text} = {right.columns[0].text} AND {left.columns[1].text} = {right.columns[1].text}"
        if self.chance(0.3):
            on += f" AND {left.columns[2].text} = {right.columns[2].text}"
        if self.chance(0.2):
            self.use("USING")
            text = f"{left.text} {word} {right.text} USING (ticket, item)"
            return Source(text, left.columns[3:] + right.columns[3:])
        return Source(f"{left.text} {word} {right.text} ON {on}", left.columns + right.columns)

    def table_only(self, name: str) -> Source:
        alias = self.alias()
        columns = tuple(
            Col(f"{alias}.{c}", kind, ROLES.get((name, c))) for c, kind in COLUMNS[name].items()
        )
        return Source(f"{name} {alias}", columns)

    def natural(self) -> Source:
        self.use("NATURAL JOIN")
        left, right = self.pick((("visit", "place"), ("sale", "back"), ("place", "visit")))
        one, two = self.table_only(left), self.table_only(right)
        word = self.pick(("NATURAL JOIN", "NATURAL LEFT JOIN"))
        both = {c.text.partition(".")[2] for c in one.columns} & {
            c.text.partition(".")[2] for c in two.columns
        }
        columns = [c for c in one.columns + two.columns if c.text.partition(".")[2] not in both]
        return Source(f"{one.text} {word} {two.text}", tuple(columns))

    def lateral(self) -> Source:
        """A subquery in FROM that follows the row before it."""
        self.use("LATERAL")
        left, right, alias = self.table("person"), self.table_only("visit"), self.alias()
        unit = next(c for c in left.columns if c.role == "person")
        owner = next(c for c in right.columns if c.role == "person")
        shown = self.pick(("count(*)", "max(cost)", "sum(cost)", "min(day)"))
        kind = {"count(*)": "int", "min(day)": "date"}.get(shown, "dec")
        where = f"{owner.text} = {unit.text}"
        if self.chance(0.4):
            where += f" AND {self.test(right, 0)}"
        inner = f"(SELECT {shown} AS s FROM {right.text} WHERE {where}) {alias}"
        word = self.pick((" CROSS JOIN LATERAL ", ", LATERAL "))
        return Source(f"{left.text}{word}{inner}", (*left.columns, Col(f"{alias}.s", kind)))

    def asof(self) -> Source:
        self.use("ASOF")
        left = self.table_only(self.pick(("visit", "sale")))
        right = self.table_only("place")
        (day,) = (c for c in left.columns if c.kind == "date")
        since = right.columns[3]
        word = self.pick(("ASOF JOIN", "ASOF LEFT JOIN"))
        on = f"{day.text} >= {since.text}"
        if "code" in left.text or left.text.startswith("visit"):
            on = f"{left.columns[6].text} = {right.columns[0].text} AND {on}" if self.chance(0.5) else on  # fmt: skip
        return Source(f"{left.text} {word} {right.text} ON {on}", left.columns + right.columns)

    def tie(self, left: Source, right: Source) -> str:
        pairs = [(a, b) for a in left.columns for b in right.columns if a.role and a.role == b.role]
        if not pairs or self.chance(0.05):
            pairs = [(a, b) for a in left.columns for b in right.columns if a.kind == b.kind]
        if not pairs:
            return "TRUE"
        a, b = self.pick(pairs)
        more = f" AND {self.test(right, 0)}" if self.chance(0.2) else ""
        return f"{self.shown(a)} = {self.shown(b)}{more}"

    def named(self, text: str, shown: list[Col]) -> Source:
        alias = self.alias()
        names = [f"x{i}" for i in range(len(shown))]
        columns = tuple(
            Col(f"{alias}.{x}", c.kind, c.role) for x, c in zip(names, shown, strict=True)
        )
        if self.chance(0.15):
            self.use("common")
            self.commons.append(f"{alias}_({', '.join(names)}) AS ({text})")
            return Source(f"{alias}_ {alias}", columns)
        return Source(f"({text}) {alias}({', '.join(names)})", columns)

    def derived(self) -> Source:
        """A derived table: windows, first rows, groups of a unit."""
        inner = self.table() if self.chance(0.7) else self.joined()
        units = [c for c in inner.columns if c.role == "person"]
        kind = self.draw.random()
        if kind < 0.45:
            return self.windowed(inner, units)
        if kind < 0.6:
            return self.first_rows(inner, units)
        if kind < 0.8:
            return self.per_unit(inner, units)
        shown = self.some(inner, units)
        words = ", ".join(self.shown(c) for c in shown)
        return self.named(
            f"SELECT {self.pick(('DISTINCT ', ''))}{words} FROM {inner.text}{self.where(inner, 1)}",
            shown,
        )

    def some(self, source: Source, units: list[Col]) -> list[Col]:
        found = [self.pick(units)] if units and self.chance(0.8) else []
        for _ in range(self.pick((1, 2))):
            column = self.pick(source.columns)
            found += [column] if column not in found else []
        return found

    def windowed(self, inner: Source, units: list[Col]) -> Source:
        self.use("window inside a unit")
        by = self.shown(self.pick(units if units and self.chance(0.85) else inner.columns))
        if self.chance(0.25):
            by += f", {self.shown(self.pick(inner.columns))}"
        x, order = self.pick(inner.columns), self.shown(self.pick(inner.columns))
        order += self.pick(("", self.falling(), " NULLS FIRST", " DESC NULLS LAST"))
        over = f"OVER (PARTITION BY {by} ORDER BY {order}{self.rest(inner)})"
        frame = self.pick(("ROWS BETWEEN 1 PRECEDING AND CURRENT ROW",
                           "ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING",
                           "GROUPS BETWEEN 1 PRECEDING AND 1 FOLLOWING"))  # fmt: skip
        framed = over[:-1] + f" {frame})"
        number = self.pick([c for c in inner.columns if c.kind in ("int", "dec")] or [Col("1", "int")])  # fmt: skip
        test = self.test(inner, 0)
        call, kind = self.pick((
            (f"row_number() {over}", "int"), (f"row_number() {over}", "int"), (f"rank() {over}", "int"),
            (f"dense_rank() {over}", "int"), (f"ntile(2) {over}", "int"), (f"percent_rank() {over}", "real"),
            (f"cume_dist() {over}", "real"), (f"lag({self.shown(x)}) {over}", x.kind),
            (f"lead({self.shown(x)}, 2) {over}", x.kind), (f"first_value({self.shown(x)}) {over}", x.kind),
            (f"nth_value({self.shown(x)}, 2) {framed}", x.kind), (f"max({self.shown(x)}) {over}", x.kind),
            (f"count(*) OVER (PARTITION BY {by})", "int"), (f"sum({self.shown(number)}) {framed}", number.kind),
            (f"avg({self.shown(number)}) OVER (PARTITION BY {by})", "real"),
            (f"count(*) FILTER (WHERE {test}) OVER (PARTITION BY {by})", "int"),
        ))  # fmt: skip
        shown = self.some(inner, units)
        words = ", ".join(self.shown(c) for c in shown)
        text = f"SELECT {words}, {call} AS w FROM {inner.text}{self.where(inner, 0)}"
        if kind == "int" and self.chance(0.4):
            self.use("QUALIFY")
            text += f" QUALIFY w {self.pick(('=', '<='))} {self.pick('12')}"
        return self.named(text, [*shown, Col("w", kind)])

    def falling(self) -> str:
        """Write an order from the largest on; engines differ in where NULL stands then."""
        return " DESC NULLS LAST" if self.exact else " DESC"

    def rest(self, source: Source) -> str:
        """Write further keys of an order, so that no two rows that differ are alike to it."""
        return "".join(f", {c.text}" for c in source.columns) if self.exact else ""

    def first_rows(self, inner: Source, units: list[Col]) -> Source:
        self.use("DISTINCT ON")
        on = self.shown(self.pick(units if units and self.chance(0.9) else inner.columns))
        shown = self.some(inner, units)
        words = ", ".join(self.shown(c) for c in shown)
        order = f"{on}, {self.shown(self.pick(inner.columns))}{self.pick(('', self.falling()))}{self.rest(inner)}"
        return self.named(
            f"SELECT DISTINCT ON ({on}) {words} FROM {inner.text}{self.where(inner, 0)} ORDER BY {order}",
            shown,
        )

    def per_unit(self, inner: Source, units: list[Col]) -> Source:
        self.use("per unit")
        key = self.pick(units if units and self.chance(0.9) else inner.columns)
        call, kind = self.inner_call(inner)
        having = f" HAVING count(*) {self.pick(COMPARISONS)} {self.pick('12')}" if self.chance(0.3) else ""  # fmt: skip
        text = f"SELECT {self.shown(key)}, {call} FROM {inner.text}{self.where(inner, 0)} GROUP BY {key.text}{having}"
        return self.named(text, [key, Col("", kind)])

    def inner_call(self, source: Source) -> tuple[str, str]:
        number = self.pick([c for c in source.columns if c.kind in NUMBERS] or [Col("1", "int")])
        any_ = self.pick(source.columns)
        passing = f"count({any_.text})" if self.exact else f"count_if({self.test(source, 0)})"
        return self.pick((
            ("count(*)", "int"), (f"sum({self.shown(number)})", number.kind), (f"max({self.shown(any_)})", any_.kind),
            (f"count(DISTINCT {self.shown(any_)})", "int"), (passing, "int"),
            (f"sum({self.shown(number)}) FILTER (WHERE {self.test(source, 0)})", number.kind),
        ))  # fmt: skip

    # conditions and values

    def where(self, source: Source, depth: int) -> str:
        if self.chance(0.45):
            return ""
        parts = [self.test(source, depth) for _ in range(self.pick((1, 1, 2)))]
        return f" WHERE {self.pick((' AND ', ' AND ', ' OR ')).join(parts)}"

    def test(self, source: Source, depth: int) -> str:
        if depth > 0 and self.chance(0.5):
            return self.subquery(source)
        if self.chance(0.15):
            kind = self.pick(("num", "text", "bool"))
            text = self.function(source, kind)
            if text is not None:
                end = {"num": f" {self.pick(COMPARISONS)} 1", "text": " <> 'a'", "bool": ""}[kind]
                return f"({text}{end})"
        column = self.pick(source.columns)
        written, value = self.shown(column), self.pick(CONSTANTS[column.kind])
        if column.kind == "bool":
            return self.pick((written, f"{written} IS NOT TRUE"))
        return self.pick((
            f"{written} {self.pick(COMPARISONS)} {value}", f"{written} {self.pick(COMPARISONS)} {value}",
            f"{written} IS {self.pick(('', 'NOT '))}NULL",
            f"{written} {self.pick(('', 'NOT '))}IN ({value}, {self.pick(CONSTANTS[column.kind])})",
            f"({written} = {value} OR {self.shown(self.pick(source.columns))} IS NULL)",
        ))  # fmt: skip

    def function(self, source: Source, gives: str) -> str | None:
        """Call a function of the list with columns of the source."""
        name = self.pick([f for f, (_, kind) in SIGNATURES.items() if kind == gives] or ["abs"])
        kinds, _ = SIGNATURES[name]
        arguments = []
        for kind in kinds:
            fitting = [c for c in source.columns if AS_SIGNED.get(c.kind) == kind]
            if kind[0] in "'0123456789":
                arguments.append(kind)
            elif kind == "small":
                arguments.append(self.pick(("1", "2", "-1")))
            elif fitting:
                arguments.append(self.shown(self.pick(fitting)))
            else:
                return None
        self.use("function")
        if name in SIGNS:
            return f"({arguments[0]} {SIGNS[name]} {arguments[1]})"
        return f"{name}({', '.join(arguments)})"

    def subquery(self, outer: Source) -> str:
        """A condition that looks at other rows: of the same person, of other people, of a public table."""
        kind = self.draw.random()
        word = self.pick(("", "", "NOT "))
        if kind < 0.15:
            self.use("public scalar")
            inner = self.table_only("place")
            pairs = [(a, b) for a in inner.columns for b in outer.columns if a.role and a.role == b.role]  # fmt: skip
            where = f" WHERE {pairs[0][0].text} = {self.shown(pairs[0][1])}" if pairs else ""
            if not pairs:
                return f"(SELECT {self.pick(('max', 'min'))}(size) FROM place) > {self.pick('123')}"
            return f"(SELECT {inner.columns[2].text} FROM {inner.text}{where}) {self.pick(COMPARISONS)} 2"
        roles = {c.role for c in outer.columns} - {None}
        names = [n for (n, _), role in ROLES.items() if role in roles and n in COLUMNS]
        names += ["person"] * (2 * ("person" in names))  # who is somebody's boss
        inner = self.table(self.pick(names) if names else None)
        pairs = [(a, b) for a in inner.columns for b in outer.columns if a.role and a.role == b.role]  # fmt: skip
        if not pairs:
            return "TRUE"
        a, b = self.pick(pairs)
        more = f" AND {self.test(inner, 0)}" if self.chance(0.4) else ""
        others = a.role != "person" or ".boss" in a.text + b.text
        tied = f"{self.shown(a)} = {self.shown(b)}"
        if a.role in ("ticket", "item") and self.chance(0.7):  # the whole key
            tied = " AND ".join(f"{c.text} = {d.text}" for c, d in pairs if c.role != "person")
        if kind < 0.5:
            if others:
                self.use("EXISTS others")
            apart = ""
            units = [[c for c in s.columns if c.role == "person"] for s in (inner, outer)]
            if others and all(units) and self.chance(0.4):
                apart = f" AND {self.shown(units[0][0])} <> {self.shown(units[1][0])}"
            return f"{word}EXISTS (SELECT 1 FROM {inner.text} WHERE {tied}{apart}{more})"
        if kind < 0.75:
            if others:
                self.use("IN others")
            where = f" WHERE {more[5:]}" if more else ""
            return f"{self.shown(b)} {word}IN (SELECT {self.shown(a)} FROM {inner.text}{where})"
        self.use("correlated aggregate")
        number = self.pick([c for c in inner.columns if c.kind in ("int", "dec")])
        call = self.pick(("count(*)", f"sum({number.text})", f"max({number.text})", f"avg({number.text})"))  # fmt: skip
        left = self.pick(("1", "2", *(c.text for c in outer.columns if c.kind in ("int", "dec"))))
        return (
            f"{left} {self.pick(COMPARISONS)} (SELECT {call} FROM {inner.text} WHERE {tied}{more})"
        )

    def number(self, source: Source) -> str:
        fitting = [c for c in source.columns if c.kind in NUMBERS and c.role is None]
        if not fitting:
            return "1"
        column = self.pick(fitting)
        text = self.shown(column)
        if self.chance(0.6):
            return text
        other = self.pick(fitting)
        return self.pick((
            f"{text} * 2", f"{text} - {self.shown(other)}", f"abs({text})", f"coalesce({text}, 1)",
            f"CASE WHEN {self.test(source, 0)} THEN {text} ELSE 0 END", f"least({text}, 2)",
            f"greatest({text}, {other.text})", self.function(source, "num") or text,
        ))  # fmt: skip

    def call(self, source: Source) -> str:
        kind = self.draw.random()
        any_ = self.pick(source.columns)
        if kind < 0.25:
            what = self.shown(any_)
            text = self.pick(("count(*)", f"count({what})", f"count(DISTINCT {what})"))
        elif kind < 0.55:
            text = f"{self.pick(('sum', 'sum', 'avg', 'var_samp', 'stddev_pop'))}({self.number(source)})"
        elif kind < 0.65:
            self.use("pairs")
            name = self.pick(PAIRED)
            text = f"{name}({self.number(source)}, {self.number(source)})"
        elif kind < 0.75:
            self.use("truths")
            names = ("bool_and", "bool_or") if self.exact else ("bool_and", "bool_or", "count_if")
            text = f"{self.pick(names)}({self.test(source, 0)})"
        elif kind < 0.85 and not self.exact:
            self.use("mode")
            text = f"mode({self.shown(any_)})"
        else:
            self.use("rank")
            moments = [c for c in source.columns if c.kind in ("date", "time") and not self.exact]
            what = self.shown(self.pick(moments)) if moments and self.chance(0.3) else self.number(source)  # fmt: skip
            return self.pick(
                ("median({0})", "quantile_disc({0}, 0.25)", "min({0})", "max({0})")
            ).format(what)
        if self.chance(0.2):
            self.use("FILTER")
            text += f" FILTER (WHERE {self.test(source, 0)})"
        return text

    # the whole answer

    def key(self, source: Source) -> str:
        plain = [c for c in source.columns if c.role is None]
        column = self.pick(plain if plain and self.chance(0.93) else source.columns)
        text = self.shown(column)
        if column.kind == "bool":
            self.use("boolean key")
        if self.chance(0.25):
            self.use("CASE key")
            return f"CASE WHEN {self.test(source, 0)} THEN 'x' ELSE 'y' END"
        if column.kind in ("date", "time") and self.chance(0.5):
            return self.pick(DATES).format(text)
        return text

    def _answer(self) -> str:
        source = self.source()
        calls = [self.call(source) for _ in range(self.pick((1, 1, 1, 2)))]
        where = self.where(source, 1)
        keys = [self.key(source) for _ in range(self.pick((0, 0, 1, 1, 2)))]
        keys = list(dict.fromkeys(keys))
        shown = [f"{k} AS k{i}" for i, k in enumerate(keys)]
        shown += [f"{c} AS c{i}" for i, c in enumerate(calls)]
        grouped = self.grouped(keys, shown)
        window = ""
        if keys and self.chance(0.2):
            self.use("window over a release")
            windows = ["sum(count(*)) OVER () AS w", "rank() OVER (ORDER BY count(*) DESC) AS w",
                       "sum(count(*)) OVER (ORDER BY k0) AS w"]  # fmt: skip
            windows += [] if self.exact else ["lag(count(*)) OVER (ORDER BY k0) AS w"]
            shown.append(self.pick(windows))
            if self.chance(0.4):
                self.use("QUALIFY")
                call = "rank" if self.exact else "row_number"
                window = f" QUALIFY {call}() OVER (ORDER BY count(*) DESC, k0) <= 2"
        having = f" HAVING count(*) > {self.pick('01')}" if keys and self.chance(0.1) else ""
        return f"SELECT {', '.join(shown)} FROM {source.text}{where}{grouped}{having}{window}"

    def grouped(self, keys: list[str], shown: list[str]) -> str:
        if not keys:
            return ""
        listed = ", ".join(keys)
        kind = self.draw.random()
        if kind < 0.3:
            word = self.pick(("ROLLUP", "CUBE", "GROUPING SETS"))
            self.use(word)
            if self.chance(0.3):
                self.use("GROUPING")
                shown.append(f"GROUPING({keys[0]}) AS g")
            if word == "GROUPING SETS":
                return f" GROUP BY GROUPING SETS (({listed}), ({keys[0]}), ())"
            return f" GROUP BY {word} ({listed})"
        if kind < 0.45:
            self.use("ordinal")
            return f" GROUP BY {', '.join(str(i + 1) for i in range(len(keys)))}"
        if kind < 0.6:
            self.use("alias key")
            return f" GROUP BY {', '.join(f'k{i}' for i in range(len(keys)))}"
        if kind < 0.7:
            self.use("GROUP BY ALL")
            return " GROUP BY ALL"
        return f" GROUP BY {listed}"
