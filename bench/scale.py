"""Releases at internet scale: what the model says they shuffle, beside what Spark counts: `python -m bench scale`.

In: TPC-H data of some scales, and a Spark server of this machine. Out: for each kind of release the exchanges that
the model foresees and those of Spark's own pages, with their ratio; then the model at 1e12 rows and 1e9 people. Bytes
of records are compressed on the way: that one factor a case is taken from the smallest scale, all else is foreseen.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import duckdb

import secant
from bench.local_spark import CORES, SparkServer, missing, running_spark
from bench.scale_model import CASES, Case, Sizes, Stage, internet
from bench.suites.laud import database
from bench.suites.tpch.texts import customers_text
from secant.engine import Connection
from secant.policy.file import read_policy

SCALES = ("0.1", "0.5", "1", "10")
MEMORY = "4g"
PARTITIONS = 4
OPENING = 2**22
"""Bytes that Spark takes the opening of a file for; parts are no smaller."""
SMALL = 10 * 2**20
"""Bytes up to which Spark sends a table to all, instead of shuffling; scaled with the data, so that plans are alike."""
FIXED = (
    customers_text()
    .replace('kind = "unit"', 'kind = "unit"\ntruncation = "fixed"')
    .replace("[database]", "[database]\nstatement_seconds = 7200")  # the largest scale takes long
)
ROWS = FIXED.split("[protections.customers]")[0] + (
    '[protections.rows]\nkind = "rows"\nepsilon = 10.0\ntables = ["customer", "orders", "lineitem"]\n'
)
BY_PERSON = """
[tables.orders_by_person]
key = ["o_orderkey"]
[tables.orders_by_person.columns]
o_totalprice = { range = [0, 600000] }
[protections.customers]
kind = "unit"
unit = "orders_by_person.o_custkey"
truncation = "fixed"
epsilon = 10.0
delta = 1e-6
[protections.customers.limits]
orders_by_person = 41
"""
(_CUSTOMERS,) = read_policy(FIXED).protections
ORDERS = _CUSTOMERS.limits["orders"]
POLICIES = {"rows": ROWS, "unit": FIXED, "by person": BY_PERSON}


@dataclass(frozen=True, slots=True)
class Counted:
    """What Spark counted for one release."""

    stages: int
    read: int
    """Rows that were read from tables."""
    records: int
    """Records that were shuffled."""
    bytes: int
    """Bytes that were shuffled, compressed."""
    cpu: float
    """Processor seconds of all tasks."""


def run(scales: Sequence[str] = SCALES) -> dict[str, Any]:
    """Measure, compare, and foresee."""
    lacking = missing()
    found: dict[str, Any] = {"not_run": lacking} if lacking else checked(scales)
    return found | {"internet": internet()}


def checked(scales: Sequence[str]) -> dict[str, Any]:
    """Give for each case and scale the model's numbers and Spark's."""
    settings = {"spark.sql.shuffle.partitions": str(PARTITIONS)}
    rows: list[dict[str, Any]] = []
    with running_spark(MEMORY, settings, pages=True) as server:
        for scale in scales:
            place = database.parquet_of(scale, database.default_directory()).resolve()
            for case in CASES:
                counted = measured(server, place, case, float(scale))
                stages = case.stages(sizes_of(place))
                rows.append({"case": case.name, "scale": scale, **compared(stages, counted)})
                print(json.dumps(rows[-1]), flush=True)
    left = {
        row["case"]: row["bytes"] / row["raw_bytes"] for row in rows if row["scale"] == scales[0]
    }
    for row in rows:
        row["foreseen_bytes"] = round(left[row["case"]] * row["raw_bytes"])
        row["bytes_ratio"] = round(row["foreseen_bytes"] / row["bytes"], 3)
    return {"compression": left, "cores": CORES, "checked": rows}


def sizes_of(place: Path) -> Sizes:
    """Give what the model may know of TPC-H data: numbers of rows, parts of files that tasks read, who is over a limit.

    Two customers of three have orders.
    """
    items, orders = _divided(place / "lineitem.parquet"), _divided(place / "orders.parquet")
    rows = sum(orders)
    return Sizes(
        sum(items),
        rows,
        sum(_divided(place / "customer.parquet")) * 2 / 3,
        0.0,
        len(items),
        len(orders),
        CORES,
        PARTITIONS,
        limit=200,
        order_parts=tuple(part / rows for part in orders),
        over_limit=_over_limit(place / "orders.parquet"),
    )


def _divided(file: Path) -> list[int]:
    """Give the rows of each task that has some: it reads the row groups of a file whose middle is in its part."""
    start = "min(coalesce(dictionary_page_offset, data_page_offset))"
    told = f"""SELECT any_value(row_group_num_rows), {start} + sum(total_compressed_size) / 2
               FROM parquet_metadata('{file}') GROUP BY row_group_id"""
    with duckdb.connect() as connection:
        groups = connection.execute(told).fetchall()
    part = min(2**27, max(OPENING, (file.stat().st_size + OPENING) / CORES))
    tasks: Counter[int] = Counter()
    for rows, middle in groups:
        tasks[middle // part] += rows
    return list(tasks.values())


def _over_limit(orders: Path) -> tuple[float, float]:
    """Give how many customers have more orders than the policy counts, and how many orders they have."""
    counted = f"SELECT count(*) AS n FROM '{orders}' GROUP BY o_custkey HAVING n > {ORDERS}"
    with duckdb.connect() as connection:
        found = connection.execute(f"SELECT count(*), coalesce(sum(n), 0) FROM ({counted})")
        ((people, rows),) = found.fetchall()
    return float(people), float(rows)


def measured(server: SparkServer, place: Path, case: Case, scale: float) -> Counted:
    """Run the statements of a release, and give what Spark counted of them."""
    with opened(server, place, case, scale) as db:
        engine = db._backend
        statements = db.explain(case.question, epsilon=1).to_dict()["statements"]
        session = engine._servers.get()  # type: ignore[attr-defined]
        before = _jobs(server, session.session_id)
        with engine.session() as asked:
            for statement in statements:
                asked.rows(statement)
        time.sleep(1)  # its pages lag behind
        return _counted(server, _jobs(server, session.session_id) - before)


@contextmanager
def opened(server: SparkServer, place: Path, case: Case, scale: float) -> Iterator[Connection]:
    """Open the data as a case wants them: as generated, or kept by person in a table of the server's catalog."""
    source = f"{server.address}?parquet={place}"
    if case.policy == "by person":
        source = f"{server.address}?schema={_by_person(server, place)}"
    policy = read_policy(POLICIES[case.policy])
    with (
        tempfile.TemporaryDirectory() as folder,
        secant.connect(source, policy=policy, ledger=Path(folder) / "unused.ledger") as db,
    ):
        session = db._backend._servers.get()  # type: ignore[attr-defined]
        session.conf.set("spark.sql.autoBroadcastJoinThreshold", str(int(SMALL * scale)))
        yield db


