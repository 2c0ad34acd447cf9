"""Stage *split*: the outermost aggregates that can be bounded are released; what stands above reads the releases.

In: a normalized plan, the policy, the protections that hold. Out: the plan over released tables, and the releases in
the order in which they are made, each enforced and bounded (`enforce.py`, `bound.py`) when it is tried: where an
aggregate cannot be bounded, the next one further in is. A subquery that stands in the way of a bound is released first,
and its numbers are constants afterwards (workflow.staged, workflow.lookup). What stands above a release works on public
numbers and needs no proof; AFTER is the order of what is done to it. Never here: noise, a look at data.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from secant.errors import InternalError, Refused, Span
from secant.plan import nodes as n
from secant.plan.facts.domains import Chosen, Listed
from secant.plan.facts.facts import Facts
from secant.plan.facts.reads import expressions
from secant.plan.facts.scopes import borrowed_by, read_columns
from secant.plan.rewrites.decorrelate import grouped, one_row, single_aggregate
from secant.plan.rewrites.enforce import StreamKey
from secant.plan.rewrites.null_after_release import still_failing, unfailing
from secant.plan.rewrites.public_order import in_public_order
from secant.plan.rewrites.quotients import quotients_of
from secant.plan.rewrites.rewrite import retype
from secant.plan.typing import Mistyped, fields_of
from secant.plan.verify import verify
from secant.policy.following import has_distance
from secant.policy.policy import Policy, Protection
from secant.records import frozen
from secant.schema.catalog import Catalog
from secant.sensitivity import explain as wording
from secant.sensitivity.bound import CertifiedRelease, bound
from secant.sensitivity.certificate import Refusal
from secant.sensitivity.context import Context
from secant.sensitivity.covered import refuse_uncovered
from secant.sensitivity.enforce import enforced_aggregate
from secant.sensitivity.public_facts import PublicFacts


def split(
    text: str,
    plan: n.Relation,
    policy: Policy,
    protections: tuple[Protection, ...],
    catalog: Catalog,
    facts: PublicFacts,
) -> Decomposition:
    """Give the bounded releases of a plan, or raise why there are none."""
    outcome = prepare(plan, policy, protections, catalog, facts)
    if isinstance(outcome, Decomposition):
        return outcome
    raise refusal_of(outcome, text)


def refusal_of(outcome: RawRows | tuple[Refusal, ...], text: str) -> Refused:
    """Say why no analysis bounds a question, and what stands in the way first."""
    if isinstance(outcome, RawRows):
        return Refused(
            "REF-102",
            f"the query shows rows of the protected table {outcome.scan.table}",
            text=text,
            span=outcome.scan.span,
            hint="ask for counts, sums or averages instead",
        )
    first = outcome[0]
    span = getattr(first.node, "span", None)
    return Refused(
        "REF-101",
        "this query cannot be made private as written",
        text=text,
        span=span if isinstance(span, Span) else None,
        details=tuple(dict.fromkeys(wording.refusal_line(r) for r in outcome)),
        hint=first.hint,
    )


@frozen
class Decomposition:
    """A whole query: what is released, and what happens with the released tables afterwards."""

    post: n.Relation
    bounded: tuple[CertifiedRelease, ...]


@frozen
class RawRows:
    """The query shows rows of a protected table as they are."""

    scan: n.Scan


Outcome = Decomposition | RawRows | tuple[Refusal, ...]


def prepare(
    plan: n.Relation,
    policy: Policy,
    protections: tuple[Protection, ...],
    catalog: Catalog,
    facts: PublicFacts | None = None,
    stepped: StreamKey | None = None,
) -> Outcome:
    """Split the plan into releases and what follows them, or say why that cannot be done.

    `stepped` says which key of an aggregate is the step of a stream.
    """
    read = read_columns(plan)
    refuse_uncovered(plan, policy, protections, read)
    facts = facts or PublicFacts()
    context = Context(Facts(policy, catalog), protections, facts, read, quotients_of(plan), stepped)
    inside = _in_window(plan, context)
    if inside is not None:
        return (inside,)
    split = Split(context, _reserved_names(plan, catalog))
    try:
        remainder = split.visit(plan)
    except Exposed as exposed:
        return tuple(split.refusals) if split.refusals else RawRows(exposed.scan)
    for step in AFTER:
        outcome = step(remainder, split.bounded)
        if isinstance(outcome, Refusal):
            return (outcome,)
        remainder = outcome
    remainder = in_public_order(remainder, partial(has_distance, policy))
    if context.touches(remainder):  # the last wall before a plan runs without noise
        raise InternalError("BUG-001", "a protected table is left outside of every release")
    return Decomposition(remainder, tuple(split.bounded))


class Exposed(Exception):  # noqa: N818 - control flow inside of this module
    """Rows of a protected table would be shown as they are."""

    def __init__(self, scan: n.Scan) -> None:
        super().__init__()
        self.scan = scan


@dataclass
class Split:
    """One query while it is taken apart: what is released so far, in order, and what stands against it."""

    context: Context
    taken: frozenset[str]
    """Tables, and first parts of column names in the query: releases are called otherwise."""
    bounded: list[CertifiedRelease] = field(default_factory=list)
    refusals: list[Refusal] = field(default_factory=list)
    done: dict[n.Node, n.Relation] = field(default_factory=dict)
    failed: dict[n.Node, Exposed] = field(default_factory=dict)
    lookups: int = 0

    def visit(self, relation: n.Relation) -> n.Relation:
        """Give the relation as it is after the releases; a shared node is released once."""
        if relation in self.failed:
            raise self.failed[relation]
        if relation not in self.done:
            try:
                self.done[relation] = self._visit(relation)
            except Exposed as exposed:
                self.failed[relation] = exposed
                raise
        return self.done[relation]

    def _visit(self, relation: n.Relation) -> n.Relation:
        if not self.context.touches(relation):
            return relation
        if isinstance(relation, n.Scan):
            raise Exposed(relation)
        if isinstance(relation, n.Aggregate):
            before = len(self.refusals)
            outcome = self._bound(relation)
            if not isinstance(outcome, CertifiedRelease):
                self._refuse(outcome)
                outcome = self._in_stages(relation, outcome)
            if isinstance(outcome, CertifiedRelease):
                del self.refusals[before:]
                self.bounded.append(outcome)
                if outcome.softened is None:
                    return outcome.release.finish
                return n.Project(outcome.release.finish, outcome.softened.outputs)
            self._refuse(outcome)
        # Not an aggregate, or one that no analysis can bound: it may still work on releases further in.
        return n.rebuild(relation, lambda node: self._descend(node, relation))

    def _bound(self, aggregate: n.Aggregate) -> CertifiedRelease | Sequence[Refusal]:
        return bound_aggregate(aggregate, self._name("release", len(self.bounded)), self.context)

    def _refuse(self, refusals: Sequence[Refusal]) -> None:
        self.refusals += [r for r in refusals if r not in self.refusals]

    def _name(self, word: str, before: int) -> str:
        name = f"{word}{before + 1}"
        while name in self.taken:
            name += "_"
        return name

    def _descend(self, node: n.Node, host: n.Relation) -> n.Node:
        if isinstance(node, n.Relation):
            return self.visit(node)
        if (
            isinstance(node, n.ScalarSubquery)
            and self.context.touches(node.relation)
            and borrowed_by(node.relation)
        ):
            released = self._released_first(node, host)
            if released is not None:
                return released
        return n.rebuild(node, lambda child: self._descend(child, host))

    # ── stages ───────────────────────────────────────────────────────────────────────────────────

    def _in_stages(
        self, aggregate: n.Aggregate, refused: Sequence[Refusal]
    ) -> CertifiedRelease | Sequence[Refusal]:
        """Release what an aggregate's subqueries say first, and bound it with those numbers as constants.

        Rests on workflow.staged.

        Tried only for an aggregate that no analysis bounds as it stands; whether it is depends on public facts.
        """
        before, done = len(self.bounded), dict(self.done)
        staged = self._staged(aggregate)
        if staged is aggregate or not self.context.touches(staged):
            # All that is left is public: nothing but its subqueries needs a release.
            self._forget(before, done)
            return refused
        if any(b.softened is not None for b in self.bounded[before:]):
            fitting = with_reals(staged)
            if isinstance(fitting, Refusal):
                self._forget(before, done)
                return (*refused, fitting)
            staged = fitting
        assert isinstance(staged, n.Aggregate)
        outcome = self._bound(staged)
        if isinstance(outcome, CertifiedRelease):
            read = ", ".join(sorted({r.name for r in n.walk(staged) if isinstance(r, n.Released)}))
            note = f"reads {read}, released before and put in as constants (workflow.staged)"
            release = replace(outcome.release, notes=(note, *outcome.release.notes))
            return replace(outcome, release=release, tried=(*refused, *outcome.tried))
        self._forget(before, done)
        return outcome

    def _forget(self, before: int, done: dict[n.Node, n.Relation]) -> None:
        """Take releases back that nothing uses: they are not made, and cost nothing."""
        del self.bounded[before:]
        self.done = done

    def _staged(self, relation: n.Relation) -> n.Relation:
        """Give a relation with all subqueries that can be released first as released tables."""

        @n.once
        def change(node: n.Node) -> n.Node:
            if isinstance(node, n.Relation):
                return self._staged(node)
            if isinstance(node, (n.ScalarSubquery, n.InSubquery)) and self.context.touches(
                node.relation
            ):
                released = self._released_first(node, relation)
                if released is not None:
                    return (
                        n.rebuild(released, change) if isinstance(node, n.InSubquery) else released
                    )
            return n.rebuild(node, change)

        return n.rebuild(relation, change)

    def _released_first(
        self, subquery: n.ScalarSubquery | n.InSubquery, host: n.Relation
    ) -> n.ScalarSubquery | n.InSubquery | None:
        """Give a subquery over releases of its own; None, and no release, where that does not fit."""
        before, done = len(self.bounded), dict(self.done)
        try:
            released = self._over_releases(subquery, host)
            if released is not None and self.context.touches(released.relation):
                released = replace(released, relation=self.visit(released.relation))
        except Exposed:
            released = None
        if released is None:
            self._forget(before, done)
        return released

    def _over_releases(
        self, subquery: n.ScalarSubquery | n.InSubquery, host: n.Relation
    ) -> n.ScalarSubquery | n.InSubquery | None:
        name = self._name("lookup", self.lookups)
        self.lookups += 1
        if borrowed_by(subquery.relation):
            if isinstance(subquery, n.InSubquery):
                return None
            subquery_grouped = grouped(subquery, host, name, lambda r: not self.context.touches(r))
            if subquery_grouped is None or not self.context.touches(subquery_grouped.aggregate):
                return None
            released = self.visit(subquery_grouped.aggregate)
            if self._chosen(released):
                return None
            last = self.bounded[-1].release
            note = "asked for by each row of an outer query, and looked up there (workflow.lookup)"
            self.bounded[-1] = replace(
                self.bounded[-1], release=replace(last, notes=(note, *last.notes))
            )
            return subquery_grouped.looked_up_in(released)
        rows = self.visit(subquery.relation)
        if isinstance(subquery, n.InSubquery):
            return None if self._chosen(rows) else replace(subquery, relation=rows)
        if single_aggregate(subquery.relation) is None:
            return None  # it might return several rows
        if single_aggregate(rows) is None:
            ((column, kind),) = ((f.name, f.type) for f in fields_of(rows))
            if kind.kind == "BOOLEAN":
                return None  # truth values have no maximum in every engine
            rows = one_row(rows, (n.Column(column, kind),), f"{name}.one")
        return replace(subquery, relation=rows)

    def _chosen(self, relation: n.Relation) -> bool:
        """Whether some released groups of a relation are chosen privately: which are missing is noise, too."""
        names = {r.name for r in n.walk(relation) if isinstance(r, n.Released)}
        domains = [d for b in self.bounded if b.release.name in names for d in b.release.domains]
        return any(isinstance(d, Chosen) for d in domains)


def bound_aggregate(
    aggregate: n.Aggregate, name: str, context: Context
) -> CertifiedRelease | Sequence[Refusal]:
    """Enforce one aggregate and bound it under every protection, or give all reasons against it."""
    enforced = enforced_aggregate(aggregate, name, context)
    return (enforced,) if isinstance(enforced, Refusal) else bound(enforced, context)


def _reserved_names(plan: n.Relation, catalog: Catalog) -> frozenset[str]:
    """Give names that releases must not have: a released table must not hide one of the engine's."""
    relations = (r for r in n.walk(plan) if isinstance(r, n.Relation))
    parts = (f.name.partition(".")[0] for r in relations for f in fields_of(r))
    return frozenset(parts) | catalog.tables.keys()


