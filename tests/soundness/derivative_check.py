"""Hold a derivative certificate against pairs of databases whose protected values differ.

In: a world (catalog and policy), a query, pairs of databases with equal public columns and equal NULLs. Out: for
each pair the largest part of the distance that some promise would need, as a ratio: above 1 is a violation.

The promises, with d the owner's distance, c the smooth bound as a release computes it and f a measure:
|f(D) - f(D')| <= c(D)(e^(beta d) - 1)/beta and <= cap d; c(D) <= e^(beta d) c(D'); what is charged covers both. A
grouped release must share d among its groups: the parts that the groups need, each by itself, add up to at most d.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from types import SimpleNamespace
from typing import Any

from checked_values import shown
from derivative_distance import Database, distance_of

from naming_public import name_public
from secant.engines.dialect import DUCKDB
from secant.errors import Refused, SecantError
from secant.noise.calibrate import NoisePlan
from secant.noise.measure_noise import Noise, NoNoise
from secant.noise.query_plan import reading_of
from secant.noise.secrecy import unseal
from secant.noise.smooth import CurveNoise
from secant.plan.evaluate.evaluate import prepare as compiled
from secant.plan.rewrites.rewrite import normalize
from secant.policy.check import fit_policy
from secant.policy.file import read_policy
from secant.policy.policy import USUAL, Policy, Protection
from secant.release import measured
from secant.release import print as printing
from secant.schema.catalog import Catalog
from secant.sensitivity import bound as bounding
from secant.sensitivity.bound import CertifiedRelease
from secant.sensitivity.certificate import Certificate, Refusal, SmoothSensitivity
from secant.sensitivity.derivative.analysis import DerivativeAnalysis
from secant.sensitivity.derivative.branch import MOST_ROWS
from secant.sensitivity.interface import Request
from secant.sensitivity.public_facts import PublicFacts
from secant.sensitivity.split import Decomposition, RawRows, prepare
from secant.sql.bind import from_sql

FLOATS = 4096
"""Whole steps (2^-48 of what a row can add, each) that rounding of a few rows and floats may take."""
FEW_ROWS = 128
"""Joined rows of a small database, twice; what is promised for rounding allows for MOST_ROWS of them."""
CLOSE = 1e-7
"""What floats may add to a ratio: c itself is widened by 2^-20 for them."""


@dataclass(frozen=True)
class World:
    """What is public: the catalog and the policy. The first protection of kind `cells` is put to the test."""

    catalog: Catalog
    policy: Policy

    @property
    def protection(self) -> Protection:
        return next(p for p in self.policy.protections if p.kind == "cells")


def world(catalog: Catalog, text: str) -> World:
    """Read a policy and fit it to a catalog."""
    return World(catalog, fit_policy(name_public(read_policy(text), catalog), catalog))


class Memory:
    """An engine that answers the statements of one job by evaluating the plans they were printed from."""

    dialect = DUCKDB

    def __init__(self) -> None:
        self.plans: dict[str, Callable[[Any], list[tuple[object, ...]]]] = {}
        self.database: Database = {}

    def rows(self, statement: str) -> list[tuple[object, ...]]:
        return self.plans[statement](self.database)


@dataclass(frozen=True)
class Group:
    """One measure of one group: its value and its bound, in whole steps."""

    value: int
    bound: float


@dataclass(frozen=True)
class Reading:
    """All measures of a release on one database."""

    measures: Mapping[str, Mapping[tuple[object, ...], Group]]


@dataclass(frozen=True)
class Worst:
    """The pair that comes nearest to a violation, and the promise that it comes near to."""

    ratio: float = 0.0
    promise: str = ""
    measure: str = ""
    distance: float = 0.0
    before: Database = field(default_factory=dict, repr=False)
    after: Database = field(default_factory=dict, repr=False)


@dataclass
class Question:
    """One release of a query at one beta, ready to be read on databases."""

    text: str
    world: World
    bounded: CertifiedRelease
    beta: Fraction
    curves: Mapping[str, SmoothSensitivity]
    settled: Certificate
    job: Any
    """What reading measures needs of a `ReleasePlan`."""
    memory: Memory
    distance: Callable[[Database, Database], float]

    def read(self, database: Database) -> Reading | None:
        """Read measures and bounds; None if a claimed key is not one, so that nothing is released."""
        if any(not _unique(database[c.table], c.columns) for c in self.settled.claims):
            return None
        self.memory.database = database
        release = self.bounded.release
        keys = printing.look_up_keys(self.job, self.memory)[release.name]  # type: ignore[arg-type]
        found = measured.measured(self.bounded, self.job, keys, self.memory)  # type: ignore[arg-type]
        made = {}
        for measure in release.measures:
            noise, content = found.noise[measure.column], unseal(found.values[measure.column])
            whole = noise.unnoised(content)
            bounds = (
                noise.sensitivities(content) if isinstance(noise, CurveNoise) else [0] * len(whole)
            )
            made[measure.column] = {
                measured.comparable(key): Group(value, float(bound))
                for key, value, bound in zip(unseal(found.keys), whole, bounds, strict=True)
            }
        return Reading(made)

    def rounding(self, column: str) -> float:
        """Give the whole steps that rounding of few rows may take of a measure."""
        curve = self.curves.get(column)
        if curve is None or not curve.rounding:
            return 0.0
        return max(FLOATS, FEW_ROWS * float(curve.rounding) / MOST_ROWS)

    def compare(self, a: Reading, b: Reading, distance: float) -> tuple[float, str, str]:
        """Give the largest part of the distance that a promise needs, which one, and of which measure."""
        worst = (0.0, "", "")
        for measure in self.bounded.release.measures:
            column = measure.column
            curve, settled = self.curves.get(column), self.settled.bounds[column]
            tolerance = self.rounding(column)
            groups = a.measures[column].keys() | b.measures[column].keys()
            if a.measures[column].keys() != b.measures[column].keys():
                return math.inf, "the same groups", column
            moved = {
                k: max(
                    0, abs(a.measures[column][k].value - b.measures[column][k].value) - tolerance
                )
                for k in groups
            }
            needs: list[tuple[float, str]] = []
            total = sum(moved.values())
            if curve is None and not isinstance(settled, SmoothSensitivity) and settled.value:
                needs.append((_over(total, float(settled.value)), "settled"))
            elif curve is None:
                needs.append((math.inf if total else 0.0, "does not move"))
            else:
                beta = float(self.beta)
                bounds = {
                    k: (a.measures[column][k].bound, b.measures[column][k].bound) for k in groups
                }
                lasts = math.fsum(_smooth_need(*bounds[k], beta) for k in groups)
                needs.append((lasts, "smooth"))
                moves = math.fsum(_motion_need(moved[k], min(bounds[k]), beta) for k in groups)
                needs.append((moves, "local"))
                both = math.fsum(
                    max(
                        _motion_need(moved[k], min(bounds[k]), beta), _smooth_need(*bounds[k], beta)
                    )
                    for k in groups
                )
                needs.append((both, "joint"))
                if curve.cap is not None:
                    needs.append((_over(total, float(curve.cap)), "cap"))
                    high = max((max(x) for x in bounds.values()), default=0.0)
                    if high > float(curve.cap) * (1 + 1e-12):
                        needs.append((math.inf, "cap covers the bound"))
                if not isinstance(settled, SmoothSensitivity):
                    needs.append((_over(total, float(settled.value)), "settled"))
            need, promise = max(needs)
            ratio = need / distance if distance > 0 else (math.inf if need > 0 else 0.0)
            worst = max(worst, (ratio, promise, column))
        return worst

    def pair(self, before: Database, after: Database) -> Worst | None:
        """Compare one pair; None if nothing is promised for it."""
        distance = self.distance(before, after)
        a, b = self.read(before), self.read(after)
        if a is None or b is None:
            return None
        ratio, promise, measure = self.compare(a, b, distance)
        return Worst(ratio, promise, measure, distance, before, after)


def _unique(rows: Sequence[Mapping[str, Any]], columns: Sequence[str]) -> bool:
    keys = [tuple(row[c] for c in columns) for row in rows]
    return len(set(keys)) == len(keys)


def _fan(rows: Sequence[Mapping[str, Any]], columns: Sequence[str]) -> int:
    """Give how many rows agree in some columns, at most."""
    return max(Counter(tuple(row[c] for c in columns) for row in rows).values(), default=0)


def _over(moved: float, bound: float) -> float:
    return 0.0 if not moved else (moved / bound if bound else math.inf)


def _motion_need(moved: float, bound: float, beta: float) -> float:
    """Give the distance at which a bound allows a motion."""
    return math.log1p(beta * _over(moved, bound)) / beta if bound or not moved else math.inf


def _smooth_need(a: float, b: float, beta: float) -> float:
    """Give the distance at which a smooth bound may have changed so much."""
    if a == b:
        return 0.0
    if not a or not b:
        return math.inf
    return max(0.0, abs(math.log(a / b)) - 1e-9) / beta


# ── questions ────────────────────────────────────────────────────────────────────────────────────


def ask(
    text: str,
    world: World,
    *,
    beta: Fraction = Fraction(1, 10),
    epsilon: Fraction = Fraction(1),
    rows: int | None = None,
    ends: Callable[[str, str], tuple[Fraction, Fraction] | None] = lambda table, column: None,
    known: Database | None = None,
) -> list[Question] | str:
    """Give the releases of a query, or the words of its refusal. Anything but a typed error is a fault.

    `known` is a database whose public columns are looked up, as a connection does: what is asked then holds for
    databases with these public columns only.
    """
    policy, protections = world.policy, world.policy.protections
    try:
        plan = normalize(from_sql(text, world.catalog))
    except SecantError as error:
        return str(error)
    facts = PublicFacts(epsilon, lambda relation: rows, ends)
    if known is not None:
        facts = replace(
            facts, count=lambda table: len(known[table]), fan=lambda t, c: _fan(known[t], c)
        )
    recording = _Recording()
    analyses = bounding.ANALYSES
    bounding.ANALYSES = tuple(
        recording if isinstance(r, DerivativeAnalysis) else r for r in analyses
    )
    try:
        outcome = prepare(plan, policy, protections, world.catalog, facts)
    finally:
        bounding.ANALYSES = analyses
    if isinstance(outcome, RawRows):
        return "raw rows"
    if not isinstance(outcome, Decomposition):
        return "; ".join(f"{r.rule} {r.reason}" for r in outcome)
    found = []
    for bounded in outcome.bounded:
        certificate = next(
            c
            for request, c in recording.found
            if request.release is bounded.release and request.protection == world.protection
        )
        question = _question(text, world, bounded, outcome, certificate, beta)
        if isinstance(question, str):
            return question
        found.append(question)
    return found


class _Recording(DerivativeAnalysis):
    """The derivative analysis, with everything that it says: the portfolio may put a cap in place of a curve."""

    def __init__(self) -> None:
        self.found: list[tuple[Request, Certificate | Refusal]] = []

    def bound(self, request: Request) -> Certificate | Refusal:
        said = super().bound(request)
        self.found.append((request, said))
        return said


def _question(
    text: str,
    world: World,
    bounded: CertifiedRelease,
    prepared: Decomposition,
    certificate: Certificate | Refusal,
    beta: Fraction,
) -> Question | str:
    release, protection = bounded.release, world.protection
    assert isinstance(certificate, Certificate), "the portfolio has accepted it"
    if release.ranked:
        return "ranks are chosen under protections of rows, and are not read here"
    curves = {c: b for c, b in certificate.bounds.items() if isinstance(b, SmoothSensitivity)}
    running = {  # other protections may have smooth bounds in the same statements
        column: bound
        for other in bounded.certificates
        for column, bound in other.bounds.items()
        if isinstance(bound, SmoothSensitivity)
    } | curves
    plain: Noise = NoNoise(Fraction(0))  # nothing is drawn here
    calibrated: Any = None
    noise = {
        c: CurveNoise(Fraction(1), calibrated, beta, truthful=True, curve=x)
        for c, x in running.items()
    }
    every = {m.column: noise.get(m.column, plain) for m in release.measures}
    one = Decomposition(prepared.post, (bounded,))
    memory = Memory()
    try:
        reading = reading_of(release, every, {})
    except Refused as error:
        return str(error)
    texts = {name: f"{name}?" for name in reading.relations()}
    for name, relation in reading.relations().items():
        memory.plans[f"{name}?"] = compiled(relation)
    job = SimpleNamespace(
        prepared=one,
        noise=NoisePlan(every, {}, {}),
        statements=texts,
        readings={release.name: reading},
        groups=USUAL.groups,
    )
    settled = next(c for c in bounded.certificates if c.protection == protection.name)
    return Question(
        text, world, bounded, beta, curves, settled, job, memory, distance_of(protection)
    )


def told(worst: Worst, question: Question) -> str:
    """Say what a violation is, so that it can be repeated."""
    policy = question.world.protection
    changed = "; ".join(
        f"{t}: {dict(a)} -> {dict(b)}"
        for t in worst.before
        for a, b in zip(worst.before[t], worst.after[t], strict=True)
        if dict(a) != dict(b)
    )
    return (
        f"{worst.promise} needs {worst.ratio:.6g} of the distance {worst.distance:.6g} "
        f"({worst.measure}, beta {float(question.beta):g})\n  {' '.join(question.text.split())}\n"
        f"  {dict(policy.distance)} rows {dict(policy.row_norms)} tables {policy.table_norm} "
        f"softening {policy.softening}\n  changed {changed}\n  before {shown(worst.before)}"
    )
