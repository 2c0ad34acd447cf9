"""Which aggregates are released, and with which proof: the outermost that some room can bound.

In: a normalised plan and a policy. Out: the plan with every protected aggregate replaced by a released table, and for
each of those a release with one certificate a protection. Chooses by public fields only: among global bounds the
smallest wins. What stands above a release works on public numbers and needs no proof.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction

from secant.analysis.certificate import CannotBound, Certificate, Curve, Refusal, is_still
from secant.analysis.derivative.public_rows import public_rows_of
from secant.analysis.derivative.room import DerivativeRoom
from secant.analysis.derivative.soften import Softened, soften
from secant.analysis.derivative.space import space_of
from secant.analysis.interface import Analysis, Request
from secant.analysis.stability.room import StabilityRoom
from secant.errors import InternalError
from secant.plan import nodes as n
from secant.plan.enforce import Release, enforce, is_protected
from secant.plan.measures import Problem
from secant.plan.rewrite import retype
from secant.plan.total import make_total
from secant.plan.typing import fields_of
from secant.plan.verify import verify
from secant.terms.bounds import GlobalBound
from secant.terms.catalog import Catalog
from secant.terms.policy import Policy, Protection

ANALYSES: tuple[Analysis, ...] = (StabilityRoom(), DerivativeRoom())


@dataclass(frozen=True, slots=True)
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


@dataclass(frozen=True, slots=True)
class Bounded:
    """A release and the certificates that it rests on, one for each protection in force."""

    release: Release
    certificates: tuple[Certificate, ...]
    tried: tuple[Refusal, ...]
    softened: Softened | None = None
    """How the user's aggregate was softened, where values are protected."""


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
    plan: n.Relation,
    policy: Policy,
    protections: tuple[Protection, ...],
    catalog: Catalog,
    facts: PublicFacts | None = None,
) -> Outcome:
    """Split the plan into releases and what follows them, or say why that cannot be done."""
    taken = frozenset(
        f.name.partition(".")[0]
        for r in n.walk(plan)
        if isinstance(r, n.Relation)
        for f in fields_of(r)
    )
    work = _Split(policy, protections, catalog, taken, facts or PublicFacts(), read_columns(plan))
    try:
        post = work.visit(plan)
    except _Exposed as exposed:
        return tuple(work.refusals) if work.refusals else RawRows(exposed.scan)
    if any(b.softened is not None for b in work.bounded):
        post = retype(post)
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
    facts: PublicFacts
    read: frozenset[str]
    """Columns that the query reads or shows."""
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
                self.facts,
            )
            if isinstance(outcome, Bounded):
                self.bounded.append(outcome)
                if outcome.softened is None:
                    return outcome.release.finish
                return n.Project(outcome.release.finish, outcome.softened.outputs)
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
            _shows_protected(s, self.policy, self.protections, self.read)
            for s in n.walk(relation)
            if isinstance(s, n.Scan)
        )


def read_columns(plan: n.Relation) -> frozenset[str]:
    """Give all columns that a plan reads, compares as part of whole rows, or shows."""
    names = {f.name for f in fields_of(plan)}
    for node in n.walk(plan):
        if isinstance(node, (n.Column, n.Outer)):
            names.add(node.name)
        elif isinstance(node, (n.Distinct, n.Union, n.Intersect, n.Except, n.InSubquery)):
            sides = [c for c in n.children(node) if isinstance(c, n.Relation)]
            names |= {f.name for side in sides for f in fields_of(side)}
    return frozenset(names)


def _shows_protected(
    scan: n.Scan, policy: Policy, protections: tuple[Protection, ...], read: frozenset[str]
) -> bool:
    """Whether a scan shows something protected: any of its rows, or a value that a norm names."""
    cells = tuple(p for p in protections if p.kind == "cells")
    others = tuple(p for p in protections if p.kind != "cells")
    if is_protected(scan.table.lower(), policy, others):
        return True
    return any(name in read for p in cells for name in space_of(p, (scan,)).variables)


