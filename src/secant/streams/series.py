"""From released numbers to the series that is shown, with the ends between which true numbers lie.

In: a compiled stream and its books. Out: rows, errors, a picture, lines of JSON. All of it is post-processing of public
numbers: it can be done again at any time, and by anybody.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from typing import Any

from secant.errors import UsageError
from secant.noise.continual import Estimate, Mechanism, Point
from secant.noise.continual.afterwards import followed, isotonic, revised
from secant.noise.continual.mechanisms import ranges
from secant.numeric.arrays import np
from secant.plan import nodes as n
from secant.plan.evaluate.evaluate import evaluate
from secant.plan.rewrites.rewrite import columns_of, substitute, transform
from secant.records import frozen
from secant.release.answer import Answer, plain
from secant.release.measured import value_of
from secant.release.release_plan import released_fields
from secant.sensitivity.summands import never_negative
from secant.streams.compiling import Compiled
from secant.streams.reading import Group
from secant.streams.values import is_truthful

Ends = tuple[float, float] | None
LEVEL = 0.95
"""Of printed ends."""


@frozen
class Step:
    """One row of a series: a step and group, with the numbers shown for it and their ends."""

    step: object
    """Where the step begins."""
    number: int
    """Counted from 1."""
    values: Mapping[str, object]
    low: Mapping[str, float | None]
    high: Mapping[str, float | None]

    def to_dict(self) -> dict[str, Any]:
        """Give the step as `secant stream --json` prints it."""
        return {
            "step": plain(self.step),
            "number": self.number,
            "values": {name: plain(value) for name, value in self.values.items()},
            "low": dict(self.low),
            "high": dict(self.high),
        }


@frozen
class Afterwards:
    """What is made of released numbers before they are shown."""

    revised: bool = False
    isotonic: bool = False
    spread: float | None = None
    """How far a step usually lies from the one before: the belief of a filter."""


@frozen
class Series:
    """A stream so far. Every number was drawn once; asking again shows the same."""

    name: str
    answer: Answer
    """Rows, guarantee, errors and price, as a query gives them."""
    numbers: tuple[int, ...]
    """Beside each row the number of its step."""
    keys: tuple[str, ...]
    """The columns that say which group a row is of."""
    shows: str | int
    seconds_to_next: float | None = None
    """When the next step is complete, from when this was asked; None where none comes, or no clock says when."""
    again: Callable[[Afterwards], Shown] | None = field(default=None, repr=False, compare=False)
    """Makes the rows anew from the same released numbers."""

    def afterwards(
        self, *, revised: bool = False, isotonic: bool = False, spread: float | None = None
    ) -> Series:
        """Make better estimates of the same released numbers, for nothing.

        Rests on continual.revised, continual.isotonic, continual.filter.

        Args:
            revised: Weigh all numbers up to the last step together: earlier steps profit from blocks that were complete
                only later, so what is shown of them changes as time goes by.
            isotonic: For running totals of what is never below zero: give the nearest series that never falls. Ends
                stay those of the series before.
            spread: Follow the steps as a walk that moves by about so much from step to step: a Kalman filter through
                all numbers so far. It is a belief: if it is wrong the series is. Ends stay those of the series before.
        """
        if self.again is None:
            return self
        revised_series = self.again(Afterwards(revised, isotonic, spread))
        error = {**self.error, **errors_of(revised_series)}
        answer = replace(
            self.answer, rows=revised_series.rows, raw=revised_series.rows, error=error
        )
        return replace(self, answer=answer)

    @property
    def columns(self) -> list[str]:
        """Names of the columns; the first is the step."""
        return self.answer.columns

    @property
    def rows(self) -> list[tuple[Any, ...]]:
        """One row for each step and group."""
        return self.answer.rows

    @property
    def guarantee(self) -> list[dict[str, Any]]:
        """What is promised, and to which protection it was charged."""
        return self.answer.guarantee

    @property
    def error(self) -> dict[str, Any]:
        """Beside each number the ends between which the true one lies, at `level`."""
        return self.answer.error

    @property
    def steps(self) -> list[Step]:
        """Give the rows one by one, each with its ends."""
        names = self.columns
        entries = []
        for index, row in enumerate(self.rows):
            low, high = (self._ends(side, index) for side in ("low", "high"))
            entries.append(
                Step(
                    row[0],
                    self.numbers[index],
                    dict(zip(names[1:], row[1:], strict=True)),
                    low,
                    high,
                )
            )
        return entries

    def _ends(self, side: str, index: int) -> dict[str, float | None]:
        ends = self.error[side][index]
        return {
            name: end
            for name, end in zip(self.columns[1:], ends[1:], strict=True)
            if name not in self.keys
        }

    def to_pandas(self, *, errors: bool = False) -> Any:
        """Give the rows as a pandas DataFrame (extra `frames`), with `errors` also the ends."""
        return self.answer.to_pandas(errors=errors)

    def to_polars(self, *, errors: bool = False) -> Any:
        """Give the rows as a Polars DataFrame (extra `frames`), with `errors` also the ends."""
        return self.answer.to_polars(errors=errors)

    def to_arrow(self, *, errors: bool = False) -> Any:
        """Give the rows as an Arrow table (extra `frames`), with `errors` also the ends."""
        return self.answer.to_arrow(errors=errors)

    def __str__(self) -> str:
        return str(self.answer)

    def _repr_html_(self) -> str:
        return self.answer._repr_html_()

    def to_dict(self) -> dict[str, Any]:
        """Give the series as plain values."""
        return {"stream": self.name, **self.answer.to_dict(), "numbers": list(self.numbers)}

    def __iter__(self) -> Iterator[Step]:
        return iter(self.steps)

    def __len__(self) -> int:
        return len(self.rows)


@frozen
class Shown:
    """Rows of a series with their ends, before the price is put beside them."""

    columns: list[str]
    rows: list[tuple[Any, ...]]
    ends: list[list[Ends]]
    numbers: list[int]


def shown(
    compiled: Compiled,
    ways: Sequence[Mechanism],
    groups: Sequence[Group],
    values: Mapping[str, int],
    until: int,
    since: int = 1,
    after: Afterwards = Afterwards(),  # noqa: B008 - frozen
) -> Shown:
    """Give the rows of some steps, from the numbers in the books."""
    _check_fits(compiled, after)
    formulas = _formulas(compiled.post)
    columns = [f.name for f in formulas]
    if until < since:
        return Shown(columns, [], [], [])
    parts = _split(values, len(ways), len(groups))
    measures = [m.column for m in compiled.bounded.release.measures]
    # Where a filter was softened, the noise tells nothing of how far the question's own number is.
    truthful = is_truthful(compiled.bounded)
    stated = [_stated(f.expression, measures) if truthful else () for f in formulas]
    # Ends of what is made of several measures hold together if each holds at a higher level.
    level = 1 - (1 - LEVEL) / max(1, *(len(s) for s in stated))

    def points_at(level: float) -> list[list[tuple[Point, ...]]]:
        return [
            [
                revised(way, parts[m][g], until, since, level)
                if after.revised
                else way.series(parts[m][g], until, since, level)
                for g in range(len(groups))
            ]
            for m, way in enumerate(ways)
        ]

    points = points_at(LEVEL)
    places = [(t, g) for t in range(until - since + 1) for g in range(len(groups))]

    def chosen(points: list[list[tuple[Point, ...]]]) -> list[list[Estimate]]:
        shows = compiled.stream.shows
        return [[_estimate(points[m][g][t], shows) for m in range(len(ways))] for t, g in places]

    plain_ends = chosen(points)
    wide_ends = plain_ends if level == LEVEL else chosen(points_at(level))
    numbers = [[e.value for e in row] for row in plain_ends]
    if after.spread is not None:
        numbers = _followed(compiled, ways, parts, (since, until), after.spread)
    if after.isotonic:
        numbers = _never_falling(numbers, len(groups))
    table = _table(compiled, groups, places, numbers, since)
    rows = _finished(compiled.post, table)
    ends = _ends(compiled, stated, groups, places, (plain_ends, wide_ends), since)
    return Shown(columns, rows, ends, [since + t for t, _ in places])


def _check_fits(compiled: Compiled, after: Afterwards) -> None:
    """Refuse what would not be a better estimate of what the stream shows."""
    shows = compiled.stream.shows
    if after.revised and shows not in ("running", "steps"):
        raise UsageError(
            "USE-010",
            "sums of the last steps are not revised",
            hint='declare a stream with shows = "running" or "steps", or leave `revised` out',
        )
    if after.spread is not None:
        if not 0 < after.spread < math.inf:
            raise UsageError("USE-010", "how far steps lie apart is a number above 0")
        if after.revised or len(compiled.bounded.release.measures) != 1:
            raise UsageError(
                "USE-010",
                "a filter follows one count or sum, and weighs all numbers by itself",
                hint="leave `revised` out, and declare a stream for each count or sum (an average is made of two)",
            )
    calls = compiled.bounded.release.exact.aggregations
    if after.isotonic and not (shows == "running" and all(map(never_negative, calls))):
        raise UsageError(
            "USE-010",
            "only running totals of what is never below zero cannot fall",
            hint="leave `isotonic` out, or declare a stream of running counts, or of sums whose range begins at 0",
        )


def _followed(
    compiled: Compiled,
    ways: Sequence[Mechanism],
    parts: list[list[dict[str, int]]],
    ends: tuple[int, int],
    spread: float,
) -> list[list[float]]:
    """Give the numbers of each step and group as a walk through all that was released (continual.filter)."""
    since, until = ends
    (measure,) = compiled.bounded.release.measures
    drift = (spread / float(measure.step)) ** 2
    columns = []
    for released in parts[0]:
        steps = followed(ways[0], released, until, drift)
        running = np.concatenate(([0.0], np.cumsum(steps)))
        low, high = ranges(until, compiled.stream.shows)
        columns.append((running[high] - running[low])[since - 1 :])
    return [[float(value)] for row in zip(*columns, strict=True) for value in row]


def _never_falling(numbers: list[list[float]], groups: int) -> list[list[float]]:
    """Make each measure of each group a series that does not fall; groups alternate in the rows."""
    rows_revised = [list(row) for row in numbers]
    for group in range(groups):
        rows = rows_revised[group::groups]
        for measure in range(len(rows[0])):
            for row, value in zip(rows, isotonic([r[measure] for r in rows]), strict=True):
                row[measure] = value
    return rows_revised


def errors_of(table: Shown) -> dict[str, Any]:
    """Give the ends beside all numbers, and half of the width between them."""
    half = [[None if e is None else (e[1] - e[0]) / 2 for e in row] for row in table.ends]
    return {
        "low": [[None if e is None else e[0] for e in row] for row in table.ends],
        "high": [[None if e is None else e[1] for e in row] for row in table.ends],
        "noise": half,
        "values": half,
    }


def key_columns(compiled: Compiled) -> tuple[str, ...]:
    """Give the columns that say which group a row is of, besides the step."""
    names = {*compiled.group_keys, compiled.step_key}
    formulas = _formulas(compiled.post)
    return tuple(
        f.name
        for f in formulas[1:]
        if isinstance(f.expression, n.Column) and f.expression.name in names
    )


def _estimate(point: Point, shows: str | int) -> Estimate:
    if shows == "running":
        return point.prefix
    estimate = point.increment if shows == "steps" else point.window
    assert estimate is not None, "sums of last steps are there where they are shown"
    return estimate


def _split(values: Mapping[str, int], measures: int, groups: int) -> list[list[dict[str, int]]]:
    """Give the numbers of each measure and group, by output."""
    by_group: list[list[dict[str, int]]] = [[{} for _ in range(groups)] for _ in range(measures)]
    for name, value in values.items():
        measure, group, output = name.split("/", 2)
        by_group[int(measure)][int(group)][output] = value
    return by_group


def _table(
    compiled: Compiled,
    groups: Sequence[Group],
    places: Sequence[tuple[int, int]],
    numbers: Sequence[Sequence[float]],
    since: int,
) -> n.Values:
    """Give the released table with some numbers for each step and group, as whole steps of the measures."""
    measures = compiled.bounded.release.measures
    rows = []
    for (t, g), row in zip(places, numbers, strict=True):
        typed = [value_of(round(x), m) for x, m in zip(row, measures, strict=True)]
        rows.append((compiled.calendar.first(since + t), *groups[g], *typed))
    return n.Values(released_fields(compiled.bounded), tuple(rows))


def _finished(post: n.Relation, table: n.Values) -> list[tuple[Any, ...]]:
    """Apply the owner's formulas to a released table."""
    plan = transform(post, lambda node: table if isinstance(node, n.Released) else node)
    assert isinstance(plan, n.Relation)
    return [tuple(row) for row in evaluate(plan, {})]


