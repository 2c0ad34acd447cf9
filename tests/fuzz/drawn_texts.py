"""Questions that somebody would ask, and many that nobody would: texts drawn over the fuzzed schema.

In: a seed. Out: one SQL text after another. Most are typed, so that many are answered; some have a wrong type where
another one belongs; some are torn apart and put together again.
"""

from __future__ import annotations

import random
import re
from dataclasses import dataclass, field

from secant.plan.functions.aggregates import AGGREGATES
from secant.plan.functions.scalar import FUNCTIONS

LONG = "a_column_with_a_name_that_is_longer_than_the_sixty_three_bytes_that_one_engine_keeps"
LONG_COLUMN = LONG[:60]
TABLES: dict[str, dict[str, str]] = {
    "person": {"id": "int", "name": "text", "city": "text", "age": "int", "height": "double",
               "balance": "decimal", "born": "date", "active": "bool", "seen": "time"},
    "visit": {"vid": "int", "pid": "int", "day": "date", "cost": "decimal", "rate": "double",
              "note": "text", "big": "int"},
    "place": {"id": "int", "x": "double", "y": "double", "speed": "double", "kind": "text"},
    "city": {"name": "text", "country": "text", "people": "int"},
    '"Odd ""Täble"': {"id": "int", '"Key"': "text", '"a ""b"': "double", '"straße"': "decimal", LONG_COLUMN: "int"},
}  # fmt: skip
KINDS = ("int", "decimal", "double", "text", "date", "time", "bool", "interval")
NUMBERS = ("int", "decimal", "double")
CONSTANTS = {
    "int": ["0", "1", "2", "-3", "40", "9223372036854775807", "-9223372036854775808", "NULL", "2147483648"],
    "decimal": ["0.5", "0.0", "-20.25", "99999999.99", "0.00000000000000000000000001", "-0.0",
                "12345678901234567890123456789012345678", "1.00"],
    "double": ["1e0", "0e0", "2.5e0", "-1.5e0", "'NaN'::DOUBLE", "'inf'::DOUBLE", "'-Infinity'::DOUBLE", "1e308",
               "-1e308", "5e-324", "1e18", "-0e0"],
    "text": ["'Riga'", "'ok'", "''", "'Ünï'", "'%'", "'_k'", "'12x'", "'O''Hara'", "'2020-02-30'", "'1e5'",
             "'\\'", "'ß'", "'😀'"],
    "date": ["DATE '2020-02-29'", "DATE '0001-01-01'", "DATE '9999-12-31'", "CAST('2021-05-06' AS DATE)"],
    "time": ["TIMESTAMP '2020-02-29 00:00:01'", "TIMESTAMP '9999-12-31 23:59:59.999999'",
             "TIMESTAMP '0001-01-01 00:00:00'"],
    "bool": ["TRUE", "FALSE", "NULL"],
    "interval": ["INTERVAL '1' MONTH", "INTERVAL 3 DAY", "INTERVAL '-5' HOUR", "INTERVAL '999999999' YEAR"],
}  # fmt: skip
SIGNATURES: dict[str, tuple[str, tuple[str, ...]]] = {
    "exp": ("double", ("number",)), "ln": ("double", ("number",)), "log10": ("double", ("number",)),
    "sqrt": ("double", ("number",)), "power": ("double", ("number", "number")), "abs": ("same", ("number",)),
    "sign": ("int", ("number",)), "floor": ("double", ("number",)), "ceil": ("double", ("number",)),
    "round": ("same", ("number", "digits")), "least": ("same", ("any", "like")),
    "greatest": ("same", ("any", "like")), "coalesce": ("same", ("any", "like")),
    "nullif": ("same", ("any", "like")), "lower": ("text", ("text",)), "upper": ("text", ("text",)),
    "length": ("int", ("text",)), "substring": ("text", ("text", "int", "int")), "trim": ("text", ("text",)),
    "ltrim": ("text", ("text",)), "rtrim": ("text", ("text",)), "starts_with": ("bool", ("text", "text")),
    "contains": ("bool", ("text", "text")), "replace": ("text", ("text", "text", "text")),
    "left": ("text", ("text", "int")), "right": ("text", ("text", "int")),
    "date_trunc": ("time", ("part", "moment")), "date_diff": ("int", ("part", "moment", "moment")),
    "log2": ("double", ("number",)), "trunc": ("double", ("number",)), "sin": ("double", ("number",)),
    "cos": ("double", ("number",)), "tan": ("double", ("number",)), "asin": ("double", ("number",)),
    "acos": ("double", ("number",)), "atan": ("double", ("number",)), "atan2": ("double", ("number", "number")),
    "width_bucket": ("int", ("number", "0", "10", "5")), "make_date": ("date", ("int", "int", "int")),
    "bitwise_and": ("int", ("int", "int")), "bitwise_or": ("int", ("int", "int")), "xor": ("int", ("int", "int")),
    "reverse": ("text", ("text",)), "repeat": ("text", ("text", "3")),
    "md5": ("text", ("text",)), "sha256": ("text", ("text",)), "strlen": ("int", ("text",)),
    "strpos": ("int", ("text", "text")), "ends_with": ("bool", ("text", "text")),
    "concat_ws": ("text", ("'-'", "text", "text")), "translate": ("text", ("text", "'aä'", "'b'")),
    "lpad": ("text", ("text", "3", "'x'")), "rpad": ("text", ("text", "9", "'xy'")),
    "split_part": ("text", ("text", "'a'", "2")), "strftime": ("text", ("moment", "'%Y-%m'")),
    "regexp_matches": ("bool", ("text", "pattern")), "regexp_extract": ("text", ("text", "pattern")),
    "regexp_replace": ("text", ("text", "pattern", "'x'")),
}  # fmt: skip
"""Function -> what it gives, and of what. A test holds this list against the functions of the plan."""
PATTERNS = ("'a.'", "'^[a-m]+$'", "'(a|ä)*b?'", "''", "'('", "'\\\\d{2,}'", "'(?=x)'")
AGGREGATED = tuple(AGGREGATES)
CASTS = ("BIGINT", "INTEGER", "DOUBLE", "DECIMAL(10, 2)", "DECIMAL(38, 30)", "VARCHAR", "DATE", "TIMESTAMP",
         "BOOLEAN", "SMALLINT", "FLOAT")  # fmt: skip
