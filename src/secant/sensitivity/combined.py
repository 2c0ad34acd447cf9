"""Rows that come and go and values that move, under one distance: what two analyses say, put together.

In: a request under `rows+cells`. Out: a certificate: for each measure the larger of how fast it moves with values and
how far a row makes it jump, over the distance that a row counts as; where a row stands in one joined row, as a smooth
bound with a public floor (combined.both), where it stands in several, with a floor that surveys of the joins give
(combined.fans). The number of rows is private here, so no count, end or fan of a protected table is asked for. Never
here: how values move, or how many rows differ.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from fractions import Fraction

from secant.numeric.ball import ball, upper, working_precision
from secant.plan import nodes as n
from secant.plan.facts.conjunctive import NotConjunctive, conjunctive
from secant.plan.facts.reads import tables_read
from secant.plan.rewrites.enforce import MeasuredAggregate
from secant.policy.keys import in_order
from secant.policy.policy import Protection
from secant.sensitivity.bounds import GlobalBound
from secant.sensitivity.certificate import (
    Certificate,
    Coming,
    Move,
    Refusal,
    SmoothSensitivity,
    Step,
    Surveyed,
    is_still,
)
from secant.sensitivity.derivative.analysis import DerivativeAnalysis
from secant.sensitivity.interface import Analysis, Request
from secant.sensitivity.joins import JoinsAnalysis
from secant.sensitivity.stability.analysis import StabilityAnalysis
from secant.sensitivity.summands import amount, whole_range

Weights = Mapping[str, Fraction]
"""Table -> the distance that a row of it counts as."""
Jumps = Mapping[str, tuple[Fraction, Fraction]]
"""Table -> (how far one row moves a measure, the distance that a row counts as)."""

EXTREMES = ("min", "max")


class CombinedAnalysis:
    """Bounds in the owner's norm with rows that come and go, under `rows+cells`."""

    name = "combined"
    kinds: tuple[str, ...] = ("rows+cells",)
    values: Analysis = DerivativeAnalysis()
    rows: Analysis = StabilityAnalysis()
    joins: Analysis = JoinsAnalysis()

    def bound(self, request: Request) -> Certificate | Refusal:
        """Bound every measure, or say which of the two analyses refuses."""
        against = self._against(request)
        if against is not None:
            return against
        return self.beside(request, request.protection.add_remove)

    def beside(self, request: Request, weights: Weights) -> Certificate | Refusal:
        """Bound every measure where values move as the protection says and rows of some tables come and go."""
        protection = request.protection
        moving = self._asked(self.values, request, replace(protection, kind="cells"))
        if isinstance(moving, Refusal):
            return moving
        if any(isinstance(b, GlobalBound) and b.value for b in moving.bounds.values()):
            reason = "groups by the values of a protected column have no rule beside rows that come and go"
            return self._refuse(reason, "group by public columns, or ask for each group by itself")
        read = tables_read(*request.release.aggregates)
        weights = {table: weights[table] for table in sorted(weights) if table in read}
        adding = _without_extremes(request)
        jumping: dict[str, Certificate] = {}
        for table in weights:
            alone = replace(protection, kind="rows", tables=(table,), distance={})
            jump = self._asked(self.rows, adding, alone)
            if isinstance(jump, Refusal):
                return self._fanned(request, moving, weights, jump)
            jumping[table] = jump
        return self._together(request, moving, weights, jumping)

    def _asked(
        self, analysis: Analysis, request: Request, protection: Protection
    ) -> Certificate | Refusal:
        """Ask an analysis without any fact about the rows of tables: their number is private here."""
        return analysis.bound(Request(request.release, request.facts, protection))

    def _against(self, request: Request) -> Refusal | None:
        protection, release = request.protection, request.release
        read = tables_read(*release.aggregates)
        hidden = [t for t in sorted(read) if t in protection.distance]
        missing = [t for t in hidden if t not in protection.add_remove]
        if missing:
            reason = f"nobody said which distance a row of {missing[0]} counts as"
            return self._refuse(reason, f"add {missing[0]} to add_remove")
        if not adds_up(protection):
            reason = (
                "rows that come and go add up with moves, so rows and tables are combined by l1"
            )
            return self._refuse(reason, "leave `rows` and `tables` out of the protection")
        if protection.public_rows:
            reason = "public rows have no rule beside rows that come and go"
            return self._refuse(reason, "put public rows into a table of their own")
        if release.ranked:
            reason = "a rank leaps where values move a little"
            return self._refuse(reason, "ask for counts, sums or averages instead")
        if release.chooses_keys:
            reason = "keys are not chosen per unit of distance"
            return self._refuse(reason, "declare `values` for the grouped columns")
        return None

    def _refuse(self, reason: str, hint: str) -> Refusal:
        return Refusal(self.name, "combined.both", reason, hint)

    def _fanned(
        self, request: Request, moving: Certificate, weights: Weights, against: Refusal
    ) -> Certificate | Refusal:
        """Bound joins in which one row may meet many, by surveys of how many (combined.fans)."""
        release, protection = request.release, request.protection
        adding = _without_extremes(request)
        form = conjunctive(release.exact.input, weights.__contains__)
        if isinstance(form, NotConjunctive) or any(atom.distinct for atom in form.atoms):
            return against
        if _extreme_groups(release):
            return self._several_groups()
        every = replace(protection, kind="rows", tables=tuple(weights), distance={})
        counted = self._asked(self.joins, adding, every)
        if isinstance(counted, Refusal):
            return replace(against, others=(counted, *counted.others))
        nearest = min(weights.values())
        bounds: dict[str, Move] = {}
        steps: list[Step] = []
        for m, call in zip(release.measures, release.exact.aggregations, strict=True):
            move = moving.bounds[m.column]
            if call.function in EXTREMES:
                jumps = _ranges(call, m.step, weights)
                bound = _joined(move, jumps, single=True)
                step = None if bound is None else _step(m.words, m.step, bound, jumps)
            else:
                survey = counted.bounds[m.column]
                assert isinstance(survey, Surveyed), "joins are surveyed"
                bound = _fan(move, survey, nearest)
                step = None if bound is None else _fan_step(m.words, m.step, bound, survey, nearest)
            if bound is None or step is None:
                return self._unbounded(m.words)
            bounds[m.column] = bound
            steps.append(step)
        return Certificate(
            self.name,
            protection.name,
            bounds,
            counted.rows,
            counted.groups,
            counted.contribution,
            in_order({*moving.claims, *counted.claims}),
            (*steps, *moving.derivation, *counted.derivation),
        )

    def _several_groups(self) -> Refusal:
        reason = "one row may be the least or greatest of several groups"
        return self._refuse(reason, "ask for MIN and MAX without GROUP BY, or join on keys")

    def _unbounded(self, description: str) -> Refusal:
        reason = f"{description} moves with values by no public number"
        return self._refuse(reason, "declare ranges, and join on keys that the engine keeps")

    def _together(
        self,
        request: Request,
        moving: Certificate,
        weights: Weights,
        jumping: Mapping[str, Certificate],
    ) -> Certificate | Refusal:
        release = request.release
        single = all(c.rows <= 1 for c in jumping.values())
        if not single and _extreme_groups(release):
            return self._several_groups()
        bounds: dict[str, Move] = {}
        steps: list[Step] = []
        for m, call in zip(release.measures, release.exact.aggregations, strict=True):
            jumps: dict[str, tuple[Fraction, Fraction]] = {}
            if call.function in EXTREMES:
                jumps = _ranges(call, m.step, weights)
            else:
                for table, certificate in jumping.items():
                    jump = certificate.bounds[m.column]
                    assert isinstance(jump, GlobalBound), (
                        "the stability analysis gives public numbers"
                    )
                    jumps[table] = jump.value, weights[table]
            bound = _joined(moving.bounds[m.column], jumps, single=single)
            if bound is None:
                return self._unbounded(m.words)
            bounds[m.column] = bound
            steps.append(_step(m.words, m.step, bound, jumps))
        claims = {k for c in (moving, *jumping.values()) for k in c.claims}
        return Certificate(
            self.name,
            request.protection.name,
            bounds,
            max((c.rows for c in jumping.values()), default=0),
            max((c.groups for c in jumping.values()), default=0),
            max((c.contribution for c in jumping.values()), default=0),
            in_order(claims),
            (*steps, *moving.derivation, *(s for c in jumping.values() for s in c.derivation)),
        )


