"""OWNER ONLY: what declared limits, ranges and values cut off in the data at hand, and which would cut off less.

In: a policy and a session. Out: exact figures of protected tables. Nothing here is private, nothing is charged, and
nothing but `secant check --look` calls it: no connection leads here. Every table is read once for each unit whose
rows it holds, or once.
"""

from __future__ import annotations

import calendar
import datetime
import math
from collections.abc import Iterable
from decimal import Decimal

from secant.engines.backend import Backend, Session
from secant.engines.dialect import constant, quote, stored_rows
from secant.plan.facts.ownership import Paths
from secant.plan.facts.ranges import as_number
from secant.policy.policy import ColumnFacts, Policy, Protection
from secant.records import frozen
from secant.schema import types as t

SHARE = "0.999"
"""A proposed limit holds for this share of the units."""


@frozen
class LimitLook:
    """What a limit of rows of a unit does. Exact figures: not private."""

    table: str
    protection: str
    limit: int | None
    units: int
    rows: int
    units_over: int
    rows_lost: int
    rows_without_unit: int
    most: int
    proposed: int

    @property
    def lines(self) -> tuple[str, ...]:
        """Lines of TOML to paste, where the proposal differs."""
        if self.limit == self.proposed or not self.units:
            return ()
        return (
            f"[protections.{_key(self.protection)}.limits]",
            f"{_key(self.table)} = {self.proposed}",
        )


@frozen
class ColumnLook:
    """What a declared range, or a list of values, does. Exact figures: not private."""

    table: str
    column: str
    rows: int
    nulls: int
    below: int
    above: int
    unlisted: int | None
    least: object
    most: object
    declared: tuple[object, object] | None
    proposed: tuple[object, object] | None

    @property
    def lines(self) -> tuple[str, ...]:
        """Lines of TOML to paste, where the proposal differs."""
        if self.proposed is None or self.proposed == self.declared:
            return ()
        low, high = (_value_text(x) for x in self.proposed)
        return (
            f"[tables.{_key(self.table)}.columns.{_key(self.column)}]",
            f"range = [{low}, {high}]",
        )


@frozen
class Look:
    """Everything that was found."""

    limits: tuple[LimitLook, ...]
    columns: tuple[ColumnLook, ...]


def look(policy: Policy, backend: Backend) -> Look:
    """Read every table of the policy that is there, and hold what is declared against its rows."""
    catalog = backend.catalog()
    tables = [name for name in policy.tables if catalog.table(name) is not None]
    units = [p for p in policy.protections if p.kind == "unit"]
    reached = {name for p in units for name in Paths(policy, p).reached if catalog.table(name)}
    limits: list[LimitLook] = []
    columns: list[ColumnLook] = []
    with backend.session({*tables, *reached}) as session:
        for table in sorted({*tables, *reached}):
            columns_asked = _declared(policy, session, table)
            owning = [p for p in units if table in Paths(policy, p).reached]
            for index, protection in enumerate(owning):
                ways = _ways(Paths(policy, protection), table)
                looks = _by_unit(
                    session, policy, protection, table, ways, columns_asked if not index else []
                )
                limits.append(looks[0])
                columns += looks[1]
            if columns_asked and not owning:
                columns += _whole(session, policy, table, columns_asked)
    return Look(tuple(limits), tuple(columns))


def _declared(policy: Policy, session: Session, table: str) -> list[str]:
    """Give the columns with a declared range or list."""
    columns = {name.lower() for name, _ in session.catalog().tables[table].columns}
    return [
        c
        for c, facts in sorted(policy.facts(table).columns.items())
        if c in columns and (facts.range is not None or facts.values is not None)
    ]


def _ways(paths: Paths, table: str) -> list[tuple[str, str, str, str]]:
    """Give the references that lead from a table to the unit: (table, column, parent, its column)."""
    ways = []
    while table != paths.owner_table:
        column, parent, key = paths.parents[table][0]
        ways.append((table, column, parent, key))
        table = parent
    return ways


