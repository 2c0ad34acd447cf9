"""What an owner may say about how values lie, how it is read, and that it never stands for a declared range."""

import datetime
import math
from decimal import Decimal
from fractions import Fraction

import pytest

from secant.attack import attack_report, parse_attacker
from secant.attack.beliefs import belief_of
from secant.attack.priors import Histogram, Normal, Uniform, Weights
from secant.errors import PolicyError
from secant.policy.beliefs import Belief, reach_of, suggested_range
from secant.policy.check import check_policy, fit_policy
from secant.policy.file import read_policy
from secant.schema import types as t
from secant.schema.catalog import Table, catalog

CELLS = '[protections.p]\nkind = "cells"\nepsilon = 1\ndistance = { t = "x" }\n'


def policy_of(column: str, rest: str = CELLS):
    return read_policy(f"[tables.t.columns]\nx = {{ {column} }}\n{rest}")


def facts_of(column: str):
    return policy_of(column).column("t", "x")


@pytest.mark.parametrize(
    ("written", "kind"),
    [
        ("exact = true", None),
        ("total = 5", None),
        ('values = ["a", "b"]', None),
        ("range = [0, 1]", None),
        ('total = 5, distribution = "uniform"', "uniform"),
        ('values = ["a", "b"], distribution = "uniform"', "uniform"),
        ('range = [0, 1], distribution = "uniform"', "uniform"),
        ('values = ["a", "b"], prior = [3, 1]', "weights"),
        ("range = [0, 100], prior = { edges = [0, 10, 100], shares = [0.9, 0.1] }", "histogram"),
        ('distribution = "normal", mean = 40, deviation = 12', "normal"),
    ],
)
def test_all_constraints_of_the_figure_are_read(written, kind):
    facts = facts_of(written)
    assert (facts.belief.kind if facts.belief else None) == kind
    assert facts.exact == ("exact" in written)
    assert facts.total == (5 if "total" in written else None)


def test_shares_are_proportions():
    assert facts_of('values = ["a", "b"], prior = [3, 1]').belief.shares == (
        Fraction(3, 4),
        Fraction(1, 4),
    )


@pytest.mark.parametrize(
    ("written", "sentence"),
    [
        ("exact = 1", "exact: must be true or false"),
        ("total = 0", "total: must be a whole number of at least 1"),
        ('values = ["a"], total = 1', "total: the values are named, so their number is known"),
        ('distribution = "zipf"', "distribution: must be one of uniform, normal"),
        ('distribution = "uniform"', "distribution: uniform over what?"),
        (
            'distribution = "normal", mean = 3',
            "distribution: a normal distribution needs deviation",
        ),
        ('distribution = "normal"', "distribution: a normal distribution needs mean and deviation"),
        ("mean = 3", 'distribution: mean belongs to distribution = "normal"'),
        (
            'distribution = "normal", mean = 3, deviation = -1',
            "deviation: a deviation must be positive",
        ),
        ('distribution = "normal", mean = 3, deviation = 1, tail = 2', "tail: must be a share"),
        (
            'distribution = "normal", mean = 3, deviation = inf',
            "deviation: Infinity is not a finite",
        ),
        ('distribution = "normal", mean = true, deviation = 1', "mean: must be a number or a date"),
        (
            'values = [1, 2], distribution = "normal", mean = 1, deviation = 1',
            "has no list of values",
        ),
        (
            'range = [0, 9], distribution = "normal", mean = "2020-01-01", deviation = 1',
            "of one kind",
        ),
        ('distribution = "normal", mean = "9999-12-01", deviation = 90', "leaves the calendar"),
        ('values = ["a", "b"], prior = [1]', "prior: needs one share for each value: 2, not 1"),
        ('values = ["a", "b"], prior = [0, 0]', "prior: shares must be at least 0, and not all 0"),
        ('values = ["a", "b"], prior = [1, -1]', "prior: shares must be at least 0, and not all 0"),
        ("range = [0, 1], prior = [1]", "prior: must be a list of shares beside values"),
        ("prior = { edges = [0, 0], shares = [1] }", "prior: edges must ascend"),
        ("prior = { edges = [0], shares = [] }", "prior: needs at least two edges"),
        ("range = [0, 1], prior = { edges = [0, 2], shares = [1] }", "leave the declared range"),
        (
            'exact = true, range = [0, 1], distribution = "uniform"',
            "nothing is left to be believed",
        ),
        ('values = ["a"], prior = [1], distribution = "uniform"', "is given by prior already"),
    ],
)
def test_mistakes_are_told_with_their_line(written, sentence):
    with pytest.raises(PolicyError) as caught:
        policy_of(written)
    (told,) = caught.value.details
    assert told.startswith("line 2: tables.t.columns.x.")
    assert sentence in told


