"""Between which values can an expression lie? Interval arithmetic over declared ranges and the query's own filters.

In: declared facts (policy) and conditions that every row has passed. Out: an interval in numbers (dates count as
days). The result is a wish, not a belief: whoever uses it clamps the value to it (I2).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from fractions import Fraction

from secant.numeric import interval as iv
from secant.plan import nodes as n
from secant.plan.evaluate.values import date_of
from secant.plan.facts.keys import identifies, keys_after
from secant.plan.facts.lineage import Lineage, reused
from secant.plan.facts.range_conditions import as_number, declared_keys, learn
from secant.plan.facts.range_filters import (
    MOST_NESTED,
    Values,
    judge,
    may_be_null,
    present_after,
    values_of,
)
from secant.plan.facts.range_forms import Setting, form_of, narrowed, repeats
from secant.plan.facts.range_groups import Stratum, aggregate_range
from secant.plan.facts.regions import conditions_on
from secant.plan.functions.aggregates import SPREAD
from secant.plan.functions.scalar import FUNCTIONS
from secant.plan.rewrites.rewrite import columns_of
from secant.plan.rewrites.steps import as_product
from secant.plan.rule_table import RuleTable
from secant.plan.show import same
from secant.plan.typing import type_of
from secant.policy.policy import Policy
from secant.records import replace

__all__ = [
    "NOTHING_DECLARED",
    "RANGES",
    "Ranges",
    "as_number",
    "as_text",
    "declared",
    "declared_keys",
    "each_condition",
    "ranges_of",
    "year_of",
]

NOTHING_DECLARED = Policy(source="", tables={}, protections=())
"""With it, only what the plan itself clamps counts."""
RANGES: RuleTable[Callable[..., iv.Interval]] = RuleTable("ranges")


@dataclass
class Ranges(Lineage):
    """What is known of each column of one plan region: where it comes from, and what filters say of it."""

    policy: Policy
    rows: Callable[[n.Aggregate], int | None] = lambda group: None
    """Rows that one inner group can have, if that is declared."""
    filtered: dict[str, iv.Interval] = field(default_factory=dict)
    """Column -> what the conditions on the way leave of it."""
    remembered: dict[n.Node, iv.Interval] | None = None
    """What was found before, for whoever asks about parts of one expression again and again."""
    root: n.Relation | None = None
    """The relation whose rows are spoken of. With it, all that is declared is used; the result is a wish."""
    conditions: tuple[n.Scalar, ...] = ()
    """What every row has passed."""
    relations: dict[str, list[tuple[str, n.Column]]] = field(default_factory=dict)
    """Column -> how conditions compare it with other columns."""
    asking: set[str] = field(default_factory=set)
    """Columns that are being looked at, so that equal columns do not ask each other for ever."""
    sets: dict[str, Values | None] = field(default_factory=dict)
    """Column -> the values that were found for it before."""
    nested: int = 0
    """How many conditions of branches these rows were limited by, one inside the other."""
    _inside: bool = False
    _present: frozenset[str] | None = None
    _seen_through: bool | None = None

    def of(self, scalar: n.Scalar) -> iv.Interval:
        """Give an interval that holds the expression whenever declared facts hold (and it is not NULL)."""
        rule = RANGES.find(scalar)
        if self.root is not None and not self._inside and rule is not None:
            return self._outermost(rule, scalar)
        if self.remembered is not None and scalar in self.remembered:
            return self.remembered[scalar]
        interval = iv.EVERYTHING if rule is None else rule(self, scalar)
        if self.remembered is not None and not self.asking:
            self.remembered[scalar] = interval
        return interval

    def _outermost(self, rule: Callable[..., iv.Interval], scalar: n.Scalar) -> iv.Interval:
        """Look at a whole expression: where a column repeats, forms say more than intervals."""
        self._inside = True
        try:
            interval: iv.Interval = rule(self, scalar)
            if interval.bounded and interval.low == interval.high:
                return interval
            # One column without definition is as narrow as it gets.
            plain = isinstance(scalar, n.Column) and scalar.name not in self.definitions
            if plain or not repeats(scalar, self.visible):
                return interval
            setting = Setting(self.of, self.visible, lambda column: points_of(self, column))
            return narrowed(scalar, interval, setting)
        finally:
            self._inside = False

    @property
    def visible(self) -> dict[str, n.Scalar]:
        """Definitions that speak of the same row as the columns do."""
        if self._seen_through is None:
            self._seen_through = self.root is not None and not reused(self.root)
        return self.definitions if self._seen_through else {}

    @property
    def present(self) -> frozenset[str]:
        """Columns that are not NULL on a row that has passed all conditions."""
        if self._present is None:
            self._present = present_after(self.conditions)
        return self._present

    @property
    def empty(self) -> bool:
        """Whether declared facts let no row pass all conditions (range.filter)."""
        return any(judge(before, c).never for before, c in each_condition(self))

    def under(self, condition: n.Scalar) -> Ranges:
        """Give what is known of rows for which a further condition is true."""
        parts = n.conjuncts(condition)
        inner = replace(
            self,
            filtered=dict(self.filtered),
            relations={name: list(relations) for name, relations in self.relations.items()},
            conditions=(*self.conditions, *parts),
            remembered={},
            sets={},
            nested=self.nested + 1,
            _present=None,
        )
        for part in parts:
            learn(inner, part)
        return inner


def each_condition(ranges: Ranges) -> Iterator[tuple[Ranges, n.Scalar]]:
    """Give each condition with what was known before it: what it says itself must not judge it."""
    for index, condition in enumerate(ranges.conditions):
        others = ranges.conditions[:index]
        before = replace(
            ranges,
            filtered={},
            relations={},
            conditions=others,
            remembered={},
            sets={},
            _present=None,
        )
        for other in others:
            learn(before, other)
        yield before, condition


def points_of(ranges: Ranges, column: n.Column) -> tuple[Fraction, ...] | None:
    """Give the numbers that a column may be, if they are declared one by one."""
    values = values_of(ranges, column) if column.type.numeric else None
    numbers = [as_number(value) for value in values or ()]
    present = tuple(number for number in numbers if number is not None)
    return present if present and len(present) == len(numbers) else None


def ranges_of(
    relation: n.Relation, policy: Policy, rows: Callable[[n.Aggregate], int | None]
) -> Ranges:
    """Collect what is known about the columns of a relation. `rows` bounds the rows of a group by declared limits."""
    ranges = Ranges(policy, rows, root=relation, remembered={})
    ranges.follow(relation)
    ranges.conditions = tuple(conditions_on(relation))
    for condition in ranges.conditions:
        learn(ranges, condition)
    return ranges


# ── rules ────────────────────────────────────────────────────────────────────────────────────────


@RANGES.rule(n.Column, id="range.column")
def _column(r: Ranges, node: n.Column) -> iv.Interval:
    interval = iv.EVERYTHING
    if node.name in r.origins:
        interval = declared(r.policy, *r.origins[node.name])
    elif node.name in r.aggregations:
        interval = _aggregation(r, *r.aggregations[node.name])
    elif node.name in r.windows and r.root is not None:
        call, below = r.windows[node.name]  # what the row itself has passed says nothing of others
        interval = window_range(call, ranges_of(below, r.policy, r.rows))
    elif node.name in r.merged:
        interval = iv.hull(*(r.of(side) for side in r.merged[node.name]))
    elif node.name in r.definitions:
        interval = r.of(r.definitions[node.name])
    both = iv.meet(interval, r.filtered.get(node.name, iv.EVERYTHING))
    interval = interval if both is None else both
    return interval if r.root is None else _compared(r, node, _counted(r, node, interval))


def window_range(call: n.WindowCall, rows: Ranges) -> iv.Interval:
    """Give the range of a window call from what is known of all rows that it may look at (range.window)."""
    function, arguments = call.function, call.arguments
    if function in ("percent_rank", "cume_dist"):
        return iv.Interval(Fraction(0), Fraction(1))
    if function in ("row_number", "rank", "dense_rank"):
        return iv.Interval(Fraction(1), None)
    if function == "ntile":
        return iv.Interval(Fraction(1), rows.of(arguments[0]).high)
    if function == "count" or function in SPREAD:
        return iv.Interval(Fraction(0), None)
    if function == "sum":
        return iv.EVERYTHING
    # One of the values, or between them; lag and lead may also give their default.
    return iv.hull(
        rows.of(arguments[0]), rows.of(arguments[-1] if len(arguments) == 3 else arguments[0])
    )


def _counted(r: Ranges, node: n.Column, interval: iv.Interval) -> iv.Interval:
    """Narrow the range of a column with few values to those that pass the conditions (range.values)."""
    if node.name not in r.listed and not (
        node.name in r.origins and r.policy.column(*r.origins[node.name]).values is not None
    ):
        return interval
    points = points_of(r, node)
    both = None if points is None else iv.meet(interval, iv.Interval(min(points), max(points)))
    return interval if both is None else both


def _compared(r: Ranges, node: n.Column, interval: iv.Interval) -> iv.Interval:
    """Narrow a column by the columns that conditions compare it with (range.compared)."""
    if node.name not in r.relations or node.name in r.asking or len(r.asking) >= 3:
        return interval
    r.asking.add(node.name)
    for op, other in r.relations[node.name]:
        theirs = r.of(other)
        limit = theirs if op == "=" else iv.EVERYTHING
        if op in ("<", "<="):
            limit = iv.Interval(None, theirs.high)
        elif op in (">", ">="):
            limit = iv.Interval(theirs.low, None)
        both = iv.meet(interval, limit)
        interval = interval if both is None else both
    r.asking.discard(node.name)
    return interval


def declared(policy: Policy, table: str, column: str) -> iv.Interval:
    """Give the interval that the policy declares for a column."""
    facts = policy.column(table, column)
    if facts.range is not None:
        low, high = as_number(facts.range[0]), as_number(facts.range[1])
        if low is not None and high is not None:
            return iv.Interval(low, high)
    if facts.values is not None:
        numbers = [as_number(v) for v in facts.values]
        ends = [v for v in numbers if v is not None]
        if ends and len(ends) == len(numbers):
            return iv.Interval(min(ends), max(ends))
    return iv.EVERYTHING


def _aggregation(r: Ranges, call: n.Aggregation, group: n.Aggregate) -> iv.Interval:
    rows = r.rows(group)
    if r.root is not None:
        return _group(r, call, group, rows)
    count = iv.Interval(Fraction(0), None if rows is None else Fraction(rows))
    if call.function == "count":
        return count
    assert call.argument is not None
    inner = r.of(call.argument)
    if call.function in ("min", "max", "avg", "median", "mode", "quantile_cont", "quantile_disc"):
        return inner
    if call.function == "sum":
        return iv.hull(iv.multiply(inner, count), iv.point(0)) if rows else iv.EVERYTHING
    return iv.Interval(Fraction(0), None) if call.function in SPREAD else iv.EVERYTHING


def _group(r: Ranges, call: n.Aggregation, group: n.Aggregate, rows: int | None) -> iv.Interval:
    """Give the range of an inner aggregate; a group with keys has a row, and one row if the keys tell rows apart."""
    keys = frozenset(key.name for key in group.keys)
    settled = {k.expression.name for k in group.keys if isinstance(k.expression, n.Column)}
    if rows != 1 and keys:
        group_keys = keys_after(group.input, lambda scan: declared_keys(r.policy, scan))
        if identifies(group_keys, keys | settled):
            rows = 1
    certain = bool(keys) and (call.argument is None or not may_be_null(r, call.argument))
    value = iv.EVERYTHING if call.argument is None else r.of(call.argument)
    if call.second is not None or call.function == "product":
        return iv.EVERYTHING
    row = Stratum(value, int(certain), rows)
    found_range = aggregate_range(call.function, (row,), distinct=call.distinct)
    return iv.EVERYTHING if found_range is None else found_range


@RANGES.rule(n.Literal, id="range.literal")
def _literal(r: Ranges, node: n.Literal) -> iv.Interval:
    value = as_number(node.value)
    return iv.EVERYTHING if value is None else iv.point(value)


@RANGES.rule(n.Arithmetic, id="range.arithmetic")
def _arithmetic(r: Ranges, node: n.Arithmetic) -> iv.Interval:
    if "INTERVAL" in (type_of(node.left).kind, type_of(node.right).kind):
        return iv.EVERYTHING
    a, b = r.of(node.left), r.of(node.right)
    if node.op == "+":
        interval = _repeated(r, node, iv.add(a, b))
    elif node.op == "-":
        interval = _repeated(r, node, iv.add(a, iv.negate(b)))
    elif node.op == "*" and same(node.left, node.right):
        interval = iv.whole_power(a, 2)
    elif node.op == "*":
        interval = _repeated(r, node, iv.multiply(a, b))
    elif node.op == "/":
        interval = iv.divide(a, b)
    else:
        return iv.EVERYTHING
    return iv.shortened(interval)  # squares of squares of squares would fill the memory


def _repeated(r: Ranges, node: n.Arithmetic, interval: iv.Interval) -> iv.Interval:
    """Narrow a range where a column stands on both sides: x * (1 - x) on [0, 1] is at most 1/4 (range.affine)."""
    if not columns_of(node.left) & columns_of(node.right):
        return interval
    form = form_of(node, Setting(r.of, linear=True))
    both = None if form is None else iv.meet(interval, form.range())
    return interval if both is None else both


@RANGES.rule(n.Negate, id="range.negate")
def _negate(r: Ranges, node: n.Negate) -> iv.Interval:
    return iv.negate(r.of(node.operand))


@RANGES.rule(n.Case, id="range.case")
def _case(r: Ranges, node: n.Case) -> iv.Interval:
    values = [b.value for b in node.branches] + [node.default]
    intervals: list[iv.Interval] = []
    # Branches that are constants are not worth the time that judging them takes.
    if r.root is not None and any(columns_of(v) for v in values):
        intervals = _reached(r, node)
    if not intervals:
        intervals = [r.of(v) for v in values if not (isinstance(v, n.Literal) and v.value is None)]
    result = intervals[0] if intervals else iv.EVERYTHING
    for item in intervals[1:]:
        result = iv.hull(result, item)
    return result


def _reached(r: Ranges, node: n.Case) -> list[iv.Interval]:
    """Give the ranges of branches that a row can reach, each under its own condition."""
    intervals: list[iv.Interval] = []
    for branch in node.branches:
        outcome = judge(r, branch.condition)
        if outcome.never:
            continue
        if not (isinstance(branch.value, n.Literal) and branch.value.value is None):
            tied = bool(columns_of(branch.value) & columns_of(branch.condition))
            tied = tied and r.nested < MOST_NESTED
            intervals.append((r.under(branch.condition) if tied else r).of(branch.value))
        if outcome.always:
            return intervals
    if not (isinstance(node.default, n.Literal) and node.default.value is None):
        intervals.append(r.of(node.default))
    return intervals


@RANGES.rule(n.Cast, id="range.cast")
def _cast(r: Ranges, node: n.Cast) -> iv.Interval:
    inner = r.of(node.operand)
    source = type_of(node.operand)
    if node.type.kind in ("DOUBLE", "TIMESTAMP") or node.type == source:
        return inner
    if source.kind == "BOOLEAN" and node.type.numeric:
        return iv.interval(0, 1)
    if node.type.kind in ("INTEGER", "DECIMAL") and source.numeric:
        # Rounding to the target's step moves a value by at most half a step.
        half = Fraction(1, 2 * 10**node.type.scale)
        return iv.add(inner, iv.Interval(-half, half))
    return iv.EVERYTHING


@RANGES.rule(n.Attempt, id="range.attempt")
def _attempt(r: Ranges, node: n.Attempt) -> iv.Interval:
    return r.of(node.operand)


@RANGES.rule(n.Clamp, id="range.clamp")
def _clamp(r: Ranges, node: n.Clamp) -> iv.Interval:
    return iv.smaller(iv.larger(r.of(node.operand), r.of(node.low)), r.of(node.high))


@RANGES.rule(n.Quantize, id="range.quantize")
def _quantize(r: Ranges, node: n.Quantize) -> iv.Interval:
    return r.of(as_product(node))


@RANGES.rule(n.Extract, id="range.extract")
def _extract(r: Ranges, node: n.Extract) -> iv.Interval:
    fixed = {"quarter": (1, 4), "month": (1, 12), "day": (1, 31), "dow": (0, 6), "doy": (1, 366),
             "hour": (0, 23), "minute": (0, 59), "second": (0, 60), "week": (1, 53), "isodow": (1, 7)}  # fmt: skip
    if node.part in fixed:
        return iv.interval(*fixed[node.part])
    inner = r.of(node.operand)
    if not inner.bounded:
        return iv.EVERYTHING
    if node.part == "epoch":
        return iv.multiply(inner, iv.point(Fraction(86_400)))
    ends = [year_of(end) for end in inner.ends()]
    years = [y for y in ends if y is not None]
    if len(years) < 2 or node.part not in _IN_YEARS:
        return iv.EVERYTHING
    return iv.interval(*map(_IN_YEARS[node.part], years, (-1, 1)))


_IN_YEARS: dict[str, Callable[[int, int], int]] = {
    "year": lambda year, _: year,
    "isoyear": lambda year, side: (
        year + side
    ),  # the first days of a year may belong to the last week before it
    "decade": lambda year, _: year // 10,
    "century": lambda year, _: (year - 1) // 100 + 1,
}


def year_of(days: Fraction) -> int | None:
    """Give the year of a day count, or None outside the calendar."""
    when = date_of(int(days.__floor__()))
    return None if when is None else when.year


@RANGES.rule(n.Call, id="range.call")
def _call(r: Ranges, node: n.Call) -> iv.Interval:
    rule = FUNCTIONS[node.function].range
    if rule is None:
        return iv.EVERYTHING
    constants = [a.value if isinstance(a, n.Literal) else None for a in node.arguments]
    return rule([r.of(a) for a in node.arguments], constants)


def as_text(node: n.Scalar) -> str | None:
    """Read a written text."""
    return node.value if isinstance(node, n.Literal) and isinstance(node.value, str) else None
