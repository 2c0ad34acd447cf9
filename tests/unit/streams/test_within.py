"""Streams that hide what lies within a stretch of time: limits in each step, an account that slides, refusals."""

import pytest
from stream_clinic import BY_DAY, UNIT, stream

from secant.errors import BudgetError, PolicyError, Refused

WINDOW = """
[protections.recent]
kind = "window"
unit = "visits.patient"
within = "{within}"
time = {{ visits = "{time}" }}
epsilon = {epsilon}
limits = {{ visits = {limit}, groups = 1 }}
"""


def window(within="3 days", time="day", epsilon=150000.0, limit=1) -> str:
    return WINDOW.format(within=within, time=time, epsilon=epsilon, limit=limit)


def visited(clinic) -> None:
    for day in (1, 1, 2, 4, 4, 4):
        clinic.add(f"2025-01-0{day}")
    clinic.add("2025-01-04", patient=2)


def test_limits_count_in_each_step_anew(clinic):
    visited(clinic)
    clinic.declare(window(), stream(steps=4, shows="steps"))
    assert clinic.numbers_of() == [1, 1, 0, 2]
    clinic.declare(window(), stream(steps=4, shows="steps"))
    assert clinic.stream().guarantee[0]["protects"] == (
        "what one unit (visits.patient) has in visits within any 3 days in a row, added or removed"
    )


def test_limits_of_a_period_and_steps_of_hours(clinic):
    visited(clinic)
    personal = {"visits": 2, "period": "4 days"}
    wide = {"epsilon": 300000.0}
    clinic.declare(
        window(**wide), stream(shows="steps", steps=4, personal=personal, append_only=True)
    )
    assert clinic.numbers_of() == [2, 0, 0, 1]
    hours = "SELECT date_trunc('hour', seen) AS h, count(*) AS n FROM visits GROUP BY 1"
    clinic.declare(
        window(time="seen", **wide),
        stream(hours, step="2 hours", steps=48, shows="steps").replace("streams.s", "streams.t"),
    )
    with clinic.connect() as database:
        assert sum(row[1] for row in database.stream("t").rows) == 4
        told = database.explain_stream("t").text
    assert "3 days meets at most 36 steps" in told


def test_streams_one_after_another_share_a_budget_and_others_do_not(clinic):
    visited(clinic)
    later = stream(start="2025-01-05").replace("streams.s", "streams.later")
    beside = stream(start="2025-01-03", steps=3).replace("streams.s", "streams.beside")
    clinic.declare(window(), stream(steps=4), later, beside)
    with clinic.connect() as database:
        database.stream("s")
        database.stream("later")
        assert float(database.budget["recent"].spent_epsilon) == 100000
        with pytest.raises(BudgetError) as caught:
            database.stream("beside")
    assert caught.value.code == "BUD-001"


def test_other_questions_are_refused_and_public_ones_answered(clinic):
    clinic.execute("CREATE TABLE wards (name VARCHAR)", "INSERT INTO wards VALUES ('a')")
    clinic.declare(window(), stream(steps=4))
    place = clinic.folder / "policy.toml"
    place.write_text(place.read_text().replace("[tables", 'public = ["wards"]\n[tables', 1))
    with clinic.connect() as database:
        with pytest.raises(Refused) as caught:
            database.sql("SELECT count(*) FROM visits", epsilon=1)
        assert "pays for streams only" in "".join(caught.value.details)
        assert database.sql("SELECT count(*) FROM wards", epsilon=1).rows == [(1,)]


@pytest.mark.parametrize(
    ("sections", "query", "more", "told"),
    [
        ((window(), UNIT), BY_DAY, {}, "hold together"),
        ((window(),), "SELECT came, count(*) AS n FROM visits GROUP BY came", {}, "visits.day"),
        ((window(),), "SELECT day + 1 AS d, count(*) AS n FROM visits GROUP BY 1", {}, "visits.day"),
        ((window(),), BY_DAY, {"arrival": "came", "late": "on arrival"}, "not when it arrives"),
        ((window(),), BY_DAY, {"personal": {"visits": 1, "period": "1 week"}}, "must stay the first"),
        (
            (window(),),
            "SELECT a.day, count(*) AS n FROM visits a JOIN visits b ON a.id = b.id GROUP BY a.day",
            {"append_only": True},
            "once, and public tables",
        ),
        (
            (window(time="seen"),),
            "SELECT date_trunc('month', seen) AS m, count(*) AS n FROM visits GROUP BY 1",
            {},
            "visits.seen",
        ),
        (
            (window(time="seen"),),
            "SELECT date_trunc('hour', seen) AS m, count(*) AS n FROM visits GROUP BY 1",
            {"step": "90 minutes"},
            "visits.seen",
        ),
    ],
)  # fmt: skip
def test_what_cannot_go_by_the_times_of_rows_is_refused(clinic, sections, query, more, told):
    clinic.declare(
        *sections, stream(query, **{"steps": 4, "append_only": UNIT in sections, **more})
    )
    with clinic.connect() as database, pytest.raises(Refused) as caught:
        database.stream("s")
    assert caught.value.code == "REF-108"
    assert told in caught.value.message


@pytest.mark.parametrize(
    ("section", "told"),
    [
        (window(within="3"), "within: must be a stretch of time"),
        (window(within="200000 hours"), "at most 10000"),
        (window().replace('within = "3 days"', ""), "within: is missing"),
        (window().replace("time = { visits", "time = { nowhere"), "there is no table nowhere"),
        (window(time="never"), "there is no column visits.never"),
        (window(time="cost"), "needs DATE or TIMESTAMP"),
        (window().replace('within = "3 days"', "within = 3"), "needs INTEGER"),
        (window() + 'renewal = "monthly"\n', "does not go with"),
        (window() + 'composition = "tight"\n', "does not go with"),
        (UNIT.replace("epsilon", 'within = "3 days"\nepsilon'), 'belongs to kind = "window"'),
    ],
)
def test_mistakes_of_a_policy_are_named(clinic, section, told):
    clinic.declare(section, stream(steps=4))
    with pytest.raises(PolicyError) as caught:
        clinic.connect()
    assert told in "\n".join([caught.value.message, *caught.value.details])


def test_a_stretch_that_changes_is_refused(clinic):
    visited(clinic)
    clinic.declare(window(), stream(steps=4))
    clinic.stream()
    clinic.declare(window(within="4 days"), stream(steps=4))
    with pytest.raises(PolicyError) as caught:
        clinic.stream()
    assert caught.value.code == "POL-006"


def test_steps_that_are_numbers(clinic):
    for patient in (3, 4, 4):
        clinic.add("2025-01-01", patient=patient)
    query = "SELECT week, count(*) AS n FROM visits GROUP BY week"
    section = window(time="week").replace('within = "3 days"', "within = 5")
    clinic.declare(section, stream(query, step=1, start=1, shows="steps"))
    assert clinic.numbers_of(until=5) == [0, 0, 1, 1, 0]
