"""Hold limits that are chosen privately against databases in which one person is missing.

In: drawn worlds, questions and databases. Out: Findings. The promises (truncation.clip): without a unit every number of
units that add more than a limit falls, by at most one; cut down to limits, each measure moves by at most its limit, all
groups together, and stays a whole number of steps.
"""

from __future__ import annotations

import random
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

from checked_values import shown
from drawn_queries import Questions
from drawn_worlds import COLUMNS, draw_database, draw_world, favored_tables
from neighbor_check import Database, World, neighbors

from naming_public import name_public
from secant.errors import SecantError
from secant.plan import nodes as n
from secant.plan.evaluate.evaluate import prepare as compiled
from secant.plan.evaluate.values import same_key
from secant.plan.facts.domains import Listed
from secant.plan.facts.facts import Facts
from secant.plan.rewrites.enforce import MeasuredAggregate, enforce
from secant.plan.rewrites.measures import Measure
from secant.plan.rewrites.rewrite import normalize
from secant.policy.coverage import is_protected
from secant.release.tallies import Tally, read_tallies
from secant.schema import types as t
from secant.sensitivity.certificate import Certificate, ClippedContribution, Refusal, Tallies
from secant.sensitivity.interface import Request
from secant.sensitivity.truncation.analysis import TruncationAnalysis
from secant.sql.bind import from_sql

SMALL = 8
"""So many of the smallest limits are drawn from: small databases reach no more."""
WAYS = ("chosen", "chosen", "race", "auto", "fixed")
Steps = Mapping[tuple[Any, ...], Mapping[str, Fraction]]


@dataclass
class Findings:
    """What a search has seen."""

    accepted: int = 0
    checks: int = 0
    violations: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Clipping:
    """One release whose measures are cut down, with some limits that might be chosen."""

    text: str
    release: MeasuredAggregate
    bounds: Mapping[str, ClippedContribution]
    limits: tuple[Mapping[str, int], ...]

    @property
    def _measures(self) -> dict[str, Measure]:
        """Give the measures as statements read them: what lies beyond a center in whole parts of a step."""
        whole = {c for c, b in self.bounds.items() if b.centering is not None}
        return {
            m.column: replace(m, step=Fraction(1), type=t.INTEGER) if m.column in whole else m
            for m in self.release.measures
        }

    def above(self, database: Database) -> tuple[int, ...]:
        """Give how many units add more than each limit; nothing is asked where there is no choice."""
        made = next(iter(self.bounds.values())).contributions
        tallies = made.at_once or made.above
        if tallies is None:
            return ()
        return tuple(x for tally in self._tallies(tallies, database).values() for x in tally.above)

    def at_once(self, database: Database) -> Mapping[str, tuple[int, ...]]:
        """Give the measures cut down to each limit, where buckets of units tell that."""
        tallies = next(iter(self.bounds.values())).contributions.at_once
        if tallies is None:
            return {}
        # Units up to the least limit may be counted, too: nothing is cut down to nothing.
        return {
            c: tuple(x.cut[len(x.cut) - len(self.bounds[c].limits) :])
            for c, x in self._tallies(tallies, database).items()
        }

    def _tallies(self, tallies: Tallies, database: Database) -> Mapping[str, Tally]:
        measures = self._measures
        return read_tallies(
            tallies,
            compiled(tallies.plan)(database),
            lambda c, value: int(_steps(value, measures[c], 1)),
        )

    def cut(self, limits: Mapping[str, int], database: Database) -> Steps:
        """Give the measures of the groups that may be shown, in steps."""
        plan = next(iter(self.bounds.values())).contributions.clipped(limits)
        fine = {c: b.fine for c, b in self.bounds.items()}
        return self._read(
            plan, database, {call.name: call.name for call in plan.aggregations}, fine
        )

    def race(self, database: Database) -> tuple[Steps, dict[str, int]]:
        """Give the measures that race, once for each of their limits, and these limits."""
        racing = {c: b.limits for c, b in self.bounds.items() if b.race}
        raced = next(iter(self.bounds.values())).contributions.raced
        if not racing or raced is None:
            return {}, {}
        plan = raced(racing)
        ordered = [(c, limit) for c, limits in racing.items() for limit in limits]
        calls = [call.name for call in plan.aggregations]
        source = dict(zip(calls, (c for c, _ in ordered), strict=True))
        fine = {call: self.bounds[source[call]].fine for call in calls}
        return self._read(plan, database, source, fine), dict(
            zip(calls, (limit for _, limit in ordered), strict=True)
        )

    def _read(
        self,
        plan: n.Aggregate,
        database: Database,
        source: Mapping[str, str],
        fine: Mapping[str, int],
    ) -> Steps:
        keys = [k.name for k in self.release.exact.keys]
        listed = {
            keys.index(d.key): {same_key(v) for v in d.values}
            for d in self.release.domains
            if isinstance(d, Listed)
        }
        measures = self._measures
        found = {}
        for row in compiled(plan)(database):
            group = tuple(map(same_key, row[: len(keys)]))
            if all(group[i] in values for i, values in listed.items()):
                found[group] = {
                    call.name: _steps(value, measures[source[call.name]], fine[call.name])
                    for call, value in zip(plan.aggregations, row[len(keys) :], strict=True)
                }
        return found


