"""A protection of rows beside one of values: one smooth bound for both (combined.beside).

All pairs of small databases through the product's statements, under the distance that both promises make together: a
row counts as 1. It is more than either promises by itself. Planted: a bound that is smooth for values alone.
"""

from fractions import Fraction

import both_check
import pytest
from both_check import CLOSE, checked
from test_rows_in_several_joined_rows import CATALOG, JOINED, small

from naming_public import name_public
from secant.noise.measure_noise import PlainNoise
from secant.noise.smooth import CurveNoise
from secant.policy.check import fit_policy
from secant.policy.file import read_policy
from secant.sensitivity import bound as bounding
from secant.sensitivity import combined

POLICY = """
[database]
source = "duckdb:none"
[tables.r.columns]
k = {{ values = [0, 1] }}
x = {{ range = [0, 4] }}
[tables.s.columns]
z = {{ range = [-1, 2] }}
[protections.present]
kind = "rows"
epsilon = 10000
tables = {tables}
{replace}
[protections.near]
kind = "cells"
epsilon = 10000
softening = {{ kind = "ramp", width = 0.1 }}
distance = {{ r = "x" }}
{norms}
"""
BOTH, ONE = '["r", "s"]', '["r"]'
TEXTS = (
    ("SELECT count(*) FROM r WHERE x > 1", ONE), ("SELECT sum(x*x*x) FROM r", ONE),
    ("SELECT k, sum(x*x*x) FROM r GROUP BY k", ONE), (f"SELECT sum(r.x) {JOINED}", BOTH),
    (f"SELECT count(*) {JOINED} WHERE r.x > 1", BOTH), (f"SELECT sum(r.x*s.z) {JOINED}", BOTH),
)  # fmt: skip


def asked(text, tables, epsilon, replace="", norms=""):
    policy = read_policy(POLICY.format(tables=tables, replace=replace, norms=norms))
    policy = fit_policy(name_public(policy, CATALOG), CATALOG)
    return both_check.Question(text, Fraction(epsilon), CATALOG, policy)


def named(tables):
    """Rows of a table that nobody hides stay, and so does what no norm names."""
    return {"r": ("x", "1"), "s": (None, "1" if tables == BOTH else "1e9")}


@pytest.mark.parametrize(("text", "tables"), TEXTS)
def test_one_bound_serves_rows_and_values(text, tables):
    databases = small((0.5, 1.02, 4.0), () if tables == ONE else (2.0,))
    for epsilon in (1, 3, 8):
        question = asked(text, tables, epsilon)
        worst, smooth = checked(question, databases, named(tables))
        assert worst <= 1 + CLOSE, (text, epsilon, worst)
        assert smooth <= 1 + CLOSE, (text, epsilon, smooth)
        costs = [epsilon_ for epsilon_, _ in question.calibrated.costs.values()]
        assert max(costs) <= epsilon
        if all(isinstance(x, CurveNoise) for x in question.noise.values()):
            assert min(costs) == epsilon


def test_at_the_cap_each_pays_for_what_moves_it():
    """A row moves the count by 1, a value on the narrow ramp ten times as fast: the row is hidden ten times as well."""
    costs = asked(*TEXTS[0], 1).calibrated.costs
    assert costs["near"][0] == 1
    assert float(costs["present"][0]) == pytest.approx(0.1, rel=0.01)


def test_smooth_noise_where_it_pays_and_where_no_cap_is():
    """At a large epsilon the count beside a narrow ramp, at any epsilon a join that nothing caps."""
    count, join = TEXTS[0], TEXTS[3]
    assert isinstance(next(iter(asked(*count, 1).noise.values())), PlainNoise)
    assert isinstance(next(iter(asked(*count, 8).noise.values())), CurveNoise)
    assert isinstance(next(iter(asked(*join, 1).noise.values())), CurveNoise)


def _values_alone(patch):
    patch.setattr(combined, "_least", lambda slope, nearest, jumps: lambda beta: Fraction(0))
    patch.setattr(combined, "_each", lambda slope, jump, nearest: lambda beta: Fraction(0))


def _one_table_forgotten(patch):
    patch.setattr(bounding, "tables_read", lambda *plans: frozenset({"r"}))


FAULTS = (
    # At a larger epsilon the floor that the count has for its values alone hides rows as well.
    ("a bound that is smooth for values alone", _values_alone, TEXTS[0], 3),
    ("a bound that is smooth for values alone", _values_alone, TEXTS[3], 8),
    ("rows of one table forgotten", _one_table_forgotten, TEXTS[3], 8),
)


@pytest.mark.parametrize(("fault", "plant", "question", "epsilon"), FAULTS)
def test_a_planted_fault_is_noticed(fault, plant, question, epsilon, monkeypatch):
    text, tables = question
    plant(monkeypatch)
    databases = small((0.5, 1.02, 4.0), () if tables == ONE else (2.0,))
    wrong = checked(asked(text, tables, epsilon), databases, named(tables))
    assert max(wrong) > 1.05, (fault, wrong)


def test_beside_rows_that_are_replaced_the_cap_holds():
    question = asked(*TEXTS[0], 8, replace="replace = true")
    assert isinstance(next(iter(question.noise.values())), PlainNoise)


def test_beside_rows_that_do_not_add_up_nothing_is_answered():
    with pytest.raises(AssertionError, match="several protections are moved"):
        asked(*TEXTS[0], 8, norms='rows = { r = "l2" }')


def test_the_portfolio_asks_for_one_bound_only_beside_one_other_protection(monkeypatch):
    called = []
    original = bounding.CombinedAnalysis.beside
    monkeypatch.setattr(
        bounding.CombinedAnalysis,
        "beside",
        lambda self, request, weights: called.append(weights) or original(self, request, weights),
    )
    asked(*TEXTS[3], 1)
    assert called == [{"r": 1, "s": 1}]
