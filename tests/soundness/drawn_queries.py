"""A grammar of questions over the small worlds: typed, and tied along references often enough to be answerable.

In: a `random.Random`. Out: SQL text. Columns carry a role (which unit or key they lead to), so that joins and
subqueries meet on columns that belong together most of the time, and on others some of the time.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, replace

from drawn_worlds import COLUMNS, ROLES

WHOLE = ("0", "1", "2", "3", "-1")
CONSTANTS = {
    "int": WHOLE,
    "dec": ("0.5", "1.25", "2"),
    "real": ("0.5", "1.5e0", "0"),
    "text": ("'a'", "'b'", "'ab'"),
}
COMPARISONS = ("=", "=", "<>", "<", "<=", ">", ">=")


@dataclass(frozen=True)
class Col:
    """A visible column: how it is written, its kind and its role."""

    text: str
    kind: str
    role: str | None = None


@dataclass(frozen=True)
class Source:
    """Something that stands in FROM, and what it shows."""

    text: str
    columns: tuple[Col, ...]


class Questions:
    """Draws one question after another."""

    def __init__(self, draw: random.Random, favored: tuple[str, ...] = tuple(COLUMNS)) -> None:
        self.draw = draw
        self.favored = favored
        """Tables to ask about most of the time: those that something protects."""
        self.names = 0
        self.nested = 0
        self.with_: list[str] = []
        self.known: list[tuple[str, tuple[Col, ...]]] = []

    def question(self) -> str:
        """Give the text of one query."""
        self.names, self.nested, self.with_, self.known = 0, 0, [], []
        if self.chance(0.15):
            self._common_table()
        text = self._layered() if self.chance(0.4) else self._answer()
        if self.chance(0.08):
            text = f"SELECT max(m) FROM ({self._answer_with_alias()}) z"
        prefix = f"WITH {', '.join(self.with_)} " if self.with_ else ""
        return prefix + text

    # small things

    def chance(self, share: float) -> bool:
        return self.draw.random() < share

    def pick(self, options):  # type: ignore[no-untyped-def]
        return self.draw.choice(list(options))

    def alias(self) -> str:
        self.names += 1
        return f"t{self.names}"

    # the whole answer

    def _answer(self) -> str:
        source = self.source(2)
        keys = self._keys(source)
        calls = [self.call(source) for _ in range(self.pick((1, 1, 1, 2)))]
        where = self.where(source, 1)
        shown = [f"{text} AS k{i}" for i, text in enumerate(keys)]
        shown += [f"{text} AS c{i}" for i, text in enumerate(calls)]
        text = f"SELECT {', '.join(shown)} FROM {source.text}{where}"
        if keys:
            text += f" GROUP BY {', '.join(keys)}"
        if self.chance(0.1):
            text += f" HAVING count(*) > {self.pick('012')}"
        if keys and self.chance(0.15):
            text += f" ORDER BY c0 {self.pick(('ASC', 'DESC'))} LIMIT 2"
        return text

    def _layered(self) -> str:
        """Count what an inner query has grouped, merged or put together, by what it says of each group.

        A plain count hardly shows that an inner row has changed; a count by its values does.
        """
        alias = self.alias()
        source = self.join(1) if self.chance(0.5) else self.table()
        kind = self.draw.random()
        if kind < 0.5:
            text, columns = self._grouped(source)
        elif kind < 0.7:
            text, columns = self._set(source, self._some(source), 0)
        elif kind < 0.8:
            text, columns = self._windowed(source)
        else:
            shown = self._some(source)
            word = self.pick(("DISTINCT ", "DISTINCT ", ""))
            text, columns = (
                f"SELECT {word}{_list(shown)} FROM {source.text}{self.where(source, 1)}",
                _named(shown),
            )
            if self.chance(0.2):
                text += (
                    f" ORDER BY {self.pick(columns).text}{self.pick(('', ' LIMIT 1', ' LIMIT 2'))}"
                )
        outer = Source("", tuple(replace(c, text=f"{alias}.{c.text}") for c in columns))
        plain = [c for c in outer.columns if c.role is None]
        key = self.pick(plain or outer.columns).text
        where = self.where(outer, 1) if self.chance(0.3) else ""
        call = self.pick(("count(*)", self.call(outer)))
        return f"SELECT {key} AS k0, {call} AS c0 FROM ({text}) {alias}{where} GROUP BY {key}"

    def _windowed(self, source: Source) -> tuple[str, tuple[Col, ...]]:
        """Show what rows around a row say of it, mostly rows of its own unit."""
        shown = self._some(source)
        roles = [c for c in source.columns if c.role is not None]
        by = self.pick(roles if roles and self.chance(0.9) else source.columns).text
        if self.chance(0.3):
            by += f", {self.pick(source.columns).text}"
        x, order = self.pick(source.columns), self.pick(source.columns).text
        over = f"OVER (PARTITION BY {by} ORDER BY {order}{self.pick(('', ' DESC'))})"
        call, kind = self.pick((
            (f"row_number() {over}", "int"), (f"row_number() {over}", "int"), (f"rank() {over}", "int"),
            (f"lag({x.text}) {over}", x.kind), (f"first_value({x.text}) {over}", x.kind),
            (f"max({x.text}) {over}", x.kind), (f"count(*) OVER (PARTITION BY {by})", "int"),
        ))  # fmt: skip
        where = self.where(source, 1)
        text = f"SELECT {_list(shown)}, {call} AS w FROM {source.text}{where}"
        if kind == "int" and self.chance(0.4):
            text += f" QUALIFY w {self.pick(('=', '<='))} {self.pick('12')}"
        return text, (*_named(shown), Col("w", kind))

    def _answer_with_alias(self) -> str:
        source = self.source(1)
        keys = self._keys(source) or [self.pick(source.columns).text]
        return f"SELECT {keys[0]} AS k, count(*) AS m FROM {source.text} GROUP BY {keys[0]}"

    def _keys(self, source: Source) -> list[str]:
        if self.chance(0.45):
            return []
        found = []
        for _ in range(self.pick((1, 1, 2))):
            whole = [c for c in source.columns if c.kind in ("text", "int")]
            plain = [c for c in whole if c.role is None]  # a unit's own id is refused as a key
            column = self.pick((plain if self.chance(0.9) else whole) or source.columns)
            text = column.text
            if column.kind == "text" and self.chance(0.15):
                text = f"CASE WHEN {column.text} = 'a' THEN 'x' ELSE 'y' END"
            elif column.kind == "int" and self.chance(0.15):
                text = f"({column.text} > 1)"
            found.append(text)
        return list(dict.fromkeys(found))

    def call(self, source: Source) -> str:
        numbers = [c for c in source.columns if c.kind != "text"]
        any_ = self.pick(source.columns)
        if not numbers or self.chance(0.35):
            return self.pick(
                ("count(*)", "count(*)", f"count({any_.text})", f"count(DISTINCT {any_.text})")
            )
        bounded = [c for c in numbers if c.role is None] or numbers
        number = self.number(self.pick(bounded if self.chance(0.95) else numbers), source)
        return self.pick((
            f"sum({number})", f"sum({number})", f"avg({number})", f"sum(DISTINCT {number})",
            f"var_pop({number})", f"stddev_samp({number})", f"avg(DISTINCT {number})",
            f"count(DISTINCT {number})", f"sum({number}) FILTER (WHERE {self.test(source, 0)})",
            self.pick((f"median({number})", f"min({number})", f"max({number})", f"quantile_disc({number}, 0.25)")),
            self.pick((f"mode({any_.text})", f"mode({number})", f"covar_pop({number}, {self.pick(bounded).text})",
                       f"corr({number}, {self.pick(bounded).text})", f"bool_or({self.test(source, 0)})",
                       f"bool_and({self.test(source, 0)})", f"count_if({self.test(source, 0)})")),
        ))  # fmt: skip

    def number(self, column: Col, source: Source) -> str:
        if self.chance(0.5):
            return column.text
        others = [c for c in source.columns if c.kind != "text"]
        other = self.pick([c for c in others if c.role is None] or others)
        constant = self.pick(WHOLE)
        return self.pick((
            f"{column.text} * {constant}", f"{column.text} + {constant}", f"{column.text} - {other.text}",
            f"abs({column.text})", f"CASE WHEN {self.test(source, 0)} THEN {column.text} ELSE {constant} END",
            f"coalesce({column.text}, {constant})", f"least({column.text}, {constant})", f"-{column.text}",
            f"{column.text} * {other.text}", f"greatest({column.text}, {other.text})",
            f"CASE WHEN {self.test(source, self.pick((0, 1)))} THEN 1 ELSE 0 END", f"{column.text} / 2",
            f"CAST({column.text} AS DOUBLE)",
        ))  # fmt: skip

    # sources

    def source(self, depth: int) -> Source:
        kind = self.draw.random()
        if depth == 0 or kind < 0.35:
            return self.table()
        if kind < 0.7:
            return self.join(depth)
        if kind < 0.93 or not self.known:
            return self.derived(depth)
        return self._known_again()

    def table(self, name: str | None = None) -> Source:
        if name is None:
            name = self.pick(self.favored if self.chance(0.85) else COLUMNS)
        alias = self.alias()
        return Source(f"{name} {alias}", _columns(name, alias))

    def _common_table(self) -> None:
        name = f"cte{len(self.with_)}"
        text, columns = self.select(1)
        self.with_.append(f"{name} AS ({text})")
        self.known.append((name, columns))

    def _known_again(self) -> Source:
        name, columns = self.pick(self.known)
        alias = self.alias()
        return Source(
            f"{name} {alias}", tuple(replace(c, text=f"{alias}.{c.text}") for c in columns)
        )

    def join(self, depth: int) -> Source:
        left = self.source(depth - 1)
        right = (
            self.source(depth - 1) if not self.known or self.chance(0.7) else self._known_again()
        )
        both = left.columns + right.columns
        style = self.draw.random()
        pairs = [(a, b) for a in left.columns for b in right.columns if a.role and a.role == b.role]
        if not pairs and self.chance(0.7):  # look for a partner that fits
            roles = {c.role for c in left.columns} - {None}
            names = [t for (t, c), role in ROLES.items() if role in roles]
            if names:
                right = self.table(self.pick(names))
                both = left.columns + right.columns
                pairs = [
                    (a, b)
                    for a in left.columns
                    for b in right.columns
                    if a.role and a.role == b.role
                ]
        condition = self.tie(left.columns, right.columns, pairs)
        if self.chance(0.2):
            condition += f" AND {self.test(Source('', both), self.pick((0, 0, 1)))}"
        if style < 0.5:
            text = f"{left.text} JOIN {right.text} ON {condition}"
        elif style < 0.72:
            text = f"{left.text} LEFT JOIN {right.text} ON {condition}"
        elif style < 0.77:
            text = f"{left.text} RIGHT JOIN {right.text} ON {condition}"
        elif style < 0.85:
            text = f"{left.text} CROSS JOIN {right.text}"
        else:
            name = self.alias()  # a comma join needs its own WHERE
            shown = ", ".join(f"{c.text} AS x{i}" for i, c in enumerate(both))
            text = f"(SELECT {shown} FROM {left.text}, {right.text} WHERE {condition}) {name}"
            return Source(text, tuple(replace(c, text=f"{name}.x{i}") for i, c in enumerate(both)))
        return Source(text, both)

    def tie(self, left, right, pairs) -> str:  # type: ignore[no-untyped-def]
        """Give an equality between two sides, most often of columns that belong together."""
        if pairs and self.chance(0.93):
            a, b = self.pick(pairs)
        else:
            a = self.pick(left)
            b = self.pick([c for c in right if (c.kind == "text") == (a.kind == "text")] or right)
            if (a.kind == "text") != (b.kind == "text"):
                return "TRUE"
        operator = "=" if self.chance(0.95) else self.pick(("<", "<>"))
        return f"{a.text} {operator} {b.text}"

    def derived(self, depth: int) -> Source:
        alias = self.alias()
        text, columns = self.select(depth - 1)
        return Source(
            f"({text}) {alias}", tuple(replace(c, text=f"{alias}.{c.text}") for c in columns)
        )

    def select(self, depth: int) -> tuple[str, tuple[Col, ...]]:
        """Give a SELECT that can stand in FROM, and its columns."""
        kind = self.draw.random()
        source = self.source(depth)
        if kind < 0.35:
            return self._grouped(source)
        shown = self._some(source)
        if kind < 0.6:
            return self._set(source, shown, depth)
        distinct = "DISTINCT " if self.chance(0.35) else ""
        text = f"SELECT {distinct}{_list(shown)} FROM {source.text}{self.where(source, 1)}"
        if self.chance(0.06):
            text += f" ORDER BY 1 LIMIT {self.pick('12')}"
        return text, _named(shown)

    def _some(self, source: Source) -> list[Col]:
        roled = [c for c in source.columns if c.role in ("person.id", "visit.vid", "person.mail")]
        found = [self.pick(roled)] if roled and self.chance(0.85) else []
        for _ in range(self.pick((1, 2, 2))):
            column = self.pick(source.columns)
            if column not in found:
                found.append(column)
        if self.chance(0.2):
            numbers = [c for c in source.columns if c.kind != "text"]
            if numbers:
                found.append(Col(self.number(self.pick(numbers), source), "real"))
        return found

    def _grouped(self, source: Source) -> tuple[str, tuple[Col, ...]]:
        roled = [c for c in source.columns if c.role in ("person.id", "visit.vid", "person.mail")]
        keys = [self.pick(roled)] if roled and self.chance(0.85) else [self.pick(source.columns)]
        if self.chance(0.25):
            extra = self.pick(source.columns)
            keys += [extra] if extra not in keys else []
        numbers = [c for c in source.columns if c.kind != "text" and c.role is None]
        call = "count(*)"
        kind = "int"
        if numbers and self.chance(0.6):
            number = self.pick(numbers)
            call = f"{self.pick(('sum', 'max', 'min', 'avg'))}({number.text})"
            kind = "real" if call.startswith("avg") else number.kind
        shown = [*keys, Col(call, kind)]
        grouped = ", ".join(k.text for k in keys)
        text = f"SELECT {_list(shown)} FROM {source.text}{self.where(source, 0)} GROUP BY {grouped}"
        if self.chance(0.25):
            text += f" HAVING count(*) {self.pick(('>', '<', '='))} {self.pick('12')}"
        return text, _named(shown)

    def _set(self, source: Source, shown: list[Col], depth: int) -> tuple[str, tuple[Col, ...]]:
        word = self.pick(
            (
                "UNION",
                "UNION ALL",
                "UNION ALL",
                "INTERSECT",
                "INTERSECT ALL",
                "EXCEPT",
                "EXCEPT ALL",
            )
        )
        other = self.source(depth) if self.chance(0.6) else source
        fitting: list[Col] = []
        for column in shown:
            same = [c for c in other.columns if c.kind == column.kind and c.role == column.role]
            near = [c for c in other.columns if (c.kind == "text") == (column.kind == "text")]
            found = (
                self.pick(same) if same and self.chance(0.95) else self.pick(near) if near else None
            )
            fitting.append(found or Col("NULL", column.kind))
        both = [
            Col(a.text, a.kind if a.kind in (b.kind, "text") else "real", a.role if a.role == b.role else None)
            for a, b in zip(shown, fitting, strict=True)
        ]  # fmt: skip
        first = f"SELECT {_list(shown)} FROM {source.text}{self.where(source, 0)}"
        if other is source:  # the same table twice, under another condition
            second = f"SELECT {_list(fitting)} FROM {source.text}{self.where(source, 0)}"
        else:
            second = f"SELECT {_list(fitting)} FROM {other.text}{self.where(other, 0)}"
        return f"{first} {word} {second}", _named(both)

    # conditions

    def where(self, source: Source, depth: int) -> str:
        if self.chance(0.4):
            return ""
        parts = [self.test(source, depth) for _ in range(self.pick((1, 1, 2)))]
        return f" WHERE {self.pick((' AND ', ' AND ', ' OR ')).join(parts)}"

    def test(self, source: Source, depth: int) -> str:
        if depth > 0 and self.chance(0.45):
            return self.subquery(source)
        column = self.pick(source.columns)
        value = self.pick(CONSTANTS[column.kind])
        other = self.pick(
            [c for c in source.columns if (c.kind == "text") == (column.kind == "text")]
        )
        choices = [
            f"{column.text} {self.pick(COMPARISONS)} {value}", f"{column.text} {self.pick(COMPARISONS)} {other.text}",
            f"{column.text} IS {self.pick(('', 'NOT '))}NULL",
            f"{column.text} {self.pick(('', 'NOT '))}IN ({value}, {self.pick(CONSTANTS[column.kind])})",
            f"{column.text} BETWEEN {value} AND {self.pick(CONSTANTS[column.kind])}",
            f"NOT ({column.text} = {value})", f"({column.text} = {value} OR {other.text} IS NULL)",
        ]  # fmt: skip
        if column.kind == "text":
            pattern = self.pick(("'a%'", "'%b'", "'_'"))
            choices.append(f"{column.text} {self.pick(('', 'NOT '))}LIKE {pattern}")
        return self.pick(choices)

    def subquery(self, outer: Source) -> str:
        roles = {c.role for c in outer.columns} - {None}
        names = [t for (t, _), role in ROLES.items() if role in roles]
        inner = self.table(self.pick(names)) if names and self.chance(0.9) else self.source(1)
        shape = self.draw.random()
        if shape < 0.2:
            inner = self._padded(inner, outer)
        elif shape < 0.3:
            inner = self.derived(1)
        elif shape < 0.42:
            inner = self._tied_inside(inner, outer)
        pairs = [
            (a, b) for a in inner.columns for b in outer.columns if a.role and a.role == b.role
        ]
        negative = self.pick(("", "", "NOT "))
        if self.chance(0.35):
            if pairs and self.chance(0.9):
                b, a = self.pick(pairs)
            else:
                a = self.pick(outer.columns)
                b = self.pick(
                    [c for c in inner.columns if (c.kind == "text") == (a.kind == "text")]
                    or inner.columns
                )
                if (a.kind == "text") != (b.kind == "text"):
                    return "TRUE"
            condition = self.where(inner, 0)
            if self.chance(0.3):
                tied = self.tie(inner.columns, outer.columns, pairs)
                condition = f"{condition} AND {tied}" if condition else f" WHERE {tied}"
            return f"{a.text} {negative}IN (SELECT {b.text} FROM {inner.text}{condition})"
        tied = self.tie(inner.columns, outer.columns, pairs) if self.chance(0.9) else "TRUE"
        if self.chance(0.4):
            tied += f" AND {self.test(inner, 0)}"
        if self.nested < 2 and self.chance(
            0.15
        ):  # a subquery in the subquery, which may see both rows
            self.nested += 1
            around = Source("", inner.columns + outer.columns)
            tied += f" AND {self.subquery(around if self.chance(0.5) else inner)}"
        if self.chance(0.6):
            return f"{negative}EXISTS (SELECT 1 FROM {inner.text} WHERE {tied})"
        numbers = [c for c in inner.columns if c.kind != "text"]
        if not numbers:
            return "TRUE"
        call = self.pick(
            ("count(*)", f"max({self.pick(numbers).text})", f"sum({self.pick(numbers).text})")
        )
        return f"(SELECT {call} FROM {inner.text} WHERE {tied}) {self.pick(COMPARISONS)} {self.pick(WHOLE)}"

    def _tied_inside(self, inner: Source, outer: Source) -> Source:
        """A derived table inside a subquery that is itself tied to the outer row."""
        pairs = [
            (a, b) for a in inner.columns for b in outer.columns if a.role and a.role == b.role
        ]
        if not pairs:
            return inner
        alias = self.alias()
        tied = self.tie(inner.columns, outer.columns, pairs)
        shown = self._some(inner)
        form = self.pick(("SELECT ", "SELECT DISTINCT "))
        text = f"({form}{_list(shown)} FROM {inner.text} WHERE {tied}"
        if form == "SELECT " and self.chance(0.3):
            word = self.pick(("UNION ALL", "UNION", "EXCEPT"))
            text += f" {word} {form}{_list(shown)} FROM {inner.text} WHERE {tied}"
        return Source(
            f"{text}) {alias}", tuple(replace(c, text=f"{alias}.{c.text}") for c in _named(shown))
        )

    def _padded(self, inner: Source, outer: Source) -> Source:
        """A LEFT JOIN inside a subquery whose condition speaks of the outer row."""
        roles = {c.role for c in inner.columns} - {None}
        names = [t for (t, _), role in ROLES.items() if role in roles]
        if not names:
            return inner
        right = self.table(self.pick(names))
        pairs = [
            (a, b) for a in inner.columns for b in right.columns if a.role and a.role == b.role
        ]
        ties = [(a, b) for a in inner.columns for b in outer.columns if a.role and a.role == b.role]
        condition = self.tie(inner.columns, right.columns, pairs)
        if ties:
            condition += f" AND {self.tie(inner.columns, outer.columns, ties)}"
        return Source(
            f"{inner.text} LEFT JOIN {right.text} ON {condition}", inner.columns + right.columns
        )


_KINDS = {"INTEGER": "int", "DECIMAL": "dec", "DOUBLE": "real", "TEXT": "text"}


def _columns(table: str, alias: str) -> tuple[Col, ...]:
    return tuple(
        Col(f"{alias}.{name}", _KINDS[kind.kind], ROLES.get((table, name)))
        for name, kind in COLUMNS[table]
    )


def _list(shown: list[Col]) -> str:
    return ", ".join(f"{c.text} AS x{i}" for i, c in enumerate(shown))


def _named(shown: list[Col]) -> tuple[Col, ...]:
    return tuple(replace(c, text=f"x{i}") for i, c in enumerate(shown))