def test_a_bell_suggests_three_root_two_deviations_about_its_mean():
    """The seed prints R = μ + 3√2σ: for a mean far below 0 that range would be reversed."""
    for mean in (-1000, 0, 40):
        low, high = suggested_range(Belief("normal", mean, Fraction(12)))
        assert low < mean < high
        assert high - mean == mean - low
        assert 0 <= float(high - mean) - 3 * math.sqrt(2) * 12 <= 0.011
    printed = -1000 + 3 * math.sqrt(2) * 12
    assert -1000 - printed > -1000 + printed


@pytest.mark.parametrize("tail", ["0.3", "1e-3", "1e-12", "1e-100"])
def test_a_tail_leaves_out_no_more_than_it_says(tail):
    reach = float(reach_of(Belief("normal", 0, Fraction(1), Fraction(Decimal(tail)))))
    left_out = math.erfc(reach / math.sqrt(2))
    assert float(tail) * 0.99 <= left_out <= float(tail)


def test_a_suggested_range_is_marked_and_whole_for_whole_numbers():
    policy = policy_of('distribution = "normal", mean = 40, deviation = 12')
    assert policy.column("t", "x").assumed
    for kind, ends in ((t.INTEGER, (-11, 91)), (t.DOUBLE, (Decimal("-10.92"), Decimal("90.92")))):
        schema = catalog(Table("t", (("x", kind),)))
        assert fit_policy(policy, schema).column("t", "x").range == ends
        notes = [p for p in check_policy(policy, schema) if p.severity == "note"]
        assert any("follows from what is believed, and is clamped to" in str(p) for p in notes)


def test_a_declared_range_stays_and_dates_have_days():
    facts = facts_of('range = [0, 50], distribution = "normal", mean = 40, deviation = 12')
    assert (facts.range, facts.assumed) == ((0, 50), False)
    dated = facts_of('distribution = "normal", mean = 2024-01-31, deviation = 2')
    assert dated.range == (datetime.date(2024, 1, 22), datetime.date(2024, 2, 9))
    pieces = facts_of("prior = { edges = [0, 10, 100], shares = [1, 1] }")
    assert (pieces.range, pieces.assumed) == ((0, 100), True)


@pytest.mark.parametrize(
    ("written", "record"),
    [
        ('range = [0, 100], distribution = "uniform"', Uniform(0.0, 100.0)),
        ("values = [1, 2], prior = [3, 1]", Weights((1.0, 2.0), (0.75, 0.25))),
        (
            "range = [0, 100], prior = { edges = [0, 10, 100], shares = [9, 1] }",
            Histogram((0.0, 10.0, 100.0), (0.9, 0.1)),
        ),
        (
            'distribution = "normal", mean = 40, deviation = 12',
            Normal(40.0, 12.0, -10.92, 90.92),
        ),
    ],
)
def test_a_guess_starts_from_what_is_declared(written, record):
    found, _ = belief_of(parse_attacker("t.x within 1").goal, facts_of(written))
    assert found == record


def test_a_named_prior_goes_before_a_declared_one():
    facts = facts_of('distribution = "normal", mean = 40, deviation = 12')
    found, _ = belief_of(parse_attacker("t.x within 1 prior uniform").goal, facts)
    assert isinstance(found, Uniform)


def test_an_exact_value_leaves_nothing_to_guess_and_is_warned_of_in_a_distance():
    policy = policy_of("exact = true, range = [0, 1]")
    charge = [{"protection": "p", "epsilon": 1, "delta": 0}]
    (found,) = attack_report("t.x within 1", policy, charge)
    assert found["guesses"] == "nothing"
    assert "declared exact" in found["words"]
    schema = catalog(Table("t", (("x", t.DOUBLE),)))
    assert any("declared exact" in str(p) for p in check_policy(policy, schema))
