"""Wrong rules, one for each rule id at least, and the directed case that notices each.

A fault is a function that takes pytest's monkeypatch and breaks one rule: a dropped factor, `max` for a sum, a second
use that is forgotten, a check that is skipped. Most wrap the rule as it stands, so that they stay wrong when it
changes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from secant.plan import nodes as n
from secant.plan.facts import ownership
from secant.plan.facts.ownership import OWNERSHIP, Ownership, WayToOwner
from secant.plan.rewrites import enforce
from secant.plan.rewrites.rewrite import transform
from secant.plan.rule_table import RuleTable
from secant.plan.typing import fields_of
from secant.sensitivity import summands
from secant.sensitivity.certificate import Tallies
from secant.sensitivity.growth import GROWTH, growth
from secant.sensitivity.stability import analysis, rules
from secant.sensitivity.truncation import analysis as clipping_analysis
from secant.sensitivity.truncation import clipping, tallying, weighing

Fault = Callable[[Any], None]


def _changed_cut(change: Callable[[n.Node], n.Node]) -> Fault:
    """Let the plan that cuts down, or counts, differ from what is claimed of it."""

    def plant(patch: Any) -> None:
        original = clipping.cut_down
        wrong = lambda a, limits: transform(original(a, limits), change)  # noqa: E731
        patch.setattr(clipping_analysis, "cut_down", wrong)

    return plant


def _rows_weigh_alike(patch: Any) -> None:
    """Let every row that is ranked weigh as much as any other, however many its unit has."""
    original = weighing.cut_down
    patch.setattr(weighing, "cut_down", lambda a, x: original(a, dict.fromkeys(x, 10**6)))


_uncut = _changed_cut(lambda node: node.operand if isinstance(node, n.Clamp) else node)
_rounded_up = _changed_cut(
    lambda node: (
        replace(node, function="ceil")
        if isinstance(node, n.Call) and node.function == "floor"
        else node
    )
)
_larger_weight = _changed_cut(
    lambda node: (
        replace(node, function="greatest")
        if isinstance(node, n.Call) and node.function == "least"
        else node
    )
)
_unsigned_sizes = _changed_cut(
    lambda node: (
        replace(node, argument=node.argument.arguments[0])
        if isinstance(node, n.Aggregation)
        and isinstance(node.argument, n.Call)
        and node.argument.function == "abs"
        else node
    )
)


def _own_sizes(each: n.Aggregate, a: Any) -> n.Relation:
    """Take the largest part of a unit for all that it adds."""
    found = _ORIGINAL_TOTALS(each, a)
    if not isinstance(found, n.Aggregate):
        return found
    return replace(
        found, aggregations=tuple(replace(c, function="max") for c in found.aggregations)
    )


def _rows_for_units(patch: Any) -> None:
    """Count every row as a unit of its own."""
    original = tallying._tallied

    def wrong(rows: n.Relation, *how: Any) -> n.Aggregate:
        return original(n.Union(rows, rows, True, tuple(fields_of(rows))), *how)

    patch.setattr(tallying, "_tallied", wrong)


def _wider_buckets(patch: Any) -> None:
    """Let the buckets of what is summed lie between twice the limits that are claimed."""
    original = tallying.at_once

    def wrong(a: Any, limits: Any) -> Tallies:
        twice = {c: tuple(2 * x for x in several) for c, several in limits.items()}
        return replace(original(a, twice), limits=limits)

    patch.setattr(clipping_analysis, "at_once", wrong)


def _all_values(patch: Any) -> None:
    original = clipping.cut_values
    through = lambda node: node.input if isinstance(node, n.Truncate) else node  # noqa: E731
    patch.setattr(clipping_analysis, "cut_values", lambda a, x: transform(original(a, x), through))


def _values_beside_rows(patch: Any) -> None:
    """Let each row hold its value, as if it were a unit."""
    original = tallying.each_value

    def wrong(a: Any, limits: Any) -> Tallies:
        rows = {f.name.rpartition(".")[2]: f.name for f in fields_of(a.rows)}
        return original(replace(a, unit=rows["vid"]), limits)

    patch.setattr(clipping_analysis, "each_value", wrong)


def _one_limit_for_all(patch: Any) -> None:
    original = clipping.cut_down_to_each
    largest = lambda limits: {c: [max(x)] * len(x) for c, x in limits.items()}  # noqa: E731
    patch.setattr(clipping_analysis, "cut_down_to_each", lambda a, x: original(a, largest(x)))


_ORIGINAL_TOTALS = clipping.totals


@dataclass(frozen=True)
class Planted:
    """A fault, the rule that it breaks, and the directed case that must notice it."""

    rule: str
    what: str
    plant: Fault
    case: str


def _wrapped(
    table: RuleTable[Any], node: type[n.Node], change: Callable[[Any, Any, Any], Any]
) -> Fault:
    """Replace a rule by change(found, work, node), where found is what the rule itself gives."""

    def plant(patch: Any) -> None:
        original = table._rules[node]
        patch.setitem(table._rules, node, lambda work, x: change(original(work, x), work, x))

    return plant


def _put(table: RuleTable[Any], node: type[n.Node], rule: Callable[[Any, Any], Any]) -> Fault:
    return lambda patch: patch.setitem(table._rules, node, rule)


def _all(*faults: Fault) -> Fault:
    def plant(patch: Any) -> None:
        for fault in faults:
            fault(patch)

    return plant


def _skipped(module: Any, name: str, result: Callable[..., Any]) -> Fault:
    return lambda patch: patch.setattr(module, name, result)


# ── stability ────────────────────────────────────────────────────────────────────────────────────

STABILITY = rules.STABILITY


def _halved(found: rules.Stable, *_: Any) -> rules.Stable:
    return found if found.changed is None else replace(found, changed=found.changed // 2)


def _through(work: Any, node: Any) -> Any:
    return work.of(node.input)


def _larger_side(work: Any, node: Any) -> rules.Stable:
    left, right = work.of(node.left), work.of(node.right)
    return left if (left.changed or 0) >= (right.changed or 0) else right


def _unchecked_join(work: Any, node: Any) -> rules.Stable:
    """Whatever is joined: as many rows differ as on the side where most do."""
    return _larger_side(work, node)


def _as_many_as_below(found: rules.Stable, work: Any, node: n.Truncate) -> rules.Stable:
    below = work.of(node.input).changed
    return found if below is None else replace(found, changed=min(found.changed or 0, below))


def _both_sides(change: Callable[[int, int], int]) -> Fault:
    """Count two sides that differ in another way."""

    def wrong(found: rules.Stable, work: Any, node: n.Join) -> rules.Stable:
        left, right = work.of(node.left).changed, work.of(node.right).changed
        return replace(found, changed=change(left, right)) if left and right else found

    return _wrapped(STABILITY, n.Join, wrong)


def _single_truncation(work: Any, node: Any) -> rules.Stable:
    """The new row is counted, the one that it pushes out is not."""
    inner = work.of(node.input)
    own = work.ownerships is not None and rules.owned_by(work.ownerships, node.input, node.owner)
    return replace(inner, changed=node.limit) if own else inner


# ── the measures ─────────────────────────────────────────────────────────────────────────────────


def _measure(rule: str, change: Callable[[Fraction], Fraction]) -> Fault:
    def plant(patch: Any) -> None:
        original = analysis.measure_bound

        def wrong(*arguments: Any, **named: Any) -> Any:
            found, value, words = original(*arguments, **named)
            return found, change(value) if found == rule else value, words

        patch.setattr(analysis, "measure_bound", wrong)

    return plant


def _ranks(change: Callable[[Any, int], Fraction]) -> Fault:
    return lambda patch: patch.setattr(
        analysis, "_rank_bound", lambda ranked, changed: change(ranked, changed)
    )


def _half(value: Fraction) -> Fraction:
    return value / 2


def _filters_keep_all(patch: Any) -> None:
    """Take a row that a condition may drop for one that always counts."""
    patch.setitem(GROWTH._rules, n.Filter, lambda node, varying: growth(node.input, varying))


def _signs_are_alike(patch: Any) -> None:
    """Price a replaced summand as if the old one and the new one had the same sign."""
    original = summands.replaced_bound

    def wrong(call: Any, once: int, fixed: bool, step: Fraction) -> Any:
        rule, value, words = original(call, once, fixed, step)
        high, low = (
            summands.ends_of_row(call, step) if call.function == "sum" else (value, Fraction(0))
        )
        return rule, once * max(high, -low), words

    patch.setattr(analysis, "replaced_bound", wrong)


def _no_row_below_zero(patch: Any) -> None:
    original = analysis.ends_of_row
    patch.setattr(
        analysis, "ends_of_row", lambda call, step: (original(call, step)[0], Fraction(0))
    )


def _never_replaced(patch: Any) -> None:
    original = analysis.StabilityAnalysis.bound
    patch.setattr(
        analysis.StabilityAnalysis,
        "bound",
        lambda self, request: original(
            self, replace(request, protection=replace(request.protection, replace=False))
        ),
    )


def _one_row_a_unit(found: Ownership, *_: Any) -> Ownership:
    return replace(found, guaranteed=1, expected=1) if found.local else found


# ── ownership ────────────────────────────────────────────────────────────────────────────────────


def _all_shared(found: Ownership, *_: Any) -> Ownership:
    return replace(found, terms=frozenset(replace(t, shared=True) for t in found.terms))


def _constants_are_units(found: Ownership, work: Any, node: Any) -> Ownership:
    columns = [f.name for f in fields_of(node)]
    terms = frozenset(WayToOwner(work.paths.unit, c, True) for c in columns)
    return replace(found, touched=True, terms=terms, expected=1)


def _computed_ids(found: Ownership, work: Any, node: Any) -> Ownership:
    """A value made of the unit's id is taken for the id."""
    inner = {t.column for t in work.of(node.input).terms if t.via == work.paths.unit}
    made = {
        WayToOwner(work.paths.unit, item.name, True)
        for item in node.items
        if inner & {x.name for x in n.walk(item.expression) if isinstance(x, n.Column)}
    }
    return replace(found, terms=found.terms | made)


