"""Scalar syntax to scalar nodes: one rule for each kind of expression; the rest is refused.

Aggregate calls are handed to the SELECT that owns them through `collect`; where aggregates may not stand,
`collect` refuses.
"""

from __future__ import annotations

import datetime
import math
import re
from collections.abc import Callable
from decimal import Decimal, InvalidOperation
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from secant.errors import SqlError
from secant.plan import nodes as n
from secant.plan.functions.scalar import FUNCTIONS
from secant.plan.typing import EXTRACT_PARTS, Mistyped, type_of
from secant.schema import types as t
from secant.sql.bind.carried import check_carried
from secant.sql.bind.scope import Scope
from secant.sql.bind.sources import bind_part, cast_to_own, listed_in, nonsense, read_beside
from secant.sql.bind.unknown import unknown_function
from secant.sql.parse import form_of, function_name, span_of

if TYPE_CHECKING:
    from secant.sql.bind.relations import Binder

AGGREGATES: dict[type[exp.Expression], str] = {
    exp.Count: "count", exp.Sum: "sum", exp.Avg: "avg", exp.Min: "min", exp.Max: "max",
    exp.Variance: "var_samp", exp.VariancePop: "var_pop", exp.Stddev: "stddev_samp",
    exp.StddevSamp: "stddev_samp", exp.StddevPop: "stddev_pop", exp.Median: "median",
    exp.PercentileCont: "quantile_cont", exp.PercentileDisc: "quantile_disc", exp.Quantile: "quantile_disc",
    exp.ApproxQuantile: "quantile_disc", exp.Mode: "mode", exp.CovarPop: "covar_pop",
    # Made of the others when they are collected:
    exp.CountIf: "count_if", exp.LogicalAnd: "bool_and", exp.LogicalOr: "bool_or",
    exp.ApproxDistinct: "approx_count_distinct", exp.CovarSamp: "covar_samp", exp.Corr: "corr",
    exp.RegrSlope: "regr_slope", exp.RegrIntercept: "regr_intercept", exp.RegrR2: "regr_r2",
    exp.RegrCount: "regr_count", exp.RegrAvgx: "regr_avgx", exp.RegrAvgy: "regr_avgy", exp.RegrSxx: "regr_sxx",
    exp.RegrSyy: "regr_syy", exp.RegrSxy: "regr_sxy",
}  # fmt: skip
NAMED_AGGREGATES = {"product": "product", "every": "bool_and", "mean": "avg"}
"""Those that sqlglot knows as names only."""


def aggregate_named(tree: exp.Expression) -> str | None:
    """Give the aggregate that a syntax node calls."""
    if isinstance(tree, exp.Anonymous):
        return NAMED_AGGREGATES.get(tree.name.lower())
    return AGGREGATES.get(type(tree))


ARITHMETIC: dict[type[exp.Expression], str] = {
    exp.Add: "+",
    exp.Sub: "-",
    exp.Mul: "*",
    exp.Div: "/",
    exp.IntDiv: "//",
    exp.Mod: "%",
}
COMPARE: dict[type[exp.Expression], str] = {
    exp.EQ: "=",
    exp.NEQ: "<>",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.GT: ">",
    exp.GTE: ">=",
}
PARTS = {*EXTRACT_PARTS}
PART_NODES: dict[type[exp.Expression], str] = {
    exp.Year: "year",
    exp.Quarter: "quarter",
    exp.Month: "month",
    exp.Day: "day",
}
UNITS = {
    "year": (12, 0, 0), "quarter": (3, 0, 0), "month": (1, 0, 0), "week": (0, 7, 0), "day": (0, 1, 0),
    "hour": (0, 0, 3_600_000_000), "minute": (0, 0, 60_000_000), "second": (0, 0, 1_000_000),
}  # fmt: skip

YEARS = 10_000  # engines keep months in 32 bits
DAY = 86_400_000_000


Collect = Callable[[exp.Expression, Scope], n.Scalar]
COMPARE_IT = "compare the value with something"
COLLECTED = (exp.Filter, exp.WithinGroup, exp.Window, exp.Grouping, exp.GroupingId)
"""What the SELECT that it stands in must see, besides aggregates."""


