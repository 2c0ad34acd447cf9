"""One branch of a release's rows: how fast a measure moves with the rows of each scan in it.

In: rows of a release, the space they move in. Out: for each measure its summand, caps, floors and, for every beta, the
motions that a statement computes. Keys and fans that this rests on are claimed. Never here: how branches and scans are
put together, which is the analysis's.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from fractions import Fraction

from secant.numeric import interval as iv
from secant.numeric.quick import quick, ratio
from secant.plan import nodes as n
from secant.plan.evaluate.evaluate import evaluate
from secant.plan.facts.lineage import stored_column
from secant.plan.facts.ranges import declared
from secant.plan.facts.reads import scans
from secant.plan.rewrites.measures import Measure
from secant.plan.rewrites.rewrite import columns_of as columns_in
from secant.plan.rewrites.rewrite import substitute
from secant.plan.show import show_scalar
from secant.policy.keys import Key as TableKey
from secant.policy.norms import CombinedNorm, columns_of, dual_power
from secant.records import frozen
from secant.sensitivity.certificate import CannotBound
from secant.sensitivity.derivative import shapes
from secant.sensitivity.derivative.calculus import (
    HIGHEST_FLOOR,
    LOWEST_FLOOR,
    Bound,
    Calculus,
    magnitudes_of_caps,
)
from secant.sensitivity.derivative.columns import column_above
from secant.sensitivity.derivative.derivation import columns_named
from secant.sensitivity.derivative.floats import FloatErrors
from secant.sensitivity.derivative.lookups import Fan, Gathering, lookups_of
from secant.sensitivity.derivative.soften import sets
from secant.sensitivity.derivative.soften.emptiness import moves
from secant.sensitivity.derivative.soften.listed import rows_moving_together
from secant.sensitivity.derivative.soften.stripped import strip
from secant.sensitivity.derivative.soften.tuning import spread_points
from secant.sensitivity.derivative.space import HIGHEST_POWER, Key, Space, Variable
from secant.sensitivity.derivative.statement import Motion
from secant.sensitivity.derivative.summand import (
    all_of,
    factors,
    floor_of,
    is_ramp,
    is_steep,
    limits_declared,
    share_above,
)
from secant.sensitivity.interface import Request

SELECTIVE = 0.6
NO_FLOOR = ratio(1, 2**60)
"""Where a limit was not declared: its cap says nothing about how a value really moves."""
TOLERATED = ratio(1, 2**20)
MOST_ROWS = 2**32
"""Joined rows of one release, at most: each is rounded to the grid once (derivative.grid)."""


@frozen
class Moving:
    """How a measure moves with the rows of one branch."""

    branch: Branch
    value: n.Scalar
    """What one joined row adds, before it is rounded to whole steps."""
    factor: Fraction
    """Whole steps in a unit of it."""
    calculus: Calculus
    probe: Bound
    caps: Mapping[str, Fraction | None]
    """Scan -> the most that it moves the measure a unit of distance; None if that is not public."""
    each: Mapping[str, Fraction | None]
    """Scan -> the most that the bound of one joined row comes to."""
    several: int
    """Joined rows of one row that move at once, in groups of their own (derivative.listed)."""
    declared: bool
    """Whether every limit in the value was declared."""
    floor: Fraction
    rounding: Fraction
    claims: frozenset[TableKey]


class Branch:
    """What the measures of one release have in common in one branch of its rows: rows, definitions, lookups."""

    def __init__(
        self,
        request: Request,
        space: Space,
        protected: frozenset[str],
        rows: n.Relation,
        number: int,
        *,
        alone: bool,
        counted: bool = False,
    ) -> None:
        self.request, self.space, self.protected = request, space, protected
        self.number, self.alone, self.counted = number, alone, counted
        self.one_group: frozenset[str] = frozenset()
        self.calculus = Calculus(space, quick(1))
        self.floats = FloatErrors(
            self.calculus.protected, self.calculus.moving, self.calculus.ranges
        )
        if not isinstance(rows, n.Project):
            raise CannotBound(
                "derivative.truncate",
                rows,
                "which rows are kept for a unit may depend on protected values",
                "let the owner list the protections as alternatives",
            )
        self.rows = strip(rows, protected)
        if moves(self.rows.relation, protected):
            raise CannotBound(
                "derivative.strip",
                rows,
                "protected values are read that no rule accounts for",
                "report this",
            )
        if self.rows.conditions:
            raise CannotBound(
                "derivative.strip",
                self.rows.conditions[0],
                "a condition on protected values jumps",
                "this is a fault of the softener",
            )
        self._check_keys(request.release.exact.keys)
        lookups = lookups_of(self.rows.relation, request.facts, protected)
        used = {s.alias: s for s in scans(self.rows.relation)}
        self.gatherings = {
            role: lookups.of(used[role], protected) for role in space.roles if role in used
        }
        self.lists = tuple(leaf for leaf in lookups.leaves if isinstance(leaf, n.Values))
        self.beside_lists = {
            role: lookups.of(used[role], protected, self.lists) if self.lists else gathering
            for role, gathering in self.gatherings.items()
        }
        inner = [r for r in space.roles if used.get(r) not in lookups.leaves]
        if any(self._moving_in(r) for r in inner):
            raise CannotBound(
                "derivative.strip", rows, "a protected table stands too deep", "join it directly"
            )

    def _moving_in(self, role: str) -> bool:
        return any(v.role == role for v in self.space.variables.values() if self._read(v))

    def _read(self, variable: Variable) -> bool:
        return any(moves(d, frozenset({variable.name})) for d in self.rows.definitions.values())

    def _check_keys(self, keys: tuple[n.Named, ...]) -> None:
        for key in keys:
            if moves(substitute(key.expression, self.rows.definitions), self.protected):
                raise CannotBound(
                    "derivative.keys",
                    key,
                    "groups by a protected value would show where it lies",
                    "",
                )

    def keys_of(self, scan: n.Scan) -> tuple[str, ...] | None:
        """Write the keys of the release as functions of a scan's stored columns; None if they read anything else."""
        stored: dict[str, n.Scalar] = {
            f.name: n.Column(stored_column(scan, f.name).lower(), f.type) for f in scan.columns
        }
        expressions = [
            substitute(k.expression, self.rows.definitions) for k in self.request.release.exact.keys
        ]
        if any(not columns_in(x) <= stored.keys() or n.has_subquery(x) for x in expressions):
            return None
        return tuple(show_scalar(substitute(x, stored)) for x in expressions)

    def summand(self, measure: Measure, call: n.Aggregation) -> Moving | None:
        """Say how one measure moves with the rows of this branch; None if it does not."""
        argument = (
            None if call.argument is None else substitute(call.argument, self.rows.definitions)
        )
        if argument is None or not moves(argument, self.protected):
            return None
        if call.distinct or call.function not in ("sum", "min", "max", "count"):
            raise CannotBound(
                "derivative.aggregate", call, f"{call.function} jumps", "use sum, min or max"
            )
        if call.function == "count":
            if isinstance(argument, n.Column):
                return None  # whether a cell is empty is public
            raise CannotBound(
                "derivative.aggregate", call, "which values are there may vary", "count rows"
            )
        if self.counted and call.function != "sum":
            raise CannotBound(
                "derivative.sets",
                call,
                f"{call.function} over a set, or over inner sums, has no rule here",
                "count, or sum",
            )
        rounded = isinstance(argument, n.Quantize)  # to whole steps (derivative.grid)
        value = argument.operand if isinstance(argument, n.Quantize) else argument
        factor = quick(1 / measure.step)
        calculus = Calculus(self.space, quick(1), other=self.calculus)
        probe = calculus.of(value)
        roles = [r for r in probe.reach if any(k.role == r for k in probe.slopes)]
        additive = call.function == "sum"
        claims: set[TableKey] = set()
        caps: dict[str, Fraction | None] = {}
        several = 1
        for role in roles:
            gathering = self.gatherings[role]
            groups = self._groups_moved(role, gathering, call, value)
            several = max(several, groups)
            claims |= gathering.claims | (self.beside_lists[role].claims if groups > 1 else set())
            if groups > 1 and gathering.found is not None:
                claims |= gathering.found.claims
            times = groups if groups > 1 else self._joined(role) if additive else 1
            magnitude = probe.reach[role]
            caps[role] = None if times is None or magnitude is None else times * magnitude
        declared = limits_declared(value)
        floor = self._floor(value, caps, calculus) if declared else NO_FLOOR
        rounding = self._rounding(value, factor, roles) if rounded else quick(0)
        if not declared:
            self._check_rounding(value, rounding, factor, calculus)
        # A smooth bound of one joined row may be as large as its terms' caps, which is more than its reach.
        each = magnitudes_of_caps(calculus, probe.slopes)
        return Moving(
            self,
            value,
            factor,
            calculus,
            probe,
            caps,
            {role: each[role] for role in roles},
            several,
            declared,
            floor,
            rounding,
            frozenset(claims),
        )

    def _joined(self, role: str) -> int | None:
        """Give how many joined rows one row stands in at most, where rows are combined by l1; None if unknown."""
        if self._row_power(role) is not None:
            return None
        gathering = self.gatherings[role]
        if gathering.single:
            return 1
        return None if gathering.fans is None else self._product(gathering.fans)

    def _product(self, fans: Iterable[Fan]) -> int | None:
        """Give how many rows lookups find together; None if that is not public."""
        numbers = [self.request.fan(*fan) for fan in fans]
        if None in numbers:
            return None
        # Counted in the session that will answer, which sees one state of the data (derivative.gather).
        return math.prod(max(1, f) for f in numbers if f is not None)

    def _row_power(self, role: str) -> Fraction | None:
        """Dual exponent over the rows of a role's table: None takes the largest row.

        At most 2: high powers leave the floats, and a lower one only makes the bound larger (derivative.reach).
        """
        power = dual_power(self.space.row_powers[self.space.roles[role].table])
        return None if power is None else min(power, HIGHEST_POWER)

    def _groups_moved(
        self, role: str, gathering: Gathering, call: n.Aggregation, value: n.Scalar
    ) -> int:
        """Every protected row must fall into one group, so that groups move apart (derivative.groups): then 1.

        Where a row stands in a known number of joined rows, or groups come from lists of values, it may move a few of
        them, which then share a cap (derivative.listed).
        """
        keys = self.request.release.exact.keys
        if not keys:
            return 1
        table = self.space.roles[role].table
        columns = {
            c
            for k in keys
            for x in [substitute(k.expression, self.rows.definitions)]
            for c in (y.name for y in n.walk(x) if isinstance(y, n.Column))
        }
        apart = gathering.single or columns <= gathering.decided
        plain = self._row_power(role) is None and dual_power(self.space.table_power) is None
        alone = plain and table in self.one_group
        if alone and not apart and self.lists and self.beside_lists[role].single:
            return max(2, rows_moving_together(value, self.lists))
        found = gathering.found if alone and not apart and not self.lists else None
        joined = None if found is None else self._product(found.fans)
        if joined is not None:
            return max(2, joined)
        if not apart or not alone:
            raise CannotBound(
                "derivative.groups",
                call,
                f"one row of {table} may move several groups",
                "group by columns of the protected table, or declare the keys that it is joined by",
            )
        return 1

    def _floor(
        self, value: n.Scalar, caps: Mapping[str, Fraction | None], calculus: Calculus
    ) -> Fraction:
        """Give the part of its peak below which a fading bound need not fall (derivative.floor).

        A value that moves by itself keeps the bound up anyway: half of that costs nothing.
        """
        parts = [p for p in factors(value) if not is_ramp(p)]
        alone = [calculus.of(p).reach for p in parts if self._moves(p)]
        whole = {r: v for r, v in caps.items() if v is not None}
        if len(alone) != 1 or len(whole) < len(caps):
            return LOWEST_FLOOR
        own = {r: v for r, v in alone[0].items() if v is not None}
        cap = self.space.reach(whole)
        if len(own) < len(alone[0]) or cap <= 0:
            return LOWEST_FLOOR
        floor = self.space.reach(own) / cap / 2
        return min(HIGHEST_FLOOR, max(LOWEST_FLOOR, floor))

    def _moves(self, scalar: n.Scalar) -> bool:
        return moves(scalar, self.protected)

    def _near(self, value: n.Scalar, bound: Bound) -> n.Scalar | None:
        """Give a condition that all rows meet whose motion is above its floor; None if there is none such."""
        ramps = [p for p in factors(value) if is_ramp(p)]
        fades = [term.fade for term in bound.slopes.values()]
        if len(ramps) != 1 or not all(f is not None for f in fades):
            return None
        assert isinstance(ramps[0], n.Call)
        far = max(f.far for f in fades if f is not None)
        edge = -(far + 0.5) * (1 + 2**-40)
        margins = [
            (p, share_above(p, edge, self.calculus.ranges)) for p in all_of(ramps[0].arguments[0])
        ]
        telling = [(column_above(p, edge), share) for p, share in margins if share < 0.95]
        plain = [(c, share) for c, share in telling if c is not None]
        if math.prod(share for _, share in plain) > SELECTIVE:
            return None  # looking at the condition would cost more than the rows that it spares
        return n.conjunction(tuple(c for c, _ in plain))

    def motions(
        self,
        measure: Measure,
        call: n.Aggregation,
        value: n.Scalar,
        beta: Fraction,
        floor: Fraction,
        *,
        floored: bool,
    ) -> list[Motion]:
        """Write how the measure moves, as smoothly as beta asks.

        `floored` says that the floor is put under each scan's part afterwards: then what lies below need not
        be computed.
        """
        bound = self._smooth(value, beta, floor)
        near = self._near(value, bound) if call.function == "sum" and floored else None
        if self.request.public_rows or not self.alone:
            near = None  # rows that do not move have no floor, nor have those of other branches
        motions = []
        for role in bound.reach:
            entries = {k: t.expression for k, t in bound.slopes.items() if k.role == role}
            if not entries:
                continue
            all_entries = len(entries)
            if floored:
                entries = self._above_floor(role, entries, bound, floor)
            entries = self._only_protected_rows(role, entries)
            gathering = self.gatherings[role]
            additive = call.function == "sum"
            power = self._row_power(role) if additive else None
            gathered = gathering.keys if additive and not gathering.single else None
            if gathered is not None and power is not None:
                # Gathered rows may be rows of several protected ones. Adding up what each joined row moves is more
                # than any combination of them; a maximum of sums would not be.
                gathered, power = None, quick(1)
            floors = {k: floor_of(bound.slopes[k]) for k in entries} if gathered is not None else {}
            times = self._joined(role) if near is not None and gathered is not None else None
            finite = {k: v for k, v in floors.items() if v is not None}
            whole = gathered is None or (times is not None and len(finite) == len(entries))
            motions.append(
                Motion(
                    measure.column,
                    role,
                    self.space,
                    entries,
                    gathered,
                    power,
                    near if whole else None,
                    times,
                    finite,
                    dropped=len(entries) < all_entries,
                    branch=self.number,
                    keyed=gathered is not None and gathering.keyed,
                )
            )
        return motions

    def _above_floor(
        self, role: str, entries: dict[Key, n.Scalar], bound: Bound, floor: Fraction
    ) -> dict[Key, n.Scalar]:
        """Leave out columns that never move the value by more than the floor does (derivative.floor).

        Under an l1 norm the largest column decides, and the floor is part of the bound in any case.
        """
        norm, whole = self.space.roles[role].norm, bound.reach[role]
        if not isinstance(norm, CombinedNorm) or norm.power != 1 or whole is None:
            return entries
        alone = {c for part in norm.parts if len(c := tuple(columns_of(part))) == 1}
        above = {}
        for key, entry in entries.items():
            cap = bound.slopes[key].cap
            shared = (
                any(k != key and key.column in columns_named(k) for k in entries)
                if isinstance(key, Variable)
                else True
            )
            small = (
                isinstance(key, Variable)
                and (key.column,) in alone
                and not shared
                and cap is not None
                and self.space.dual(role, {key: cap}) <= floor * whole
            )
            if not small:
                above[key] = entry
        return above

    def typical(self, value: n.Scalar, beta: Fraction, floor: Fraction) -> float | None:
        """Say how large the bound is where values lie evenly, for values that may change steeply.

        Rests on derivative.smoothness.

        Only those want a rougher bound than sums do.
        """
        return self.usual(value, beta, floor) if is_steep(value) else None

    def usual(self, value: n.Scalar, beta: Fraction, floor: Fraction) -> float | None:
        """Evaluate the bound of one row at public points, spread over the declared ranges: the median of them."""
        try:
            bound = self._smooth(value, beta, floor)
        except CannotBound:
            return math.inf
        read = [x for t in bound.slopes.values() for x in n.walk(t.expression)]
        columns = {x.name: x for x in read if isinstance(x, n.Column)}
        ranges = [self._declared_range(name) for name in columns]
        rows = spread_points(
            [r for r in ranges if r is not None], [c.type for c in columns.values()]
        ) if None not in ranges else None  # fmt: skip
        if rows is None:
            return None
        fields = tuple(n.Field(name, c.type) for name, c in columns.items())
        items = []
        for role in bound.reach:
            entries = {k: t.expression for k, t in bound.slopes.items() if k.role == role}
            items.append(n.Named(role, self.space.dual_expression(role, entries)))
        sizes = evaluate(n.Project(n.Values(fields, rows), tuple(items)), {})
        totals = sorted(sum(float(x) for x in row if isinstance(x, float)) for row in sizes)
        return totals[len(totals) // 2]

    def _declared_range(self, name: str) -> iv.Interval | None:
        """Give the declared range of a column of any scan; None for what is computed."""
        for scan in scans(self.rows.relation):
            if any(f.name == name for f in scan.columns):
                column = stored_column(scan, name).lower()
                return declared(self.request.policy, scan.table.lower(), column)
        return None

    def _only_protected_rows(self, role: str, entries: dict[Key, n.Scalar]) -> dict[Key, n.Scalar]:
        """Rows that the owner has marked public do not move (derivative.rows)."""
        condition = self.request.public_rows.get(role)
        if condition is None:
            return entries
        zero = shapes.number(0.0)
        return {k: n.Case((n.Branch(condition, zero),), e) for k, e in entries.items()}

    def _smooth(self, value: n.Scalar, beta: Fraction, floor: Fraction) -> Bound:
        """Scale the rate until the bound is beta-smooth (derivative.rates)."""
        rate, before = beta, None
        for _ in range(12):
            calculus = Calculus(self.space, rate, floor, self.calculus)
            bound = calculus.of(value)
            rough = max(
                (self.space.smoothness(t.rates) for t in bound.slopes.values()), default=quick(0)
            )
            if rough <= beta:
                self._check_floats(calculus)
                return bound
            lower = rate * beta / rough
            if before is not None and rough < before[1]:
                # Parts have rates of their own, which no scaling lowers: follow the line through two tries.
                line = rate - (rough - beta) * (before[0] - rate) / (before[1] - rough)
                lower = min(lower, line) if line > 0 else lower
            before = rate, rough
            rate = quick(shapes.float_below(lower * ratio(999_999, 1_000_000)))
        raise CannotBound(
            "derivative.rates",
            value,
            "a part of the value changes faster than the noise can hide at this epsilon",
            "ask with a larger epsilon, or let the owner weigh the logarithm more",
        )

    def _check_rounding(
        self, value: n.Scalar, rounding: Fraction, factor: Fraction, calculus: Calculus
    ) -> None:
        """Refuse where ranges that nobody declared are so wide that rounding would drown the answer."""
        parts = [p for p in factors(value) if not is_ramp(p) and self._moves(p)]
        magnitudes = calculus.of(parts[0] if parts else value).reach
        finite = {r: v for r, v in magnitudes.items() if v is not None}
        if len(finite) < len(magnitudes) or rounding > self.space.reach(finite) * factor:
            raise CannotBound(
                "derivative.range",
                value,
                "without declared ranges the value may be too large to be summed exactly",
                "declare the ranges of its columns",
            )

    def _check_floats(self, calculus: Calculus) -> None:
        """A bound e^(-alpha·x) is as wrong as alpha times the error of x: that must drown in the slack.

        Rests on derivative.floats.
        """
        total = quick(0)
        rates = [(x, calculus.alpha(b) if b.reach else None) for x, b in calculus.known.items()]
        for node, alpha in [*rates, *calculus.coordinates]:
            if alpha is None:
                continue
            assert isinstance(node, n.Scalar)
            error = self.floats.of(node)
            # Twice: a soft step's argument stands in its size and in the lean of its slope.
            total += TOLERATED + 1 if error is None else 2 * alpha * error
            if total > TOLERATED:
                raise CannotBound(
                    "derivative.floats",
                    node,
                    "floats compute a part of the value too roughly",
                    "avoid numbers of very different size, and declare ranges",
                )

    def _rounding(self, value: n.Scalar, factor: Fraction, roles: list[str]) -> Fraction:
        """Give what rounding rows to the grid, and floats, can add up to, in whole steps (derivative.grid)."""
        error = self.floats.of(value)
        if error is None:
            raise CannotBound(
                "derivative.floats",
                value,
                "how exactly floats compute the value is not known",
                "declare the ranges of its columns",
            )
        if self.counted:  # what a row counts in its group was rounded before (derivative.sets)
            most = self.floats.most(value)
            if most is None:
                raise CannotBound(
                    "derivative.range",
                    value,
                    "the size of the value is not known",
                    "declare ranges",
                )
            error += most / sets.FINE
        return self._most_rows(roles) * (1 + error * factor)

    def _most_rows(self, roles: list[str]) -> int:
        """Give the most joined rows there can be: each row of a table stands in one, and their number is public.

        Only the measure's own scans count: the keys that they rest on are checked.
        """
        counts = [
            self.request.count(self.space.roles[role].table)
            for role in roles
            if self.gatherings[role].single
        ]
        finite = [2 * c for c in counts if c is not None]  # twice, should rows be added meanwhile
        return min([MOST_ROWS, *(max(c, 1) for c in finite)])


def tables_in_one_group(branches: Iterable[Branch]) -> frozenset[str]:
    """Give the tables of which every row falls into one group, whichever scan shows it (derivative.groups).

    That is so where one scan reads the table, and where all scans have the same keys, made of its own columns.
    """
    keyed: dict[str, list[tuple[str, ...] | None]] = {}
    for branch in branches:
        for scan in scans(branch.rows.relation):
            if scan.alias in branch.space.roles:
                columns = keyed.setdefault(branch.space.roles[scan.alias].table, [])
                columns.append(branch.keys_of(scan))
    return frozenset(
        table
        for table, keys in keyed.items()
        if len(keys) == 1 or (keys[0] is not None and len(set(keys)) == 1)
    )