def _any_comparison_pins(inner: Ownership, parts: Any) -> frozenset[WayToOwner]:
    pins = set()
    for part in parts:
        if isinstance(part, n.Compare):
            for a, b in ((part.left, part.right), (part.right, part.left)):
                if isinstance(a, n.Column) and isinstance(b, n.Outer):
                    pins |= {replace(t, column=b.name) for t in inner.terms if t.column == a.name}
    return frozenset(pins)


def _all_numbered(found: Ownership, work: Any, node: n.Window) -> Ownership:
    return replace(found, numbered=found.numbered | {call.name for call in node.calls})


def _still_numbered(found: Ownership, work: Any, node: n.Join) -> Ownership:
    return replace(found, numbered=work.of(node.left).numbered | work.of(node.right).numbered)


def _merged_with_everything(work: Any, node: Any) -> Ownership:
    """Merging rows is taken to keep owners apart, by whatever column leads to them."""
    found = work.of(node.input)
    return _all_shared(replace(found, keys=()))


def _mixed_groups(work: Any, node: Any) -> Ownership:
    """A group is taken to belong to its owners, by whatever column leads to them."""
    inner = _all_shared(work.of(node.input))
    names = {k.expression.name: k.name for k in node.keys if isinstance(k.expression, n.Column)}
    terms = frozenset(replace(t, column=names[t.column]) for t in inner.terms if t.column in names)
    return Ownership(True, terms, inner.pinned, inner.expected, None, inner.missing, ())


