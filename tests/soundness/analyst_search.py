"""The campaign over what analysts write: questions, databases that come ever closer to refuting their bounds, counts.

In: seeds. Out: findings and how often each construct was drawn and accepted. `python tests/soundness/analyst_search.py
SEED COMPARISONS` runs it outside of pytest and prints counts as they come.
"""

from __future__ import annotations

import random
import re
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

if __name__ == "__main__":
    sys.path[:0] = [str(folder) for folder in Path(__file__).parents[:2]]

from analyst_questions import CONSTRUCTS, Analyst
from analyst_worlds import COLUMNS, changed, draw_database, draw_row, draw_world, protected_tables
from neighbor_check import Database, Findings, Row, Target, World, neighbors, smallest, target_for
from slot_search import Reading, _smooth

from secant.plan.evaluate.values import Failure
from secant.sensitivity.certificate import Surveyed

STARTS, STEPS = 3, 40
SURVEYED = 6
"""Neighbors of one database on which bounds that are surveyed are tried: each asks all their statements."""


@dataclass
class Campaign:
    """What a search has seen, and what it was of."""

    findings: Findings = field(default_factory=Findings)
    drawn: Counter[str] = field(default_factory=Counter)
    accepted: Counter[str] = field(default_factory=Counter)
    compared: Counter[str] = field(default_factory=Counter)

    def table(self) -> str:
        """Say how often each construct was drawn, accepted and held against neighbors."""
        lines = [
            f"{name:24} drawn {self.drawn[name]:8} accepted {self.accepted[name]:8} compared {self.compared[name]:10}"
            for name in CONSTRUCTS
        ]
        found = self.findings
        lines.append(
            f"{found.triples} comparisons, {found.accepted} of {found.asked} accepted, "
            f"{len(found.violations)} violations"
        )
        return "\n".join(lines)


def attack(
    seed: int, campaign: Campaign, *, starts: int = STARTS, steps: int = STEPS, of: str = ""
) -> tuple[str, World]:
    """Draw a world and a question from a seed, and climb toward the database that refutes it.

    With `of`, questions without that construct are passed over.
    """
    draw = random.Random(seed)
    world = draw_world(draw)
    analyst = Analyst(draw, protected_tables(world))
    text = analyst.question()
    if of and of not in analyst.used:
        return text, world
    campaign.drawn.update(analyst.used)
    before = campaign.findings.triples
    target = target_for(text, world, campaign.findings)
    if target is None:
        return text, world
    campaign.accepted.update(analyst.used)
    tables = named(text)
    pool = {name: [draw_row(draw, name)] for name in COLUMNS}
    first = [draw_database(draw, world, tables) for _ in range(starts)]
    survey(target, first[0], pool)
    worst, current = max(((target.try_on(d, pool), d) for d in first), key=lambda pair: pair[0])
    for _ in range(steps):
        other = changed(draw, world, current, tables)
        ratio = target.try_on(other, pool)
        if ratio >= worst:
            worst, current = ratio, other
    for name in analyst.used:
        campaign.compared[name] += campaign.findings.triples - before
    return text, world


def survey(target: Target, database: Database, pool: Mapping[str, Sequence[Row]]) -> None:
    """Try what is claimed of bounds that hang on the data: they cover the motion, and are smooth."""
    for runner in target.runners:
        for certificate in runner.bounded.certificates:
            if not any(isinstance(b, Surveyed) for b in certificate.bounds.values()):
                continue
            protection = target.world.policy.protection(certificate.protection)
            assert protection is not None
            for neighbor in islice(neighbors(database, target.world, protection, pool), SURVEYED):
                target.findings.triples += 1
                try:
                    pair = [Reading([(runner.measured(d), ())], [], d) for d in (database, neighbor)]  # fmt: skip
                except Failure:
                    continue  # told by try_on
                for claim in _smooth(runner.bounded, certificate, *pair, 0):
                    if claim[3] > claim[2]:
                        target._violated(database, neighbor, protection.name, *claim)


def named(text: str) -> frozenset[str]:
    """Give the tables that a text reads; owners are looked up in no others."""
    return frozenset(
        name
        for name in COLUMNS
        if re.search(rf"\b{name}\b", text) or (name == "visit" and "seen_visits" in text)
    )


def main() -> int:
    """Search until so many comparisons were made; tell each violation."""
    seed, comparisons = int(sys.argv[1]), int(sys.argv[2])
    campaign, told, number = Campaign(), 0, 0
    while campaign.findings.triples < comparisons:
        _, world = attack(seed * 10**9 + number, campaign)
        number += 1
        for violation in campaign.findings.violations[told:]:
            print(f"VIOLATION seed {seed * 10**9 + number - 1}\n{smallest(violation, world)}", flush=True)  # fmt: skip
            break
        told = len(campaign.findings.violations)
        if number % 2000 == 0:
            print(f"{number} questions\n{campaign.table()}", flush=True)
    print(f"{number} questions from seed {seed}\n{campaign.table()}")
    return 1 if campaign.findings.violations else 0


if __name__ == "__main__":
    raise SystemExit(main())
