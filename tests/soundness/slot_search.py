"""The slot search: one question for each target, held against all neighbors under every protection at once.

In: targets and databases. Out: Findings, and what was drawn. Besides the claims of `neighbor_check`: what follows the
releases, the keys that are looked up and every fact that is looked up must not move with anything protected; a
statement is a function of the bag of rows; smooth bounds are smooth; what can move something is charged for it.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from fractions import Fraction
from typing import Any

import neighbor_check
from derivative_distance import distance_of
from engine_answers import Engine
from neighbor_check import Database, Findings, Row, Violation, _Limits, _Runner
from slot_coverage import Coverage, enforced_keys, inside_of, keys_of
from slot_places import SYNTAX, question
from slot_questions import COLLIDING, Target
from slot_targets import ROUND, aimed, goals, targets
from slot_worlds import (
    COMBINATIONS,
    STYLES,
    TABLES,
    SlotWorld,
    draw_database,
    draw_row,
    draw_world,
    moved_cells,
    redrawn,
)
from staged_tables import table_of, with_constants

from secant.errors import Refused, SecantError
from secant.noise.shares import calibrate
from secant.plan import nodes as n
from secant.plan.evaluate.evaluate import prepare as compiled
from secant.plan.evaluate.values import Failure, same_key
from secant.plan.facts.cardinality import expected_rows
from secant.plan.facts.domains import Looked, Open
from secant.plan.rewrites.rewrite import normalize, transform
from secant.policy.policy import Protection
from secant.sensitivity.bounds import GlobalBound
from secant.sensitivity.certificate import Certificate, SmoothSensitivity, Surveyed, is_still
from secant.sensitivity.portfolio import CertifiedRelease, Decomposition, PublicFacts, prepare
from secant.sql.bind import from_sql

TRIES = 12
"""Questions drawn for a target until one holds what it must."""
BETAS = (Fraction(1, 10), Fraction(1))
FLOATS = 4096
"""Whole steps (2^-48 of what a row can add) that floats may take where values move."""

Answer = Callable[[Database], Any]


@dataclass(frozen=True)
class Question:
    """A drawn question, its plan if it could be read, and what it became."""

    text: str
    target: Target
    world: SlotWorld
    plan: n.Relation | None = None
    prepared: Decomposition | None = None
    known: Database = field(default_factory=dict)
    """A database whose public part was looked up."""
    lookups: tuple[tuple[str, Answer], ...] = ()
    refused: str = ""

    def keys(self) -> set[str]:
        """Give what the question draws."""
        found = {
            f"place {self.target.place}", f"protections {self.target.combination}",
            f"tables named {self.world.style}", f"columns named {self.target.names}",
        }  # fmt: skip
        if self.plan is None:
            return found if self.target.place in SYNTAX else set()
        protected = {self.world.stored[x,].lower() for x in self.world.protected}
        found |= keys_of(self.plan, lambda table: table.lower() in protected)
        return found

    def enforced(self) -> set[str]:
        """Give what was made of an accepted question."""
        assert self.prepared is not None
        plans: list[n.Node] = [self.prepared.post]
        found: set[str] = set()
        many = "several" if len(self.world.real.policy.protections) > 1 else "one protection"
        for b in self.prepared.bounded:
            plans += [b.release.exact, *(r.cells for r in b.release.ranked)]
            if b.release.ranked:
                calls = (c.function for c in b.release.original.aggregations)
                found |= {f"rank {name} {many}" for name in calls}
            if any("workflow.staged" in note for note in b.release.notes):
                found.add("stage constant")
            if any("workflow.lookup" in note for note in b.release.notes):
                found.add("stage looked up")
        subqueries = (x for x in n.walk(self.prepared.post) if isinstance(x, n.ScalarSubquery))
        if any(isinstance(y, n.Released) for x in subqueries for y in n.walk(x.relation)):
            found.add("stage in the answer")
        return found | enforced_keys(plans)


def drawn(
    draw: random.Random, target: Target, coverage: Coverage, *, binding: bool = True
) -> Question:
    """Draw a question for a target, and bound it if it can be read and is to be bounded."""
    world = draw_world(draw, target.combination, target.style)
    best: tuple[int, str, n.Relation | None, str] = (-1, "", None, "")
    for _ in range(TRIES):
        text = question(draw, world, target)
        try:
            plan, why = from_sql(text, world.real.catalog), ""
        except SecantError as error:
            plan, why = None, str(error)
        asked = Question(text, target, world, plan)
        held = len(goals(target) & asked.keys()) + (plan is not None)
        if held > best[0]:
            best = (held, text, plan, why)
        if held == len(goals(target)) + 1 or target.place in SYNTAX:
            break
    _, text, plan, why = best
    found = Question(text, target, world, plan, refused=why)
    if plan is not None and binding:
        found = bounded(draw, found)
    coverage.note(found.keys(), found.prepared is not None)
    if plan is not None:
        coverage.inside.update(inside_of(plan))
    if found.prepared is not None:
        coverage.note(found.enforced(), accepted=True)
    return found


def bounded(draw: random.Random, question: Question) -> Question:
    """Bound a question with facts of a drawn database, and keep what was looked up."""
    world, plan = question.world, question.plan
    assert plan is not None
    known = draw_database(draw, world)
    stored = world.as_stored(known)
    named = {name.lower(): name for name in stored}
    lookups: list[tuple[str, Answer]] = []

    def fact(words: str, answer: Answer) -> Any:
        lookups.append((words, answer))
        return answer(stored)

    def rows_of(table: str) -> Callable[[Database], Sequence[Row]]:
        return lambda database: database[named[table.lower()]]

    def ends(table: str, column: str) -> Any:
        def answer(database: Database) -> Any:
            spelled = {c.lower(): c for c, _ in world.columns[named[table.lower()]]}
            found = [row[spelled[column.lower()]] for row in rows_of(table)(database)]
            numbers = [Fraction(v) for v in found if v is not None and math.isfinite(v)]
            return (min(numbers), max(numbers)) if numbers else None

        return fact(f"ends of {table}.{column}", answer)

    def fan(table: str, columns: tuple[str, ...]) -> int | None:
        def answer(database: Database) -> int:
            spelled = {c.lower(): c for c, _ in world.columns[named[table.lower()]]}
            found = [
                tuple(same_key(row[spelled[c.lower()]]) for c in columns)
                for row in rows_of(table)(database)
            ]
            return max((found.count(x) for x in found), default=0)

        return fact(f"fan of {table} by {columns}", answer)

    policy = world.real.policy

    def count(table: str) -> int | None:
        return fact(f"rows of {table}", lambda d: len(rows_of(table)(d)))

    facts = PublicFacts(
        Fraction(1), lambda relation: expected_rows(relation, policy, count), ends, count, fan
    )
    outcome = prepare(normalize(plan), policy, policy.protections, world.real.catalog, facts)
    if not isinstance(outcome, Decomposition):
        why = "raw rows" if not isinstance(outcome, tuple) else "; ".join(r.reason for r in outcome)
        return replace(question, refused=why)
    return replace(question, prepared=outcome, known=known, lookups=tuple(lookups))


# ── attack ───────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class Attack:
    """An accepted question, ready to be read on databases."""

    question: Question
    findings: Findings
    runners: tuple[_Runner, ...]
    still: tuple[tuple[str, Answer], ...]
    """What must not move with anything protected."""
    costs: Mapping[str, Fraction]

    def violated(self, before: Database, after: Database, protection: str, *claim: Any) -> None:
        name, measure, claimed, found = claim
        question = self.question
        self.findings.violations.append(
            Violation(
                question.text, name, protection, measure, claimed, found, before, after,
                question.world.plain.policy,
            )
        )  # fmt: skip

    def read(self, database: Database) -> Reading:
        stored = self.question.world.as_stored(database)
        return Reading(
            [(r.measured(stored), r.cells(stored)) for r in self.runners],
            [_answered(answer, stored) for _, answer in self.still],
            stored,
        )

    def try_on(self, draw: random.Random, database: Database) -> None:
        """Try all neighbors under each protection."""
        world = self.question.world
        try:
            before = self.read(database)
            turned = {name: draw.sample(list(rows), len(rows)) for name, rows in database.items()}
            shuffled = self.read(turned)
        except Failure:
            self.violated(database, database, "", "never fails", "", "an answer", "a failure")
            return
        if before.figures != shuffled.figures:
            self.violated(
                database, turned, "", "a function of the rows", "", before.figures, shuffled.figures
            )
        for protection in world.plain.policy.protections:
            for neighbor in neighbors(draw, database, world, protection):
                self.findings.triples += 1
                try:
                    after = self.read(neighbor)
                except Failure:
                    self.violated(
                        database, neighbor, protection.name, "never fails", "", "an answer", "none"
                    )
                    continue
                self.compare(protection, database, neighbor, before, after)

    def compare(
        self,
        protection: Protection,
        database: Database,
        neighbor: Database,
        before: Reading,
        after: Reading,
    ) -> None:
        pairs = zip(self.still, before.still, after.still, strict=True)
        for (words, _), one, two in pairs:
            if one != two:
                self.violated(database, neighbor, protection.name, "still", words, one, two)
        distance = Fraction(1)
        if protection.kind == "cells":
            distance = Fraction(distance_of(protection)(database, neighbor))
        if self.costs[protection.name] == 0 and before.figures != after.figures:
            self.violated(
                database, neighbor, protection.name, "charged", "", before.figures, after.figures
            )
        for place, runner in enumerate(self.runners):
            certificate = next(
                c for c in runner.bounded.certificates if c.protection == protection.name
            )
            if not neighbor_check._keys_hold(_plainly(certificate, self.question.world), database):
                continue
            one, two = before.figures[place], after.figures[place]
            claims = list(_claims(runner, certificate, protection, distance, one, two))
            for limits in runner.limits if protection.kind == "unit" else ():
                claims += neighbor_check._limit_comparisons(
                    runner, limits, before.stored, after.stored
                )
            claims += _smooth(runner.bounded, certificate, before, after, place)
            for claim in claims:
                if claim[3] > claim[2]:
                    self.violated(database, neighbor, protection.name, *claim)


@dataclass(frozen=True)
class Reading:
    """What one database gives: measures and cells of each release, and what must be still."""

    figures: list[tuple[Any, Any]]
    still: list[Any]
    stored: Database


def _answered(answer: Answer, database: Database) -> Any:
    try:
        return answer(database)
    except Failure:
        return "a failure"


def _plainly(certificate: Certificate, world: SlotWorld) -> Certificate:
    """Give a certificate whose claimed keys are under plain names."""
    plain = {name.lower(): key for key, name in world.stored.items() if len(key) == 1}
    claims = []
    for claim in certificate.claims:
        (table,) = plain[claim.table.lower()]
        columns = {world.stored[table, c].lower(): c for c, _ in TABLES[table]}
        named = tuple(columns[c.lower()] for c in claim.columns)
        claims.append(replace(claim, table=table, columns=named))
    return replace(certificate, claims=tuple(claims))


def neighbors(
    draw: random.Random, database: Database, world: SlotWorld, protection: Protection
) -> Iterator[Database]:
    """Give the neighbors of a database, or some that are not far where values move."""
    if protection.kind == "cells":
        yield from moved_cells(draw, database, protection.distance)
        return
    pool = {name: [draw_row(draw, name)] for name in TABLES}
    yield from neighbor_check.neighbors(database, world.plain, protection, pool)


def _claims(
    runner: _Runner,
    certificate: Certificate,
    protection: Protection,
    distance: Fraction,
    one: tuple[Any, Any],
    two: tuple[Any, Any],
) -> Iterator[tuple[str, str, Any, Any]]:
    """Give what a certificate claims of a pair: bounds of rows as they are, bounds of values times the distance."""
    bounded = runner.bounded
    ranks = neighbor_check._rank_comparisons(bounded, _ranks(certificate, bounded), one[1], two[1])
    if protection.kind != "cells":
        yield from neighbor_check._comparisons(bounded, certificate, one[0], two[0])
        yield from ranks
        return
    for name, measure, claimed, found in ranks:
        yield name, measure, claimed * distance, found
    keys = {*one[0], *two[0]}
    nothing = (Fraction(0),) * len(bounded.release.measures)
    for index, measure in enumerate(bounded.release.measures):
        moved = sum(
            (abs(one[0].get(k, nothing)[index] - two[0].get(k, nothing)[index]) for k in keys),
            Fraction(0),
        )
        bound = certificate.bounds[measure.column]
        if is_still(bound):
            yield "still", measure.column, Fraction(0), moved
        elif isinstance(bound, (GlobalBound, SmoothSensitivity)):
            limit = bound.value if isinstance(bound, GlobalBound) else bound.cap
            if limit is not None:
                slack = FLOATS if measure.type.kind == "DOUBLE" else 0
                yield "distance", measure.column, limit * distance + slack, moved
    if any(isinstance(d, Open) for d in bounded.release.domains):
        yield "the same groups", "", 0, int({*one[0]} != {*two[0]})


def _ranks(certificate: Certificate, bounded: CertifiedRelease) -> Certificate:
    """A certificate that says nothing of a rank says that it does not move."""
    missing = {
        r.column: GlobalBound(Fraction(0))
        for r in bounded.release.ranked
        if r.column not in certificate.bounds
    }
    return replace(certificate, bounds={**certificate.bounds, **missing})


def _smooth(
    bounded: CertifiedRelease, certificate: Certificate, before: Reading, after: Reading, place: int
) -> Iterator[tuple[str, str, Any, Any]]:
    """Give what is claimed of surveyed bounds: they cover the motion of their group, and are smooth."""
    release = bounded.release
    width = len(release.exact.keys)
    for index, measure in enumerate(release.measures):
        bound = certificate.bounds[measure.column]
        if not isinstance(bound, Surveyed):
            continue
        nothing = (Fraction(0),) * len(release.measures)
        one, two = before.figures[place][0], after.figures[place][0]
        groups = {*one, *two} or ({()} if not width else set())
        moved = {g for g in groups if one.get(g, nothing)[index] != two.get(g, nothing)[index]}
        for beta in BETAS:
            sizes = [
                {g: _surveyed(bound, beta, database, width, g) for g in groups}
                for database in (before.stored, after.stored)
            ]
            for g in groups:
                low, high = sorted((sizes[0][g], sizes[1][g]))
                change = abs(one.get(g, nothing)[index] - two.get(g, nothing)[index])
                yield (
                    "surveyed",
                    measure.column,
                    float(bound.each * low) * (1 + 1e-9),
                    float(change),
                )
                yield (
                    "smooth",
                    measure.column,
                    math.exp(beta) * float(low) * (1 + 1e-9),
                    float(high),
                )
                if low != high:
                    moved.add(g)
        yield "surveyed groups", measure.column, bound.groups, len(moved)


def _surveyed(
    bound: Surveyed, beta: Fraction, database: Database, width: int, group: tuple[Any, ...]
) -> Fraction:
    found = []
    for survey in bound.surveys:
        figures = []
        for statement, keyed in zip(survey.statements, survey.keyed, strict=True):
            rows = compiled(statement)(database)
            if keyed:
                rows = [r[width:] for r in rows if tuple(map(same_key, r[:width])) == group]
            figures.append(tuple(map(tuple, rows)))
        found.append(survey.rows(beta, tuple(figures)))
    return min(found)


# ── asking ───────────────────────────────────────────────────────────────────────────────────────


def prepared_attack(question: Question, findings: Findings) -> Attack | None:
    """Make an accepted question ready; None if its noise is refused, so that nothing is released."""
    assert question.prepared is not None
    protections = question.world.real.policy.protections
    deltas = {p.name: Fraction(1, 1000) for p in protections}
    try:
        noise = calibrate(question.prepared.bounded, protections, Fraction(1), deltas)
    except Refused:
        return None
    fixed = with_fixed_releases(question)
    runners = tuple(
        _Runner(
            b,
            compiled(b.release.exact),
            tuple(compiled(r.cells) for r in b.release.ranked),
            tuple(x for c in b.certificates for x in _Limits.all_of(c)),
        )
        for b in fixed.bounded
    )
    still = [(f"looked up: {words}", answer) for words, answer in question.lookups]
    for b in fixed.bounded:
        still += [
            (f"keys {d.keys}", _bag(compiled(d.relation)))
            for d in b.release.domains
            if isinstance(d, Looked)
        ]
    still.append(("what follows the releases", _bag(compiled(_after(question)))))
    costs = {name: cost[0] for name, cost in noise.costs.items()}
    return Attack(question, findings, runners, tuple(still), costs)


def _after(question: Question) -> n.Relation:
    """Give what follows the releases, with drawn constants in their place."""
    assert question.prepared is not None
    draw = random.Random(question.text)
    tables = {b.release.name: table_of(b, draw) for b in question.prepared.bounded}

    def put(node: n.Node) -> n.Node:
        return tables[node.name] if isinstance(node, n.Released) else node

    found = transform(question.prepared.post, put)
    assert isinstance(found, n.Relation)
    return found


def with_fixed_releases(question: Question) -> Decomposition:
    """Give an accepted question whose later stages read constants."""
    assert question.prepared is not None
    return with_constants(question.prepared, random.Random(question.text))


def _public_plans(question: Question) -> list[n.Relation]:
    assert question.prepared is not None
    looked = (d for b in question.prepared.bounded for d in b.release.domains)
    return [_after(question), *(d.relation for d in looked if isinstance(d, Looked))]


def _cut(plan: n.Relation) -> bool:
    """Whether rows are cut off: which of equal ones stay is the engine's choice."""
    return any(isinstance(x, n.Limit) for x in n.walk(plan))


