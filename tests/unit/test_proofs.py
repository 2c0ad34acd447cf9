"""A rule is found by its id, with its claim, its proof and its tests; no database is needed."""

from pathlib import Path

import pytest

import secant
from secant import proofs
from secant.errors import UsageError


def test_a_rule_says_what_it_claims_why_it_holds_and_what_attacks_it():
    rule = secant.rule("stability.count")
    assert (rule.id, rule.title) == ("stability.count", "rows or values")
    assert rule.page == "secant/sensitivity/stability/PROOFS.md"
    assert rule.claim.startswith("The sum over all groups")
    assert rule.proof.startswith("A changed row is in one group")
    assert "tests/soundness/test_planted_faults.py::test_a_planted_fault_is_noticed" in rule.tests
    text = str(rule)
    for part in (rule.id, rule.title, rule.page, rule.claim, rule.proof, *rule.tests):
        assert part in text
    for part in {place.partition(":")[0] for place in rule.code}:
        assert part in text


def test_case_and_spaces_do_not_matter():
    assert secant.rule(" Stability.Count ") == secant.rule("stability.count")


def test_rules_that_share_a_section_have_its_text_and_their_own_names():
    first, second = secant.rule("stability.filter"), secant.rule("stability.project")
    assert first.claim == second.claim != ""
    assert secant.rule("owner.sort").title == "order"


def test_every_rule_has_a_claim_and_tests():
    bare = [name for name, rule in proofs.all_rules().items() if not (rule.claim and rule.tests)]
    assert bare == []


@pytest.mark.parametrize(
    ("wrong", "hint"),
    [
        ("stability.cuont", "stability.count"),
        ("derivative.rmap", "derivative.ramp"),
        ("COUNT", "stability.count"),
        ("", "look like"),
        (7, "look like"),
    ],
)
def test_an_unknown_id_is_told_with_the_nearest_ones(wrong, hint):
    with pytest.raises(UsageError) as caught:
        secant.rule(wrong)
    assert caught.value.code == "USE-001"
    assert hint in caught.value.hint


def test_a_section_is_taken_apart():
    body = (
        "\n*Claim.* a *b* c\n\n*Needs.* d\n*Proof of (1).* e\n*Proof of (2).* f ∎ *Numerics.* g\n"
    )
    assert proofs.parts_of(body) == {
        "claim": "a *b* c",
        "needs": "d",
        "proof": "Proof of (1): e\n\nProof of (2): f ∎",
        "numerics": "g",
    }
    assert proofs.parts_of("it is refused\n")["claim"] == "it is refused"


def test_plain_data():
    plain = secant.rule("stability.count").to_dict()
    assert list(plain) == [
        "id",
        "title",
        "page",
        "claim",
        "needs",
        "proof",
        "numerics",
        "code",
        "tests",
    ]
    assert isinstance(plain["tests"], list)


def test_the_code_of_a_rule_is_a_line_that_names_it():
    """Every rule has one, the lines beside its proof come first, and an attribute of the same spelling is none."""
    root = Path(secant.__file__).parents[1]
    for name in (
        "stability.count",
        "derivative.ramp",
        "elastic.join",
        "noise.laplace",
        "stream.values",
    ):
        places = secant.rule(name).code
        assert places, name
        for place in places:
            file, _, line = place.partition(":")
            assert name in (root / file).read_text("utf-8").splitlines()[int(line) - 1], place
    assert secant.rule("elastic.join").code[0].startswith("secant/sensitivity/elastic/rules.py:")
    assert not any("proofs.py" in place for place in secant.rule("stability.count").code)
    named = "a = stream.values\nb = 'x'  # stream.values\n'c\\n (stream.values)'\n"
    assert proofs._lines_naming("stream.values", named) == [2, 3]
