"""Declared facts become operators: clamp to a range, keep listed keys, keep the first rows of a unit (I2).

In: one aggregate over protected rows, and the policy. Out: a Release: an exact aggregate over enforced rows that
computes whole-number measures only, and formulas that turn noisy measures into what the user asked for.
An analysis bounds exactly this plan, and exactly this plan runs (I1).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction

from secant.plan import nodes as n
from secant.plan.facts.domains import (
    Chosen,
    Domain,
    Listed,
    Open,
    Region,
    domains_of,
    key_descriptions,
    region_of,
    short_name,
)
from secant.plan.facts.facts import Facts
from secant.plan.facts.ownership import Ownership, Ownerships, Paths
from secant.plan.facts.ranges import Ranges, ranges_of
from secant.plan.facts.reads import reads
from secant.plan.facts.scopes import borrowed_by, read_columns
from secant.plan.facts.undeclared import Undeclared, declared_only, undeclared_of
from secant.plan.rewrites.exact import make_exact
from secant.plan.rewrites.measures import (
    QUOTIENTS,
    Measure,
    Measures,
    Problem,
    Stopped,
    preprocessed_of,
)
from secant.plan.rewrites.null_after_release import scalars_of, single
from secant.plan.rewrites.null_on_error import group_key, make_total, many_rowed, unguarded
from secant.plan.rewrites.order_statistics import FUNCTIONS as RANKED_FUNCTIONS
from secant.plan.rewrites.order_statistics import Ranked, RankedCalls, extreme_of
from secant.plan.rewrites.owners import OwnerColumns, rows_of_unit, unit_column
from secant.plan.rewrites.present import is_truth
from secant.plan.rewrites.rewrite import columns_of
from secant.plan.rewrites.weighed_keys import FEW, MOST, WeighedUnits, weighed_units
from secant.plan.typing import fields_of, type_of
from secant.plan.verify import verify
from secant.plural import first, several
from secant.policy.coverage import is_protected
from secant.policy.policy import Protection
from secant.records import frozen
from secant.schema import types as t

PROPORTIONAL = (*QUOTIENTS, *RANKED_FUNCTIONS)
"""Aggregates that stay what they are if every row counts twice."""


@frozen
class StreamKey:
    """What makes an aggregate a stream: which of its keys is the step."""

    key: str
    arrival: str | None = None
    """A column of its rows that says when each came."""


@frozen
class MeasuredAggregate:
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
    weighed: WeighedUnits | None = None
    """What private keys are chosen by instead, before anything else is read, where a unit may be in many groups."""
    ranked: tuple[Ranked, ...] = ()
    """Order statistics, each with the aggregate that counts its cells."""
    personal: tuple[str, ...] = ()
    """Protections whose units give different amounts."""
    copied: tuple[str, ...] = ()
    """Protections under which a row counts as often as its unit gives the least amount (stability.personal)."""
    scalars: tuple[n.Relation, ...] = ()
    """Public scalar subqueries that may have several rows: held against public data before anything is paid."""
    together: tuple[frozenset[str], ...] = ()
    """Measures of one average, variance, deviation or quotient: what cuts a unit down in one does in all.

    Rests on truncation.weight.
    """
    undeclared: Undeclared = field(default_factory=Undeclared)
    """What it rests on that nobody declared."""
    tallied: bool = False
    """Whether a tally of units may say what limits each: what was found privately limits no sum or count then."""

    @property
    def wide(self) -> frozenset[str]:
        """Name the measures that add up values of which nobody declared a range (rewrite.wide)."""
        return frozenset(m.column for m in self.measures if m.wide)

    @property
    def aggregates(self) -> tuple[n.Aggregate, ...]:
        """Give everything that is computed for the release: whoever asks what it reads must ask all of them."""
        counted = dict.fromkeys(r.cells for r in self.ranked)
        return (self.exact, *counted, *(() if self.weighed is None else (self.weighed.units,)))

    @property
    def chooses_keys(self) -> bool:
        """Say whether its keys are chosen privately."""
        return self.selector is not None or self.weighed is not None

    @property
    def listed_values(self) -> tuple[int | None, ...]:
        """For each key how many values are listed beforehand; None where they are looked up, chosen or found."""
        sizes = {d.key: len(d.values) for d in self.domains if isinstance(d, Listed)}
        return tuple(sizes.get(k.name) for k in self.exact.keys)

    @property
    def listed_groups(self) -> int | None:
        """How many groups are listed beforehand; None if some key is not."""
        sizes = [size for size in self.listed_values if size is not None]
        return math.prod(sizes) if len(sizes) == len(self.exact.keys) else None


def enforce(
    aggregate: n.Aggregate,
    name: str,
    facts: Facts,
    protections: tuple[Protection, ...],
    *,
    moving: bool = False,
    metric: bool = False,
    stepped: StreamKey | None = None,
    tallied: bool = False,
) -> MeasuredAggregate | Problem:
    """Turn one aggregate into a release, or say why that cannot be done.

    `moving` says that values move and rows stay under all protections that the aggregate touches: then
    public columns decide which groups there are. `metric` says that under all of them databases are compared by how far
    values move, also where rows come and go. `stepped` says which key's values are the steps of a
    stream: the first rows of a unit are then those of the earliest steps (stream.first), and groups are known
    beforehand. `tallied` says that a tally of units may limit what each adds to sums and counts: these need no range,
    and no limit of rows, that is not declared (rewrite.wide).
    """
    builder = _Builder(aggregate, name, facts, protections, moving, metric, stepped, tallied)
    try:
        for step in PASSES:
            step(builder)
        return builder.release()
    except Stopped as stopped:
        return stopped.problem


@dataclass
class _Builder:
    """One release while it is built: PASSES in order, each of which leaves its part here."""

    aggregate: n.Aggregate
    name: str
    facts: Facts
    protections: tuple[Protection, ...]
    moving: bool = False
    metric: bool = False
    stepped: StreamKey | None = None
    tallied: bool = False
    notes: list[str] = field(default_factory=list)
    scalars: tuple[n.Relation, ...] = ()
    domains: tuple[Domain, ...] = ()
    selector: str | None = None
    weighed: WeighedUnits | None = None
    copies: dict[str, str] = field(default_factory=dict)
    weighted: bool = False
    owners: dict[str, Ownerships] = field(default_factory=dict)
    rows: n.Relation = field(init=False)
    """What is aggregated, before rows of units are limited."""
    region: Region = field(init=False)
    ranges: Ranges = field(init=False)
    outputs: list[n.Named] = field(init=False)
    enforced: n.Relation = field(init=False)
    """The rows that measures are computed over."""
    counted: dict[str, n.Relation] = field(init=False)
    """Argument of an order statistic -> the rows that it counts."""
    extremes: dict[tuple[str, str], n.Relation] = field(init=False)
    """Argument and `min` or `max` -> one row of each unit, with that extreme of its values (rewrite.extreme)."""

    def __post_init__(self) -> None:
        self.measured = Measures(self.name, self.moving, self.metric)
        self.ranked = RankedCalls(self.name)
        # Arguments of their own: a statement carries, and ties among rows are broken by, what it reads.
        self.arguments = Measures(f"{self.name}.rank")

    # ── passes ───────────────────────────────────────────────────────────────────────────────────

    def single_values(self) -> None:
        """Let a public scalar be NULL where it has several rows: nothing fails, whatever the public rows are.

        Where the text would fail for everybody, that is said before anything is paid; where it follows a row, NULL
        stays.
        """
        self.scalars = tuple(
            r
            for r in scalars_of(self.aggregate)
            if self._public(r) and not borrowed_by(r) and not n.holds(r, n.Released)
        )
        alone = single(self.aggregate, self._public)
        assert isinstance(alone, n.Aggregate)
        self.aggregate = alone

    def refuse_failing_subqueries(self) -> None:
        """Refuse protected scalars that may have several rows, and aggregates that follow rows of an outer query."""
        several = many_rowed(self.aggregate)
        if several is not None:
            raise Stopped(
                Problem(
                    "rewrite.subquery",
                    several,
                    "the scalar subquery might return several rows, and the error would tell",
                    "aggregate inside the subquery, for example with max()",
                )
            )
        if borrowed_by(self.aggregate):
            raise Stopped(
                Problem(
                    "rewrite.correlated",
                    self.aggregate,
                    "the aggregate is computed anew for each row of an outer query",
                    "aggregate in a subquery of its own, grouped by the outer key, and join it",
                )
            )

    def total(self) -> None:
        """Let no expression fail on a row."""
        self.rows = make_total(self.aggregate.input)

    def bring_owners(self) -> None:
        """Bring along whose rows they are, and how often they count where units give different amounts."""
        self.owners = {p.name: self.facts.owners(p) for p in self.protections if p.kind == "unit"}
        columns = OwnerColumns(self.name, self.facts.catalog, self.notes)
        for ownerships in self.owners.values():
            self.rows = columns.bring(self.rows, ownerships)
        self._bring_copies(columns)

    def exact_rows(self) -> None:
        """Let rows depend on the database alone."""
        moving = any(p.distance for p in self.protections)
        read = None if moving else read_columns(self.aggregate)
        self.rows = make_exact(self.rows, self._ranges_of, read)

    def settle_ranges(self) -> None:
        """Say which values are possible, and what is joined under which conditions."""
        self.region = region_of(self.rows)
        self.ranges = self._ranges_of(self.rows)
        if self.tallied:
            self.measured.stated = self._stated_ranges()

    def settle_domains(self) -> None:
        """Say where the keys of groups come from."""
        keys = self.aggregate.keys
        if self.moving and keys and self.stepped is None:
            self.domains = (Open(tuple(k.name for k in keys)),)
        else:
            step = None if self.stepped is None else self.stepped.key
            self.domains = self._domains_of(keys, step)
        self._refuse_telling_keys()

    def measure(self) -> None:
        """Make whole-number measures of what is asked for, and formulas that give it back from them."""
        self.outputs = [self._output(call) for call in self.aggregate.aggregations]
        self.weighed = self._weighed()
        self.selector = None if self.weighed is not None else self._selector()
        if not self.measured.calls and not self.ranked.wanted:
            # the keys alone were asked for: something must be measured
            self.measured.count_rows(weight=1.0)
        self.notes += key_descriptions(self.domains)
        self.notes += [
            f"{m.words}: no range is declared, and none is needed: what a unit adds is limited (rewrite.wide)"
            for m in self.measured.measures
            if m.wide
        ]

    def truncate(self) -> None:
        """Keep keys and arguments, and of each unit the first rows."""
        self.enforced = self._limited_rows(self.measured.items, self.notes)
        self.counted = {i.name: self._limited_rows([i], []) for i in self.arguments.items}
        self.extremes = self._extremes()
        rows = (self.enforced, *self.counted.values(), *self.extremes.values())
        risky = next((x for r in rows if (x := unguarded(r)) is not None), None)
        if risky is not None:
            raise Stopped(
                Problem(
                    "rewrite.subquery",
                    risky,
                    "an expression can fail on a row, and the error would tell",
                    "cast explicitly, or compute the subquery in FROM and join it",
                )
            )

    def release(self) -> MeasuredAggregate:
        """Put together what the passes left."""
        fields = tuple(n.Field(k.name, type_of(k.expression)) for k in self.aggregate.keys)
        keys = tuple(n.Named(f.name, n.Column(f.name, f.type)) for f in fields)
        calls, measures = tuple(self.measured.calls), tuple(self.measured.measures)
        exact = n.Aggregate(self.enforced, keys, calls, self.aggregate.span)
        verify(exact)
        ranked = self.ranked.over(self.counted, keys, self.extremes)
        self.notes += [
            f"{r.words}: {'chosen among' if r.fraction is None else 'moved to the nearest of'} "
            f"{r.grid.count} {'values' if r.fraction is None else 'points'}"
            for r in ranked
        ]
        for cells in dict.fromkeys(r.cells for r in ranked):
            verify(cells)
        if self.weighed is not None:
            verify(self.weighed.units)
        drawn = tuple(n.Field(m.column, m.type) for m in measures)
        drawn += tuple(n.Field(r.column, r.type) for r in ranked)
        released = n.Released(self.name, fields + drawn)
        counted = [(r.column, r.cells) for r in ranked]
        return MeasuredAggregate(
            self.name,
            exact,
            measures,
            self.domains,
            n.Project(released, (*keys, *self.outputs)),
            self.aggregate,
            tuple(self.notes),
            self.selector,
            self.weighed,
            ranked,
            personal=tuple(self.copies),
            copied=tuple(self.copies) if self.weighted else (),
            scalars=self.scalars,
            together=self._together(),
            undeclared=undeclared_of(
                exact,
                counted,
                self.facts.policy,
                self.protections,
                frozenset(self.measured.resting),
            ),
            tallied=self.tallied,
        )

    # ── what passes rest on ──────────────────────────────────────────────────────────────────────

    def _public(self, relation: n.Relation) -> bool:
        return not reads(relation, lambda t: is_protected(t, self.facts.policy, self.protections))

    def _ranges_of(self, relation: n.Relation) -> Ranges:
        return ranges_of(relation, self.facts.policy, lambda r: _rows_per_group(r, self.owners))

    def _stated_ranges(self) -> Ranges:
        """Say which values are possible by what is declared, without what was found privately."""
        policy = self.facts.policy
        stated = declared_only(policy)
        found = any(p.found for p in self.protections)
        if stated is policy and not found:
            return self.ranges
        owners = {
            p.name: Ownerships(Paths(policy, p.declared_only()))
            for p in self.protections
            if p.kind == "unit"
        }
        return ranges_of(self.rows, stated, lambda r: _rows_per_group(r, owners))

    def _domains_of(self, keys: tuple[n.Named, ...], step: str | None = None) -> tuple[Domain, ...]:
        catalog = self.facts.catalog
        return domains_of(keys, self.region, self.ranges, self._public, catalog, step)

    def _listed(self, scalar: n.Scalar) -> tuple[object, ...] | None:
        """Give the values that an expression may have, where they are listed beforehand."""
        (domain,) = self._domains_of((n.Named(f"{self.name}.candidate", scalar),))
        values = domain.values if isinstance(domain, Listed) else None
        return None if values is None else tuple(v for v in values if v is not None)

    def _bring_copies(self, columns: OwnerColumns) -> None:
        """Bring along how often the rows of each unit are to be counted, where units give different amounts."""
        for protection in self.protections:
            if protection.personal is None:
                continue
            offers, ownerships = protection.personal, self.owners[protection.name]
            if not ownerships.of(self.rows).touched:
                continue
            unit = unit_column(ownerships.of(self.rows), ownerships)
            if unit is None or self.copies or self.stepped is not None:
                raise Stopped(
                    Problem(
                        "rewrite.personal",
                        self.aggregate,
                        "units give different amounts of epsilon, and these rows do not belong to single units",
                        "ask about rows that belong to one unit each, and not as a stream",
                    )
                )
            functions = {call.function in PROPORTIONAL for call in self.aggregate.aggregations}
            if len(functions) > 1:
                raise Stopped(
                    Problem(
                        "rewrite.personal",
                        self.aggregate,
                        "units weigh by the epsilon that they give in averages and ranks, and not in counts and sums",
                        "ask for counts and sums in one question, for averages and ranks in another",
                    )
                )
            self.weighted = functions == {True}
            assert protection.unit is not None
            self.rows, self.copies[protection.name] = columns.with_copies(
                self.rows, unit, protection.unit, offers
            )

    def _copied(
        self, rows: n.Relation, protection: Protection, unit: str, limit: int
    ) -> n.Relation:
        """Count each row as often as its unit gives the least amount; the limit is what that comes to at most."""
        assert protection.personal is not None
        most = protection.personal.copies[-1]
        copies = n.Column(self.copies[protection.name], t.INTEGER)
        number = n.Field(f"{self.name}.copy", t.INTEGER)
        numbers = n.Values((number,), tuple((i,) for i in range(1, most + 1)))
        condition = n.Compare("<=", n.Column(number.name, t.INTEGER), copies)
        columns = tuple(n.Named(f.name, n.Column(f.name, f.type)) for f in fields_of(rows))
        copied = n.Project(n.Join("inner", rows, numbers, condition), columns)
        self.notes.append(f"a row counts up to {most} times, as its unit gives ({protection.name})")
        return n.Truncate(copied, (unit,), (), limit * most)

    def _together(self) -> tuple[frozenset[str], ...]:
        """Give the measures that make up quotients, families that share a measure as one."""
        columns = {m.column for m in self.measured.measures}
        families: list[frozenset[str]] = []
        for call, output in zip(self.aggregate.aggregations, self.outputs, strict=True):
            if call.function in QUOTIENTS:
                family = columns_of(output.expression) & columns
                apart = [f for f in families if not f & family]
                families = [*apart, family.union(*(f for f in families if f & family))]
        return tuple(f for f in families if len(f) > 1)

    def _output(self, call: n.Aggregation) -> n.Named:
        """Order statistics are drawn from counted cells where rows come and go; all else is measured."""
        ranges = self.ranges
        statistic = None if self.moving else preprocessed_of(call, ranges)
        if statistic is not None:
            output = self.measured.statistic(call, statistic)
            description = next(
                m.words for m in self.measured.measures if m.preprocessed == statistic
            )
            moves = f"made to move by at most {float(statistic.moves):g} for one row"
            self.notes.append(f"{description}: {moves}")
            return output
        measured = self.moving or (self.metric and call.function in ("min", "max"))
        if call.function in RANKED_FUNCTIONS and not measured and not is_truth(call):
            return self.ranked.output(call, ranges, self.arguments.argument, self._listed)
        return self.measured.output(call, ranges)

    def _weighed(self) -> WeighedUnits | None:
        """Weigh units by their keys, where keys must be chosen privately and a unit may have many (truncation.keys).

        Keys alone are chosen by a count of units: something must be measured. Where a unit has few rows or groups, or
        what noise will be must be known beforehand, the count of units is a number of the answer, or as good as one.
        """
        if not any(isinstance(d, Chosen) for d in self.domains):
            return None
        if len(self.protections) != 1 or len(self.owners) != 1 or self.stepped is not None:
            return None
        (protection,), (ownerships,) = self.protections, self.owners.values()
        ownership = ownerships.of(self.rows)
        unit = unit_column(ownership, ownerships)
        if unit is None or not ownership.local or protection.personal is not None:
            return None
        if protection.truncation not in ("auto", "chosen") or not self.aggregate.aggregations:
            return None
        # A limit that was found privately is not one that units keep to.
        expected = None if protection.found else ownership.expected
        limits = (protection.groups, expected, ownership.guaranteed)
        fewest = min((x for x in limits if x is not None), default=MOST)
        if fewest <= FEW:
            return None
        keys = tuple(n.Named(k.name, group_key(k.expression)) for k in self.aggregate.keys)
        most = min(MOST, MOST if protection.groups is None else protection.groups)
        return weighed_units(self.rows, keys, unit, f"{self.name}.keys", most)

    def _selector(self) -> str | None:
        """Count units (or rows) for each key, if keys must be chosen privately."""
        if not any(isinstance(d, Chosen) for d in self.domains):
            return None
        if len(self.owners) > 1:
            raise Stopped(
                Problem(
                    "rewrite.keys",
                    self.aggregate,
                    "keys can be chosen privately under one unit protection only",
                    "declare the values of the grouped columns",
                )
            )
        kinds = {f.name: f.type for f in fields_of(self.rows)}
        for ownerships in self.owners.values():
            column = unit_column(ownerships.of(self.rows), ownerships)
            if column is not None:
                argument = self.measured.argument(n.Column(column, kinds[column]))
                call = n.Aggregation("", "count", argument, True, self.aggregate.span)
                units = self.measured.measure(call, Fraction(1), t.INTEGER, 0.5, "number of units")
                return units.name
        return self.measured.count_rows(weight=0.5).name

    def _refuse_telling_keys(self) -> None:
        """A group that belongs to one unit never passes the threshold: the answer would always be empty."""
        chosen = {k for d in self.domains if isinstance(d, Chosen) for k in d.keys}
        for ownerships in self.owners.values():
            leading = {x.column for x in ownerships.of(self.rows).terms}
            for key in self.aggregate.keys:
                if (
                    key.name in chosen
                    and isinstance(key.expression, n.Column)
                    and key.expression.name in leading
                ):
                    raise Stopped(
                        Problem(
                            "rewrite.keys",
                            key.expression,
                            f"each value of {short_name(key.name)} belongs to one unit, so no group can be shown",
                            _without_names(unit_column(ownerships.of(self.rows), ownerships)),
                        )
                    )

    # ── rows ─────────────────────────────────────────────────────────────────────────────────────

    def _limited_rows(self, arguments: list[n.Named], notes: list[str]) -> n.Relation:
        """Give the enforced rows with keys and these arguments."""
        keys = tuple(n.Named(k.name, group_key(k.expression)) for k in self.aggregate.keys)
        unit_columns: dict[str, str] = {}
        carried: dict[str, n.Named] = {}
        orders: dict[str, tuple[str, ...]] = {}
        for name, ownerships in self.owners.items():
            ownership = ownerships.of(self.rows)
            unit = unit_column(ownership, ownerships)
            if unit is not None:
                unit_columns[name] = unit
                kinds = {f.name: f.type for f in fields_of(self.rows)}
                order = min((sorted(k) for k in ownership.keys), key=len, default=[])
                orders[name] = tuple(c for c in order if c in kinds)
                own = (self.copies[name],) if name in self.copies else ()
                for column in (unit, *orders[name], *_came(self.stepped), *own):
                    carried[column] = n.Named(column, n.Column(column, kinds[column]))
        names = {k.name for k in keys} | {i.name for i in arguments}
        items = [*keys, *arguments, *(i for c, i in carried.items() if c not in names)]
        projected: n.Relation = n.Project(self.rows, tuple(items))
        for protection in self.protections:
            if protection.kind == "unit" and protection.name in unit_columns:
                projected = self._truncated(
                    projected, protection, unit_columns[protection.name], orders[protection.name],
                    arguments, notes,
                )  # fmt: skip
                if self.weighted and protection.name in self.copies:
                    most = self.owners[protection.name].of(projected).guaranteed
                    assert most is not None, "rows of a unit were limited"
                    projected = self._copied(
                        projected, protection, unit_columns[protection.name], most
                    )
        return projected

    def _extremes(self) -> dict[tuple[str, str], n.Relation]:
        """Give one row of each unit, with its own extreme: the extreme of these is that of all rows.

        Rests on rewrite.extreme. With keys a unit has as many rows as groups, which no limit of rows makes fewer.
        """
        if self.aggregate.keys or self.stepped is not None or self.copies:
            return {}
        if len(self.protections) != 1 or len(self.owners) != 1:
            return {}
        (ownerships,) = self.owners.values()
        ownership = ownerships.of(self.rows)
        unit = unit_column(ownership, ownerships)
        if unit is None or not ownership.local or ownership.guaranteed == 1:
            return {}
        kinds = {f.name: f.type for f in fields_of(self.rows)}
        owner = n.Named(unit, n.Column(unit, kinds[unit]))
        found: dict[tuple[str, str], n.Relation] = {}
        for item in self.arguments.items:
            if item.name == unit:
                continue
            value = n.Column(item.name, type_of(item.expression))
            rows = n.Project(self.rows, (item, owner))
            for function in self.ranked.extremes_of(item.name):
                extreme = n.Aggregation(extreme_of(item.name), function, value)
                found[item.name, function] = n.Aggregate(rows, (owner,), (extreme,))
        return found

    def _truncated(
        self,
        projected: n.Relation,
        protection: Protection,
        column: str,
        order: tuple[str, ...],
        arguments: list[n.Named],
        notes: list[str],
    ) -> n.Relation:
        """Keep the first rows (and groups) of each unit."""
        ownerships = self.owners[protection.name]
        ownership = ownerships.of(self.rows)
        if protection.groups is not None and self._needs_groups(arguments):
            groups = tuple(k.name for k in self.aggregate.keys)
            projected = n.TruncateGroups(projected, (column,), groups, protection.groups)
            notes.append(f"{first(protection.groups, 'group')} of a unit ({protection.name})")
        if ownership.guaranteed is not None and (
            ownership.expected is None or ownership.guaranteed <= ownership.expected
        ):
            notes.append(
                f"at most {ownership.guaranteed} row of a unit by construction ({protection.name})"
            )
            return projected
        expected = ownership.expected
        if self.tallied and protection.found:
            declared = Ownerships(Paths(self.facts.policy, protection.declared_only()))
            expected = declared.of(self.rows).expected
        if arguments is self.measured.items and self._needs_no_limit(protection, expected, column):
            notes.append(f"rows of a unit are not limited ({protection.name})")
            return projected
        ranked = arguments is not self.measured.items or not self.measured.calls
        if ranked and self._weighs(protection, ownership):
            notes.append(f"rows weigh less the more of them a unit has ({protection.name})")
            return projected
        limit = rows_of_unit(self.aggregate, ownership, ownerships)
        notes.append(
            f"at most {several(limit, 'row')} of a unit {'counts' if limit == 1 else 'count'} ({protection.name})"
        )
        if self.stepped is not None:
            order = tuple(dict.fromkeys((self.stepped.key, *_came(self.stepped), *order)))
        return n.Truncate(projected, (column,), order, limit)

    def _weighs(self, protection: Protection, ownership: Ownership) -> bool:
        """Whether ranked rows need no limit: what all rows of a unit weigh is cut down (truncation.weights)."""
        return (
            ownership.expected is None
            and ownership.local
            and protection.personal is None
            and protection.truncation != "fixed"
            and len(self.protections) == 1
            and self.stepped is None
        )

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
        if len(once) == len(calls) and not self.aggregate.keys and not self.ranked.wanted:
            return True
        adding = [
            c for c in calls if c.function == "count" or (c.function == "sum" and not c.distinct)
        ]
        choosing = (
            expected is None
            and protection.personal is None
            and protection.truncation != "fixed"
            and len(self.protections) == 1
            and self.selector is None
        )
        return choosing and len(adding) == len(calls)


def _came(steps: StreamKey | None) -> tuple[str, ...]:
    return () if steps is None or steps.arrival is None else (steps.arrival,)


def _without_names(unit: str | None) -> str:
    """Say what can be asked instead of naming units: values at ranks, how many are above, coarser groups."""
    share = "group by something that many units share"
    if unit is None:
        return share
    who = short_name(unit)
    inner = f"(SELECT {who}, sum(...) AS total FROM ... GROUP BY {who})"
    return (
        f"ask without names: SELECT quantile_disc(total, 0.95) FROM {inner}, at ranks that 20/epsilon units or more "
        f"reach, or count(*) of these WHERE total > ...; or {share}"
    )


def _rows_per_group(inner: n.Aggregate, owners: dict[str, Ownerships]) -> int | None:
    """Give what a unit's limit says of a group: nothing of one that rows of many units share."""
    counts = [o.of(inner.input).expected for o in owners.values() if o.of(inner).local]
    limits = [c for c in counts if c is not None]
    return min(limits) if limits else None


PASSES: tuple[Callable[[_Builder], None], ...] = (
    _Builder.single_values,
    _Builder.refuse_failing_subqueries,
    _Builder.total,
    _Builder.bring_owners,
    _Builder.exact_rows,
    _Builder.settle_ranges,
    _Builder.settle_domains,
    _Builder.measure,
    _Builder.truncate,
)
"""What makes a release of an aggregate, in this order; `sensitivity.enforce` softens it before where values move."""