def _untied_join(work: Any, node: Any) -> Ownership:
    left, right = work.of(node.left), work.of(node.right)
    return replace(left, terms=left.terms | right.terms)


def _first_side(work: Any, node: Any) -> Ownership:
    """Only the left side's owners are looked at."""
    left = work.of(node.left)
    names = {f.name: out.name for f, out in zip(fields_of(node.left), node.columns, strict=True)}
    terms = frozenset(replace(t, column=names[t.column]) for t in left.terms)
    return replace(left, terms=terms, keys=())


def _foreign_truncation(work: Any, node: Any) -> Ownership:
    """A truncation by another unit is taken to leave owners alone."""
    inner = work.of(node.input)
    own = {t.column for t in inner.terms if t.via == work.paths.unit}
    if isinstance(node, n.Truncate) and node.owner[0] in own:
        return replace(inner, guaranteed=node.limit, expected=node.limit, missing=())
    return inner


def _pinned_by_padding(found: Ownership, work: Any, node: Any) -> Ownership:
    """Conditions of a LEFT JOIN are taken to hold for padded rows as well."""
    pins = _any_comparison_pins(found, n.conjuncts(node.condition))
    return replace(found, pinned=found.pinned | pins)


def _everything_is_linked(term: WayToOwner, link: WayToOwner) -> bool:
    return term.via == link.via and term.column == link.column


