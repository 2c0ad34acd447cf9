"""Personal budgets: every row, or every unit, pays for its own uses and drops out when it cannot.

In: a chain of 1:n joined tables, who holds a budget, the price of one use. Out: SQL (DuckDB) for the
uses that are paid for, in time order, and what one of them can change. Which uses those are, and
what is left of anybody's budget, is private: nothing here releases it.

A *use* is a row of the joined table. Uses are taken in order of their time stamps, and one is paid
for if every holder that it touches has the price of a use left (ledger.uses in PROOFS.md). Unlike in
the literature a budget that grows does so by epochs, and what an epoch leaves over lapses: with
carry-over one use can change arbitrarily many others (ledger.growth).
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from fractions import Fraction
from math import ceil

from secant.errors import UsageError
from secant.ledger.amounts import EPSILON_UNITS, LARGEST_EPSILON, Budget
from secant.noise.events import exact_count, exact_epsilon
from secant.numeric.parameters import Number
from secant.records import frozen

STREAM_CHANGE = 2
"""ledger.uses: so many uses come or go, at most, when one use is removed: itself and one other."""
COUNT_CHANGE = 1
"""ledger.uses: so much the number of paid uses falls, at most, when one use is removed."""


@frozen
class ChainTable:
    """One table of the chain; each of its rows refers to at most one row of the table before."""

    name: str
    key: str
    """Column that identifies a row."""
    arrival: str
    """Column with the time at which a row was added; of one type in all tables."""
    parent: str | None = None
    """Column that holds the key of a row of the table before; None in the first table."""
    budgets: tuple[Budget | str, ...] = ()
    """One budget for each epoch, or the column that holds it; empty if these rows hold none."""


@frozen
class Chain:
    """Tables joined 1:n, from the one side to the many side, and who pays for a use."""

    tables: tuple[ChainTable, ...]
    price: Fraction
    """ε that one use costs each holder."""
    unit: str | None = None
    """Column of the first table: rows of equal value belong to one unit with one budget."""
    unit_budgets: tuple[Budget, ...] = ()
    """One budget for each epoch, the same for every unit."""
    epochs: tuple[int, ...] = ()
    """Public arrival times at which a new epoch begins; what the last one left over lapses."""

    def __post_init__(self) -> None:
        holders = [table.budgets for table in self.tables if table.budgets]
        holders += [self.unit_budgets] if self.unit_budgets else []
        if not self.tables or not holders:
            raise UsageError("USE-001", "a chain needs tables, and somebody who holds a budget")
        if any(len(budgets) != len(self.epochs) + 1 for budgets in holders):
            raise UsageError("USE-001", "every holder needs one budget for each epoch")
        if list(self.epochs) != sorted(set(self.epochs)):
            raise UsageError("USE-001", "epochs must begin one after the other")
        if (self.unit is None) != (not self.unit_budgets):
            raise UsageError("USE-001", "a unit and its budgets are named together")
        if [table.parent is None for table in self.tables] != [
            number == 0 for number in range(len(self.tables))
        ]:
            raise UsageError("USE-001", "every table but the first refers to the one before")
        exact_epsilon(self.price, what="the price of a use")


def price_of_use(noise_scale: Number, *, time_points: int = 1) -> Fraction:
    """Give the ε that one use costs when counts of paid uses get Laplace noise of this scale.

    One count in all: a use changes it by one. A series of `time_points` counts, summed by a binary
    tree: two uses may come or go, and each is part of ⌊log2 n⌋ + 1 sums (ledger.price).

    >>> price_of_use(10), price_of_use(10, time_points=8)
    (Fraction(1, 10), Fraction(4, 5))
    """
    scale = exact_epsilon(noise_scale, what="the noise scale")
    points = exact_count(time_points, what="the number of time points")
    if points == 1:
        return COUNT_CHANGE / scale
    return STREAM_CHANGE * points.bit_length() / scale


def allowed_uses(budget: Budget, price: Fraction) -> int:
    """Give how many uses a budget pays for, rounded down.

    >>> allowed_uses(Budget.of("0.3"), Fraction(1, 10))
    3
    """
    return budget.epsilon // ceil(price * EPSILON_UNITS)


@frozen
class Use:
    """A row of the joined table, as `paid_uses` sees it."""

    stamp: tuple[Hashable, ...]
    """Arrivals of its parts, latest first; no two uses have the same."""
    holders: tuple[Hashable, ...]
    """Whose budgets it touches."""
    epoch: int = 0


def paid_uses(
    uses: Iterable[Use], allowances: Mapping[tuple[Hashable, int], int]
) -> tuple[Use, ...]:
    """Take uses in time order, each if all its holders can pay in its epoch (ledger.uses).

    This is the definition; `paid_uses_sql` is proved and tested against it.
    """
    left = dict(allowances)
    paid = []
    for use in sorted(uses, key=lambda use: use.stamp):
        if all(left.get((holder, use.epoch), 0) > 0 for holder in use.holders):
            paid.append(use)
            for holder in use.holders:
                left[holder, use.epoch] -= 1
    return tuple(paid)


def paid_uses_sql(chain: Chain) -> str:
    """Print the query that gives the paid uses: keys of the parts, time, epoch (ledger.levels).

    Greedy payment in time order is the same as cutting each holder's uses down to its allowance,
    first those of the last table's rows, then those of the rows before, up to the units.
    """
    numbers = range(1, len(chain.tables) + 1)
    parts = [
        _part_sql(number, table, chain.unit if number == 1 else None)
        for number, table in zip(numbers, chain.tables, strict=True)
    ]
    joins = "\n  ".join(
        f"JOIN part{n} ON part{n}.parent{n} = part{n - 1}.key{n - 1}" for n in numbers if n > 1
    )
    stamps = ", ".join(
        f"struct_pack(a := arrival{n}, n := {n}, k := key{n}::VARCHAR)" for n in numbers
    )
    steps = [
        *parts,
        _step("joined", f"*, list_reverse_sort([{stamps}]) AS stamp", f"part1\n  {joins}"),
        _step("uses0", f"*, stamp[1].a AS time, {_epoch_sql(chain.epochs)} AS epoch", "joined"),
    ]
    last = "uses0"
    for step, (holder, allowance) in enumerate(_levels(chain), start=1):
        turn = f"row_number() OVER (PARTITION BY {holder}, epoch ORDER BY stamp)"
        steps.append(_step(f"uses{step}", "*", f"{last}\n  QUALIFY {turn} <= {allowance}"))
        last = f"uses{step}"
    keys = ", ".join(f"key{n}" for n in numbers)
    return "WITH " + ",\n".join(steps) + f"\nSELECT {keys}, time, epoch FROM {last}"


def count_sql(chain: Chain, *, by_time: bool = False) -> str:
    """Print the query that counts the paid uses, in all or for each time."""
    uses = paid_uses_sql(chain)
    if by_time:
        return f"SELECT time, count(*) AS uses FROM (\n{uses}\n) GROUP BY time ORDER BY time"
    return f"SELECT count(*) AS uses FROM (\n{uses}\n)"


def repeated_keys_sql(chain: Chain) -> str:
    """Print the owner's question whether the keys of the chain are keys: it must give 0.

    The proofs need it, and the answer is a fact about the data: it is not for analysts.
    """
    counts = [
        f"SELECT count(*) - count(DISTINCT {_quoted(table.key)}) AS n"
        f" FROM {_quoted(table.name)} WHERE {_quoted(table.key)} IS NOT NULL"
        for table in chain.tables
    ]
    return "SELECT sum(n)::BIGINT AS repeated FROM (" + " UNION ALL ".join(counts) + ")"


def _step(name: str, columns: str, source: str) -> str:
    return f"{name} AS (\n  SELECT {columns}\n  FROM {source}\n)"


def _levels(chain: Chain) -> list[tuple[str, str]]:
    """List (holder, allowance) as SQL, from the last table up to the unit."""
    price = ceil(chain.price * EPSILON_UNITS)
    levels = []
    for number, table in reversed(list(enumerate(chain.tables, start=1))):
        if table.budgets:
            budgets = [
                f"allowance{number}_{epoch}" if isinstance(budget, str) else str(budget.epsilon)
                for epoch, budget in enumerate(table.budgets)
            ]
            levels.append((f"key{number}", _allowance_sql(budgets, price)))
    if chain.unit_budgets:
        budgets = [str(budget.epsilon) for budget in chain.unit_budgets]
        levels.append(("unit1", _allowance_sql(budgets, price)))
    return levels


def _allowance_sql(budgets: Sequence[str], price: int) -> str:
    cases = " ".join(f"WHEN {epoch} THEN {budget}" for epoch, budget in enumerate(budgets))
    return f"(CASE epoch {cases} END) // {price}"


def _epoch_sql(epochs: Sequence[int]) -> str:
    return " + ".join(["0", *(f"(stamp[1].a >= {start})::INTEGER" for start in epochs)])


def _part_sql(number: int, table: ChainTable, unit: str | None) -> str:
    """Print what is needed of a table. A row without key, arrival time or unit is never used."""
    needed = [table.key, table.arrival, *([] if unit is None else [unit])]
    names = (f"key{number}", f"arrival{number}", f"unit{number}")
    columns = [f"{_quoted(n)} AS {name}" for n, name in zip(needed, names, strict=False)]
    if table.parent is not None:
        columns.append(f"{_quoted(table.parent)} AS parent{number}")
    for epoch, budget in enumerate(table.budgets):
        if isinstance(budget, str):
            # In whole nano-ε, rounded down; what is no number, or negative, pays for nothing.
            value = f"coalesce(TRY_CAST({_quoted(budget)} AS DECIMAL(38, 18)), 0)"
            value = f"least(greatest({value}, 0), {LARGEST_EPSILON}) * {EPSILON_UNITS}"
            columns.append(f"floor({value})::BIGINT AS allowance{number}_{epoch}")
    known = " AND ".join(f"{_quoted(column)} IS NOT NULL" for column in needed)
    return _step(f"part{number}", ", ".join(columns), f"{_quoted(table.name)}\n  WHERE {known}")


def _quoted(name: str) -> str:
    if not name or "\0" in name:
        raise UsageError("USE-001", "a table or column needs a name")
    return '"' + name.replace('"', '""') + '"'
