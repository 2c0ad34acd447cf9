"""A grammar by slots: a subquery of each kind, protected or public, wrapped in every node that can hold a scalar.

In: a `random.Random`, a world and a target. Out: sources and expressions, which `slot_places` puts into questions. All
around is drawn: joins, sets, derived tables, VALUES, names that meet when an engine folds or cuts them.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from slot_worlds import LONG, RANGES, ROLES, TABLES, SlotWorld

from secant.plan.functions.scalar import FUNCTIONS
from secant.plan.typing import EXTRACT_PARTS as PARTS
from secant.sql.bind.statistics import PAIRS, TRUTHS

KINDS = {"INTEGER": "num", "DECIMAL": "num", "DOUBLE": "num", "TEXT": "text", "DATE": "date", "TIMESTAMP": "time",
         "BOOLEAN": "bool"}  # fmt: skip
CONSTANTS = {
    "num": ("0", "1", "2", "0.5", "1.5e0"), "text": ("'a'", "'b'", "'ab'"), "bool": ("TRUE", "FALSE"),
    "date": ("DATE '2020-01-05'", "DATE '2020-01-01'"), "time": ("TIMESTAMP '2020-01-05 12:00:00'",),
}  # fmt: skip
COMPARISONS = ("=", "<>", "<", "<=", ">", ">=")
COLLIDING: Mapping[str, tuple[str, str]] = {
    "case": ("u", "U"), "unicode": ("é", "É"), "folding": ("ß", "ẞ"), "sign": ("k", "\u212a"),
    "long": (f"{LONG}abc1", f"{LONG}abc2"), "quoted": ('a"b', 'A"B'), "dotted": ("t.x", "T.X"),
    "generated": ("release1", "Release1"), "measure": ("release1.m0", "RELEASE1.M0"), "plain": ("x", "y"),
}  # fmt: skip
"""Two names each that an engine may take for one, or that the plan may have given away."""


@dataclass(frozen=True)
class Col:
    """A visible column."""

    text: str
    kind: str
    role: str | None = None
    bounded: bool = False


@dataclass(frozen=True)
class Source:
    """Something that stands in FROM, and what it shows."""

    text: str
    columns: tuple[Col, ...]


@dataclass(frozen=True)
class Target:
    """What a question must hold."""

    place: str
    wrap: str
    core: str
    layer: str
    aggregate: str
    combination: str
    style: str
    names: str


class SlotQuestions:
    """Draws questions for targets in one world."""

    def __init__(self, draw: random.Random, world: SlotWorld, target: Target) -> None:
        self.draw, self.world, self.target = draw, world, target
        self.aliases = 0

    # small things

    def chance(self, share: float) -> bool:
        return self.draw.random() < share

    def pick(self, options: Sequence[Any]) -> Any:
        return self.draw.choice(list(options))

    def alias(self) -> str:
        self.aliases += 1
        return f"t{self.aliases}"

    def table_name(self, name: str) -> str:
        return _written(self.world.stored[name,], self.world.style, self.draw)

    def table(self, name: str) -> Source:
        alias = self.alias()
        columns = tuple(
            Col(
                f"{alias}.{_written(self.world.stored[name, c], self.world.style, self.draw)}",
                KINDS[kind.kind],
                ROLES.get((name, c)),
                (name, c) in RANGES,
            )
            for c, kind in TABLES[name]
        )
        return Source(f"{self.table_name(name)} {alias}", columns)

    def constants(self) -> Source:
        alias = self.alias()
        rows = self.pick(("(0), (1)", "(1), (2), (NULL)", "(0)"))
        return Source(f"(VALUES {rows}) {alias}(v)", (Col(f"{alias}.v", "num", "place", True),))

    def any_table(self, layer: str) -> Source:
        names = self.world.protected if layer == "protected" else self.world.public
        if not names or (layer == "public" and self.chance(0.2)):
            return self.constants()
        return self.table(self.pick(names))

    def column(self, source: Source, kind: str) -> str:
        """Give a column of a kind, or a constant if there is none; ranges are preferred."""
        fitting = [c for c in source.columns if c.kind == kind]
        bounded = [c for c in fitting if c.bounded]
        if bounded and self.chance(0.85):
            fitting = bounded
        return self.pick(fitting).text if fitting else self.pick(CONSTANTS[kind])

    def test(self, source: Source) -> str:
        """Give a plain condition."""
        column = self.pick(source.columns)
        if column.kind == "bool":
            return self.pick((column.text, f"{column.text} IS NOT NULL"))
        return f"{column.text} {self.pick(COMPARISONS)} {self.pick(CONSTANTS[column.kind])}"

    # sources

    def source(self, depth: int = 1) -> Source:
        """Give something to ask about: public or protected, plain or put together."""
        kind = self.draw.random()
        # Beside a protected subquery all else is mostly public: nothing but the subquery tells then.
        alone = self.target.core != "plain" and self.target.layer == "protected"
        layer = "protected" if self.chance(0.35 if alone else 0.7) else "public"
        if depth == 0 or kind < 0.55:
            return self.any_table(layer)
        if kind < 0.75:
            return self.joined(
                self.any_table(layer), self.source(0), self.pick(("JOIN", "LEFT JOIN"))
            )
        return self.derived(layer)

    def joined(self, left: Source, right: Source, word: str, condition: str = "") -> Source:
        both = left.columns + right.columns
        if word == "CROSS JOIN":
            return Source(f"{left.text} CROSS JOIN {right.text}", both)
        condition = condition or self.tie(left, right)
        return Source(f"{left.text} {word} {right.text} ON {condition}", both)

    def tie(self, left: Source, right: Source) -> str:
        pairs = [(a, b) for a in left.columns for b in right.columns if a.role and a.role == b.role]
        if not pairs:
            pairs = [
                (a, b) for a in left.columns for b in right.columns if a.kind == b.kind == "num"
            ]
        if not pairs:
            return "TRUE"
        a, b = self.pick(pairs)
        return f"{a.text} = {b.text}"

    def derived(self, layer: str) -> Source:
        """A derived table: distinct, a set, sorted and cut, grouped; its columns under hostile names."""
        inner = self.any_table(layer)
        shown = self.draw.sample(inner.columns, min(2, len(inner.columns)))
        kind = self.draw.randrange(6)
        plain = ", ".join(c.text for c in shown)
        some = self.shown([c.text for c in shown])
        where = f" WHERE {self.test(inner)}" if self.chance(0.4) else ""
        if kind == 0:
            text = f"SELECT DISTINCT {some} FROM {inner.text}{where}"
        elif kind in (1, 2):
            other = self.any_table(self.pick(("protected", "public", layer)))
            fitting = ", ".join(self.column(other, c.kind) for c in shown)
            word = self.pick(
                ("UNION", "UNION ALL", "INTERSECT", "INTERSECT ALL", "EXCEPT", "EXCEPT ALL")
            )
            text = (
                f"SELECT {some} FROM {inner.text}{where} {word} SELECT {fitting} FROM {other.text}"
            )
        elif kind == 3:
            text = f"SELECT {some} FROM {inner.text}{where} ORDER BY {self.order(shown[0].text)}{self.cut()}"
        elif kind == 4:
            text = f"SELECT {some} FROM {inner.text}{where} GROUP BY {plain}"
        else:
            text = f"SELECT {some} FROM {inner.text}{where}"
        return self.named(text, shown)

    def shown(self, texts: Sequence[str]) -> str:
        """Write one or two outputs under names that may meet."""
        names = (x.replace('"', '""') for x in COLLIDING[self.target.names])
        return ", ".join(f'{text} AS "{name}"' for text, name in zip(texts, names, strict=False))

    def named(self, text: str, shown: Sequence[Col]) -> Source:
        """Put a query into FROM; new names in a list, where the inner ones may meet."""
        alias = self.alias()
        names = [f"c{i}" for i in range(len(shown))]
        columns = tuple(replace(c, text=f"{alias}.{x}") for c, x in zip(shown, names, strict=True))
        return Source(f"({text}) AS {alias}({', '.join(names)})", columns)

    def order(self, text: str) -> str:
        word = self.pick(("", " ASC", " DESC"))
        return f"{text}{word}{self.pick(('', ' NULLS FIRST', ' NULLS LAST'))}"

    def cut(self) -> str:
        return self.pick(("", " LIMIT 1", " LIMIT 2", " LIMIT 1 OFFSET 1", " OFFSET 1"))

    # the heart

    def core(self, outer: Source) -> tuple[str, str]:
        """Give the subquery of the target and its kind."""
        what, layer = self.target.core, self.target.layer
        inner = self.any_table(layer)
        if self.chance(0.15):
            inner = self.joined(inner, self.any_table(layer), "JOIN")
        elif self.chance(0.15):
            inner = self.derived(layer)
        where = f" WHERE {self.test(inner)}" if self.chance(0.7) else ""
        if outer.columns and self.chance(0.35):
            tie = self.tie(inner, outer)
            where = f"{where} AND {tie}" if where else f" WHERE {tie}"
        if what == "Exists":
            return (
                f"{self.pick(('', '', 'NOT '))}EXISTS (SELECT 1 FROM {inner.text}{where})",
                "bool",
            )
        if what == "InSubquery":
            shown = self.pick(inner.columns)
            item = self.column(outer, shown.kind)
            word = self.pick(("", "", "NOT "))
            return f"({item} {word}IN (SELECT {shown.text} FROM {inner.text}{where}))", "bool"
        if what == "ScalarSubquery":
            shown = self.pick([c for c in inner.columns if c.kind != "bool"] or inner.columns)
            if shown.kind == "num" and self.chance(0.6):
                call, kind = f"{self.pick(('sum', 'avg', 'count', 'median'))}({shown.text})", "num"
            else:
                call, kind = f"{self.pick(('min', 'max'))}({shown.text})", shown.kind
            return f"(SELECT {call} FROM {inner.text}{where})", kind
        kind = self.pick(("num", "num", "text", "bool"))
        return self.column(outer, kind), kind

    def make(self, outer: Source, kind: str) -> str:
        """Give the expression of the target over a source, as a value of a kind."""
        text, is_ = self.core(outer)
        takes, wrap = WRAPS[self.target.wrap]
        if takes != "any":
            text, is_ = self.turned(text, is_, takes, outer), takes
        text, is_ = wrap(self, text, is_, outer)
        return self.turned(text, is_, kind, outer)

    def turned(self, text: str, is_: str, kind: str, outer: Source) -> str:
        """Make a value of another kind."""
        if is_ == kind or kind == "any":
            return text
        if kind == "bool":
            return f"({text} {self.pick(COMPARISONS)} {self.column(outer, is_)})"
        if is_ == "num" and kind == "text" and self.chance(0.3):
            return f"CAST({text} AS VARCHAR)"
        if is_ == "text" and kind == "num" and self.chance(0.5):
            return f"length({text})"
        if {is_, kind} == {"date", "time"}:
            return f"CAST({text} AS {'TIMESTAMP' if kind == 'time' else 'DATE'})"
        test = (
            text if is_ == "bool" else f"{text} {self.pick(COMPARISONS)} {self.column(outer, is_)}"
        )
        one, two = self.column(outer, kind), self.pick(CONSTANTS[kind])
        return f"CASE WHEN {test} THEN {one} ELSE {two} END"

    # aggregates

    def call(self, argument: str, kind: str, source: Source) -> str:
        """Give the aggregate of the target; a pair's other side is a column of the source."""
        name, _, distinct = self.target.aggregate.partition(" ")
        word = "DISTINCT " if distinct else ""
        if kind != "num" and name not in ("count", "min", "max", "mode"):
            name = "count"
        if name == "covar_pop":
            return self.pair(argument, self.column(source, "num"))
        if name.startswith("quantile"):
            return f"{name}({word}{argument}, {self.pick(('0.25', '0.5', '0.9'))})"
        return f"{name}({word}{argument})"

    def pair(self, y: str, x: str) -> str:
        """Give a statistic of pairs: the covariance, or one that is made of it and of what else is known."""
        name = "covar_pop" if self.chance(0.4) else self.pick(tuple(PAIRS))
        return f"{name}({y}, {x})"

    def plain_call(self, source: Source) -> str:
        if self.chance(0.4):
            return "count(*)"
        if self.chance(0.1):
            return f"{self.pick(tuple(TRUTHS))}({self.test(source)})"
        kind = "num" if self.chance(0.8) else self.pick(("text", "date"))
        return self.call(self.column(source, kind), kind, source)

    def keys(self, source: Source) -> tuple[str, str]:
        """Give key columns to show first and the GROUP BY."""
        plain = [c for c in source.columns if c.role is None and c.kind in ("text", "bool")]
        if not plain or self.chance(0.6):
            return "", ""
        key = self.pick(plain).text
        return f"{key} AS k0, ", f" GROUP BY {key}"