def _figures(session: Session, policy: Policy, table: str, columns: list[str]) -> list[str]:
    """Give the aggregates over rows t0 for each declared column: NULLs, below, above, unlisted, least, most."""
    kinds = {name.lower(): kind for name, kind in session.catalog().tables[table].columns}
    parts = []
    for column in columns:
        name = f"t0.{quote(session.catalog().spelled(table, [column])[1][0])}"
        facts, kind = policy.column(table, column), kinds[column]
        conditions = [
            f"{name} IS NULL",
            *_outside(name, facts, kind),
            _unlisted(session, name, facts, kind),
        ]
        parts += [f"count(*) FILTER (WHERE {c})" for c in conditions]
        parts += [f"{end}({name})" if kind.kind in _ORDERED else "NULL" for end in ("min", "max")]
    return parts


_ORDERED = ("INTEGER", "DECIMAL", "DOUBLE", "DATE")
FIGURES = 6


def _outside(name: str, facts: ColumnFacts, kind: t.Type) -> tuple[str, str]:
    if facts.range is None or kind.kind not in _ORDERED:
        return "FALSE", "FALSE"
    low, high = (_sql(x) for x in facts.range)
    return f"{name} < {low}", f"{name} > {high}"


def _unlisted(session: Session, name: str, facts: ColumnFacts, kind: t.Type) -> str:
    if facts.values is None:
        return "FALSE"
    listed = ", ".join(
        _sql(v) if kind.kind in _ORDERED else constant(session.dialect, v, kind)
        for v in facts.values
    )
    return f"{name} NOT IN ({listed})" if listed else f"{name} IS NOT NULL"


def _sql(value: object) -> str:
    return f"DATE '{value.isoformat()}'" if isinstance(value, datetime.date) else str(value)


def _by_unit(
    session: Session,
    policy: Policy,
    protection: Protection,
    table: str,
    ways: list[tuple[str, str, str, str]],
    columns: list[str],
) -> tuple[LimitLook, list[ColumnLook]]:
    """Add up a table unit by unit, and then over the units: one reading of the table."""
    spelled_names = session.catalog().spelled
    assert protection.unit is not None
    source = f"{_rows(session, table)} AS t0"
    for index, (child, column, parent, key) in enumerate(ways):
        here, there = spelled_names(child, [column])[1][0], spelled_names(parent, [key])[1][0]
        source += (
            f" LEFT JOIN {_rows(session, parent)} AS t{index + 1}"
            f" ON t{index}.{quote(here)} = t{index + 1}.{quote(there)}"
        )
    unit = f"t{len(ways)}.{quote(spelled_names(protection.unit[0], [protection.unit[1]])[1][0])}"
    parts = _figures(session, policy, table, columns)
    inner = ", ".join(
        [f"{unit} AS u", "count(*) AS n", *(f"{p} AS f{i}" for i, p in enumerate(parts))]
    )
    limit = Paths(policy, protection).limit(table)
    over = "FALSE" if limit is None else f"n > {limit}"
    owned = "FILTER (WHERE u IS NOT NULL)"
    outer = [
        f"count(*) {owned}",
        f"sum(n) {owned}",
        f"count(*) FILTER (WHERE u IS NOT NULL AND {over})",
        f"sum(n - {limit or 0}) FILTER (WHERE u IS NOT NULL AND {over})",
        "sum(n) FILTER (WHERE u IS NULL)",
        f"max(n) {owned}",
        f"percentile_disc({SHARE}) WITHIN GROUP (ORDER BY CASE WHEN u IS NOT NULL THEN n END)",
        *(f"{_again(i)}(f{i})" for i in range(len(parts))),
    ]
    statement = f"SELECT {', '.join(outer)} FROM (SELECT {inner} FROM {source} GROUP BY {unit}) AS each_unit"
    (row,) = session.rows(statement)
    units, rows, units_over, lost, without, most, usual = (_whole_number(x) for x in row[:7])
    limit_look = LimitLook(
        table, protection.name, limit, units, rows, units_over, lost, without, most, round_up(usual)
    )
    return limit_look, _columns(policy, table, columns, rows + without, row[7:])


