"""SmartNoise SQL and OpenDP on the counts of `bench/peers.py`, kept as bench/seven_peers.json.

Each in an environment of its own, with the TPC-H tables of `bench/data/sf0.1`:

    /tmp/sn/bin/python -P -W ignore bench/seven_peers.py smartnoise     (pip install smartnoise-sql==1.0.10 pyarrow)
    /tmp/dp/bin/python -P -W ignore bench/seven_peers.py opendp         (pip install "opendp[polars]==0.16.0")

One customer protected, 36 orders of each at most, epsilon 1, delta 1e-8. SmartNoise is told the limit as `max_ids`, and
not to sample, censor or clamp. OpenDP's noise is that of `dp.len()` within 36 rows of a customer: discrete Laplace.
"""

from __future__ import annotations

import json
import statistics
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
ORDERS = HERE / "data" / "sf0.1" / "orders.parquet"
MOST = 36
RUNS = {"count": 1500, "group count": 300}
"""Five groups tell as much as five runs."""
Release = Callable[[], dict[str, float]]


def summary(errors: list[float]) -> dict[str, float]:
    """Give the median and the error that 95 % of the runs keep to, in percent."""
    ordered = sorted(errors)
    return {
        "percent": 100 * statistics.median(ordered),
        "percent95": 100 * ordered[-(-len(ordered) * 95 // 100) - 1],
        "runs": len(ordered),
    }


def smartnoise() -> tuple[str, dict[str, Release], dict[str, dict[str, float]]]:
    import importlib.metadata

    import pandas
    import snsql
    from snsql import Privacy

    orders = pandas.read_parquet(ORDERS, columns=["o_custkey", "o_orderpriority"])
    meta = {
        "": {
            "db": {
                "orders": {
                    "rows": len(orders),
                    "max_ids": MOST,
                    "sample_max_ids": False,
                    "censor_dims": False,
                    "clamp_counts": False,
                    "o_custkey": {"type": "int", "private_id": True},
                    "o_orderpriority": {"type": "string"},
                }
            }
        }
    }
    privacy = Privacy(epsilon=1.0, delta=1e-8)
    reader: Any = snsql.from_df(orders, privacy=privacy, metadata=meta)

    def count() -> dict[str, float]:
        rows = reader.execute("SELECT COUNT(*) AS n FROM db.orders")
        return {"": float(rows[1][0])}

    def groups() -> dict[str, float]:
        rows = reader.execute(
            "SELECT o_orderpriority, COUNT(*) AS n FROM db.orders GROUP BY o_orderpriority"
        )
        return {row[0]: float(row[1]) for row in rows[1:]}

    sizes = orders["o_orderpriority"].value_counts().to_dict()
    truth = {"count": {"": float(len(orders))}, "group count": sizes}
    version = importlib.metadata.version("smartnoise-sql")
    return f"SmartNoise SQL {version}", {"count": count, "group count": groups}, truth


def opendp() -> tuple[str, dict[str, Release], dict[str, dict[str, float]]]:
    import importlib.metadata

    import opendp.prelude as dp
    import polars

    dp.enable_features("contrib")
    orders = polars.scan_parquet(ORDERS).select("o_custkey", "o_orderpriority")
    names = orders.select("o_orderpriority").unique().collect()["o_orderpriority"].to_list()

    def asked(lazy: Any) -> dict[str, float]:
        context = dp.Context.compositor(
            data=lazy,
            privacy_unit=dp.unit_of(contributions=MOST),
            privacy_loss=dp.loss_of(epsilon=1.0),
            split_evenly_over=1,
            margins=[dp.polars.Margin(by=["o_orderpriority"], invariant="keys")],
        )
        grouped = context.query().group_by("o_orderpriority").agg(dp.len())
        rows = grouped.release().collect()
        return {row[0]: float(row[1]) for row in rows.iter_rows()}

    def count() -> dict[str, float]:
        context = dp.Context.compositor(
            data=orders,
            privacy_unit=dp.unit_of(contributions=MOST),
            privacy_loss=dp.loss_of(epsilon=1.0),
            split_evenly_over=1,
        )
        return {"": float(context.query().select(dp.len()).release().collect().item())}

    collected = orders.collect()
    sizes = dict(collected["o_orderpriority"].value_counts().iter_rows())
    assert set(sizes) == set(names)
    truth = {"count": {"": float(len(collected))}, "group count": sizes}
    version = importlib.metadata.version("opendp")
    return f"OpenDP {version}", {"count": count, "group count": lambda: asked(orders)}, truth


def main(which: str) -> None:
    name, questions, truth = {"smartnoise": smartnoise, "opendp": opendp}[which]()
    place = HERE / "seven_peers.json"
    kept = json.loads(place.read_text(encoding="utf-8")) if place.exists() else {}
    kept[name] = {}
    for question, release in questions.items():
        errors = [
            abs(shown.get(key, 0.0) / value - 1)
            for shown in (release() for _ in range(RUNS[question]))
            for key, value in truth[question].items()
        ]
        kept[name][question] = summary(errors)
    place.write_text(json.dumps(kept, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1])
