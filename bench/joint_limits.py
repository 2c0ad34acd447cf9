"""Would one choice of limits for several measures of a unit pay? `python -m bench.joint_limits [--repeat N]`.

The event log, three measures at epsilon 1: a limit is chosen for each with its own part of epsilon. No way to choose
them together can be sharper than a choice that every measure makes with the parts of all three. That bound on the gain,
which costs more than it may, is set beside what is done: errors at 95 % of count and sums, over the true values.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import duckdb

import secant
from bench.suites.honesty import events
from bench.suites.tpch.accuracy import at_level
from bench.suites.tpch.rehearsal import compiled
from secant.noise.limited import LimitToChoose
from secant.noise.mechanisms.discrete_laplace import add_discrete_laplace
from secant.noise.mechanisms.limits import choose_limit
from secant.policy.file import read_policy

TEXT = "SELECT count(*), sum(seconds), sum(width) FROM hits"
ONE = Fraction(1)


def errors(
    values: Sequence[int], noise: LimitToChoose, choosing: Fraction, repeat: int
) -> list[float]:
    """Choose a limit, cut every unit down to it, add noise; how far from the truth, relatively."""
    limits, noising = noise.bound.limits, noise.epsilon - noise.choosing
    above = [sum(v > limit for v in values) for limit in limits]
    cut = {limit: sum(min(v, limit) for v in values) for limit in limits}
    truth = sum(values)
    found = []
    for _ in range(repeat):
        limit = choose_limit(limits, above, choosing, noising, 1)
        (shown,) = add_discrete_laplace([cut[limit]], scale=Fraction(limit) / noising)
        found.append(abs(shown / truth - 1))
    return found


def run(repeat: int = 300) -> dict[str, Any]:
    """Give errors at 95 % apart, and as if all three choices had the epsilon of all."""
    with TemporaryDirectory() as folder:
        source = events.make_events(Path(folder))
        policy = read_policy(events.policy_text())
        with secant.connect(f"duckdb:{source}", policy=policy, ledger=":memory:") as db:
            job = compiled(db, TEXT, ONE, Fraction(0)).job
        with duckdb.connect(str(source), read_only=True) as plain:
            each = "SELECT count(*), sum(seconds), sum(width) FROM hits GROUP BY person"
            columns = list(zip(*plain.execute(each).fetchall(), strict=True))
    (bounded,) = job.prepared.bounded
    rows: dict[str, Any] = {}
    for measure, values in zip(bounded.release.measures, columns, strict=True):
        noise = job.noise.noise[measure.column]
        assert isinstance(noise, LimitToChoose)
        steps = [int(Fraction(v) / measure.step) for v in values]
        apart = at_level(errors(steps, noise, noise.choosing, repeat))
        together = at_level(errors(steps, noise, len(columns) * noise.choosing, repeat))
        rows[measure.words] = {"apart": apart, "together_at_best": together}
    return {"text": TEXT, "repeat": repeat, "errors95": rows}


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--repeat", type=int, default=300)
    print(json.dumps(run(parser.parse_args().repeat), indent=2))