def _about_public(facts: PublicFacts, policy: Policy) -> PublicFacts:
    """Look up facts of tables only where rows stay under every protection of the policy."""
    others = tuple(p for p in policy.protections if p.kind != "cells")

    def public(table: str) -> bool:
        return not is_protected(table, policy, others)

    return replace(
        facts,
        ends=lambda table, column: facts.ends(table, column) if public(table) else None,
        count=lambda table: facts.count(table) if public(table) else None,
        fan=lambda table, columns: facts.fan(table, columns) if public(table) else None,
    )


def bound_aggregate(
    aggregate: n.Aggregate,
    name: str,
    policy: Policy,
    protections: tuple[Protection, ...],
    catalog: Catalog,
    facts: PublicFacts,
) -> Bounded | Sequence[Refusal]:
    """Enforce one aggregate and bound it under every protection, or give all reasons against it."""
    read = read_columns(aggregate)
    scans = [s for s in n.walk(aggregate) if isinstance(s, n.Scan)]

    def touched(p: Protection) -> bool:
        return any(_shows_protected(s, policy, (p,), read) for s in scans)

    cells = tuple(p for p in protections if p.kind == "cells" and touched(p))
    softened: Softened | None = None
    public_rows = {}
    facts = _about_public(facts, policy)
    if cells:
        moving = not any(p.kind != "cells" and touched(p) for p in protections)
        estimate = facts.rows if moving else PublicFacts().rows
        share = facts.epsilon / max(1, len(aggregate.aggregations))
        try:
            softened = soften(aggregate, policy, cells, share, estimate, facts.ends)
            softened_scans = [s for s in n.walk(softened.aggregate) if isinstance(s, n.Scan)]
            public_rows = {
                p.name: public_rows_of(p, policy, softened_scans, catalog) for p in cells
            }
        except CannotBound as verdict:
            return (verdict.refusal("derivative"),)
        release = enforce(softened.aggregate, name, policy, protections, catalog, moving=moving)
    else:
        release = enforce(aggregate, name, policy, protections, catalog)
    if isinstance(release, Problem):
        return (Refusal("enforce", release.rule, release.reason, release.hint, release.node),)
    if softened is not None:
        release = replace(release, notes=(*softened.notes, *release.notes))
    certificates: list[Certificate] = []
    refusals: list[Refusal] = []
    for protection in protections:
        found: list[Certificate] = []
        rooms = [r for r in ANALYSES if protection.kind in r.kinds] or ANALYSES
        for room in rooms:
            request = Request(
                release,
                policy,
                protection,
                catalog,
                public_rows.get(protection.name, {}),
                facts.count,
                facts.fan,
            )
            outcome = room.bound(request)
            if isinstance(outcome, Certificate):
                found.append(outcome)
            else:
                refusals.append(outcome)
        if found:
            certificates.append(min(found, key=_most))
    if len(certificates) < len(protections):
        return tuple(refusals)
    settled = _one_noise(certificates, release)
    if isinstance(settled, Refusal):
        return (settled, *refusals)
    return Bounded(release, settled, tuple(refusals), softened)


def _most(certificate: Certificate) -> Fraction:
    """Compare global bounds; a smooth one stands alone in its kind of protection."""
    return sum(
        (b.value for b in certificate.bounds.values() if isinstance(b, GlobalBound)), Fraction(0)
    )


def _one_noise(
    certificates: list[Certificate], release: Release
) -> tuple[Certificate, ...] | Refusal:
    """One noise serves all protections (C-ONE): a smooth bound only where no other protection is moved.

    A bound that is smooth in the values of cells may leap when a row comes or goes, so beside another
    protection, and where it would be its cap anyway, its public cap takes its place.
    """
    settled = list(certificates)
    for measure in release.measures:
        moved = [c for c in settled if not is_still(c.bounds[measure.column])]
        for index, certificate in enumerate(settled):
            bound = certificate.bounds[measure.column]
            if not isinstance(bound, Curve) or (len(moved) == 1 and not bound.steady):
                continue
            if bound.cap is None:
                return Refusal(
                    "portfolio",
                    "C-ONE",
                    "several protections are moved, and one of them has no public limit",
                    "let the owner list the protections as alternatives",
                    release.original,
                )
            value = GlobalBound(bound.cap + 2 * bound.rounding)
            settled[index] = replace(
                certificate, bounds={**certificate.bounds, measure.column: value}
            )
    return tuple(settled)