class ScalarBinder:
    """Binds scalar syntax. Holds no state but the binder for subqueries and the user's text for carets."""

    def __init__(self, binder: Binder, text: str) -> None:
        self.binder = binder
        self.text = text

    def bind(self, tree: exp.Expression, scope: Scope, collect: Collect) -> n.Scalar:
        """Give the typed scalar of a syntax tree."""
        part = bind_part(tree, scope, self.text)
        if part is not None:
            return part
        rule = _RULES.get(type(tree))
        if rule is None:
            if aggregate_named(tree) or isinstance(tree, COLLECTED):
                return collect(tree, scope)
            raise self.unknown(tree)
        check_carried(self, tree)
        scalar = rule(self, tree, scope, collect)
        try:
            type_of(scalar)
            if (wrong := nonsense(scalar)) is not None:
                raise Mistyped(wrong, scalar)
        except Mistyped as error:
            hint = "cast one side, or compare like with like"
            raise self.unfit(tree, str(error), hint) from None
        return scalar

    def predicate(self, tree: exp.Expression, scope: Scope, collect: Collect) -> n.Scalar:
        """Bind a condition; anything but a truth value is refused."""
        scalar = self.bind(tree, scope, collect)
        if type_of(scalar).kind not in ("BOOLEAN", "NULL"):
            raise self.unfit(tree, "a condition must be true or false", COMPARE_IT)
        return scalar

    def refuse(self, tree: exp.Expression, message: str, hint: str = "") -> SqlError:
        """Build the error for syntax that Secant does not run."""
        return SqlError(
            "SQL-006",
            message,
            text=self.text,
            span=span_of(tree),
            hint=hint or "docs/reference/sql-accepted.md lists what is accepted",
        )

    def unfit(self, tree: exp.Expression, message: str, hint: str) -> SqlError:
        """Build the error for types that do not fit."""
        return SqlError("SQL-004", message, text=self.text, span=span_of(tree), hint=hint)

    def unknown(self, tree: exp.Expression) -> SqlError:
        """Build the error for a function or a form that is not known here."""
        of_schema = isinstance(tree, exp.Dot) and isinstance(tree.expression, exp.Func)
        if of_schema or isinstance(tree, (exp.Func, exp.IgnoreNulls, exp.RespectNulls)):
            return self.refuse(tree, *unknown_function(tree, self.text))
        return self.refuse(tree, f"{self.word(tree)} is not accepted")

    def word(self, tree: exp.Expression) -> str:
        """Name a syntax node as its writer would."""
        named = isinstance(tree, exp.Func)
        return f"the function {function_name(tree, self.text)}" if named else form_of(tree)


Rule = Callable[[ScalarBinder, Any, Scope, Collect], n.Scalar]
_RULES: dict[type[exp.Expression], Rule] = {}


def rule(*kinds: type[exp.Expression]) -> Callable[[Rule], Rule]:
    """Register what binds some kinds of syntax."""

    def register(function: Rule) -> Rule:
        for kind in kinds:
            _RULES[kind] = function
        return function

    return register


@rule(exp.Column)
def _column(b: ScalarBinder, tree: Any, scope: Scope, _: Collect) -> n.Scalar:
    schema = tree.args.get("db")
    schemas = {"main", "public", *(name.lower() for name in b.binder.catalog.schemas)}
    if not isinstance(tree.this, exp.Identifier) or (schema and schema.name.lower() not in schemas):
        raise b.refuse(tree, "a column is written as name, table.name or schema.table.name")
    return scope.resolve(tree.table or None, tree.name, span_of(tree))


@rule(exp.Paren)
def _paren(b: ScalarBinder, tree: Any, scope: Scope, collect: Collect) -> n.Scalar:
    return b.bind(tree.this, scope, collect)


@rule(exp.Literal)
def _literal(b: ScalarBinder, tree: Any, scope: Scope, _: Collect) -> n.Scalar:
    if tree.is_string:
        return n.Literal(tree.this, t.TEXT)
    return number(b, tree)


