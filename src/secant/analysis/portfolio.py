"""Which aggregates are released, and with which proof: the outermost that some room can bound.

In: a normalised plan and a policy. Out: the plan with every protected aggregate replaced by a released table, and for
each of those a release with one certificate a protection. Chooses by public fields only: among global bounds the
smallest wins. What stands above a release works on public numbers and needs no proof.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from secant.analysis.certificate import Certificate, Refusal
from secant.analysis.interface import Analysis, Request
from secant.analysis.stability.room import StabilityRoom
from secant.errors import InternalError
from secant.plan import nodes as n
from secant.plan.enforce import Release, enforce, is_protected
from secant.plan.measures import Problem
from secant.plan.total import make_total
from secant.plan.typing import fields_of
from secant.plan.verify import verify
from secant.terms.catalog import Catalog
from secant.terms.policy import Policy, Protection

ANALYSES: tuple[Analysis, ...] = (StabilityRoom(),)


@dataclass(frozen=True, slots=True)
class Bounded:
    """A release and the certificates that it rests on, one for each protection in force."""

    release: Release
    certificates: tuple[Certificate, ...]
    tried: tuple[Refusal, ...]


@dataclass(frozen=True, slots=True)
class Prepared:
    """A whole query: what is released, and what happens with the released tables afterwards."""

    post: n.Relation
    bounded: tuple[Bounded, ...]


@dataclass(frozen=True, slots=True)
class RawRows:
    """The query shows rows of a protected table as they are."""

    scan: n.Scan


Outcome = Prepared | RawRows | tuple[Refusal, ...]


def prepare(
    plan: n.Relation, policy: Policy, protections: tuple[Protection, ...], catalog: Catalog
) -> Outcome:
    """Split the plan into releases and what follows them, or say why that cannot be done."""
    taken = frozenset(
        f.name.partition(".")[0]
        for r in n.walk(plan)
        if isinstance(r, n.Relation)
        for f in fields_of(r)
    )
    work = _Split(policy, protections, catalog, taken)
    try:
        post = work.visit(plan)
    except _Exposed as exposed:
        return tuple(work.refusals) if work.refusals else RawRows(exposed.scan)
    if work.bounded:
        post = make_total(post)  # the answer is paid for: one bad cell must not cost the others
    verify(post)
    several = _many_released(post, work.bounded)
    if several is not None:
        return (several,)
    if work.exposed(post):
        raise InternalError("BUG-001", "a protected table is left outside of every release")
    return Prepared(post, tuple(work.bounded))


def _many_released(post: n.Relation, bounded: list[Bounded]) -> Refusal | None:
    """A scalar subquery over released groups would fail after it was paid for."""
    grouped = {b.release.name for b in bounded if b.release.exact.keys}
    for node in n.walk(post):
        if isinstance(node, n.ScalarSubquery):
            inner = node.relation
            while isinstance(inner, (n.Project, n.Filter, n.Sort)):
                inner = inner.input
            if isinstance(inner, n.Released) and inner.name in grouped:
                return Refusal(
                    "portfolio",
                    "T-SUBQUERY",
                    "the scalar subquery might return several rows",
                    "aggregate its groups, for example with max()",
                    node,
                )
    return None


class _Exposed(Exception):  # noqa: N818 - control flow inside this module only
    def __init__(self, scan: n.Scan) -> None:
        super().__init__()
        self.scan = scan


@dataclass
class _Split:
    policy: Policy
    protections: tuple[Protection, ...]
    catalog: Catalog
    taken: frozenset[str]
    """First parts of column names in the query: releases are called otherwise."""
    bounded: list[Bounded] = field(default_factory=list)
    refusals: list[Refusal] = field(default_factory=list)
    done: dict[n.Node, n.Node] = field(default_factory=dict)

    def visit(self, relation: n.Relation) -> n.Relation:
        """Give the relation as it is after the releases; a shared node is released once."""
        if relation not in self.done:
            self.done[relation] = self._visit(relation)
        found = self.done[relation]
        assert isinstance(found, n.Relation)
        return found

    def _visit(self, relation: n.Relation) -> n.Relation:
        if not self._touched(relation):
            return relation
        if isinstance(relation, n.Scan):
            raise _Exposed(relation)
        if isinstance(relation, n.Aggregate):
            outcome = bound_aggregate(
                relation,
                self._name(),
                self.policy,
                self.protections,
                self.catalog,
            )
            if isinstance(outcome, Bounded):
                self.bounded.append(outcome)
                return outcome.release.finish
            self.refusals += [r for r in outcome if r not in self.refusals]
        # Not an aggregate, or one that no room can bound: it may still work on releases further in.
        before = len(self.bounded)
        try:
            rebuilt = n.rebuild(relation, self._descend)
        except _Exposed:
            del self.bounded[before:]
            raise
        return rebuilt

    def _name(self) -> str:
        name = f"release{len(self.bounded) + 1}"
        while name in self.taken:
            name += "_"
        return name

    def _descend(self, node: n.Node) -> n.Node:
        if isinstance(node, n.Relation):
            return self.visit(node)
        if node not in self.done:
            self.done[node] = n.rebuild(node, self._descend)
        return self.done[node]

    def exposed(self, relation: n.Relation) -> bool:
        """Whether a protected table is still read: the last wall before a plan runs without noise."""
        return self._touched(relation)

    def _touched(self, relation: n.Relation) -> bool:
        return any(
            isinstance(s, n.Scan) and is_protected(s.table.lower(), self.policy, self.protections)
            for s in n.walk(relation)
        )


def bound_aggregate(
    aggregate: n.Aggregate,
    name: str,
    policy: Policy,
    protections: tuple[Protection, ...],
    catalog: Catalog,
) -> Bounded | Sequence[Refusal]:
    """Enforce one aggregate and bound it under every protection, or give all reasons against it."""
    release = enforce(aggregate, name, policy, protections, catalog)
    if isinstance(release, Problem):
        return (Refusal("enforce", release.rule, release.reason, release.hint, release.node),)
    certificates: list[Certificate] = []
    refusals: list[Refusal] = []
    for protection in protections:
        found: list[Certificate] = []
        for room in ANALYSES:
            outcome = room.bound(Request(release, policy, protection, catalog))
            if isinstance(outcome, Certificate):
                found.append(outcome)
            else:
                refusals.append(outcome)
        if found:
            certificates.append(min(found, key=lambda c: sum(b.value for b in c.bounds.values())))
    if len(certificates) < len(protections):
        return tuple(refusals)
    return Bounded(release, tuple(certificates), tuple(refusals))
