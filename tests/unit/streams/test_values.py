"""Streams where only values are protected: levels share epsilon, counts of rows are public, rows may not change."""

import re

import pytest
from stream_clinic import stream

from secant.errors import PolicyError, Refused

CELLS = """
[protections.values]
kind = "cells"
epsilon = 1000000.0
delta = 1e-3
distance = {{ visits = "{norm}" }}
"""
SUMS = "SELECT day, sum(cost) AS c FROM visits GROUP BY day"


def cells(norm="cost") -> str:
    return CELLS.format(norm=norm)


def grown(**keys) -> dict[str, object]:
    return {"steps": 64, "append_only": True, **keys}


def filled(clinic) -> None:
    for day in range(1, 8):
        clinic.add(f"2025-01-0{day}", ward="ab"[day % 2], cost=day)


def test_sums_of_values_are_released_by_levels(clinic):
    filled(clinic)
    clinic.declare(cells(), stream(SUMS, **grown()))
    assert clinic.numbers_of("c", until="2025-01-07") == [1, 3, 6, 10, 15, 21, 28]
    found = clinic.stream(until="2025-01-07")
    assert found.guarantee[0]["protects"] == (
        "any move of values by a distance of 1 (visits by cost), a longer one at its length times epsilon, over the "
        "whole stream"
    )


def test_noise_is_for_a_unit_of_distance(clinic):
    """A level of five for what 2*cost measures: half a step of cost is a distance of 1."""
    clinic.declare(cells("2*cost"), stream(SUMS, **grown(epsilon=0.01, delta=1e-6)))
    with clinic.connect() as database:
        told = database.explain_stream("s").record["measures"][0]
    # bounds are whole steps, rounded up; noise for a distance is never normal, though there is a delta
    assert told["bound"] == 1.0
    assert {way["law"] for way in told["compared"]} == {"laplace"}
    clinic.declare(cells("0.25*cost"), stream(SUMS, **grown()))
    with clinic.connect() as database:
        assert database.explain_stream("s").record["measures"][0]["bound"] == 4.0


def test_averages_have_ends_and_the_number_of_rows_is_public(clinic):
    filled(clinic)
    query = "SELECT day, avg(cost) AS a FROM visits GROUP BY day"
    clinic.declare(cells(), stream(query, **grown(shows="steps", epsilon=10.0)))
    with clinic.connect() as database:
        ways = database.explain_stream("s").record["measures"]
        found = database.stream("s", until="2025-01-07")
    assert [m["compared"][0]["law"] for m in ways] == ["laplace", "none"]
    for step, (_, value) in zip(found.steps, found.rows, strict=True):
        assert step.low["a"] <= value <= step.high["a"]
        assert step.high["a"] - step.low["a"] < 1


def test_groups_are_known_beforehand(clinic):
    filled(clinic)
    query = "SELECT day, {0}, sum(cost) AS c FROM visits GROUP BY day, {0}"
    clinic.declare(cells(), stream(query.format("ward"), **grown(shows="steps")))
    assert [row[1:] for row in clinic.stream(until="2025-01-02").rows] == [
        ("a", 0), ("b", 1), ("a", 2), ("b", 0),
    ]  # fmt: skip
    clinic.declare(
        cells(), stream(query.format("week"), **grown()).replace("streams.s", "streams.t")
    )
    with clinic.connect() as database, pytest.raises(Refused, match="declare `values`"):
        database.stream("t")


def test_a_softened_filter_has_no_ends_and_an_exact_one_has(clinic):
    filled(clinic)
    query = "SELECT day, count(*) AS n FROM visits WHERE cost > 3 GROUP BY day"
    clinic.declare(cells(), stream(query, **grown(shows="steps")))
    found = clinic.stream(until="2025-01-07")
    assert [round(n) for _, n in found.rows] == [0, 0, 0, 1, 1, 1, 1]
    assert found.steps[-1].high["n"] is not None
    wide = cells() + 'softening = { kind = "ramp", width = 4.0 }\n'
    clinic.declare(wide, stream(query, **grown(shows="steps")).replace("streams.s", "streams.t"))
    with clinic.connect() as database:
        found = database.stream("t", until="2025-01-07")
    assert found.steps[-1].high["n"] is None
    assert [0.1 < n < 0.9 for _, n in found.rows][1:5] == [True] * 4


@pytest.mark.parametrize(
    ("query", "keys", "message"),
    [
        (SUMS, {"append_only": None}, "a row has its values for good"),
        (SUMS, {"arrival": "came"}, "came is protected by values"),
        (SUMS.replace("sum", "max"), {}, "max of a block of steps does not follow"),
        (SUMS.replace("sum(cost)", "count(*)"), {}, "reads nothing protected"),
        (
            "SELECT week, sum(cost) AS c FROM visits GROUP BY week",
            {"start": 1, "step": 1},
            "groups by a protected value would show where it lies",
        ),
        (
            "SELECT day, sum(cost * patient) AS c FROM visits GROUP BY day",
            {},
            "no public number bounds how fast|range",
        ),
    ],
)
def test_what_values_could_decide_is_refused(clinic, query, keys, message):
    clinic.declare(cells("l1(cost, came, week, patient)"), stream(query, **grown(**keys)))
    with clinic.connect() as database, pytest.raises(Refused) as caught:
        database.stream("s")
    assert re.search(message, str(caught.value))
    assert not (clinic.folder / "policy.ledger").exists()


def test_a_row_that_is_joined_into_one_step_counts_and_into_several_does_not(clinic):
    """Levels share epsilon only if a row lies in one block of each (derivative.groups)."""
    filled(clinic)
    clinic.execute(
        "UPDATE visits SET week = cost",
        "CREATE TABLE weeks (week INTEGER, day DATE)",
        "INSERT INTO weeks SELECT DISTINCT week, day FROM visits",
    )
    query = "SELECT w.day, sum(v.cost) AS c FROM visits v JOIN weeks w ON v.week = w.week GROUP BY w.day"
    public = 'source = "duckdb:clinic.duckdb"\npublic = ["weeks"]'
    place = clinic.folder / "policy.toml"
    for key in ("", '[tables.weeks]\nkey = ["week"]\n'):
        clinic.declare(cells(), key, stream(query, **grown(shows="steps")))
        place.write_text(place.read_text().replace('source = "duckdb:clinic.duckdb"', public))
        if key:
            assert clinic.numbers_of("c", until="2025-01-07") == list(range(1, 8))
        else:
            with clinic.connect() as database, pytest.raises(Refused, match=r"derivative\.groups"):
                database.stream("s")


def test_another_norm_is_another_stream(clinic):
    filled(clinic)
    clinic.declare(cells(), stream(SUMS, **grown()))
    clinic.stream(until="2025-01-02")
    clinic.declare(cells("0.5*cost"), stream(SUMS, **grown()))
    with pytest.raises(PolicyError) as caught:
        clinic.stream(until="2025-01-03")
    assert caught.value.code == "POL-006"
