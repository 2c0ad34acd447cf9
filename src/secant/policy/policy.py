"""What the data owner has said: facts about columns, and what must stay hidden.

Records only; `policy_file` reads them from TOML, `policy_check` holds them against the catalog.
Table and column names are lower-cased. Values of DATE columns are `datetime.date`, of numeric
columns `int` or `decimal.Decimal`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import field
from fractions import Fraction
from pathlib import Path

from secant.policy.beliefs import Belief
from secant.policy.streams import Stream
from secant.policy.windows import Window
from secant.records import frozen, replace

KINDS = ("rows", "unit", "window", "cells", "rows+cells")
LONGEST_NAME = 200
"""Characters of an analyst's name."""
PLACES = ("avg", "median", "quantile", "min", "max")
"""Statistics in the unit of their column; `variance` is in its square."""
SOFTENINGS = ("auto", "exact", "ramp", "sigmoid")


@frozen
class ColumnFacts:
    """Public facts about a column. They are enforced where they are used, not believed (I2)."""

    range: tuple[object, object] | None = None
    """Smallest and largest value."""
    values: tuple[object, ...] | None = None
    """All values that the column may take; group keys come from here."""
    step: object | None = None
    """Distance between neighboring values: a number, or days for dates."""
    density: Fraction | None = None
    """About so many rows fall into one unit of the column (a day, for dates); chooses widths only."""
    exact: bool = False
    """Whether everybody knows the value of each row already."""
    total: int | None = None
    """How many different values there can be, where they are not named."""
    belief: Belief | None = None
    """How likely values are held to be before any answer; never a bound."""
    assumed: bool = False
    """Whether `range` was not declared but follows from `belief`."""
    moves: Mapping[str, Fraction] = field(default_factory=dict)
    """By statistic: how far one row may move it. It is made to keep to that, so that no range is needed."""
    center: Fraction = Fraction(0)
    """Where statistics that `moves` names stand if there are no rows; rows lead away from there."""
    null: bool = True
    """Whether NULL is a key of its own among the groups of the column; rows with NULL are left out of groups else."""
    found: bool = False
    """Whether `range` was not declared but found privately: some values may lie outside, however far."""


@frozen
class TableFacts:
    """Public facts about a table."""

    key: tuple[str, ...] = ()
    """Columns that together identify a row."""
    references: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    """Foreign keys: column -> (table, column)."""
    columns: Mapping[str, ColumnFacts] = field(default_factory=dict)
    rows: int | None = None
    """About how many rows there are; chooses widths only, so it need not be exact."""
    derived: Mapping[str, str] = field(default_factory=dict)
    """Columns that follow from others of their row, each with the expression that is computed in its place."""


@frozen
class Softening:
    """How filters on protected columns are softened."""

    kind: str
    """`auto` leaves it to public facts; `exact`, `ramp` or `sigmoid` settles it."""
    width: Fraction | None = None
    """For `ramp`: from 0 to 1 over this distance, in units of the owner's norm."""
    slope: Fraction | None = None
    """For `sigmoid`: the factor of its argument, which is in the column's own unit."""


@frozen
class PublicRows:
    """Which rows of a table are public: those that meet a condition, or those that are listed."""

    condition: str | None = None
    """An SQL condition or the name of a boolean column, as written."""
    ids: tuple[str, str] | None = None
    """The (table, column) that lists the keys of the public rows."""
    key: str | None = None
    """The column whose value is looked up among `ids`."""


