"""Streams where values move and rows come or do not: numbers of rows get noise, nothing is looked up."""

import re

import pytest
from stream_clinic import UNIT, stream

from secant.errors import PolicyError, Refused

BOTH = """
[protections.both]
kind = "rows+cells"
epsilon = 1000000.0
delta = 1e-3
distance = {{ visits = "{norm}"{more} }}
add_remove = {{ visits = {weight}{weighed} }}
"""
SUMS = "SELECT day, sum(cost) AS c FROM visits GROUP BY day"
MEANS = "SELECT day, ward, count(*) AS n, avg(cost) AS a FROM visits GROUP BY day, ward"


def both(weight=2.5, norm="cost", more="", weighed="") -> str:
    return BOTH.format(norm=norm, weight=weight, more=more, weighed=weighed)


def grown(**keys) -> dict[str, object]:
    return {"steps": 64, "append_only": True, **keys}


def filled(clinic) -> None:
    for day in range(1, 8):
        clinic.add(f"2025-01-0{day}", ward="ab"[day % 2], cost=day)


def test_sums_are_released_and_the_guarantee_speaks_of_rows_and_values(clinic):
    filled(clinic)
    clinic.declare(both(), stream(SUMS, **grown()))
    assert clinic.numbers_of("c", until="2025-01-07") == [1, 3, 6, 10, 15, 21, 28]
    found = clinic.stream(until="2025-01-07")
    assert found.guarantee[0]["protects"] == (
        "any move of values by a distance of 1 (visits by cost), a longer one at its length times epsilon, and any row "
        "added or removed, which counts as a distance of 2.5 for one of visits, over the whole stream"
    )


@pytest.mark.parametrize(
    ("weight", "norm", "bound"), [(2.5, "cost", 4.0), (20, "cost", 1.0), (20, "0.25*cost", 4.0)]
)
def test_noise_is_for_the_larger_of_a_slope_and_a_row_over_its_distance(
    clinic, weight, norm, bound
):
    """A row moves a sum by 10 at most; a move of 1 by 1, or by 4."""
    clinic.declare(both(weight, norm), stream(SUMS, **grown(epsilon=0.01, delta=1e-6)))
    with clinic.connect() as database:
        found = database.explain_stream("s")
    told = found.record["measures"][0]
    assert told["bound"] == bound
    assert {way["law"] for way in told["compared"]} == {"laplace"}
    assert "numbers of rows get noise (stream.both)" in found.text


def test_numbers_of_rows_get_noise(clinic):
    filled(clinic)
    clinic.declare(both(0.5), stream(MEANS, **grown(shows="steps", epsilon=0.5)))
    with clinic.connect() as database:
        measures = database.explain_stream("s").record["measures"]
    assert len(measures) == 3  # rows, values that are known, and their sum
    assert {way["law"] for m in measures for way in m["compared"]} == {"laplace"}
    # a unit of distance is two rows, of which each adds 5 to a sum around the middle, and what is lost on a grid
    assert sorted(m["bound"] for m in measures) == pytest.approx([2.0, 2.0, 10.0], rel=0.01)


def test_another_distance_of_a_row_is_another_stream(clinic):
    filled(clinic)
    clinic.declare(both(), stream(SUMS, **grown()))
    clinic.stream(until="2025-01-02")
    clinic.declare(both(5), stream(SUMS, **grown()))
    with pytest.raises(PolicyError) as caught:
        clinic.stream(until="2025-01-03")
    assert caught.value.code == "POL-006"


@pytest.mark.parametrize(
    ("query", "keys", "message"),
    [
        (SUMS, {"append_only": None}, "a row has its values for good"),
        (SUMS, {"arrival": "came"}, "came is protected by both"),
        (SUMS, {"arrival": "came", "late": "on arrival"}, "groups by a protected value"),
        (
            "SELECT day, patient, sum(cost) AS c FROM visits GROUP BY day, patient",
            {},
            "declare `values`|keys",
        ),
        (SUMS.replace("sum", "max"), {}, "max|rank"),
        (
            "SELECT v.day, sum(v.cost) AS c FROM visits v JOIN visits w ON v.id = w.id GROUP BY v.day",
            {},
            "reads one of its tables, once",
        ),
        (
            "SELECT v.day, sum(v.cost) AS c FROM visits v JOIN bills b ON v.id = b.id GROUP BY v.day",
            {},
            "reads one of its tables, once",
        ),
    ],
)
def test_what_has_no_rule_is_refused_before_anything_is_paid(clinic, query, keys, message):
    clinic.execute("CREATE TABLE bills (id INTEGER PRIMARY KEY, amount INTEGER)")
    section = both(norm="l1(cost, came)", more=', bills = "amount"', weighed=", bills = 1")
    clinic.declare(section, stream(query, **grown(**keys)))
    with clinic.connect() as database, pytest.raises(Refused) as caught:
        database.stream("s")
    assert re.search(message, str(caught.value))
    assert not (clinic.folder / "policy.ledger").exists()


def test_limits_of_a_unit_are_refused_beside(clinic):
    """In the place of a row that is not there another one of the unit would count."""
    clinic.declare(both(), UNIT, stream(**grown()))
    with clinic.connect() as database, pytest.raises(Refused, match="rows of a unit are limited"):
        database.stream("s")
    assert not (clinic.folder / "policy.ledger").exists()


def test_a_public_table_may_stand_beside(clinic):
    filled(clinic)
    clinic.execute(
        "CREATE TABLE wards (ward VARCHAR PRIMARY KEY, floor INTEGER)",
        "INSERT INTO wards VALUES ('a', 1), ('b', 2)",
    )
    joined = "visits v JOIN wards w ON v.ward = w.ward"
    query = f"SELECT v.day, sum(v.cost) AS c FROM {joined} WHERE w.floor = 2 GROUP BY v.day"
    clinic.declare(both(), stream(query, **grown(shows="steps")))
    place = clinic.folder / "policy.toml"
    source = 'source = "duckdb:clinic.duckdb"'
    place.write_text(place.read_text().replace(source, source + '\npublic = ["wards"]'))
    assert clinic.numbers_of("c", until="2025-01-04") == [1, 0, 3, 0]
