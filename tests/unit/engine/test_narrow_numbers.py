"""Whole numbers of a plan have 64 bits, whatever the column was declared with."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pytest

import secant

ENDS = {
    "TINYINT": -128,
    "SMALLINT": -32768,
    "INTEGER": -2147483648,
    "UTINYINT": 255,
    "UINTEGER": 4294967295,
}


@pytest.mark.parametrize("kind", ENDS)
def test_the_last_value_of_a_narrow_column_is_not_lost(tmp_path: Path, kind: str) -> None:
    end = ENDS[kind]
    file = tmp_path / "narrow.duckdb"
    with duckdb.connect(str(file)) as made:
        made.execute(f"CREATE TABLE public_numbers (x {kind})")
        made.execute(f"INSERT INTO public_numbers VALUES ({end}), (3)")
        made.execute("CREATE TABLE people (id INTEGER)")
    policy = tmp_path / "policy.toml"
    policy.write_text(
        f'[database]\nsource = "duckdb:{file}"\npublic = ["public_numbers"]\n[tables.people]\n'
        '[protections.rows]\nkind = "rows"\ntables = ["people"]\nepsilon = 1.0\n'
    )
    text = "SELECT sum(abs(x)) AS sizes, sum(-x) AS turned, sum(round(x, -1)) AS tens FROM public_numbers"
    with secant.connect(f"duckdb:{file}", policy=policy, ledger=tmp_path / "ledger") as db:
        (row,) = db.sql(text, epsilon=0.1).rows
    assert tuple(row) == (abs(end) + 3, -(end + 3), _to_tens(end) + _to_tens(3))


def _to_tens(number: int) -> int:
    return (abs(number) + 5) // 10 * 10 * (1 if number >= 0 else -1)