def _by_person(server: SparkServer, place: Path) -> str:
    """Write orders so that all of a person lie together, and give the schema."""
    from secant.engines.spark.session import open_server

    backend = open_server(server.address.removeprefix("spark:"))
    session, schema = backend._servers.get(), "s" + place.name.replace(".", "_")
    session.sql(f"CREATE SCHEMA IF NOT EXISTS {schema}")
    session.sql(
        f"CREATE TABLE IF NOT EXISTS {schema}.orders_by_person USING parquet CLUSTERED BY (o_custkey) "
        f"INTO {PARTITIONS} BUCKETS AS SELECT * FROM parquet.`{place}/orders.parquet`"
    )
    backend.close()
    return schema


def _jobs(server: SparkServer, session: str) -> set[int]:
    jobs = server.told("jobs")
    return {j["jobId"] for j in jobs if any(session in tag for tag in j.get("jobTags", ()))}


def _counted(server: SparkServer, jobs: set[int]) -> Counted:
    told = server.told("jobs")
    ids = {i for job in told if job["jobId"] in jobs for i in job["stageIds"]}
    stages = [s for s in server.told("stages?status=complete") if s["stageId"] in ids]
    total = {
        name: sum(s[name] for s in stages)
        for name in ("inputRecords", "shuffleWriteRecords", "shuffleWriteBytes", "executorCpuTime")
    }
    shuffled = sum(s["shuffleWriteRecords"] > 0 for s in stages)
    return Counted(
        shuffled,
        total["inputRecords"],
        total["shuffleWriteRecords"],
        total["shuffleWriteBytes"],
        total["executorCpuTime"] / 1e9,
    )


def compared(stages: Sequence[Stage], counted: Counted) -> dict[str, Any]:
    """Set the model's numbers beside Spark's."""
    read = sum(s.records for s in stages if not s.by)
    records = sum(s.records for s in stages if s.by)
    exchanges = sum(1 for s in stages if s.by and s.records)
    return {
        **asdict(counted),
        "foreseen_stages": exchanges,
        "foreseen_read": round(read),
        "foreseen_records": round(records),
        "raw_bytes": round(sum(s.bytes for s in stages)),
        "read_ratio": round(read / max(1, counted.read), 3),
        "records_ratio": round(records / max(1, counted.records), 3),
    }


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--scales", default=",".join(SCALES))
    print(json.dumps(run(parser.parse_args().scales.split(",")), indent=2))
