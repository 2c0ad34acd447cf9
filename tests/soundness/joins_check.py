"""Hold an analysis's certificate for rows against pairs of databases that differ in one row.

In: a world, a query, an analysis. Out: a Target that reads the measures and the survey's figures on databases by
evaluating plans, and Findings: how many comparisons were made and every promise that one of them refutes.

The promises, for every beta, with S the least survey of a group: a group's measure moves by at most each * S(D);
S(D) <= e^beta S(D'); at most `groups` groups have another measure or another S (noise of any other S tells); all
groups together stay below the cap. A global bound covers all groups together. Both directions of each pair count. Where
`bags` are asked for, S(D) also bounds the rows of a group that come or go, however they are measured.
"""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from importlib import import_module
from itertools import product
from typing import Any

from checked_values import in_steps, made_small, shown
from joins_worlds import COLUMNS, VALUES, Database, World, neighbors
from neighbor_check import rules_of

from secant.errors import SecantError
from secant.plan import nodes as n
from secant.plan.evaluate.evaluate import prepare as compiled
from secant.plan.evaluate.values import same_key
from secant.plan.facts.domains import Chosen, Listed
from secant.plan.facts.facts import Facts
from secant.plan.rewrites.enforce import MeasuredAggregate, enforce
from secant.plan.rewrites.measures import Problem
from secant.plan.rewrites.rewrite import normalize
from secant.plan.typing import fields_of
from secant.policy.keys import Trust
from secant.sensitivity.bounds import GlobalBound
from secant.sensitivity.certificate import Certificate, Figures, Refusal, Survey, Surveyed
from secant.sensitivity.interface import Request
from secant.sensitivity.portfolio import CertifiedRelease, Context, bound_aggregate
from secant.sql.bind import from_sql

ANALYSES = {
    "elastic": ("secant.sensitivity.elastic.analysis", "ElasticAnalysis"),
    "residual": ("secant.sensitivity.residual.analysis", "ResidualAnalysis"),
    "multiplicity": ("secant.sensitivity.multiplicity.analysis", "MultiplicityAnalysis"),
    "smt": ("secant.sensitivity.smt.analysis", "SmtAnalysis"),
}
BETAS = tuple(Fraction(x) for x in ("0.02", "0.1", "0.5", "1", "3"))
ROUNDING = 1e-9
"""What floats here, and rounding up there, may add to a ratio."""

Key = tuple[Any, ...]


class Portfolio:
    """All analyses together, as a release asks them."""

    def bound(self, request: Request) -> Certificate | Refusal:
        """Give the certificate that a release would rest on, or the first refusal."""
        found = bound_aggregate(
            request.release.original,
            request.release.name,
            Context(request.facts, (request.protection,)),
        )
        return found.certificates[0] if isinstance(found, CertifiedRelease) else found[0]


def analysis_of(name: str) -> Any:
    """Give an analysis by its name."""
    if name == "portfolio":
        return Portfolio()
    module, class_name = ANALYSES[name]
    return getattr(import_module(module), class_name)()


@dataclass(frozen=True)
class Violation:
    """A promise that a pair of neighbors refutes."""

    analysis: str
    text: str
    promise: str
    measure: str
    claimed: object
    found: object
    before: Database
    after: Database
    world: World

    def __str__(self) -> str:
        kept = {x: self.world.unique(x) for x in COLUMNS if self.world.unique(x)}
        return (
            f"{self.analysis}: {self.promise}: claimed {self.claimed}, found {self.found} "
            f"({self.measure})\n  {self.text}\n  before {shown(self.before)}"
            f"\n  after  {shown(self.after)}\n  protected {self.world.varying}, kept keys {kept}"
        )


@dataclass
class Findings:
    """What a search has seen."""

    asked: int = 0
    accepted: int = 0
    pairs: int = 0
    checks: int = 0
    """Single comparisons: a pair, a direction, a measure, a group, a beta."""
    violations: list[Violation] = field(default_factory=list)
    rules: dict[str, int] = field(default_factory=dict)
    """Rule id -> accepted certificates whose derivation uses it."""
    refusals: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Reading:
    """What one database gives: measures in whole steps by group, and each statement's figures."""

    measured: Mapping[Key, tuple[Fraction, ...]]
    bags: Mapping[Key, Counter[Any]]
    """The rows of each group with all columns that there are, if they are asked for."""
    figures: Mapping[n.Relation, Mapping[Key, Figures] | Figures]


