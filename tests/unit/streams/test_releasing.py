"""A stream as a user holds it: complete steps, each released once, whatever is asked and whatever comes in."""

import json

import pytest
from stream_clinic import ROWS, UNIT, stream

from secant.errors import PolicyError, Refused, UsageError

SHORT = {"steps": 4, "shows": "steps"}


def filled(clinic):
    for day, count in enumerate((3, 0, 2, 1), start=1):
        for patient in range(count):
            clinic.add(f"2025-01-0{day}", patient=patient, cost=day, ward="ab"[patient % 2])
    return clinic


def spent(clinic, name="visits"):
    with clinic.connect() as database:
        return float(database.budget[name].spent_epsilon)


def test_steps_and_running_totals(clinic):
    filled(clinic).declare(ROWS, stream(**SHORT))
    found = clinic.stream()
    assert [str(step.step) for step in found.steps] == [f"2025-01-0{d}" for d in (1, 2, 3, 4)]
    assert [step.values["n"] for step in found] == [3, 0, 2, 1]
    assert [step.number for step in found] == [1, 2, 3, 4]
    assert spent(clinic) == 100000


def test_running_totals_and_sums_of_last_steps(clinic):
    filled(clinic).declare(ROWS, stream(steps=4))
    assert clinic.numbers_of() == [3, 3, 5, 6]
    clinic.declare(ROWS, stream(steps=4, shows={"window": 2}).replace("streams.s", "streams.w"))
    with clinic.connect() as database:
        assert [row[1] for row in database.stream("w").rows] == [3, 3, 2, 3]


def test_groups_measures_and_averages(clinic):
    query = "SELECT day, ward, count(*) AS n, sum(cost) AS c, avg(cost) AS m FROM visits GROUP BY day, ward ORDER BY 1"
    filled(clinic).declare(ROWS, stream(query, **SHORT))
    found = clinic.stream()
    assert found.keys == ("ward",)
    rows = [(str(day)[-1], ward, n, c, round(m, 3)) for day, ward, n, c, m in found.rows if n]
    first, third = (
        [("1", "a", 2, 2, 1), ("1", "b", 1, 1, 1)],
        [("3", "a", 1, 3, 3), ("3", "b", 1, 3, 3)],
    )
    assert rows == [*first, *third, ("4", "a", 1, 4, 4)]
    assert len(found) == 8
    for step, ward, low, high in zip(
        found.steps, found.rows, found.error["low"], found.error["high"], strict=True
    ):
        assert low[4] <= ward[4] <= high[4]  # an average has ends, too
        assert step.low["m"] == low[4]


def test_asking_again_shows_the_same_numbers_for_nothing(clinic):
    filled(clinic).declare(ROWS, stream(epsilon=0.5, **SHORT))
    first, again = clinic.stream(), clinic.stream()
    assert first.rows == again.rows
    assert first.error == again.error
    assert spent(clinic) == 0.5


def test_until_releases_a_part_and_shows_it_later_too(clinic):
    filled(clinic).declare(ROWS, stream(**SHORT))
    assert clinic.numbers_of(until="2025-01-02") == [3, 0]
    assert clinic.numbers_of() == [3, 0, 2, 1]
    assert clinic.numbers_of(until="2025-01-03") == [3, 0, 2]


def test_a_step_that_is_not_complete(clinic, clock):
    filled(clinic).declare(ROWS, stream(shows="steps"))
    clock("2025-01-03T12:00")
    assert clinic.numbers_of() == [3, 0]
    with pytest.raises(UsageError, match="2025-01-03 of the stream s is not complete") as caught:
        clinic.stream(until="2025-01-03")
    assert "2025-01-04 00:00 UTC" in caught.value.hint
    clock("2025-01-04T00:00")
    assert clinic.numbers_of(until="2025-01-03") == [3, 0, 2]


def test_nothing_is_spent_before_the_first_step_is_complete(clinic, clock):
    filled(clinic).declare(ROWS, stream())
    clock("2025-01-01T23:59")
    found = clinic.stream()
    assert (found.rows, found.seconds_to_next) == ([], 60)
    assert spent(clinic) == 0


def test_a_step_waits_for_rows_that_are_on_their_way(clinic, clock):
    filled(clinic).declare(ROWS, stream(shows="steps", wait="6 hours"))
    clock("2025-01-02T05:59")
    assert clinic.numbers_of() == []
    clock("2025-01-02T06:00")
    assert clinic.numbers_of() == [3]


