"""Rows that come and go beside values that move, where one row stands in several joined rows, and for MIN and MAX.

All pairs of small databases of two tables that no key joins, of one table joined with itself, and of one with several
public partners, through the product's statements; drawn pairs; and what must be noticed if it is planted: slopes that
do not grow with rows that come, a floor that is left out, joined rows counted where they are, or behind a filter.
"""

import itertools
from dataclasses import replace
from fractions import Fraction

import both_check
import pytest
from both_check import CLOSE, checked

from chance import LONG
from naming_public import name_public
from secant.noise.smooth import CurveNoise
from secant.plan import nodes as n
from secant.plan.rewrites.rewrite import normalize
from secant.policy.check import fit_policy
from secant.policy.file import read_policy
from secant.schema import types as t
from secant.schema.catalog import Table, catalog
from secant.sensitivity import combined
from secant.sensitivity.portfolio import Decomposition, PublicFacts, prepare
from secant.sql.bind import from_sql

CATALOG = catalog(
    Table("r", (("k", t.INTEGER), ("x", t.DOUBLE)), ()),
    Table("s", (("k", t.INTEGER), ("z", t.DOUBLE)), ()),
    Table("u", (("k", t.INTEGER), ("q", t.DOUBLE)), ()),
)
POLICY = """
[database]
source = "duckdb:none"
[tables.r.columns]
k = {{ values = [0, 1] }}
x = {{ range = [0, {most}] }}
[tables.s.columns]
k = {{ values = [0, 1] }}
z = {{ range = [-1, 2] }}
[tables.u.columns]
q = {{ range = [0, 3] }}
[protections.both]
kind = "rows+cells"
epsilon = 10000
softening = {{ kind = "ramp", width = 0.5 }}
distance = {{ r = "x", s = "0.5*z" }}
add_remove = {{ r = {r}, s = {s} }}
"""
PUBLIC = ({"k": 0, "q": 3.0}, {"k": 0, "q": 1.0}, {"k": 1, "q": 0.5})
JOINED = "FROM r JOIN s ON r.k = s.k"
TEXTS = (
    f"SELECT sum(r.x) {JOINED}", f"SELECT count(*) {JOINED}", f"SELECT sum(r.x*r.x*s.z) {JOINED}",
    f"SELECT count(*) {JOINED} WHERE r.x > 1", f"SELECT sum(s.z) {JOINED} WHERE r.x > s.z", f"SELECT avg(r.x) {JOINED}",
    f"SELECT r.k, sum(r.x*r.x), count(*) {JOINED} GROUP BY r.k", f"SELECT variance(s.z) {JOINED} WHERE r.k = 1",
    "SELECT sum(r.x*r.x*u.q) FROM r JOIN u ON r.k = u.k", "SELECT sum(p.x*q.x) FROM r p JOIN r q ON p.k = q.k",
    "SELECT sum(x*z) FROM r CROSS JOIN s",
)  # fmt: skip
EXTREME = (
    "SELECT min(x) FROM r", "SELECT max(x*x) FROM r WHERE x > 1", f"SELECT min(r.x*s.z), count(*) {JOINED}",
    "SELECT k, max(x) FROM r GROUP BY k", f"SELECT max(r.x + s.z) {JOINED}", "SELECT max(k) FROM r",
)  # fmt: skip
SETTINGS = tuple(
    (Fraction(e), g)
    for e, g in ((1, ("1.5", "1")), (3, ("6", "3")), (4, ("0.5", "1")), (8, ("1", "2")))
)


def world(weights, most="4"):
    text = POLICY.format(r=weights[0], s=weights[1], most=most)
    return fit_policy(name_public(read_policy(text), CATALOG), CATALOG)


def asked(text, weights, epsilon, most="4", ratio=None):
    policy = world(weights, most)
    if ratio is not None:
        (only,) = policy.protections
        policy = replace(policy, protections=(replace(only, beta=epsilon / ratio),))
    return both_check.Question(text, epsilon, CATALOG, policy)


def named(weights):
    return {"r": ("x", weights[0]), "s": ("0.5*z", weights[1])}


def small(values, others=(2.0,)):
    """Give all databases of at most two rows a table."""
    first = [{"k": k, "x": x} for k in (0, 1) for x in values]
    second = [{"k": k, "z": z} for k in (0, 1) for z in others]
    tables = [
        [c for size in range(3) for c in itertools.combinations_with_replacement(rows, size)]
        for rows in (first, second)
    ]
    return [{"r": r, "s": s, "u": PUBLIC} for r in tables[0] for s in tables[1]]


@pytest.mark.parametrize("text", [*TEXTS, *EXTREME])
def test_all_pairs_of_small_databases(text):
    databases = small((0.0, 1.1, 4.0), (-1.0, 2.0)) if LONG else small((0.5, 4.0))
    for epsilon, weights in SETTINGS if LONG else SETTINGS[1:3]:
        question = asked(text, weights, epsilon)
        worst, smooth = checked(question, databases, named(weights))
        assert worst <= 1 + CLOSE, (text, float(epsilon), weights, worst)
        assert smooth <= 1 + CLOSE, (text, float(epsilon), weights, smooth)


