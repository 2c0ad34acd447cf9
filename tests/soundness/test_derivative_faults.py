"""The checks notice wrong rules: each planted fault is found by the pairs that the right rule passes."""

import random

import pytest
from derivative_check import ask
from derivative_faults import FAULTS
from derivative_moves import Tally, attack, mover
from derivative_worlds import small_database, small_world

PAIRS = 240


def searched(fault, *, first=False):
    world = small_world(
        fault.norms, rows=fault.rows, tables=fault.tables, settings=fault.settings, keys=fault.keys
    )
    questions = ask(fault.text, world, beta=fault.beta)
    if isinstance(questions, str):
        return questions
    tally = Tally()
    moves = mover(world, fault.text, fault.still)
    attack(
        random.Random(7), questions, moves, small_database(clean=True), PAIRS, tally, first=first
    )
    return tally


@pytest.mark.parametrize("fault", FAULTS, ids=lambda f: f"{f.rule}: {f.what}")
def test_a_planted_fault_is_caught(fault, monkeypatch):
    right = searched(fault)
    if fault.what != "one row in several groups":  # the right rule refuses that one
        assert not isinstance(right, str), right
        assert not right.violations, right.violations[-1]
    fault.plant(monkeypatch)
    wrong = searched(fault, first=True)
    assert not isinstance(wrong, str), wrong
    assert wrong.violations, f"{fault.what} was not noticed: nearest {wrong.nearest:.4f}"
