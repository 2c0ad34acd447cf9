"""`[streams.NAME]`: what is read, and which mistakes are told with their lines."""

import datetime
from fractions import Fraction

import pytest

from secant.errors import PolicyError
from secant.policy.file import read_policy
from secant.policy.streams import Calendar, Personal, Stream, Width

HEAD = '[protections.p]\nkind = "rows"\nepsilon = 1.0\n'
PLAIN = {
    "query": '"SELECT day, count(*) AS n FROM visits GROUP BY day"',
    "step": '"1 day"',
    "start": '"2025-01-01"',
    "epsilon": "0.5",
}


def policy(**keys):
    lines = [f"{k} = {v}" for k, v in {**PLAIN, **keys}.items() if v is not None]
    return read_policy("\n".join([HEAD + "[streams.visits_by_day]", *lines]))


def test_a_stream_is_read():
    found = policy(
        steps="1024", shows="{ window = 30 }", protection='"p"', delta="1e-9", objective='"largest"',
        append_only="true", arrival='"visits.Came"', late='"on arrival"', wait='"6 hours"',
        personal='{ Visits = 3, period = "1 month" }',
    ).stream("visits_by_day")  # fmt: skip
    assert found == Stream(
        "visits_by_day", "SELECT day, count(*) AS n FROM visits GROUP BY day", Width(1, "day"),
        datetime.date(2025, 1, 1), Fraction(1, 2), Fraction(1, 10**9), 1024, 30, "largest", "p", True,
        "visits.came", "on arrival", 6 * 3600, Personal("visits", 3, Width(1, "month")),
    )  # fmt: skip
    assert policy().stream("other") is None


@pytest.mark.parametrize(
    ("keys", "words"),
    [
        ({"query": None}, "query: is missing"),
        ({"query": '" "'}, "must be a SELECT"),
        ({"step": '"a day"'}, "must be a length of time"),
        ({"step": '"0 days"'}, "must be a length of time"),
        ({"step": "0"}, "must be a length of time"),
        ({"step": '"1 fortnight"'}, "must be a length of time"),
        ({"start": '"2025-02-30"'}, "neither a number nor a date"),
        ({"start": "2025-01-01T00:00:00Z"}, "a time with a zone"),
        ({"start": "3"}, "does not fit steps of 1 day"),
        ({"step": "1"}, "does not fit steps of 1"),
        ({"start": "true"}, "must be a date"),
        ({"step": '"1 month"', "start": '"2025-01-31"'}, "a day that every month has"),
        ({"epsilon": "0"}, "epsilon"),
        ({"epsilon": '"1"'}, "must be a number"),
        ({"delta": "1"}, "delta"),
        ({"steps": "0"}, "at least 1"),
        ({"steps": "2000000"}, "at most 1000000"),
        ({"step": '"900000 days"', "steps": "1000"}, "beyond the last date"),
        ({"shows": '"totals"'}, 'must be "running"'),
        ({"shows": "{ window = 0 }"}, "at least 1"),
        ({"objective": '"least"'}, "mean or largest"),
        ({"late": '"sometimes"'}, "never or on arrival"),
        ({"late": '"on arrival"'}, "needs `arrival`"),
        ({"wait": '"1 month"'}, "at most a year"),
        ({"wait": "5"}, "length of time"),
        ({"append_only": "1"}, "boolean"),
        ({"protection": '"q"'}, "there is no protection q"),
        ({"personal": "3"}, "must name a table and a period"),
        ({"personal": '{ visits = 0, period = "1 day" }'}, "at least 1"),
        ({"horizon": "3"}, "unknown key"),
    ],
    ids=str,
)
def test_mistakes_are_told_with_their_line(keys, words):
    with pytest.raises(PolicyError) as caught:
        policy(**keys)
    assert caught.value.code == "POL-002"
    assert words in caught.value.details[0]
    assert caught.value.details[0].startswith("line ")


def test_names_of_streams_are_plain():
    with pytest.raises(PolicyError, match="a mistake"):
        read_policy(HEAD + '[streams."a b"]\n' + "\n".join(f"{k} = {v}" for k, v in PLAIN.items()))


@pytest.mark.parametrize(
    ("start", "width"),
    [
        (datetime.date(2025, 1, 1), Width(1, "day")),
        (datetime.date(2024, 2, 29), Width(3, "day")),
        (datetime.date(2024, 11, 28), Width(1, "month")),
        (datetime.date(2024, 2, 28), Width(1, "year")),
        (datetime.datetime.fromisoformat("2025-01-01T05:00"), Width(7, "hour")),
        (datetime.datetime.fromisoformat("2025-01-01T00:00"), Width(2, "week")),
        (-3, Width(5)),
    ],
)
def test_every_step_begins_where_the_one_before_ends(start, width):
    calendar = Calendar(start, width)
    small = 1 if isinstance(start, int) else datetime.timedelta(days=1)
    small = datetime.timedelta(seconds=1) if isinstance(start, datetime.datetime) else small
    for step in range(1, 60):
        first = calendar.first(step)
        assert calendar.step_of(first) == step
        assert calendar.step_of(calendar.first(step + 1) - small) == step
    assert calendar.step_of(start - small) == 0


def test_steps_are_complete_when_they_are_over():
    calendar = Calendar(datetime.date(2025, 1, 1), Width(1, "month"), 3)
    ends = calendar.ends(1)
    assert ends == datetime.datetime(2025, 2, 1, tzinfo=datetime.UTC).timestamp()
    assert [calendar.complete(ends + x) for x in (-1, 0)] == [0, 1]
    assert [calendar.complete(ends + x, wait=10) for x in (9, 10)] == [0, 1]
    assert calendar.complete(ends + 10**9) == 3
    assert calendar.complete(0.0) == 0