def _every_in_is_positive(patch: Any) -> None:
    original = ownership._blocked_by

    def wrong(work: Any, expression: Any, rows: Ownership, *, positive: bool) -> Any:
        def plainly(part: n.Node) -> n.Node:
            plain = isinstance(part, n.Not) and isinstance(part.operand, n.InSubquery)
            return part.operand if plain else n.rebuild(part, plainly)  # type: ignore[attr-defined]

        return original(work, plainly(expression), rows, positive=positive)

    patch.setattr(ownership, "_blocked_by", wrong)


def without_walls(patch: Any) -> None:
    """Take the second wall away: most wrong rules would be refused behind it, and nothing would be noticed."""
    for work in (rules.Stabilities, ownership.Ownerships):
        patch.setattr(work, "_accounted", lambda _, relation, found: found)


def _ranks_are_not_asked(patch: Any) -> None:
    """The other fault of issue 11: only the sums of a release say which tables it reads."""
    patch.setattr(
        enforce.MeasuredAggregate, "aggregates", property(lambda release: (release.exact,))
    )


def _sort_keys_are_skipped(patch: Any) -> None:
    """The fault of issue 11: what a sort key asks is not looked at."""
    for module in (rules, ownership):
        original = module.expressions
        patch.setattr(
            module, "expressions", lambda r, x=original: () if isinstance(r, n.Sort) else x(r)
        )


def _unknown_passes(patch: Any) -> None:
    """A node without a rule is taken to change nothing."""
    for table in (OWNERSHIP, STABILITY):
        patch.delitem(table._rules, n.Limit)
        original = table.find

        def find(node: Any, original: Any = original) -> Any:
            return original(node) or _through

        patch.setattr(table, "find", find)


# ── enforcement: what runs is not what was bounded ───────────────────────────────────────────────


def _run_with(change: Callable[[n.Node], n.Node]) -> Fault:
    """What is bounded is not what runs."""

    def plant(patch: Any) -> None:
        import neighbor_check

        original = neighbor_check.compiled
        patch.setattr(neighbor_check, "compiled", lambda plan: original(transform(plan, change)))

    return plant


def _lost(node: type[n.Node], field: str) -> Fault:
    """The operator is in the plan that is bounded and not in the plan that runs."""
    return _run_with(lambda part: getattr(part, field) if isinstance(part, node) else part)


def _without_ends(part: n.Node) -> n.Node:
    if isinstance(part, n.Quantize):
        return replace(part, low=None, high=None)
    return part.operand if isinstance(part, n.Clamp) else part


def _rows_choose_keys(patch: Any) -> None:
    """Private keys are chosen by their rows instead of their units."""
    patch.setattr(
        enforce._Builder,
        "_selector",
        lambda self, *_: self.measured.count_rows(weight=0.5).name,
    )


NOTHING_ASKED = _all(
    _skipped(rules.Stabilities, "_row_by_row", lambda *_: None),
)