def test_a_clock_that_goes_back_takes_nothing_back(clinic, clock):
    filled(clinic).declare(ROWS, stream(epsilon=0.5, shows="steps"))
    clock("2025-01-04T01:00")
    before = clinic.stream().rows
    clock("2025-01-02T01:00")
    assert clinic.stream().rows == before
    assert spent(clinic) == 0.5


def test_rows_before_the_start_and_without_a_step_count_nowhere(clinic):
    filled(clinic)
    clinic.add("2024-12-31", patient=9)
    clinic.add(None, patient=9)
    clinic.add("2025-01-04", patient=9)
    clinic.add("2025-01-04", patient=9)
    clinic.add("2025-01-05", patient=9)
    clinic.declare(UNIT, stream(append_only=True, **SHORT))
    # Nor do they use up what a unit may have: both rows of patient 9 in the last step count.
    assert clinic.numbers_of() == [3, 0, 2, 2]


def test_a_horizon_that_has_ended(clinic):
    filled(clinic).declare(ROWS, stream(**SHORT))
    assert len(clinic.stream()) == 4
    found = clinic.stream()
    assert (len(found), found.seconds_to_next) == (4, None)
    with pytest.raises(UsageError, match="has 4 steps, the last of them 2025-01-04") as caught:
        clinic.stream(until="2025-01-05")
    assert "declare a new stream" in caught.value.hint


@pytest.mark.parametrize("until", ["2024-12-31", "yesterday", 7, "2025-13-01", True])
def test_steps_that_there_are_not(clinic, until):
    clinic.declare(ROWS, stream())
    with pytest.raises(UsageError) as caught:
        clinic.stream(until=until)
    assert caught.value.code == "USE-010"


@pytest.mark.parametrize(
    "change",
    [
        {"epsilon": 2.0},
        {"start": "2025-01-02"},
        {"step": "2 days"},
        {"steps": 5},
        {"shows": "running"},
        {"query": "SELECT day, count(*) AS n FROM visits WHERE ward = 'a' GROUP BY day"},
    ],
    ids=str,
)
def test_a_declaration_that_changes_is_refused(clinic, change):
    filled(clinic).declare(ROWS, stream(**SHORT))
    clinic.stream(until="2025-01-02")
    clinic.declare(ROWS, stream(**{**SHORT, **change}))
    with pytest.raises(PolicyError) as caught:
        clinic.stream()
    assert caught.value.code == "POL-006"
    assert any(line.startswith(next(iter(change))) for line in caught.value.details)
    clinic.declare(ROWS, stream(**SHORT))
    assert clinic.numbers_of() == [3, 0, 2, 1]
    assert spent(clinic) == 100000


def test_facts_that_change_are_refused_where_the_stream_reads_them(clinic):
    query = "SELECT day, sum(cost) AS n FROM visits GROUP BY day"
    filled(clinic).declare(ROWS, stream(query, **SHORT))
    clinic.stream(until="2025-01-02")
    policy = clinic.folder / "policy.toml"
    text = policy.read_text()
    policy.write_text(text.replace("range = [0, 10]", "range = [-10, 0]"))
    with pytest.raises(PolicyError, match="declared otherwise"):
        clinic.stream()
    policy.write_text(text.replace('["a", "b"]', '["a", "b", "c"]'))  # it is not read
    assert clinic.numbers_of() == [3, 0, 6, 4]


def test_limits_that_change_are_refused(clinic):
    filled(clinic).declare(UNIT, stream(append_only=True, **SHORT))
    clinic.stream(until="2025-01-02")
    clinic.declare(UNIT.replace("visits = 2", "visits = 3"), stream(append_only=True, **SHORT))
    with pytest.raises(PolicyError, match="declared otherwise"):
        clinic.stream()


def with_wards(clinic, query, **keys):
    """Add a public table of wards, one of them so far, and declare a stream that may read it."""
    clinic.execute(
        "CREATE TABLE wards (ward VARCHAR PRIMARY KEY)", "INSERT INTO wards VALUES ('a')"
    )
    policy = """
[database]
source = "duckdb:clinic.duckdb"
public = ["wards"]
[tables.visits]
key = ["id"]
references = { ward = "wards.ward" }
[tables.wards]
key = ["ward"]
"""
    protection = ROWS.replace("epsilon", 'tables = ["visits"]\nepsilon')
    text = policy + protection + stream(query, **SHORT, **keys)
    (clinic.folder / "policy.toml").write_text(text)