def _formulas(post: n.Relation) -> list[n.Named]:
    """Give what each column is, over the released table."""
    items: list[n.Named] = []
    node = post
    while isinstance(node, n.Project):
        under = {i.name: i.expression for i in node.items}
        items = (
            [replace(i, expression=substitute(i.expression, under)) for i in items]
            if items
            else list(node.items)
        )
        node = node.input
    return items


def _ends(
    compiled: Compiled,
    stated: list[tuple[str, ...]],
    groups: Sequence[Group],
    places: Sequence[tuple[int, int]],
    chosen: tuple[list[list[Estimate]], list[list[Estimate]]],
    since: int,
) -> list[list[Ends]]:
    """Give the ends of each number: formulas that go one way in each measure are largest and least in corners."""
    measures = [m.column for m in compiled.bounded.release.measures]
    ends: list[list[Ends]] = [[None] * len(stated) for _ in places]
    unlimited = _unlimited(compiled.post)
    for level in {s for s in stated if s}:
        estimates = chosen[0] if len(level) == 1 else chosen[1]
        tables = [
            _table(compiled, groups, places, numbers, since)
            for numbers in _corners(estimates, [measures.index(c) for c in level])
        ]
        corners = [_finished(compiled.post, table) for table in tables]
        free = [_finished(unlimited, table) for table in tables]
        for column, used in enumerate(stated):
            if used == level:
                for index in range(len(places)):
                    limited, wide = (
                        [float(c[index][column]) for c in several] for several in (corners, free)
                    )
                    ends[index][column] = _not_too_certain(
                        (min(limited), max(limited)), (min(wide), max(wide))
                    )
    return ends


