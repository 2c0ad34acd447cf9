"""Drawn questions on PostgreSQL, with the same rules: 100 by default, 20,000 with SECANT_PROFILE=long."""

from __future__ import annotations

import os
import secrets
from dataclasses import replace
from pathlib import Path

import pytest
from fuzzing import faults, fuzz
from worlds import HOSTILE, open_world

from chance import LONG
from postgres_server import PostgresServer
from secant.engines.postgres.scalars import POSTGRES

SHARDS, EACH = (4, 5_000) if LONG else (1, 100)
pytestmark = pytest.mark.postgres


NARROW = "SELECT count(*) FROM person WHERE substring(city, age, age) = 'x'"


def test_a_number_at_the_end_of_a_narrow_column_fails_no_question(
    tmp_path: Path, postgres_server: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(HOSTILE, "short", [2147483647])
    address = postgres_server.address(postgres_server.create_database())
    world = open_world(0, tmp_path, address)
    try:
        assert [k for k, _ in faults(world, NARROW, "1")] == ["told"]
        stored = {k: v for k, v in POSTGRES.stored.items() if k != "INTEGER"}
        for db in (world.first, world.second):  # 32 bits, as the server keeps them
            monkeypatch.setattr(db._backend, "dialect", replace(db._backend.dialect, stored=stored))
        assert "charged" in [k for k, _ in faults(world, NARROW, "1")]
    finally:
        world.close()


@pytest.mark.parametrize("shard", range(SHARDS))
def test_drawn_questions_are_answered_on_postgres_as_explained(
    shard: int, tmp_path: Path, postgres_server: PostgresServer
) -> None:
    seed = int(os.environ.get("SECANT_SEED") or (secrets.randbelow(10**6) if LONG else 7))
    print(f"SECANT_SEED={seed}")
    address = postgres_server.address(postgres_server.create_database())
    summary = fuzz(seed * SHARDS + shard, EACH, tmp_path, address)
    print(summary.report())
    assert summary.findings == []
    assert summary.answered > EACH // 10
