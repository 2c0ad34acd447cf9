"""Wrong rules for joins: papers.md, errors 7 to 11, and faults of public systems, planted into the analyses.

A fault takes pytest's monkeypatch and breaks one step of one analysis; the directed case that it names must notice.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from joins_cases import EDGES, TRIANGLE
from joins_operators import ORDERED as IN_ORDER

from secant.plan import nodes as n
from secant.plan.facts import facts
from secant.policy.keys import Key, keys_of
from secant.schema import types as t
from secant.sensitivity.elastic import analysis as elastic
from secant.sensitivity.elastic import rules as elastic_rules
from secant.sensitivity.elastic.amounts import ZERO, most, times
from secant.sensitivity.multiplicity import conditions, copies, filling, patterns, reading
from secant.sensitivity.residual import analysis as residual
from secant.sensitivity.residual import rules as residual_rules
from secant.sensitivity.residual import triangle
from secant.sensitivity.smoothing import largest_until
from secant.sensitivity.smt import analysis as smt_analysis
from secant.sensitivity.smt import rules as smt_rules

CHAIN = "SELECT count(*) FROM r, s, t WHERE r.b = s.b AND s.c = t.c"
PAIR = "SELECT count(*) FROM r JOIN s ON r.b = s.b"
TWICE = "SELECT count(*) FROM (SELECT a, b FROM r UNION ALL SELECT a, b FROM r) q"
THREE = "SELECT count(*) FROM o q1, o q2, o q3 WHERE q1.a = q2.a AND q2.a = q3.a"
PATHS = "SELECT count(*) FROM e q1, e q2 WHERE q1.y = q2.x"
OWN_VALUES = "two copies with values of their own"
DECLARED = "declared: SELECT count(*) FROM t JOIN o ON t.a = o.a"
DECLARED_THREE = "declared: SELECT count(*) FROM t JOIN r ON t.a = r.a JOIN p ON p.a = r.a"
DECLARED_BOTH = "declared: SELECT count(*) FROM r JOIN o ON r.a = o.a"
PUBLIC_KEY = "a public table whose key does not hold"
ORDERED = f"{TRIANGLE} {IN_ORDER}"
BY_GROUP = "SELECT b, count(*) FROM (SELECT r.b FROM r, s WHERE r.b = s.b) AS q GROUP BY b "
NEGATED = "SELECT count(*) FROM r JOIN s ON NOT (r.b = s.b)"


@dataclass(frozen=True)
class Planted:
    """A fault, the analysis that it breaks, and the directed case that must notice it."""

    rule: str
    what: str
    analysis: str
    plant: Callable[[Any], None]
    case: str
    refused: bool = False
    """Whether the right rule refuses the case."""


def _put(module: Any, name: str, wrong: Any) -> Callable[[Any], None]:
    return lambda patch: patch.setattr(module, name, wrong)


# ── smoothing (papers.md, error 11) ──────────────────────────────────────────────────────────────────────


def _no_more_changes_than_rows(at: Any, beta: Fraction, degree: int, **_: Any) -> Fraction:
    return largest_until(at, beta, int(at(0)))


def _exponent_holds_the_value(at: Any, beta: Fraction, degree: int, **_: Any) -> Fraction:
    return Fraction(1)  # exp(-beta k S(k)) is largest where k is 0


def _unsmoothed(
    counts: Any, joined: Any, fixed: Any, growth: filling.Growth, rate: float
) -> filling.Floats:
    """Look no change ahead."""
    return filling._Filled(counts, joined, fixed, growth)(joined * 0)


# ── unions, and k after the first join ───────────────────────────────────────────────────────────


def _union_is_its_left_side(patch: Any) -> None:
    right = elastic_rules.ELASTIC._rules[n.Union]

    def wrong(e: Any, node: n.Union, pins: Any) -> Any:
        return replace(right(e, node, pins), rows=e.of(node.left, None).rows)

    patch.setitem(elastic_rules.ELASTIC._rules, n.Union, wrong)


def _nothing_differs(node: type[n.Relation]) -> Callable[[Any], None]:
    """Let a rule say that no row of what it reads differs, and take away the wall behind the rules."""

    def plant(patch: Any) -> None:
        right = elastic_rules.ELASTIC._rules[node]

        def wrong(e: Any, relation: n.Relation, pins: Any) -> Any:
            found = right(e, relation, pins)
            return replace(found, rows=dict.fromkeys(found.rows, ZERO))

        patch.setitem(elastic_rules.ELASTIC._rules, node, wrong)
        patch.setattr(elastic_rules.Elastic, "_accounted", lambda self, relation, found: found)

    return plant


def _union_shows_its_left_side(patch: Any) -> None:
    def wrong(e: Any, node: n.Union, path: str, wanted: Any) -> Any:
        return smt_rules._sides(e, node, path, wanted)[0]

    patch.setitem(smt_rules.RELATIONS._rules, n.Union, wrong)


def _only_the_first_figure_grows(patch: Any) -> None:
    right = elastic_rules.measured
    first: list[Any] = []

    def wrong(figure: Any, rate: Any) -> Any:
        first.append(figure)
        return right(figure, rate if figure is first[0] else ZERO)

    patch.setattr(elastic_rules, "measured", wrong)


def _only_one_atom_grows(patch: Any) -> None:
    right = residual_rules.Residuals._grown

    def wrong(self: Any, atoms: Any, boundary: Any) -> Any:
        return tuple(term for term in right(self, atoms, boundary) if sum(term.powers) <= 1)

    patch.setattr(residual_rules.Residuals, "_grown", wrong)


# ── copies (error 7) and values that nobody has (error 8) ────────────────────────────────────────────────


def _every_copy_is_charged(patch: Any) -> None:
    """Let rows that came be shared among the copies of a table."""
    right = residual_rules.polynomial

    def wrong(growth: Any, tables: int, values: Any) -> Any:
        return {
            powers: Fraction(c) / max(1, max(powers)) ** max(powers)
            for powers, c in right(growth, tables, values).items()
        }

    patch.setattr(residual, "polynomial", wrong)


def _charged_one_by_one(tables: tuple[int, ...], extra: tuple[int, ...]) -> filling.Growth:
    return filling.Growth(tuple(range(len(tables))), extra)


def _only_what_is_joined_now(patch: Any) -> None:
    right = residual_rules.polynomial

    def wrong(growth: Any, tables: int, values: Any) -> Any:
        found = right(growth, tables, values)
        return found if found.get((0,) * tables) else {}

    patch.setattr(residual, "polynomial", wrong)


def _only_patterns_that_are_seen(copy: Any, top: float, shapes: Any) -> Any:
    return _LABELED(copy, 0.0, shapes[:1])


_LABELED = reading._labeled


# ── merging without TOP (error 9), recursive negation (error 10) ─────────────────────────────────────────


def _without_top(patch: Any) -> None:
    right = patterns.merge

    def wrong(one: Any, two: Any) -> Any:
        def bare(known: Any) -> Any:
            rest = {shape: p for shape, p in known.parts.items() if shape}
            return patterns.PatternMap(rest or known.parts)

        found = right(bare(one), bare(two))
        return found if found.parts else patterns.pattern_map(0.0)

    patch.setattr(patterns, "merge", wrong)


def _one_minus_the_largest(patch: Any) -> None:
    right = conditions.projected

    def wrong(scalar: n.Scalar, known: Any, equal: Any, *, negated: bool = False) -> Any:
        if isinstance(scalar, n.Not):
            inner = wrong(scalar.operand, known, equal)
            return n.Not(n.Literal(True, t.BOOLEAN) if inner is None else inner)
        return right(scalar, known, equal)

    patch.setattr(conditions, "projected", wrong)


# ── operators, and what residuals are made of ─────────────────────────────────────────────────────


def _padded_rows_stay(patch: Any) -> None:
    patch.setattr(elastic_rules._Joined, "_padded_rows", elastic_rules._Joined._rows)


def _groups_count_once(patch: Any) -> None:
    right = elastic_rules.ELASTIC._rules[n.Aggregate]

    def wrong(e: Any, node: n.Aggregate, pins: Any) -> Any:
        return replace(right(e, node, pins), rows=e.of(node.input, None).rows)

    patch.setitem(elastic_rules.ELASTIC._rules, n.Aggregate, wrong)


def _the_larger_side(self: Any, left: Any, right: Any) -> Any:
    left_key, right_key = self._keys()
    return lambda table: most(
        times(left.rows[table], self._right(right_key)),
        times(right.rows[table], self._left(left_key)),
    )


def _one_copy_only(patch: Any) -> None:
    right = residual_rules.subsets

    def wrong(items: Any, least: int = 0) -> Any:
        found = right(items, least)
        return [x for x in found if len(x) == least] if least else found

    patch.setattr(residual_rules, "subsets", wrong)


def _nothing_grows(patch: Any) -> None:
    right = residual_rules.Residuals._grown
    patch.setattr(residual_rules.Residuals, "_manageable", lambda *_: True)
    patch.setattr(residual_rules.Residuals, "_grown", lambda self, a, b: right(self, a, b)[:1])


def _no_group_is_told(patch: Any) -> None:
    right = residual.grouping_of
    patch.setattr(
        residual, "grouping_of", lambda release, shape: replace(right(release, shape), keys={})
    )


# ── keys ─────────────────────────────────────────────────────────────────────────────────────────


def _declared_is_enough(patch: Any) -> None:
    """Believe the keys of protected tables although the owner does not answer for them."""

    def wrong(table: str, policy: Any, catalog: Any) -> Any:
        return keys_of(table, replace(policy, accept=("keys",)), catalog)

    patch.setattr(facts, "keys_of", wrong)


def _nothing_is_claimed(patch: Any) -> None:
    """Rest on keys of public tables that nobody checks."""
    patch.setattr(Key, "claims", ())
    patch.setattr(smt_analysis._Proofs, "claims", lambda self: ())


FAULTS = (
    Planted("elastic.left_join", "rows that were padded stay", "elastic", _padded_rows_stay,
        "padded by a varying table"),
    Planted("elastic.scan", "rows of a table never differ", "elastic", _nothing_differs(n.Scan), "one table"),
    Planted("elastic.filter", "what passes never differs", "elastic", _nothing_differs(n.Filter), "one table"),
    Planted("elastic.project", "columns of rows never differ", "elastic", _nothing_differs(n.Project), "a union"),
    Planted("elastic.distinct", "different rows never differ", "elastic", _nothing_differs(n.Distinct),
            "different rows"),
    Planted("elastic.group", "inner groups count once", "elastic", _groups_count_once, "inner counts"),
    Planted(
        "elastic.join", "the larger of both sides", "elastic",
        _put(elastic_rules._Joined, "_rows", _the_larger_side), "a table with itself",
    ),
    Planted(
        "elastic.keys", "groups that share a figure", "elastic",
        _put(elastic, "_varies", lambda relation, varying: False), "groups of a formula",
    ),
    Planted("residual.copies", "a row stands for one copy only", "residual", _one_copy_only, PATHS),
    Planted("residual.grow", "nothing grows", "residual", _nothing_grows, PAIR),
    Planted(
        "residual.triangle", "an edge may be there twice", "residual",
        _put(triangle, "_once", lambda side, keys: ()), f"{ORDERED} ",
    ),
    Planted(
        "residual.triangle", "loops are no edges", "residual",
        _put(triangle, "_HOLDS", {**triangle._HOLDS, "<=": lambda a, b: a < b}),
        f"{ORDERED.replace('<', '<=')} {EDGES}",
    ),
    Planted(
        "residual.triangle", "common neighbors do not grow", "residual",
        _put(residual, "largest_discounted", lambda at, beta, degree, **_: Fraction(at(0))), f"{ORDERED} {EDGES}",
    ),
    Planted("residual.keys", "no figure is told by its group", "residual", _no_group_is_told, BY_GROUP),
    Planted("combined.keys", "declared keys are believed", "elastic", _declared_is_enough, DECLARED),
    Planted("combined.keys", "declared keys are believed", "residual", _declared_is_enough, DECLARED_THREE),
    Planted("combined.keys", "declared keys are believed", "smt", _declared_is_enough, DECLARED_BOTH, refused=True),
    Planted("combined.keys", "keys are not checked", "multiplicity", _nothing_is_claimed, PUBLIC_KEY),
    Planted("combined.keys", "keys are not checked", "residual", _nothing_is_claimed, PUBLIC_KEY),
    Planted("combined.keys", "keys are not checked", "smt", _nothing_is_claimed, PUBLIC_KEY),
    Planted("elastic.set", "a union is taken for its left side", "elastic", _union_is_its_left_side, TWICE),
    Planted("smt.set", "a union is taken for its left side", "smt", _union_shows_its_left_side, TWICE),
    Planted("elastic.join", "k is missing after the first join", "elastic", _only_the_first_figure_grows, CHAIN),
    Planted("residual.grow", "k is missing after the first join", "residual", _only_one_atom_grows, CHAIN),
    Planted(
        "elastic.smooth", "error 11: no more changes than rows", "elastic",
        _put(elastic, "largest_discounted", _no_more_changes_than_rows), PAIR,
    ),
    Planted(
        "residual.sup", "error 11: no more changes than rows", "residual",
        _put(residual, "largest_discounted", _no_more_changes_than_rows), THREE,
    ),
    Planted(
        "multiplicity.fill", "error 11: no change is looked ahead", "multiplicity",
        _put(filling, "_smooth", _unsmoothed), PAIR,
    ),
    Planted(
        "elastic.smooth", "error 11: the exponent holds the value", "elastic",
        _put(elastic, "largest_discounted", _exponent_holds_the_value), PAIR,
    ),
    Planted(
        "residual.sup", "error 11: the exponent holds the value", "residual",
        _put(residual, "largest_discounted", _exponent_holds_the_value), THREE,
    ),
    Planted("residual.split", "error 7: every copy is charged", "residual", _every_copy_is_charged, THREE),
    Planted(
        "multiplicity.fill", "error 7: every copy is charged", "multiplicity",
        _put(copies, "Growth", _charged_one_by_one), THREE,
    ),
    Planted("residual.grow", "error 8: only what is joined now", "residual", _only_what_is_joined_now, PAIR),
    Planted(
        "multiplicity.fresh", "error 8: only patterns that are seen", "multiplicity",
        _put(reading, "_labeled", _only_patterns_that_are_seen), PATHS,
    ),
    Planted("multiplicity.merge", "error 9: patterns are merged without TOP", "multiplicity", _without_top, OWN_VALUES),
    Planted("multiplicity.exists", "error 10: one minus the largest", "multiplicity", _one_minus_the_largest, NEGATED),
)  # fmt: skip
