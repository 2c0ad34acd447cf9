"""The multiplicity analysis: a smooth bound for joins with any condition, pattern by pattern.

In: a release and a `rows` protection. Out: a certificate whose bounds are one survey, or a refusal. What the survey
reads is counted by the engine and stays private; nothing here sees it before the survey is called with it.
"""

from __future__ import annotations

from functools import partial

from secant.numeric.arrays import installed
from secant.plan import nodes as n
from secant.plan.facts.conjunctive import Conjunctive, NotConjunctive, conjunctive
from secant.plan.facts.reads import reads
from secant.plan.rewrites.enforce import MeasuredAggregate
from secant.plan.typing import fields_of
from secant.sensitivity.certificate import CannotBound, Certificate, Refusal, Step, Survey
from secant.sensitivity.interface import Request
from secant.sensitivity.multiplicity.copies import Copy, Layout, Planner, keys_over, over_atoms
from secant.sensitivity.multiplicity.reading import rows_that_differ
from secant.sensitivity.surveying import (
    Counted,
    Rules,
    require_listed_keys,
    surveyed,
    unknown_groups,
)

MOST_ATOMS = 12
"""Copies in one query. Doubles hold products of that many counts, and statements grow with their square."""


class MultiplicityAnalysis:
    """Smooth bounds for COUNT, COUNT DISTINCT and SUM over joins with any condition, under `rows`."""

    name = "multiplicity"
    kinds: tuple[str, ...] = ("rows",)

    def bound(self, request: Request) -> Certificate | Refusal:
        """Bound every measure of the release, or say what stands in the way."""
        return surveyed(self.name, request, _count, RULES)


RULES = Rules(
    "multiplicity.kind", "multiplicity.rank", "multiplicity.public", "multiplicity.measures"
)


def _count(request: Request) -> Counted | None:
    release = request.release
    query = _query(request)
    if not any(atom.varying for atom in query.atoms):
        return None
    if not installed():
        raise CannotBound(
            "multiplicity.missing",
            release.exact,
            "numpy is not installed",
            "install secant[numeric]",
        )
    keys = over_atoms(query, release.exact.keys)
    layout = Planner(query, keys, request.facts.keys, f"{release.name}_m").layout()
    groups = _groups(release, query, keys)
    rows = partial(rows_that_differ, layout)
    survey = Survey(MultiplicityAnalysis.name, layout.statements, layout.keyed, rows)
    change = f"{groups} group{'' if groups == 1 else 's'} move with one row"
    step = (
        Step("multiplicity.groups", "what one row's group follows from", change) if keys else None
    )
    return Counted(survey, groups, _smoothing(query, layout), step, layout.claims)


def _query(request: Request) -> Conjunctive:
    """Take the release apart, or say why that cannot be done (multiplicity.shape)."""
    exact = request.release.exact
    query = conjunctive(exact.input, request.covered.__contains__)
    if isinstance(query, NotConjunctive):
        raise CannotBound("multiplicity.shape", query.node, query.reason, query.hint)
    for part in (*exact.keys, *exact.aggregations):
        if reads(part, request.covered.__contains__):
            raise CannotBound(
                "multiplicity.shape",
                part,
                "a subquery looks at protected rows",
                "join the table instead, or protect units rather than rows",
            )
    for atom in query.atoms:
        if atom.varying and any(_merges_reals(node) for node in n.walk(atom.relation)):
            raise CannotBound(
                "multiplicity.shape",
                atom.relation,
                "DISTINCT over real numbers does not say which of 0.0 and -0.0 it keeps",
                "round the column, or count distinct values instead",
            )
    if len(query.atoms) > MOST_ATOMS:
        raise CannotBound(
            "multiplicity.shape",
            exact,
            f"more than {MOST_ATOMS} tables are joined",
            "join fewer copies, or protect a unit that owns the rows",
        )
    return query


def _merges_reals(node: n.Node) -> bool:
    return isinstance(node, n.Distinct) and any(f.type.kind == "DOUBLE" for f in fields_of(node))


# ── groups ───────────────────────────────────────────────────────────────────────────────────────


def _groups(release: MeasuredAggregate, query: Conjunctive, keys: tuple[n.Scalar, ...]) -> int:
    """Bound the groups whose measure or whose noise moves with one row (multiplicity.groups)."""
    if not keys:
        return 1
    require_listed_keys(release, rule="multiplicity.groups")
    listed = release.listed_groups
    ways: dict[str, set[tuple[object, ...]]] = {}
    for index, atom in enumerate(query.atoms):
        if not atom.varying:
            continue
        ways_over = keys_over(query, keys, frozenset((index,)))
        if ways_over is None:
            if listed is None:
                raise unknown_groups(release, rule="multiplicity.groups")
            return max(1, listed)
        # A formula counts as another way in every copy; a column is the same in all of them.
        way = tuple(
            atom.origin.get(key.name, index) if isinstance(key, n.Column) else index
            for key in ways_over
        )
        ways.setdefault(atom.table or "", set()).add(way)
    changed = max(len(group_ways) for group_ways in ways.values())
    return max(1, changed if listed is None else min(changed, listed))


# ── words ────────────────────────────────────────────────────────────────────────────────────────


def _smoothing(query: Conjunctive, layout: Layout) -> Step:
    """Tell what is counted, copy by copy."""
    copies = tuple(_pattern_step(query, copy) for copy in layout.copies)
    merged = len({c.table for c in layout.copies}) < len(layout.copies)
    description = "the largest over all rows that a table could hold, discounted by exp(-beta k), over all k >= 0"
    tables = "copies of a table are summed pattern by pattern" if merged else "the worst table"
    smooth = Step("multiplicity.fill", tables, description, copies)
    if merged:
        smooth = Step(
            "multiplicity.merge", "patterns of all copies", "sums where patterns meet", (smooth,)
        )
    if layout.claims:
        tables_with_keys = ", ".join(sorted(c.table for c in layout.claims))
        smooth = Step(
            "multiplicity.keyed", f"keys of {tables_with_keys}", "met at most once", (smooth,)
        )
    return smooth


def _pattern_step(query: Conjunctive, copy: Copy) -> Step:
    others = [f.slot for p in (copy.patterned, *copy.whole) if p for f in p.factors]
    growing = sum(slot is not None for slot in others)
    row = f"a row of {query.atoms[copy.place].name}"
    if copy.patterned is None:
        return Step(
            "multiplicity.copy",
            row,
            f"largest counts of {len(others)} other tables, {growing} grow",
        )
    nested = sorted(label for labels in copy.labels.values() for label in labels)
    value = f"{', '.join(nested)} and *: counts of {len(others)} other tables, {growing} grow"
    return Step("multiplicity.pattern", row, value)