def test_joined_tables_must_only_grow(clinic):
    query = (
        "SELECT day, count(*) AS n FROM visits JOIN wards ON visits.ward = wards.ward GROUP BY day"
    )
    with_wards(filled(clinic), query)
    with pytest.raises(Refused, match="joins tables"):
        clinic.stream()
    text = (clinic.folder / "policy.toml").read_text()
    (clinic.folder / "policy.toml").write_text(text + "append_only = true\n")
    assert clinic.numbers_of() == [2, 0, 1, 1]


@pytest.mark.parametrize(
    "query",
    [
        "SELECT day, count(wards.ward) AS n FROM visits LEFT JOIN wards ON visits.ward = wards.ward GROUP BY day",
        "SELECT day, count(*) AS n FROM visits WHERE ward NOT IN (SELECT ward FROM wards) GROUP BY day",
    ],
)
def test_questions_that_look_back_differently_are_refused(clinic, query):
    with_wards(filled(clinic), query, append_only=True)
    with pytest.raises(Refused, match="may change what earlier steps have counted"):
        clinic.stream()


def test_keys_that_appear_later_are_not_counted(clinic):
    query = "SELECT day, ward, count(*) AS n FROM visits GROUP BY day, ward"
    with_wards(filled(clinic), query)
    first = clinic.stream(until="2025-01-02").rows
    assert [row[1:] for row in first if row[1]] == [("a", 2), ("a", 0)]
    clinic.execute("INSERT INTO wards VALUES ('b')")
    later = clinic.stream().rows
    assert [row[1:] for row in later if row[1]] == [("a", 2), ("a", 0), ("a", 1), ("a", 1)]


def test_the_first_rows_of_a_unit_count_over_the_whole_stream(clinic):
    for day in ("04", "02", "01", "03"):  # ids do not follow the days
        clinic.add(f"2025-01-{day}")
    clinic.declare(UNIT, stream(append_only=True, **SHORT))
    assert clinic.numbers_of() == [1, 1, 0, 0]


def test_personal_limits_come_back_in_every_period_and_what_is_left_lapses(clinic):
    for day in (1, 1, 1, 2, 3, 3, 5, 6, 6):  # periods of two days: 2 of 4, 2 of 2, 2 of 3 count
        clinic.add(f"2025-01-0{day}")
    personal = {"visits": 2, "period": "2 days"}
    clinic.declare(UNIT, stream(steps=6, shows="steps", append_only=True, personal=personal))
    assert clinic.numbers_of() == [2, 0, 2, 0, 1, 1]
    assert clinic.stream().answer.mechanisms[0]["way"]
    with clinic.connect() as database:
        told = database.explain_stream("s").to_dict()
    assert told["measures"][0]["bound"] == 6  # two rows in each of three periods


def test_personal_limits_need_an_end_and_a_table(clinic):
    for keys, words in (
        ({"personal": {"visits": 2, "period": "2 days"}}, "add up without end"),
        ({"personal": {"wards": 2, "period": "2 days"}, "steps": 4}, "limits no rows of wards"),
    ):
        clinic.declare(UNIT, stream(append_only=True, **keys))
        with pytest.raises(Refused, match=words):
            clinic.stream()


def test_rows_that_come_late(clinic, clock):
    clinic.add("2025-01-01")
    clinic.declare(ROWS, stream(arrival="came", **SHORT))
    clock("2025-01-02T00:00")
    assert clinic.numbers_of() == [1]
    clinic.add("2025-01-01", came="2025-01-03")
    clinic.add("2025-01-03")
    clock("2025-01-05T00:00")
    assert clinic.numbers_of() == [1, 0, 1, 0]


def test_late_rows_that_count_when_they_arrive(clinic, clock):
    clinic.add("2025-01-01")
    clinic.declare(ROWS, stream(arrival="visits.came", late="on arrival", **SHORT))
    clock("2025-01-02T00:00")
    assert clinic.numbers_of() == [1]
    clinic.add("2025-01-01", came="2025-01-03")
    clinic.add("2025-01-03")
    clock("2025-01-05T00:00")
    assert clinic.numbers_of() == [1, 0, 2, 0]


@pytest.mark.parametrize(
    ("step", "query", "start"),
    [
        ("1 hour", "SELECT date_trunc('hour', seen) AS h, count(*) AS n FROM visits GROUP BY 1", "2025-01-01T10:00:00"),
        ("1 month", "SELECT day, count(*) AS n FROM visits GROUP BY day", "2025-01-01"),
    ],
)  # fmt: skip
def test_steps_of_other_lengths(clinic, step, query, start):
    filled(clinic).declare(ROWS, stream(query, step=step, start=start, steps=2, shows="steps"))
    assert clinic.numbers_of() == ([3, 0] if step == "1 hour" else [6, 0])