def number(b: ScalarBinder, tree: Any) -> n.Literal:
    """Read a number as the engine does: whole, decimal with its own scale, or double if it has an exponent."""
    text = tree.this
    try:
        if re.fullmatch(r"\d+", text):
            value = int(text)
            if value.bit_length() > 63:
                raise b.refuse(
                    tree, "a whole number beyond 64 bits is not accepted", "write it as 1e20"
                )
            return n.Literal(value, t.INTEGER)
        if math.isinf(float(text)):
            raise b.refuse(tree, "the number is beyond every double")
        if "e" in text.lower():
            return n.Literal(float(text), t.DOUBLE)
        value_decimal = Decimal(text)
    except (ValueError, InvalidOperation):
        raise b.refuse(tree, "the number cannot be read") from None
    digits = len(value_decimal.as_tuple().digits)
    exponent = value_decimal.as_tuple().exponent
    scale = -exponent if isinstance(exponent, int) else 0
    if max(digits, scale) > t.MAX_PRECISION:
        return n.Literal(float(text), t.DOUBLE)
    return n.Literal(value_decimal, t.decimal(max(digits, scale), scale))


@rule(exp.Boolean)
def _boolean(b: ScalarBinder, tree: Any, scope: Scope, _: Collect) -> n.Scalar:
    return n.Literal(bool(tree.this), t.BOOLEAN)


@rule(exp.Null)
def _null(b: ScalarBinder, tree: Any, scope: Scope, _: Collect) -> n.Scalar:
    return n.Literal(None, t.NULL)


@rule(*ARITHMETIC)
def _arithmetic(b: ScalarBinder, tree: Any, scope: Scope, collect: Collect) -> n.Scalar:
    left = b.bind(tree.this, scope, collect)
    right = b.bind(tree.expression, scope, collect)
    return n.Arithmetic(ARITHMETIC[type(tree)], left, right)


@rule(exp.Neg)
def _negate(b: ScalarBinder, tree: Any, scope: Scope, collect: Collect) -> n.Scalar:
    operand = b.bind(tree.this, scope, collect)
    if (
        isinstance(operand, n.Literal)
        and isinstance(operand.value, (int, float, Decimal))
        and not isinstance(operand.value, bool)
    ):
        return n.Literal(-operand.value, operand.type)
    return n.Negate(operand)


@rule(*COMPARE)
def _compare(b: ScalarBinder, tree: Any, scope: Scope, collect: Collect) -> n.Scalar:
    if (listed := listed_in(tree)) is not None:
        return b.bind(listed, scope, collect)
    left, right = dated(
        b, tree, b.bind(tree.this, scope, collect), b.bind(tree.expression, scope, collect)
    )
    return n.Compare(COMPARE[type(tree)], left, right, span_of(tree))


def dated(
    b: ScalarBinder, tree: exp.Expression, left: n.Scalar, right: n.Scalar
) -> tuple[n.Scalar, n.Scalar]:
    """Read a text literal beside a date as a date, beside a number as a number, as every engine does."""
    return _beside(b, tree, left, type_of(right)), _beside(b, tree, right, type_of(left))


def _beside(b: ScalarBinder, tree: exp.Expression, scalar: n.Scalar, kind: t.Type) -> n.Scalar:
    if not isinstance(scalar, n.Literal) or scalar.type != t.TEXT:
        return scalar
    if kind.form:
        read = read_beside(str(scalar.value), kind)
        if read is None:
            raise b.refuse(tree, f"the text cannot be read as {kind}, which it stands beside")
        return read
    if kind.temporal:
        return instant(b, tree, str(scalar.value), kind)
    if kind.kind in t.NUMERIC_KINDS:
        return quoted_number(b, tree, str(scalar.value), kind)
    if kind == t.BOOLEAN and str(scalar.value).strip().lower() in _TRUTH:
        return n.Literal(_TRUTH[str(scalar.value).strip().lower()], t.BOOLEAN)
    return scalar


_TRUTH = {"true": True, "false": False, "t": True, "f": False}


def quoted_number(b: ScalarBinder, tree: exp.Expression, text: str, kind: t.Type) -> n.Literal:
    """Read a number between quotes, as a client sends a value, as it would be without them."""
    match = re.fullmatch(r"\s*([+-]?)((?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)\s*", text)
    if match is None or (kind == t.INTEGER and not match[2].isdecimal()):
        message = f"the text cannot be read as {kind.kind}, which it stands beside"
        raise b.unfit(tree, message, "give a number, or cast the other side")
    read = number(b, exp.Literal.number(match[2]))
    assert isinstance(read.value, (int, float, Decimal))
    return n.Literal(-read.value, read.type) if match[1] == "-" else read


