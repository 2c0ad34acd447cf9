"""No place of a plan is an open door: a protected subquery in any of them is refused, or bounded and paid for.

Every class of node and every field that can hold another node is tried, as `nodes.slots` lists them from the types of
fields. Where a plan is accepted, brute force over neighbors holds the bound against what happens. The planted fault
takes one field after another out of the walk, and each time some case must notice.
"""

import random
from fractions import Fraction
from functools import cache

import pytest
from neighbor_check import Findings, target_of
from planted_slots import (
    BASES,
    DATABASES,
    PROTECTIONS,
    direct_cases,
    forgetful,
    input_cases,
    nested_cases,
    slots_of,
    world_of,
)
from staged_tables import with_constants

from secant.engines.dialect import DUCKDB
from secant.engines.print.print_sql import lower
from secant.errors import InternalError
from secant.noise.shares import calibrate
from secant.plan import nodes as n
from secant.plan.facts import reads
from secant.plan.rewrites.rewrite import normalize
from secant.sensitivity.certificate import is_still
from secant.sensitivity.portfolio import Decomposition, prepare


def open_doors(kind, cases):
    """Give the names of the cases that are answered as if nothing protected were read, or moved too far."""
    world, found = world_of(kind), []
    for case in cases:
        outcome = prepare(
            normalize(case.plan), world.policy, world.policy.protections, world.catalog
        )
        if isinstance(outcome, Decomposition) and not _holds(case, outcome, world, kind):
            found.append(case.name)
    return found


def _holds(case, prepared, world, kind):
    """Whether an accepted plan is bounded, charged, and moves no further than it is bounded."""
    bounds = [b for x in prepared.bounded for c in x.certificates for b in c.bounds.values()]
    if all(map(is_still, bounds)):
        return not any(PROTECTED[kind] in statement for statement in statements(prepared))
    noise = calibrate(
        prepared.bounded, world.policy.protections, Fraction(1), {kind: Fraction(1, 1000)}
    )
    if noise.costs[kind][0] <= 0:
        return False
    if kind == "cells":  # their neighbors have a search of their own
        return True
    findings = Findings()
    constant = with_constants(prepared, random.Random(case.name))
    target = target_of(case.name, constant, world, findings)
    for database in DATABASES:
        target.try_on(database, {})
    return not findings.violations


PROTECTED = {"rows": '"b"', "unit": '"b"', "cells": '"n"'}
"""What the statements of a release that nothing moves must not name: the table, or the column that is protected."""


def statements(prepared):
    """Give all SQL that would run. This looks at text, and shares nothing with the walk over plans."""
    releases = [b.release for b in prepared.bounded]
    plans = [a for r in releases for a in (r.exact, *(ranked.cells for ranked in r.ranked))]
    return [lower(plan, DUCKDB) for plan in (*plans, prepared.post)]


@cache
def every_case():
    """Give a plan for each place; one that holds none would be missing below."""
    return [*direct_cases("p"), *nested_cases("p"), *input_cases()]


def test_every_slot_is_filled():
    filled = frozenset().union(*(slots_of(case.plan) for case in every_case()))
    assert set(n.slots()) - filled == set()


@pytest.mark.parametrize("slot", n.slots(), ids=lambda s: f"{s[0].__name__}.{s[1]}")
def test_a_field_that_the_walk_skips_is_noticed(slot, monkeypatch):
    node, name = slot
    monkeypatch.setattr(reads, "n", forgetful(node, name))
    every_case.cache_clear()  # nodes remember what they read, as it was found before the fault
    cases = [case for case in every_case() if slot in slots_of(case.plan)]
    noticed = []
    for case in cases:
        try:
            noticed += open_doors("rows", [case])
        except (InternalError, KeyError):
            # A rewrite has moved what was skipped to where the last wall sees it, or no statement can be printed: the
            # printer asks the same walk which columns are read, and misses one.
            noticed.append(case.name)
        if noticed:
            return
    pytest.fail(f"nobody notices that {node.__name__}.{name} is skipped")


@pytest.mark.parametrize("base", BASES)
@pytest.mark.parametrize("kind", PROTECTIONS)
def test_a_subquery_in_any_place_of_a_relation_is_accounted_for(kind, base):
    assert open_doors(kind, direct_cases(base)) == []


@pytest.mark.parametrize("base", BASES)
@pytest.mark.parametrize("kind", PROTECTIONS)
def test_a_subquery_in_any_place_of_a_scalar_is_accounted_for(kind, base):
    assert open_doors(kind, nested_cases(base)) == []


@pytest.mark.parametrize("kind", PROTECTIONS)
def test_a_protected_relation_in_any_place_is_accounted_for(kind):
    assert open_doors(kind, input_cases()) == []