def _written(name: str, style: str, draw: random.Random) -> str:
    """Write a name so that a parser reads it; where case does not count, in any case."""
    if style == "plain":
        return f'"{name}"' if name in ("open",) else name
    if style == "cased":
        return draw.choice(
            (f'"{name}"', name.swapcase() if name.lower() != "open" else f'"{name}"')
        )
    escaped = name.replace('"', '""')
    return f'"{escaped}"'


# ── what an expression is wrapped in ─────────────────────────────────────────────────────────────

Wrap = Callable[[SlotQuestions, str, str, Source], tuple[str, str]]


def _form(template: str, gives: str = "") -> Wrap:
    """Write a wrapper: {e} the expression, {same} a column and {c} a constant of its kind, {num} ... columns."""

    def wrap(q: SlotQuestions, e: str, kind: str, outer: Source) -> tuple[str, str]:
        words = {x: q.column(outer, x) for x in CONSTANTS}
        text = template.format(
            e=e, same=q.column(outer, kind), c=q.pick(CONSTANTS[kind]), cmp=q.pick(COMPARISONS),
            op=q.pick(OPERATORS), part=q.pick(PARTS), no=q.pick(("", "NOT ")), **words,
        )  # fmt: skip
        return text, gives or kind

    return wrap


def _in_subquery(q: SlotQuestions, e: str, kind: str, outer: Source) -> tuple[str, str]:
    inner = q.any_table(q.pick(("protected", "public")))
    item = q.column(inner, kind)
    return f"({e} {q.pick(('', 'NOT '))}IN (SELECT {item} FROM {inner.text}))", "bool"