def instant(b: ScalarBinder, tree: exp.Expression, text: str, kind: t.Type) -> n.Literal:
    """Read a date or timestamp constant; a timestamp beside a DATE stays a timestamp."""
    try:
        if re.fullmatch(r"\s*\d{4}-\d{1,2}-\d{1,2}\s*", text):
            year, month, day = (int(part) for part in text.strip().split("-"))
            date = datetime.date(year, month, day)
            if kind == t.DATE:
                return n.Literal(date, t.DATE)
            return n.Literal(datetime.datetime(year, month, day), t.TIMESTAMP)  # noqa: DTZ001
        moment = datetime.datetime.fromisoformat(text.strip())
    except ValueError:
        hint = "write dates as 'YYYY-MM-DD'"
        raise b.unfit(tree, "the text cannot be read as a date", hint) from None
    if moment.tzinfo is not None:  # without a zone, times are UTC
        try:
            moment = moment.astimezone(datetime.UTC).replace(tzinfo=None)
        except OverflowError:
            raise b.refuse(tree, "the moment lies beyond all dates") from None
    return n.Literal(moment, t.TIMESTAMP)


@rule(exp.And, exp.Or)
def _logic(b: ScalarBinder, tree: Any, scope: Scope, collect: Collect) -> n.Scalar:
    # Long chains are left-deep in the syntax; they are collected without recursion.
    kind = type(tree)
    pending, operands = [tree], []
    while pending:
        item = pending.pop()
        if isinstance(item, kind):
            pending += [item.expression, item.this]
        elif isinstance(item, exp.Paren) and isinstance(item.this, kind):
            pending.append(item.this)
        else:
            operands.append(b.predicate(item, scope, collect))
    return (n.And if kind is exp.And else n.Or)(tuple(operands))


@rule(exp.Not)
def _not(b: ScalarBinder, tree: Any, scope: Scope, collect: Collect) -> n.Scalar:
    return n.Not(b.predicate(tree.this, scope, collect))


@rule(exp.Xor)
def _xor(b: ScalarBinder, tree: Any, scope: Scope, collect: Collect) -> n.Scalar:
    left = b.predicate(tree.this, scope, collect)
    right = b.predicate(tree.expression, scope, collect)
    return n.Compare("<>", left, right)


@rule(exp.Is)
def _is(b: ScalarBinder, tree: Any, scope: Scope, collect: Collect) -> n.Scalar:
    operand = b.bind(tree.this, scope, collect)
    if isinstance(tree.expression, exp.Null):
        return negated(tree, n.IsNull(operand))
    if isinstance(tree.expression, exp.Boolean):
        value = n.Literal(bool(tree.expression.this), t.BOOLEAN)
        return negated(tree, n.SameValue(operand, value))
    raise b.refuse(tree, "IS takes NULL, TRUE or FALSE")


def negated(tree: exp.Expression, scalar: n.Scalar) -> n.Scalar:
    """Apply the parser's `negate` mark."""
    return n.Not(scalar) if tree.args.get("negate") else scalar


@rule(exp.NullSafeEQ, exp.NullSafeNEQ)
def _same(b: ScalarBinder, tree: Any, scope: Scope, collect: Collect) -> n.Scalar:
    left, right = dated(
        b, tree, b.bind(tree.this, scope, collect), b.bind(tree.expression, scope, collect)
    )
    same = n.SameValue(left, right)
    return same if isinstance(tree, exp.NullSafeEQ) else n.Not(same)


@rule(exp.Between)
def _between(b: ScalarBinder, tree: Any, scope: Scope, collect: Collect) -> n.Scalar:
    operand = b.bind(tree.this, scope, collect)
    low = dated(b, tree, operand, b.bind(tree.args["low"], scope, collect))[1]
    high = dated(b, tree, operand, b.bind(tree.args["high"], scope, collect))[1]
    span = span_of(tree)
    return n.And((n.Compare(">=", operand, low, span), n.Compare("<=", operand, high, span)))


@rule(exp.Like)
def _like(b: ScalarBinder, tree: Any, scope: Scope, collect: Collect) -> n.Scalar:
    like = n.Like(b.bind(tree.this, scope, collect), b.bind(tree.expression, scope, collect))
    return negated(tree, like)


@rule(exp.ILike)
def _ilike(b: ScalarBinder, tree: Any, scope: Scope, collect: Collect) -> n.Scalar:
    operand, pattern = (b.bind(side, scope, collect) for side in (tree.this, tree.expression))
    return negated(tree, n.Like(n.Call("lower", (operand,)), n.Call("lower", (pattern,))))


