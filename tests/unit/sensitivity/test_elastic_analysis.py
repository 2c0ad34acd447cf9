"""The elastic analysis's formulas, refusals and statements, on queries whose bound can be written down."""

import math
from fractions import Fraction

import pytest

from secant.errors import UsageError
from secant.plan import nodes as n
from secant.plan.evaluate.evaluate import evaluate
from secant.plan.facts.domains import Looked
from secant.plan.facts.facts import Facts
from secant.plan.rewrites.enforce import MeasuredAggregate, enforce
from secant.plan.rewrites.rewrite import normalize
from secant.plan.typing import fields_of
from secant.policy.policy import ColumnFacts, Policy, Protection, TableFacts
from secant.schema import types as t
from secant.schema.catalog import Table, catalog
from secant.sensitivity.bounds import GlobalBound
from secant.sensitivity.certificate import Certificate, Refusal
from secant.sensitivity.elastic import rules
from secant.sensitivity.elastic.amounts import (
    ONE,
    ZERO,
    Figure,
    add,
    computation,
    least,
    measured,
    most,
    number,
    shown,
    times,
)
from secant.sensitivity.elastic.analysis import ElasticAnalysis
from secant.sensitivity.elastic.groups import plain, reached
from secant.sensitivity.explain import derivation
from secant.sensitivity.interface import Request
from secant.sql.bind import from_sql

BETA = Fraction(1, 10)
TABLES = {"r": ("a", "b"), "s": ("b", "c"), "p": ("a", "w"), "u": ("k", "a")}
CATALOG = catalog(
    *(
        Table(name, tuple((c, t.INTEGER) for c in columns), (("k",),) if name == "u" else ())
        for name, columns in TABLES.items()
    )
)
PROTECTION = Protection("rows", "rows", Fraction(1), tables=("r", "s", "u"))
FACTS = {
    "r": TableFacts((), {}, {"a": ColumnFacts(values=(1, 2)), "b": ColumnFacts(range=(0, 2))}),
    "s": TableFacts((), {}, {"c": ColumnFacts(values=(1, 2))}),
}
POLICY = Policy("", FACTS, (PROTECTION,))


def release_of(text: str, policy: Policy = POLICY) -> MeasuredAggregate:
    plan = normalize(from_sql(text, CATALOG))
    aggregate = next(x for x in n.walk(plan) if isinstance(x, n.Aggregate))
    release = enforce(aggregate, "released", Facts(policy, CATALOG), policy.protections)
    assert isinstance(release, MeasuredAggregate), release
    return release


def bound_of(text: str, policy: Policy = POLICY):
    request = Request(release_of(text, policy), Facts(policy, CATALOG), policy.protections[0])
    return ElasticAnalysis().bound(request)


def survey_of(text, policy=POLICY):
    found = bound_of(text, policy)
    assert isinstance(found, Certificate), found
    bound = next(iter(found.bounds.values()))
    (survey,) = bound.surveys
    return survey, bound, found


def figures_of(survey, **tables):
    database = {"r": [], "s": [], "p": [], "u": [], **tables}
    return tuple(tuple(evaluate(s, database)) for s in survey.statements)


def smooth(text, beta=BETA, **tables):
    survey, _, _ = survey_of(text)
    return survey.rows(beta, figures_of(survey, **tables))


def largest(formula, beta=BETA):
    return max(math.exp(-beta * k) * formula(k) for k in range(2000))


# ── formulas ─────────────────────────────────────────────────────────────────────────────────────

R = [(1, 1), (2, 1), (1, 1), (1, 2), (1, None), (2, None), (3, None), (4, None)]
S = [(1, 1), (1, 2), (2, 1)]


