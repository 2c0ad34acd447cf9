"""A log of visits to a web site: 12,000 people, most of whom come now and then, and 60 who are there all day.

In: nothing; a seeded generator makes the same log for everybody. Out: tables, what an owner would declare, questions.
"""

from __future__ import annotations

import datetime
from typing import Any

import numpy as np

PEOPLE, HEAVY = 12_000, 60
START, DAYS = datetime.datetime(2025, 1, 1), 90  # noqa: DTZ001  # a log in local time
COUNTRIES = ("AT", "BE", "CH", "DE", "ES", "FR", "IT", "NL", "PL", "SE")
DEVICES = ("desktop", "phone", "tablet")
PAGES = ("account", "article", "basket", "help", "home", "payment", "search", "shop")
REFERRERS = ("direct", "mail", "news", "partner", "search", "social")

TABLES = {
    "visitors": "visitor INTEGER PRIMARY KEY, joined DATE NOT NULL",
    "visits": "visit INTEGER PRIMARY KEY, visitor INTEGER NOT NULL REFERENCES visitors (visitor), "
    "moment TIMESTAMP NOT NULL, country VARCHAR NOT NULL, device VARCHAR NOT NULL, page VARCHAR NOT NULL, "
    "referrer VARCHAR NOT NULL, seconds INTEGER NOT NULL, clicks INTEGER NOT NULL, spent DECIMAL(9, 2) NOT NULL",
}
UNIT = "visitors.visitor"
FRAME = ("visits", "visitor")
REFERENCES: dict[str, dict[str, str]] = {"visits": {"visitor": "visitors.visitor"}}
LIMITS = {"visits": 2000}
COLUMNS: dict[str, dict[str, Any]] = {
    "visits": {
        "moment": {"range": ["2025-01-01", "2025-04-01"]},
        "country": {"values": list(COUNTRIES)},
        "device": {"values": list(DEVICES)},
        "page": {"values": list(PAGES)},
        "referrer": {"values": list(REFERRERS)},
        "seconds": {"range": [0, 3600], "step": 1},
        "clicks": {"range": [0, 100], "step": 1},
        "spent": {"range": [0, 1000]},
    }
}

QUESTIONS = {
    "visits": "SELECT count(*) FROM visits",
    "visitors": "SELECT count(DISTINCT visitor) FROM visits",
    "clicks": "SELECT sum(clicks) FROM visits",
    "revenue": "SELECT sum(spent) FROM visits",
    "time on page": "SELECT avg(seconds) FROM visits",
    "middle time": "SELECT median(seconds) FROM visits",
    "slow tenth": "SELECT quantile_cont(seconds, 0.9) FROM visits",
    "spread of time": "SELECT stddev(seconds) FROM visits",
    "longest": "SELECT max(seconds) FROM visits",
    "first visit": "SELECT min(clicks), max(clicks) FROM visits",
    "pages": "SELECT page, count(*) FROM visits GROUP BY page",
    "visitors by page": "SELECT page, count(DISTINCT visitor) FROM visits GROUP BY page",
    "time by page": "SELECT page, avg(seconds) FROM visits GROUP BY page",
    "middle time by device": "SELECT device, median(seconds) FROM visits GROUP BY device",
    "revenue by country": "SELECT country, sum(spent) AS revenue FROM visits GROUP BY country ORDER BY revenue DESC",
    "devices": "SELECT device, count(*), avg(seconds), sum(clicks) FROM visits GROUP BY device",
    "referrers": "SELECT referrer, count(*) AS n FROM visits GROUP BY referrer ORDER BY n DESC LIMIT 3",
    "months": "SELECT date_trunc('month', moment) AS month, count(*) FROM visits GROUP BY month ORDER BY month",
    "days": "SELECT date_trunc('day', moment) AS day, count(*) FROM visits GROUP BY day ORDER BY day",
    "hours": "SELECT extract(hour FROM moment) AS hour, count(*) FROM visits GROUP BY hour ORDER BY hour",
    "shop on phones": "SELECT count(*), avg(seconds) FROM visits WHERE page = 'shop' AND device = 'phone'",
    "share of phones": "SELECT avg(CASE WHEN device = 'phone' THEN 1.0 ELSE 0 END) FROM visits",
    "buying visits": "SELECT 100.0 * sum(CASE WHEN spent > 0 THEN 1 ELSE 0 END) / count(*) FROM visits",
    "basket": "SELECT avg(spent) FROM visits WHERE spent > 0",
    "buyers": "SELECT count(DISTINCT visitor) FROM visits WHERE spent > 0",
    "visits per visitor": "SELECT avg(n) FROM (SELECT visitor, count(*) AS n FROM visits GROUP BY visitor)",
    "regulars": "SELECT count(*) FROM (SELECT visitor FROM visits GROUP BY visitor HAVING count(*) >= 10)",
    "clicks and time": "SELECT corr(clicks, seconds) FROM visits",
    "time histogram": "SELECT floor(seconds / 60) AS minutes, count(*) FROM visits WHERE seconds < 600 "
    "GROUP BY minutes ORDER BY minutes",
    "country and device": "SELECT country, device, count(*) FROM visits GROUP BY country, device",
}