FAULTS: tuple[Planted, ...] = (
    Planted("stability.scan", "a table that differs is taken to be fixed",
            _wrapped(STABILITY, n.Scan, lambda f, *_: replace(f, changed=0)), "rows of one table"),
    Planted("stability.scan", "a unit is taken to have one row",
            _wrapped(STABILITY, n.Scan, lambda f, *_: replace(f, changed=1)), "people's rows"),
    Planted("stability.public", "a protected table is taken for constants",
            _put(STABILITY, n.Scan, STABILITY._rules[n.Values]), "rows of one table"),
    Planted("stability.filter", "a changed row is lost", _wrapped(STABILITY, n.Filter, _halved),
            "a filtered table"),
    Planted("stability.filter", "subqueries are not looked at", NOTHING_ASKED, "a condition that asks all rows"),
    Planted("stability.project", "subqueries are not looked at", NOTHING_ASKED, "a value that asks all rows"),
    Planted("stability.project", "a changed row is lost", _wrapped(STABILITY, n.Project, _halved),
            "rows of one table"),
    Planted("stability.sort", "a changed row is lost", _wrapped(STABILITY, n.Sort, _halved), "a sorted table"),
    Planted("stability.sort", "what sort keys ask is skipped", _sort_keys_are_skipped, "a sort key that asks all rows"),
    Planted("owner.sort", "what sort keys ask is skipped", _sort_keys_are_skipped, "a sort key that asks people"),
    Planted("stability.window", "a window passes rows through", _put(STABILITY, n.Window, _through),
        "a window of all rows"),
    Planted("owner.window", "a window may hold rows of all units", _put(OWNERSHIP, n.Window, _through),
            "a window of all people"),
    Planted("owner.window", "a window may hold rows of several units", _put(OWNERSHIP, n.Window, _through),
            "a window of a shared number"),
    Planted("owner.window", "numbers of several partitions of a unit are taken for one",
            _wrapped(OWNERSHIP, n.Window, _all_numbered), "a person's first row of each kind"),
    Planted("owner.window", "a join is taken to keep rows numbered", _wrapped(OWNERSHIP, n.Join, _still_numbered),
            "a person's first row, beside a public table"),
    Planted("stability.limit", "LIMIT passes rows through", _put(STABILITY, n.Limit, _through),
            "the first row of all"),
    Planted("stability.distinct", "a changed row is lost", _wrapped(STABILITY, n.Distinct, _halved),
            "different rows"),
    Planted("stability.group", "only the new row of a group is counted",
            _wrapped(STABILITY, n.Aggregate, _halved), "groups of groups"),
    Planted("stability.join", "no key is asked for", _put(STABILITY, n.Join, _unchecked_join), "a join on no key"),
    Planted("stability.join", "both sides may differ", _put(STABILITY, n.Join, _unchecked_join),
            "a join of two protected tables"),
    Planted("stability.join", "the larger side instead of both", _both_sides(max), "people and visits of one number"),
    Planted("stability.join", "only the left side is counted", _both_sides(lambda a, b: a),
            "people with or without a visit of their number"),
    Planted("stability.join", "only the asking rows are counted", _both_sides(lambda a, b: a),
            "a person asks about visits of others"),
    Planted("stability.join", "only the asking rows are counted", _both_sides(lambda a, b: a),
            "a person is not met by visits of others"),
    Planted("stability.join", "padding is forgotten", _wrapped(STABILITY, n.Join, lambda found, *_: replace(
            found, changed=1) if found.changed else found), "places that somebody visited"),
    Planted("stability.join", "padding is forgotten", _wrapped(STABILITY, n.Join, lambda found, *_: replace(
            found, changed=1) if found.changed else found), "sizes of places that nobody visited"),
    Planted("stability.truncate", "a row of another owner that moves up is forgotten",
            _wrapped(STABILITY, n.Truncate, _as_many_as_below), "people and visits of one number"),
    Planted("stability.join", "padding is forgotten", _put(STABILITY, n.Join, lambda work, node: replace(
            _larger_side(work, node), changed=1)), "a padded public table"),
    Planted("stability.set", "the larger side instead of both", _put(STABILITY, n.Union, _larger_side),
            "the same table twice"),
    Planted("stability.truncate", "the row that is pushed out is forgotten",
            _put(STABILITY, n.Truncate, _single_truncation), "a row pushes another out"),
    Planted("stability.truncate", "the limit is halved", _wrapped(STABILITY, n.Truncate, _halved), "people's rows"),
    Planted("stability.truncate_groups", "a group that is pushed out is forgotten",
            _put(STABILITY, n.TruncateGroups, _through), "a row pushes a group out"),
    Planted("stability.count", "half of it", _measure("stability.count", _half), "rows of one table"),
    Planted("stability.count_units", "a unit counts once in all groups together",
            _measure("stability.count_units", lambda _: Fraction(1)), "groups of a person"),
    Planted("stability.count_distinct", "one value instead of one for each row",
            _measure("stability.count_distinct", lambda _: Fraction(1)), "different values"),
    Planted("stability.sum", "half of it", _measure("stability.sum", _half), "a sum"),
    Planted("stability.sum", "half of a real sum", _measure("stability.sum", _half), "a real sum"),
    Planted("stability.sum_distinct", "half of it", _measure("stability.sum_distinct", _half),
            "a sum of different values"),
    Planted("truncation.weights", "rows weigh as much as others do", _rows_weigh_alike, "a person's median"),
    Planted("truncation.weights", "each cell has the limit for itself",
            _skipped(clipping, "totals", lambda each, a: _own_sizes(each, a)), "a person's maximum in each group"),
    Planted("stability.rank", "the factor two is left out", _ranks(lambda r, c: c * r.span / 2), "a quantile"),
    Planted("stability.rank", "a row below moves a quantile by its own share only",
            _ranks(lambda r, c: 2 * c * min(r.fraction, 1 - r.fraction)), "a quantile"),
    Planted("truncation.weights", "rows weigh as much as others do", _rows_weigh_alike,
            "a person's most frequent value"),
    Planted("stability.mode", "half a row for a row", _ranks(lambda r, c: c * r.span / 2), "a most frequent value"),
    Planted("rewrite.measure", "half of a product", _measure("stability.sum", _half), "a covariance"),
    Planted("stability.rank", "what only its argument reads is forgotten", _ranks_are_not_asked,
            "a maximum of public rows that asks protected ones"),
    Planted("stability.rank", "what only its argument reads is forgotten", _ranks_are_not_asked,
            "a maximum of one table that asks another"),
    Planted("stability.replace", "only one of the two rows is counted", _never_replaced, "a replaced row"),
    Planted("stability.replace", "a condition is taken to keep every row", _filters_keep_all,
            "a replaced row and a condition"),
    Planted("stability.replace", "a summand below zero is forgotten", _signs_are_alike,
            "a replaced row of another sign"),
    Planted("stability.length", "the sum of all changes is taken for the square of their length",
            _skipped(analysis, "_square", lambda rule, call, value, change, step: value),
            "a person's rows in one group"),
    Planted("stability.length", "any rows are taken to be told apart",
            _skipped(analysis, "one_a_group", lambda *_: True), "a person's rows in one group"),
    Planted("stability.length", "the largest change is taken for the length of all",
            _skipped(analysis, "_square", lambda rule, call, value, change, step: Fraction(1)),
            "groups of a person"),
    Planted("stability.length", "a replaced summand below zero is forgotten", _no_row_below_zero,
            "a replaced row of another sign in its group"),
    Planted("truncation.length", "what one row adds is taken for what a unit adds to a group",
            _skipped(clipping_analysis, "one_a_group", lambda *_: True), "what a person adds to one group"),
    Planted("stability.owned", "several groups of a unit are taken for one",
            _wrapped(OWNERSHIP, n.Aggregate, _one_row_a_unit), "groups of people"),
    Planted("stability.unknown", "a node without a rule passes", _unknown_passes, "the first row of all"),
    Planted("owner.unknown", "a node without a rule passes", _unknown_passes, "the first row of all, by people"),
    Planted("owner.scan", "some owners are taken for all", _wrapped(OWNERSHIP, n.Scan, _all_shared),
            "groups of a shared number"),
    Planted("owner.public", "constants are taken for ids", _wrapped(OWNERSHIP, n.Union, _constants_are_units),
            "constants are padded by units"),
    Planted("owner.filter", "any comparison ties a subquery to the row",
            _skipped(ownership, "_pins", _any_comparison_pins), "a condition that asks other people"),
    Planted("owner.subquery", "no subquery is looked at",
            _skipped(ownership, "_subqueries", lambda _: []), "among the many"),
    Planted("owner.subquery", "NOT IN is taken for IN", _every_in_is_positive, "not among others"),
    Planted("owner.project", "a value made of an id is taken for it",
            _wrapped(OWNERSHIP, n.Project, _computed_ids), "groups of one computed id"),
    Planted("owner.sort", "sorted rows are taken to be one for each unit",
            _wrapped(OWNERSHIP, n.Sort, _one_row_a_unit), "people's sorted rows"),
    Planted("owner.limit", "LIMIT passes rows through",
            _all(_put(OWNERSHIP, n.Limit, _through), _put(STABILITY, n.Limit, _through)),
            "the first row of all, by people"),
    Planted("owner.distinct", "rows of a shared number are taken apart",
            _put(OWNERSHIP, n.Distinct, _merged_with_everything), "different rows of a shared number"),
    Planted("owner.aggregate", "groups of a shared number are taken apart",
            _put(OWNERSHIP, n.Aggregate, _mixed_groups), "groups of a shared number"),
    Planted("owner.truncate", "another unit's truncation leaves owners alone",
            _put(OWNERSHIP, n.Truncate, _foreign_truncation), "a visit pushes a person's row out"),
    Planted("owner.truncate_groups", "another unit's truncation leaves owners alone",
            _all(_put(OWNERSHIP, n.TruncateGroups, _foreign_truncation),
                 _put(OWNERSHIP, n.Truncate, _foreign_truncation),
                 _put(STABILITY, n.TruncateGroups, _through)),
            "a visit pushes a person's group out"),
    Planted("owner.join", "narrowing is forgotten",
            _skipped(ownership, "_narrowed", lambda _, side: side),
            "groups of joined rows of a shared number"),
    Planted("owner.join", "the sides need no tie", _put(OWNERSHIP, n.Join, _untied_join), "all pairs of people"),
    Planted("owner.join", "the condition of a LEFT JOIN ties padded rows",
            _wrapped(OWNERSHIP, n.Join, _pinned_by_padding), "a padded row asks about another"),
    Planted("owner.set", "the second side's owners are not looked at",
            _put(OWNERSHIP, n.Union, _first_side), "a union that mixes ids"),
    Planted("rewrite.range", "the clamp is lost", _lost(n.Clamp, "operand"), "a sum"),
    Planted("rewrite.measure", "what is summed is not what was clamped",
            _run_with(_without_ends), "a sum of squares"),
    Planted("rewrite.measure", "what is summed is finer than the steps that were bounded",
            _run_with(lambda x: replace(x, step=x.step / 2, low=None, high=None) if isinstance(x, n.Quantize) else x),
            "a sum of squares"),
    Planted("rewrite.total", "what can fail is left as it is",
            _all(_skipped(enforce, "make_total", lambda plan: plan),
                 _skipped(enforce, "unguarded", lambda _: None)), "a number that is too large"),
    Planted("rewrite.limit", "the truncation is lost", _lost(n.Truncate, "input"), "people's rows"),
    Planted("rewrite.limit", "the truncation of groups is lost", _lost(n.TruncateGroups, "input"),
            "groups of a person"),
    Planted("rewrite.keys", "rows choose keys, and each is taken for a unit",
            _all(_rows_choose_keys, _skipped(analysis, "_contribution", lambda *_: 1)), "protected keys of people"),
    Planted("truncation.clip", "each group has the limit for itself",
            _skipped(clipping, "totals", lambda each, a: _own_sizes(each, a)),
            "what a person adds to groups"),
    Planted("truncation.weight", "the larger share is taken", _larger_weight, "what a person adds to an average"),
    Planted("truncation.clip", "sizes have signs", _unsigned_sizes, "what a person adds to groups"),
    Planted("truncation.clip", "nothing is cut", _uncut, "what a person adds"),
    Planted("truncation.clip", "parts are rounded up", _rounded_up, "what a person adds to groups"),
    Planted("truncation.distinct", "all values are brought in", _all_values, "values that a person brings in"),
    Planted("truncation.matching", "values stand beside rows, not beside units", _values_beside_rows,
            "values that are assigned to a person"),
    Planted("truncation.race", "one limit serves for all", _one_limit_for_all, "a race of what a person adds"),
    Planted("truncation.clip", "rows are taken for units", _rows_for_units, "what a person adds"),
    Planted("truncation.tally", "buckets lie between other limits", _wider_buckets, "what a person adds"),
    Planted("rewrite.subquery", "a scalar may have several rows",
            _skipped(enforce, "many_rowed", lambda _: None), "a scalar of one's own with several rows"),
)  # fmt: skip