def test_steps_that_are_numbers_need_a_word_on_which_are_over(clinic):
    filled(clinic).declare(
        ROWS,
        stream(
            "SELECT week, count(*) AS n FROM visits GROUP BY week", step=1, start=0, shows="steps"
        ),
    )
    with pytest.raises(UsageError, match="no clock"):
        clinic.stream()
    assert clinic.numbers_of(until=1) == [3, 2]
    assert clinic.numbers_of(until="2") == [3, 2, 1]
    assert clinic.numbers_of() == [3, 2, 1]


def test_normal_noise_is_taken_where_it_is_allowed_and_better(clinic):
    declared = stream(steps=1000, epsilon=1.0, delta=1e-5, objective="largest")
    filled(clinic).declare(ROWS, declared)
    found = clinic.stream(until="2025-02-10")
    assert found.answer.mechanisms[0]["law"] == "normal"
    assert found.guarantee[0]["delta"] > 0
    assert clinic.stream(until="2025-02-10").rows == found.rows


def test_what_cannot_be_a_stream_costs_nothing(clinic):
    filled(clinic)
    for query, keys, words in (
        ("SELECT count(*) AS n FROM visits", {}, "first column"),
        ("SELECT ward, count(*) AS n FROM visits GROUP BY ward", {}, "do not fit"),
        ("SELECT day, max(cost) AS n FROM visits GROUP BY day", {}, "do not add up"),
        ("SELECT day, patient, count(*) AS n FROM visits GROUP BY day, patient", {}, "keys of some groups"),
        ("SELECT day, count(*) AS n FROM visits GROUP BY day HAVING count(*) > 1", {}, "HAVING"),
        ("SELECT day, count(*) AS n FROM visits GROUP BY day LIMIT 3", {}, "LIMIT"),
        ("SELECT day, cost FROM visits", {}, "GROUP BY"),
        ("SELECT day, count(*) AS n FROM visits GROUP BY day", {"step": "1 hour"}, "do not fit"),
        ("SELECT day, count(*) AS n FROM visits GROUP BY day", {"arrival": "nothing"}, "no column nothing"),
        (
            "SELECT day, count(*) AS n FROM visits WHERE cost > (SELECT avg(cost) FROM visits) GROUP BY day",
            {},
            "several releases",
        ),
    ):  # fmt: skip
        clinic.declare(ROWS, stream(query, **keys))
        with pytest.raises(Refused, match=words) as caught:
            clinic.stream()
        assert caught.value.code == "REF-108"
        assert caught.value.hint
    assert not (clinic.folder / "policy.ledger").exists()


def test_units_need_limits_and_tables_that_only_grow(clinic):
    filled(clinic).declare(UNIT, stream())
    with pytest.raises(Refused, match="must stay the first") as caught:
        clinic.stream()
    assert "append_only = true" in caught.value.hint
    unlimited = UNIT.replace("[protections.patients.limits]\nvisits = 2\n", "")
    clinic.declare(unlimited, stream(append_only=True))
    with pytest.raises(Refused):
        clinic.stream()
    renewed = UNIT.replace("epsilon", 'renewal = "monthly"\nepsilon')
    clinic.declare(renewed, stream(append_only=True))
    with pytest.raises(Refused, match="comes back every month"):
        clinic.stream()


def test_an_unknown_stream_names_those_that_there_are(clinic):
    clinic.declare(ROWS, stream())
    with clinic.connect() as database, pytest.raises(UsageError) as caught:
        database.stream("other")
    assert (caught.value.code, caught.value.hint) == ("USE-010", "there are: s")


def test_a_series_goes_where_answers_go(clinic):
    pytest.importorskip("pandas")
    filled(clinic).declare(ROWS, stream(**SHORT))
    found = clinic.stream()
    frame = found.to_pandas(errors=True)
    assert list(frame.columns) == ["day", "n", "n_low", "n_high"]
    assert list(frame["n"]) == [3, 0, 2, 1]
    assert found.to_arrow().num_rows == found.to_polars().height == 4
    told = json.loads(json.dumps(found.to_dict()))
    assert told["rows"][0] == ["2025-01-01", 3]


def test_explaining_reads_nothing_and_spends_nothing(clinic):
    filled(clinic).declare(ROWS, stream(steps=365, epsilon=1.0))
    with clinic.connect() as database:
        told = database.explain_stream("s")
    assert "* tree laplace" in str(told)
    chosen = [c for c in told.to_dict()["measures"][0]["compared"] if c["chosen"]]
    assert len(chosen) == 1
    assert not (clinic.folder / "policy.ledger").exists()
