"""How far everyday statistics are off: `python -m bench everyday`.

Mean absolute error over draws on made-up tables of 5,000 rows: sums, shares, deviations, histograms, covariances and
regressions, beside OpenDP if it is installed and IBM diffprivlib as kept in bench/everyday_peers.json; and means and
medians without any bounds on values with heavy tails.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from bench.everyday_data import BOUNDS, EDGES, EPSILONS, TABLES, table, truths
from secant import stats

PEERS = Path(__file__).with_name("everyday_peers.json")
DRAWS = 5
DELTA = 1e-6
Estimates = Callable[[np.ndarray, float, str], dict[str, Any]]


def ours(rows: np.ndarray, epsilon: float, neighbors: Any) -> dict[str, Any]:
    ages = rows[:, 0]
    rest = {"epsilon": epsilon, "neighbors": neighbors}
    square = np.triu_indices(3)
    line = {"bounds": BOUNDS[:2], "explained_bounds": BOUNDS[2], **rest}
    return {
        "sum": [stats.sum(ages, bounds=BOUNDS[0], **rest).value],
        "share": [stats.proportion(ages >= 65, n=len(ages), **rest).value],
        "deviation": [stats.std(ages, bounds=BOUNDS[0], n=len(ages), **rest).value],
        "histogram": stats.histogram(ages, edges=EDGES, **rest).counts,
        "covariance": stats.covariance(rows, bounds=BOUNDS, **rest).matrix[square],
        "regression": stats.regression(rows[:, :2], rows[:, 2], **line).coefficients,
    }


def opendp(rows: np.ndarray, epsilon: float, _: str) -> dict[str, Any]:
    """OpenDP's sum (of a known number of rows, replaced) and counts by category (added or removed)."""
    import opendp.prelude as dp

    dp.enable_features("contrib")
    ages = rows[:, 0].tolist()
    known = dp.vector_domain(dp.atom_domain(bounds=BOUNDS[0]), size=len(ages))

    def total(noise: float) -> Any:
        return (known, dp.symmetric_distance()) >> dp.t.then_sum() >> dp.m.then_laplace(noise)

    kinds = dp.vector_domain(dp.atom_domain(T=int)), dp.symmetric_distance()
    bins = list(range(len(EDGES) - 1))

    def counts(noise: float) -> Any:
        return kinds >> dp.t.then_count_by_categories(bins) >> dp.m.then_laplace(noise)

    places = np.clip(np.digitize(rows[:, 0], EDGES) - 1, 0, len(bins) - 1).tolist()
    sums = total(dp.binary_search_param(total, 2, epsilon, T=float))
    bars = counts(dp.binary_search_param(counts, 1, epsilon, T=float))
    return {"sum": [sums(ages)], "histogram": bars(places)[: len(bins)]}


def run() -> dict[str, Any]:
    peers = json.loads(PEERS.read_text())["mean_error"] if PEERS.exists() else {}
    rows = []
    for epsilon in EPSILONS:
        sides = {
            "secant": _errors(ours, epsilon, "add-remove"),
            "secant, replace": _errors(ours, epsilon, "replace"),
            "opendp": _errors(opendp, epsilon, "") if _has_opendp() else {},
        }
        for name in sides["secant"]:
            row: dict[str, Any] = {"statistic": name, "epsilon": epsilon}
            row |= {side: found.get(name) for side, found in sides.items()}
            row["diffprivlib, replace"] = peers.get(f"{name}, {epsilon:g}")
            rows.append(
                {k: float(f"{v:.3g}") if isinstance(v, float) else v for k, v in row.items()}
            )
    return {"mean_absolute_error": rows, "without_bounds": _without_bounds()}


def _has_opendp() -> bool:
    try:
        import opendp.prelude  # noqa: F401
    except ImportError:
        return False
    return True


def _errors(estimates: Estimates, epsilon: float, neighbors: str) -> dict[str, float]:
    found: dict[str, list[float]] = {}
    for number in range(TABLES):
        data = table(number)
        truth = truths(data)
        for _ in range(DRAWS):
            for name, value in estimates(data, epsilon, neighbors).items():
                off = np.abs(np.asarray(value, dtype=float) - truth[name])
                found.setdefault(name, []).append(float(off.mean()))
    return {name: float(np.mean(off)) for name, off in found.items()}


def _without_bounds() -> list[dict[str, Any]]:
    """Student's t with 2 degrees around 40, times 10; Δ = 20/n, setting out from 30."""
    rows = []
    for size in (1001, 5000):
        for epsilon in EPSILONS:
            found: dict[str, list[float]] = {}
            for number in range(20):
                values = np.random.default_rng([size, number]).standard_t(2, size) * 10 + 40
                wide = {"epsilon": epsilon, "bounds": (-1e6, 1e6), "n": size}
                own = {"epsilon": epsilon, "delta_f": 20 / size, "empty": 30}
                for name, function, truth in (
                    ("mean", stats.mean, values.mean()),
                    ("median", stats.median, np.median(values)),
                ):
                    for side, terms in (("without bounds", own), ("bounds of ±1,000,000", wide)):
                        off = abs(function(values, **terms).value - truth)
                        found.setdefault(f"{name}, {side}", []).append(float(off))
            rows.append(
                {"rows": size, "epsilon": epsilon}
                | {name: float(f"{np.mean(off):.3g}") for name, off in found.items()}
            )
    return rows