def drawn(draw):
    """Draw a database of up to four rows a table, and one near to it."""

    def table(column, low, high, most):
        return [
            {"k": draw.choice((0, 0, 1)), column: draw.uniform(low, high)}
            for _ in range(draw.randint(0, most))
        ]

    def near(rows, column, low, high):
        kept = [dict(r) for r in rows if draw.random() < 0.8]
        for r in kept:
            if draw.random() < 0.5:
                r[column] += draw.gauss(0, draw.choice((0.01, 0.3, 2)))
        return kept + (table(column, low, high, 2) if draw.random() < 0.4 else [])

    r, s = table("x", -1, 5, 4), table("z", -2, 3, 3)
    other = near(r, "x", -1, 5), near(s, "z", -2, 3)
    return (
        {"r": tuple(r), "s": tuple(s), "u": PUBLIC},
        {"r": tuple(other[0]), "s": tuple(other[1]), "u": PUBLIC},
    )


def search(texts, settings, count, seed="rows in several joined rows"):
    def measured(question, databases, weights, pairs):
        return checked(question, databases, named(weights), pairs)

    return both_check.search(asked, drawn, measured, texts, settings, count, seed)


def test_no_drawn_pair_is_told_apart_better(record_property):
    worst, pairs = search(
        (*TEXTS, *EXTREME), SETTINGS if LONG else SETTINGS[2:3], 1000 if LONG else 15
    )
    record_property("pairs", pairs)
    assert worst[0] <= 1 + CLOSE, worst


# ── planted ──────────────────────────────────────────────────────────────────────────────────────


def _no_growth(patch):
    patch.setattr(combined, "coming_part", lambda beta, weight, slope: Fraction(0))


def _no_floor(patch):
    patch.setattr(combined, "_each", lambda slope, jump, nearest: lambda beta: Fraction(0))


def _counted_where_they_are(patch):
    patch.setattr(CurveNoise, "rate", property(lambda self: Fraction(1000)))


def _no_jumps(patch):
    patch.setattr(combined, "jump_part", lambda beta, weight, jump: Fraction(0))


def _behind_the_filter(patch):
    original = combined.CombinedAnalysis._asked

    def asked_behind(self, analysis, request, protection):
        if analysis is self.joins:
            rows = request.release.exact.input
            column = n.Column("r.x", t.DOUBLE)
            condition = n.Compare(">", column, n.Literal(1.0, t.DOUBLE))
            behind = replace(rows, input=n.Filter(rows.input, condition))
            exact = replace(request.release.exact, input=behind)
            request = replace(request, release=replace(request.release, exact=exact))
        return original(self, analysis, request, protection)

    patch.setattr(combined.CombinedAnalysis, "_asked", asked_behind)


FLAT, FILTERED = f"SELECT sum(r.x) {JOINED}", f"SELECT count(*) {JOINED} WHERE r.x > 1"
FAULTS = {
    "slopes do not grow with rows that come": (_no_growth, FLAT, "0.05", (0.0, 0.025, 0.05), 10),
    "no floor at all": (_no_floor, FLAT, "0.05", (0.0, 0.05), 10),
    "joined rows counted where they are": (_counted_where_they_are, FLAT, "4", (0.0, 4.0), 2),
    "rows that come do not jump": (_no_jumps, f"SELECT count(*) {JOINED}", "4", (0.0, 4.0), 2),
    "joined rows counted behind the filter": (_behind_the_filter, FILTERED, "4", (0.99, 1.01), 2),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_planted_fault_is_noticed(fault, monkeypatch):
    plant, text, most, values, least = FAULTS[fault]
    weights, epsilon = ("1.5", "1"), Fraction(1)
    right = checked(asked(text, weights, epsilon, most, 4), small(values), named(weights))
    assert max(right) <= 1 + CLOSE
    plant(monkeypatch)
    wrong = checked(asked(text, weights, epsilon, most, 4), small(values), named(weights))
    assert max(wrong) > least, (fault, wrong)


@pytest.mark.parametrize(
    ("text", "epsilon"), [("SELECT max(x) FROM r", 1), ("SELECT min(x*x) FROM r", 8)]
)
def test_a_range_that_is_left_out_is_noticed(text, epsilon, monkeypatch):
    """Planted: a row that comes moves MIN and MAX no farther than values do."""
    weights = ("0.5", "1")
    databases = small((0.0, 1.1, 4.0))
    assert (
        max(checked(asked(text, weights, Fraction(epsilon)), databases, named(weights)))
        <= 1 + CLOSE
    )
    monkeypatch.setattr(combined, "whole_range", lambda call, step: Fraction(0))
    wrong = checked(asked(text, weights, Fraction(epsilon)), databases, named(weights))
    assert max(wrong) > 1.05, wrong


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (f"SELECT r.k, min(r.x) {JOINED} GROUP BY r.k", "least or greatest of several groups"),
        ("SELECT median(x) FROM r", "no derivative"),
        ("SELECT median(k) FROM r", "no derivative"),
        (f"SELECT count(*) FROM (SELECT DISTINCT r.k {JOINED}) AS d", ""),
    ],
)  # fmt: skip
def test_what_has_no_proof_is_refused_with_a_reason(text, reason):
    policy = world(("1", "1"))
    plan = normalize(from_sql(text, CATALOG))
    found = prepare(plan, policy, policy.protections, CATALOG, PublicFacts(Fraction(3)))
    assert not isinstance(found, Decomposition)
    assert any(reason in refusal.reason and refusal.hint for refusal in found), found
