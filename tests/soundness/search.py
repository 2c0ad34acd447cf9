"""The attack: for a drawn world and question, climb toward the database that comes closest to refuting the claim."""

from __future__ import annotations

import random
import re

from drawn_queries import Questions
from drawn_worlds import (
    COLUMNS,
    changed_database,
    draw_database,
    draw_pool,
    draw_world,
    favored_tables,
)
from neighbor_check import Findings, World, target_for

STARTS = 3
STEPS = 12


def attack(
    question: random.Random,
    draw: random.Random,
    findings: Findings,
    *,
    starts: int = STARTS,
    steps: int = STEPS,
) -> World:
    """Draw one world and one question from the first source, and attack it with databases from the second."""
    world = draw_world(question)
    text = Questions(question, favored_tables(world)).question()
    attack_query(text, world, draw, findings, starts, steps)
    return world


def attack_query(
    text: str, world: World, draw: random.Random, findings: Findings, starts: int, steps: int
) -> bool:
    """Attack one question: some random databases, then small changes that keep what is worst."""
    target = target_for(text, world, findings)
    if target is None:
        return False
    tables = frozenset(name for name in COLUMNS if re.search(rf"\b{name}\b", text)) | _parents(text)
    pool = draw_pool(draw)
    drawn = [draw_database(draw, world, tables) for _ in range(starts)]
    rated = [(target.try_on(database, pool), database) for database in drawn]
    worst, current = max(rated, key=lambda pair: pair[0])
    for _ in range(steps):
        other = changed_database(draw, world, current, tables)
        ratio = target.try_on(other, pool)
        if ratio >= worst:
            worst, current = ratio, other
    return True


def _parents(text: str) -> frozenset[str]:
    """Owners are looked up in tables that the text does not name."""
    found = {"visit"} if re.search(r"\bitem\b", text) else set()
    return frozenset(found | ({"person"} if re.search(r"\bnote\b", text) else set()))