@pytest.mark.parametrize(
    ("text", "formula"),
    [
        ("SELECT count(*) FROM r", lambda k: 1),
        ("SELECT count(*) FROM r, s WHERE r.b = s.b", lambda k: 3 + k),
        ("SELECT count(*) FROM r, s WHERE r.b = s.b AND r.a = 1", lambda k: 2 + k),
        ("SELECT count(*) FROM r, s", lambda k: 8 + k),
        ("SELECT count(*) FROM r, s WHERE r.b <= s.b", lambda k: 8 + k),
        ("SELECT count(*) FROM r x, r y WHERE x.b = y.b", lambda k: 2 * (3 + k) + 1),
        ("SELECT count(*) FROM r x, r y WHERE x.b = y.b AND x.a = y.a", lambda k: 2 * (2 + k) + 1),
        ("SELECT count(*) FROM (SELECT a FROM r UNION ALL SELECT b FROM r) x", lambda k: 2),
        ("SELECT count(*) FROM (SELECT b FROM r UNION ALL SELECT b FROM s) x", lambda k: 1),
        ("SELECT count(*) FROM r LEFT JOIN s ON r.b = s.b", lambda k: 2 * (3 + k)),
        ("SELECT count(*) FROM p LEFT JOIN s ON p.a = s.b", lambda k: 2 * 3),
        ("SELECT count(*) FROM r, u WHERE r.a = u.k", lambda k: 4 + k),
        ("SELECT count(*) FROM (SELECT b, count(*) AS m FROM r GROUP BY b) x, s WHERE x.b = s.b",
         lambda k: 2 * (2 + k)),
        ("SELECT count(*) FROM r x, r y, r z WHERE x.b = y.b AND y.b = z.b",
         lambda k: 3 * (3 + k) ** 2 + 3 * (3 + k) + 1),
    ],
)  # fmt: skip
def test_the_bound_is_the_formula_at_its_best_distance(text, formula):
    public = [(1, 1), (1, 2), (1, 3), (None, 1), (None, 2), (None, 3), (None, 4)]
    found = smooth(text, r=R, s=S, p=public)
    assert float(found) == pytest.approx(largest(formula), rel=1e-12)
    assert found >= Fraction(largest(formula)) * (1 - Fraction(1, 10**12))


def test_an_empty_database_has_noise():
    """Without rows, the bound is that of k rows that could come: 1 / (e beta), about."""
    assert float(smooth("SELECT count(*) FROM r, s WHERE r.b = s.b")) == pytest.approx(
        largest(lambda k: k)
    )


def test_a_giant_key_is_seen_and_rows_with_null_are_not():
    rows = [(1, 1)] * 500 + [(1, None)] * 3000
    text = "SELECT count(*) FROM r, s WHERE r.b = s.b"
    assert float(smooth(text, r=rows)) == pytest.approx(largest(lambda k: 500 + k))


def test_a_public_table_does_not_grow():
    text = "SELECT count(*) FROM r, p WHERE r.a = p.a"
    survey, _, _ = survey_of(text)
    assert len(survey.statements) == 1
    assert smooth(text, r=R * 100, p=[(1, 1), (1, 2)]) == 2


def test_copies_of_a_table_share_their_statements():
    copies = ", ".join(f"r x{i}" for i in range(10))
    ties = " AND ".join(f"x{i}.b = x{i + 1}.a" for i in range(9))
    survey, _, _ = survey_of(f"SELECT count(*) FROM {copies} WHERE {ties}")
    assert len(survey.statements) <= 4
    answers = tuple(((5,),) for _ in survey.statements)
    assert survey.rows(BETA, answers) > 5**9


def test_a_column_that_a_union_converts_is_not_counted_by(monkeypatch):
    """Whole numbers that differ can be equal as reals: then other columns bound how many rows agree."""
    text = (
        "SELECT count(*) FROM (SELECT r.a FROM r, s WHERE r.b = s.b UNION ALL "
        "SELECT CAST(b AS DOUBLE) FROM s WHERE b > 5) x, (SELECT CAST(a AS DOUBLE) AS d FROM u) y "
        "WHERE x.a = y.d"
    )
    rows = {"r": [(2**53, 1), (2**53 + 1, 1)], "s": [(1, 1)]}
    meets = 2  # rows that come with the row (9, 2^53) of u
    assert smooth(text, Fraction(20), **rows) >= meets

    def converted(node, side, columns):
        names = {a.name: b.name for a, b in zip(node.columns, fields_of(side), strict=True)}
        return {c: names[c] for c in columns}

    monkeypatch.setattr(rules, "names_on_side", converted)
    assert smooth(text, Fraction(20), **rows) < meets