def _in_window(plan: n.Relation, context: Context) -> Refusal | None:
    """Refuse a protected subquery inside a window call: no rule bounds what it tells there."""
    windows = (r for r in n.walk(plan) if isinstance(r, n.Window))
    asking = next((c for w in windows for c in expressions(w) if context.touches(c)), None)
    if asking is None:
        return None
    reason, hint = "a window call holds a subquery", "compute the subquery in FROM and join it"
    return Refusal("portfolio", "rewrite.subquery", reason, hint, asking)


def _with_real_counts(
    remainder: n.Relation, bounded: list[CertifiedRelease]
) -> n.Relation | Refusal:
    """Let softened counts, which are real numbers, stand where whole ones stood."""
    return remainder if all(b.softened is None for b in bounded) else with_reals(remainder)


def _with_one_row(remainder: n.Relation, bounded: list[CertifiedRelease]) -> n.Relation | Refusal:
    """Refuse scalar subqueries over several released groups."""
    return many_released(remainder, bounded) or remainder


def _without_failures(
    remainder: n.Relation, bounded: list[CertifiedRelease]
) -> n.Relation | Refusal:
    """Put NULL in place of failures: the answer may be paid for, and one bad cell must not cost the others."""
    remainder = unfailing(remainder)
    verify(remainder)
    failing = still_failing(remainder) if bounded else None
    if failing is None:
        return remainder
    reason = "what follows the release may fail after it is paid for"
    hint = "compute the subquery in FROM and join it"
    return Refusal("portfolio", "rewrite.subquery", reason, hint, failing)


