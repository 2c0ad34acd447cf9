"""The stability analysis: from changed rows to a bound for every measure of a release."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

from secant.plan import nodes as n
from secant.plan.facts.facts import Facts
from secant.plan.facts.ownership import Ownership, Ownerships
from secant.plan.facts.reads import tables_read
from secant.plan.rewrites.enforce import MeasuredAggregate
from secant.plan.rewrites.order_statistics import Ranked
from secant.policy.keys import Key, in_order
from secant.records import frozen
from secant.sensitivity.bounds import GlobalBound
from secant.sensitivity.certificate import CannotBound, Certificate, Move, Refusal, Step
from secant.sensitivity.growth import growth
from secant.sensitivity.interface import Request, refusing
from secant.sensitivity.stability.rules import Stabilities, Stable, owned_by
from secant.sensitivity.summands import (
    amount,
    ends_of_row,
    is_owner,
    measure_bound,
    one_a_group,
    replaced_bound,
    rows_differ,
    unit_columns,
)


class StabilityAnalysis:
    """Global bounds for COUNT, SUM, what is made of them, and ranks, under `rows` and `unit`."""

    name = "stability"
    kinds: tuple[str, ...] = ("rows", "unit", "window")  # of `window` only that it is not read

    @refusing
    def bound(self, request: Request) -> Certificate | Refusal:
        """Bound every measure of the release, or say which node stands in the way."""
        if not any(t in request.covered for t in tables_read(*request.release.aggregates)):
            description = "no table of this protection is read"
            step = Step("stability.public", description, "0 rows differ", bound=0)
            columns = [m.column for m in request.release.measures]
            columns += [r.column for r in request.release.ranked]
            still = {column: GlobalBound(Fraction(0)) for column in columns}
            return Certificate(self.name, request.protection.name, still, 0, 0, 0, (), (step,))
        if request.protection.kind == "rows":
            return self._rows(request)
        if request.protection.kind == "unit":
            return self._unit(request)
        if request.protection.kind == "window":
            return Refusal(
                self.name,
                "stability.kind",
                f"{request.protection.name} hides what lies within a stretch of time, and pays for streams only",
                "ask under another protection, if the owner lists both under `alternatives`, or declare a stream",
            )
        return Refusal(
            self.name,
            "stability.kind",
            f"protections of kind {request.protection.kind} are not bounded here",
            "use kind `rows` or `unit`",
        )

    def _rows(self, request: Request) -> Certificate:
        """One row of one table differs: the worst over the protected tables that the query reads."""
        claims: set[Key] = set()
        rows = request.release.exact.input
        changed, step = _row_change(request, rows, claims)
        ranks = [_row_change(request, r.cells.input, claims) for r in request.release.ranked]
        swap = _swap(request, rows, changed) if request.protection.replace else None
        return _certificate(self.name, request, changed, changed, step, None, claims, ranks, swap)

    def _unit(self, request: Request) -> Certificate:
        """Everything of one unit differs."""
        release = request.release
        ownerships = request.facts.owners(request.protection)
        claims: set[Key] = set()
        try:
            changed, step = _unit_change(request, release.exact.input, ownerships, claims)
            ranks = [
                _unit_change(request, r.cells.input, ownerships, claims) for r in release.ranked
            ]
        except CannotBound as stopped:
            counted = _units_once(request, ownerships) or _extremes(request, ownerships, stopped)
            if counted is None:
                raise
            return counted
        owned = ownerships.of(release.exact.input)
        groups = _groups(release, ownerships, changed) if owned.local else changed
        return _certificate(
            self.name, request, changed, groups, step, (ownerships, owned), claims, ranks
        )


def _units_once(request: Request, ownerships: Ownerships) -> Certificate | None:
    """Bound the counts of units, which need no limit of rows where there are no keys; None if there are none."""
    release = request.release
    owned = ownerships.of(release.exact.input)
    if release.exact.keys or release.ranked or not owned.local:
        return None
    distinct = [
        c
        for c in release.exact.aggregations
        if c.distinct and c.argument is not None and is_owner(c.argument, ownerships, owned)
    ]
    if not distinct:
        return None
    description = "a unit counts once, however many rows it has"
    steps = tuple(
        Step("stability.count_units", description, "moves by 1", (), c, 1) for c in distinct
    )
    bounds = {c.name: GlobalBound(Fraction(1)) for c in distinct}
    name = request.protection.name
    return Certificate(StabilityAnalysis.name, name, bounds, 0, 1, 1, (), steps)


def _extremes(request: Request, ownerships: Ownerships, stopped: CannotBound) -> Certificate | None:
    """Bound the extremes that count one row of each unit, which need no limit of rows; None if there are none."""
    claims: set[Key] = set()
    bounds: dict[str, Move] = {}
    steps: list[Step] = []
    for r in request.release.ranked:
        if r.of_units:
            differ, counted = _unit_change(request, r.cells.input, ownerships, claims)
            step = _rank_step(r, differ, counted)
            bounds[r.column] = GlobalBound(_rank_bound(r, differ), "linf")
            steps.append(step)
    if not bounds:
        return None
    name, analysis = request.protection.name, StabilityAnalysis.name
    against = (stopped.refusal(analysis),)
    return Certificate(
        analysis, name, bounds, 0, 0, 0, in_order(claims), tuple(steps), tried=against
    )


def _row_change(request: Request, relation: n.Relation, claims: set[Key]) -> tuple[int, Step]:
    """Give how many rows of a relation differ if one row of a protected table does, at most."""
    protection = request.protection
    covered = request.covered
    worst: Stable | None = None
    changed = 0
    for table in sorted(t for t in tables_read(*request.release.aggregates) if t in covered):
        work = Stabilities(_only(table), request.facts, None)
        stable = work.of(relation)
        assert stable.changed is not None, "rows of a table always have a number"
        claims |= work.claims
        if worst is None or stable.changed > changed:
            worst, changed = stable, stable.changed
    assert worst is not None, "a protected table is read"
    step = worst.step
    if protection.replace:
        changed *= 2
        description = "one row is replaced"
        step = Step(
            "stability.replace", description, rows_differ(changed), (step,), relation, changed
        )
    return changed, step


@frozen
class _Swap:
    """One row is replaced by another, and what it brings only adds rows: as many at most go as come."""

    once: int
    """Rows that go, and rows that come, at most."""
    fixed: bool
    """Whether as many come as go."""


@frozen
class _Change:
    """What differs between neighbors."""

    rows: int
    groups: int
    alone: bool
    """Whether no two rows that differ are in one group."""
    swap: _Swap | None


def _swap(request: Request, relation: n.Relation, changed: int) -> _Swap | None:
    """Say what a replaced row takes away and brings; None if what comes and goes may be either (combined.grows)."""
    covered = request.covered
    growths = [growth(relation, _only(t)) for t in tables_read(relation) if t in covered]
    if None in growths:
        return None
    return _Swap(changed // 2, all(g is not None and g.each is not None for g in growths))


def _unit_change(
    request: Request, relation: n.Relation, ownerships: Ownerships, claims: set[Key]
) -> tuple[int, Step]:
    """Give how many rows of a relation differ if a unit is taken out, at most."""
    owned = ownerships.of(relation)
    work = Stabilities(ownerships.paths.reached.__contains__, request.facts, ownerships)
    blocked = owned.blocked
    try:
        stable = work.of(relation)
    except CannotBound:
        if blocked is None or blocked.rule == "owner.truncate":
            raise  # the rule that stopped says more than that rows were limited on the way
        raise CannotBound(blocked.rule, blocked.node, blocked.reason, blocked.hint) from None
    claims |= work.claims
    changed, step = stable.changed, stable.step
    if (
        owned.local
        and owned.guaranteed is not None
        and (changed is None or owned.guaranteed < changed)
    ):
        changed = owned.guaranteed
        description = "rows that a unit has by construction"
        step = Step(
            "stability.owned", description, rows_differ(changed), (step,), relation, changed
        )
    if changed is None and blocked is not None:
        raise CannotBound(blocked.rule, blocked.node, blocked.reason, blocked.hint)
    if changed is None:
        raise CannotBound(
            "stability.truncate",
            request.release.exact,
            "rows of one unit are not limited",
            f"declare limits in protections.{request.protection.name}",
        )
    return changed, step


def rows_moved(relation: n.Relation, table: str, facts: Facts) -> int | None:
    """Give how many rows of a relation one row of a table moves, at most; None if no number bounds them.

    An explanation: sums over all paths from the table to the relation, of products along each (workflow.stability).
    """
    try:
        return Stabilities(_only(table), facts, None).of(relation).changed
    except CannotBound:
        return None


def _only(table: str) -> Callable[[str], bool]:
    return lambda name: name == table


def _groups(release: MeasuredAggregate, ownerships: Ownerships, changed: int) -> int:
    """Groups that one unit can reach: no more than its rows, its own group limit, or the listed keys."""
    if not release.exact.keys:
        return min(1, changed)
    groups = changed
    node: n.Relation = release.exact.input
    while isinstance(node, (n.Truncate, n.TruncateGroups)):
        if isinstance(node, n.TruncateGroups) and owned_by(ownerships, node.input, node.owner):
            groups = min(groups, node.limit)
        node = node.input
    if release.listed_groups is not None:
        groups = min(groups, max(1, release.listed_groups))
    return groups


def _certificate(
    analysis: str,
    request: Request,
    changed: int,
    groups: int,
    rows: Step,
    owned: tuple[Ownerships, Ownership] | None,
    claims: set[Key],
    ranks: list[tuple[int, Step]],
    swap: _Swap | None = None,
) -> Certificate:
    bounds: dict[str, GlobalBound] = {}
    squares: dict[str, Fraction] = {}
    steps: list[Step] = []
    alone = owned is not None and one_a_group(request.release.exact, unit_columns(*owned))
    change = _Change(changed, groups, alone, swap)
    for measure, call in zip(
        request.release.measures, request.release.exact.aggregations, strict=True
    ):
        if swap is not None and not request.release.exact.keys:
            rule, value, description = replaced_bound(call, swap.once, swap.fixed, measure.step)
        else:
            rule, value, description = measure_bound(call, changed, groups, owned, measure.step)
        bounds[measure.column] = GlobalBound(value)
        value_text = f"moves by at most {amount(value * measure.step)}"
        square = _square(rule, call, value, change, measure.step)
        if request.release.exact.keys and square < value**2:
            squares[measure.column] = square
            length = float(square) ** 0.5 * float(measure.step)
            value_text += f", by a length of {length:.6g} in all groups together (stability.length)"
        steps.append(
            Step(rule, f"{measure.words}: {description}", value_text, (rows,), call, value)
        )
    for ranked, (differ, counted) in zip(request.release.ranked, ranks, strict=True):
        bounds[ranked.column] = GlobalBound(_rank_bound(ranked, differ), "linf")
        steps.append(_rank_step(ranked, differ, counted))
    together = changed if swap is None else swap.once  # one group loses what the other gains
    contribution = _contribution(request.release, together, owned)
    return Certificate(
        analysis,
        request.protection.name,
        bounds,
        changed,
        groups,
        contribution,
        in_order(claims),
        tuple(steps),
        squares,
    )


def _rank_step(ranked: Ranked, differ: int, counted: Step) -> Step:
    """Say how far rank distances move apart, or how many rows a value lacks."""
    value = _rank_bound(ranked, differ)
    label = f"{ranked.words}: {differ} rows, {amount(ranked.span)} each"
    if ranked.of_units:
        label = f"{ranked.words}: {differ} row, a unit's own extreme (rewrite.extreme)"
    if ranked.fraction is None:
        value_text = f"how many rows a value lacks moves by at most {amount(value)}"
        return Step("stability.mode", label, value_text, (counted,), ranked.cells, value)
    value_text = f"rank distances of two points move apart by at most {amount(value)} rows"
    return Step("stability.rank", label, value_text, (counted,), ranked.cells, value)


def _square(
    rule: str, call: n.Aggregation, value: Fraction, change: _Change, step: Fraction
) -> Fraction:
    """Bound the squared length of a measure's move over the groups, in squared steps (stability.length)."""
    if not value or not change.rows:
        return value**2
    if rule == "stability.count_units":
        return value  # once in each group
    if rule == "stability.moves":
        return value**2
    each = value / change.rows
    if change.swap is not None:
        high, low = ends_of_row(call, step)
        return 2 * change.swap.once**2 * (each**2 - low * high)
    return each**2 * min(change.rows, change.groups) if change.alone else value**2


def _rank_bound(ranked: Ranked, changed: int) -> Fraction:
    """Bound how far the rank distances of two points move apart, all groups together, in rows (stability.rank)."""
    (count,) = ranked.cells.aggregations
    if any(n.has_subquery(k.expression) for k in ranked.cells.keys) or (
        count.function != "count" or count.argument is not None
    ):
        raise CannotBound(
            "stability.rank", ranked.cells, "cells are not numbers of rows", "report this"
        )
    return changed * ranked.span


def _contribution(
    release: MeasuredAggregate, changed: int, owned: tuple[Ownerships, Ownership] | None
) -> int:
    """What one group's selecting number can move: a unit counts once; else all rows may share a key."""
    calls = [c for c in release.exact.aggregations if c.name == release.selector]
    if calls and calls[0].argument is not None and owned is not None:
        return min(1, changed) if is_owner(calls[0].argument, *owned) else changed
    return changed
