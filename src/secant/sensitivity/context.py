"""What is known while a question is taken apart and bounded: one record for all who ask.

In: what a policy and a catalog say, the protections in force, public facts, what the whole question reads. Out: the
same for every aggregate of the question. Never here: a bound, data.
"""

from __future__ import annotations

from dataclasses import field

from secant.plan import nodes as n
from secant.plan.facts.facts import Facts
from secant.plan.facts.reads import scans
from secant.plan.rewrites.enforce import StreamKey
from secant.plan.rewrites.quotients import Family
from secant.policy.coverage import is_protected
from secant.policy.policy import Policy, Protection
from secant.records import frozen
from secant.sensitivity.derivative.space import space_of
from secant.sensitivity.public_facts import OpenFacts, PublicFacts


@frozen
class Context:
    """What holds for all aggregates of one question."""

    facts: Facts
    protections: tuple[Protection, ...]
    """Those in force."""
    public: PublicFacts = field(default_factory=PublicFacts)
    read: frozenset[str] = frozenset()
    """Columns that the whole question reads."""
    quotients: tuple[Family, ...] = ()
    """Sums and counts that the text divides by each other."""
    stepped: StreamKey | None = None
    """Which key of an aggregate is the step of a stream."""
    _shown: dict[n.Scan, bool] = field(default_factory=dict, compare=False, repr=False)

    @property
    def open(self) -> OpenFacts:
        """The public facts of tables that no protection of the policy hides rows of."""
        return OpenFacts(self.public, self.facts.policy)

    def touches(self, node: n.Node) -> bool:
        """Whether a part of the question shows anything protected."""
        return any(map(self._shows, scans(node)))

    def _shows(self, scan: n.Scan) -> bool:
        if scan not in self._shown:
            policy = self.facts.policy
            self._shown[scan] = shows_protected(scan, policy, self.protections, self.read)
        return self._shown[scan]


def shows_protected(
    scan: n.Scan, policy: Policy, protections: tuple[Protection, ...], read: frozenset[str]
) -> bool:
    """Whether a scan shows something protected: any of its rows, or a value that a norm names."""
    cells = tuple(p for p in protections if p.kind == "cells")
    others = tuple(p for p in protections if p.kind != "cells")
    if is_protected(scan.table.lower(), policy, others):
        return True
    return any(name in read for p in cells for name in space_of(p, (scan,)).variables)