AFTER: tuple[Callable[[n.Relation, list[CertifiedRelease]], n.Relation | Refusal], ...] = (
    _with_real_counts,
    _with_one_row,
    _without_failures,
)
"""What is done to the rest of a question, which reads releases, in this order."""


def many_released(post: n.Relation, bounded: list[CertifiedRelease]) -> Refusal | None:
    """A scalar subquery over several released groups would be NULL after it was paid for."""
    keyed = {b.release.name for b in bounded if b.release.exact.keys and not _one_group(b)}
    for node in n.walk(post):
        if isinstance(node, n.ScalarSubquery):
            inner = node.relation
            while isinstance(inner, (n.Project, n.Filter, n.Sort)):
                inner = inner.input
            if isinstance(inner, n.Released) and inner.name in keyed:
                return Refusal(
                    "portfolio",
                    "rewrite.subquery",
                    "the scalar subquery might return several rows",
                    "aggregate its groups, for example with max()",
                    node,
                )
    return None


def _one_group(b: CertifiedRelease) -> bool:
    """Whether a release has one group by the text itself, such as `WHERE store = 4 GROUP BY store`."""
    return all(isinstance(d, Listed) and len(d.values) <= 1 for d in b.release.domains)


def with_reals(plan: n.Relation) -> n.Relation | Refusal:
    """Give a plan that reads softened counts, which are real numbers, or say what in it takes whole ones only."""
    try:
        return retype(plan)
    except Mistyped as error:
        reason = f"what is counted over protected values is a real number: {error}"
        hint = "cast it, for example CAST(count(*) AS INTEGER)"
        return Refusal("derivative", "derivative.value", reason, hint, error.node)
