"""Which columns identify a row of a table, and what that rests on. Nobody else reads a key off a policy or a catalog.

In: a policy and a catalog. Out: keys with their trust (combined.keys). Two rows never agree in all columns of a key
that holds, none of them NULL: engines allow several rows with a NULL in a unique column. Never here: data, and plans.
"""

from __future__ import annotations

from enum import Enum

from secant.policy.coverage import is_open, is_protected
from secant.policy.policy import Policy
from secant.records import frozen
from secant.schema.catalog import Catalog

ACCEPTED = "keys"
"""What an owner lists under `accept` to have declared keys of protected tables believed."""


class Trust(Enum):
    """What speaks for a key."""

    KEPT = "kept by the engine"
    CHECKED = "checked on public data before release"
    ACCEPTED = "accepted by the owner, not checked"
    DECLARED = "declared, and nobody may look"


@frozen
class Key:
    """Columns of a table that together identify a row; names are lower-cased."""

    table: str
    columns: tuple[str, ...]
    trust: Trust

    @property
    def holds(self) -> bool:
        """Whether a bound may rest on it; one that is checked must then be claimed."""
        return self.trust is not Trust.DECLARED

    @property
    def holds_unseen(self) -> bool:
        """Whether a bound may rest on it although rows of the table come and go: it holds in every neighbor."""
        return self.trust in (Trust.KEPT, Trust.ACCEPTED)

    @property
    def claims(self) -> tuple[Key, ...]:
        """Give what a certificate that uses the key must name: all that the engine does not keep."""
        return () if self.trust is Trust.KEPT else (self,)


def in_order(claims: set[Key] | frozenset[Key]) -> tuple[Key, ...]:
    """Give claims as certificates list them."""
    return tuple(sorted(claims, key=lambda c: (c.table, c.columns)))


def keys_of(table: str, policy: Policy, catalog: Catalog) -> tuple[Key, ...]:
    """Give the keys of a table, the most trusted first, each set of columns once (combined.keys)."""
    stored = catalog.table(table)
    if stored is None:
        return ()
    there = {name.lower() for name, _ in stored.columns}
    declared = policy.facts(table).key
    accepted = ACCEPTED in policy.accept and is_protected(table, policy, policy.protections)
    trust = Trust.ACCEPTED if accepted else Trust.DECLARED
    if is_open(policy, table, declared):
        trust = Trust.CHECKED
    named = [(columns, Trust.KEPT) for columns in stored.unique]
    named.append((declared, trust))
    if accepted:
        # A reference that the owner accepts makes the column that it points to a key.
        targets = {t for facts in policy.tables.values() for t in facts.references.values()}
        named += [
            ((column,), Trust.ACCEPTED) for parent, column in sorted(targets) if parent == table
        ]
    keys: dict[frozenset[str], Key] = {}
    for columns, why in named:
        lower = tuple(column.lower() for column in columns)
        if lower and there.issuperset(lower):
            keys.setdefault(frozenset(lower), Key(table, lower, why))
    return tuple(keys.values())
