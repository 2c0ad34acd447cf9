"""Random SELECT statements over the small schema: typed, so that most of them mean something."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass, field

COLUMNS = {
    "person": {"id": "int", "name": "text", "city": "text", "age": "int", "height": "float",
               "balance": "decimal", "born": "date", "active": "bool", "seen": "time"},
    "visit": {"vid": "int", "pid": "int", "day": "date", "cost": "decimal", "rating": "float",
              "note": "text"},
    "nothing": {"id": "int", "label": "text", "amount": "float"},
}  # fmt: skip
CONSTANTS = {
    "int": ["0", "1", "2", "6", "-3", "36", "NULL"],
    "decimal": ["0.5", "5.25", "12.34", "-20.25", "0.00"],
    "float": ["1e0", "0e0", "2.5e0", "-1.5e0", "'NaN'::DOUBLE"],
    "text": ["'Riga'", "'ok'", "''", "'Eve_1'", "'a'"],
    "date": ["DATE '2020-02-29'", "DATE '1984-12-10'", "DATE '2020-01-01'"],
    "time": ["TIMESTAMP '2020-02-29 00:00:01'", "TIMESTAMP '2020-01-01 10:30:15'"],
    "bool": ["TRUE", "FALSE", "NULL"],
}
NUMBERS = ("int", "decimal", "float")
HOSTILE = (
    "u", "U", "s", "S", "ſ", "k", "K", "\u212a", "i", "I", "ı", "İ", "ß", "SS", "ẞ", "é", "É", "e\u0301",
    "σ", "ς", "Σ", "s1", "S1", "s2", "place", "ranked", "counted", "select", "*", " ", "a.b", 'a"b', "a'b",
    "u#2", "key0", "order1", "sum0", "count1", "person.id", "x1.id", "q1.u", "l" * 70, "l" * 70 + "x",
    "ß" * 40, "ß" * 40 + "x", "\u202e", "😀",
)  # fmt: skip
"""Names that some engine folds, cuts or knows by itself, and names like those that plans give."""


@dataclass
class Scope:
    """Columns that an expression can use, by kind."""

    columns: dict[str, list[str]] = field(default_factory=dict)

    def add(self, kind: str, name: str) -> None:
        self.columns.setdefault(kind, []).append(name)


class Writer:
    """Draws one statement after another."""

    def __init__(self, seed: int) -> None:
        self.draw = random.Random(seed)
        self.naming = random.Random(-1 - seed)
        self.named: Counter[str] = Counter()
        self.aliases = 0

    def pick(self, options):
        return self.draw.choice(list(options))

    def chance(self, share: float) -> bool:
        return self.draw.random() < share

    def items(self, written: list[str]) -> str:
        """Write a SELECT list; names may be hostile, and the same."""
        shown = []
        for item in written:
            if self.naming.random() < 0.7:
                name = self.naming.choice(HOSTILE)
                self.named[name] += 1
                item += ' AS "' + name.replace('"', '""') + '"'
            shown.append(item)
        return ", ".join(shown)

    # scalars

    def value(self, kind: str, scope: Scope, depth: int = 2) -> str:
        names = scope.columns.get(kind, [])
        if depth <= 0 or self.chance(0.35):
            return self.pick(names) if names and self.chance(0.8) else self.pick(CONSTANTS[kind])
        return getattr(self, f"_{kind}")(scope, depth - 1)

    def number(self, scope: Scope, depth: int) -> str:
        return self.value(self.pick(NUMBERS), scope, depth)

    def _int(self, scope: Scope, depth: int) -> str:
        a, b = self.value("int", scope, depth), self.value("int", scope, depth)
        return self.pick([
            f"({a} + {b})", f"({a} - {b})", f"({a} % {b})", f"({a} // {b})", f"coalesce({a}, {b})",
            f"least({a}, {b})", f"length({self.value('text', scope, depth)})", f"(- {a})",
            f"{self.pick(['year', 'month', 'day'])}({self.value('date', scope, depth)})",
            f"({self.value('date', scope, depth)} - {self.value('date', scope, depth)})",
            self._case("int", scope, depth), f"nullif({a}, {b})",
        ])  # fmt: skip

    def _decimal(self, scope: Scope, depth: int) -> str:
        a, b = self.value("decimal", scope, depth), self.value("decimal", scope, depth)
        return self.pick([
            f"({a} + {b})", f"({a} - {b})", f"(2 * {a})", f"greatest({a}, {b})", f"abs({a})",
            f"coalesce({a}, {b})", self._case("decimal", scope, depth), f"(- {a})",
        ])  # fmt: skip

    def _float(self, scope: Scope, depth: int) -> str:
        a, b = self.number(scope, depth), self.value("float", scope, depth)
        return self.pick([
            f"({a} + {b})", f"({b} * {a})", f"({a} / {self.number(scope, depth)})", f"floor({b})",
            f"least({b}, {a})", f"sqrt(abs({b}))", f"CAST({a} AS DOUBLE)", f"round({b}, 1)",
            self._case("float", scope, depth), f"coalesce({b}, {a})", f"ln({b})",
        ])  # fmt: skip

    def _text(self, scope: Scope, depth: int) -> str:
        a, b = self.value("text", scope, depth), self.value("text", scope, depth)
        return self.pick([
            f"lower({a})", f"upper({a})", f"({a} || {b})", f"substring({a}, 2, 2)", f"left({a}, 1)",
            f"coalesce({a}, {b})", f"trim({a})", f"greatest({a}, {b})",
            self._case("text", scope, depth), f"CAST({self.value('int', scope, depth)} AS VARCHAR)",
        ])  # fmt: skip

    def _date(self, scope: Scope, depth: int) -> str:
        a = self.value("date", scope, depth)
        return self.pick([
            f"({a} + {self.pick([1, 30, 365])})", f"({a} - 7)", f"least({a}, DATE '2020-01-01')",
            self._case("date", scope, depth), f"CAST({self.value('time', scope, depth)} AS DATE)",
        ])  # fmt: skip

    def _time(self, scope: Scope, depth: int) -> str:
        a, b = self.value("time", scope, depth), self.value("date", scope, depth)
        return self.pick([
            f"({b} + INTERVAL '1' MONTH)", f"({a} - INTERVAL '36' HOUR)", f"coalesce({a}, {b})",
            f"date_trunc('{self.pick(['year', 'month', 'day'])}', {a})",
        ])  # fmt: skip

    def _case(self, kind: str, scope: Scope, depth: int) -> str:
        return (
            f"CASE WHEN {self.value('bool', scope, depth)} THEN {self.value(kind, scope, depth)} "
            f"ELSE {self.value(kind, scope, depth)} END"
        )

    def _bool(self, scope: Scope, depth: int) -> str:
        kind = self.pick(["int", "decimal", "float", "text", "date", "time"])
        a, b = self.value(kind, scope, depth), self.value(kind, scope, depth)
        p, q = self.value("bool", scope, depth), self.value("bool", scope, depth)
        return self.pick([
            f"({a} {self.pick(['=', '<>', '<', '<=', '>', '>='])} {b})",
            f"({a} {self.pick(['=', '<', '>='])} {b})",
            f"({a} {self.pick(['=', '<', '>='])} {b})" if kind not in NUMBERS else
            f"({a} {self.pick(['=', '<', '>='])} {self.number(scope, depth)})",
            f"({a} IS NULL)", f"({a} IS NOT DISTINCT FROM {b})", f"({p} AND {q})", f"({p} OR {q})",
            f"(NOT {p})", f"({a} IN ({b}, {self.value(kind, scope, 0)}))",
            f"({a} BETWEEN {b} AND {self.value(kind, scope, depth)})",
            self.pattern_test(scope, depth),
            self.subquery_test(scope) if depth > 0 else f"({p} IS TRUE)",
        ])  # fmt: skip

    def pattern_test(self, scope: Scope, depth: int) -> str:
        pattern = self.pick(["%", "a%", "_k", "%_1", "%i%"])
        return f"({self.value('text', scope, depth)} {self.pick(['', 'NOT '])}LIKE '{pattern}')"

    def subquery_test(self, scope: Scope) -> str:
        kind = self.pick(["int", "int", "text", "decimal"])
        item = self.value(kind, scope, 0)
        word = self.pick(["", "NOT "])
        source, inner = self.source()
        tied = self.tie(scope, inner)
        if self.chance(0.4):
            return f"({word}EXISTS (SELECT 1 FROM {source} WHERE {tied}))"
        if self.chance(0.5):
            member = self.value(kind, inner, 1)
            return f"({item} {word}IN (SELECT {member} FROM {source} WHERE {tied}))"
        operator = self.pick(["<", "=", ">="])
        function = self.pick(["max", "min"])
        value = self.value(kind, inner, 0)
        return f"({item} {operator} (SELECT {function}({value}) FROM {source} WHERE {tied}))"

    def tie(self, outer: Scope, inner: Scope) -> str:
        parts = [self.value("bool", inner, 1)]
        if self.chance(0.7) and outer.columns.get("int") and inner.columns.get("int"):
            operator = self.pick(["=", "=", "=", "<", "<>"])
            parts = [
                f"{self.pick(inner.columns['int'])} {operator} {self.pick(outer.columns['int'])}"
            ]
            if self.chance(0.3):
                parts.append(self.value("bool", inner, 1))
        return " AND ".join(parts)

    # relations

    def source(self) -> tuple[str, Scope]:
        """Draw one table expression with a fresh alias."""
        self.aliases += 1
        alias, scope = f"x{self.aliases}", Scope()
        if self.chance(0.15):
            query, kinds = self.block(depth=0)
            names = [f"c{index}" for index in range(len(kinds))]
            for name, kind in zip(names, kinds, strict=True):
                scope.add(kind, f"{alias}.{name}")
            return f"({query}) AS {alias}({', '.join(names)})", scope
        table = self.pick(["person", "person", "visit", "visit", "nothing"])
        for column, kind in COLUMNS[table].items():
            scope.add(kind, f"{alias}.{column}")
        return f"{table} AS {alias}", scope

    def sources(self, most: int) -> tuple[str, Scope]:
        text, scope = self.source()
        for _ in range(self.draw.randint(0, most - 1)):
            more, added = self.source()
            old = scope.columns
            new = added.columns
            both = Scope({kind: old.get(kind, []) + new.get(kind, []) for kind in CONSTANTS})
            equal = self.tie(scope, added)
            join = self.pick(
                [", ", " JOIN ", " JOIN ", " LEFT JOIN ", " FULL JOIN ", " CROSS JOIN "]
            )
            text += (
                join + more + (f" ON {equal}" if "CROSS" not in join and "," not in join else "")
            )
            scope = both
        return text, scope

    def block(self, depth: int = 1) -> tuple[str, list[str]]:
        """Draw a SELECT; give it and the kinds of its columns."""
        source, scope = self.sources(3 if depth else 1)
        where = f" WHERE {self.value('bool', scope, 2)}" if self.chance(0.6) else ""
        if self.chance(0.4):
            return self.grouped(source, scope, where)
        kinds = [self.pick(CONSTANTS) for _ in range(self.draw.randint(1, 3))]
        written = [self.value(kind, scope, 2) for kind in kinds]
        qualify = ""
        if self.chance(0.3):
            kind, call = self.window(scope)
            kinds.append(kind)
            written.append(call)
            if self.chance(0.3):
                qualify = f" QUALIFY {self.window(scope)[1]} {self.pick(['=', '>', '<='])} 2"
        items = self.items(written)
        distinct = "DISTINCT " if self.chance(0.2) else ""
        if self.chance(0.1):
            on, order = self.value("text", scope, 1), self.order(scope, unique=True)
            return f"SELECT DISTINCT ON ({on}) {items} FROM {source}{where} ORDER BY {order}", kinds
        return f"SELECT {distinct}{items} FROM {source}{where}{qualify}", kinds

    def order(self, scope: Scope, *, unique: bool) -> str:
        """Draw an ORDER BY; a unique one leaves no two rows alike that differ."""
        kind = self.pick(["int", "text", "decimal", "date", "float"])
        keys = [f"{self.value(kind, scope, 1)} {self.pick(['', 'DESC', 'NULLS FIRST'])}"]
        keys = [k for k in keys if "x" in k]  # DISTINCT ON reads a bare number as a position
        if unique or not keys:
            keys += [c for names in scope.columns.values() for c in names]
        return ", ".join(keys) or "NULL"

    def window(self, scope: Scope) -> tuple[str, str]:
        """Draw a call over a window that is a function of the rows."""
        by = f"PARTITION BY {self.value('text', scope, 1)} " if self.chance(0.6) else ""
        kind = self.pick(["int", "decimal", "int"])
        x = self.value(kind, scope, 1)
        free = f"ORDER BY {self.order(scope, unique=False)}"
        fixed = f"ORDER BY {self.order(scope, unique=True)}"
        ends = self.pick(["UNBOUNDED PRECEDING AND CURRENT ROW", "2 PRECEDING AND 1 FOLLOWING",
                          "CURRENT ROW AND UNBOUNDED FOLLOWING", "1 FOLLOWING AND 2 FOLLOWING"])  # fmt: skip
        whole = "UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING"
        return self.pick([
            ("int", f"rank() OVER ({by}{free})"), ("int", f"dense_rank() OVER ({by}{free})"),
            ("float", f"percent_rank() OVER ({by}{free})"), ("float", f"cume_dist() OVER ({by}{free})"),
            ("int", f"row_number() OVER ({by}{fixed})"), ("int", f"ntile(3) OVER ({by}{fixed})"),
            (kind, f"lag({x}) OVER ({by}{fixed})"), (kind, f"lead({x}, 2, {x}) OVER ({by}{fixed})"),
            (kind, f"first_value({x}) OVER ({by}{fixed})"),
            (kind, f"nth_value({x}, 2) OVER ({by}{fixed} ROWS BETWEEN {ends})"),
            (kind, f"last_value({x}) OVER ({by}{fixed} ROWS BETWEEN {whole})"),
            (kind, f"sum({x}) OVER ({by})"), (kind, f"sum({x}) OVER ({by}{free})"),
            (kind, f"sum({x}) OVER ({by}{fixed} ROWS BETWEEN {ends})"), (kind, f"max({x}) OVER ({by}{free})"),
            ("int", f"count(*) OVER ({by}{free})"), ("float", f"avg({x}) OVER ({by}{fixed} ROWS BETWEEN {ends})"),
            ("int", f"count({x}) FILTER (WHERE {self.value('bool', scope, 1)}) OVER ({by})"),
            ("int", f"count(*) OVER ({by}{free} GROUPS BETWEEN 1 PRECEDING AND CURRENT ROW)"),
        ])  # fmt: skip

    def grouped(self, source: str, scope: Scope, where: str) -> tuple[str, list[str]]:
        keys = [self.pick(["text", "int", "bool", "float"]) for _ in range(self.draw.randint(0, 2))]
        written = [self.value(kind, scope, 1) for kind in keys]
        # A key without a column would be read as a position or refused.
        kept = [(k, w) for k, w in zip(keys, written, strict=True) if "." in w and "x" in w]
        items, kinds = [w for _, w in kept], [k for k, _ in kept]
        for _ in range(self.draw.randint(1, 3)):
            kind = self.pick(["int", "decimal", "float"])
            function = self.pick(["sum", "min", "max", "count", "avg", "count(*)"])
            unique = self.pick(["", "", "DISTINCT "])
            value = self.value(kind, scope, 1)
            items.append("count(*)" if function == "count(*)" else f"{function}({unique}{value})")
            kinds.append({"avg": "float", "count": "int", "count(*)": "int"}.get(function, kind))
        groups = " GROUP BY " + ", ".join(w for _, w in kept) if kept else ""
        if kept and self.chance(0.3):
            listed = ", ".join(w for _, w in kept)
            groups = " GROUP BY " + self.pick(
                [
                    f"ROLLUP ({listed})",
                    f"CUBE ({listed})",
                    f"GROUPING SETS (({listed}), ({kept[0][1]}), ())",
                ]
            )
            items.append(f"GROUPING({kept[0][1]})")
            kinds.append("int")
        if self.chance(0.2):
            items.append("sum(count(*)) OVER ()")
            kinds.append("int")
        having = f" HAVING count(*) {self.pick(['>', '<'])} 2" if self.chance(0.3) else ""
        return f"SELECT {self.items(items)} FROM {source}{where}{groups}{having}", kinds

    def statement(self) -> str:
        """Draw a whole statement."""
        self.aliases = 0
        query, kinds = self.block()
        if self.chance(0.15):
            other_source, scope = self.sources(2)
            items = self.items([self.value(kind, scope, 1) for kind in kinds])
            word = self.pick(
                ["UNION", "UNION ALL", "INTERSECT", "EXCEPT", "EXCEPT ALL", "INTERSECT ALL"]
            )
            query = f"{query} {word} SELECT {items} FROM {other_source}"
        return query
