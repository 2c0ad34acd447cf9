"""Hold certificates against what really happens on neighboring databases.

In: a query, a policy, a catalog and databases. Out: a Findings record: how many (query, database, neighbor) triples
were tried and each claim that one of them refutes. Neighbors come from `secant.audit.neighbors`: owners of rows are
computed there from the definition, by a second piece of code that shares nothing with plan.ownership.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

from checked_values import in_steps, made_small, shown
from staged_tables import with_constants

from secant.audit import neighbors as neighboring
from secant.audit.neighbors import Database, Row, rank_distance
from secant.errors import Refused, SqlError
from secant.plan import nodes as n
from secant.plan.evaluate.evaluate import prepare as compiled
from secant.plan.evaluate.values import Failure, same_key
from secant.plan.facts.domains import Listed
from secant.plan.rewrites.measures import Measure
from secant.plan.rewrites.rewrite import normalize
from secant.plan.verify import verify
from secant.policy.policy import Policy, Protection
from secant.release.tallies import Tally, read_tallies
from secant.schema import types as t
from secant.schema.catalog import Catalog
from secant.schema.parts import Elements, elements_named
from secant.sensitivity.bound import CertifiedRelease
from secant.sensitivity.bounds import GlobalBound
from secant.sensitivity.certificate import Certificate, ClippedContribution, Tallies
from secant.sensitivity.split import Decomposition, prepare
from secant.sql.bind import from_sql


def rows_like(
    columns: Mapping[str, Sequence[tuple[str, Any]]], **tables: Sequence[Sequence[Any]]
) -> Database:
    """Write a database as tuples; columns left out at the end are NULL, tables left out are empty."""
    found = {}
    for name, named in columns.items():
        names = [c for c, _ in named]
        padded = [[*row, *[None] * (len(names) - len(row))] for row in tables.get(name, ())]
        found[name] = [dict(zip(names, row, strict=True)) for row in padded]
    return found


@dataclass(frozen=True)
class World:
    """What is public: the catalog and the policy."""

    catalog: Catalog
    policy: Policy
    spread: tuple[Elements, ...] = ()
    """Arrays whose elements are tables of their own; rows of other tables hold the arrays."""

    def completed(self, database: Database) -> Database:
        """Give a database with the elements of its arrays, each beside the row that holds it."""
        elements = {
            e.name: [
                {**row, e.element: x} for row in database[e.table] for x in row[e.column] or ()
            ]
            for e in self.spread
        }
        return {**database, **elements}


@dataclass(frozen=True)
class Violation:
    """A claim that a pair of neighbors refutes."""

    text: str
    claim: str
    protection: str
    measure: str
    claimed: object
    found: object
    before: Database
    after: Database
    policy: Policy

    def __str__(self) -> str:
        return (
            f"{self.claim}: claimed {self.claimed}, found {self.found} "
            f"({self.protection}, {self.measure})\n  {self.text}\n  before {shown(self.before)}"
            f"\n  after  {shown(self.after)}\n  {self.policy.protections}\n  {self.policy.tables}"
        )


@dataclass
class Findings:
    """What a search has seen."""

    asked: int = 0
    accepted: int = 0
    triples: int = 0
    violations: list[Violation] = field(default_factory=list)
    rules: dict[str, int] = field(default_factory=dict)
    """Rule id -> accepted certificates whose derivation uses it."""

    def add(self, other: Findings) -> None:
        """Take in what another search has seen."""
        self.asked += other.asked
        self.accepted += other.accepted
        self.triples += other.triples
        self.violations += other.violations
        for rule, times in other.rules.items():
            self.rules[rule] = self.rules.get(rule, 0) + times


def prepared_for(text: str, world: World) -> Decomposition | None:
    """Give the bounded query, or None if it is refused. A typed error is a refusal; anything else is a fault.

    Where it has stages, later ones read constants that hang on the text alone.
    """
    try:
        plan = normalize(from_sql(text, world.catalog))
        outcome = prepare(plan, world.policy, world.policy.protections, world.catalog)
    except (SqlError, Refused):
        return None
    if not isinstance(outcome, Decomposition) or not outcome.bounded:
        return None
    return with_constants(outcome, random.Random(text))


# ── neighbors ────────────────────────────────────────────────────────────────────────────────────


def neighbors(
    database: Database, world: World, protection: Protection, pool: Mapping[str, Sequence[Row]]
) -> Iterator[Database]:
    """Give every neighbor by removal, and those by addition or replacement with rows of the pool."""
    stored = {name: rows for name, rows in database.items() if elements_named(name) is None}
    found = neighboring.neighbors(stored, world.policy, world.catalog, protection, pool)
    yield from map(world.completed, found)


# ── claims ───────────────────────────────────────────────────────────────────────────────────────

PrivateValues = Mapping[tuple[Any, ...], tuple[Fraction, ...]]
Cells = Mapping[tuple[Any, ...], Mapping[int, int]]
"""Group -> point -> rows nearest to it."""


@dataclass(frozen=True)
class _Limits:
    """Limits that a release may choose, and its statements for some of them, compiled once."""

    bounds: Mapping[str, ClippedContribution]
    tallies: tuple[Tallies, Any] | None
    cuts: tuple[tuple[Mapping[str, int], n.Aggregate, Any], ...]
    known: list[tuple[Database, Any]] = field(default_factory=list, compare=False)

    @classmethod
    def all_of(cls, certificate: Certificate) -> list[_Limits]:
        together: dict[int, dict[str, ClippedContribution]] = {}
        for column, bound in certificate.bounds.items():
            if isinstance(bound, ClippedContribution):
                # of an order statistic, what adds up the weights of its cells is cut down
                cut = column if column in bound.partners else bound.partners[0]
                together.setdefault(id(bound.contributions), {})[cut] = bound
        return [cls.of(bounds) for bounds in together.values()]

    @classmethod
    def of(cls, bounds: Mapping[str, ClippedContribution]) -> _Limits:
        made = next(iter(bounds.values())).contributions
        tried = [
            {c: b.limits[len(b.limits) * part // 4] for c, b in bounds.items()} for part in range(4)
        ]
        tried.append({c: b.limits[-1] for c, b in bounds.items()})
        cuts = []
        for limits in tried:
            plan = made.clipped(limits)
            verify(plan)
            cuts.append((limits, plan, compiled(plan)))
        racing = {c: b.limits for c, b in bounds.items() if b.race}
        if racing:
            plan = made.raced(racing)
            verify(plan)
            names = {
                f"{c}.limit{i}": x for c, several in racing.items() for i, x in enumerate(several)
            }
            cuts.append((names, plan, compiled(plan)))
        tallies = made.at_once or made.above
        if tallies is None:
            return cls(bounds, None, tuple(cuts))
        verify(tallies.plan)
        return cls(bounds, (tallies, compiled(tallies.plan)), tuple(cuts))

    def counted(self, database: Database, measures: Mapping[str, Any]) -> Mapping[str, Tally]:
        """Count units in buckets. Beside another protection some measures keep their public cap, and choose nothing."""
        if self.tallies is None:
            return {}
        tallies, run = self.tallies
        found = read_tallies(
            tallies, run(database), lambda c, v: exactly_whole(in_steps(v, measures[c]))
        )
        return {c: tally for c, tally in found.items() if c in self.bounds}

    def figures(
        self, database: Database, release: Any
    ) -> tuple[Mapping[str, Tally], list[PrivateValues]]:
        """Give counts and cut sums; those of the last two databases are kept, one of which is compared with many."""
        known = next((f for d, f in self.known if d is database), None)
        if known is None:
            known = self._figures(database, release)
        self.known[:] = [
            *(pair for pair in self.known if pair[0] is not database),
            (database, known),
        ][-2:]
        return known

    def _figures(
        self, database: Database, release: Any
    ) -> tuple[Mapping[str, Tally], list[PrivateValues]]:
        measures = {m.column: m for m in release.measures}
        for r in release.ranked:
            name = r.counted.name
            measures[name] = Measure(name, Fraction(1), t.INTEGER, 1.0, r.words)
        # What lies beyond a center is given in whole parts of a step, whatever the type of the measure.
        for name, bound in self.bounds.items():
            if bound.centering is not None:
                measures[name] = replace(measures[name], step=Fraction(1), type=t.INTEGER)
        cut = []
        for _, plan, run in self.cuts:
            width = len(plan.keys)
            cut.append(
                {
                    tuple(map(same_key, row[:width])): tuple(
                        in_steps(v, measures[c.name.split(".limit")[0]])
                        / self.bounds[c.name.split(".limit")[0]].fine
                        for v, c in zip(row[width:], plan.aggregations, strict=True)
                    )
                    for row in run(database)
                }
            )
        return self.counted(database, measures), cut


def exactly_whole(steps: Fraction) -> int:
    """Give a whole number of steps; that a sum is none would be a fault."""
    assert steps.denominator == 1
    return steps.numerator


@dataclass(frozen=True)
class _Runner:
    """One release, compiled once for all databases."""

    bounded: CertifiedRelease
    run: Any
    counts: tuple[Any, ...] = ()
    """For each order statistic, what counts its cells."""
    limits: tuple[_Limits, ...] = ()
    """For each certificate with limits that are chosen, what counts units above them and what cuts down to them."""
    weights: Any = None
    """What adds up the weights of units, where those choose the keys."""

    def cells(self, database: Database) -> list[Cells]:
        """Give for each order statistic the rows of each cell, group by group."""
        width = len(self.bounded.release.exact.keys)
        allowed = _shown_keys(self.bounded)
        found: list[Cells] = []
        for run in self.counts:
            groups: dict[tuple[Any, ...], dict[int, int]] = {}
            for row in run(database):
                if allowed(row[:width]):
                    group = groups.setdefault(tuple(map(same_key, row[:width])), {})
                    group[row[width]] = row[width + 1]
            found.append(groups)
        return found

    def measured(self, database: Database) -> PrivateValues:
        release = self.bounded.release
        if not release.measures:  # order statistics alone: the statement is never sent
            return {}
        width = len(release.exact.keys)
        allowed = _shown_keys(self.bounded)
        found: dict[tuple[Any, ...], tuple[Fraction, ...]] = {}
        for row in self.run(database):
            key = tuple(map(same_key, row[:width]))
            if not allowed(row[:width]):
                continue
            assert key not in found, "one row for each group"
            found[key] = tuple(
                in_steps(value, measure)
                for value, measure in zip(row[width:], release.measures, strict=True)
            )
        return found


def _shown_keys(bounded: CertifiedRelease) -> Any:
    """Keys that a list leaves out are computed and never shown."""
    names = [k.name for k in bounded.release.exact.keys]
    lists = {
        names.index(d.key): {same_key(v) for v in d.values}
        for d in bounded.release.domains
        if isinstance(d, Listed)
    }
    return lambda row: all(same_key(row[i]) in values for i, values in lists.items())


def _keys_hold(certificate: Certificate, database: Database) -> bool:
    for claim in certificate.claims:
        seen = [tuple(same_key(r[c]) for c in claim.columns) for r in database[claim.table]]
        if len(seen) != len(set(seen)):
            return False
    return True


def check(
    text: str,
    world: World,
    databases: Sequence[Database],
    findings: Findings,
    pool: Mapping[str, Sequence[Row]] | None = None,
) -> bool:
    """Try one query on all neighbors of each database; whether it was accepted."""
    target = target_for(text, world, findings)
    if target is None:
        return False
    for database in databases:
        target.try_on(database, pool or {})
    return True


def target_for(text: str, world: World, findings: Findings) -> Target | None:
    """Give an accepted query as a target, or None if it is refused."""
    findings.asked += 1
    prepared = prepared_for(text, world)
    return None if prepared is None else target_of(text, prepared, world, findings)


def target_of(text: str, prepared: Decomposition, world: World, findings: Findings) -> Target:
    """Give a bounded query as a target; the text only names it."""
    findings.accepted += 1
    for bounded in prepared.bounded:
        for certificate in bounded.certificates:
            for rule in rules_of(certificate):
                findings.rules[rule] = findings.rules.get(rule, 0) + 1
    runners = tuple(
        _Runner(
            b,
            compiled(b.release.exact),
            tuple(compiled(r.cells) for r in b.release.ranked),
            tuple(x for c in b.certificates for x in _Limits.all_of(c)),
            None if b.release.weighed is None else compiled(b.release.weighed.units),
        )
        for b in prepared.bounded
    )
    return Target(text, world, runners, findings)


@dataclass(frozen=True)
class Target:
    """A query that was accepted, ready to be attacked with databases."""

    text: str
    world: World
    runners: tuple[_Runner, ...]
    findings: Findings

    def try_on(self, database: Database, pool: Mapping[str, Sequence[Row]]) -> Fraction:
        """Try all neighbors; give how close the worst of them comes to what is claimed (above 1: refuted)."""
        found = [self._one(runner, database, pool) for runner in self.runners]
        return max(found, default=Fraction(0))

    def _violated(self, before: Database, after: Database, protection: str, *claim: Any) -> None:
        name, measure, claimed, found = claim
        self.findings.violations.append(
            Violation(
                self.text, name, protection, measure, claimed, found, before, after,
                self.world.policy,
            )
        )  # fmt: skip

    def _one(
        self, runner: _Runner, database: Database, pool: Mapping[str, Sequence[Row]]
    ) -> Fraction:
        worst = Fraction(0)
        try:
            before, cells = runner.measured(database), runner.cells(database)
        except Failure:
            self._violated(database, database, "", "never fails", "", "an answer", "a failure")
            return worst
        for values in before.values():
            if any(value.denominator != 1 for value in values):
                self._violated(database, database, "", "whole steps", "", "whole numbers", values)
        for certificate in runner.bounded.certificates:
            if not _keys_hold(certificate, database):
                continue
            protection = self.world.policy.protection(certificate.protection)
            assert protection is not None
            for neighbor in neighbors(database, self.world, protection, pool):
                self.findings.triples += 1
                try:
                    after, moved = runner.measured(neighbor), runner.cells(neighbor)
                except Failure:
                    self._violated(
                        database, neighbor, protection.name, "never fails", "", "an answer", "none"
                    )
                    continue
                claims = itertools.chain(
                    _comparisons(runner.bounded, certificate, before, after),
                    _rank_comparisons(runner.bounded, certificate, cells, moved),
                    *(_limit_comparisons(runner, x, database, neighbor) for x in runner.limits),
                    _weight_comparisons(runner, certificate, database, neighbor),
                )
                for claim in claims:
                    _, _, claimed, found = claim
                    ratio = found / claimed if claimed else Fraction(2 if found else 0)
                    worst = max(worst, ratio)
                    if found > claimed:
                        self._violated(database, neighbor, protection.name, *claim)
        return worst


def rules_of(certificate: Certificate) -> set[str]:
    """Give every rule that a derivation uses."""
    found: set[str] = set()
    stack = list(certificate.derivation)
    while stack:
        step = stack.pop()
        found.add(step.rule)
        stack.extend(step.premises)
    return found


def _comparisons(
    bounded: CertifiedRelease, certificate: Certificate, before: PrivateValues, after: PrivateValues
) -> Iterator[tuple[str, str, Fraction, Fraction]]:
    """Give each claim about a pair of neighbors: its name, the measure, what is claimed, what is so."""
    release = bounded.release
    nothing = (Fraction(0),) * len(release.measures)
    keys = [*before, *(k for k in after if k not in before)]
    for index, measure in enumerate(release.measures):
        changes = [abs(before.get(k, nothing)[index] - after.get(k, nothing)[index]) for k in keys]
        moved = sum(changes, Fraction(0))
        move = certificate.bounds[measure.column]
        bound = move.value if isinstance(move, GlobalBound) else move.cap
        if bound is None:
            continue
        yield "bound", f"{measure.column} {measure.words}", bound, moved
        if isinstance(move, GlobalBound):
            length = sum((x * x for x in changes), Fraction(0))
            yield (
                "length",
                f"{measure.column} {measure.words}",
                certificate.squared(measure.column),
                length,
            )
        if measure.column == release.selector:
            yield (
                "one key",
                measure.column,
                Fraction(certificate.contribution),
                max(changes, default=Fraction(0)),
            )
    if any(isinstance(certificate.bounds[m.column], GlobalBound) for m in release.measures):
        different = Fraction(sum(before.get(k) != after.get(k) for k in keys))
        yield "groups", "", Fraction(certificate.groups), different


def _weight_comparisons(
    runner: _Runner, certificate: Certificate, database: Database, neighbor: Database
) -> Iterator[tuple[str, str, Fraction, Fraction]]:
    """Give what is claimed of the weights of units by which keys are chosen (truncation.keys)."""
    weighed = runner.bounded.release.weighed
    if weighed is None or runner.weights is None:
        return
    before, after = (
        {row[:-1]: int(row[-1]) for row in runner.weights(x)} for x in (database, neighbor)
    )
    changes = [abs(before.get(k, 0) - after.get(k, 0)) for k in {**before, **after}]
    bound = certificate.bounds[weighed.column]
    assert isinstance(bound, GlobalBound), "weights have a public bound"
    yield "bound", weighed.column, bound.value, Fraction(sum(changes))
    length = Fraction(sum(x * x for x in changes))
    yield "length", weighed.column, certificate.squared(weighed.column), length
    alone = [k for k in before if k not in after] or [k for k in after if k not in before]
    yield "keys", weighed.column, Fraction(weighed.most), Fraction(len(alone))


def _limit_comparisons(
    runner: _Runner, limits: _Limits, database: Database, neighbor: Database
) -> Iterator[tuple[str, str, Fraction, Fraction]]:
    """Give what is claimed of limits: counts of units move one way by at most one, cut sums by the limit."""
    release = runner.bounded.release
    counts, cut = limits.figures(database, release)
    fewer, less = limits.figures(neighbor, release)
    moves = [a - b for c in counts for a, b in zip(counts[c].above, fewer[c].above, strict=True)]
    yield "units above", "", Fraction(1), Fraction(max(map(abs, moves), default=0))
    yield "one way", "", Fraction(0), Fraction(int(bool(moves) and min(moves) < 0 < max(moves)))
    for column, tally in counts.items():
        assert limits.tallies is not None, "units were counted in buckets"
        several = limits.tallies[0].limits[column] if tally.cut else ()
        for limit, a, b in zip(several, tally.cut, fewer[column].cut, strict=True):
            if (
                limit
            ):  # nothing is cut down to nothing: that bucket counts those up to the least limit
                yield "limit by buckets", column, Fraction(limit), Fraction(abs(a - b))
    for (chosen, plan, _), one, two in zip(limits.cuts, cut, less, strict=True):
        nothing = (Fraction(0),) * len(plan.aggregations)
        for index, call in enumerate(plan.aggregations):
            apart = [
                abs(one.get(k, nothing)[index] - two.get(k, nothing)[index]) for k in {*one, *two}
            ]
            yield "limit", call.name, Fraction(chosen[call.name]), sum(apart, Fraction(0))
            bound = limits.bounds[call.name.split(".limit")[0]]
            length = sum((x * x for x in apart), Fraction(0))
            yield "length", call.name, bound.squared(chosen[call.name]), length
            fine = bound.fine
            whole = all((v[index] * fine).denominator == 1 for v in (*one.values(), *two.values()))
            yield "whole steps", call.name, Fraction(0), Fraction(int(not whole))


def _rank_comparisons(
    bounded: CertifiedRelease, certificate: Certificate, before: list[Cells], after: list[Cells]
) -> Iterator[tuple[str, str, Fraction, Fraction]]:
    """Give how far the rank distances of two points move apart, summed over the groups, by the definition."""
    for ranked, one, two in zip(bounded.release.ranked, before, after, strict=True):
        if isinstance(certificate.bounds[ranked.column], ClippedContribution):
            continue  # weights of cells are compared with the limits that they may have
        apart = Fraction(0)
        for key in {*one, *two}:
            cells = one.get(key, {}), two.get(key, {})
            # between two occupied points, and beyond them, distances are those of any point there
            near = {i + d for i in {*cells[0], *cells[1]} for d in (-1, 0, 1)}
            points = [i for i in near if 0 <= i < ranked.grid.count]
            moves = [
                rank_distance(ranked.fraction, cells[1], i)
                - rank_distance(ranked.fraction, cells[0], i)
                for i in points
            ]
            apart += max(moves) - min(moves) if moves else 0
        bound = certificate.bounds[ranked.column].value
        yield "ranks", f"{ranked.column} {ranked.words}", bound, apart


def smallest(violation: Violation, world: World) -> Violation:
    """Take rows away as long as some violation of the query is left."""

    def places(current: Violation) -> Iterator[tuple[str, int]]:
        for table, rows in current.before.items():
            if elements_named(table) is None:
                yield from ((table, index) for index in range(len(rows)))

    def without(current: Violation, place: tuple[str, int]) -> Violation | None:
        table, index = place
        rows = list(current.before[table])
        smaller = world.completed({**current.before, table: rows[:index] + rows[index + 1 :]})
        findings = Findings()
        check(violation.text, world, [smaller], findings)
        return next((v for v in findings.violations if v.claim == violation.claim), None)

    return made_small(violation, places, without)
