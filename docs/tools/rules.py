"""Give the table of docs/reference/rules.md from the pages of proofs; `build_site.py` adds it to the page."""

from __future__ import annotations

import sys
from itertools import groupby
from pathlib import Path

from secant.proofs import Rule, all_rules

PAGE = Path(__file__).parents[1] / "reference" / "rules.md"


def page() -> str:
    """Give the whole page: what is written by hand, and a table for every page of proofs."""
    parts = [PAGE.read_text(encoding="utf-8")]
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
    sys.stdout.write(page())
