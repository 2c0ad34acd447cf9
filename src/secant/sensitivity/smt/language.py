"""SQL values as terms of a solver: ordered numbers with a flag for NULL.

In: types, constants, terms. Out: terms whose order and equality are those of SQL. Never here: rows, plans, answers.
Every value is an element of a total order that is embedded in the whole or the real numbers: text, floats
and moments in the reals, days in the whole numbers. What the embedding cannot say is left to the solver, which may take
any function or any value: a formula may have more models than there are databases, never fewer.
The solver is imported here and nowhere else, when it is first used.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from datetime import date
from decimal import Decimal
from fractions import Fraction
from typing import Any

from secant.plan import nodes as n
from secant.plan.evaluate import values as v
from secant.records import frozen
from secant.schema.types import Type
from secant.sensitivity.certificate import CannotBound

Expression = Any
"""A term or formula of the solver, whose package has no types."""

_WHOLE = ("INTEGER", "DATE")
"""Kinds with nothing between neighboring whole numbers. Engines may keep parts of microseconds."""
_BEYOND = 10**309
"""Above every finite float: where infinity and NaN are put."""
EXACT = ("INTEGER", "DECIMAL")
"""Numbers whose sums and products the engine computes exactly, or fails."""
MANY_FACES = ("DOUBLE", "INTERVAL")
"""Kinds with values that are equal and still tell apart (two zeros; a month and thirty days)."""


def load(node: n.Node) -> Any:
    """Import the solver, or refuse."""
    try:
        import z3  # here, for most installations do without its 85 MB
    except ImportError:
        raise CannotBound(
            "smt.missing", node, "the solver is not installed", "pip install 'secant[smt]'"
        ) from None
    return z3


@frozen
class Value:
    """One SQL value: what it is if it is not NULL, and whether it is."""

    kind: str
    term: Expression
    null: Expression


@dataclass
class Language:
    """Terms and formulas in a context of their own, so that nothing is shared between threads."""

    z3: Any
    prefix: str = ""
    """Stands before every name, so that several searches fit into one formula."""
    context: Any = None
    texts: dict[str, Fraction] = field(default_factory=dict)
    """Where in the order each written text was put."""
    numbers: itertools.count[int] = field(default_factory=itertools.count)
    indexed: dict[Hashable, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.context is None:
            self.context = self.z3.Context()

    # formulas

    def truth(self, value: bool) -> Expression:
        """Give a formula that always or never holds."""
        return self.z3.BoolVal(value, self.context)

    def all_of(self, parts: Sequence[Expression]) -> Expression:
        """Give the conjunction; of nothing it holds."""
        return self.z3.And(*parts) if parts else self.truth(True)

    def any_of(self, parts: Sequence[Expression]) -> Expression:
        """Give the disjunction; of nothing it does not hold."""
        return self.z3.Or(*parts) if parts else self.truth(False)

    def no(self, formula: Expression) -> Expression:
        """Give the negation."""
        return self.z3.Not(formula)

    def choose(self, condition: Expression, yes: Expression, no: Expression) -> Expression:
        """Give one of two terms, by a condition."""
        return self.z3.If(condition, yes, no)

    # names

    def sort(self, kind: str) -> Any:
        """Give the set that values of a kind are embedded in."""
        if kind in ("BOOLEAN", "NULL"):
            return self.z3.BoolSort(self.context)
        if kind in _WHOLE:
            return self.z3.IntSort(self.context)
        return self.z3.RealSort(self.context)

    def index(self, thing: Hashable) -> int:
        """Give each different thing a number of its own, the same one every time."""
        return self.indexed.setdefault(thing, len(self.indexed))

    def _name(self, name: str) -> str:
        """Give a name that can be written between bars in SMT-LIB."""
        if "|" in name or "\\" in name:
            name = f"{name.replace('|', '!').replace(chr(92), '!')}!!{self.index(name)}"
        return self.prefix + name

    def whole(self, name: str) -> Expression:
        """Give a whole number of that name."""
        return self.z3.Int(self._name(name), self.context)

    def number(self, value: int) -> Expression:
        """Give a written whole number."""
        return self.z3.IntVal(value, self.context)

    def flag(self, name: str) -> Expression:
        """Give a new truth value."""
        return self.z3.Bool(self._name(f"{name}!{next(self.numbers)}"), self.context)

    def named_flag(self, name: str) -> Expression:
        """Give the truth value of that name."""
        return self.z3.Bool(self._name(name), self.context)

    def function(self, name: str, arguments: Sequence[str], result: str) -> Any:
        """Give a function symbol; the same name is the same function."""
        sorts = [self.sort(kind) for kind in (*arguments, result)]
        return self.z3.Function(self._name(name), *sorts)

    def fresh(self, name: str, kind: str) -> Value:
        """Give a value of which nothing is known."""
        label = self._name(f"{name}!{next(self.numbers)}")
        null = self.z3.Bool(f"{label}.null", self.context)
        return Value(kind, self.z3.Const(label, self.sort(kind)), null)

    def column(self, table: str, column: str, kind: str, row: Expression) -> Value:
        """Give what a row of a table holds."""
        term = self.function(f"{table}.{column}", ("INTEGER",), kind)(row)
        null = self.function(f"{table}.{column}.null", ("INTEGER",), "BOOLEAN")(row)
        return Value(kind, term, null)

    def opaque(self, name: str, arguments: Sequence[Value], result: str) -> Value:
        """Give the value of a function of which nothing is known but that it is one."""
        if any(a.kind in MANY_FACES for a in arguments):
            return self.fresh(name, result)
        values: list[Expression] = []
        for argument in arguments:
            values += [self._settled(argument), argument.null]
        if not values:
            values = [self.number(0)]
            kinds = ["INTEGER"]
        else:
            kinds = [k for a in arguments for k in (a.kind, "BOOLEAN")]
        term = self.function(name, kinds, result)(*values)
        null = self.function(f"{name}.null", kinds, "BOOLEAN")(*values)
        return Value(result, term, null)

    def _settled(self, value: Value) -> Expression:
        """A NULL is one value, whatever its term says."""
        return self.choose(value.null, self._zero(value.kind), value.term)

    def _zero(self, kind: str) -> Expression:
        if kind in ("BOOLEAN", "NULL"):
            return self.truth(False)
        return self.number(0) if kind in _WHOLE else self.z3.RealVal(0, self.context)

    # constants

    def nothing(self, kind: str) -> Value:
        """Give NULL."""
        return Value(kind, self._zero(kind), self.truth(True))

    def constant(self, value: object, type_: Type) -> Value:
        """Give a written value."""
        value = v.conform(value, type_)
        if value is None:
            return self.nothing(type_.kind)
        return Value(type_.kind, self._constant(value, type_.kind), self.truth(False))

    def _constant(self, value: object, kind: str) -> Expression:
        if isinstance(value, bool):
            return self.truth(value)
        if isinstance(value, str):
            return self._real(self._number_of(value))
        if isinstance(value, float):
            if math.isfinite(value):
                return self._real(Fraction(value))
            beyond = 2 * _BEYOND if math.isnan(value) else _BEYOND if value > 0 else -_BEYOND
            return self._real(Fraction(beyond))
        if isinstance(value, Decimal):
            return self._real(Fraction(value))
        number = _whole(value)
        return self.number(number) if kind in _WHOLE else self._real(Fraction(number))

    def _real(self, value: Fraction) -> Expression:
        return self.z3.RealVal(f"{value.numerator}/{value.denominator}", self.context)

    def _number_of(self, text: str) -> Fraction:
        """Put a text between its neighbors: the texts are a countable order, so there is analysis."""
        if text not in self.texts:
            below = [p for other, p in self.texts.items() if v.order_key(other) < v.order_key(text)]
            above = [p for other, p in self.texts.items() if v.order_key(other) > v.order_key(text)]
            if below and above:
                self.texts[text] = (max(below) + min(above)) / 2
            else:
                self.texts[text] = max(below) + 1 if below else min(above, default=Fraction(1)) - 1
        return self.texts[text]

    # conversion and comparison

    def convert(self, value: Value, kind: str) -> Value:
        """Give a value as one of a wider kind."""
        if value.kind == kind:
            return value
        if value.kind == "NULL":
            return self.nothing(kind)
        if kind == "DECIMAL":
            return Value(kind, self.z3.ToReal(value.term), value.null)
        if kind == "TIMESTAMP":
            day = self._real(Fraction(v.MICROSECONDS_PER_DAY))
            return Value(kind, self.z3.ToReal(value.term) * day, value.null)
        assert kind == "DOUBLE", "only numbers and moments have wider kinds"
        return Value(kind, self._as_float(value), value.null)

    def _as_float(self, value: Value) -> Expression:
        """Rounding may make different numbers equal: nothing is known of it but for constants."""
        term = self.z3.simplify(value.term)
        if self.z3.is_int_value(term) or self.z3.is_rational_value(term):
            exact = Fraction(str(term.as_string()))
            if abs(exact) < _BEYOND // 10**10:
                return self._real(Fraction(float(exact)))
        return self.function(f"float of {value.kind}", (value.kind,), "DOUBLE")(value.term)

    def aligned(self, left: Value, right: Value) -> tuple[Value, Value]:
        """Give two values as values of one kind."""
        order = ("NULL", "INTEGER", "DECIMAL", "DOUBLE", "DATE", "TIMESTAMP")
        if left.kind != right.kind:
            kind = max(left.kind, right.kind, key=lambda k: order.index(k) if k in order else 9)
            left, right = self.convert(left, kind), self.convert(right, kind)
        return left, right

    def compare(self, op: str, left: Value, right: Value) -> Value:
        """Give `left op right`, unknown if a side is NULL."""
        left, right = self.aligned(left, right)
        a, b = left.term, right.term
        if left.kind in ("BOOLEAN", "NULL") and op not in ("=", "<>"):
            a, b = (self.choose(x, self.number(1), self.number(0)) for x in (a, b))
        tests = {"=": a == b, "<>": a != b}
        if op not in tests:
            tests = {"<": a < b, "<=": a <= b, ">": a > b, ">=": a >= b}
        return Value("BOOLEAN", tests[op], self.any_of([left.null, right.null]))

    def same(self, left: Value, right: Value) -> Expression:
        """Whether two values are one: NULL is NULL."""
        left, right = self.aligned(left, right)
        both = self.all_of([self.no(left.null), self.no(right.null), left.term == right.term])
        return self.any_of([self.all_of([left.null, right.null]), both])

    def is_true(self, value: Value) -> Expression:
        """Give the formula that a condition is true, not unknown."""
        return self.all_of([value.term, self.no(value.null)])


def _whole(value: object) -> int:
    """Give a whole number, a moment or an interval as a place in its order."""
    if isinstance(value, int):
        return value
    if isinstance(value, tuple):
        return int(v.order_key(value)[1])
    if isinstance(value, date) and type(value) is date:
        return v.day_of(value)
    moment = v.midnight(value)  # type: ignore[arg-type]  # what is left is a timestamp
    _, days, microseconds = v.between(moment, v.EPOCH)
    return days * v.MICROSECONDS_PER_DAY + microseconds


def shown(kind: str, number: object, texts: dict[Fraction, str]) -> str:
    """Write what a solver chose for a value; texts that the query does not name get numbers."""
    if kind == "TEXT":
        fraction = Fraction(str(number))
        return f"'{texts[fraction]}'" if fraction in texts else f"text {fraction}"
    if kind == "DATE":
        day = v.date_of(int(str(number)))
        return str(number) if day is None else day.isoformat()
    return str(number).lower() if kind == "BOOLEAN" else str(number)
