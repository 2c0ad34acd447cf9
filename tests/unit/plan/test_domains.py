"""Which keys a release shows: here, those of a public table that a protected one refers to."""

from __future__ import annotations

from fractions import Fraction

from secant.plan.evaluate.evaluate import evaluate
from secant.plan.facts.domains import Looked
from secant.plan.rewrites.rewrite import normalize
from secant.policy.policy import Policy, Protection, TableFacts
from secant.schema import types as t
from secant.schema.catalog import Table, catalog
from secant.sensitivity.portfolio import Decomposition, prepare
from secant.sql.bind import from_sql


def test_referenced_keys_are_read_under_the_names_of_the_engine() -> None:
    """A policy knows names in lower case; PostgreSQL and the interpreter know them as they are stored."""
    known = catalog(
        Table("Visit", (("Code", t.INTEGER),)),
        Table("Place", (("Code", t.INTEGER), ("Region", t.TEXT))),
    )
    facts = {
        "visit": TableFacts((), {"code": ("place", "code")}),
        "place": TableFacts(("code",)),
    }
    policy = Policy(
        "", facts, (Protection("single", "rows", Fraction(1), tables=("visit",)),), public=("place",)
    )  # fmt: skip
    plan = normalize(from_sql("SELECT code, count(*) FROM visit GROUP BY code", known))
    outcome = prepare(plan, policy, policy.protections, known)
    assert isinstance(outcome, Decomposition)
    (domain,) = outcome.bounded[0].release.domains
    assert isinstance(domain, Looked)
    places = [{"Code": 1, "Region": "a"}, {"Code": 2, "Region": "b"}]
    # A visit may have no place, and then is in a group of its own.
    found = evaluate(domain.relation, {"Place": places, "Visit": []})
    assert {*found} == {(1,), (2,), (None,)}
    assert len(found) == 3