def _cast(q: SlotQuestions, e: str, kind: str, outer: Source) -> tuple[str, str]:
    name = q.pick([name for takes, name in CASTS if takes == kind] or ["VARCHAR"])
    return f"CAST({e} AS {name})", _gives(name)


def _gives(name: str) -> str:
    return {"VARCHAR": "text", "DATE": "date", "TIMESTAMP": "time"}.get(name, "num")


def _function(name: str, place: int) -> tuple[str, Wrap]:
    """Wrap an expression as one argument of a function."""
    kinds, gives = SIGNATURES[name]
    takes = kinds[place]

    def wrap(q: SlotQuestions, e: str, kind: str, outer: Source) -> tuple[str, str]:
        written = [
            e if i == place else q.pick(SMALL) if k == "small" else k if _is_written(k) else q.column(outer, k)
            for i, k in enumerate(kinds)
        ]  # fmt: skip
        if name in SIGNS:
            return f"({written[0]} {SIGNS[name]} {written[1]})", gives
        return f"{name}({', '.join(written)})", gives

    return ("num" if takes == "small" else takes), wrap


def _is_written(kind: str) -> bool:
    """Whether an argument is the constant that its kind spells."""
    return kind[0] in "'0123456789"


SMALL = ("1", "2", "-1")
SIGNS = {"concat_op": "||", "bitwise_and": "&", "bitwise_or": "|"}
"""Functions that are written between their arguments."""
CASTS = (
    ("num", "DOUBLE"), ("num", "BIGINT"), ("num", "DECIMAL(10,2)"), ("num", "VARCHAR"), ("text", "DOUBLE"),
    ("text", "DATE"), ("text", "TIMESTAMP"), ("date", "TIMESTAMP"), ("time", "DATE"), ("bool", "BIGINT"),
)  # fmt: skip
OPERATORS = ("+", "-", "*", "/", "//", "%")
SIGNATURES: Mapping[str, tuple[tuple[str, ...], str]] = {
    **dict.fromkeys(("exp", "ln", "log10", "log2", "sqrt", "abs", "sign", "floor", "ceil", "trunc"), (("num",), "num")),
    **dict.fromkeys(("sin", "cos", "tan", "asin", "acos", "atan"), (("num",), "num")),
    "atan2": (("num", "num"), "num"), "width_bucket": (("num", "0", "10", "5"), "num"),
    "make_date": (("num", "num", "num"), "date"), "strftime": (("date", "'%Y-%m'"), "text"),
    **dict.fromkeys(("bitwise_and", "bitwise_or", "xor"), (("num", "num"), "num")), "repeat": (("text", "2"), "text"),
    **dict.fromkeys(("md5", "sha256", "reverse"), (("text",), "text")), "strlen": (("text",), "num"),
    "strpos": (("text", "text"), "num"), "ends_with": (("text", "text"), "bool"),
    "concat_ws": (("'-'", "text", "text"), "text"), "translate": (("text", "'ab'", "'cd'"), "text"),
    **dict.fromkeys(("lpad", "rpad"), (("text", "small", "'x'"), "text")),
    "split_part": (("text", "'a'", "small"), "text"), "regexp_matches": (("text", "'a.'"), "bool"),
    "regexp_extract": (("text", "'a.'"), "text"), "regexp_replace": (("text", "'a.'", "'b'"), "text"),
    "power": (("num", "small"), "num"), "round": (("num",), "num"),
    **dict.fromkeys(("least", "greatest", "coalesce", "nullif"), (("num", "num"), "num")),
    **dict.fromkeys(("lower", "upper", "trim", "ltrim", "rtrim"), (("text",), "text")),
    "length": (("text",), "num"), "substring": (("text", "small"), "text"),
    "concat_op": (("text", "text"), "text"), "starts_with": (("text", "text"), "bool"),
    "contains": (("text", "text"), "bool"), "replace": (("text", "text", "text"), "text"),
    "left": (("text", "small"), "text"), "right": (("text", "small"), "text"),
    "date_trunc": (("'month'", "date"), "time"), "date_diff": (("'day'", "date", "date"), "num"),
}  # fmt: skip
assert SIGNATURES.keys() == {f.name for f in FUNCTIONS.values() if f.written}