CAST_KIND = {"BIGINT": "int", "INTEGER": "int", "SMALLINT": "int", "DOUBLE": "double", "FLOAT": "double",
             "DECIMAL(10, 2)": "decimal", "DECIMAL(38, 30)": "decimal", "VARCHAR": "text", "DATE": "date",
             "TIMESTAMP": "time", "BOOLEAN": "bool"}  # fmt: skip
ALIASES = ("t", "T", "u", '"U"', '"a b"', '"ä"', '"Ä"', "release1", '"x""y"', "q1", "lookup1",
           '"select"', '"' + LONG + '"', "ω", '"q1.x"', "m0")  # fmt: skip
TORN = (
    "SELECT", "FROM", "WHERE", "(", ")", ",", "NULL", "TRUE", "0", "-1", "'x'", "AND", "NOT", "*", ".", "DISTINCT",
    "ORDER BY", "GROUP BY", "LIMIT 0", "OFFSET 1", "UNION ALL", "EXCEPT", "count(*)", "ALL", "AS x", "ON", "USING (id)",
    "ROLLUP (city)", "GROUPING SETS ((city), ())", "CUBE (city)", "QUALIFY", "OVER ()", "LATERAL", "PIVOT", "?", "$1",
    "EXISTS", "IN ()", "BETWEEN", "::INT", "--", "/*", ";", "''", '""', "\x00", "é", "1e999", "0x1F", "1_000", ":x",
    "FILTER (WHERE TRUE)", "[1]", "{'a': 1}", "x -> x", "TRY_CAST(1 AS INT)", "INTERVAL",
    "COLLATE nocase", "EXCLUDE (id)",
)  # fmt: skip


