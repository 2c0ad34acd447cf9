"""Declared facts become operators: clamp to a range, keep listed keys, keep the first rows of a unit (I2).

In: one aggregate over protected rows, and the policy. Out: a Release: an exact aggregate over enforced rows that
computes whole-number measures only, and formulas that turn noisy measures into what the user asked for.
A room bounds exactly this plan, and exactly this plan runs (I1).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction

from secant.plan import nodes as n
from secant.plan.domains import Chosen, Domain, Listed, Open, Stepped, domains_of, region_of
from secant.plan.exact import make_exact
from secant.plan.measures import QUOTIENTS, Measure, Measures, Problem, Stopped
from secant.plan.owners import OwnerColumns, rows_of_unit, unit_column
from secant.plan.ownership import Ownerships, Paths
from secant.plan.ranges import Ranges, ranges_of
from secant.plan.ranked import FUNCTIONS as RANKED_FUNCTIONS
from secant.plan.ranked import Ranked, RankedCalls
from secant.plan.reads import reads
from secant.plan.rewrite import columns_of
from secant.plan.scopes import borrowed, read_columns
from secant.plan.total import group_key, make_total, many_rowed, unguarded
from secant.plan.typing import fields_of, type_of
from secant.plan.verify import verify
from secant.terms import types as t
from secant.terms.catalog import Catalog
from secant.terms.coverage import is_protected
from secant.terms.policy import Policy, Protection


@dataclass(frozen=True, slots=True)
class Steps:
    """What makes an aggregate a stream: which of its keys is the step."""

    key: str
    arrival: str | None = None
    """A column of its rows that says when each came."""


@dataclass(frozen=True, slots=True)
class Release:
    """One aggregate, ready to be bounded and run."""

    name: str
    exact: n.Aggregate
    measures: tuple[Measure, ...]
    domains: tuple[Domain, ...]
    finish: n.Project
    """From released measures to the aggregate that the user wrote."""
    original: n.Aggregate
    notes: tuple[str, ...]
    """What was enforced, in words, for explain."""
    selector: str | None = None
    """The measure by which private keys are chosen: a unit or a row adds at most one to it for each key."""
    ranked: tuple[Ranked, ...] = ()
    """Order statistics, each with the aggregate that counts its cells."""
    together: tuple[frozenset[str], ...] = ()
    """Measures of one average, variance, deviation or quotient: what cuts a unit down in one does in all (U-WEIGHT)."""

    @property
    def aggregates(self) -> tuple[n.Aggregate, ...]:
        """Give everything that is computed for the release: whoever asks what it reads must ask all of them."""
        return (self.exact, *dict.fromkeys(r.cells for r in self.ranked))


def enforce(
    aggregate: n.Aggregate,
    name: str,
    policy: Policy,
    protections: tuple[Protection, ...],
    catalog: Catalog,
    *,
    moving: bool = False,
    stepped: Steps | None = None,
) -> Release | Problem:
    """Turn one aggregate into a release, or say why that cannot be done.

    `moving` says that values move and rows stay under all protections that the aggregate touches: then
    public columns decide which groups there are. `stepped` says which key's values are the steps of a
    stream: the first rows of a unit are then those of the earliest steps (V-FIRST).
    """
    builder = _Builder(aggregate, name, policy, protections, catalog, moving, stepped)
    try:
        return builder.build()
    except Stopped as stopped:
        return stopped.problem


@dataclass
class _Builder:
    aggregate: n.Aggregate
    name: str
    policy: Policy
    protections: tuple[Protection, ...]
    catalog: Catalog
    moving: bool = False
    stepped: Steps | None = None
    notes: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.measured = Measures(self.name, self.moving)
        self.ranked = RankedCalls(self.name)
        self.selector: str | None = None
        # Arguments of their own: a statement carries, and ties among rows are broken by, what it reads.
        self.arguments = Measures(f"{self.name}.rank")

    def build(self) -> Release:
        several = many_rowed(self.aggregate)
        if several is not None:
            raise Stopped(
                Problem(
                    "T-SUBQUERY",
                    several,
                    "the scalar subquery might return several rows, and the error would tell",
                    "aggregate inside the subquery, for example with max()",
                )
            )
        if borrowed(self.aggregate, {})[self.aggregate]:
            raise Stopped(
                Problem(
                    "T-CORRELATED",
                    self.aggregate,
                    "the aggregate is computed anew for each row of an outer query",
                    "aggregate in a subquery of its own, grouped by the outer key, and join it",
                )
            )
        rows = make_total(self.aggregate.input)
        owners = {
            p.name: Ownerships(Paths(self.policy, p)) for p in self.protections if p.kind == "unit"
        }
        columns = OwnerColumns(self.name, self.catalog, self.notes)
        for ownerships in owners.values():
            rows = columns.bring(rows, ownerships)

        def known(relation: n.Relation) -> Ranges:
            return ranges_of(relation, self.policy, lambda r: _rows_per_group(r, owners))

        moving = any(p.kind == "cells" for p in self.protections)
        rows = make_exact(rows, known, None if moving else read_columns(self.aggregate))
        region = region_of(rows)
        ranges = known(rows)
        domains: tuple[Domain, ...]
        if self.moving and self.aggregate.keys:
            domains = (Open(tuple(k.name for k in self.aggregate.keys)),)
        else:
            domains = domains_of(
                self.aggregate.keys, region, ranges, self._public, self.catalog,
                None if self.stepped is None else self.stepped.key,
            )  # fmt: skip
        self._refuse_telling_keys(rows, domains, owners)
        outputs = [self._output(call, ranges) for call in self.aggregate.aggregations]
        self.selector = self._selector(rows, domains, owners)
        if not self.measured.calls and not self.ranked.wanted:
            self.measured.count_rows(
                weight=1.0
            )  # the keys alone were asked for: something must be measured
        self._note_keys(domains)
        enforced = self._rows(rows, owners, self.measured.items, self.notes)
        counted = {i.name: self._rows(rows, owners, [i], []) for i in self.arguments.items}
        risky = [x for r in (enforced, *counted.values()) if (x := unguarded(r)) is not None]
        if risky:
            raise Stopped(
                Problem(
                    "T-SUBQUERY",
                    risky[0],
                    "an expression can fail on a row, and the error would tell",
                    "cast explicitly, or compute the subquery in FROM and join it",
                )
            )
        keys = tuple(
            n.Named(k.name, n.Column(k.name, type_of(k.expression))) for k in self.aggregate.keys
        )
        exact = n.Aggregate(enforced, keys, tuple(self.measured.calls), self.aggregate.span)
        verify(exact)
        ranked = self.ranked.over(counted, keys)
        self.notes += [f"{r.words}: moved to the nearest of {r.grid.count} points" for r in ranked]
        for cells in dict.fromkeys(r.cells for r in ranked):
            verify(cells)
        released = n.Released(
            self.name,
            tuple(n.Field(k.name, type_of(k.expression)) for k in self.aggregate.keys)
            + tuple(n.Field(m.column, m.type) for m in self.measured.measures)
            + tuple(n.Field(r.column, r.type) for r in ranked),
        )
        finish = n.Project(released, (*keys, *outputs))
        return Release(
            self.name,
            exact,
            tuple(self.measured.measures),
            domains,
            finish,
            self.aggregate,
            tuple(self.notes),
            self.selector,
            ranked,
            self._together(outputs),
        )

    def _together(self, outputs: list[n.Named]) -> tuple[frozenset[str], ...]:
        """Give the measures that make up quotients, families that share a measure as one."""
        columns = {m.column for m in self.measured.measures}
        families: list[frozenset[str]] = []
        for call, output in zip(self.aggregate.aggregations, outputs, strict=True):
            if call.function in QUOTIENTS:
                family = columns_of(output.expression) & columns
                apart = [f for f in families if not f & family]
                families = [*apart, family.union(*(f for f in families if f & family))]
        return tuple(f for f in families if len(f) > 1)

    def _output(self, call: n.Aggregation, ranges: Ranges) -> n.Named:
        """Order statistics are drawn from counted cells where rows come and go; all else is measured."""
        if call.function in RANKED_FUNCTIONS and not self.moving:
            return self.ranked.output(call, ranges, self.arguments.argument)
        return self.measured.output(call, ranges)

    def _selector(
        self, rows: n.Relation, domains: tuple[Domain, ...], owners: dict[str, Ownerships]
    ) -> str | None:
        """Count units (or rows) for each key, if keys must be chosen privately."""
        if not any(isinstance(d, Chosen) for d in domains):
            return None
        if len(owners) > 1:
            raise Stopped(
                Problem(
                    "T-KEYS",
                    self.aggregate,
                    "keys can be chosen privately under one unit protection only",
                    "declare the values of the grouped columns",
                )
            )
        kinds = {f.name: f.type for f in fields_of(rows)}
        for ownerships in owners.values():
            column = unit_column(ownerships.of(rows), ownerships)
            if column is not None:
                argument = self.measured.argument(n.Column(column, kinds[column]))
                call = n.Aggregation("", "count", argument, True, self.aggregate.span)
                found = self.measured.measure(call, Fraction(1), t.INTEGER, 0.5, "number of units")
                return found.name
        return self.measured.count_rows(weight=0.5).name

    def _refuse_telling_keys(
        self, rows: n.Relation, domains: tuple[Domain, ...], owners: dict[str, Ownerships]
    ) -> None:
        """A group that belongs to one unit never passes the threshold: the answer would always be empty."""
        chosen = {k for d in domains if isinstance(d, Chosen) for k in d.keys}
        for ownerships in owners.values():
            leading = {x.column for x in ownerships.of(rows).terms}
            for key in self.aggregate.keys:
                if (
                    key.name in chosen
                    and isinstance(key.expression, n.Column)
                    and key.expression.name in leading
                ):
                    raise Stopped(
                        Problem(
                            "T-KEYS",
                            key.expression,
                            f"each value of {_short(key.name)} belongs to one unit, so no group can be shown",
                            _without_names(unit_column(ownerships.of(rows), ownerships)),
                        )
                    )

    # ── rows ─────────────────────────────────────────────────────────────────────────────────────

    def _public(self, relation: n.Relation) -> bool:
        return not reads(relation, lambda t: is_protected(t, self.policy, self.protections))

    def _rows(
        self,
        rows: n.Relation,
        owners: dict[str, Ownerships],
        arguments: list[n.Named],
        notes: list[str],
    ) -> n.Relation:
        """Give the enforced rows with keys and these arguments."""
        keys = tuple(n.Named(k.name, group_key(k.expression)) for k in self.aggregate.keys)
        unit_columns: dict[str, str] = {}
        carried: dict[str, n.Named] = {}
        orders: dict[str, tuple[str, ...]] = {}
        for name, ownerships in owners.items():
            found = ownerships.of(rows)
            unit = unit_column(found, ownerships)
            if unit is not None:
                unit_columns[name] = unit
                kinds = {f.name: f.type for f in fields_of(rows)}
                order = min((sorted(k) for k in found.keys), key=len, default=[])
                orders[name] = tuple(c for c in order if c in kinds)
                for column in (unit, *orders[name], *_came(self.stepped)):
                    carried[column] = n.Named(column, n.Column(column, kinds[column]))
        taken = {k.name for k in keys} | {i.name for i in arguments}
        items = [*keys, *arguments, *(i for c, i in carried.items() if c not in taken)]
        projected: n.Relation = n.Project(rows, tuple(items))
        for protection in self.protections:
            if protection.kind == "unit" and protection.name in unit_columns:
                projected = self._truncated(
                    projected, rows, protection, owners[protection.name], unit_columns[protection.name],
                    orders[protection.name], arguments, notes,
                )  # fmt: skip
        return projected

    def _note_keys(self, domains: tuple[Domain, ...]) -> None:
        """Say where keys come from.

        Rows with other keys are left out of the answer, not of the statement: filtering them early
        costs more than grouping them.
        """
        for domain in domains:
            if isinstance(domain, Listed):
                self.notes.append(
                    f"keys {_short(domain.key)}: {len(domain.values)} from {domain.source}"
                )
                continue
            if isinstance(domain, Stepped):
                self.notes.append(f"keys {_short(domain.key)}: the steps of the stream")
                continue
            names = ", ".join(_short(k) for k in domain.keys)
            if isinstance(domain, Chosen):
                source = "chosen privately with delta"
            elif isinstance(domain, Open):
                source = "as found, public columns decide them"
            else:
                source = f"from {domain.source}"
            self.notes.append(f"keys {names}: {source}")

    def _truncated(
        self,
        projected: n.Relation,
        rows: n.Relation,
        protection: Protection,
        ownerships: Ownerships,
        column: str,
        order: tuple[str, ...],
        arguments: list[n.Named],
        notes: list[str],
    ) -> n.Relation:
        """Keep the first rows (and groups) of each unit."""
        found = ownerships.of(rows)
        if protection.groups is not None and self._needs_groups(arguments):
            groups = tuple(k.name for k in self.aggregate.keys)
            projected = n.TruncateGroups(projected, (column,), groups, protection.groups)
            notes.append(f"first {protection.groups} groups of a unit ({protection.name})")
        if found.guaranteed is not None and (
            found.expected is None or found.guaranteed <= found.expected
        ):
            notes.append(
                f"at most {found.guaranteed} row of a unit by construction ({protection.name})"
            )
            return projected
        if arguments is self.measured.items and self._needs_no_limit(
            protection, found.expected, column
        ):
            notes.append(f"rows of a unit are not limited ({protection.name})")
            return projected
        limit = rows_of_unit(self.aggregate, found, ownerships)
        notes.append(f"at most {limit} rows of a unit count ({protection.name})")
        if self.stepped is not None:
            order = tuple(dict.fromkeys((self.stepped.key, *_came(self.stepped), *order)))
        return n.Truncate(projected, (column,), order, limit)

    def _needs_groups(self, arguments: list[n.Named]) -> bool:
        """Whether a bound speaks of groups: where units are counted in each, or choose which are shown.

        What rows add is bounded by the number of rows, in however many groups they are: leaving groups out of such an
        answer would cut it down and gain nothing.
        """
        if not self.aggregate.keys or arguments is not self.measured.items:
            return False
        return self.selector is not None or any(c.distinct for c in self.measured.calls)

    def _needs_no_limit(self, protection: Protection, expected: int | None, column: str) -> bool:
        """Whether rows need no limit: a unit counts once, or what it adds is cut down to a limit that is chosen."""
        calls = self.measured.calls
        if not calls or sum(p.kind == "unit" for p in self.protections) > 1:
            return False
        units = {
            i.name
            for i in self.measured.items
            if isinstance(i.expression, n.Column) and i.expression.name == column
        }
        once = [
            c
            for c in calls
            if c.distinct and isinstance(c.argument, n.Column) and c.argument.name in units
        ]
        if len(once) == len(calls) and not self.aggregate.keys:
            return True
        adding = [c for c in calls if c.function == "count" or not c.distinct]
        choosing = (
            expected is None
            and protection.truncation != "fixed"
            and len(self.protections) == 1
            and self.selector is None
        )
        return choosing and len(adding) == len(calls)


def _came(steps: Steps | None) -> tuple[str, ...]:
    return () if steps is None or steps.arrival is None else (steps.arrival,)


def _without_names(unit: str | None) -> str:
    """Say what can be asked instead of naming units: values at ranks, how many are above, coarser groups."""
    share = "group by something that many units share"
    if unit is None:
        return share
    who = _short(unit)
    inner = f"(SELECT {who}, sum(...) AS total FROM ... GROUP BY {who})"
    return (
        f"ask without names: SELECT quantile_disc(total, 0.95) FROM {inner}, at ranks that 20/epsilon units or more "
        f"reach, or count(*) of these WHERE total > ...; or {share}"
    )


def _rows_per_group(inner: n.Aggregate, owners: dict[str, Ownerships]) -> int | None:
    """Give what a unit's limit says of a group: nothing of one that rows of many units share."""
    counts = [o.of(inner.input).expected for o in owners.values() if o.of(inner).local]
    known = [c for c in counts if c is not None]
    return min(known) if known else None


def _short(name: str) -> str:
    return name.rsplit(".", 1)[-1]