@rule(exp.In)
def _in(b: ScalarBinder, tree: Any, scope: Scope, collect: Collect) -> n.Scalar:
    operand = b.bind(tree.this, scope, collect)
    query = tree.args.get("query")
    if query is not None:
        relation = b.binder.subquery(query, scope, columns=1)
        return n.InSubquery(operand, relation, span_of(tree))
    if not tree.expressions:
        raise b.refuse(tree, "IN takes a list or a subquery")
    items = tuple(
        dated(b, tree, operand, b.bind(item, scope, collect))[1] for item in tree.expressions
    )
    return n.InList(operand, items)


@rule(exp.Exists)
def _exists(b: ScalarBinder, tree: Any, scope: Scope, collect: Collect) -> n.Scalar:
    return n.Exists(b.binder.subquery(tree.this, scope, columns=None), span_of(tree))


@rule(exp.Subquery)
def _scalar_subquery(b: ScalarBinder, tree: Any, scope: Scope, collect: Collect) -> n.Scalar:
    if not isinstance(tree.this, exp.Query):
        return b.bind(tree.this, scope, collect)
    return n.ScalarSubquery(b.binder.subquery(tree, scope, columns=1), span_of(tree))


@rule(exp.Case)
def _case(b: ScalarBinder, tree: Any, scope: Scope, collect: Collect) -> n.Scalar:
    subject = b.bind(tree.this, scope, collect) if tree.this is not None else None
    branches = []
    for item in tree.args["ifs"]:
        if subject is None:
            condition = b.predicate(item.this, scope, collect)
        else:
            left, right = dated(b, item, subject, b.bind(item.this, scope, collect))
            condition = n.Compare("=", left, right, span_of(item))
        branches.append(n.Branch(condition, b.bind(item.args["true"], scope, collect)))
    default = tree.args.get("default")
    end = n.Literal(None, t.NULL) if default is None else b.bind(default, scope, collect)
    return n.Case(tuple(branches), end)


@rule(exp.If)
def _if(b: ScalarBinder, tree: Any, scope: Scope, collect: Collect) -> n.Scalar:
    condition = b.predicate(tree.this, scope, collect)
    default = tree.args.get("false")
    end = n.Literal(None, t.NULL) if default is None else b.bind(default, scope, collect)
    return n.Case((n.Branch(condition, b.bind(tree.args["true"], scope, collect)),), end)


@rule(exp.Cast, exp.TryCast)
def _cast(b: ScalarBinder, tree: Any, scope: Scope, collect: Collect) -> n.Scalar:
    operand = b.bind(tree.this, scope, collect)
    own = cast_to_own(operand, tree.args["to"])
    if own is not None:
        return own
    target = cast_type(b, tree)
    if isinstance(operand, n.Literal) and operand.type == t.TEXT and target.temporal:
        return instant(b, tree, str(operand.value), target)
    cast = n.Cast(operand, target)
    return n.Attempt(cast) if isinstance(tree, exp.TryCast) else cast


def cast_type(b: ScalarBinder, tree: Any) -> t.Type:
    """Read the target of a cast."""
    kind = tree.args["to"]
    name = kind.this.name if isinstance(kind, exp.DataType) and not kind.args.get("nested") else ""
    if name == "DECIMAL":
        sizes = [int(p.name) for p in kind.expressions if p.name.isdigit()]
        precision, scale = (*sizes, *(18, 3)[len(sizes) :])[:2] if sizes != [] else (18, 3)
        scale = 0 if len(sizes) == 1 else scale
        if not 0 < precision <= t.MAX_PRECISION or scale > precision:
            raise b.refuse(tree, "the decimal is too wide", "at most DECIMAL(38, s)")
        return t.decimal(precision, scale)
    type_ = {
        "BOOLEAN": t.BOOLEAN, "TINYINT": t.INTEGER, "SMALLINT": t.INTEGER, "INT": t.INTEGER,
        "BIGINT": t.INTEGER, "INT128": t.INTEGER, "FLOAT": t.DOUBLE, "DOUBLE": t.DOUBLE, "TEXT": t.TEXT,
        "VARCHAR": t.TEXT, "CHAR": t.TEXT, "DATE": t.DATE, "TIMESTAMP": t.TIMESTAMP,
        "TIMESTAMPNTZ": t.TIMESTAMP, "DATETIME": t.TIMESTAMP, "TIMESTAMPTZ": t.TIMESTAMP,
    }.get(name)  # fmt: skip
    if type_ is None:
        raise b.refuse(tree, "a cast to this type is not accepted")
    return type_


