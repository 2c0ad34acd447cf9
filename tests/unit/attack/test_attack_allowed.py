"""From what may be guessed to epsilon, and back; and what was charged before counts (attack.inverse)."""

import math
import re
import subprocess
import sys
from fractions import Fraction

import pytest

from secant.attack import (
    Amount,
    Charged,
    aimed,
    allowed_epsilon,
    attack_lines,
    attack_report,
    chance,
    parse_attacker,
)
from secant.attack.attacker import UNITS, largest_epsilon, reached
from secant.errors import Refused, UsageError
from secant.ledger import Budget, Charge, Ledger
from secant.noise.events import PureEvent
from secant.policy.file import read_policy
from secant.stages.guess_limit import charged_before

POLICY = read_policy("""
[database]
source = "duckdb:x.duckdb"
[tables.people.columns]
age = { range = [0, 100], step = 1 }
flat = { range = [0, 100], distribution = "uniform" }
bell = { range = [0, 100], distribution = "normal", mean = 30, deviation = 10 }
income = { range = [1, 1000], distribution = "normal", mean = 300, deviation = 100 }
pieces = { prior = { edges = [0, 10, 50, 100], shares = [1, 5, 2] } }
ward = { values = ["north", "south", "east"], prior = [3, 1, 6] }
town = { total = 10 }
note = { }

[protections.cells]
kind = "cells"
epsilon = 2
[protections.cells.distance]
people = "l1(0.1*age, 0.1*flat, 0.1*bell, 3*ln(income), 0.1*pieces)"

[protections.rows]
kind = "rows"
tables = ["people"]
epsilon = 3

[protections.others]
kind = "rows"
tables = ["houses"]
epsilon = 3
""")
CELLS, ROWS, OTHERS = POLICY.protections
CASES = [
    ("people.age within 2 at most 30%", CELLS),
    ("people.flat within 2 at most 10%", CELLS),
    ("people.bell within 2 at most 30%", CELLS),
    ("people.bell within 2 of 30 at most 30%", CELLS),
    ("people.income within 20 advantage at most 20%", CELLS),
    ("people.pieces within 2 at most 25%", CELLS),
    ("people.(age, flat) within 2 at most 5%", CELLS),
    ("people.age within 2 or people.bell within 1 at most 40%", CELLS),
    ("people.age within 2 prior any advantage at most 10%", CELLS),
    ("people.age within 2 at most 30% on average", CELLS),
    ("people.age within 2 at most 30%", ROWS),
    ("people.ward exactly at most 80%", ROWS),
    ("people.ward is 'south' advantage at most 5%", ROWS),
    ("people.town exactly at most 30%", ROWS),
    ("people.note exactly advantage at most 15%", ROWS),
    ("people member 10% at most 30%", ROWS),
    ("people member 10% at most 95% on average", ROWS),
    ("people.age within 2 and people[2].age within 2 dependent at most 30%", ROWS),
]


def guessed(attacker, protection, *amounts):
    """Give the number that is held against what is allowed."""
    if attacker.goal is None:
        report = attack_report(
            attacker,
            POLICY,
            [{"protection": protection.name, "epsilon": str(amounts[0].epsilon), "delta": 0}],
        )
        key = "on_average" if attacker.allowed.on_average else "posterior"
        return report[0]["answer"][key]
    return reached(attacker.allowed, chance(aimed(attacker, POLICY, protection, None), amounts))


@pytest.mark.parametrize(("text", "protection"), CASES)
def test_put_back_it_gives_what_was_wanted_and_never_more(text, protection):
    attacker = parse_attacker(text)
    found = allowed_epsilon(attacker, POLICY, protection)
    share = attacker.allowed.share
    back = guessed(attacker, protection, Amount(found))
    assert Fraction(back) <= share
    assert back == pytest.approx(float(share), abs=1e-6)
    # planted: a thousandth more is too much, so that rounding up would be noticed
    assert guessed(attacker, protection, Amount(found * Fraction("1.001"))) > share


@pytest.mark.parametrize(
    ("text", "protection"),
    [c for c in CASES if not re.search("member|income|pieces|bell", c[0])],
)
def test_what_was_spent_counts(text, protection):
    attacker = parse_attacker(text)
    whole = allowed_epsilon(attacker, POLICY, protection)
    spent = Fraction(math.floor(whole * UNITS / 3), UNITS)
    left = allowed_epsilon(attacker, POLICY, protection, charged=Charged(spent))
    assert float(left + spent) == pytest.approx(float(whole), abs=2e-9, rel=1e-6)
    both = guessed(attacker, protection, Amount(spent), Amount(left))
    assert Fraction(both) <= attacker.allowed.share
    # planted: forgetting what was spent would let more be guessed
    assert guessed(attacker, protection, Amount(spent), Amount(whole)) > attacker.allowed.share
    beyond = Charged(2 * whole)
    assert allowed_epsilon(attacker, POLICY, protection, charged=beyond) == 0
    strange = Charged(spent, gamma=Fraction(1, 10))
    assert allowed_epsilon(attacker, POLICY, protection, charged=strange) == 0


def test_the_known_figures():
    def epsilon(text, protection):
        return float(allowed_epsilon(parse_attacker(text), POLICY, protection))

    assert epsilon("people member 10% at most 30%", ROWS) == pytest.approx(1.3499, abs=1e-4)
    # 10 values alike: an attribute of somebody who is known to be in takes half of it
    assert epsilon("people.town exactly at most 30%", ROWS) == pytest.approx(0.6750, abs=1e-4)
    assert epsilon("people.flat within 2 at most 10%", CELLS) == pytest.approx(0.2378, abs=1e-4)
    known = epsilon("people.note exactly advantage at most 15%", ROWS)
    assert known == pytest.approx(2 * math.atanh(0.15), abs=1e-8)


