"""Every rule id in the code has its section in a PROOFS.md and its tests, and the other way round."""

import ast
import io
import re
import tokenize
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from repository import ROOT, SRC, named, tree_of

from secant import proofs

TESTS = ROOT / "tests"


@cache
def ids_in_code() -> dict[str, set[str]]:
    """Give every id that the code names, with the files that name it."""
    found: dict[str, set[str]] = {}
    for path in SRC.rglob("*.py"):
        for text in texts_of(path):
            for rule in proofs.ID.findall(text):
                found.setdefault(rule, set()).add(named(path))
    return found


def texts_of(path: Path) -> Iterator[str]:
    """Give the strings and comments of a module: elsewhere `stream.values` is an attribute."""
    for node in ast.walk(tree_of(path)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value
    source = io.StringIO(path.read_text(encoding="utf-8"))
    for token in tokenize.generate_tokens(source.readline):
        if token.type == tokenize.COMMENT:
            yield token.string


def attacks() -> dict[str, dict[str, list[str]]]:
    """Give the rules that each test is said to attack, by file and test."""
    return tomllib.loads((SRC / "rule_tests.toml").read_text(encoding="utf-8"))


def test_every_page_has_sections_and_is_found():
    on_disk = {str(path.relative_to(SRC.parent)) for path in SRC.rglob("PROOFS.md")}
    assert on_disk
    assert {page for page, _ in proofs.pages()} == on_disk
    assert {section.page for section in proofs.sections()} == on_disk


def test_every_id_in_the_code_is_proved():
    proved = {rule for section in proofs.sections() for rule in section.ids}
    missing = {rule: sorted(where) for rule, where in ids_in_code().items() if rule not in proved}
    assert missing == {}


def test_every_proof_is_used_by_the_code():
    used = set(ids_in_code())
    unused = {(s.page, rule) for s in proofs.sections() for rule in s.ids if rule not in used}
    assert unused == set()


def test_every_section_claims_and_proves():
    """A section may point to another one of its page; a refusal needs no proof."""
    whole = {
        (s.page, rule)
        for s in proofs.sections()
        if not proofs.POINTER.match(s.body)
        for rule in s.ids
    }
    for s in proofs.sections():
        pointer = proofs.POINTER.match(s.body)
        if pointer:
            targets = s.ids if pointer[1] == "above" else (pointer[1],)
            assert {(s.page, rule) for rule in targets} <= whole, f"{s.page}: {s.ids}"
            continue
        assert "*Claim" in s.body, f"{s.page}: {s.ids}"
        assert "*Proof" in s.body or "refus" in s.body, f"{s.page}: {s.ids}"


def test_no_id_is_proved_twice():
    proved = [rule for s in proofs.sections() if not proofs.POINTER.match(s.body) for rule in s.ids]
    assert sorted(proved) == sorted(set(proved))


def test_every_rule_is_attacked_by_a_test():
    """Who adds a rule names its tests in src/secant/rule_tests.toml."""
    attacked = {rule for tests in attacks().values() for rules in tests.values() for rule in rules}
    known = set(proofs.all_rules())
    assert known - attacked == set(), "no line in src/secant/rule_tests.toml names these rules"
    assert attacked - known == set(), "src/secant/rule_tests.toml names rules that there are not"


def test_every_test_that_attacks_a_rule_exists():
    missing = []
    for file, tests in attacks().items():
        path = TESTS / file
        if not path.is_file():
            missing.append(file)
            continue
        there = {node.name for node in ast.walk(tree_of(path)) if isinstance(node, ast.FunctionDef)}
        missing += [f"{file}::{test}" for test in tests if test != "*" and test not in there]
    assert missing == []


KEYED = {
    "planted_faults": "test_planted_faults.py::test_a_planted_fault_is_noticed",
    "derivative_faults": "test_derivative_faults.py::test_a_planted_fault_is_caught",
    "joins_faults": "test_joins_faults.py::test_a_planted_fault_is_noticed",
    "test_smt_brute_force": "test_smt_brute_force.py::test_a_planted_fault_is_found",
}
"""Files of tests/soundness whose faults are keyed by the id of their rule, and the test that plants them."""
ANALYSES = (
    "combined", "derivative", "elastic", "multiplicity", "owner", "residual", "rewrite", "smt", "stability",
    "truncation",
)  # fmt: skip
PLANTING = re.compile("plant|fault|notice|caught|wrong|_seen$")
"""What a test is called that plants a fault of its own."""


def keyed(file: str) -> set[str]:
    """Give the ids by which the faults of a file are keyed."""
    tree = ast.parse((TESTS / "soundness" / f"{file}.py").read_text(encoding="utf-8"))
    return {
        node.args[0].value
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "Planted"
    }


def test_planted_faults_stand_where_their_rule_says():
    """A fault that is keyed by a rule's id is one of the tests of that rule."""
    rules = proofs.all_rules()
    for file, test in KEYED.items():
        planted = keyed(file)
        assert planted
        for rule in planted:
            assert f"tests/soundness/{test}" in rules[rule].tests, f"{rule} is planted in {file}.py"


def test_every_rule_of_an_analysis_has_a_planted_fault_or_is_listed_here():
    """Who adds a rule plants a fault in it; who plants one that is owed takes it off the list."""
    planted = {rule for file in KEYED for rule in keyed(file)}
    for tests in attacks().values():
        for test, rules in tests.items():
            planted |= set(rules) if PLANTING.search(test) else set()
    of_analyses = {rule for rule in proofs.all_rules() if rule.split(".")[0] in ANALYSES}
    assert of_analyses - planted == REFUSES | OWED
    assert not REFUSES & OWED


REFUSES = frozenset((
    "derivative.aggregate", "derivative.call", "derivative.condition", "derivative.distinct", "derivative.kind",
    "derivative.range", "derivative.truncate", "derivative.unknown", "derivative.value", "elastic.kind",
    "elastic.limit", "elastic.rank", "elastic.unknown", "multiplicity.kind", "multiplicity.missing",
    "multiplicity.rank", "multiplicity.shape", "residual.kind", "residual.rank", "rewrite.aggregate",
    "rewrite.correlated", "smt.kind", "smt.large", "smt.missing", "smt.order", "smt.rank", "smt.subquery", "smt.time",
    "smt.unbounded", "smt.unknown", "stability.kind",
))  # fmt: skip
"""Ids that name a refusal: what they do not let through has no plan to be wrong about."""
OWED = frozenset((
    "combined.cap", "combined.ends", "combined.least", "combined.one", "combined.parts", "combined.replace",
    "derivative.attempt", "derivative.days", "derivative.floats", "derivative.keys",
    "derivative.least", "derivative.margin", "derivative.min_max", "derivative.negate", "derivative.null",
    "derivative.products", "derivative.public", "derivative.smooth", "derivative.smoothness", "derivative.step",
    "derivative.strip", "derivative.sum", "derivative.width", "elastic.measure", "elastic.measures", "elastic.public",
    "elastic.sort", "elastic.truncate", "elastic.truncate_groups", "multiplicity.coarse", "multiplicity.groups",
    "multiplicity.measures", "multiplicity.pattern", "multiplicity.public", "residual.figures", "residual.form",
    "residual.measures", "residual.order", "residual.parts", "smt.constant", "smt.replace", "smt.scalar",
    "truncation.rows",
))  # fmt: skip
"""Ids whose tests hold them against neighbors or the oracle, and in which nobody has planted a fault yet."""
