"""The 17 queries at scale 0.01: softened answers and smooth bounds on PostgreSQL are those on DuckDB.

In the paper's settings and in the native ones, where widths are chosen by public facts that both engines share.
"""

from __future__ import annotations

import pytest
from bench.suites.laud.database import duckdb_file, postgres_address
from bench.suites.laud.forms import QUERIES, profile_of
from bench.suites.laud.measure import measure

pytestmark = pytest.mark.postgres
SCALE = "0.01"


@pytest.fixture(scope="module", params=["paper", "native"])
def measured(request, postgres_server, tmp_path_factory):
    """By engine: query -> record."""
    place = tmp_path_factory.mktemp("postgres_laud")
    address = postgres_server.address(postgres_server.create_database())
    sources = {
        "duckdb": f"duckdb:{duckdb_file(SCALE, place)}",
        "postgres": postgres_address(SCALE, place, address),
    }
    profile = profile_of(request.param)
    return {
        engine: {row["query"]: row for row in measure(source, profile, QUERIES)}
        for engine, source in sources.items()
    }


@pytest.mark.parametrize("query", QUERIES)
def test_values_agree(measured, query):
    ours, theirs = measured["postgres"][query], measured["duckdb"][query]
    assert ("refused" in ours) == ("refused" in theirs)
    for number in ("exact", "softened", "sensitivity", "noise_scale"):
        if theirs.get(number) is None:
            assert ours.get(number) is None
        else:
            assert ours[number] == pytest.approx(theirs[number], rel=1e-9), number


def test_most_are_answered(measured):
    assert sum("softened" in row for row in measured["postgres"].values()) >= 17