@dataclass
class Scope:
    """Columns that can be named, by kind."""

    columns: dict[str, list[str]] = field(default_factory=dict)

    def add(self, kind: str, name: str) -> None:
        self.columns.setdefault(kind, []).append(name)

    def joined(self, other: Scope) -> Scope:
        kinds = self.columns.keys() | other.columns.keys()
        return Scope({k: self.columns.get(k, []) + other.columns.get(k, []) for k in sorted(kinds)})


class Texts:
    """Draws one text after another from a seed."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.chaos = 0.0
        self.seen: list[str] = []
        self.commons: list[tuple[str, Scope]] = []

    def pick(self, options):
        return self.random.choice(options)

    def chance(self, share: float) -> bool:
        return self.random.random() < share

    def draw(self) -> str:
        """Give the next text."""
        self.chaos = self.pick([0.0, 0.0, 0.0, 0.02, 0.15])
        self.commons = []
        text = self.question()
        self.seen = [*self.seen[-50:], text]
        for _ in range(self.pick([0, 0, 0, 0, 0, 0, 0, 1, 1, 3])):
            text = self.torn(text)
        return text

    # ── scalars ──────────────────────────────────────────────────────────────────────────────────

    def value(self, kind: str, scope: Scope, depth: int = 2) -> str:
        if kind == "number":
            kind = self.pick(NUMBERS)
        if self.chance(self.chaos):
            kind = self.pick(KINDS)
        names = scope.columns.get(kind, [])
        if depth <= 0 or self.chance(0.45):
            return self.pick(names) if names and self.chance(0.8) else self.pick(CONSTANTS[kind])
        if self.chance(0.3):
            return self.called(kind, scope, depth - 1)
        if kind in NUMBERS and self.chance(0.04):
            return self.scalar_subquery(scope)
        return getattr(self, f"_{kind}")(scope, depth - 1)

    def scalar_subquery(self, scope: Scope) -> str:
        """Ask for one number in the place of a value; sometimes for several."""
        source, inner = self.source(1)
        if self.chance(0.15):
            return self.pick(
                ["(SELECT people FROM city)", "(SELECT people FROM city ORDER BY 1 LIMIT 1)"]
            )
        tied = inner.joined(scope) if self.chance(0.3) else inner
        where = f" WHERE {self.value('bool', tied, 1)}" if self.chance(0.5) else ""
        return f"(SELECT {self.aggregate(inner)} FROM {source}{where})"

    def called(self, kind: str, scope: Scope, depth: int) -> str:
        """Call a function of the whitelist that gives this kind."""
        fitting = [f for f, (gives, _) in SIGNATURES.items() if gives in (kind, "same")]
        if self.chance(self.chaos):
            fitting = list(SIGNATURES)
        name = self.pick(fitting or list(SIGNATURES))
        arguments = []
        for wanted in SIGNATURES[name][1]:
            if wanted == "part":
                arguments.append(f"'{self.pick(FUNCTIONS['date_trunc'].parts)}'")
            elif wanted == "pattern":
                arguments.append(self.pick(PATTERNS))
            elif wanted[0] in "'0123456789":
                arguments.append(wanted)
            elif wanted == "digits":
                arguments += [self.pick(["0", "2", "-2", "40", "-40"])] if self.chance(0.6) else []
            elif wanted == "moment":
                arguments.append(self.value(self.pick(["date", "time"]), scope, depth))
            else:
                same = kind if kind in NUMBERS or wanted in ("any", "like") else "number"
                arguments.append(self.value(wanted if wanted in KINDS else same, scope, depth))
        return f"{name}({', '.join(arguments)})"

    def _numeric(self, kind: str, scope: Scope, depth: int) -> str:
        a, b = self.value(kind, scope, depth), self.value(kind, scope, depth)
        return self.pick([
            f"({a} + {b})", f"({a} - {b})", f"({a} * {b})", f"({a} % {b})", f"(- {a})",
            self._case(kind, scope, depth), self._cast(kind, scope, depth), f"({a} + {self.pick(CONSTANTS[kind])})",
        ])  # fmt: skip

    def _int(self, scope: Scope, depth: int) -> str:
        if self.chance(0.6):
            return self._numeric("int", scope, depth)
        a, b, day = (self.value(k, scope, depth) for k in ("int", "int", "date"))
        part = self.pick(
            ["year", "quarter", "month", "day", "dow", "doy", "hour", "minute", "second"]
        )
        return self.pick(
            [f"({a} // {b})", f"EXTRACT({part} FROM {day})", f"({day} - {day})", f"year({day})"]
        )

    def _decimal(self, scope: Scope, depth: int) -> str:
        return self._numeric("decimal", scope, depth)

    def _double(self, scope: Scope, depth: int) -> str:
        if self.chance(0.6):
            return self._numeric("double", scope, depth)
        return f"({self.value('number', scope, depth)} / {self.value('number', scope, depth)})"

    def _text(self, scope: Scope, depth: int) -> str:
        a, b = self.value("text", scope, depth), self.value("text", scope, depth)
        return self.pick(
            [f"({a} || {b})", self._case("text", scope, depth), self._cast("text", scope, depth)]
        )

    def _date(self, scope: Scope, depth: int) -> str:
        a, days = self.value("date", scope, depth), self.value("int", scope, depth)
        return self.pick(
            [f"({a} + {days})", f"({a} - 7)", self._case("date", scope, depth), self._cast("date", scope, depth)]
        )  # fmt: skip

    def _time(self, scope: Scope, depth: int) -> str:
        a = self.value(self.pick(["date", "time"]), scope, depth)
        return self.pick([
            f"({a} + {self.value('interval', scope, depth)})", f"({a} - {self.value('interval', scope, 0)})",
            self._case("time", scope, depth), self._cast("time", scope, depth),
        ])  # fmt: skip

    def _interval(self, scope: Scope, depth: int) -> str:
        a, b = self.value("time", scope, depth), self.value("time", scope, depth)
        return self.pick([f"({a} - {b})", f"({self.pick(CONSTANTS['interval'])} * 2)"])

    def _case(self, kind: str, scope: Scope, depth: int) -> str:
        a, b = self.value(kind, scope, depth), self.value(kind, scope, depth)
        test = self.value("bool", scope, depth)
        if self.chance(0.2):
            return f"CASE {self.value('text', scope, 0)} WHEN {self.value('text', scope, 0)} THEN {a} END"
        return self.pick([f"CASE WHEN {test} THEN {a} ELSE {b} END", f"if({test}, {a}, {b})"])

    def _cast(self, kind: str, scope: Scope, depth: int) -> str:
        target = self.pick([c for c in CASTS if CAST_KIND[c] == kind] or list(CASTS))
        word = self.pick(["CAST", "CAST", "TRY_CAST"])
        return f"{word}({self.value(self.pick(KINDS[:7]), scope, depth)} AS {target})"

    def _bool(self, scope: Scope, depth: int) -> str:
        kind = self.pick(["int", "decimal", "double", "text", "date", "time"])
        a, b, c = (self.value(kind, scope, depth) for _ in range(3))
        p, q = self.value("bool", scope, depth), self.value("bool", scope, depth)
        text = self.value("text", scope, depth)
        word, pattern = self.pick(["", "NOT "]), self.pick(["%", "a%", "_k", "%_1", "\\%"])
        return self.pick([
            f"({a} {self.pick(['=', '<>', '<', '<=', '>', '>='])} {b})",
            f"({a} {self.pick(['=', '<', '>='])} {b})", f"({a} IS {word}NULL)",
            f"({a} IS {word}DISTINCT FROM {b})", f"({p} AND {q})", f"({p} OR {q})", f"(NOT {p})",
            f"({a} {word}IN ({b}, {c}))", f"({a} {word}BETWEEN {b} AND {c})",
            f"({text} {word}{self.pick(['LIKE', 'ILIKE'])} '{pattern}')", f"({p} IS {word}TRUE)",
            self.subquery_test(scope, depth) if depth > 0 else f"({p} IS FALSE)",
        ])  # fmt: skip

    def subquery_test(self, scope: Scope, depth: int) -> str:
        kind = self.pick(["int", "text", "decimal", "double"])
        item, word = self.value(kind, scope, 0), self.pick(["", "NOT "])
        source, inner = self.source(1)
        tied = self.value("bool", inner if self.chance(0.5) else inner.joined(scope), 1)
        return self.pick([
            f"({word}EXISTS (SELECT 1 FROM {source} WHERE {tied}))",
            f"({item} {word}IN (SELECT {self.value(kind, inner, 1)} FROM {source} WHERE {tied}))",
            f"({item} {self.pick(['<', '=', '>='])} (SELECT {self.aggregate(inner)} FROM {source} WHERE {tied}))",
        ])  # fmt: skip

    def aggregate(self, scope: Scope, plain: bool = True) -> str:
        """Call an aggregate over the rows of a scope."""
        if self.chance(0.3):
            return "count(*)"
        name = self.pick(["count", "sum", "avg", *AGGREGATED])
        kind = self.pick(KINDS) if name in ("count", "min", "max") else "number"
        value = self.value(kind, scope, 2 if self.chance(0.4) else 0)
        distinct = "DISTINCT " if self.chance(0.1) else ""
        if name.startswith("quantile"):
            share = self.pick(["0.5", "0", "1", "0.25", "2", "-1", "1e-5"])
            call = self.pick(
                [f"{name}({value}, {share})", f"percentile_cont({share}) WITHIN GROUP (ORDER BY {value})"]
            )  # fmt: skip
        else:
            call = f"{name}({distinct}{value})"
        if plain and self.chance(0.1):
            call += f" FILTER (WHERE {self.value('bool', scope, 1)})"
        return call

    # ── rows ─────────────────────────────────────────────────────────────────────────────────────

    def alias(self) -> str:
        return self.pick(ALIASES) if self.chance(0.3) else f"a{self.random.randrange(1000)}"

    def source(self, depth: int = 2) -> tuple[str, Scope]:
        """Draw something that can stand in FROM, and what can be named of it."""
        choice = self.random.random()
        if depth <= 0 or choice < 0.55:
            return self.table()
        if choice < 0.75:
            return self.join(depth)
        if choice < 0.9:
            alias, (inner, kinds) = self.alias(), self.rows(depth - 1)
            if self.chance(0.2):
                names = [f"{self.pick(['c', 'C', 'ä', LONG])}{i}" for i in range(len(kinds))]
                inner = f"({inner}) AS {alias}({', '.join(names)})"
                kinds = dict(zip(names, kinds.values(), strict=True))
            else:
                inner = f"({inner}) AS {alias}"
            return inner, self.scope_of(alias, kinds)
        if self.commons and choice < 0.95:
            name, scope = self.pick(self.commons)
            alias = self.alias()
            renamed = {
                k: [f"{alias}.{c.split('.')[-1]}" for c in cs] for k, cs in scope.columns.items()
            }
            return f"{name} AS {alias}", Scope(renamed)
        alias = self.alias()
        rows = ", ".join(
            f"({self.pick(CONSTANTS['int'])}, {self.pick(CONSTANTS['text'])})" for _ in range(2)
        )
        return f"(VALUES {rows}) AS {alias}(n, w)", self.scope_of(alias, {"n": "int", "w": "text"})

    def scope_of(self, alias: str, kinds: dict[str, str]) -> Scope:
        scope = Scope()
        for name, kind in kinds.items():
            scope.add(kind, f"{alias}.{name}" if self.chance(0.7) else name)
        return scope

    def table(self) -> tuple[str, Scope]:
        name = self.pick([*TABLES, "person", "visit", "visit"])
        alias = self.alias() if self.chance(0.5) else name
        written = name if alias == name else f"{name} {alias}"
        return written, self.scope_of(alias, TABLES[name])

    def join(self, depth: int) -> tuple[str, Scope]:
        if self.chance(0.35):
            a, b = f"v{self.random.randrange(99)}", f"p{self.random.randrange(99)}"
            kinds = self.scope_of(a, TABLES["visit"]).joined(self.scope_of(b, TABLES["person"]))
            word = self.pick(["JOIN", "LEFT JOIN", "RIGHT JOIN", "INNER JOIN"])
            return f"visit {a} {word} person {b} ON {a}.pid = {b}.id", kinds
        (left, a), (right, b) = self.source(depth - 1), self.source(depth - 1)
        both = a.joined(b)
        kind = self.pick(["int", "text"])
        on = f"{self.value(kind, a, 0)} = {self.value(kind, b, 0)}"
        on = on if self.chance(0.7) else self.value("bool", both, 1)
        if self.chance(0.1):
            right = f"({right})"
        return self.pick([
            f"{left} JOIN {right} ON {on}", f"{left} LEFT JOIN {right} ON {on}", f"{left} CROSS JOIN {right}",
            f"{left}, {right}", f"{left} JOIN {right} USING (id)", f"{left} RIGHT JOIN {right} ON {on}",
            f"{left} FULL JOIN {right} ON {on}", f"{left} NATURAL JOIN {right}",
        ]), both  # fmt: skip

    def rows(self, depth: int) -> tuple[str, dict[str, str]]:
        """Draw a SELECT that gives several named columns."""
        source, scope = self.source(depth)
        kinds = {}
        items = []
        for i in range(self.pick([1, 2, 3])):
            kind = self.pick(KINDS[:7])
            name = self.pick(["x", "X", "k", f"c{i}", '"A b"', "id", f"{LONG}_{i}"])
            kinds[name] = kind
            items.append(f"{self.value(kind, scope, 1)} AS {name}")
        where = f" WHERE {self.value('bool', scope, 1)}" if self.chance(0.5) else ""
        word = "SELECT DISTINCT" if self.chance(0.2) else "SELECT"
        text = f"{word} {', '.join(items)} FROM {source}{where}"
        choice = self.random.random()
        if choice < 0.2:
            other, _ = self.source(0)
            nulls = ", ".join(self.pick(["NULL", *CONSTANTS[k]]) for k in kinds.values())
            word = self.pick(["UNION ALL", "UNION", "EXCEPT", "INTERSECT", "EXCEPT ALL"])
            text += f" {word} SELECT {nulls} FROM {other}"
        elif choice < 0.3:
            text += f" ORDER BY {self.pick(list(kinds))} LIMIT {self.pick(['1', '3', '0'])}"
        elif choice < 0.45:
            key = self.value("text", scope, 0)
            first = next(iter(kinds))
            text = f"SELECT {key} AS {first}, {self.aggregate(scope)} AS n FROM {source}{where} GROUP BY {key}"
            kinds = {first: "text", "n": "int"}
        return text, kinds

    # ── whole questions ──────────────────────────────────────────────────────────────────────────

    def question(self) -> str:
        with_ = ""
        if self.chance(0.15):
            name = self.pick(["w", "W", "person", '"w x"', "release1"])
            inner, kinds = self.rows(1)
            if self.chance(0.3):
                inner = f"WITH inner_one AS ({inner}) SELECT * FROM inner_one"
            scope = Scope()
            for column, kind in kinds.items():
                scope.add(kind, f"{name}.{column}")
            self.commons.append((name, scope))
            with_ = f"WITH {name} AS ({inner}) "
        body = self.select()
        if self.chance(0.12):
            word = self.pick(
                ["UNION ALL", "UNION", "INTERSECT", "EXCEPT", "EXCEPT ALL", "INTERSECT ALL"]
            )
            body = f"{body} {word} {self.select()}"
        elif self.chance(0.05):
            body = f"({body}) {self.pick(['', 'LIMIT 2', 'ORDER BY 1'])}"
        elif self.chance(0.1):
            shown = self.pick(["*", "sum(z.n)", "count(*)", "z.n + 1", "max(z.n)"])
            body = f"SELECT {shown} FROM ({self.named_select()}) z"
        elif self.chance(0.05):
            body = f"SELECT ({self.scalar_select()}) + {self.pick(['1', '(' + self.scalar_select() + ')'])} AS s"
        elif self.chance(0.08):
            alone = f"(SELECT {self.aggregate(self.table()[1])} FROM visit)"
            source, scope = self.source(1)
            body = f"SELECT count(*) FROM {source} WHERE {self.value('number', scope, 1)} > {alone}"
        return with_ + body

    def scalar_select(self) -> str:
        source, scope = self.source(1)
        return f"SELECT {self.aggregate(scope)} FROM {source}"

    def named_select(self) -> str:
        source, scope = self.source(1)
        key = self.value("text", scope, 0)
        return f"SELECT {key} AS k, {self.aggregate(scope)} AS n FROM {source} GROUP BY {key}"

    def post(self, calls: list[str]) -> str:
        """Write something over aggregates: it is computed on noisy numbers."""
        calls = [*calls, self.scalar_subquery(Scope())] if self.chance(0.1) else calls
        scope = Scope({"int": calls, "double": calls, "decimal": calls})
        return self.value("number", scope, self.pick([0, 0, 0, 1, 2]))

    def select(self) -> str:
        source, scope = self.source(2)
        if self.chance(0.04):
            return f"SELECT {self.pick(['*', self.value('number', scope, 1)])} FROM {source}"
        where = f" WHERE {self.value('bool', scope, 2)}" if self.chance(0.5) else ""
        calls = [self.aggregate(scope) for _ in range(self.pick([1, 1, 1, 2, 3]))]
        shown = [c if self.chance(0.7) else self.post(calls) for c in calls]
        keys, group = [], ""
        if self.chance(0.4):
            keys = [self.value(self.pick(["text", "text", "int", "bool", "date"]), scope, self.pick([0, 0, 1]))
                    for _ in range(self.pick([1, 1, 2]))]  # fmt: skip
            written = [self.pick([k, k, k, str(i + 1)]) for i, k in enumerate(keys)]
            plain = f" GROUP BY {', '.join(written)}"
            group = self.pick([*[plain] * 8, " GROUP BY ALL", f" GROUP BY ROLLUP ({keys[0]})"])
        bare = [*keys, *shown]
        items = [f"{i} AS {self.alias()}" if self.chance(0.2) else i for i in bare]
        having = order = limit = ""
        if self.chance(0.15):
            having = f" HAVING {self.post(calls)} {self.pick(['>', '<=', '='])} {self.post(calls)}"
        if self.chance(0.3):
            key = self.pick([
                "1", "2", self.post(calls), *bare, "TRUE", "-1", "'x'", "NULL", "1 + 1", "0.5", "DATE '2020-01-01'",
            ])  # fmt: skip
            order = f" ORDER BY {key}{self.pick(['', ' DESC', ' NULLS FIRST'])}"
        if self.chance(0.15):
            limit = self.pick(
                [
                    " LIMIT 1",
                    " LIMIT 0",
                    " LIMIT 3 OFFSET 1",
                    " OFFSET 2",
                    " LIMIT 999999999999999999",
                ]
            )
        word = "SELECT DISTINCT" if self.chance(0.05) else "SELECT"
        return f"{word} {', '.join(items)} FROM {source}{where}{group}{having}{order}{limit}"

    # ── torn texts ───────────────────────────────────────────────────────────────────────────────

    def torn(self, text: str) -> str:
        """Delete, swap, repeat or replace a word, or splice two texts."""
        words = re.findall(r"\s+|\w+|'[^']*'|\"[^\"]*\"|.", text, re.DOTALL)
        if len(words) < 3:
            return text
        i, j = self.random.randrange(len(words)), self.random.randrange(len(words))
        choice = self.random.randrange(7)
        if choice == 0:
            del words[i]
        elif choice == 1:
            words[i], words[j] = words[j], words[i]
        elif choice == 2:
            words.insert(i, f" {self.pick(TORN)} ")
        elif choice == 3:
            words[i] = f" {self.pick(TORN)} "
        elif choice == 4:
            other = re.findall(r"\s+|\w+|.", self.pick(self.seen), re.DOTALL)
            words = words[:i] + other[self.random.randrange(len(other)) :]
        elif choice == 5:
            words[i] = self.pick(CONSTANTS[self.pick(KINDS)])
        else:
            words[i] = words[i].swapcase()
        return "".join(words)


def unlisted() -> set[str]:
    """Give functions of the plan that no text would name."""
    return {f.name for f in FUNCTIONS.values() if f.written} - SIGNATURES.keys() - {"concat_op"}
