"""The search: drawn worlds, questions and databases, and walks from each through all of its neighbors."""

from __future__ import annotations

import random
from fractions import Fraction
from typing import Any

from joins_check import BETAS, Findings, targets_of
from joins_queries import Questions
from joins_worlds import draw_database, draw_world


def attack(
    analysis: Any,
    seed: int,
    findings: Findings,
    *,
    starts: int = 2,
    steps: int = 3,
    replaced: bool = False,
    betas: tuple[Fraction, ...] = BETAS,
) -> list[str]:
    """Put one drawn question to an analysis; give the violations, in words."""
    draw = random.Random(seed)
    place, text = draw_world(draw, replaced=replaced), Questions(draw).question()
    before = len(findings.violations)
    for target in targets_of(text, place, analysis, findings, betas):
        for _ in range(starts):
            target.walk(draw_database(draw, target.tables, place), draw, steps)
    return [f"seed {seed}: {v}" for v in findings.violations[before:]]
