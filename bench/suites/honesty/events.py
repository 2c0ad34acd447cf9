"""An event log with a heavy tail: whoever comes r-th has about a constant times r^-0.7 of the events.

In: a directory. Out: a DuckDB file with one table, whose people are a column of it. Everything follows from whole
numbers, so everybody gets the same log. The busiest of 20,000 people has about 1.6 % of all events.
"""

from __future__ import annotations

from pathlib import Path

import duckdb

PEOPLE, EVENTS, TAIL = 20_000, 300_000, 0.7
PAGES = ("article", "help", "shop", "start")
COUNTRIES = ("AT", "CH", "DE", "EE", "FR", "IT", "NL", "PL")
DAYS = 28

POLICY = """\
# One person is protected. Nobody has declared how many events a person has.
[database]
source = "duckdb:events.duckdb"
[tables.hits.columns]
width = {{ range = [0, 4000] }}
seconds = {{ range = [0, 600] }}
day = {{ range = [1, {days}], step = 1 }}
page = {{ values = {pages} }}
country = {{ values = {countries} }}
[protections.people]
kind = "unit"
unit = "hits.person"
epsilon = 10.0
delta = 1e-6
"""

QUESTIONS = {
    "count": "SELECT count(*) FROM hits",
    "sum": "SELECT sum(width) FROM hits",
    "avg": "SELECT avg(width) FROM hits",
    "stddev": "SELECT stddev(seconds) FROM hits",
    "several": "SELECT count(*), sum(seconds), avg(width) FROM hits",
    "people": "SELECT count(DISTINCT person) FROM hits",
    "filtered": "SELECT count(*), avg(seconds) FROM hits WHERE page = 'shop' AND day <= 7",
    "narrow": "SELECT count(*) FROM hits WHERE country = 'EE' AND day = 13",
    "by page": "SELECT page, count(*), avg(width) FROM hits GROUP BY page",
    "by country": "SELECT country, sum(seconds) FROM hits GROUP BY country",
    "by day": "SELECT day, count(*) FROM hits GROUP BY day",
    "pages seen": "SELECT country, count(DISTINCT page) FROM hits GROUP BY country",
    "busy people": "SELECT count(*) FROM (SELECT person FROM hits GROUP BY person HAVING count(*) > 20)",
    "per person": "SELECT avg(n) FROM (SELECT person, count(*) AS n FROM hits GROUP BY person)",
    "share": "SELECT sum(CASE WHEN page = 'shop' THEN seconds ELSE 0 END) / sum(seconds) FROM hits",
}


UNDECLARED = """\
# The same people, and nobody has declared anything about what they do.
[database]
source = "duckdb:events.duckdb"
[tables.hits.columns]
page = {{ values = {pages} }}
[protections.people]
kind = "unit"
unit = "hits.person"
epsilon = 10.0
delta = 1e-6
"""
UNDECLARED_QUESTIONS = {
    "sum": "SELECT sum(width) FROM hits",
    "avg": "SELECT avg(seconds) FROM hits",
    "several": "SELECT count(*), sum(seconds), avg(width) FROM hits",
    "by page": "SELECT page, count(*), avg(width) FROM hits GROUP BY page",
    "stddev": "SELECT stddev(seconds) FROM hits",
    "median": "SELECT median(seconds) FROM hits",
    "people": "SELECT count(DISTINCT person) FROM hits",
    "few": "SELECT sum(seconds), count(*) FROM hits WHERE country = 'EE' AND day = 13 AND page = 'shop'",
    "long stays": "SELECT count(*) FROM (SELECT person, sum(seconds) AS s FROM hits GROUP BY person "
    "HAVING sum(seconds) > 5000)",
}
"""Ranges and limits are found anew, privately, for each release: what they cut is part of how far answers are off."""


def undeclared_policy() -> str:
    """Give the policy of an owner who declares nobody's limits and ranges."""
    return UNDECLARED.format(pages=_toml(PAGES))


def policy_text() -> str:
    """Give the policy as its owner would write it."""
    return POLICY.format(days=DAYS, pages=_toml(PAGES), countries=_toml(COUNTRIES))


def _toml(names: tuple[str, ...]) -> str:
    return "[" + ", ".join(f'"{name}"' for name in names) + "]"


def make_events(directory: Path) -> Path:
    """Write the log, and give its file."""
    place = directory / "events.duckdb"
    total = sum(rank**-TAIL for rank in range(1, PEOPLE + 1))
    most = f"CAST({EVENTS} / {total!r} * pow(rank, -{TAIL}) AS INTEGER)"
    # Multiplying by a number without common factors shuffles. The heavy are no different in what they look at, but
    # their windows are wider.
    page = _one_of(PAGES, "event * 7907 % 10007", 10007)
    country = _one_of(COUNTRIES, "rank * 6007 % 997", 997)
    with duckdb.connect(str(place)) as db:
        db.execute(
            "CREATE TABLE hits AS WITH people AS "
            f"(SELECT rank, greatest(1, {most}) AS events FROM range(1, {PEOPLE} + 1) AS p(rank)), "
            "log AS (SELECT rank, events, row_number() OVER (ORDER BY rank, i) AS event "
            "FROM people, LATERAL (SELECT unnest(range(events)) AS i)) "
            "SELECT CAST(rank * 7919 % 1000003 AS INTEGER) AS person, "
            f"CAST(1 + event * 31 % {DAYS} AS INTEGER) AS day, {page} AS page, {country} AS country, "
            "CAST(800 + event * 7901 % 1201 + least(events, 400) AS DOUBLE) AS width, "
            "CAST(5 + event * 4001 % 4003 * (event * 4001 % 4003) // 30000 AS INTEGER) AS seconds FROM log"
        )
    return place


def _one_of(names: tuple[str, ...], number: str, below: int) -> str:
    """Pick a name by a whole number from 0 to one less than `below`."""
    return f"{list(names)!r}[1 + CAST({number} * {len(names)} // {below} AS INTEGER)]"
