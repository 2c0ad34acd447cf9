"""Which aggregates are released, and with which proof: the outermost that some analysis can bound.

In: a normalized plan and a policy. Out: the plan with every protected aggregate replaced by a released table, and for
each of those a release with one certificate per protection. What stands above a release works on public numbers and
needs no proof; AFTER is the order of what is done to it.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from secant.errors import InternalError
from secant.plan import nodes as n
from secant.plan.facts.facts import Facts
from secant.plan.facts.reads import expressions
from secant.plan.facts.scopes import read_columns
from secant.plan.rewrites.enforce import StreamKey
from secant.plan.rewrites.null_after_release import still_failing, unfailing
from secant.plan.rewrites.public_order import in_public_order
from secant.plan.rewrites.quotients import quotients_of
from secant.plan.typing import fields_of
from secant.plan.verify import verify
from secant.policy.following import has_distance
from secant.policy.policy import Policy, Protection
from secant.records import frozen
from secant.schema.catalog import Catalog
from secant.sensitivity.bounding import CertifiedRelease, ask, bound_aggregate
from secant.sensitivity.certificate import Refusal
from secant.sensitivity.context import Context
from secant.sensitivity.covered import refuse_uncovered
from secant.sensitivity.public_facts import PublicFacts
from secant.sensitivity.split import Exposed, Split, many_released, with_reals

__all__ = [
    "AFTER",
    "CertifiedRelease",
    "Context",
    "Decomposition",
    "Outcome",
    "PublicFacts",
    "RawRows",
    "ask",
    "bound_aggregate",
    "prepare",
    "read_columns",
]


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
    split = Split(context, _taken(plan, catalog))
    try:
        rest = split.visit(plan)
    except Exposed as exposed:
        return tuple(split.refusals) if split.refusals else RawRows(exposed.scan)
    for step in AFTER:
        outcome = step(rest, split.bounded)
        if isinstance(outcome, Refusal):
            return (outcome,)
        rest = outcome
    rest = in_public_order(rest, partial(has_distance, policy))
    if context.touches(rest):  # the last wall before a plan runs without noise
        raise InternalError("BUG-001", "a protected table is left outside of every release")
    return Decomposition(rest, tuple(split.bounded))


def _taken(plan: n.Relation, catalog: Catalog) -> frozenset[str]:
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


# ── what follows the releases ────────────────────────────────────────────────────────────────────


def _with_real_counts(rest: n.Relation, bounded: list[CertifiedRelease]) -> n.Relation | Refusal:
    """Let softened counts, which are real numbers, stand where whole ones stood."""
    return rest if all(b.softened is None for b in bounded) else with_reals(rest)


def _with_one_row(rest: n.Relation, bounded: list[CertifiedRelease]) -> n.Relation | Refusal:
    """Refuse scalar subqueries over several released groups."""
    return many_released(rest, bounded) or rest


def _without_failures(rest: n.Relation, bounded: list[CertifiedRelease]) -> n.Relation | Refusal:
    """Put NULL in place of failures: the answer may be paid for, and one bad cell must not cost the others."""
    rest = unfailing(rest)
    verify(rest)
    failing = still_failing(rest) if bounded else None
    if failing is None:
        return rest
    reason = "what follows the release may fail after it is paid for"
    hint = "compute the subquery in FROM and join it"
    return Refusal("portfolio", "rewrite.subquery", reason, hint, failing)


AFTER: tuple[Callable[[n.Relation, list[CertifiedRelease]], n.Relation | Refusal], ...] = (
    _with_real_counts,
    _with_one_row,
    _without_failures,
)
"""What is done to the rest of a question, which reads releases, in this order."""
