"""Several programs ask one Spark server and share a ledger in PostgreSQL: they never spend more than there is."""

from __future__ import annotations

import subprocess
import sys

import duckdb
import pytest
from engines import in_parquet

from chance import LONG
from secant.ledger import Budget, Ledger

pytestmark = [pytest.mark.spark, pytest.mark.postgres]
DRIVERS, BUDGET = (4, 10) if LONG else (2, 3)
POLICY = """
[database]
source = "{source}"
[ledger]
location = "{ledger}"
[tables.t]
[protections.rows]
kind = "rows"
tables = ["t"]
epsilon = {budget}
composition = "basic"
"""
# Connects, says so, waits for the start, and asks for the whole budget in questions that nobody else asks.
DRIVER = """
import sys
import secant
from secant.errors import BudgetError

policy, own, questions = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
with secant.connect(policy=policy, create=True) as db:
    print("ready", flush=True)
    sys.stdin.readline()
    told = []
    for number in range(questions):
        try:
            db.sql(f"SELECT count(*) FROM t WHERE a <> {own * 1000 + number}", epsilon=1)
            told.append("answered")
        except BudgetError as error:
            told.append(error.code)
    print(*told)
"""


def test_drivers_share_a_budget(spark_server, postgres_database, tmp_path):
    with duckdb.connect() as connection:
        connection.execute("CREATE TABLE t AS SELECT range AS a FROM range(20)")
        source = in_parquet(connection, ["t"], {}, tmp_path / "parquet", spark_server)
    policy = tmp_path / "policy.toml"
    policy.write_text(POLICY.format(source=source, ledger=postgres_database, budget=BUDGET))
    drivers = [
        subprocess.Popen(
            [sys.executable, "-c", DRIVER, str(policy), str(own), str(BUDGET)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for own in range(DRIVERS)
    ]
    try:
        for driver in drivers:
            assert driver.stdout.readline() == "ready\n"
        for driver in drivers:
            driver.stdin.write("now\n")
            driver.stdin.flush()
        told = [driver.communicate(timeout=300)[0].split() for driver in drivers]
    finally:
        for driver in drivers:
            driver.kill()
            driver.wait()
    every = [word for words in told for word in words]
    assert len(every) == DRIVERS * BUDGET
    assert every.count("answered") == BUDGET
    assert set(every) == {"answered", "BUD-001"}
    with Ledger.open(postgres_database, {"rows": Budget.of(BUDGET)}) as ledger:
        ledger.verify()
        assert ledger.balances()["rows"].spent.epsilon == BUDGET * 10**9