WRAPS: dict[str, tuple[str, Wrap]] = {
    "none": ("any", _form("{e}")),
    "Arithmetic.left": ("num", _form("({e} {op} {num})")),
    "Arithmetic.right": ("num", _form("({num} {op} {e})")),
    "Arithmetic, days": ("date", _form("({e} - {date})", "num")),
    "Arithmetic, moments": ("date", _form("({e} + INTERVAL '1' MONTH)", "time")),
    "Negate.operand": ("num", _form("(- {e})")),
    "Compare.left": ("any", _form("({e} {cmp} {same})", "bool")),
    "Compare.right": ("any", _form("({same} {cmp} {e})", "bool")),
    "SameValue.left": ("any", _form("({e} IS {no}DISTINCT FROM {same})", "bool")),
    "SameValue.right": ("any", _form("({same} IS {no}DISTINCT FROM {e})", "bool")),
    "And.operands": ("bool", _form("({e} AND {num} > 0)")),
    "Or.operands": ("bool", _form("({num} > 1 OR {e})")),
    "Not.operand": ("bool", _form("(NOT {e})")),
    "IsNull.operand": ("any", _form("({e} IS {no}NULL)", "bool")),
    "Like.operand": ("text", _form("({e} {no}LIKE 'a%')", "bool")),
    "Like.pattern": ("text", _form("({text} LIKE {e})", "bool")),
    "InList.operand": ("any", _form("({e} {no}IN ({c}, {c}))", "bool")),
    "InList.items": ("any", _form("({same} {no}IN ({c}, {e}))", "bool")),
    "Case.condition": ("bool", _form("CASE WHEN {e} THEN {num} ELSE -{num} END", "num")),
    "Case.value": ("any", _form("CASE WHEN {num} > 1 THEN {e} ELSE {same} END")),
    "Case.default": ("any", _form("CASE WHEN {num} > 1 THEN {same} ELSE {e} END")),
    "Cast.operand": ("any", _cast),
    "Extract.operand": ("time", _form("extract({part} FROM {e})", "num")),
    "InSubquery.operand": ("any", _in_subquery),
}
SLOT_WRAPS = tuple(WRAPS)
for _name, (_kinds, _) in SIGNATURES.items():
    for _place, _kind in enumerate(_kinds):
        if not _is_written(_kind):
            WRAPS[f"{_name} {_place}"] = _function(_name, _place)
WRAPS |= {f"part {x}": ("time", _form(f"extract({x} FROM {{e}})", "num")) for x in PARTS}
WRAPS |= {f"cast {x} to {y}": (x, _form(f"CAST({{e}} AS {y})", _gives(y))) for x, y in CASTS}
WRAPS |= {f"operator {x}": ("num", _form(f"({{e}} {x} {{num}})")) for x in OPERATORS}
WRAPS |= {f"operator {x}": ("any", _form(f"({{e}} {x} {{same}})", "bool")) for x in COMPARISONS}
FUNCTION_WRAPS = tuple(x for x in WRAPS if x not in SLOT_WRAPS)