def _statements(question: Question) -> list[n.Relation]:
    """Give all that is run for an accepted question."""
    releases = (b.release for b in with_fixed_releases(question).bounded)
    return [*_public_plans(question), *(a for release in releases for a in release.aggregates)]


def scanned(question: Question) -> set[str]:
    """Give the tables that some statement of an accepted question reads."""
    return {x.table for p in _statements(question) for x in n.walk(p) if isinstance(x, n.Scan)}


def refused_as_written(engine: Engine, question: Question) -> bool:
    """Whether the engine turns a statement down before it looks at rows, for a reason that we know."""
    known = (_has_failing_constant, _has_a_sum_of_places)
    return any(
        not engine.takes(p) and any(reason(p) for reason in known) for p in _statements(question)
    )


def _has_a_sum_of_places(plan: n.Relation) -> bool:
    """Whether a place in a text may be a sum: DuckDB's sums are wider than what it takes."""
    calls = (x for x in n.walk(plan) if isinstance(x, n.Call))
    return any(c.function in ("left", "right", "substring", "round") for c in calls) and any(
        isinstance(x, n.Aggregation) and x.function == "sum" for x in n.walk(plan)
    )


def _has_failing_constant(plan: n.Relation) -> bool:
    for node in n.walk(plan):
        if not isinstance(node, n.Scalar):
            continue
        if any(isinstance(x, (n.Column, n.Outer, n.Relation)) for x in n.walk(node)):
            continue
        try:
            compiled(n.Project(n.Values((), ((),)), (n.Named("constant", node),)))({})
        except Failure:
            return True
    return False