def make() -> dict[str, Any]:
    """Give the tables as frames."""
    import pyarrow as pa

    draw = np.random.default_rng(2025)  # sample data, not noise
    often = 1 + np.floor(draw.lognormal(1.6, 1.0, PEOPLE)).astype(int)
    often[:HEAVY] = draw.integers(700, 1500, HEAVY)
    number = draw.permutation(PEOPLE) + 1001  # who is heavy does not show in the number
    visitor = np.repeat(np.arange(PEOPLE), often)
    size = len(visitor)
    country = draw.choice(10, PEOPLE, p=np.array([6, 4, 7, 30, 9, 16, 11, 6, 7, 4]) / 100)
    device = draw.choice(3, PEOPLE, p=[0.35, 0.55, 0.10])
    page = draw.choice(8, size, p=np.array([6, 25, 5, 4, 22, 3, 15, 20]) / 100)
    slow = (
        draw.lognormal(0, 0.4, PEOPLE)[visitor] * np.array([60, 140, 50, 110, 20, 90, 30, 80])[page]
    )
    seconds = np.clip(slow * draw.lognormal(0, 0.9, size), 1, 3600).astype(int)
    clicks = np.minimum(draw.poisson(1 + seconds / 40), 100)
    paid = (page == 5) & (draw.random(size) < 0.6)
    spent = np.where(paid, np.clip(draw.lognormal(3.6, 0.8, size), 1, 1000), 0)
    hour = draw.choice(24, size, p=_by_hour())
    second = draw.integers(0, DAYS, size) * 86400 + hour * 3600 + draw.integers(0, 3600, size)
    order = np.argsort(second, kind="stable")
    joined = draw.integers(0, 2000, PEOPLE)
    at = np.datetime64(START, "s") + second[order].astype("timedelta64[s]")
    return {
        "visitors": pa.table(
            {
                "visitor": number.astype(np.int32),
                "joined": np.datetime64("2019-07-01", "D") + joined.astype("timedelta64[D]"),
            }
        ),
        "visits": pa.table(
            {
                "visit": np.arange(1, size + 1, dtype=np.int32),
                "visitor": number[visitor][order].astype(np.int32),
                "moment": at.astype("datetime64[us]"),
                "country": np.array(COUNTRIES)[country[visitor]][order],
                "device": np.array(DEVICES)[device[visitor]][order],
                "page": np.array(PAGES)[page][order],
                "referrer": np.array(REFERRERS)[
                    draw.choice(6, size, p=[0.3, 0.08, 0.1, 0.05, 0.35, 0.12])
                ],
                "seconds": seconds[order].astype(np.int32),
                "clicks": clicks[order].astype(np.int32),
                "spent": np.round(spent[order], 2),
            }
        ),
    }


def _by_hour() -> Any:
    busy = 1.2 + np.sin((np.arange(24) - 9) * np.pi / 12)
    return busy / busy.sum()
