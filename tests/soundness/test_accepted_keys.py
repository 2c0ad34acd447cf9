"""`accept = ["keys"]` means the same in every analysis: declared keys of protected tables hold, and are claimed."""

from dataclasses import replace
from fractions import Fraction

import pytest
from joins_cases import ACCEPTED_KEYS, BELIEVED, UNACCEPTED
from joins_check import ANALYSES, BETAS, Findings, analysis_of, targets_of

from chance import LONG
from secant.plan import nodes as n
from secant.plan.facts.facts import Facts
from secant.plan.rewrites.enforce import MeasuredAggregate, enforce
from secant.plan.rewrites.rewrite import normalize
from secant.policy.keys import Key, Trust, keys_of
from secant.policy.policy import ColumnFacts, Policy, Protection, TableFacts
from secant.schema import types as t
from secant.schema.catalog import Table, catalog
from secant.sensitivity.certificate import Certificate, Refusal
from secant.sensitivity.interface import Request
from secant.sensitivity.portfolio import CertifiedRelease, Context, bound_aggregate
from secant.sensitivity.stability.analysis import StabilityAnalysis
from secant.sql.bind import from_sql

FEW_BETAS = (Fraction(1, 2), Fraction(3))
USING = {"elastic", "residual", "smt"}
"""Analyses for which keys of tables whose rows come and go matter."""


@pytest.mark.parametrize("name", ANALYSES)
def test_no_neighbor_refutes_a_bound_that_rests_on_accepted_keys(name):
    analysis, claimed = analysis_of(name), set()
    for case in ACCEPTED_KEYS.values():
        findings = case.findings(
            analysis, steps=None if LONG else 0, betas=BETAS if LONG else FEW_BETAS
        )
        assert [str(v) for v in findings.violations[:1]] == []
        for target in targets_of(case.text, case.world, analysis, Findings()):
            claimed |= {c.trust for c in target.certificate.claims}
    assert claimed == ({Trust.ACCEPTED} if name in USING else set())


@pytest.mark.parametrize("name", ["elastic", "residual"])
def test_an_accepted_key_does_not_grow_with_the_rows_that_may_come(name):
    """One row of t meets one row of o; without the key it meets as many as there are, and one more for each change."""
    text, least = "SELECT count(*) FROM t JOIN o ON t.a = o.a", {}
    for world in (BELIEVED, UNACCEPTED):
        (target,) = targets_of(text, world, analysis_of(name), Findings())
        (bound,) = target.certificate.bounds.values()
        empty = target.read(dict.fromkeys(("r", "s", "t", "e", "p", "m", "o", "d", "n"), ()))
        least[world is BELIEVED] = target.bound(bound, Fraction(1, 100), empty, ())
        assert bool(target.certificate.claims) == (world is BELIEVED)
    assert least[True] <= least[False]


# ── tables that another protection covers ────────────────────────────────────────────────────────

CATALOG = catalog(
    Table("visit", (("id", t.INTEGER), ("town", t.INTEGER), ("cost", t.INTEGER))),
    Table("town", (("id", t.INTEGER), ("size", t.INTEGER))),
)
VISITS = Protection("visits", "rows", Fraction(1), tables=("visit",))
TOWNS = Protection("towns", "rows", Fraction(1), tables=("town",))
SIZES = Protection("sizes", "cells", Fraction(1), distance={"town": "size"})
FACTS = {
    "visit": TableFacts(("id",), {"town": ("town", "id")}, {"cost": ColumnFacts(range=(0, 9))}),
    "town": TableFacts(("id",), {}, {"size": ColumnFacts(range=(0, 9))}),
}
JOINED = "SELECT count(*) FROM visit v JOIN town w ON v.town = w.id"


def stability(policy: Policy) -> Certificate | Refusal:
    plan = normalize(from_sql(JOINED, CATALOG))
    aggregate = next(x for x in n.walk(plan) if isinstance(x, n.Aggregate))
    facts = Facts(policy, CATALOG)
    release = enforce(aggregate, "release1", facts, policy.protections)
    assert isinstance(release, MeasuredAggregate)
    return StabilityAnalysis().bound(Request(release, facts, VISITS))


def test_a_key_that_another_protection_hides_is_believed_only_if_the_owner_accepts_it():
    policy = Policy("", FACTS, (VISITS, TOWNS))
    assert isinstance(stability(policy), Refusal)
    found = stability(replace(policy, accept=("keys",)))
    assert isinstance(found, Certificate)
    assert found.rows == 1
    assert found.claims == (Key("town", ("id",), Trust.ACCEPTED),)


def test_a_key_of_a_table_whose_other_values_are_hidden_is_checked():
    found = stability(Policy("", FACTS, (VISITS, SIZES)))
    assert isinstance(found, Certificate)
    assert found.claims == (Key("town", ("id",), Trust.CHECKED),)
    moving = replace(SIZES, distance={"town": "l1(id, size)"})
    assert isinstance(stability(Policy("", FACTS, (VISITS, moving))), Refusal)


def test_trust_is_told_in_one_place():
    kept = Table("town", CATALOG.tables["town"].columns, (("id",),))
    with_key = catalog(CATALOG.tables["visit"], kept)
    hidden, open_ = Policy("", FACTS, (VISITS, TOWNS)), Policy("", FACTS, (VISITS,))
    believed = replace(hidden, accept=("keys",))
    for policy, known, trust in (
        (hidden, CATALOG, Trust.DECLARED),
        (open_, CATALOG, Trust.CHECKED),
        (believed, CATALOG, Trust.ACCEPTED),
        (replace(open_, accept=("keys",)), CATALOG, Trust.CHECKED),
        (believed, with_key, Trust.KEPT),
    ):
        assert keys_of("town", policy, known) == (Key("town", ("id",), trust),)


def test_an_accepted_reference_makes_its_target_a_key():
    facts = {**FACTS, "town": replace(FACTS["town"], key=())}
    believed = Policy("", facts, (VISITS, TOWNS), accept=("keys",))
    assert keys_of("town", believed, CATALOG) == (Key("town", ("id",), Trust.ACCEPTED),)
    assert keys_of("town", replace(believed, accept=()), CATALOG) == ()
    assert keys_of("town", replace(believed, protections=(VISITS,)), CATALOG) == ()


def test_explanations_name_what_was_accepted():
    from secant.sensitivity.explain import claims

    policy = Policy("", FACTS, (VISITS,), accept=("keys",))
    both = replace(policy, protections=(VISITS, TOWNS))
    plan = normalize(from_sql(JOINED, CATALOG))
    aggregate = next(x for x in n.walk(plan) if isinstance(x, n.Aggregate))
    found = bound_aggregate(aggregate, "r", Context(Facts(both, CATALOG), (VISITS,)))
    assert isinstance(found, CertifiedRelease)
    (certificate,) = found.certificates
    assert claims(certificate) == ["accepted by the owner, not checked: (id) is a key of town"]