def answers_apart(engine: Engine, question: Question, database: Database) -> str | None:
    """Say how the engine differs from the interpreter in what follows the releases and in keys that are looked up."""
    assert question.prepared is not None
    plans = [x for x in _public_plans(question) if not _cut(x)]
    for plan in plans:
        try:
            want = compiled(plan)(database)
        except Failure:
            continue  # written by the user, over public values alone: it may fail
        try:
            got = engine.rows(plan, database)
        except Failure:
            return "the engine fails"
        told = [sorted("|".join(map(_about, row)) for row in rows) for rows in (got, want)]
        if told[0] != told[1]:
            return f"{told[0]} instead of {told[1]}"
    return None


def _about(value: Any) -> str:
    """Write a value; floats of public numbers to nine digits."""
    if isinstance(value, (float, Decimal)):
        return f"{float(value):.9g}".replace("-0", "0") if value == 0 else f"{float(value):.9g}"
    return str(value)


def _bag(run: Answer) -> Answer:
    def answer(database: Database) -> list[str]:
        return sorted(repr(tuple(map(same_key, row))) for row in run(database))

    return answer


def attack(draw: random.Random, question: Question, findings: Findings, databases: int = 3) -> None:
    """Attack a question with databases whose public facts are those that were looked up."""
    findings.asked += 1
    ready = None if question.prepared is None else prepared_attack(question, findings)
    if ready is None:
        return
    findings.accepted += 1
    for _ in range(databases):
        ready.try_on(draw, redrawn(draw, question.world, question.known))


ACCEPTED = (
    *(f"protections {x}" for x in COMBINATIONS),
    *(f"tables named {x}" for x in STYLES),
    *(f"columns named {x}" for x in COLLIDING),
)
"""What must also be accepted: else nothing was put to the test with it."""


def draw_round(
    draw: random.Random, *, count: int = ROUND, more: int = 100, binding: bool = True
) -> tuple[list[Question], Coverage]:
    """Draw questions for a round of targets, then some for each slot that is still missing."""
    coverage, found = Coverage(), []
    for _, target in zip(range(count), targets(draw), strict=False):
        found.append(drawn(draw, target, coverage, binding=binding))
    for _ in range(more):
        missing = coverage.missing(ACCEPTED)
        if not missing:
            break
        for key in missing:
            found.append(drawn(draw, aimed(draw, key), coverage, binding=binding))
    return found, coverage
