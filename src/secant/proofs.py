"""The rules that bounds, mechanisms and ledgers rest on: what each claims, why it holds, and which tests attack it.

In: the id of a rule, such as `stability.count`. Out: its section of the `PROOFS.md` that it stands in, taken apart, the
places in the code that name it, and the names of its tests. Nothing here proves or runs anything, or needs a database.
"""

from __future__ import annotations

import difflib
import io
import itertools
import re
import tokenize
import tomllib
from collections.abc import Iterator
from functools import cache
from importlib import resources
from importlib.resources.abc import Traversable

from secant.errors import UsageError, public_api
from secant.records import frozen

AREAS = (
    "accounting", "affine", "attack", "blackbox", "combined", "continual", "derivative", "elastic", "ledger",
    "multiplicity", "noise", "norm", "owner", "preprocess", "range", "residual", "rewrite", "smt", "stability",
    "statistic", "stream", "truncation", "workflow",
)  # fmt: skip
"""What the first word of an id says: the part of the house whose proofs it is among."""
# Neither a longer path nor a file is an id.
ID = re.compile(rf"(?<![\w./-])(?:{'|'.join(AREAS)})\.(?!toml|svg)[a-z][a-z0-9_]*(?![\w(/]|\.\w)")
HEADING = re.compile(rf"## ({ID.pattern}(?:, {ID.pattern})*) ?(.*)")
POINTER = re.compile(rf"\s*See (above|{ID.pattern})\.\s*\Z")
PART = re.compile(r"\*(Claim|Needs|Proof|Numerics)[^*\n]*\*")
NEAREST = 3
OWN = "secant/proofs.py"
"""This module, whose words name rules only as examples."""


@frozen
class Section:
    """A section of a page of proofs: the ids that share it, what they are called, and what is said of them."""

    page: str
    ids: tuple[str, ...]
    title: str
    body: str


@frozen
class Rule:
    """A rule: where its proof stands, the parts of that proof, and the tests that would fail if it were wrong."""

    id: str
    title: str
    page: str
    claim: str
    needs: str
    proof: str
    numerics: str
    tests: tuple[str, ...]

    @property
    def code(self) -> tuple[str, ...]:
        """Give the places of the code that name the rule, `file:line`, those beside its proof first."""
        return code_of(self.id)

    def to_dict(self) -> dict[str, object]:
        """Give the rule as plain data."""
        return {
            "id": self.id,
            "title": self.title,
            "page": self.page,
            "claim": self.claim,
            "needs": self.needs,
            "proof": self.proof,
            "numerics": self.numerics,
            "code": list(self.code),
            "tests": list(self.tests),
        }

    def __str__(self) -> str:
        """Give the rule as text."""
        lines = [
            f"{self.id} {self.title}".strip(),
            f"from {self.page}, whose head says what its words mean",
        ]
        for name in ("claim", "needs", "proof", "numerics"):
            if text := getattr(self, name):
                lines += ["", f"{name.capitalize()}. {text}"]
        lines += ["", "Code that names it:"]
        for file, places in itertools.groupby(self.code, key=lambda place: place.partition(":")[0]):
            lines.append(f"  {file}:{', '.join(place.rpartition(':')[2] for place in places)}")
        lines += ["", "Tests that attack it:", *(f"  {test}" for test in self.tests)]
        return "\n".join(lines)


@public_api
def rule(name: str) -> Rule:
    """Give a rule by its id, in any case.

    Args:
        name: an id as derivations and refusals print it, such as `stability.count`.
    """
    rule_id = name.strip().lower() if isinstance(name, str) else ""
    rules = all_rules()
    if rule_id not in rules:
        word = re.split(r"[.-]", rule_id)[-1]
        near = [rule_name for rule_name in rules if rule_name.endswith(f".{word}")][:NEAREST]
        near = near or difflib.get_close_matches(rule_id, rules, NEAREST, cutoff=0.5)
        raise UsageError(
            "USE-001",
            "there is no rule of this id",
            hint=f"the nearest: {', '.join(near)}"
            if near
            else "ids look like stability.count; `secant explain` prints them",
        )
    return rules[rule_id]


