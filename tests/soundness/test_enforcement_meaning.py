"""Enforcement changes nothing where everything declared holds: exact measures give the answer that was asked for."""

import math
import random
from decimal import Decimal

from drawn_queries import Questions
from drawn_worlds import draw_clean_database, draw_world, favored_tables
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from neighbor_check import prepared_for

from chance import LONG
from secant.noise.ranked import exact_index, read_cells
from secant.plan import nodes as n
from secant.plan.evaluate.evaluate import evaluate
from secant.plan.evaluate.values import Failure, same_key
from secant.plan.facts.domains import Chosen, Listed, Looked
from secant.plan.rewrites.order_statistics import FUNCTIONS as RANKED
from secant.plan.rewrites.rewrite import transform

EXAMPLES = 4_000 if LONG else 250
COMPARED = 1_000 if LONG else 50
CLOSE = 1e-6


def finished(release, database):
    """Give the user's aggregate as it comes out of exact measures, by key; only groups that exist."""
    width = len(release.exact.keys)
    rows = []
    ranks = [(r, read_cells(evaluate(r.cells, database), r.grid, known)) for r in release.ranked]
    for row in evaluate(release.exact, database):
        values = [_released(v, m) for v, m in zip(row[width:], release.measures, strict=True)]
        for ranked, groups in ranks:
            index = exact_index(ranked, groups.get(known(row[:width]), ()))
            values.append(None if index is None else ranked.grid.value(index, ranked.type))
        rows.append((*row[:width], *values))
    table = n.Values(release.finish.input.columns, tuple(rows))
    plan = transform(release.finish, lambda x: table if isinstance(x, n.Released) else x)
    return {tuple(map(same_key, r[:width])): r[width:] for r in evaluate(plan, database)}


def known(key):
    return tuple(map(same_key, key))


def _released(value, measure):
    whole = 0 if value is None else value
    if measure.type.kind == "DOUBLE":
        return float(int(whole) * measure.step)
    return Decimal(whole) if measure.type.kind == "DECIMAL" else whole


def shown(release, key_row, database):
    """Whether public knowledge lists a key."""
    names = [k.name for k in release.exact.keys]
    for domain in release.domains:
        if isinstance(domain, Listed):
            if same_key(key_row[names.index(domain.key)]) not in {
                same_key(v) for v in domain.values
            }:
                return False
        elif isinstance(domain, Looked):
            found = tuple(same_key(key_row[names.index(k)]) for k in domain.keys)
            if found not in {tuple(map(same_key, r)) for r in evaluate(domain.relation, database)}:
                return False
        else:
            assert isinstance(domain, Chosen)
    return True


def close(truth, found, analysis=0.0):
    if truth is None:  # a sum over nothing is shown as 0: whether there was a row is protected
        return True
    if isinstance(truth, float) and not math.isfinite(truth):
        return True
    return abs(float(truth) - float(found)) <= analysis + CLOSE * max(1.0, abs(float(truth)))


def differences(text, world, database):
    """Give the cells that enforcement changes, and how many were compared."""
    prepared = prepared_for(text, world)
    compared, wrong = 0, []
    for bounded in prepared.bounded if prepared is not None else ():
        release = bounded.release
        width = len(release.exact.keys)
        try:
            original = evaluate(release.original, database)
        except Failure:
            continue
        found = finished(release, database)
        for row in original:
            key = tuple(map(same_key, row[:width]))
            if not shown(release, row[:width], database):
                continue
            for call, truth, value in zip(
                release.original.aggregations, row[width:], found.get(key, row[width:]), strict=True
            ):
                if call.function.startswith("stddev"):
                    continue  # near 0 a root turns the grid's rounding into more than CLOSE
                if call.function in ("median", "quantile_cont"):
                    continue  # these lie between two rows, points are nearest to one
                compared += 1
                coarse = float(max((r.grid.step for r in release.ranked), default=0))
                if not close(truth, value, coarse if call.function in RANKED else 0.0):
                    wrong.append((text, call.function, key, truth, value, release.notes, database))
    return compared, wrong


def test_enforcement_changes_nothing_where_facts_hold():
    total = [0, 0]

    @settings(
        max_examples=EXAMPLES, deadline=None, database=None, suppress_health_check=list(HealthCheck)
    )
    @given(st.randoms(use_true_random=False), st.integers(0, 2**64))
    def search(question, seed):
        world = draw_world(question, generous=True)
        text = Questions(question, favored_tables(world)).question()
        compared, wrong = differences(text, world, draw_clean_database(random.Random(seed), world))
        total[0] += compared
        total[1] += 1
        assert wrong == []

    search()
    assert total[0] >= COMPARED
