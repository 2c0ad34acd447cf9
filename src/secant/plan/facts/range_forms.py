"""Expressions as affine forms of their columns, and ranges from forms that are cut into pieces.

In: an expression, intervals of its parts (a function), definitions of computed columns. Out: a range that may be
narrower than interval arithmetic gives, where a column stands in an expression more than once. Every number is exact
or rounded outward. Never here: data, or a range that the caller may believe without clamping to it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field
from fractions import Fraction

from secant.numeric import affine
from secant.numeric import interval as iv
from secant.numeric.affine import Affine
from secant.plan import nodes as n
from secant.plan.functions.scalar import FUNCTIONS, MOST_EXPONENT
from secant.plan.show import same
from secant.plan.typing import type_of
from secant.records import frozen

PIECES = 8
"""So many pieces of the variable that moves the expression most: narrow enough, and quick."""
MOST_POINTS = 64
MOST_NODES = 100
"""Larger expressions are left to interval arithmetic: compiling must stay quick."""
LARGEST = 1 << 1024
"""No engine's number is larger."""


@frozen
class Setting:
    """What is known around an expression."""

    of: Callable[[n.Scalar], iv.Interval]
    """The interval of any part."""
    definitions: Mapping[str, n.Scalar] = field(default_factory=dict)
    """Computed columns that stand for the same row's expression, and may be looked through."""
    points: Callable[[n.Column], tuple[Fraction, ...] | None] = lambda column: None
    """All values that a column may have, if they are few."""
    linear: bool = False
    """Whether only +, -, * of columns and constants are looked at; all else has no form then."""


def repeats(scalar: n.Scalar, definitions: Mapping[str, n.Scalar]) -> bool:
    """Whether some column stands in an expression more than once; else interval arithmetic is exact already."""
    seen: set[str] = set()
    stack: list[n.Node] = [scalar]
    steps = 0
    while stack:
        node = stack.pop()
        steps += 1
        if steps > MOST_NODES or isinstance(node, n.Relation):
            return False
        if isinstance(node, n.Column):
            inner = definitions.get(node.name)
            if inner is not None:
                stack.append(inner)
                continue
            if node.name in seen:
                return True
            seen.add(node.name)
        else:
            stack.extend(n.children(node))
    return False


def narrowed(scalar: n.Scalar, interval: iv.Interval, setting: Setting) -> iv.Interval:
    """Narrow the interval of an expression by its form, and by that of pieces of its inputs (range.pieces)."""
    whole = _Work(setting)
    form = whole.form(scalar)
    if form is not None:
        interval = _met(interval, form.range())
    # What interval arithmetic cannot bound at all may be bounded piece by piece: a divisor near 0.
    moving = [name for name, (_, limits) in whole.variables.items() if limits.low != limits.high]
    name = affine.widest(form) if form is not None else next(iter(moving), None)
    if name is None:
        return interval
    column, limits = whole.variables[name]
    points = setting.points(column) if isinstance(column, n.Column) else None
    if points is not None and form is not None and len(points) <= MOST_POINTS:
        inside = [p for p in points if _holds(limits, p)]
        ranges = [affine.fixed(form, name, limits, iv.point(p)).range() for p in inside]
        return interval if not ranges else _met(interval, _hull(ranges))
    parts: list[iv.Interval] = []
    for piece in affine.pieces(limits, PIECES):
        part = _Work(setting, {name: piece}).form(scalar)
        if part is None:
            return interval
        parts.append(part.range())
    return _met(interval, _hull(parts))


def form_of(scalar: n.Scalar, setting: Setting) -> Affine | None:
    """Give an expression as a straight line in its columns; None where no bounded one is found."""
    return _Work(setting).form(scalar)


def _holds(limits: iv.Interval, value: Fraction) -> bool:
    low, high = limits.ends()
    return low <= value <= high


def _hull(parts: list[iv.Interval]) -> iv.Interval:
    result = parts[0]
    for part in parts[1:]:
        result = iv.hull(result, part)
    return result


def _met(a: iv.Interval, b: iv.Interval) -> iv.Interval:
    both = iv.meet(a, b)
    return a if both is None else both  # contradictory facts: no row has a value here


