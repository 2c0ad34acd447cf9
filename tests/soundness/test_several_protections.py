"""Several protections at once: whoever's table a question looks at is charged, wherever the look stands in it.

Rows of `c` belong to one protection and `b` to another, each of any kind. MIN, MAX and MEDIAN over rows of the first,
with an argument that looks at the second, were charged to the first only. A question about `b` stands in every place of
a plan over `c`; where it is accepted, both certificates are held against neighbors by brute force.
"""

import random
from dataclasses import replace
from fractions import Fraction

import pytest
from neighbor_check import Findings, World, target_of
from planted_slots import DATABASES, PROTECTIONS, direct_cases, world_of
from staged_tables import with_constants
from test_every_slot import PROTECTED, statements

from secant.noise.shares import calibrate
from secant.plan.facts.reads import scans
from secant.plan.rewrites.enforce import MeasuredAggregate
from secant.plan.rewrites.rewrite import normalize
from secant.policy.policy import Protection
from secant.sensitivity.certificate import is_still
from secant.sensitivity.derivative.soften import soften
from secant.sensitivity.portfolio import Decomposition, prepare

BASE = {
    "rows": Protection("base", "rows", Fraction(1), tables=("c",)),
    "unit": Protection("base", "unit", Fraction(1), unit=("c", "bid"), limits={"c": 2}),
    "cells": Protection("base", "cells", Fraction(1), distance={"c": "w"}),
}
ASKED = {
    "rows": replace(PROTECTIONS["rows"], tables=("b",)),
    "unit": replace(PROTECTIONS["unit"], limits={}),
    "cells": replace(PROTECTIONS["cells"], distance={"b": "n"}),
}
PAIRS = [(base, asked) for base in BASE for asked in ASKED]


def two_protections(base, asked, first):
    """Give a world where c and b belong to a protection each, in either order."""
    world = world_of(asked)
    tables = {**world.policy.tables, "c": replace(world.policy.tables["c"], references={})}
    both = (BASE[base], ASKED[asked])
    both = both if first == "base" else both[::-1]
    return World(world.catalog, replace(world.policy, tables=tables, protections=both))


def uncharged(world, asked, cases):
    """Give the names of accepted cases that read `b` and cost its protection nothing, or move too far."""
    name, found = ASKED[asked].name, []
    for case in cases:
        outcome = prepare(
            normalize(case.plan), world.policy, world.policy.protections, world.catalog
        )
        if isinstance(outcome, Decomposition) and not _holds(case, outcome, world, asked, name):
            found.append(case.name)
    return found


def _holds(case, prepared, world, asked, name):
    deltas = {p.name: Fraction(1, 1000) for p in world.policy.protections}
    noise = calibrate(prepared.bounded, world.policy.protections, Fraction(1), deltas)
    moved = any(
        not is_still(bound)
        for b in prepared.bounded
        for c in b.certificates
        if c.protection == name
        for bound in c.bounds.values()
    )
    if moved != (noise.costs[name][0] > 0):
        return False
    if not moved and any(PROTECTED[asked] in x for x in statements(prepared)):
        return False
    if any(p.kind == "cells" for p in world.policy.protections):
        return True
    findings = Findings()
    constant = with_constants(prepared, random.Random(case.name))
    target = target_of(case.name, constant, world, findings)
    for database in DATABASES:
        target.try_on(database, {})
    return not findings.violations


@pytest.mark.parametrize("first", ["base", "asked"])
@pytest.mark.parametrize(("base", "asked"), PAIRS)
def test_both_protections_pay_wherever_the_second_is_asked(base, asked, first):
    world = two_protections(base, asked, first)
    assert uncharged(world, asked, direct_cases("c")) == []


@pytest.mark.parametrize(("base", "asked"), [p for p in PAIRS if p[0] != "cells"])
def test_the_old_fault_is_noticed(base, asked, monkeypatch):
    """A twin: only the sums of a release say which tables it reads, so that ranks are charged to the first alone."""
    monkeypatch.setattr(MeasuredAggregate, "aggregates", property(lambda release: (release.exact,)))
    monkeypatch.setattr(soften, "scans", lambda aggregate: scans(aggregate.input))
    ranked = [c for c in direct_cases("c") if "an outer m" in c.name]
    assert uncharged(two_protections(base, asked, "base"), asked, ranked)
