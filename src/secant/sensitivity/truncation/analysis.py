"""The truncation analysis: limits of what one unit adds, chosen privately where public facts say that it pays.

In: a release whose rows belong to single units. Out: for each COUNT and SUM the limits to choose from. A limit that the
owner declared is a worst case: where filters let few of a unit's rows through, most units add far less, and noise for
the worst case drowns the answer.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction

from secant.plan import nodes as n
from secant.plan.facts.cardinality import expected_share
from secant.plan.facts.ownership import Ownership, Ownerships
from secant.plan.rewrites.enforce import MeasuredAggregate
from secant.plan.rewrites.measures import Measure
from secant.plan.rewrites.order_statistics import Ranked
from secant.plan.rewrites.owners import unit_column
from secant.plan.rewrites.wide import octaves
from secant.sensitivity.certificate import (
    CannotBound,
    Certificate,
    ClippedContribution,
    Contributions,
    Refusal,
    Step,
)
from secant.sensitivity.interface import Request, refusing
from secant.sensitivity.stability.rules import owned_by
from secant.sensitivity.summands import (
    each_row,
    is_owner,
    never_negative,
    one_a_group,
    owned_by_one,
)
from secant.sensitivity.truncation.centering import WIDEST, about_centers, centered
from secant.sensitivity.truncation.clipping import (
    Additions,
    cut_down,
    cut_down_to_each,
    cut_values,
    one_row_for_each_value,
)
from secant.sensitivity.truncation.tallying import above_limits, above_values, at_once, each_value
from secant.sensitivity.truncation.weighing import step_of, unlimited, weighed

GAIN = 4
"""A limit is chosen privately if a usual unit adds less than this part of what the declared limits allow.

