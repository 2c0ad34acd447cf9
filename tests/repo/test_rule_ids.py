"""Every rule id in the code has its section in a PROOFS.md and its tests, and the other way round."""

import ast
import importlib.util
import io
import tokenize
import tomllib
from collections.abc import Iterator

from repository import ROOT, SRC, named

from secant import proofs

TESTS = ROOT / "tests"


def ids_in_code() -> dict[str, set[str]]:
    """Give every id that the code names, with the files that name it."""
    found: dict[str, set[str]] = {}
    for path in SRC.rglob("*.py"):
        for text in texts_of(path.read_text(encoding="utf-8")):
            for rule in proofs.ID.findall(text):
                found.setdefault(rule, set()).add(named(path))
    return found


def texts_of(source: str) -> Iterator[str]:
    """Give the strings and comments of a module: elsewhere `stream.values` is an attribute."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
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
        there = {
            node.name
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
            if isinstance(node, ast.FunctionDef)
        }
        missing += [f"{file}::{test}" for test in tests if test != "*" and test not in there]
    assert missing == []


def test_planted_faults_stand_where_their_rule_says():
    """A fault that is keyed by a rule's id is one of the tests of that rule."""
    rules = proofs.all_rules()
    for file, test in (
        ("planted_faults", "test_planted_faults.py::test_a_planted_fault_is_noticed"),
        ("derivative_faults", "test_derivative_faults.py::test_a_planted_fault_is_caught"),
        ("joins_faults", "test_joins_faults.py::test_a_planted_fault_is_noticed"),
    ):
        tree = ast.parse((TESTS / "soundness" / f"{file}.py").read_text(encoding="utf-8"))
        planted = {
            node.args[0].value
            for node in ast.walk(tree)
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "Planted"
        }
        assert planted
        for rule in planted:
            assert f"tests/soundness/{test}" in rules[rule].tests, f"{rule} is planted in {file}.py"


def test_the_page_of_rules_is_level_with_the_proofs():
    script = ROOT / "docs" / "generate_rules.py"
    spec = importlib.util.spec_from_file_location("generate_rules", script)
    generator = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(generator)
    assert generator.PAGE.read_text(encoding="utf-8") == generator.page(), (
        "run: .venv/bin/python docs/generate_rules.py"
    )