def _again(index: int) -> str:
    """Name what puts the figures of units together."""
    return {4: "min", 5: "max"}.get(index % FIGURES, "sum")


def _whole(session: Session, policy: Policy, table: str, columns: list[str]) -> list[ColumnLook]:
    parts = _figures(session, policy, table, columns)
    (row,) = session.rows(f"SELECT count(*), {', '.join(parts)} FROM {_rows(session, table)} AS t0")
    return _columns(policy, table, columns, _whole_number(row[0]), row[1:])


def _rows(session: Session, table: str) -> str:
    return stored_rows(session.dialect, session.catalog().tables[table.lower()])


def _columns(
    policy: Policy, table: str, columns: list[str], rows: int, figures: Iterable[object]
) -> list[ColumnLook]:
    numbers = list(figures)
    looks = []
    for index, column in enumerate(columns):
        nulls, below, above, unlisted, least, most = numbers[
            index * FIGURES : (index + 1) * FIGURES
        ]
        facts = policy.column(table, column)
        outside = _whole_number(below) + _whole_number(above)
        proposed = facts.range
        if facts.range is not None and outside:
            proposed = rounded_outward(facts.range, least, most)
        looks.append(
            ColumnLook(
                table,
                column,
                rows,
                _whole_number(nulls),
                _whole_number(below),
                _whole_number(above),
                None if facts.values is None else _whole_number(unlisted),
                least,
                most,
                facts.range,
                proposed,
            )
        )
    return looks


def _whole_number(value: object) -> int:
    return 0 if value is None else int(str(value).partition(".")[0])


# ── proposals ────────────────────────────────────────────────────────────────────────────────────


def round_up(value: int) -> int:
    """Give the next number of the form 1, 2 or 5 times a power of ten."""
    step = 1
    while True:
        for factor in (1, 2, 5):
            if factor * step >= value:
                return factor * step
        step *= 10


def rounded_outward(
    declared: tuple[object, object], least: object, most: object
) -> tuple[object, object] | None:
    """Give a range that holds the declared one and all values, its ends rounded outward; None if one has no end."""
    if isinstance(least, datetime.date) and isinstance(most, datetime.date):
        return _dates(declared, least, most)
    ends = [as_number(x) for x in (*declared, least, most)]
    low, high, lowest, highest = ends
    if low is None or high is None or lowest is None or highest is None:
        return None
    bottom = declared[0] if lowest >= low else _rounded(float(lowest), up=False)
    top = declared[1] if highest <= high else _rounded(float(highest), up=True)
    return bottom, top


def _rounded(value: float, *, up: bool) -> object:
    """Round away from what is inside to two digits."""
    if not math.isfinite(value):
        return value
    if value == 0:
        return 0
    unit = Decimal(1).scaleb(math.floor(math.log10(abs(value))) - 1)
    steps = Decimal(repr(value)) / unit
    whole = steps.to_integral_value("ROUND_CEILING" if up else "ROUND_FLOOR") * unit
    return int(whole) if whole == whole.to_integral_value() else whole.normalize()


def _dates(
    declared: tuple[object, object], least: datetime.date, most: datetime.date
) -> tuple[object, object]:
    """Round to whole months."""
    low, high = declared
    assert isinstance(low, datetime.date)
    assert isinstance(high, datetime.date)
    last = calendar.monthrange(most.year, most.month)[1]
    return min(low, least.replace(day=1)), max(high, most.replace(day=last))


def _key(name: str) -> str:
    plain = name.replace("_", "a").replace("-", "a")
    if plain.isascii() and plain.isalnum():
        return name
    return '"' + name.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _value_text(value: object) -> str:
    return value.isoformat() if isinstance(value, datetime.date) else f"{value}"