def test_beta_must_be_positive():
    survey, _, _ = survey_of("SELECT count(*) FROM r, s WHERE r.b = s.b")
    with pytest.raises(UsageError):
        survey.rows(Fraction(0), figures_of(survey))


# ── measures ─────────────────────────────────────────────────────────────────────────────────────


def test_each_row_moves_a_sum_by_its_largest_summand():
    found = bound_of("SELECT sum(r.b), count(*), count(DISTINCT s.c) FROM r, s WHERE r.b = s.b")
    assert isinstance(found, Certificate)
    assert [bound.each for bound in found.bounds.values()] == [2, 1, 1]


def test_a_query_without_protected_tables_does_not_move():
    found = bound_of("SELECT count(*) FROM p")
    assert isinstance(found, Certificate)
    assert set(found.bounds.values()) == {GlobalBound(Fraction(0))}


# ── keys ─────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("text", "groups", "keyed"),
    [
        ("SELECT r.a, count(*) FROM r GROUP BY r.a", 1, ()),
        ("SELECT r.a, count(*) FROM r, s WHERE r.a = s.c GROUP BY r.a", 1, (True, True)),
        ("SELECT r.a, count(*) FROM r, s WHERE r.b = s.b GROUP BY r.a", 3, (True, False)),
        ("SELECT x.a, count(*) FROM r x, r y WHERE x.a = y.a GROUP BY x.a", 1, (True,)),
        ("SELECT x.a, count(*) FROM r x, p WHERE x.b = p.a GROUP BY x.a", 1, (False,)),
        ("SELECT r.a, s.c, count(*) FROM r, s WHERE r.b = s.b GROUP BY r.a, s.c", 9, (False, False)),
    ],
)  # fmt: skip
def test_groups_that_one_row_moves(text, groups, keyed):
    survey, bound, certificate = survey_of(text)
    assert (bound.groups, sorted(survey.keyed)) == (groups, sorted(keyed))
    assert certificate.groups == groups


def test_a_row_that_is_used_with_two_keys_moves_two_groups():
    text = (
        "SELECT x.g, count(*) FROM (SELECT a AS g FROM r WHERE a IN (1, 2, 3) UNION ALL "
        "SELECT b FROM r WHERE b IN (1, 2, 3)) x WHERE x.g IN (1, 2, 3) GROUP BY x.g"
    )
    _, bound, _ = survey_of(text)
    assert bound.groups == 2


def test_keys_that_follow_from_rows_need_no_list():
    """Looked up in a public table, by reference: their number is not known before."""
    policy = Policy("", {"r": TableFacts((), {"a": ("p", "a")}, {})}, (PROTECTION,))
    text = "SELECT r.a, count(*) FROM r JOIN s ON r.{} = s.c GROUP BY r.a"
    assert [type(d) for d in release_of(text.format("a"), policy).domains] == [Looked]
    assert survey_of(text.format("a"), policy)[1].groups == 1
    refused = bound_of(text.format("b"), policy)
    assert isinstance(refused, Refusal)
    assert (refused.rule, "declare" in refused.hint) == ("elastic.keys", True)


def test_keys_are_followed_through_the_plan():
    release = release_of("SELECT x.a, count(*) FROM r x, r y WHERE x.a = y.a GROUP BY x.a")
    assert reached(release.exact.input, plain(("x.a",)), frozenset({"r"})) == {("r", ("a",))}
    loose = release_of("SELECT x.a, count(*) FROM r x, r y WHERE x.b = y.b GROUP BY x.a")
    ways = reached(loose.exact.input, plain(("x.a",)), frozenset({"r"}))
    assert ways == {("r", ("a",)), ("r", (None,))}


