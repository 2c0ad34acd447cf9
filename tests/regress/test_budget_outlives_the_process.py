"""A peer kept the budget in memory: whoever connected again had all of it again."""

import subprocess
import sys

import pytest

import secant
from private_shop import UNIT, open_shop
from secant.errors import BudgetError

COUNT = "SELECT count(*) FROM orders"
PROGRAM = """
import sys, secant
with secant.connect(policy=sys.argv[1]) as db:
    db.sql("SELECT count(*) FROM orders", epsilon=1)
"""


def test_connecting_again_finds_what_was_spent(tmp_path):
    with open_shop(tmp_path, UNIT.replace("epsilon = 100000", "epsilon = 3")) as db:
        policy = db.policy.path
        db.sql(COUNT, epsilon=1)
    subprocess.run([sys.executable, "-c", PROGRAM, str(policy)], check=True, timeout=60)
    with secant.connect(policy=policy) as again:
        assert again.budget["people"].spent_epsilon == 2
        again.sql(COUNT, epsilon=1)
    for _ in range(2):
        with secant.connect(policy=policy) as again, pytest.raises(BudgetError) as caught:
            again.sql(COUNT, epsilon="0.001")
        assert caught.value.code == "BUD-001"


def test_two_open_connections_see_one_budget(tmp_path):
    with (
        open_shop(tmp_path, UNIT.replace("epsilon = 100000", "epsilon = 1")) as first,
        secant.connect(policy=first.policy.path) as second,
    ):
        first.sql(COUNT, epsilon="0.6")
        with pytest.raises(BudgetError):
            second.sql(COUNT, epsilon="0.6")
        second.sql(COUNT, epsilon="0.4")
        assert first.budget["people"].remaining_epsilon == 0
