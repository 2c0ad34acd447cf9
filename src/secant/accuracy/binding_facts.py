"""Which declared facts may have changed an answer: ranges, the limit of groups, and rows that belong to nobody.

In: a release as it was enforced. Out: what can be said without the data. Declared facts are enforced, not believed:
whether one of them has bound in the data at hand is not known here.
"""

from __future__ import annotations

import datetime
import math
from collections.abc import Mapping

from secant.noise.intervals import Span
from secant.plan import nodes as n
from secant.plan.facts.domains import Listed
from secant.plan.facts.ranges import NOTHING_DECLARED, Ranges, as_number
from secant.plan.rewrites.enforce import MeasuredAggregate
from secant.plan.rewrites.order_statistics import Candidates
from secant.plan.rewrites.rewrite import columns_of
from secant.records import frozen
from secant.release.release_plan import ReleasePlan
from secant.release.staged_tables import reads_released
from secant.sensitivity.bound import CertifiedRelease
from secant.sensitivity.certificate import ClippedContribution
from secant.sensitivity.summands import never_negative


def groups_cut(release: MeasuredAggregate) -> int | None:
    """Give the limit of groups that a unit counts in, where it may have more: by its rows, or by the keys."""
    if not n.holds(release.exact, n.TruncateGroups):  # asked for each output, and quickly said
        return None
    limits = [x.limit for x in n.walk(release.exact) if isinstance(x, n.TruncateGroups)]
    group_limits = [x.limit for x in n.walk(release.exact) if isinstance(x, n.Truncate)]
    if all(isinstance(d, Listed) for d in release.domains):
        listed = 1
        for domain in release.domains:
            assert isinstance(domain, Listed)
            listed *= len(domain.values)
        group_limits.append(listed)
    least = min(limits)
    return least if not group_limits or min(group_limits) > least else None


def noise_alone_moves(b: CertifiedRelease) -> bool:
    """Whether noise alone moves what a release shows: no choice, no softening, no limit of groups, no earlier stage."""
    release = b.release
    return (
        not release.chooses_keys
        and b.softened is None
        and not release.personal
        and groups_cut(release) is None
        and not any(reads_released(a) for a in release.aggregates)
    )


def rests_on_inferred_limit(b: CertifiedRelease, column: str) -> bool:
    """Whether a measure counts no more rows of a unit than a limit says that was found privately."""
    if not b.release.undeclared.limits:
        return False
    bounds = (c.bounds.get(column) for c in b.certificates)
    clipped = next((x for x in bounds if isinstance(x, ClippedContribution)), None)
    if clipped is None:
        return n.holds(b.release.exact, n.Truncate)
    if b.release.selector is not None:
        return True  # which keys are shown rests on that limit
    # Limits that are chosen take the place of that one, unless rows were limited further in.
    each = clipped.contributions.each
    return not b.release.tallied or each is None or n.holds(each, n.Truncate)


def below_and_above(release: MeasuredAggregate, column: str) -> Span:
    """Give how far what was left out may lead from a measure to the true one, where nothing bounds it."""
    call = next(c for c in release.exact.aggregations if c.name == column)
    return (0.0 if never_negative(call) else -math.inf), math.inf


End = float | str


@frozen
class ClampedRange:
    """What values are moved into, or kept to, in a number of a release; without ends it is the declared values."""

    words: str
    low: End | None = None
    high: End | None = None


def ranges_used(release: MeasuredAggregate) -> list[ClampedRange]:
    """Give the numbers of which some values may lie outside of what only a declaration speaks for."""
    descriptions = {
        call.name: m.words
        for m, call in zip(release.measures, release.exact.aggregations, strict=True)
    }
    # Nobody's values are thought to lie outside of a range that is there for the sake of machines only.
    wide = {m.words for m in release.measures if m.wide}
    clamps = _clamped(release.exact, descriptions)
    clamps = [x for x in clamps if x.words not in wide]
    for ranked in release.ranked:
        clamps += _clamped(ranked.cells, {key.name: ranked.words for key in ranked.cells.keys})
        if isinstance(ranked.grid, Candidates) and ranked.grid.values != (False, True):
            clamps.append(ClampedRange(ranked.words))
    return list(dict.fromkeys(clamps))


def _clamped(over: n.Aggregate, descriptions: Mapping[str, str]) -> list[ClampedRange]:
    """Look through all that an aggregate and those below it count, add up or rank."""
    items = {
        i.name: i.expression
        for node in n.walk(over)
        if isinstance(node, n.Project)
        for i in node.items
    }
    clamps = []
    for node in n.walk(over):
        if not isinstance(node, n.Aggregate):
            continue
        read = [(x.name, x.expression) for x in node.keys]
        read += [(x.name, x.argument) for x in node.aggregations if x.argument is not None]
        for name, scalar in read:
            for clamp in n.walk(scalar):
                ends = _ends_of(clamp) if isinstance(clamp, n.Clamp) else None
                if ends is None or not isinstance(clamp, n.Clamp):
                    continue
                # Only the innermost clamp stands on values of the data; the others limit what is made of them.
                if any(isinstance(x, n.Clamp) for x in n.walk(clamp.operand)):
                    continue
                columns = columns_of(clamp.operand)
                plain = [items.get(c) for c in columns]
                if not all(x is not None and _inside(x, ends) for x in plain):
                    inner = f"inner sum of {', '.join(columns)}"
                    clamps.append(
                        ClampedRange(
                            descriptions.get(name, inner), _shown(ends[0]), _shown(ends[1])
                        )
                    )
    return clamps


def stays_open(job: ReleasePlan) -> list[str]:
    """Say which ends stay open although they were asked for: no limit that the owner declared closes them."""
    found = {
        f"an end of the {m.words} stays open: declare limits in protections.{c.protection}"
        for b in job.prepared.bounded
        for c in b.certificates
        for m in b.release.measures
        if isinstance(x := c.bounds.get(m.column), ClippedContribution) and x.cap is None
    }
    return sorted(found) if job.certain else []


def nobodys_rows(b: CertifiedRelease) -> bool:
    """Whether rows without a unit would be left out: where their owner is looked up, or a limit may cut single rows."""
    looked_up = f"{b.release.name}.owner"
    if any(
        isinstance(x, n.Scan) and x.alias.startswith(looked_up) for x in n.walk(b.release.exact)
    ):
        return True
    bounds = [x for c in b.certificates for x in c.bounds.values()]
    return any(isinstance(x, ClippedContribution) and not x.nobodys for x in bounds)


def _ends_of(clamp: n.Clamp) -> tuple[object, object] | None:
    low, high = (
        end.value if isinstance(end, n.Literal) and as_number(end.value) is not None else None
        for end in (clamp.low, clamp.high)
    )
    return None if low is None or high is None else (low, high)


def _shown(end: object) -> End:
    return end.isoformat() if isinstance(end, datetime.date) else float(str(end))


def _inside(scalar: n.Scalar, ends: tuple[object, object]) -> bool:
    """Whether a value lies in a range whatever the data are."""
    interval = Ranges(NOTHING_DECLARED).of(scalar)
    if not interval.bounded:
        return False
    low, high = map(as_number, ends)
    assert low is not None, "checked where ends are read"
    assert high is not None, "checked where ends are read"
    least, most = interval.ends()
    return low <= least and most <= high