@frozen
class Offers:
    """A column that holds how much ε each unit gives, in all, and the amounts that anybody may give. Public."""

    column: tuple[str, str]
    amounts: tuple[Fraction, ...]
    """Ascending; the last is the budget of the protection."""

    @property
    def copies(self) -> tuple[int, ...]:
        """Give the amounts as the least whole numbers of the same proportions."""
        common = math.lcm(*(x.denominator for x in self.amounts))
        whole = [int(x * common) for x in self.amounts]
        return tuple(x // math.gcd(*whole) for x in whole)

    @property
    def least(self) -> Fraction:
        """Give what those who give least give of what those give who give most."""
        return self.amounts[0] / self.amounts[-1]


KNOWN_BEFOREHAND = {"auto": "near", "chosen": "drawn"}
CERTAIN = {"auto": "certain", "chosen": "certain", "race": "certain"}
"""How limits are chosen -> how they are where an error has to be known beforehand: `near` keeps to what is declared for
a sum, and neither reads them off a tally, which alone tells the error then."""


@frozen
class Protection:
    """One promise: what is hidden, how strongly, and what is limited to make it affordable."""

    name: str
    kind: str
    epsilon: Fraction
    """Total budget of this protection."""
    delta: Fraction = Fraction(0)
    unit: tuple[str, str] | None = None
    """For `unit` and `window`: the (table, column) that identifies a person."""
    within: Window | None = None
    """For `window`: what a unit does in such a stretch of time is hidden, wherever the stretch lies."""
    time: Mapping[str, str] = field(default_factory=dict)
    """For `window`: the tables of which rows are hidden, each with the column that says when a row is."""
    tables: tuple[str, ...] | None = None
    """For `rows`: the tables whose rows are protected; None means every table."""
    replace: bool = False
    """For `rows`: neighbors replace one row (distance: one removal and one addition)."""
    limits: Mapping[str, int] = field(default_factory=dict)
    """For `unit`: at most so many rows of a table belong to one unit; for `window`, in one step of a stream."""
    truncation: str = "auto"
    """For `unit`: `fixed` keeps to the declared limits, `chosen` lets limits be chosen privately, `race` races them.

    Where an error has to be known beforehand, one of `KNOWN_BEFOREHAND` stands here, and `certain` where
    ends have to hold for every database: declared limits as they are, others as ever. No policy says these.
    """
    groups: int | None = None
    """For `unit`: at most so many groups of one answer are reached by one unit."""
    distance: Mapping[str, str] = field(default_factory=dict)
    """For `cells`: the owner's norm, table by table, as written."""
    row_norms: Mapping[str, str] = field(default_factory=dict)
    """For `cells`: how the rows of a table are combined, where that is not l1."""
    table_norm: str = "l1"
    """For `cells`: how the tables are combined."""
    add_remove: Mapping[str, Fraction] = field(default_factory=dict)
    """For `rows+cells`: the distance that adding or removing a whole row counts as."""
    softening: Softening | None = None
    """For `cells`: what the owner settled about filters; None leaves all to public facts."""
    beta: Fraction | None = None
    """For `cells`: the smoothness of bounds; None leaves it to public facts."""
    public_rows: Mapping[str, PublicRows] = field(default_factory=dict)
    """For `cells`: by table, the rows whose values are public."""
    analysts: Mapping[str, tuple[Fraction, Fraction]] = field(default_factory=dict)
    """By analyst: the most ε and δ that one may take; `*` is what all who are not named take together."""
    renewal: str = ""
    """`monthly` if the owner declares that the budget comes back; never plain privacy then."""
    composition: str = ""
    """How spending adds up, `basic` or `tight`; empty leaves it to the ledger."""
    gamma: Fraction = Fraction(0)
    """The share of databases for which releases of random differential privacy may promise nothing, in total."""
    continues: tuple[str, ...] = ()
    """Names that it had before: what they spent counts as spent."""
    personal: Offers | None = None
    """For `unit`: how much each unit gives. The budget is that of those who give most; others give in proportion."""
    found: frozenset[str] = frozenset()
    """For `unit`: the tables whose limit was not declared but found privately: some units may have more rows."""

    @property
    def tallied(self) -> bool:
        """Whether a tally of units may say what limits each: where all give alike, and no error is known beforehand."""
        alike = self.kind == "unit" and self.personal is None
        return alike and self.truncation in ("auto", "chosen")

    def declared_only(self) -> Protection:
        """Give the protection without the limits that were found privately."""
        limits = {table: x for table, x in self.limits.items() if table not in self.found}
        return replace(self, limits=limits, found=frozenset())


@frozen
class Limits:
    """What one question may use. Reaching a limit can depend on the data: the answer is withheld, the charge stays."""

    seconds: float = 300.0
    """For one statement."""
    memory: str = "50%"
    """Of an engine in this process: a share of the machine's memory, or a size such as 4GB."""
    groups: int = 20_000
    """The most groups of an answer. A group costs about 25 kB while it is put together."""
    at_once: int = 1
    """Questions that run at the same time, each with an equal part of the memory; a service says how many."""


USUAL = Limits()


class _Remembered:
    """What was found out about a policy, which never changes; it is no part of what it says."""

    __slots__ = ("_reached",)
    _reached: dict[str, frozenset[str]]
    """`coverage.reaches_unit`."""


@frozen
class Policy(_Remembered):
    """The whole policy. All protections hold together, except those listed as alternatives."""

    source: str
    tables: Mapping[str, TableFacts]
    protections: tuple[Protection, ...]
    public: tuple[str, ...] = ()
    """The tables that everybody may see whole. What is neither protected nor named here is not read at all."""
    alternatives: tuple[str, ...] = ()
    accept: tuple[str, ...] = ()
    """Assumptions that the owner accepts by name instead of having them enforced."""
    ledger: str | None = None
    """Where the ledger lives; None means beside the policy file."""
    retired: tuple[str, ...] = ()
    """Protections that the ledger knows and the owner has given up."""
    limits: Limits = USUAL
    streams: tuple[Stream, ...] = ()
    """Series that go on, each declared once and paid once."""
    views: Mapping[str, str] = field(default_factory=dict)
    """Queries by name, which every question may read from."""
    path: Path | None = None
    lines: Mapping[tuple[str, ...], int] = field(default_factory=dict, compare=False, repr=False)
    """Where each key stands in the file, by lower-cased path; for messages only."""

    def facts(self, table: str) -> TableFacts:
        """Give what is known of a table; nothing, if nothing was said."""
        return self.tables.get(table.lower()) or _NO_FACTS

    def column(self, table: str, column: str) -> ColumnFacts:
        """Give what is known of a column; nothing, if nothing was said."""
        return self.facts(table).columns.get(column.lower()) or _NOTHING_KNOWN

    def protection(self, name: str) -> Protection | None:
        """Give the protection of that name, or None."""
        return next((p for p in self.protections if p.name == name), None)

    def stream(self, name: str) -> Stream | None:
        """Give the stream of that name, or None."""
        return next((s for s in self.streams if s.name == name), None)


_NO_FACTS, _NOTHING_KNOWN = TableFacts(), ColumnFacts()
