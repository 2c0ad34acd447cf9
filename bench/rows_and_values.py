"""Rows of lineitem that come and go beside values that move: `python -m bench rows_and_values`.

TPC-H b1 to b7 of the 17 queries under `rows+cells`, at three distances that a row counts as, epsilon 1. For each: which
noise the public facts choose, its mean size on the data over that of Laplace noise for the cap, and the least that the
floor allows (combined.cap). Reads generated data; nothing is released.
"""

from __future__ import annotations

import tempfile
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import secant
from bench.suites.laud import database, forms
from bench.suites.laud.database import TABLES
from secant.noise.choosing import usual_steps
from secant.numeric.optimal_law import mean as mean_noise
from secant.plan.rewrites.rewrite import normalize
from secant.policy.policy import ColumnFacts, Policy
from secant.sensitivity.certificate import SmoothSensitivity
from secant.sensitivity.derivative.soften.tuning import RATIOS, floored_smoothness
from secant.sensitivity.portfolio import Decomposition, PublicFacts, prepare
from secant.sql.bind import from_sql

DISTANCES = (Fraction(1), Fraction(3), Fraction(10))
QUERIES = tuple(q for q in forms.QUERIES if q.split("_")[0] in ("b1", "b3", "b4", "b5", "b6", "b7"))
EPSILON = Fraction(1)


def run(scale: str = "0.1") -> dict[str, Any]:
    """Measure every query at every distance."""
    source = f"duckdb:{database.duckdb_file(scale, database.default_directory())}"
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for distance in DISTANCES:
            ledger = Path(folder) / f"{distance}.ledger"
            with secant.connect(source, policy=policy_of(distance), ledger=ledger) as db:
                rows += [_row(db, query, distance) for query in QUERIES]
    return {"scale": scale, "epsilon": float(EPSILON), "queries": rows}


def policy_of(distance: Fraction) -> Policy:
    """Hide rows and values of lineitem, with the norm of the 17 queries; all other tables are public."""
    profile = forms.profile_of("native")
    policy = forms.policy_of(profile, QUERIES[0])
    (cells,) = policy.protections
    both = replace(
        cells,
        name="both",
        kind="rows+cells",
        distance={"lineitem": cells.distance["lineitem"]},
        add_remove={"lineitem": distance},
    )
    public = tuple(t for t in TABLES if t != "lineitem")
    # Under `cells` its ends are looked up; where rows come and go they are private, and must be declared.
    items = policy.tables["lineitem"]
    tax = ColumnFacts(range=(0, Decimal("0.08")))
    items = replace(items, columns={**items.columns, "l_tax": tax})
    tables = {**policy.tables, "lineitem": items}
    return replace(policy, protections=(both,), public=public, tables=tables)


def _row(db: secant.Connection, query: str, distance: Fraction) -> dict[str, Any]:
    text = forms.text_of(forms.profile_of("native"), query)
    plan = normalize(from_sql(text, db.catalog))
    found = prepare(plan, db.policy, db.policy.protections, db.catalog, PublicFacts(EPSILON))
    assert isinstance(found, Decomposition), found
    (curve,) = found.bounded[0].certificates[0].bounds.values()
    assert isinstance(curve, SmoothSensitivity)
    assert curve.cap is not None
    assert curve.least is not None
    (seen,) = db.inspect(text, epsilon=EPSILON)
    step = found.bounded[0].release.measures[0].step
    chosen = floored_smoothness(EPSILON, curve.least, curve.cap, usual_steps(curve))
    cap = float((curve.cap + 2 * curve.rounding) * step)
    mean = cap if chosen is None else mean_noise(float(chosen)) * seen["sensitivity"]
    floors = [mean_noise(float(k)) * float(curve.least(EPSILON / k) * step) for k in RATIOS]
    return {
        "query": query,
        "epsilon_times_distance": float(EPSILON * distance),
        "noise": "cap and Laplace" if chosen is None else f"smooth, k = {float(chosen):g}",
        "cap": cap,
        "over_the_cap": mean / cap,
        "floor_over_the_cap": min(floors) / cap,
        "exact": seen["exact"],
        "softened": seen["softened"],
        "error95": seen["error95"],
    }


if __name__ == "__main__":
    import json

    print(json.dumps(run(), indent=2))
