"""What is true of tables and relations under one policy and one catalog: the one place to ask, each answer found once.

In: a policy and a catalog. Out: keys with what they rest on, which tables a protection covers, whose rows are whose.
What a plan says by itself stands beside: `lineage` (where columns come from), `regions` (what is joined under which
conditions), `facts_keys` (what identifies rows after operators), `ranges` (which values are possible), `reads` (what is
looked at). A record of facts lives as long as one question. Never here: data, epsilon, a bound.
"""

from __future__ import annotations

from dataclasses import field

from secant.plan import nodes as n
from secant.plan.facts.lineage import named_in
from secant.plan.facts.ownership import Ownerships, Paths
from secant.policy.coverage import EveryTable, is_open, tables_of
from secant.policy.keys import Key, keys_of
from secant.policy.policy import Policy, Protection
from secant.records import frozen
from secant.schema.catalog import Catalog

KeyColumns = tuple[frozenset[str], Key]
"""A key in the names of a plan."""


@frozen
class Facts:
    """What a policy and a catalog say, asked by whoever enforces, bounds or reports."""

    policy: Policy
    catalog: Catalog
    _keys: dict[str, tuple[Key, ...]] = field(default_factory=dict, compare=False, repr=False)
    _owners: dict[str, Ownerships] = field(default_factory=dict, compare=False, repr=False)

    def with_ranges(self, policy: Policy) -> Facts:
        """Give what is true if ranges of columns, which neither keys nor owners read, are those of another policy."""
        return Facts(policy, self.catalog, self._keys, self._owners)

    def keys(self, table: str) -> tuple[Key, ...]:
        """Give the keys of a table, the most trusted first (combined.keys)."""
        if table not in self._keys:
            self._keys[table] = keys_of(table, self.policy, self.catalog)
        return self._keys[table]

    def keys_in(self, scan: n.Scan) -> tuple[KeyColumns, ...]:
        """Give the keys of a table in the names of one scan, those that it has all columns of."""
        named = ((named_in(scan, key.columns), key) for key in self.keys(scan.table.lower()))
        return tuple((frozenset(columns), key) for columns, key in named if columns is not None)

    def covered(self, protection: Protection) -> frozenset[str] | EveryTable:
        """Give the tables that a protection covers."""
        return tables_of(self.policy, protection)

    def is_open(self, table: str, columns: tuple[str, ...] = ()) -> bool:
        """Whether no protection of the policy hides rows of a table or values of these columns."""
        return is_open(self.policy, table, columns)

    def owners(self, protection: Protection) -> Ownerships:
        """Say whose rows are whose under a `unit` protection."""
        ownerships = self._owners.get(protection.name)
        if ownerships is None or ownerships.paths.protection != protection:
            ownerships = self._owners[protection.name] = Ownerships(Paths(self.policy, protection))
        return ownerships