def _steps(value: Any, measure: Any, fine: int) -> Fraction:
    if value is None:
        return Fraction(0)
    whole = measure.type.kind == "DOUBLE"
    return Fraction(value) / fine if whole else Fraction(value) / measure.step / fine


def attack_units(seed: int, findings: Findings, databases: int = 3) -> None:
    """Draw a world with one unit protection and a question, and try what the analysis accepts."""
    draw = random.Random(seed)
    drawn = draw_world(draw)
    units = [p for p in drawn.policy.protections if p.kind == "unit"]
    if not units:
        return
    chosen = replace(units[0], truncation=draw.choice(WAYS))
    alone = replace(drawn.policy, protections=(chosen,))
    place = World(drawn.catalog, name_public(alone, drawn.catalog))
    text = Questions(draw, favored_tables(place)).question()
    tables = frozenset(x for x in COLUMNS if re.search(rf"\b{x}\b", text)) | {"person", "visit"}
    for clipping in _clippings(text, place, draw):
        findings.accepted += 1
        for _ in range(databases):
            database = draw_database(draw, place, tables)
            for other in neighbors(database, place, chosen, {}):
                _compare(clipping, database, other, findings)


def _clippings(text: str, place: World, draw: random.Random) -> list[Clipping]:
    policy, (protection,) = place.policy, place.policy.protections
    try:
        plan = normalize(from_sql(text, place.catalog))
    except SecantError:
        return []
    found = []
    for node in n.walk(plan):
        if not isinstance(node, n.Aggregate) or not any(
            isinstance(s, n.Scan) and is_protected(s.table.lower(), policy, (protection,))
            for s in n.walk(node)
        ):
            continue
        release = enforce(node, "release1", Facts(policy, place.catalog), (protection,))
        if not isinstance(release, MeasuredAggregate):
            continue
        outcome = TruncationAnalysis().bound(
            Request(release, Facts(policy, place.catalog), protection)
        )
        if isinstance(outcome, Refusal):
            assert outcome.reason, outcome
            assert outcome.hint, outcome
            continue
        assert isinstance(outcome, Certificate)
        measured = {m.column for m in release.measures}
        bounds = {
            c: b
            for c, b in outcome.bounds.items()
            if isinstance(b, ClippedContribution) and c in measured
        }
        for some in _by_statement(bounds):
            limits = tuple(
                {c: draw.choice(b.limits[:SMALL]) for c, b in some.items()} for _ in range(3)
            )
            found.append(Clipping(text, release, some, limits))
    return found


def _by_statement(
    bounds: Mapping[str, ClippedContribution],
) -> list[dict[str, ClippedContribution]]:
    """Give the measures that are cut down together."""
    found: dict[int, dict[str, ClippedContribution]] = {}
    for column, bound in bounds.items():
        found.setdefault(id(bound.contributions), {})[column] = bound
    return list(found.values())


def _compare(clipping: Clipping, database: Database, other: Database, findings: Findings) -> None:
    def refuted(what: str) -> None:
        findings.violations.append(
            f"{what}\n  {clipping.text}\n  {shown(database)}\n  {shown(other)}"
        )

    for more, less in zip(clipping.above(database), clipping.above(other), strict=True):
        findings.checks += 1
        if not 0 <= more - less <= 1:
            refuted(f"{more} units above a limit, {less} without one of them")
    tried = [
        (clipping.cut(limits, database), clipping.cut(limits, other), limits)
        for limits in clipping.limits
    ]
    once, without = clipping.at_once(database), clipping.at_once(other)
    for column, several in once.items():
        for limit, a, b in zip(
            clipping.bounds[column].limits, several, without[column], strict=True
        ):
            findings.checks += 1
            if abs(a - b) > limit:
                refuted(f"{column} by buckets moves by {abs(a - b)}, the limit is {limit}")
            if any(x.get(column) == limit for x in clipping.limits):
                cut = clipping.cut({column: limit}, database)[()][column]
                if a != cut:
                    refuted(f"{column} is {a} by buckets, and {cut} where units are cut down")
    raced, limits = clipping.race(database)
    tried.append((raced, clipping.race(other)[0], limits))
    for one, two, limits in tried:
        for column, limit in limits.items():
            values = [
                (one.get(g, {}).get(column, 0), two.get(g, {}).get(column, 0))
                for g in {**one, **two}
            ]
            findings.checks += 1
            fine = clipping.bounds[column.split(".limit")[0]].fine
            if any(Fraction(a * fine).denominator != 1 for a, _ in values):
                refuted(f"{column} is no whole number of steps")
            moved = sum(abs(a - b) for a, b in values)
            if moved > limit:
                refuted(f"{column} moves by {moved}, the limit is {limit}")