@dataclass
class Target:
    """One certificate of one release, compiled once and ready to be read on databases."""

    text: str
    world: World
    release: MeasuredAggregate
    certificate: Certificate
    tables: frozenset[str]
    findings: Findings
    betas: tuple[Fraction, ...] = BETAS
    bags: bool = False
    readings: dict[tuple[Any, ...], Reading] = field(default_factory=dict)
    known: dict[tuple[Any, ...], float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.exact = compiled(self.release.exact)
        self.rows = compiled(whole_rows(self.release)) if self.bags else None
        self.width = len(self.release.exact.keys)
        self.surveyed = {
            column: bound
            for column, bound in self.certificate.bounds.items()
            if isinstance(bound, Surveyed)
        }
        surveys = {id(x): x for bound in self.surveyed.values() for x in bound.surveys}
        self.statements: dict[n.Relation, tuple[Callable[..., Any], bool]] = {}
        for survey in surveys.values():
            assert len(survey.statements) == len(survey.keyed)
            for statement, keyed in zip(survey.statements, survey.keyed, strict=True):
                self.statements[statement] = (compiled(statement), keyed)
        names = [k.name for k in self.release.exact.keys]
        self.listed = {
            names.index(d.key): {same_key(v) for v in d.values}
            for d in self.release.domains
            if isinstance(d, Listed)
        }

    # ── reading ──────────────────────────────────────────────────────────────────────────────────

    def read(self, database: Database) -> Reading:
        """Give measures and figures; nothing is computed twice."""
        key = tuple(database[name] for name in self.tables)
        if key not in self.readings:
            self.readings[key] = self._read(database)
        return self.readings[key]

    def _read(self, database: Database) -> Reading:
        measured: dict[Key, tuple[Fraction, ...]] = {}
        for row in self.exact(database):
            group = tuple(map(same_key, row[: self.width]))
            if self._is_shown(group):
                measured[group] = tuple(
                    in_steps(value, measure)
                    for value, measure in zip(row[self.width :], self.release.measures, strict=True)
                )
        figures: dict[n.Relation, Mapping[Key, Figures] | Figures] = {}
        for statement, (run, keyed) in self.statements.items():
            rows = run(database)
            if not keyed:
                figures[statement] = tuple(rows)
                continue
            grouped: dict[Key, list[tuple[object, ...]]] = {}
            for row in rows:
                group = tuple(map(same_key, row[: self.width]))
                grouped.setdefault(group, []).append(row[self.width :])
            figures[statement] = {group: tuple(found) for group, found in grouped.items()}
        bags: dict[Key, Counter[Any]] = {}
        for row in self.rows(database) if self.rows is not None else ():
            group = tuple(map(same_key, row[: self.width]))
            bags.setdefault(group, Counter())[tuple(map(same_key, row))] += 1
        return Reading(measured, bags, figures)

    def _is_shown(self, group: Key) -> bool:
        return all(group[index] in values for index, values in self.listed.items())

    def bound(self, surveyed: Surveyed, beta: Fraction, reading: Reading, group: Key) -> float:
        """Give the least survey of one group."""
        return min(self._rows(x, beta, reading, group) for x in surveyed.surveys)

    def _rows(self, survey: Survey, beta: Fraction, reading: Reading, group: Key) -> float:
        figures = []
        for statement in survey.statements:
            found = reading.figures[statement]
            figures.append(found.get(group, ()) if isinstance(found, Mapping) else found)
        key = (id(survey), beta, tuple(figures))
        if key not in self.known:
            rows = survey.rows(beta, tuple(figures))
            assert isinstance(rows, (Fraction, int)), type(rows)
            assert rows >= 0
            self.known[key] = float(rows)
        return self.known[key]

    # ── promises ─────────────────────────────────────────────────────────────────────────────────

    def try_pair(self, before: Database, after: Database) -> float:
        """Compare two neighbors in both directions; give the largest ratio of what is so to what is claimed."""
        self.findings.pairs += 1
        one, two = self.read(before), self.read(after)
        nothing = (Fraction(0),) * len(self.release.measures)
        groups = list(dict.fromkeys((*one.measured, *two.measured, *self._quiet_groups())))
        worst = 0.0
        for index, measure in enumerate(self.release.measures):
            changes = {
                g: abs(one.measured.get(g, nothing)[index] - two.measured.get(g, nothing)[index])
                for g in groups
            }
            bound = self.certificate.bounds[measure.column]
            for promise, where, claimed, found in self._promises(bound, changes, one, two):
                self.findings.checks += 1
                ratio = found / claimed if claimed else (2.0 if found else 0.0)
                if ratio > 1 + ROUNDING:
                    what = f"{promise}, {where}"
                    self._refuted(what, measure.column, claimed, found, before, after)
                if promise == "moves":
                    worst = max(worst, ratio)
        return worst

    def _quiet_groups(self) -> Iterator[Key]:
        """Groups that no row has are released, too, where keys are listed."""
        if len(self.listed) == self.width:  # without keys there is the one empty key
            yield from product(*(sorted(self.listed[i], key=repr) for i in range(self.width)))

    def _promises(
        self,
        bound: Any,
        changes: Mapping[Key, Fraction],
        one: Reading,
        two: Reading,
    ) -> Iterator[tuple[str, object, float, float]]:
        """Give each promise about a pair: its name, where, what is claimed, what is so."""
        total = float(sum(changes.values()))
        if isinstance(bound, GlobalBound):
            yield "moves", "all groups", float(bound.value), total
            different = float(sum(c != 0 for c in changes.values()))
            yield "groups", "global", float(self.certificate.groups), different
            return
        assert isinstance(bound, Surveyed)
        if bound.cap is not None:
            yield "moves", "cap", float(bound.cap), total
        moved = {g for g, change in changes.items() if change}
        each = float(bound.each)
        for beta in self.betas:
            growth = math.exp(beta)
            for group, change in changes.items():
                left = self.bound(bound, beta, one, group)
                right = self.bound(bound, beta, two, group)
                where = (float(beta), group)
                low, high = (left, right) if left < right else (right, left)
                yield "moves", where, each * low, float(change)
                if self.bags:
                    mine, other = (x.bags.get(group, Counter()) for x in (one, two))
                    yield "rows", where, low, float(((mine - other) + (other - mine)).total())
                if low != high:
                    moved.add(group)
                yield "smooth", where, growth * low, high
        yield "groups", "", float(bound.groups), float(len(moved))

    def _refuted(
        self,
        promise: str,
        measure: str,
        claimed: object,
        found: object,
        before: Database,
        after: Database,
    ) -> None:
        self.findings.violations.append(
            Violation(
                self.certificate.analysis, self.text, promise, measure, claimed, found, before, after,
                self.world,
            )
        )  # fmt: skip

    # ── search ───────────────────────────────────────────────────────────────────────────────────

    def claims_hold(self, database: Database) -> bool:
        """Whether the keys that the certificate claims are keys: else nothing is released, or nothing is promised."""
        for claim in self.certificate.claims:
            places = [COLUMNS[claim.table].index(c) for c in claim.columns]
            seen = [tuple(row[i] for i in places) for row in database[claim.table]]
            if claim.trust is Trust.ACCEPTED:
                if "keys" not in self.world.policy.accept:
                    continue  # nobody has accepted it, so nothing excuses the certificate
                seen = [values for values in seen if None not in values]
            if len(seen) != len(set(seen)):
                return False
        return True

    def walk(
        self,
        database: Database,
        draw: random.Random,
        steps: int = 3,
        values: Sequence[Any] = VALUES,
    ) -> None:
        """Try all neighbors of a database, go to the worst or to any of them, and so on."""
        if not self.claims_hold(database):
            return
        for _ in range(steps + 1):
            found = list(neighbors(database, self.tables, self.world, draw, values))
            if not found:
                return
            rated = [(self.try_pair(database, other), other) for other in found]
            database = (
                max(rated, key=lambda pair: pair[0])[1]
                if draw.random() < 0.5
                else draw.choice(found)
            )


def whole_rows(release: MeasuredAggregate) -> n.Project:
    """Give the rows that a release aggregates with all columns, which it drops, after its keys."""
    projected = release.exact.input
    assert isinstance(projected, n.Project)
    keys = {k.name: k.expression for k in release.exact.keys}
    named = {i.name: i.expression for i in projected.items}
    held = [n.Named(f"key {k}", named[x.name]) for k, x in keys.items() if isinstance(x, n.Column)]
    assert len(held) == len(keys)
    fields = fields_of(projected.input)
    columns = [n.Named(f"row {f.name}", n.Column(f.name, f.type)) for f in fields]
    return n.Project(projected.input, (*held, *columns))


# ── asking ───────────────────────────────────────────────────────────────────────────────────────


def enforced(text: str, world: World) -> list[MeasuredAggregate | Problem]:
    """Give every aggregate over protected rows as a release, or say why it is refused before analyses are asked."""
    try:
        plan = normalize(from_sql(text, world.catalog))
    except SecantError:
        return []
    found = []
    for node in n.walk(plan):
        if isinstance(node, n.Aggregate) and any(s in world.varying for s in tables_in(node)):
            protections = world.policy.protections
            found.append(enforce(node, "release1", Facts(world.policy, world.catalog), protections))
    return [x for x in found if isinstance(x, Problem) or not x.ranked]


def releases_of(text: str, world: World) -> list[MeasuredAggregate]:
    """Give the aggregates that analyses are asked about."""
    return [x for x in enforced(text, world) if isinstance(x, MeasuredAggregate)]


def tables_in(relation: n.Relation) -> frozenset[str]:
    """Give the tables that a relation reads."""
    return frozenset(s.table.lower() for s in n.walk(relation) if isinstance(s, n.Scan))


def asked(analysis: Any, release: MeasuredAggregate, world: World) -> Certificate | Refusal:
    """Ask an analysis; a certificate must speak of every measure."""
    outcome: Certificate | Refusal = analysis.bound(
        Request(release, Facts(world.policy, world.catalog), world.protection)
    )
    if isinstance(outcome, Certificate):
        assert {m.column for m in release.measures} <= set(outcome.bounds)
    return outcome


def targets_of(
    text: str,
    world: World,
    analysis: Any,
    findings: Findings,
    betas: tuple[Fraction, ...] = BETAS,
    *,
    bags: bool = False,
) -> list[Target]:
    """Give what an analysis accepts of a query."""
    found = []
    for release in enforced(text, world):
        findings.asked += 1
        outcome = release if isinstance(release, Problem) else asked(analysis, release, world)
        if isinstance(outcome, (Refusal, Problem)):
            assert all((outcome.reason, outcome.hint, outcome.rule)), outcome
            findings.refusals[outcome.rule] = findings.refusals.get(outcome.rule, 0) + 1
            continue
        findings.accepted += 1
        for rule in rules_of(outcome):
            findings.rules[rule] = findings.rules.get(rule, 0) + 1
        assert isinstance(release, MeasuredAggregate)
        if any(isinstance(d, Chosen) for d in release.domains) and any(
            isinstance(b, Surveyed) for b in outcome.bounds.values()
        ):
            raise AssertionError(
                f"{outcome.analysis} bounds keys that are chosen privately: {text}"
            )
        tables = tables_in(release.exact)
        found.append(Target(text, world, release, outcome, tables, findings, betas, bags))
    return found


# ── making a violation small ─────────────────────────────────────────────────────────────────────


def smallest(violation: Violation, analysis: Any) -> Violation:
    """Take rows out of both sides as long as some promise stays refuted."""

    def common(current: Violation) -> Iterator[tuple[str, Any]]:
        for name in COLUMNS:
            rows = dict.fromkeys(current.before[name])
            yield from ((name, row) for row in rows if row in current.after[name])

    def without(current: Violation, place: tuple[str, Any]) -> Violation | None:
        name, row = place
        sides = []
        for side in (current.before, current.after):
            rows = list(side[name])
            rows.remove(row)
            sides.append({**side, name: tuple(rows)})
        findings = Findings()
        for target in targets_of(current.text, current.world, analysis, findings):
            if target.claims_hold(sides[0]):
                target.try_pair(*sides)
        return next(iter(findings.violations), None)

    return made_small(violation, common, without)
