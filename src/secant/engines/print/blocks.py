"""What a statement is made of while it is written: blocks, and what all of its parts share.

In: a plan and an engine's way of writing. Out: text of blocks, fresh names, and what is known of the plan's numbers.
Never here: how a node is written.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from secant.engines.dialect import Dialect, quote, read_column
from secant.engines.print.magnitude import Magnitudes, magnitudes_of
from secant.plan import nodes as n
from secant.plan.facts.reads import scans
from secant.plan.facts.regions import unfiltered
from secant.plan.facts.scopes import holders, own_names
from secant.plan.typing import fields_of
from secant.records import frozen
from secant.runtime.work import spend
from secant.schema.types import Type

Env = Mapping[str, str]
_LETTERS_A_STEP = 64


def counted(text: str) -> str:
    """Count the text of an expression as steps of planning: engines that name a part twice double it at each level."""
    spend(len(text) // _LETTERS_A_STEP)
    return text


@frozen
class Block:
    """A SELECT in the making: where rows come from and how each plan column is written."""

    source: str
    refs: Mapping[str, str]
    where: tuple[str, ...] = ()
    order: tuple[str, ...] = ()
    limit: str = ""
    joined: bool = False
    """Whether rows come from a join itself, which stands in parentheses beside another; PostgreSQL takes no others."""
    fence: str = ""

    def tail(self) -> str:
        """Write everything after the select list."""
        parts = [f" FROM {self.source}" if self.source else ""]
        parts.append(" WHERE " + " AND ".join(self.where) if self.where else "")
        parts.append(" ORDER BY " + ", ".join(self.order) if self.order else "")
        return "".join(parts) + self.limit


@dataclass
class Writer:
    """What one statement needs while it is written: names used, tables shared, aliases given."""

    dialect: Dialect
    used: frozenset[str]
    shared: frozenset[n.Relation]
    tables: list[str] = field(default_factory=list)
    written: dict[n.Relation, str] = field(default_factory=dict)
    count: int = 0
    plan: n.Relation | None = None
    found: Magnitudes | None = None
    inline: bool = False
    """Whether exact arithmetic gives NULL where it fails, instead of being asked beforehand."""
    fences: Mapping[n.Node, frozenset[str]] | None = None
    taken: frozenset[str] | None = None
    spelled: dict[str, str] = field(default_factory=dict)
    stored: dict[str, str] = field(default_factory=dict)
    """Values of stored columns as they are written -> the columns, where rows are grouped by these."""

    @property
    def reach(self) -> Magnitudes:
        """How far numbers of the plan can reach, found out when first asked for."""
        if self.found is None:
            self.found = magnitudes_of(self.plan)
        return self.found

    @property
    def fenced(self) -> Mapping[n.Node, frozenset[str]]:
        """Projections that an aggregate reads, at once or through more of them or joins, and what is read of each.

        They are not to be merged: what they compute would be computed wherever it is named.
        """
        if self.fences is None:
            chains = _chains(self.plan) if self.plan and self.dialect.fence else ()
            self.fences = {node: read & self.used for node, read in chains}
        return self.fences

    def alias(self) -> str:
        """Give a fresh name of a table, one that no table of the query has: a WITH table would hide it."""
        if self.taken is None:
            read = scans(self.plan) if self.plan is not None else ()
            self.taken = frozenset(scan.table.casefold() for scan in read)
        self.count += 1
        while f"s{self.count}" in self.taken:
            self.count += 1
        return f"s{self.count}"

    def column(self, name: str) -> str:
        """Give the spelling of a computed column: ours, so that no engine takes two of the plan's names for one.

        Engines fold case and cut long names, each in its own way. Each spelling ends in a number that no other has,
        and is short and in small ASCII letters; the word before it is for whoever reads the statement.
        """
        if name not in self.spelled:
            self.spelled[name] = quote(f"{_word(name)}_{len(self.spelled) + 1}")
        return self.spelled[name]

    def columns(self, names: Iterable[str]) -> str:
        """Spell computed columns as a list."""
        return ", ".join(self.column(name) for name in names)

    def refs(self, alias: str, names: Iterable[str]) -> Env:
        """Give how the computed columns of a table are written."""
        return {name: f"{alias}.{self.column(name)}" for name in names}

    def read(self, table: str, column: str, kind: Type, alias: str) -> str:
        """Write the value of a stored column."""
        text = read_column(self.dialect, table, column, kind, alias)
        if kind.kind in self.dialect.grouped:
            name = f"{alias}.{quote(column)}"
            if self.dialect.stored.get(kind.kind, "").format(name) == text:
                self.stored[text] = name
        return text

    def groups(self, keys: list[str]) -> str:
        """Write by what rows are grouped whose keys come first in the select list.

        A planner drops columns that a primary key beside them decides, if it sees the columns themselves.
        """
        stored = self.stored if len(keys) > 1 else {}
        places = [stored.get(key, str(i + 1)) for i, key in enumerate(keys)]
        return f" GROUP BY {', '.join(places)}" if places else ""


def printed_columns(plan: n.Relation) -> frozenset[str]:
    """Name the columns that something in a plan reads."""
    columns: set[str] = set()
    for node in holders(plan):
        if isinstance(node, n.Relation):
            columns |= _own_columns(node)
        elif isinstance(node, (n.InSubquery, n.ScalarSubquery)):
            columns.update(f.name for f in fields_of(node.relation))
    return frozenset(columns)


def _own_columns(node: n.Relation) -> frozenset[str]:
    """Name the columns that one relation reads by itself."""
    if isinstance(node, (n.Union, n.Intersect, n.Except)):
        # Rows are compared as wholes: every column of both sides counts.
        return frozenset(f.name for x in (node, node.left, node.right) for f in fields_of(x))
    if isinstance(node, n.Distinct):
        return frozenset(f.name for f in fields_of(node))
    if isinstance(node, n.Truncate):
        return frozenset((*node.owner, *node.order))
    if isinstance(node, n.TruncateGroups):
        return frozenset((*node.owner, *node.groups))
    named = own_names(node)
    if isinstance(node, n.Window):
        return named.union(f.name for f in fields_of(node.input))
    return named


LONGEST_WORD = 24
"""PostgreSQL cuts names after 63 bytes."""


def _word(name: str) -> str:
    """Give the readable part of a spelling; names that nothing readable is left of are all called c."""
    word = re.sub("[^a-z0-9]+", "_", name.rsplit(".", 1)[-1].lower()).strip("_")
    return word[:LONGEST_WORD] if word[:1].isalpha() else f"c{word[:LONGEST_WORD]}"


def _chains(plan: n.Relation) -> Iterator[tuple[n.Node, frozenset[str]]]:
    """Give the projections between each aggregate and what it reads, with the names that are read of each."""
    uses = Counter(child for node in n.walk(plan) for child in n.children(node))
    for node in n.walk(plan):
        if isinstance(node, n.Aggregate):
            chain = list(_chain(node.input, _names((*node.keys, *node.aggregations)), uses))
            yield from chain
            yield from _below_joins(chain[-1][0].input if chain else node.input, uses)


def _chain(
    rows: n.Relation, read: frozenset[str], uses: Counter[n.Node]
) -> Iterator[tuple[n.Project, frozenset[str]]]:
    """Give projections on top of each other that nothing else reads, the uppermost first."""
    while isinstance(rows, n.Project) and uses[rows] == 1:
        yield rows, read
        read = _names(tuple(i for i in rows.items if i.name in read))
        rows = rows.input


def _below_joins(
    rows: n.Relation, uses: Counter[n.Node]
) -> Iterator[tuple[n.Node, frozenset[str]]]:
    """Give the stacks of projections below joins: one alone is left to the planner, which may look up single rows."""
    _, rows = unfiltered(rows)
    if isinstance(rows, n.Join):
        yield from _below_joins(rows.left, uses)
        yield from _below_joins(rows.right, uses)
    elif isinstance(rows, n.Project) and isinstance(rows.input, n.Project):
        yield from _chain(rows, frozenset(i.name for i in rows.items), uses)


def _names(parts: tuple[n.Node, ...]) -> frozenset[str]:
    return frozenset(
        node.name
        for part in parts
        for node in n.walk(part)
        if isinstance(node, (n.Column, n.Outer))
    )


def first_extreme(numbers: list[str], order: str) -> str:
    """Write the extreme of numbers that are all there: comparisons alone are what engines do fastest."""
    cases = []
    for i, x in enumerate(numbers):
        # Compared with every other one, so that nothing is the extreme of what is not all there.
        later = [f"{x} {order} {y}" for y in numbers[i + 1 :]]
        earlier = [f"{x} {order[0]} {y}" for y in numbers[:i]]
        cases.append(f"WHEN {' AND '.join(later + earlier)} THEN {x}")
    return f"CASE {' '.join(cases)} END" if len(numbers) > 1 else numbers[0]