REFUSALS = {
    "stability.kind": "names a kind of protection that this analysis does not bound; nothing follows from it",
    "rewrite.aggregate": "names a function without measures; there is no plan to bound",
    "rewrite.correlated": "an aggregate of an outer row has no plan of its own to run",
}
"""Ids that only name a refusal: without them there would be no plan, so there is nothing to be wrong about."""

ELSEWHERE = {
    "truncation.center": ("test_centers", "test_a_sum_that_is_not_cut_down_would_be_noticed"),
    "stability.personal": (
        "test_personal_amounts",
        "test_planted_faults_are_seen_by_those_who_give_little",
    ),
    "rewrite.personal": (
        "test_personal_amounts",
        "test_planted_faults_are_seen_by_those_who_give_little",
    ),
    "stability.moves": ("test_declared_moves", "test_planted_faults_are_seen"),
    "rewrite.extreme": (
        "test_order_statistics_neighbors",
        "test_the_other_extreme_of_units_would_be_noticed",
    ),
    "rewrite.wide": ("test_wide_ranges", "test_cutting_down_to_twice_the_limit_would_be_noticed"),
    "truncation.keys": (
        "test_weighed_keys",
        "test_a_bound_for_a_part_of_the_weights_would_be_refuted",
    ),
    "truncation.nobody": (
        "test_rows_of_nobody",
        "test_rows_of_nobody_scaled_down_together_are_seen",
    ),
}
"""Ids whose claim is about other neighbors than these, with the test that plants a fault among those."""
