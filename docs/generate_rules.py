"""Write docs/reference/rules.md from the pages of proofs. Run it after adding a rule."""

from __future__ import annotations

from itertools import groupby
from pathlib import Path

from secant.proofs import Rule, all_rules

PAGE = Path(__file__).parent / "reference" / "rules.md"
HEAD = """\
# Rules

Generated from the `PROOFS.md` files beside the code by `docs/generate_rules.py`; a test keeps them level. A
derivation that `secant explain` prints, a refusal and a result name the rules that they rest on. `secant explain
--rule stability.count`, or `secant.rule("stability.count")`, gives what a rule claims, its proof, and the tests that
attack it; neither needs a database.
"""


def page() -> str:
    """Give the text of the page."""
    parts = [HEAD]
    for place, rules in groupby(all_rules().values(), key=lambda rule: rule.page):
        parts.append(f"## [{place.removesuffix('/PROOFS.md')}](../../src/{place})\n")
        rows = "\n".join(
            f"| {rule.id} | {rule.title or 'what is refused'} | {_tests(rule)} |" for rule in rules
        )
        parts.append(f"| rule | about | tests |\n|---|---|---|\n{rows}\n")
    return "\n".join(parts)


def _tests(rule: Rule) -> str:
    """Give the files of the tests, each once."""
    files = dict.fromkeys(test.partition("::")[0] for test in rule.tests)
    return ", ".join(f"[{Path(file).stem.removeprefix('test_')}](../../{file})" for file in files)


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