class _Work:
    """Builds the form of one expression, with some variables limited to a piece."""

    def __init__(self, setting: Setting, limited: Mapping[str, iv.Interval] | None = None) -> None:
        self.setting = setting
        self.limited = limited or {}
        self.variables: dict[str, tuple[n.Scalar, iv.Interval]] = {}
        self.looked = 0

    def form(self, scalar: n.Scalar) -> Affine | None:
        """Give the form of an expression; None where there is no bounded one."""
        self.looked += 1
        if self.looked > MOST_NODES:
            return None
        form = self._form(scalar)
        # Squares of squares of squares would fill the memory.
        return form if form is None or abs(form.center) + form.radius < LARGEST else None

    def _form(self, scalar: n.Scalar) -> Affine | None:
        if isinstance(scalar, n.Column):
            inner = self.setting.definitions.get(scalar.name)
            return self._variable(scalar) if inner is None else self._defined(scalar, inner)
        if isinstance(scalar, n.Cast) and _keeps(scalar):
            return self.form(scalar.operand)
        if isinstance(scalar, n.Negate):
            operand = self.form(scalar.operand)
            return None if operand is None else affine.negate(operand)
        operators = ("+", "-", "*") if self.setting.linear else tuple(_BINARY)
        if isinstance(scalar, n.Arithmetic) and scalar.op in operators and _plain(scalar):
            return self._arithmetic(scalar)
        if self.setting.linear:
            return self._variable(scalar) if _simple(scalar) else None
        if isinstance(scalar, n.Attempt):
            return self.form(scalar.operand)
        rule = FUNCTIONS[scalar.function].form if isinstance(scalar, n.Call) else None
        if isinstance(scalar, n.Call) and rule is not None:
            operand = self.form(scalar.arguments[0])
            return None if operand is None else rule(operand)
        if isinstance(scalar, n.Call) and scalar.function == "power":
            return self._power(scalar)
        return self._variable(scalar)

    def _arithmetic(self, scalar: n.Arithmetic) -> Affine | None:
        left = self.form(scalar.left)
        if left is None:
            return None
        if scalar.op == "*" and same(scalar.left, scalar.right):
            return affine.square(left)
        right = self.form(scalar.right)
        return None if right is None else _BINARY[scalar.op](left, right)

    def _power(self, scalar: n.Call) -> Affine | None:
        exponent = self.setting.of(scalar.arguments[1])
        operand = self.form(scalar.arguments[0])
        if operand is None or not exponent.bounded or exponent.low != exponent.high:
            return None
        value = exponent.ends()[0]
        if value == 2:
            return affine.square(operand)
        return affine.power(operand, value) if abs(value) <= MOST_EXPONENT else None

    def _defined(self, column: n.Column, inner: n.Scalar) -> Affine | None:
        form = self.form(inner)
        if form is None:
            return self._variable(column)
        # A condition may say more of the computed column than its definition does.
        interval = iv.meet(form.within, self.setting.of(column))
        if interval is None or iv.meet(form.range(), interval) is None:
            return form
        return Affine(form.center, form.terms, form.error, interval)

    def _variable(self, scalar: n.Scalar) -> Affine | None:
        """Take a part as a variable of its own, if it is bounded."""
        limits = self.setting.of(scalar)
        if not limits.bounded:
            return None
        name = f"column {scalar.name}" if isinstance(scalar, n.Column) else self._name(scalar)
        self.variables.setdefault(name, (scalar, limits))
        piece = self.limited.get(name)
        return affine.variable(name, limits if piece is None else piece)

    def _name(self, scalar: n.Scalar) -> str:
        """Equal parts of one row have equal values, so they share a name."""
        for name, (expression, _) in self.variables.items():
            if same(expression, scalar):
                return name
        return f"part {len(self.variables)}"


def _simple(scalar: n.Scalar) -> bool:
    """Whether a part is a constant or a clamped column, which is another variable than the bare one."""
    clamped = isinstance(scalar, n.Clamp) and isinstance(scalar.operand, n.Column)
    return clamped or isinstance(scalar, n.Literal)


def _keeps(scalar: n.Cast) -> bool:
    """Whether a value stays the same number."""
    return scalar.type.kind == "DOUBLE" and type_of(scalar.operand).numeric


def _plain(scalar: n.Arithmetic) -> bool:
    return "INTERVAL" not in (type_of(scalar.left).kind, type_of(scalar.right).kind)


_BINARY: dict[str, Callable[[Affine, Affine], Affine | None]] = {
    "+": affine.add,
    "-": affine.subtract,
    "*": affine.multiply,
    "/": affine.divide,
}
