"""What must be asked: targets in rounds, what a plan for each must hold, and targets for what is still missing.

In: a `random.Random`. Out: targets. Each round has every wrapper with every kind of subquery, protected and public; all
else (places, aggregates, protections, names) takes turns.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator, Sequence
from dataclasses import replace

from slot_coverage import LAYERS, UNREACHABLE
from slot_places import PLACES, SYNTAX
from slot_questions import COLLIDING, FUNCTION_WRAPS, SLOT_WRAPS, WRAPS, Target
from slot_worlds import COMBINATIONS, STYLES

from secant.plan.functions.scalar import AGGREGATES

CORES = ("Exists", "InSubquery", "ScalarSubquery")
WRITTEN = tuple(a for a in AGGREGATES if f"aggregate {a}" not in UNREACHABLE)
REFUSED = ("mode distinct", "covar_pop distinct")
CALLS = tuple(x for a in WRITTEN for x in (a, f"{a} distinct") if x not in REFUSED)


SLOT_OF = {
    "Case.condition": "Case.branches/Branch.condition", "Case.value": "Case.branches/Branch.value",
    "Project.items": "Project.items/Named.expression", "Sort.keys": "Sort.keys/SortKey.expression",
    "Aggregate.keys": "Aggregate.keys/Named.expression", "Join.condition": "Join.condition",
    "Aggregation.argument": "Aggregate.aggregations/Aggregation.argument",
    "Aggregation.second": "Aggregate.aggregations/Aggregation.second",
}  # fmt: skip
"""Where the slot of a plan is not called as the place or the wrapper is."""
KIND_OF = {"BIGINT": "INTEGER", "VARCHAR": "TEXT"}
NO_SLOT = ("none", "Arithmetic, days", "Arithmetic, moments")


def goals(target: Target) -> set[str]:
    """Give what a plan for the target holds, as `slot_coverage` counts it."""
    found = set()
    slots = [SLOT_OF.get(target.wrap, target.wrap)] if target.wrap in SLOT_WRAPS else []
    if target.place in SLOT_OF or target.place == "Filter.predicate":
        slots.append(SLOT_OF.get(target.place, target.place))
    if target.core in CORES:
        found |= {f"slot {s} {target.core} {target.layer}" for s in slots if s not in NO_SLOT}
    if target.wrap in FUNCTION_WRAPS:
        word, _, rest = target.wrap.partition(" ")
        found.add(target.wrap if word in ("part", "operator") else f"function {word}")
        if word == "cast":
            name = rest.partition(" to ")[2].partition("(")[0]
            found = {f"cast {KIND_OF.get(name, name)}"}
    if target.place in ("Aggregation.argument", "Aggregation.argument, inside"):
        found.add(f"aggregate {target.aggregate}")
    return found


def targets(draw: random.Random) -> Iterator[Target]:
    """Give targets without end, so that each round has every slot with every subquery, and all else in turn."""

    def turns(options: Sequence[str]) -> Iterator[str]:
        while True:
            yield from draw.sample(list(options), len(options))

    hearts = [*itertools.product(CORES, LAYERS), ("plain", "public")]
    places = {heart: turns(tuple(PLACES)) for heart in hearts}
    calls = turns(CALLS)
    worlds, styles, names = turns(tuple(COMBINATIONS)), turns(STYLES), turns(tuple(COLLIDING))
    while True:
        triples = [(next(places[h]), wrap, h) for wrap, h in itertools.product(SLOT_WRAPS, hearts)]
        triples += [
            (next(places[h]), wrap, h) for wrap in FUNCTION_WRAPS for h in [draw.choice(hearts)]
        ]
        triples += [(place, "none", draw.choice(hearts[:-1])) for place in SYNTAX]
        triples += [("Aggregation.argument", "none", draw.choice(hearts)) for _ in CALLS]
        draw.shuffle(triples)
        for place, wrap, heart in triples:
            yield Target(place, wrap, *heart, next(calls), next(worlds), next(styles), next(names))


ROUND = len(SLOT_WRAPS) * (2 * len(CORES) + 1) + len(FUNCTION_WRAPS) + len(SYNTAX) + len(CALLS)
"""How many targets a round has."""


def aimed(draw: random.Random, key: str) -> Target:
    """Give a target that is likely to draw what is missing."""
    target = next(targets(draw))
    word, _, rest = key.partition(" ")
    if word == "slot" and rest.rpartition(" ")[0].rpartition(" ")[2] in CORES:
        slot, core, layer = rest.rsplit(" ", 2)
        named = next((x for x, y in SLOT_OF.items() if y == slot), slot)
        where = {"wrap": named} if named in WRAPS else {"place": named}
        if slot == "Call.arguments":
            where = {"wrap": draw.choice(FUNCTION_WRAPS)}
        return replace(target, core=core, layer=layer, **where)
    plain = replace(target, place="Filter.predicate", wrap="none", core="plain", layer="public")
    if word == "rank":
        name, _, many = rest.partition(" ")
        fitting = [x for x, made in COMBINATIONS.items() if (len(made) > 1) == (many == "several")]
        return replace(
            plain, place="order statistic", aggregate=name, combination=draw.choice(fitting)
        )
    if word in ("part", "operator", "cast", "function"):
        fitting = [x for x in FUNCTION_WRAPS if key in goals(replace(plain, wrap=x))]
        return replace(plain, wrap=draw.choice(fitting))
    if word == "stage":
        return replace(plain, place="staged" if rest == "constant" else "looked up")
    if word == "enforced":  # truncations need a unit, and those of groups need groups
        return replace(plain, place="Aggregate.keys", aggregate="sum", combination="unit")
    if rest.startswith(("Union", "Intersect", "Except")):
        return replace(plain, place="side of a set")
    if rest.startswith(("Sort", "Limit")) or word in ("sort", "limit"):
        return replace(plain, place="Sort.keys")
    if rest.startswith("Window"):
        return replace(plain, place="Window.input")
    if word == "protections":
        return replace(plain, combination=rest)
    if word == "tables":
        return replace(plain, style=rest.partition(" ")[2])
    if word == "aggregate":
        return replace(plain, place="Aggregation.argument", aggregate=rest)
    return target