def _extreme_groups(release: MeasuredAggregate) -> bool:
    """Whether the least or greatest is asked for in each group."""
    return bool(release.exact.keys) and any(
        c.function in EXTREMES for c in release.exact.aggregations
    )


def _ranges(
    call: n.Aggregation, step: Fraction, weights: Weights
) -> dict[str, tuple[Fraction, Fraction]]:
    """Let a row of any table move MIN or MAX by its whole range (combined.min_max)."""
    jump = whole_range(call, step)
    return {table: (jump, weight) for table, weight in weights.items()}


def adds_up(protection: Protection) -> bool:
    """Whether moves of several rows and tables add up, as rows that come and go do."""
    rows = protection.row_norms.values()
    return protection.table_norm == "l1" and all(power == "l1" for power in rows)


def _without_extremes(request: Request) -> Request:
    """Leave out MIN and MAX: however many rows differ, they move by their range at most (combined.min_max)."""
    release = request.release
    calls = zip(release.measures, release.exact.aggregations, strict=True)
    summed = [(m, c) for m, c in calls if c.function not in EXTREMES]
    exact = replace(release.exact, aggregations=tuple(c for _, c in summed))
    return replace(
        request, release=replace(release, exact=exact, measures=tuple(m for m, _ in summed))
    )


def _joined(moving: Move, jumps: Jumps, *, single: bool) -> Move | None:
    """Put together how a measure moves with values and with rows; None if no public number bounds it.

    Rests on combined.both.
    """
    over = max((jump / weight for jump, weight in jumps.values()), default=Fraction(0))
    if is_still(moving):
        return GlobalBound(over)
    assert isinstance(moving, SmoothSensitivity), "values move by a curve or not at all"
    if moving.cap is None:
        return None
    nearest = min((weight for _, weight in jumps.values()), default=Fraction(1))
    resolution = min(Fraction(1), nearest)
    return replace(
        moving,
        cap=max(moving.cap, over),
        steady=moving.steady or not single,
        rounding=moving.rounding / resolution,
        resolution=resolution,
        least=_least(moving.cap, nearest, jumps),
    )