def _unlimited(post: n.Relation) -> n.Relation:
    """Give the same formulas without the limits that are put on what is shown, such as zero for counts."""
    released = next(node for node in n.walk(post) if isinstance(node, n.Released))
    return n.Project(
        released, tuple(replace(f, expression=_inside(f.expression)) for f in _formulas(post))
    )


def _inside(scalar: n.Scalar) -> n.Scalar:
    if isinstance(scalar, n.Clamp):
        return scalar.operand
    if isinstance(scalar, n.Call) and scalar.function in ("greatest", "least"):
        others = [a for a in scalar.arguments if not isinstance(a, n.Literal)]
        return others[0] if len(others) == 1 else scalar
    return scalar


def _not_too_certain(limited: tuple[float, float], wide: tuple[float, float]) -> Ends:
    """Keep half of the width where noise went beyond a limit, as answers of queries do: 0 to 0 would look certain."""
    half = (wide[1] - wide[0]) / 2
    if limited[1] - limited[0] >= half:
        return limited
    if wide[0] < limited[0]:
        return limited[0], limited[0] + half
    return limited[1] - half, limited[1]


def _corners(chosen: Sequence[Sequence[Estimate]], used: list[int]) -> Iterator[list[list[float]]]:
    """Put every combination of low and high ends in the place of some measures."""
    for sides in itertools.product(("low", "high"), repeat=len(used)):
        side_of = dict(zip(used, sides, strict=True))
        yield [
            [getattr(e, side_of[i]) if i in side_of else e.value for i, e in enumerate(row)]
            for row in chosen
        ]


