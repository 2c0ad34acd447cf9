"""Groups by a protected column whose values the owner has listed: one soft filter for each value.

In: rows that public columns decide, the keys of a grouping, declared values. Out: the rows joined with the lists, with
the equality of column and list item as one more condition to soften; and how many joined rows of one row move at once,
at most (derivative.listed). Which groups are shown follows from the lists alone. Never here: data.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction

from secant.plan import nodes as n
from secant.plan.facts.ranges import as_number
from secant.plan.rewrites.rewrite import substitute
from secant.sensitivity.certificate import CannotBound
from secant.sensitivity.derivative.soften.emptiness import moves
from secant.sensitivity.derivative.soften.stripped import Stripped
from secant.sensitivity.derivative.soften.tuning import of_kind
from secant.sensitivity.derivative.summand import all_of, factors, is_ramp

MOST_LISTED = 1_000
"""Values of all lists together: each row is joined with each of them."""


def with_lists(
    stripped: Stripped,
    keys: Sequence[n.Named],
    protected: frozenset[str],
    values_of: Callable[[n.Column], tuple[object, ...] | None],
) -> tuple[Stripped, dict[str, n.Column]]:
    """Join a list for each key that is a protected column; give the rows, and by key the column to group by."""
    columns: dict[str, n.Column] = {}
    relation, conditions, joined = stripped.relation, stripped.conditions, 1
    for key in keys:
        expression = substitute(key.expression, stripped.definitions)
        if not moves(expression, protected):
            continue
        values = values_of(expression) if isinstance(expression, n.Column) else None
        if values is None or not isinstance(expression, n.Column):
            raise CannotBound(
                "derivative.keys",
                key.expression,
                "groups by a protected value would show where it lies",
                "group by public columns, or let the owner declare the `values` of the column",
            )
        numbers = [as_number(v) for v in dict.fromkeys(values)]
        joined *= len(numbers)
        if joined > MOST_LISTED or any(number is None for number in numbers):
            raise CannotBound(
                "derivative.listed",
                key.expression,
                "the values of the column are too many, or no numbers and dates",
                "ask for each group with a condition of its own",
            )
        column = n.Column(f"{key.name}.listed", expression.type)
        present = sorted(number for number in numbers if number is not None)
        rows = tuple((of_kind(number, expression.type),) for number in present)
        items = n.Values((n.Field(column.name, column.type),), rows)
        relation = n.Join("cross", relation, items, None)
        ends = [n.Literal(rows[index][0], column.type) for index in (0, -1)]
        # The clamp changes nothing: it says how large items are.
        conditions += (n.Compare("=", expression, n.Clamp(column, ends[0], ends[1])),)
        columns[key.name] = column
    return Stripped(relation, stripped.definitions, conditions), columns


def rows_moving_together(value: n.Scalar, lists: Iterable[n.Values]) -> int:
    """Give how many joined rows of one row move at once, at most: a row is near few values of a list.

    Rests on derivative.listed.
    """
    filtering = _filter_of(value)
    margins = [] if filtering is None else all_of(filtering.arguments[0])
    number = 1
    for items in lists:
        near = [m for p in margins if (m := _near(p, items)) is not None]
        number *= min([len(items.rows), *near])
    return number


def _filter_of(value: n.Scalar) -> n.Call | None:
    """Give the ramp without which nothing of a summand, or of the excess over an end, is left."""
    for part in (
        value,
        value.right if isinstance(value, n.Arithmetic) and value.op == "+" else value,
    ):
        for factor in factors(part):
            if is_ramp(factor):
                assert isinstance(factor, n.Call)
                return factor
    return None


def _near(margin: n.Scalar, items: n.Values) -> int | None:
    """Read 1/2 - |gap|/h with an item of the list on the gap's right; give how many items lie within h, at most."""
    if not (isinstance(margin, n.Arithmetic) and margin.op == "+" and _is(margin.right, 0.5)):
        return None
    sign = margin.left
    if not (isinstance(sign, n.Arithmetic) and sign.op == "*" and _is(sign.left, -1.0)):
        return None
    scaled, weight = sign.right, Fraction(1)
    if isinstance(scaled, n.Arithmetic) and scaled.op == "*" and isinstance(scaled.left, n.Literal):
        weight, scaled = as_number(scaled.left.value) or Fraction(0), scaled.right
    if not (isinstance(scaled, n.Call) and scaled.function == "abs") or weight <= 0:
        return None
    gap = scaled.arguments[0]
    if not (isinstance(gap, n.Arithmetic) and gap.op == "-"):
        return None
    names = [f.name for f in items.columns]
    numbers = [x for row in items.rows if (x := as_number(row[0])) is not None]
    if len(names) != 1 or len(numbers) < len(items.rows) or _reads(gap.left, names[0]):
        return None
    if _item(gap.right, numbers) != names[0]:
        return None
    return max(sum(0 <= b - a < 2 / weight for b in numbers) for a in numbers)


def _item(scalar: n.Scalar, numbers: Sequence[Fraction]) -> str | None:
    """Give the column whose value, as a number, an expression is, if it is one of these numbers."""
    while True:
        if isinstance(scalar, n.Cast) and scalar.type.kind == "DOUBLE":
            scalar = scalar.operand
        elif isinstance(scalar, n.Call) and scalar.function == "date_diff":
            scalar = scalar.arguments[-1]
        elif isinstance(scalar, n.Clamp) and _holds(scalar, numbers):
            scalar = scalar.operand
        else:
            return scalar.name if isinstance(scalar, n.Column) else None


def _holds(clamp: n.Clamp, numbers: Sequence[Fraction]) -> bool:
    ends = [
        as_number(e.value) if isinstance(e, n.Literal) else None for e in (clamp.low, clamp.high)
    ]
    low, high = ends
    return low is not None and high is not None and low <= min(numbers) and max(numbers) <= high


def _reads(scalar: n.Scalar, name: str) -> bool:
    return any(isinstance(x, n.Column) and x.name == name for x in n.walk(scalar))


def _is(scalar: n.Scalar, value: float) -> bool:
    return isinstance(scalar, n.Literal) and scalar.value == value
