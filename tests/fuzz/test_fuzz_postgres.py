"""Drawn questions on PostgreSQL, with the same rules: 100 by default, 20,000 with SECANT_PROFILE=long."""

from __future__ import annotations

import os
import secrets
from pathlib import Path

import pytest
from fuzzing import fuzz

from postgres_server import PostgresServer

LONG = os.environ.get("SECANT_PROFILE") == "long"
SHARDS, EACH = (4, 5_000) if LONG else (1, 100)
pytestmark = pytest.mark.postgres


@pytest.mark.parametrize("shard", range(SHARDS))
def test_drawn_questions_are_answered_on_postgres_as_explained(
    shard: int, tmp_path: Path, postgres_server: PostgresServer
) -> None:
    seed = int(os.environ.get("SECANT_SEED") or secrets.randbelow(10**6))
    print(f"SECANT_SEED={seed}")
    address = postgres_server.address(postgres_server.create_database())
    summary = fuzz(seed * SHARDS + shard, EACH, tmp_path, address)
    print(summary.report())
    assert summary.findings == []
    assert summary.answered > EACH // 10