# ── refusals ─────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("SELECT count(*) FROM (SELECT a FROM r LIMIT 3) x", "elastic.limit"),
        ("SELECT count(*) FROM r WHERE EXISTS (SELECT 1 FROM s WHERE s.b = r.b)", "elastic.filter"),
        ("SELECT count(*) FROM r WHERE a > (SELECT max(c) FROM s)", "elastic.filter"),
        ("SELECT count(x) FROM (SELECT (SELECT max(c) FROM s WHERE s.b = r.b) AS x FROM r) y", "elastic.project"),
        ("SELECT count(*) FROM p JOIN r ON p.a = r.a AND r.b IN (SELECT c FROM s)", "elastic.filter"),
        ("SELECT s.b, count(*) FROM s, r WHERE r.b = s.b GROUP BY s.b", "elastic.keys"),
        ("SELECT median(b), count(*) FROM r", "elastic.rank"),
    ],
)  # fmt: skip
def test_what_has_no_bound_is_refused_with_a_hint(text, rule):
    found = bound_of(text)
    assert isinstance(found, Refusal)
    assert (found.analysis, found.rule) == ("elastic", rule)
    assert found.reason
    assert found.hint


def test_other_kinds_of_protection_are_refused():
    unit = Protection("people", "unit", Fraction(1), unit=("u", "k"))
    found = bound_of("SELECT count(*) FROM u", Policy("", {}, (unit,)))
    assert isinstance(found, Refusal)
    assert found.rule == "elastic.kind"


def test_a_public_limit_and_a_public_subquery_are_no_hindrance():
    text = (
        "SELECT count(*) FROM r, (SELECT a FROM p ORDER BY a LIMIT 2) q "
        "WHERE r.a = q.a AND EXISTS (SELECT 1 FROM p WHERE p.a = r.b)"
    )
    assert smooth(text, r=R, p=[(1, 1), (1, 2), (1, 3)]) == 2


def test_every_table_is_protected_without_a_list():
    everything = Policy("", FACTS, (Protection("rows", "rows", Fraction(1)),))
    survey, _, _ = survey_of("SELECT count(*) FROM r, p WHERE r.a = p.a", everything)
    assert len(survey.statements) == 2


def test_a_derivation_names_tables_and_no_number_of_the_data():
    _, _, certificate = survey_of("SELECT count(*) FROM r, s WHERE r.b = s.b")
    text = "\n".join(derivation(certificate))
    assert "elastic.join" in text
    assert "[rows of s for one b + k] rows differ" in text


# ── amounts ──────────────────────────────────────────────────────────────────────────────────────


def one_figure(rate):
    return measured(Figure(n.Values((), ()), (), None), rate)


def test_amounts_put_constants_together():
    f = one_figure(ONE)
    assert times(f, ZERO) is ZERO
    assert times(f, ONE) is f
    assert add(f, ZERO) is f
    assert add(number(2), number(3)).value == 5
    assert times(number(2), number(3)).value == 6
    assert most(ZERO, ZERO) is ZERO
    assert most(f, ZERO) is f
    assert least(f, f) is f
    assert least(number(2), number(3)).value == 2
    assert most() is ZERO


def test_amounts_know_their_degree_and_value():
    f, still = one_figure(ONE), one_figure(ZERO)
    amount = add(times(f, f, still), least(f, number(7)), most(still, number(2)))
    assert amount.degree == 2
    figures, compute = computation(amount)
    assert len(figures) == 2
    values = [3, 5] if figures[0] is f.figure else [5, 3]
    assert compute(values, 0) == 9 * 5 + 3 + 5
    assert compute(values, 6) == 81 * 5 + 7 + 5


def test_an_amount_without_figures_is_a_number():
    figures, compute = computation(times(number(2), number(3)))
    assert figures == ()
    assert compute((), 100) == 6


def test_amounts_are_written_only_so_deep():
    f = one_figure(number(2))
    assert shown(f) == "[rows of constants + 2 k]"
    amount = f
    for _ in range(30):
        amount = add(times(amount, f), amount)
    assert "..." in shown(amount)
    assert len(shown(amount)) < 2000