@cache
def all_rules() -> dict[str, Rule]:
    """Give every rule by its id, page by page, in the order of the pages."""
    whole: dict[str, Section] = {}
    titles: dict[str, str] = {}
    pointers: dict[str, str] = {}
    for section in sections():
        pointer = POINTER.match(section.body)
        for name in section.ids:
            if len(section.ids) == 1 and section.title:
                titles[name] = section.title
            if pointer is None:
                whole[name] = section
            elif pointer[1] != "above":
                pointers[name] = pointer[1]
    for name, target in pointers.items():
        whole.setdefault(name, whole[target])
    tests = tests_by_rule()
    return {
        name: _rule(name, titles.get(name, section.title), section, tests.get(name, ()))
        for name, section in whole.items()
    }


def _rule(name: str, title: str, section: Section, tests: tuple[str, ...]) -> Rule:
    parts = parts_of(section.body)
    return Rule(name, title, section.page, **parts, tests=tests)


def parts_of(body: str) -> dict[str, str]:
    """Take a section apart; what stands before the first part belongs to the claim."""
    marks = list(PART.finditer(body))
    parts = dict.fromkeys(("claim", "needs", "proof", "numerics"), "")
    parts["claim"] = body[: marks[0].start() if marks else None].strip()
    ends = [*(mark.start() for mark in marks[1:]), len(body)]
    for mark, end in zip(marks, ends, strict=False):  # without a mark there is nothing to end
        name = mark[1].lower()
        # "*Proof of (2).*" keeps its own words; "*Proof.*" is only a mark.
        own = mark[0].strip("*").strip(".")
        text = body[mark.end() : end].strip()
        text = text if own == mark[1] else f"{own}: {text}"
        parts[name] = "\n\n".join(part for part in (parts[name], text) if part)
    return parts


def sections() -> Iterator[Section]:
    """Give the sections of every page of proofs that are about rules."""
    for page, text in pages():
        heads = [match.start() for match in re.finditer(r"^## ", text, re.MULTILINE)]
        for start, end in itertools.pairwise([*heads, len(text)]):
            heading, _, body = text[start:end].partition("\n")
            if match := HEADING.match(heading):
                yield Section(page, tuple(match[1].split(", ")), match[2].strip(), body)


def pages() -> Iterator[tuple[str, str]]:
    """Give every page of proofs that is installed: its place under `secant`, and its text."""
    yield from _pages_in(resources.files("secant"), "secant")


def _pages_in(folder: Traversable, name: str) -> Iterator[tuple[str, str]]:
    for entry in sorted(folder.iterdir(), key=lambda entry: entry.name):
        if entry.name == "PROOFS.md":
            yield f"{name}/PROOFS.md", entry.read_text(encoding="utf-8")
        elif entry.is_dir() and not entry.name.startswith(("_", ".")):
            yield from _pages_in(entry, f"{name}/{entry.name}")


@cache
def code_of(name: str) -> tuple[str, ...]:
    """Give every place in the installed modules that names a rule, as `file:line`; those beside its proof come first.

    >>> code_of("elastic.join")[0].partition(":")[0]
    'secant/sensitivity/elastic/rules.py'
    """
    folder = all_rules()[name].page.rpartition("/")[0]
    found = [
        (not file.startswith(f"{folder}/"), file, line)
        for file, text in _modules_in(resources.files("secant"), "secant")
        if name in text and file != OWN
        for line in _lines_naming(name, text)
    ]
    return tuple(f"{file}:{line}" for _, file, line in sorted(found))


def _modules_in(folder: Traversable, name: str) -> Iterator[tuple[str, str]]:
    for entry in folder.iterdir():
        if entry.name.endswith(".py"):
            yield f"{name}/{entry.name}", entry.read_text(encoding="utf-8")
        elif entry.is_dir() and not entry.name.startswith(("_", ".")):
            yield from _modules_in(entry, f"{name}/{entry.name}")


def _lines_naming(name: str, text: str) -> list[int]:
    """Give the lines that name a rule in a string or a comment: `stream.values` may be an attribute, too."""
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    return [
        token.start[0] + token.string.count("\n", 0, match.start())
        for token in tokens
        if name in token.string
        for match in ID.finditer(token.string)
        if match[0] == name
    ]


@cache
def tests_by_rule() -> dict[str, tuple[str, ...]]:
    """Give the tests that attack each rule, as `rule_tests.toml` names them."""
    text = (resources.files("secant") / "rule_tests.toml").read_text(encoding="utf-8")
    places_by_rule: dict[str, list[str]] = {}
    for file, tests in tomllib.loads(text).items():
        for test, rules in tests.items():
            test_path = f"tests/{file}" if test == "*" else f"tests/{file}::{test}"
            for name in rules:
                places_by_rule.setdefault(name, []).append(test_path)
    return {name: tuple(places) for name, places in places_by_rule.items()}