So it is for a sum wherever a unit may have several rows: nobody has as many as may be, all of them at the end of the
declared range, so what the limits allow is far above what anybody adds. Not for the sums of an average, which are of
what lies about the middle of the range: there everybody whose values are low adds nearly as much as may be. And not
where an error has to be known beforehand (`near`).
"""
FEW, FEW_OWN = 2, 8
"""Different values up to which a declared limit is taken as it is, for choosing a smaller one costs more than it wins:
values that are assigned, and values that belong to one unit each, for a tally of who has one or two sees little."""
FINEST = 16
"""The smallest limit to choose from is this part of what one row can add, or a usual unit if that is more."""
PARTS = 2**10
"""Cut-down numbers are rounded toward zero, unit by unit and group by group: this part of a row may be lost of each."""
MANY = 8
"""Rows of a unit that limits must allow for an average to be measured about a center, which takes epsilon to choose."""


class TruncationAnalysis:
    """Limits for COUNT and SUM under `unit`, chosen from a public list by how many units add more."""

    name = "truncation"
    kinds: tuple[str, ...] = ("unit",)

    @refusing
    def bound(self, request: Request) -> Certificate | Refusal:
        """Give the measures whose limits are worth choosing, or say why there are none."""
        release, protection = request.release, request.protection
        if protection.personal is not None:
            reason = "units give different amounts of epsilon, so one limit does not fit all"
            hint = f"declare limits in protections.{protection.name}"
            raise CannotBound("stability.personal", release.exact, reason, hint)
        if protection.kind not in self.kinds:
            raise CannotBound(
                "truncation.clip", release.exact, "only units add up", "use kind `unit`"
            )
        ownerships = request.facts.owners(protection)
        rows, limit, unit = owned_rows(release, ownerships)
        if release.tallied and release.undeclared.limits:
            limit = None  # what a tally says holds for all units, what was found for all but a few
        divided = _divided(request, limit)
        limits = _limits(request, rows, limit, ownerships, divided)
        weights = {
            r: bound
            for r in release.ranked
            if (bound := _weighed(r, ownerships, protection.truncation)) is not None
        }
        if not limits and not weights:
            raise CannotBound(
                "truncation.clip",
                release.exact,
                "no measure adds up what single units add",
                "use COUNT and SUM, or declare limits",
            )
        named = limits.keys() | set(divided.values())
        measures = {m.column: m for m in release.measures if m.column in named}
        calls = {c.name: c for c in release.exact.aggregations if c.name in named}

        adding = tuple(
            c for c in calls.values() if _adds(c) or _adds_units(c, request, rows, ownerships)
        )

        def additions(*chosen: n.Aggregation) -> Additions:
            fine = {c.name: _fine(c, measures[c.name], adds=c in adding) for c in chosen}
            cut = [c for c in chosen if limits.get(c.name)]
            alone = all(limits[c.name][0] >= _one(c, measures[c.name]) for c in cut)
            together = tuple(f for f in release.together if not f & divided.keys())
            return Additions(
                rows, unit, release.exact.keys, chosen, measures, together, alone, fine
            )

        alone = one_a_group(replace(release.exact, input=rows), frozenset((unit,)))
        bounds: dict[str, ClippedContribution] = {}
        if adding:
            added = additions(*adding)
            whole = {c: x for c, x in limits.items() if x}
            bounds |= _added(added, whole, protection.truncation)
            for call in adding:
                if call.name in divided:
                    bounds[call.name] = centered(added, call, divided[call.name], limit)
        own = ownerships.of(rows)
        apart = {
            c.name
            for c in calls.values()
            if c.distinct
            and c not in adding
            and owned_by_one(c.argument, request.facts, ownerships, own)
        }
        for name in sorted(apart):
            each = replace(one_row_for_each_value(additions(calls[name])), fine={name: PARTS})
            bounds |= _added(each, limits, protection.truncation)
        for call in calls.values():
            if call.name in limits and call.name not in bounds:
                bounds[call.name] = _counted(additions(call), limits[call.name])
        bounds = {
            c: b
            if b.centering is not None
            else replace(b, within=_within(calls[c], measures[c], ownerships, own, alone=alone))
            for c, b in bounds.items()
        }
        sums = apart | {c.name for c in adding}
        steps = tuple(
            _limit_step(calls[c], measures[c], x, adds=c in sums) for c, x in bounds.items()
        )
        bounds |= {r.column: bound for r, bound in weights.items()}
        steps += tuple(step_of(r, bound) for r, bound in weights.items())
        return Certificate(self.name, protection.name, bounds, 0, 0, 0, (), steps)


def _weighed(ranked: Ranked, ownerships: Ownerships, truncation: str) -> ClippedContribution | None:
    """Give the limits of what the rows of a unit weigh that are ranked; None where one row of each counts anyway."""
    if ranked.of_units or any(n.has_subquery(k.expression) for k in ranked.cells.keys):
        return None
    rows, declared = unlimited(ranked)
    unit = unit_column(ownerships.of(rows), ownerships)
    if unit is None or not owned_by(ownerships, rows, (unit,)):
        return None
    known = [x for x in (declared, ownerships.of(rows).guaranteed) if x is not None]
    limit = min(known, default=None)
    if limit == 1 or (limit is None and truncation == "fixed"):
        return None
    if limit is not None and (limit <= FEW or truncation not in ("auto", "chosen")):
        return weighed(ranked, rows, unit, (limit,))
    return weighed(ranked, rows, unit, _candidates(1, limit, 0.0, WIDEST - 1)[::-2][::-1])


def _added(
    a: Additions, candidates: Mapping[str, tuple[int, ...]], truncation: str
) -> dict[str, ClippedContribution]:
    """Cut down what units add to measures that add up, all of them in one statement."""
    calls = [c for c in a.calls if c.name in candidates]
    limits = {c.name: candidates[c.name] for c in calls}
    weighted = {c.name for c in calls if len(a.partners(c.name)) > 1}
    # Limits that race double: noise grows with their number. Numbers of one quotient are cut down together.
    # Where a tally of units chooses, octaves hold all that it can tell apart.
    race = truncation == "race"
    doubling = {
        c.name: limits[c.name] if a.measures[c.name].wide else _doubling(limits[c.name])
        for c in calls
        if _tallied(truncation, c.name, a.together)
        or (race and c.name not in weighted and never_negative(c))
    }
    doubling = {c: x for c, x in doubling.items() if len(x) > 1}
    racing = set(doubling) if race else set()
    limits |= doubling
    a = replace(a, fine={c: 1 if c in racing else fine for c, fine in a.fine.items()})
    # A tally also counts the units below the least limit, or of people who add one row each it would see nobody. What
    # lies below that of reals in a wide range is not told from nothing.
    rounded = {c for c in limits if a.measures[c].wide and a.measures[c].type.kind == "DOUBLE"}
    several = {
        c: (0, *x) if c in doubling and c not in rounded else x
        for c, x in limits.items()
        if len(x) > 1 and c not in racing
    }
    chosen_one = {c: x for c, x in limits.items() if c not in racing}
    # Where no limit is to be chosen, the cut-down sums are all that is asked, and need no buckets.
    once = at_once(a, chosen_one | several) if several and not a.keys and not weighted else None
    contributions = Contributions(
        above_limits(a, several) if several and once is None else None,
        lambda chosen: cut_down(a, chosen),
        lambda chosen: cut_down_to_each(a, chosen),
        once,
        a.each,
    )
    signs = {c.name: never_negative(c) for c in calls}
    return {
        c: ClippedContribution(
            contributions,
            x,
            c in racing,
            None,
            a.partners(c),
            signs[c],
            a.fine[c],
            a.alone,
            octaves=c in doubling and c not in racing,
        )
        for c, x in limits.items()
    }


def _doubling(limits: tuple[int, ...]) -> tuple[int, ...]:
    """Give the least limit, each twice the one before, and the largest."""
    least, most = limits[0], limits[-1]
    steps = range((most // least).bit_length())
    return (*(least << k for k in steps if 3 * (least << k) <= 2 * most), most)


def _counted(a: Additions, limits: tuple[int, ...]) -> ClippedContribution:
    """Count different values, of which each unit brings in a limited number: in each group, or assigned to it."""
    name = a.calls[0].name
    if not a.keys:
        matched = each_value(a, limits)
        contributions = Contributions(None, lambda c: cut_values(a, c), at_once=matched)
        return ClippedContribution(
            contributions, limits, partners=(name,), positive=True, nobodys=True, assigned=True
        )
    contributions = Contributions(
        above_values(a, limits), lambda c: cut_values(a, c), each=a.values
    )
    return ClippedContribution(contributions, limits, partners=(name,), positive=True, nobodys=True)


def _limits(
    request: Request,
    rows: n.Relation,
    limit: int | None,
    ownerships: Ownerships,
    divided: Mapping[str, str],
) -> dict[str, tuple[int, ...]]:
    """Give for each measure that adds up the limits to choose from; a single one where choosing would not pay."""
    release, protection = request.release, request.protection
    share = expected_share(rows, request.policy, request.count)
    calls = {c.name: c for c in release.exact.aggregations}
    # Under a limit that nobody declared no end is certain: there it is chosen as ever.
    sure = protection.truncation == "certain" and not release.undeclared.limits
    fixed = protection.truncation == "fixed"
    together = tuple(f for f in release.together if not f & divided.keys())

    def keeps(column: str) -> bool:
        """Whether the declared limit is near to what a usual unit adds; measures of one quotient decide together."""
        family = next((f for f in together if column in f), frozenset((column,)))
        auto = protection.truncation == "auto"
        if auto and len(family) == 1 and calls[column].function == "sum" and limit != 1:
            return False
        return all(share * _usual_part(calls[c]) * GAIN > 1 for c in family)

    candidates_of: dict[str, tuple[int, ...]] = {}
    for measure, call in zip(release.measures, release.exact.aggregations, strict=True):
        counts = call.function == "count" and call.distinct and isinstance(call.argument, n.Column)
        if not (_adds(call) or counts) or measure.column == release.selector:
            continue
        if measure.column in divided:  # has limits of its own, about a center
            candidates_of[measure.column] = ()
            continue
        owned = ownerships.of(rows)
        if counts and not release.exact.keys and is_owner(call.argument, ownerships, owned):
            continue  # a unit counts once: nothing to limit
        # A row that adds nothing needs no limit, but noise needs a scale: any larger limit holds as well.
        one = _one(call, measure)
        usual = share * _usual_part(call)
        near = protection.truncation in ("auto", "near") and keeps(measure.column)
        units = _adds_units(call, request, rows, ownerships)
        summed = (
            _adds(call)
            or units
            or (counts and owned_by_one(call.argument, request.facts, ownerships, owned))
        )
        assigned = counts and not summed and not release.exact.keys
        few = limit is not None and limit <= (FEW_OWN if summed else FEW)
        if (
            counts
            and not units
            and (assigned or summed)
            and protection.truncation == "auto"
            and not few
        ):
            near = False
        if measure.column in divided.values() and measure.weight <= measure.divides:
            near = False  # cut down like the sum, so that both are of the same rows
        near = near and not measure.wide  # a limit of rows says nothing of what a wide row adds
        if limit is not None and (fixed or sure or near):
            if release.exact.keys or counts:
                continue  # keeping a unit's first rows is faster
            candidates: tuple[int, ...] = (one * limit,)
        elif fixed:
            continue
        else:
            tallied = _tallied(protection.truncation, measure.column, together)
            low = assigned or (tallied and summed)
            most = (WIDEST - 1) // _fine(call, measure, adds=summed)
            candidates = _candidates(one, limit, 0.0 if low else usual, most)
            if measure.wide:
                candidates = octaves(measure.type, one)
            if assigned:
                # Each is compared with one that is twice as large at least (truncation.matching).
                candidates = (
                    tuple(x for x in candidates if 2 * x <= candidates[-1]) + candidates[-1:]
                )
        if candidates[-1] * _fine(call, measure, adds=summed) < WIDEST and not (
            counts and len(candidates) == 1
        ):
            candidates_of[measure.column] = candidates
    return candidates_of


def _divided(request: Request, limit: int | None) -> dict[str, str]:
    """Give the sums that are measured about a center, each with its count: those of averages of units' many rows.

    Of few rows for each unit, all that a center could save is what the declared range is too wide.
    """
    if request.protection.truncation not in ("auto", "chosen"):
        return {}
    few = limit is not None and limit < MANY
    wide = {m.column for m in request.release.measures if m.wide}
    found = about_centers(request.release, limit)
    return {c: count for c, count in found.items() if c in wide or not few}


def _adds_units(
    call: n.Aggregation, request: Request, rows: n.Relation, ownerships: Ownerships
) -> bool:
    """Whether a call counts units group by group, and a tally can tell in how many groups they are.

    A unit adds one to each of its groups (truncation.clip, as for a count of rows that is one in each).
    """
    if not (call.distinct and call.function == "count" and request.release.exact.keys):
        return False
    tallied = _tallied(request.protection.truncation, call.name, request.release.together)
    return tallied and is_owner(call.argument, ownerships, ownerships.of(rows))


def _tallied(truncation: str, column: str, together: tuple[frozenset[str], ...]) -> bool:
    """Whether a tally of units by octave chooses the limit: measures of one quotient are cut down together."""
    return truncation in ("auto", "chosen", "certain") and not any(column in f for f in together)


def _within(
    call: n.Aggregation,
    measure: Measure,
    ownerships: Ownerships,
    owned: Ownership,
    *,
    alone: bool,
) -> int | None:
    """Give what one unit adds to one group at most, in whole steps; None if its limit alone says it.

    Rests on truncation.length.
    """
    if call.distinct and is_owner(call.argument, ownerships, owned):
        return 1
    return _one(call, measure) if alone else None


def _one(call: n.Aggregation, measure: Measure) -> int:
    """Give what one row adds at most, in whole steps."""
    return max(1, math.ceil(each_row(call, measure.step)))


def _fine(call: n.Aggregation, measure: Measure, *, adds: bool) -> int:
    """Give the parts of a step that cut-down numbers are counted in: one row is at least so many of them."""
    if measure.wide:
        return 1 if measure.type.kind == "DOUBLE" else PARTS
    return PARTS if adds and each_row(call, measure.step) < PARTS else 1


def _limit_step(
    call: n.Aggregation, measure: Measure, bound: ClippedContribution, *, adds: bool
) -> Step:
    limits = bound.limits
    least, most = (f"{float(x * measure.step):.6g}" for x in (limits[0], limits[-1]))
    if bound.centering is not None:
        words = f"{measure.words}: what a unit adds beyond a center times its rows is cut down to a limit"
        value = (
            f"center and limit are chosen privately, limits from {len(limits)}, {least} to {most}"
        )
        return Step("truncation.center", words, value, (), call, limits[-1])
    description = f"{measure.words}: what a unit adds, all groups together, is cut down to a limit"
    if bound.assigned:
        description = f"{measure.words}: as many as can be assigned to units that have them, a limited number to each"
        value = f"the limit is chosen privately from {len(limits)}, {least} to {most}"
        return Step("truncation.matching", description, value, (), call, limits[-1])
    if not adds:
        description = f"{measure.words}: of which each unit brings in no more than a limit, all groups together"
        value = f"the limit is chosen privately from {len(limits)}, {least} to {most}"
        return Step("truncation.distinct", description, value, (), call, limits[-1])
    if len(limits) == 1:
        return Step(
            "truncation.clip",
            description,
            f"moves by at most {most}, as declared",
            (),
            call,
            limits[-1],
        )
    if bound.race:
        value = f"{len(limits)} limits race, {least} to {most}"
        return Step("truncation.race", description, value, (), call, limits[-1])
    value = f"the limit is chosen privately from {len(limits)}, {least} to {most}"
    return Step("truncation.clip", description, value, (), call, limits[-1])


def owned_rows(
    release: MeasuredAggregate, ownerships: Ownerships
) -> tuple[n.Relation, int | None, str]:
    """Give the rows before they are limited, the declared limit, and the column of their unit."""
    rows, limit = release.exact.input, None
    while isinstance(rows, n.Truncate):
        limit, rows = rows.limit, rows.input
    unit = unit_column(ownerships.of(rows), ownerships)
    if unit is None or not owned_by(ownerships, rows, (unit,)):
        raise CannotBound(
            "truncation.clip",
            release.exact,
            "rows do not belong to single units",
            "group by the unit's key inside",
        )
    sure = ownerships.of(rows).guaranteed
    limits = [x for x in (limit, sure) if x is not None]
    return rows, min(limits, default=None), unit


def _adds(call: n.Aggregation) -> bool:
    return call.function in ("count", "sum") and not call.distinct


def _usual_part(call: n.Aggregation) -> float:
    """Give the part of the largest summand that a usual row adds: half, if values lie evenly; all of a count."""
    return 1.0 if call.function == "count" else 0.5


def _candidates(one: int, limit: int | None, usual: float, largest: int) -> tuple[int, ...]:
    """Give limits in steps of about the square root of two, from part of what is usual to all that is allowed.

    Where a tally chooses, `usual` is 0: it sees by itself what is usual, if only its octaves reach down there. Without
    a declared limit the list ends with the `largest` that engines can count to.
    """
    most = one * limit if limit is not None else max(one, min(one * 2**20, largest))
    least = one if limit is None else max(one, math.ceil(most * usual))
    candidates = {most}
    value = Fraction(max(1, least // FINEST))
    while value < most:
        candidates.add(int(value))
        value *= Fraction(99, 70)
    return tuple(sorted(candidates))
