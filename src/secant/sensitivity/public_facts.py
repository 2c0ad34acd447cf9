"""What may steer how useful a release is: how much is spent, and what public tables and columns say.

In: lookups of a session, or none. Out: records that ask them. Never here: a look at what any protection covers.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction

from secant.plan import nodes as n
from secant.policy.coverage import is_open
from secant.policy.policy import Policy
from secant.records import frozen


@frozen
class PublicFacts:
    """What may steer how useful a release is: how much is spent, and how many rows a public query has."""

    epsilon: Fraction = Fraction(1)
    rows: Callable[[n.Relation], int | None] = lambda relation: None
    """Rows that the engine expects of a relation over public columns."""
    ends: Callable[[str, str], tuple[Fraction, Fraction] | None] = lambda table, column: None
    """Smallest and largest value of a public column of a table."""
    count: Callable[[str], int | None] = lambda table: None
    """Rows of a table whose number is public."""
    fan: Callable[[str, tuple[str, ...]], int | None] = lambda table, columns: None
    """Rows of a table that agree in some public columns, at most."""
    value: Callable[[n.Relation], n.Literal | None] = lambda relation: None
    """The one value of a public relation; None where it has several rows, or a value that is not written down."""

    def at(self, epsilon: Fraction) -> PublicFacts:
        """Give the same facts for another amount that is spent."""
        return replace(self, epsilon=epsilon)


@frozen
class OpenFacts:
    """Public facts of tables whose rows stay under every protection of the policy; of others nothing is looked up."""

    facts: PublicFacts
    policy: Policy

    def ends(self, table: str, column: str) -> tuple[Fraction, Fraction] | None:
        """Give the smallest and the largest value of a public column."""
        return self.facts.ends(table, column) if is_open(self.policy, table) else None

    def count(self, table: str) -> int | None:
        """Give the rows of a table, where their number is public."""
        return self.facts.count(table) if is_open(self.policy, table) else None

    def fan(self, table: str, columns: tuple[str, ...]) -> int | None:
        """Give the rows of a table that agree in some public columns, at most, where that is public."""
        return self.facts.fan(table, columns) if is_open(self.policy, table) else None