_STEADY = (n.Column, n.Literal, n.Cast, n.Clamp, n.Negate)


def _stated(expression: n.Scalar, measures: list[str]) -> tuple[str, ...]:
    """Give the measures of a formula whose ends can be stated: in each it rises or falls, whatever the others are."""
    used = tuple(m for m in measures if m in columns_of(expression))
    return used if used and _steady(expression) else ()


def _steady(node: n.Node) -> bool:
    if isinstance(node, n.Call) and node.function in ("greatest", "least"):
        return all(_steady(a) for a in node.arguments)
    if isinstance(node, n.Arithmetic):
        left, right = columns_of(node.left), columns_of(node.right)
        if left & right or node.op not in ("+", "-", "*", "/"):
            return False
        if node.op == "/" and right and not _positive(node.right):
            return False
        return _steady(node.left) and _steady(node.right)
    return isinstance(node, _STEADY) and all(_steady(child) for child in n.children(node))


def _positive(node: n.Scalar) -> bool:
    """Whether a divisor is at least some number above zero, as that of an average is."""
    if isinstance(node, n.Cast):
        return _positive(node.operand)
    if isinstance(node, n.Arithmetic) and node.op == "+" and isinstance(node.right, n.Literal):
        more: Any = node.right.value
        return more is not None and more >= 0 and _positive(node.left)
    return (
        isinstance(node, n.Call)
        and node.function == "greatest"
        and any(isinstance(a, n.Literal) and a.value and a.value > 0 for a in node.arguments)  # type: ignore[operator]
    )