def test_a_question_that_does_not_read_it_sets_no_limit():
    attacker = parse_attacker("people.age within 2 at most 30%")
    for reads, limited in (
        ({"people": frozenset({"age"})}, True),
        ({"people": frozenset({"flat"})}, False),
        ({"houses": frozenset({"age"})}, False),
        (None, True),
    ):
        found = allowed_epsilon(attacker, POLICY, CELLS, reads=reads)
        assert (found is not None) == limited
    # Of a row that is protected as a whole every column may tell.
    assert allowed_epsilon(attacker, POLICY, ROWS, reads={"people": frozenset()}) is not None
    assert allowed_epsilon(attacker, POLICY, ROWS, reads={"houses": frozenset()}) is None
    assert allowed_epsilon(attacker, POLICY, OTHERS) is None


def test_what_has_no_bound_is_refused_with_what_to_do():
    def refused(text, protection, **options):
        with pytest.raises(Refused) as caught:
            allowed_epsilon(parse_attacker(text), POLICY, protection, **options)
        assert caught.value.code == "REF-107"
        return caught.value.hint

    assert "advantage" in refused("people.note exactly at most 30%", ROWS)
    assert "on average" in refused("people.age within 2 at most 30%", ROWS, delta=Fraction("1e-6"))
    with pytest.raises(UsageError, match="how much is allowed"):
        allowed_epsilon(parse_attacker("people.age within 2"), POLICY, ROWS)


def test_delta_is_part_of_the_average():
    attacker = parse_attacker("people.age within 2 at most 20% on average")
    plain = allowed_epsilon(attacker, POLICY, ROWS)
    loose = allowed_epsilon(attacker, POLICY, ROWS, delta=Fraction("0.01"))
    assert 0 < loose < plain
    assert allowed_epsilon(attacker, POLICY, ROWS, delta=Fraction("0.2")) == 0


def test_a_report_tells_what_is_left():
    charge = [{"protection": "rows", "epsilon": 0.5, "delta": 0}]
    text = "people.town exactly at most 30%"
    (entry,) = attack_report(text, POLICY, charge, charged={"rows": Charged(Fraction("0.2"))})
    assert entry["allowed"]["epsilon"] == pytest.approx(0.67496336, abs=1e-6)
    assert entry["allowed"]["left"] == pytest.approx(0.47496336, abs=1e-6)
    assert entry["spent"]["epsilon"] == 0.2
    odds = 9 * math.exp(-1.4)
    assert entry["together"]["posterior"] == pytest.approx(1 / (1 + odds))
    lines = attack_lines(text, [entry])
    assert any("all answers so far (epsilon 0.2): from 10 % to at most" in line for line in lines)
    assert any("both together (epsilon 0.7)" in line for line in lines)
    assert any("at most 30 %: epsilon 0.67496" in line and "0.47496" in line for line in lines)
    (gone,) = attack_report(text, POLICY, charge, charged={"rows": Charged(Fraction(2))})
    assert "nothing is left of it" in gone["allowed"]["words"]
    (strange,) = attack_report(
        text, POLICY, charge, charged={"rows": Charged(gamma=Fraction(1, 5))}
    )
    assert strange["spent"]["posterior"] is None
    assert "random differential privacy" in strange["together"]["words"]
    (hopeless,) = attack_report("people.town exactly at most 5%", POLICY, charge)
    assert "no epsilon keeps to that (before any answer: 10 %)" in hopeless["allowed"]["words"]
    (free,) = attack_report(
        "people.town exactly prior values('a', 'b') at most 99.9999999%", POLICY, charge
    )
    assert free["allowed"]["epsilon"] > 5


def test_odds_are_never_above_one():
    """Odds of all answers together: the product of factors that the literature prints exceeds 1."""
    charge = [{"protection": "rows", "epsilon": 1, "delta": 0}]
    before = {"rows": Charged(Fraction(1))}
    (entry,) = attack_report("people member 50%", POLICY, charge, charged=before)
    assert entry["together"]["posterior"] == pytest.approx(1 / (1 + math.exp(-2)))
    assert math.exp(1) * entry["spent"]["posterior"] > 1  # planted: the printed corollary


@pytest.mark.parametrize("allowed", [0.2, 0.5, 0.999])
def test_the_search_finds_the_last_billionth(allowed):
    def bound(epsilon):
        return 1 / (1 + 9 * math.exp(-float(epsilon)))

    found = largest_epsilon(allowed, bound)
    assert bound(found) <= allowed
    assert bound(found + Fraction(10, UNITS)) > allowed - 1e-9
    assert largest_epsilon(0.05, bound) == 0
    assert largest_epsilon(0.9, lambda e: 0.5) is None
    steps = largest_epsilon(0.5, lambda e: 0.1 if e < Fraction("0.123456789") else 0.9)
    assert steps == Fraction("0.123456788")


def test_what_was_charged_is_summed_and_not_read_off_a_tighter_composition(tmp_path):
    budgets = {"people": Budget.of(10, "1e-5")}
    with Ledger.open(tmp_path / "a.ledger", budgets) as ledger:
        for _ in range(60):
            ledger.reserve([Charge.of_event("people", PureEvent("0.1"))]).mark_sent()
        balance = ledger.balances()["people"]
        found = charged_before(ledger)["people"]
    assert (found.epsilon, found.delta, found.gamma) == (6, 0, 0)
    # planted: what is printed as spent so far is less, and depends on the answers
    assert balance.spent.epsilon < 6 * 10**9
    assert balance.spent.delta > 0


def test_a_command_does_not_wait_for_what_a_simulation_needs():
    code = "import sys, secant.engine; sys.exit('scipy.special' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