def _fan(moving: Move, survey: Surveyed, nearest: Fraction) -> SmoothSensitivity | None:
    """Put a measure's motion and the joined rows that one row moves together; None without a public number.

    Rests on combined.fans.
    """
    resolution = min(Fraction(1), nearest)
    if is_still(moving):
        slope = Fraction(0)
        curve = _motionless()
    else:
        assert isinstance(moving, SmoothSensitivity), "values move by a curve or not at all"
        if moving.each is None:
            return None
        slope, curve = moving.each, moving
    return replace(
        curve,
        cap=None,
        steady=False,
        rounding=curve.rounding / resolution,
        resolution=resolution,
        coming=Coming(survey.surveys, nearest, _each(slope, survey.each, nearest), survey.groups),
    )


def _motionless() -> SmoothSensitivity:
    """Give the curve of a measure that no value moves."""
    nothing = Fraction(0)
    return SmoothSensitivity(
        None, True, False, {}, lambda beta: [], lambda beta: None, None, Fraction(1), nothing
    )


def _each(slope: Fraction, jump: Fraction, nearest: Fraction) -> Callable[[Fraction], Fraction]:
    """Give, for a beta, what the bound is at least for each joined row that one row moves, rounded up.

    Rests on combined.fans.
    """

    def each(beta: Fraction) -> Fraction:
        return max(coming_part(beta, nearest, slope), jump_part(beta, nearest, jump))

    return each


def coming_part(beta: Fraction, weight: Fraction, slope: Fraction) -> Fraction:
    """Give K / (e^(beta·G) − 1): what lets a slope grow by K with a row that comes, rounded up (combined.fans)."""
    with working_precision(128):
        return upper(ball(slope) / (ball(beta * weight).exp() - 1))


def _least(slope: Fraction, nearest: Fraction, jumps: Jumps) -> Callable[[Fraction], Fraction]:
    """Give, for a beta, what the bound never falls below: a row that may come, and the jumps, rounded up."""

    def least(beta: Fraction) -> Fraction:
        with working_precision(128):
            coming = upper((-ball(beta * nearest)).exp() * ball(slope))
        parts = [jump_part(beta, weight, jump) for jump, weight in jumps.values()]
        return max([coming, *parts])

    return least


def jump_part(beta: Fraction, weight: Fraction, jump: Fraction) -> Fraction:
    """Give g·J, g = beta / (2(e^(beta·G/2) − 1)): what hides a jump by J at distance G, rounded up (combined.both)."""
    with working_precision(128):
        return upper(ball(beta * jump) / (2 * (ball(beta * weight / 2).exp() - 1)))


def _step(description: str, unit: Fraction, bound: Move, jumps: Jumps) -> Step:
    value = ", ".join(
        f"a row of {table} moves it by {amount(jump * unit)} at a distance of {amount(weight)}"
        for table, (jump, weight) in jumps.items()
    )
    most = bound.value if isinstance(bound, GlobalBound) else bound.cap
    assert isinstance(most, Fraction)
    return Step(
        "combined.both", f"{description}: {value}", f"moves by at most {amount(most * unit)} a unit"
    )


def _fan_step(
    description: str, unit: Fraction, bound: SmoothSensitivity, survey: Surveyed, nearest: Fraction
) -> Step:
    assert bound.coming is not None
    slope = "nothing" if bound.each is None else amount(bound.each * unit)
    value = (
        f"a joined row moves it by {amount(survey.each * unit)} where it comes or goes, at a distance of "
        f"{amount(nearest)} or more, and by {slope} a unit where values move"
    )
    return Step(
        "combined.fans",
        f"{description}: {value}",
        "times the joined rows that one row moves, surveyed",
    )