@rule(exp.Interval)
def _interval(b: ScalarBinder, tree: Any, scope: Scope, _: Collect) -> n.Scalar:
    unit = (tree.args["unit"].name if tree.args.get("unit") else "").lower().rstrip("s")
    amount = tree.this.name if isinstance(tree.this, exp.Literal) else ""
    if isinstance(tree.this, exp.Neg) and isinstance(tree.this.this, exp.Literal):
        amount = "-" + tree.this.this.name
    if unit not in UNITS or not re.fullmatch(r"-?\d{1,9}", amount.strip()):
        raise b.refuse(tree, "an interval is written as INTERVAL '3' MONTH with a whole number")
    months, days, micros = (int(amount) * part for part in UNITS[unit])
    if abs(months) > 12 * YEARS or abs(days) > 366 * YEARS or abs(micros) > 366 * YEARS * DAY:
        raise b.refuse(tree, f"an interval of more than {YEARS} years is not accepted")
    return n.Literal((months, days, micros), t.INTERVAL)


@rule(exp.DateAdd, exp.DateSub)
def _date_shift(b: ScalarBinder, tree: Any, scope: Scope, collect: Collect) -> n.Scalar:
    if not isinstance(tree.expression, exp.Interval):
        raise b.refuse(tree, "add an INTERVAL to a date")
    operand = b.bind(tree.this, scope, collect)
    op = "+" if isinstance(tree, exp.DateAdd) else "-"
    return n.Arithmetic(op, operand, b.bind(tree.expression, scope, collect))


@rule(*PART_NODES)
def _part(b: ScalarBinder, tree: Any, scope: Scope, collect: Collect) -> n.Scalar:
    return n.Extract(PART_NODES[type(tree)], b.bind(tree.this, scope, collect))


@rule(exp.TimestampTrunc, exp.DateTrunc)
def _trunc(b: ScalarBinder, tree: Any, scope: Scope, collect: Collect) -> n.Scalar:
    unit = tree.args.get("unit")
    part = n.Literal((unit.name if unit is not None else "").lower(), t.TEXT)
    return called(b, tree, "date_trunc", (part, b.bind(tree.this, scope, collect)))


@rule(exp.DateDiff)
def _date_diff(b: ScalarBinder, tree: Any, scope: Scope, collect: Collect) -> n.Scalar:
    unit = tree.args.get("unit")
    part = n.Literal((unit.name if unit is not None else "day").lower(), t.TEXT)
    start, end = b.bind(tree.expression, scope, collect), b.bind(tree.this, scope, collect)
    return called(b, tree, "date_diff", (part, start, end))


def called(
    b: ScalarBinder, tree: exp.Expression, name: str, arguments: tuple[n.Scalar, ...]
) -> n.Scalar:
    """Give a call of a function of the list, with constants where it needs them."""
    function = FUNCTIONS[name]
    if not function.least <= len(arguments) <= function.most:
        raise b.refuse(tree, f"{name} takes another number of arguments")
    constants = [a.value if isinstance(a, n.Literal) else None for a in arguments]
    if any(i < len(arguments) and constants[i] is None for i in function.constants):
        raise b.refuse(
            tree,
            f"{name} takes constants here",
            f"write them out; {name} is asked of a column and constants",
        )
    wrong = function.check(constants) if function.check is not None else ""
    if wrong:
        raise b.refuse(tree, wrong)
    return n.Call(name, arguments, span_of(tree))


def _plain(kind: type[exp.Expression], name: str, *slots: str) -> None:
    """Register a function whose arguments stand in the named slots of the syntax node."""

    def bind(b: ScalarBinder, tree: Any, scope: Scope, collect: Collect) -> n.Scalar:
        trees: list[exp.Expression] = []
        for slot in slots:
            value = tree.args.get(slot)
            trees += value if isinstance(value, list) else [value] if value is not None else []
        return called(b, tree, name, tuple(b.bind(item, scope, collect) for item in trees))

    _RULES[kind] = bind


for _function in FUNCTIONS.values():
    if _function.syntax and getattr(exp, _function.syntax[0]) not in _RULES:
        _plain(getattr(exp, _function.syntax[0]), _function.name, *_function.syntax[1:])
