"""Which aggregates are released, and with which proof: the outermost that some analysis can bound.

In: a normalized plan and a policy. Out: the plan with every protected aggregate replaced by a released table, and for
each of those a release with one certificate per protection. Chooses by public fields only: among global bounds the
smallest wins. What stands above a release works on public numbers and needs no proof.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import cache

from secant.analysis.certificate import (
    CannotBound,
    Certificate,
    ClippedContribution,
    Move,
    Refusal,
    SmoothSensitivity,
    Step,
    is_still,
)
from secant.analysis.combined import CombinedAnalysis, adds_up
from secant.analysis.covered import refuse_uncovered
from secant.analysis.derivative.analysis import DerivativeAnalysis
from secant.analysis.derivative.public_rows import public_rows_of
from secant.analysis.derivative.softened import Softened
from secant.analysis.derivative.space import space_of
from secant.analysis.derivative.unions import soften
from secant.analysis.interface import Analysis, Request, WhenAsked
from secant.analysis.joins import JoinsAnalysis
from secant.analysis.split import Bounded, Exposed, Split, many_released, with_reals
from secant.analysis.stability.analysis import StabilityAnalysis
from secant.analysis.truncation.analysis import TruncationAnalysis
from secant.errors import InternalError
from secant.plan import nodes as n
from secant.plan.enforce import Release, Steps, enforce
from secant.plan.facts import Facts
from secant.plan.lineage import stored_column
from secant.plan.measures import Problem
from secant.plan.quotients import Family, cut_together, quotients_of
from secant.plan.reads import expressions, scans, tables_read
from secant.plan.scopes import read_columns
from secant.plan.typing import fields_of
from secant.plan.unfailing import still_failing, unfailing
from secant.plan.verify import verify
from secant.records import frozen
from secant.terms.bounds import GlobalBound
from secant.terms.catalog import Catalog
from secant.terms.coverage import is_protected
from secant.terms.keys import in_order
from secant.terms.policy import Policy, Protection

__all__ = [
    "ANALYSES",
    "Bounded",
    "Outcome",
    "Prepared",
    "PublicFacts",
    "RawRows",
    "ask",
    "bound_aggregate",
    "prepare",
    "read_columns",
]


@cache
def _smt() -> Analysis:
    from secant.analysis.smt.analysis import SmtAnalysis

    return SmtAnalysis()


ANALYSES: tuple[Analysis, ...] = (
    StabilityAnalysis(),
    TruncationAnalysis(),
    WhenAsked("smt", ("rows",), _smt),
    JoinsAnalysis(),
    DerivativeAnalysis(),
    CombinedAnalysis(),
)


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

    def at(self, epsilon: Fraction) -> PublicFacts:
        """Give the same facts for another amount that is spent."""
        return replace(self, epsilon=epsilon)


@frozen
class Prepared:
    """A whole query: what is released, and what happens with the released tables afterwards."""

    post: n.Relation
    bounded: tuple[Bounded, ...]


@frozen
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
    stepped: Steps | None = None,
) -> Outcome:
    """Split the plan into releases and what follows them, or say why that cannot be done.

    `stepped` says which key of an aggregate is the step of a stream.
    """
    taken = frozenset(
        f.name.partition(".")[0]
        for r in n.walk(plan)
        if isinstance(r, n.Relation)
        for f in fields_of(r)
    )
    taken |= catalog.tables.keys()  # a released table must not hide one of the engine's
    read, known, held = read_columns(plan), facts or PublicFacts(), Facts(policy, catalog)
    refuse_uncovered(plan, policy, protections, read)

    @cache
    def shows(scan: n.Scan) -> bool:
        return _shows_protected(scan, policy, protections, read)

    def touched(node: n.Node) -> bool:
        return any(map(shows, scans(node)))

    inside = _in_window(plan, touched)
    if inside is not None:
        return (inside,)

    def bound(aggregate: n.Aggregate, name: str) -> Bounded | Sequence[Refusal]:
        return bound_aggregate(aggregate, name, held, protections, known, quotients, stepped)

    quotients = quotients_of(plan)
    work = Split(bound, touched, taken)
    try:
        post = work.visit(plan)
    except Exposed as exposed:
        return tuple(work.refusals) if work.refusals else RawRows(exposed.scan)
    if any(b.softened is not None for b in work.bounded):
        fitting = with_reals(post)
        if isinstance(fitting, Refusal):
            return (fitting,)
        post = fitting
    several = many_released(post, work.bounded)
    if several is not None:
        return (several,)
    post = unfailing(post)  # the answer may be paid for: one bad cell must not cost the others
    verify(post)
    risky = still_failing(post) if work.bounded else None
    if risky is not None:
        reason = "what follows the release may fail after it is paid for"
        hint = "compute the subquery in FROM and join it"
        return (Refusal("portfolio", "rewrite.subquery", reason, hint, risky),)
    if touched(post):  # the last wall before a plan runs without noise
        raise InternalError("BUG-001", "a protected table is left outside of every release")
    return Prepared(post, tuple(work.bounded))


def _in_window(plan: n.Relation, touched: Callable[[n.Node], bool]) -> Refusal | None:
    """Refuse a protected subquery inside a window call: no rule bounds what it tells there."""
    windows = (r for r in n.walk(plan) if isinstance(r, n.Window))
    asking = next((c for w in windows for c in expressions(w) if touched(c)), None)
    if asking is None:
        return None
    reason, hint = "a window call holds a subquery", "compute the subquery in FROM and join it"
    return Refusal("portfolio", "rewrite.subquery", reason, hint, asking)


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
    held: Facts,
    protections: tuple[Protection, ...],
    facts: PublicFacts,
    quotients: tuple[Family, ...] = (),
    stepped: Steps | None = None,
) -> Bounded | Sequence[Refusal]:
    """Enforce one aggregate and bound it under every protection, or give all reasons against it."""
    policy, read = held.policy, read_columns(aggregate)

    used = scans(aggregate)
    touched = {
        p.name: any(_shows_protected(s, policy, (p,), read) for s in used) for p in protections
    }
    cells = tuple(p for p in protections if p.distance and touched[p.name])
    softened: Softened | None = None
    public_rows = {}
    facts = _about_public(facts, policy)
    if cells:
        moving = not any(p.kind != "cells" and touched[p.name] for p in protections)
        metric = all(p.distance for p in protections if touched[p.name])
        estimate = facts.rows if moving else PublicFacts().rows
        share = facts.epsilon / max(1, len(aggregate.aggregations))
        try:
            softened = soften(aggregate, policy, cells, share, estimate, facts.ends)
            used = scans(softened.aggregate)
            public_rows = {p.name: public_rows_of(p, policy, used, held.catalog) for p in cells}
        except CannotBound as verdict:
            return (verdict.refusal("derivative"),)
        release = enforce(
            softened.aggregate,
            name,
            held,
            protections,
            moving=moving,
            metric=metric,
            stepped=stepped,
        )
    else:
        release = _enforced(aggregate, name, held, protections, facts, stepped)
    if isinstance(release, Problem):
        return (Refusal("enforce", release.rule, release.reason, release.hint, release.node),)
    if softened is not None:
        release = replace(release, notes=(*softened.notes, *release.notes))
    release = cut_together(release, quotients)
    certificates: list[Certificate] = []
    refusals: list[Refusal] = []
    for protection in protections:
        request = Request(
            release,
            held,
            protection,
            public_rows.get(protection.name, {}),
            facts.count,
            facts.fan,
        )
        found, against = ask(request)
        if found is not None:
            certificates.append(_for_those_who_give_least(found, protection, release))
            refusals += against
        else:  # what stands in the way comes first: the analyst is told to mend that
            refusals[:0] = against
    if len(certificates) < len(protections):
        return tuple(refusals)
    if stepped is None:
        certificates = _beside(certificates, protections, release, held)
    settled = _one_noise(certificates, release)
    if isinstance(settled, Refusal):
        return (settled, *refusals)
    return Bounded(release, settled, tuple(refusals), softened)


def _enforced(
    aggregate: n.Aggregate,
    name: str,
    held: Facts,
    protections: tuple[Protection, ...],
    facts: PublicFacts,
    stepped: Steps | None,
) -> Release | Problem:
    """Enforce what is declared; ranges that are missing are looked up where a table is public (combined.ends)."""
    release = enforce(aggregate, name, held, protections, stepped=stepped)
    if not isinstance(release, Problem) or release.rule != "rewrite.range":
        return release
    policy, read = held.policy, read_columns(aggregate)
    tables = dict(policy.tables)
    looked: list[str] = []
    for scan in scans(aggregate):
        if is_protected(scan.table.lower(), policy, policy.protections):
            continue
        table = scan.table.lower()
        for f in scan.columns:
            column = stored_column(scan, f.name).lower()
            known = policy.column(table, column)
            if not f.type.numeric or f.name not in read or known.range or known.values:
                continue
            ends = facts.ends(table, column)
            if ends is not None:
                old = tables.get(table, policy.facts(table))
                columns = {**old.columns, column: replace(known, range=ends)}
                tables[table] = replace(old, columns=columns)
                looked.append(f"range of {table}.{column}: looked up, the table is public")
    enlarged = Facts(replace(policy, tables=tables), held.catalog)
    found = enforce(aggregate, name, enlarged, protections, stepped=stepped)
    if isinstance(found, Problem):
        return found
    return replace(found, notes=(*dict.fromkeys(looked), *found.notes))


def ask(request: Request) -> tuple[Certificate | None, list[Refusal]]:
    """Ask the analyses in turn, and put together what they prove; a public number ends the search for `rows`."""
    kind = request.protection.kind
    found: list[Certificate] = []
    refusals: list[Refusal] = []
    for analysis in [r for r in ANALYSES if kind in r.kinds] or ANALYSES:
        if kind == "rows" and any(_is_global(c) for c in found):
            break
        outcome = analysis.bound(request)
        if isinstance(outcome, Certificate):
            found.append(outcome)
            refusals += outcome.tried
        else:
            refusals += (outcome, *outcome.others)
    together = _limited if kind == "unit" else _least
    return together(found, request), refusals


def _for_those_who_give_least(
    certificate: Certificate, protection: Protection, release: Release
) -> Certificate:
    """Where units give different amounts, let bounds be in shares of what those give who give most.

    Rests on stability.personal.
    """
    offers = protection.personal
    if offers is None or all(is_still(x) for x in certificate.bounds.values()):
        return certificate
    if protection.name in release.copied:
        words = f"rows count in proportion, up to {offers.copies[-1]} times"
        step = Step("stability.personal", words, "who gives less moves it less")
        return replace(certificate, derivation=(*certificate.derivation, step))
    bounds: dict[str, Move] = {}
    for column, bound in certificate.bounds.items():
        assert isinstance(bound, GlobalBound), "other bounds were refused"
        bounds[column] = replace(bound, value=bound.value / offers.least)
    words = f"everybody counts alike, so noise is for those who give {float(offers.least):.4g} of the most"
    step = Step("stability.personal", words, f"bounds times {float(1 / offers.least):.6g}")
    return replace(
        certificate, bounds=bounds, squares={}, derivation=(*certificate.derivation, step)
    )


def _is_global(certificate: Certificate) -> bool:
    return all(isinstance(b, GlobalBound) for b in certificate.bounds.values())


def _least(found: list[Certificate], request: Request) -> Certificate | None:
    """Take the smallest global bound, else what was found first."""
    public = [c for c in found if _is_global(c)]
    return min(public, key=_most) if public else next(iter(found), None)


def _limited(found: list[Certificate], request: Request) -> Certificate | None:
    """Let limits that are chosen privately take the place of declared ones, where the analysis says that it pays."""
    chosen = next(
        (c for c in found if any(isinstance(b, ClippedContribution) for b in c.bounds.values())),
        None,
    )
    fixed = next((c for c in found if c is not chosen), None)
    release = request.release
    wanted = {m.column for m in release.measures} | {r.column for r in release.ranked}
    if chosen is None:
        return None if fixed is None or wanted - set(fixed.bounds) else fixed
    declared = fixed.bounds if fixed is not None else {}
    bounds = dict(declared)
    for column, bound in chosen.bounds.items():
        assert isinstance(bound, ClippedContribution)
        cap = declared.get(column)
        bounds[column] = replace(bound, cap=cap.value if isinstance(cap, GlobalBound) else None)
    if wanted - set(bounds):
        return None
    if fixed is None:
        return replace(chosen, bounds=bounds)
    return replace(
        fixed,
        analysis=f"{fixed.analysis}, {chosen.analysis}"
        if set(declared) - set(chosen.bounds)
        else chosen.analysis,
        bounds=bounds,
        derivation=(*fixed.derivation, *chosen.derivation),
    )


def _most(certificate: Certificate) -> Fraction:
    """Compare global bounds."""
    return sum(
        (b.value for b in certificate.bounds.values() if isinstance(b, GlobalBound)), Fraction(0)
    )


def _beside(
    certificates: list[Certificate],
    protections: tuple[Protection, ...],
    release: Release,
    held: Facts,
) -> list[Certificate]:
    """Where rows are hidden by one protection and values by another, let one bound serve both (combined.beside)."""
    moved = [
        (p, c)
        for p, c in zip(protections, certificates, strict=True)
        if not all(map(is_still, c.bounds.values()))
    ]
    cells = [(p, c) for p, c in moved if p.kind == "cells" and not p.public_rows]
    rows = [(p, c) for p, c in moved if p.kind == "rows" and not p.replace]
    if len(moved) != 2 or len(cells) != 1 or len(rows) != 1 or not adds_up(cells[0][0]):
        return certificates
    if release.ranked or release.selector is not None:
        return certificates
    ((moving, curved),), ((hiding, jumping),) = cells, rows
    covered = held.covered(hiding)
    weights = {t: Fraction(1) for t in tables_read(*release.aggregates) if t in covered}
    found = CombinedAnalysis().beside(Request(release, held, moving), weights)
    if isinstance(found, Refusal):
        return certificates
    shared: dict[str, Move] = {}
    for column, bound in found.bounds.items():
        both = not is_still(curved.bounds[column]) and not is_still(jumping.bounds[column])
        if both and isinstance(bound, SmoothSensitivity) and not bound.steady:
            public = {c.protection: _cap(c.bounds[column]) for c in (curved, jumping)}
            known = {name: cap for name, cap in public.items() if cap is not None}
            shared[column] = replace(bound, public=known)
    told = tuple(s for s in found.derivation if s not in (*curved.derivation, *jumping.derivation))
    return [
        replace(
            c,
            bounds={**c.bounds, **shared},
            claims=in_order({*c.claims, *found.claims}),
            derivation=(*c.derivation, *told) if c is curved else c.derivation,
        )
        if shared and c in (curved, jumping)
        else c
        for c in certificates
    ]


def _cap(bound: Move) -> Fraction | None:
    """Give a public number that a bound never exceeds, widened by the rounding of both databases."""
    if isinstance(bound, GlobalBound):
        return bound.value
    if isinstance(bound, SmoothSensitivity) and bound.cap is not None:
        return bound.cap + 2 * bound.rounding
    return bound.cap


def _one_noise(
    certificates: list[Certificate], release: Release
) -> tuple[Certificate, ...] | Refusal:
    """One noise serves all protections (combined.one): a bound that varies only where no other protection is moved.

    A bound that is smooth in one protection's distance may leap with another's, and so may a limit that is
    chosen: beside another protection, unless it is the same bound for both (combined.beside), and where it would be its
    cap anyway, its public cap takes its place.
    """
    settled = list(certificates)
    for measure in release.measures:
        moved = [c for c in settled if not is_still(c.bounds[measure.column])]
        for index, certificate in enumerate(settled):
            bound = certificate.bounds[measure.column]
            steady = isinstance(bound, SmoothSensitivity) and bound.steady
            alone = all(c.bounds[measure.column] is bound for c in moved)
            if isinstance(bound, GlobalBound) or (alone and not steady):
                continue
            if bound.cap is None:
                return Refusal(
                    "portfolio",
                    "combined.one",
                    "several protections are moved, and one of them has no public limit",
                    "let the owner list the protections as alternatives",
                    release.original,
                )
            cap = _cap(bound)
            assert cap is not None
            value = GlobalBound(cap)
            told = f"{measure.words}:"
            settled[index] = replace(
                certificate,
                bounds={**certificate.bounds, measure.column: value},
                derivation=tuple(
                    s
                    for s in certificate.derivation
                    if not (s.rule.startswith("truncation.") and told in s.place)
                )
                if isinstance(bound, ClippedContribution)
                else certificate.derivation,
            )
    return tuple(settled)
