"""Wrong derivative rules, and for each a directed case that notices it.

A fault takes pytest's monkeypatch and breaks one step: a dropped |c|, `min` for `max`, one scan forgotten, rates that
are not added. Most wrap the rule as it stands, so that they stay wrong when it changes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

from secant.plan import nodes as n
from secant.policy import norm_order
from secant.policy.norms import columns_of
from secant.sensitivity.derivative import (
    analysis,
    branch,
    calculus,
    counted,
    function_rules,
    lengths,
    shapes,
    smooth_terms,
    space,
)
from secant.sensitivity.derivative.lookups import Lookups
from secant.sensitivity.derivative.soften import leaning, sets
from secant.sensitivity.derivative.space import Block, Space


@dataclass(frozen=True)
class Planted:
    """A fault in a rule, and the query and the world in which it must be noticed."""

    rule: str
    what: str
    plant: Callable[[Any], None]
    text: str
    norms: Mapping[str, str] | None = None
    rows: Mapping[str, str] | None = None
    tables: str = "l1"
    settings: str = ""
    beta: Fraction = Fraction(1, 5)
    nulls: bool = False
    still: Callable[[str, Any], bool] | None = None
    keys: tuple[str, ...] = field(default=("a", "b", "u"))


def _signed_constants(patch: Any) -> None:
    original = calculus._public

    def public(scalar: n.Scalar, plain: Any) -> calculus.Bound:
        found = original(scalar, plain)
        size = found.size.expression
        if isinstance(size, n.Call) and size.function == "abs":
            return replace(found, sized=replace(found.size, expression=size.arguments[0]))
        return found

    patch.setattr(calculus, "_public", public)


def _smallest_for_largest(patch: Any) -> None:
    original = function_rules.largest

    def smallest(terms: list[smooth_terms.Term]) -> smooth_terms.Term:
        found = original(terms)
        if isinstance(found.expression, n.Call) and found.expression.function == "greatest":
            written = n.Call("least", found.expression.arguments)
            return replace(found, expression=written)
        return found

    patch.setattr(function_rules, "largest", smallest)


def _motions(change: Callable[[list[Any]], list[Any]]) -> Callable[[Any], None]:
    def plant(patch: Any) -> None:
        original = branch.Branch.motions
        patch.setattr(
            branch.Branch,
            "motions",
            lambda self, *given, **named: change(original(self, *given, **named)),
        )

    return plant


def _floor_of_nothing(patch: Any) -> None:
    original = smooth_terms.faded

    def faded(*given: Any) -> smooth_terms.Term:
        found = original(*given)
        assert isinstance(found.expression, n.Case)
        return replace(found, expression=replace(found.expression, default=shapes.number(0.0)))

    patch.setattr(smooth_terms, "faded", faded)
    patch.setattr(function_rules, "faded", faded)


def _narrow_ramp(patch: Any) -> None:
    original = function_rules.fading
    patch.setattr(
        function_rules,
        "fading",
        lambda distance, *rest: original(shapes.plus(distance, shapes.number(0.25)), *rest),
    )


def _divided_blocks(patch: Any) -> None:
    def lowered(original: Callable[..., Any], divide: Callable[[Any, Fraction], Any]) -> Any:
        def dual(norm: Any, gradient: Mapping[Any, Any]) -> Any:
            if isinstance(norm, space.ScaledNorm):
                gradient = {
                    k: divide(v, norm.factor) if isinstance(k, Block) else v
                    for k, v in gradient.items()
                }
            return original(norm, gradient)

        return dual

    patch.setattr(space, "_dual_number", lowered(space._dual_number, lambda v, f: v / f))
    patch.setattr(
        space,
        "_dual_scalar",
        lowered(space._dual_scalar, lambda v, f: shapes.times(float(1 / f), v)),
    )


def _always_single(patch: Any) -> None:
    original = Lookups.of
    patch.setattr(
        Lookups,
        "of",
        lambda self, scan, protected: replace(
            original(self, scan, protected), single=True, keys=()
        ),
    )


def _counted_once(patch: Any) -> None:
    patch.setattr(
        counted._Work, "_parts", lambda self, names: [(name, self.taken[name]) for name in names]
    )


def _largest_scan(patch: Any) -> None:
    original = Space.reach

    def reach(self: Space, by_role: Mapping[str, Fraction]) -> Fraction:
        tables: dict[str, str] = {}
        for role, value in by_role.items():
            table = self.roles[role].table
            if table not in tables or value > by_role[tables[table]]:
                tables[table] = role
        return original(self, {role: by_role[role] for role in tables.values()})

    patch.setattr(Space, "reach", reach)


def _first_table(patch: Any) -> None:
    original = Space.reach

    def reach(self: Space, by_role: Mapping[str, Fraction]) -> Fraction:
        return max((original(self, {role: v}) for role, v in by_role.items()), default=Fraction(0))

    patch.setattr(Space, "reach", reach)


def _halved_slopes(patch: Any) -> None:
    original = calculus.chain

    def chain(work: Any, inner: Any, range_: Any, size: Any, slope: Any) -> Any:
        half = replace(slope, expression=shapes.times(0.5, slope.expression))
        return original(work, inner, range_, size, half)

    patch.setattr(calculus, "chain", chain)
    patch.setattr(function_rules, "chain", chain)


def _slower(found: calculus.Bound) -> calculus.Bound:
    """Give half of what an expression moves."""

    def half(term: smooth_terms.Term) -> smooth_terms.Term:
        cap = None if term.cap is None else term.cap / 2
        return replace(term, expression=shapes.times(0.5, term.expression), cap=cap)

    return replace(
        found,
        slopes={place: half(term) for place, term in found.slopes.items()},
        reach={role: None if most is None else most / 2 for role, most in found.reach.items()},
    )


def _half_as_fast(node: type[n.Scalar]) -> Callable[[Any], None]:
    """Let a rule say that its expressions move half as fast as they do."""

    def plant(patch: Any) -> None:
        right = calculus.CALCULUS._rules[node]
        patch.setitem(calculus.CALCULUS._rules, node, lambda work, x: _slower(right(work, x)))

    return plant


def _size_half_as_fast(patch: Any) -> None:
    rule, right = function_rules._CALLS["abs"]
    wrong = (rule, lambda work, call: _slower(right(work, call)))
    patch.setitem(function_rules._CALLS, "abs", wrong)


def _root_that_moves_as_w(patch: Any) -> None:
    original = shapes.power_slope

    def slope(*given: Any) -> Any:
        found = original(*given)
        return found and replace(found, expression=shapes.times(0.5, found.expression))

    patch.setattr(shapes, "power_slope", slope)


def _roots_forgotten(patch: Any) -> None:
    patch.setattr(space, "measures_of", lambda norm: dict.fromkeys(columns_of(norm), "x"))


def _short_lengths(patch: Any) -> None:
    original = norm_order.ratio

    def factor(*given: Any) -> Any:
        found = original(*given)
        return None if found is None else found / 2

    patch.setattr(lengths.norm_order, "ratio", factor)


def _one_coordinate_of_two(patch: Any) -> None:
    original = lengths._sizes

    def sizes(calculus: Any, scalar: Any) -> Any:
        found = original(calculus, scalar)
        return None if found is None else dict(list(found.items())[:1])

    patch.setattr(lengths, "_sizes", sizes)


def _scales_forgotten(patch: Any) -> None:
    patch.setattr(lengths, "_scaled", lambda calculus, node: lengths._sizes(calculus, node.right))


def _largest_row(patch: Any) -> None:
    patch.setattr(branch.Branch, "_row_power", lambda self, role: None)


def _hidden_rows(patch: Any) -> None:
    original = branch.Branch._only_protected_rows

    def wrong(self: Any, role: str, entries: Any) -> Any:
        found = original(self, role, entries)
        if found is entries:
            return entries
        zero = shapes.number(0.0)
        return {
            k: n.Case(tuple(replace(b, value=e.default) for b in e.branches), zero)
            if isinstance(e, n.Case)
            else e
            for k, e in found.items()
        }

    patch.setattr(branch.Branch, "_only_protected_rows", wrong)


def _no_floors(patch: Any) -> None:
    original = analysis._Reader.curve

    def curve(self: Any, *given: Any) -> Any:
        found = original(self, *given)
        return None if found is None else (replace(found[0], floors={}), *found[1:])

    patch.setattr(analysis._Reader, "curve", curve)


def _groups_apart(patch: Any) -> None:
    patch.setattr(branch.Branch, "_groups_moved", lambda *given: 1)


def _first_branch(patch: Any) -> None:
    original = branch.Branch.motions
    patch.setattr(
        branch.Branch,
        "motions",
        lambda self, *given, **named: [] if self.number else original(self, *given, **named),
    )


def _branches_of_one_table_apart(patch: Any) -> None:
    original = analysis.tables_in_one_group

    def every(branches: Any) -> frozenset[str]:
        return frozenset(r.table for b in branches for r in b.space.roles.values()) | original(
            branches
        )

    patch.setattr(analysis, "tables_in_one_group", every)


def _left_side_only(patch: Any) -> None:
    original = sets._slopes

    def slopes(*given: Any) -> Any:
        return {call: s for call, s in original(*given).items() if ".right." not in call}

    patch.setattr(sets, "_slopes", slopes)


def _sharp_corners(patch: Any) -> None:
    original = leaning._rounded

    def rounded(work: Any, lean: Any) -> Any:
        found = original(work, lean)
        return None if found is None else replace(found, expression=shapes.call("abs", lean.slope))

    patch.setattr(leaning, "_rounded", rounded)


def _no_spread(patch: Any) -> None:
    original = leaning._added

    def added(*given: Any) -> Any:
        found = original(*given)
        leans = {
            v: replace(x, turns={k: t / 50 for k, t in x.turns.items()})
            for v, x in found.leans.items()
        }
        return replace(found, leans=leans)

    patch.setattr(leaning, "_added", added)


def _half_of_either(patch: Any) -> None:
    original = calculus._either

    def either(*given: Any) -> Any:
        found = original(*given)
        if found is None:
            return None
        half = {
            k: replace(x, expression=shapes.times(0.4, x.expression))
            for k, x in found.slopes.items()
        }
        return replace(found, slopes=half)

    patch.setattr(calculus, "_either", either)


def _listed_groups_apart(patch: Any) -> None:
    original = branch.Branch._groups_moved
    patch.setattr(branch.Branch, "_groups_moved", lambda *given: max(1, original(*given) // 2))


def _too_few_near(patch: Any) -> None:
    original = branch.rows_moving_together
    patch.setattr(branch, "rows_moving_together", lambda *given: original(*given) // 2)


def _padding_forgotten(patch: Any) -> None:
    original = branch.lookups_of

    def wrong(*given: Any) -> Any:
        found = original(*given)
        equal = (*found.equal, *(pair for x in found.padded.values() for pair in x.equal))
        return replace(found, equal=equal, padded={})

    patch.setattr(branch, "lookups_of", wrong)


PLAIN = {"a": "l1(x, y, v, m)"}
SIGMOID = 'softening = { kind = "sigmoid", slope = 0.7 }'
FAULTS = (
    Planted("derivative.product", "a dropped |c| in a product", _signed_constants, "SELECT sum(x*p) FROM a"),
    Planted(
        "derivative.arithmetic", "a dropped |c| in a sum", _signed_constants, "SELECT sum(x*y*p + x) FROM a",
    ),
    Planted(
        "derivative.extreme", "min for max between arguments", _smallest_for_largest,
        "SELECT sum(greatest(3*x, x*0.1)) FROM a"
    ),
    Planted(
        "derivative.dual", "min for max between blocks", _smallest_for_largest,
        "SELECT sum(least(x+y, 0.1*y)) FROM a", {"a": "linf(x, y)"},
    ),
    Planted(
        "derivative.reach", "one scan of a table forgotten", _motions(lambda found: found[:1]),
        "SELECT sum(a.x*o.x) FROM a, a AS o",
    ),
    Planted(
        "derivative.reach", "scans of one row not added", _largest_scan,
        "SELECT sum(a.x+o.x) FROM a JOIN a AS o ON a.id = o.id",
        keys=("a",),
    ),
    Planted(
        "derivative.reach", "one table forgotten", _motions(lambda found: found[-1:]), "SELECT sum(a.x+b.z) FROM a, b"
    ),
    Planted(
        "derivative.reach", "tables not combined", _first_table,
        "SELECT sum(a.x+b.z) FROM a JOIN b ON a.id = b.id", tables="linf",
    ),
    Planted("derivative.floor", "the floor decays to 0", _floor_of_nothing, "SELECT count(*) FROM a WHERE x > 1",
            settings='softening = { kind = "ramp", width = 0.2 }', rows={"a": "l2"}, beta=Fraction(8)),
    Planted("derivative.floor", "floors not put back", _no_floors, "SELECT sum(1000*x*p + y) FROM a",
        {"a": "l1(x, y)"}),
    Planted("derivative.ramp", "the margin halved", _narrow_ramp, "SELECT count(*) FROM a WHERE x > 1",
            settings='softening = { kind = "ramp", width = 2 }', beta=Fraction(2)),
    Planted(
        "derivative.dual", "a block divided by a norm's factor", _divided_blocks, "SELECT sum(least(x, y)) FROM a",
        {"a": "10*l1(x, y)"},
    ),
    Planted(
        "derivative.length", "a length divided by a norm's factor", _divided_blocks, "SELECT sum(sqrt(x*x+y*y)) FROM a",
        {"a": "4*l1(l2(x, y), v)"},
    ),
    Planted(
        "derivative.rates", "rates not added in a product",
        lambda patch: patch.setattr(smooth_terms, "together", smooth_terms.higher),
        "SELECT sum(exp(x)*exp(x)*exp(x)) FROM a", beta=Fraction(1, 2),
    ),
    Planted("derivative.gather", "gathering skipped though a key is missing", _always_single,
        "SELECT sum(a.x) FROM a, u"),
    Planted(
        "derivative.gather", "gathering skipped though the other side is not unique", _always_single,
        "SELECT sum(a.x*b.z) FROM a JOIN b ON a.k = b.k",
    ),
    Planted(
        "derivative.gather", "a left join taken for an inner one", _padding_forgotten,
        "SELECT sum(b.z) FROM b CROSS JOIN a LEFT JOIN u ON a.id = u.k AND u.k = 1",
    ),
    Planted(
        "derivative.gather", "joined rows that add the same taken for one", _counted_once,
        "SELECT count(*) FROM a JOIN u ON a.id = u.h WHERE a.m IN (1, 3)",
    ),
    Planted(
        "derivative.identity", "a power of e^w that moves as e^w does",
        lambda patch: patch.setattr(shapes, "exponent_slope", shapes.exponent_size),
        "SELECT sum(power(v, 3)) FROM a", {"a": "2*ln(v)"}, beta=Fraction(2),
    ),
    Planted(
        "derivative.identity", "w² that moves by w for each unit of w",
        _root_that_moves_as_w,
        "SELECT sum(c) FROM a", {"a": "sqrt(c)"}, beta=Fraction(2),
    ),
    Planted(
        "derivative.identity", "a root taken for the column itself",
        _roots_forgotten,
        "SELECT sum(c) FROM a", {"a": "sqrt(c)"},
    ),
    Planted("derivative.leaning", "slopes that cancel without a rounded corner", _sharp_corners,
            "SELECT count(*) FROM a WHERE x BETWEEN 0 AND 2", settings=SIGMOID, beta=Fraction(4)),
    Planted("derivative.leaning", "the mean of slopes turns too slowly", _no_spread,
            "SELECT count(*) FROM a WHERE x IN (0, 2)", settings=SIGMOID, beta=Fraction(8)),
    Planted("derivative.listed", "groups of listed values taken for apart", _listed_groups_apart,
            "SELECT m, count(*) FROM b GROUP BY m"),
    Planted("derivative.listed", "a row near half as many values as it is", _too_few_near,
            "SELECT m, count(*) FROM b GROUP BY m", settings='softening = { kind = "sigmoid", slope = 0.9 }'),
    Planted("derivative.union", "one branch for all", _first_branch,
            "SELECT sum(t*t) FROM (SELECT x AS t FROM a UNION ALL SELECT 2*y FROM a) AS u"),
    Planted("derivative.union", "one row in several groups", _branches_of_one_table_apart,
            "SELECT h, sum(t*t) FROM (SELECT g AS h, x AS t FROM a UNION ALL SELECT k, 2*x FROM a) AS u GROUP BY h"),
    Planted("derivative.nested", "a row of several inner groups counted once", _always_single,
            "SELECT sum(t) FROM (SELECT u.k, max(a.x*a.x) AS t FROM a, u GROUP BY u.k) AS s"),
    Planted("derivative.sets", "the right side of EXCEPT forgotten", _left_side_only,
            "SELECT count(*) FROM (SELECT k FROM a WHERE x > 1 EXCEPT SELECT k FROM a WHERE y > 2) AS s"),
    Planted("derivative.sets", "a row in several members counted once", _always_single,
            "SELECT count(*) FROM (SELECT DISTINCT u.k FROM a, u WHERE a.x > 1) AS s"),
    Planted("derivative.or", "what each part moves taken for less", _half_of_either,
            "SELECT count(*) FROM a WHERE x > 4 OR x > 4.5", settings=SIGMOID),
    Planted("derivative.clamp", "what is moved into a range moves half as fast", _half_as_fast(n.Clamp),
            "SELECT sum(x*x) FROM a"),
    Planted("derivative.case", "a choice moves half as fast", _half_as_fast(n.Case),
            "SELECT sum(CASE WHEN g = 1 THEN x*x ELSE x END) FROM a"),
    Planted("derivative.cast", "a cast moves half as fast", _half_as_fast(n.Cast),
            "SELECT sum(CAST(x*x AS DOUBLE)) FROM a"),
    Planted("derivative.abs", "a size moves half as fast", _size_half_as_fast, "SELECT sum(abs(x*x)) FROM a"),
    Planted("derivative.compose", "a slope halved", _halved_slopes, "SELECT sum(exp(x)) FROM a"),
    Planted("derivative.quotient", "a quotient's slope halved", _halved_slopes, "SELECT sum(1/y) FROM a"),
    Planted("derivative.length", "a length's factor halved", _short_lengths, "SELECT sum(sqrt(x*x+y*y)) FROM a",
            {"a": "l2(x, y)"}),
    Planted("derivative.length", "a column of a coordinate forgotten", _one_coordinate_of_two,
            "SELECT sum(sqrt((x+y)*(x+y))) FROM a", {"a": "linf(x, y)"}),
    Planted("derivative.length", "a scale of a coordinate forgotten", _scales_forgotten,
            "SELECT sum(sqrt((3*x)*(3*x)+y*y)) FROM a", {"a": "l2(x, y)"}),
    Planted("derivative.reach", "the largest row for all rows", _largest_row, "SELECT sum(x*x) FROM a", PLAIN,
        {"a": "linf"}),
    Planted(
        "derivative.rows", "public rows bounded, the others not", _hidden_rows, "SELECT sum(x*x) FROM a", PLAIN,
        settings='public_rows = { a = "g = 1" }', still=lambda table, row: table == "a" and row["g"] == 1,
    ),
    Planted(
        "derivative.groups", "one row in several groups", _groups_apart,
        "SELECT u.h, sum(a.x*a.x) FROM a, u GROUP BY u.h"
    ),
)  # fmt: skip
