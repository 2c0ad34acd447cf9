"""Ask drawn questions of pairs of neighbors, and judge what happens.

The rules: what `explain` accepts is answered, at the price that it said; what it refuses is refused, and costs nothing;
neighbors are treated alike, down to the words of a refusal; no error is one of ours, or of no kind at all.
"""

from __future__ import annotations

import json
import random
import time
import zlib
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any

from drawn_policies import EPSILONS as ODD_EPSILONS
from drawn_policies import Policies
from drawn_texts import Texts
from worlds import SECRET, World, open_under, open_world

from secant import engine
from secant.engine import Connection
from secant.errors import SecantError
from secant.ledger.amounts import DELTA_UNITS, EPSILON_UNITS

EPSILONS = ("1", "1", "1", "0.1", "10", "0.000001", "1000")
WORLD_LASTS, POLICY_LASTS = 250, 12
ATTACKED = ("person.age within {}", "person.height within {}", "visit.cost within {}", "visit.note is 'ok'",
            "place.x within {}", "person.born within {}", "place.(x, y) within {}", "visit.big within {} of 3",
            "person.city is 'Riga' member 10%", "visit.rate within {} member 50%")  # fmt: skip
UNITS = {"epsilon": EPSILON_UNITS, "delta": DELTA_UNITS}
ASKED_AGAIN = 8
"""Of the texts that are refused before a row has any part in it, every so many are asked of both neighbors as well."""


@dataclass(frozen=True, slots=True)
class Said:
    """What a call came to: a result, or the words of an error."""

    result: Any = None
    code: str = ""
    words: str = ""

    @property
    def yes(self) -> bool:
        return not self.code


def said(call: Callable[[], Any]) -> Said:
    """Call, and take down how it ended."""
    try:
        return Said(result=call())
    except SecantError as error:
        return Said(code=error.code, words=json.dumps(error.to_dict()))
    except Exception as error:  # noqa: BLE001 - an error of no kind is what is looked for
        return Said(code="untyped", words=f"{type(error).__name__}: {error}")


def spent(db: Connection) -> dict[str, tuple[Fraction, Fraction]]:
    """Give what each protection has spent."""
    return {name: (a.spent_epsilon, a.spent_delta) for name, a in db.budget.items()}


@dataclass
class Summary:
    """Counts of what happened, and every finding with what repeats it."""

    asked: int = 0
    answered: int = 0
    refused: Counter[str] = field(default_factory=Counter)
    findings: list[dict[str, Any]] = field(default_factory=list)

    def report(self) -> str:
        """Say what happened in a few lines."""
        kinds = Counter(f["kind"] for f in self.findings)
        return (
            f"{self.asked} asked, {self.answered} answered ({self.answered / max(1, self.asked):.1%}), "
            f"refused by code {dict(sorted(self.refused.items()))}, findings {dict(kinds)}"
        )


def faults(world: World, text: str, epsilon: str) -> Iterator[tuple[str, Any]]:
    """Ask one question of both neighbors; yield each fault, and in the end what `explain` said."""
    options: dict[str, Any] = {"epsilon": epsilon, "protection": world.kind.choice}
    told = said(lambda: world.first.explain(text, **options))
    if told.code.startswith("SQL-") and zlib.crc32(text.encode(errors="replace")) % ASKED_AGAIN:
        yield "told", told
        return
    before = spent(world.first)
    first = said(lambda: world.first.sql(text, **options))
    after = spent(world.first)
    second = said(lambda: world.second.sql(text, **options))
    for who, one in (("explain", told), ("sql", first), ("neighbor", second)):
        if one.code in ("BUG-001", "untyped"):
            yield "bug", f"{who}: {one.words}"
        if SECRET in one.words and SECRET not in text:
            yield "quoted", f"{who}: {one.words}"
    if told.yes and first.code.startswith("BUD-") and after == before:
        yield "told", told  # explained, and nothing is left to pay for it
        return
    if told.yes and not first.yes:
        yield ("charged" if after != before else "unanswered"), first.words
    elif not told.yes and (first.code, first.words) != (told.code, told.words):
        yield "explained otherwise", f"{told.words} / {first.words}"
    if not first.yes and after != before:
        yield "charged", first.words
    if (first.code, first.words) != (second.code, second.words):
        yield "neighbor", f"{first.words or 'answered'} / {second.words or 'answered'}"
    if told.yes and first.yes:
        # With facts that were assumed, an explanation is a guess of its price.
        if world.kind.adds_up and "assumes" not in told.result.record:
            yield from _prices(told, first, before, after)
        if second.yes and first.result.columns != second.result.columns:
            yield "neighbor", "other columns"
    yield "told", told


def beside(world: World, text: str, epsilon: str, draw: random.Random) -> Iterator[tuple[str, Any]]:
    """Ask what else can be asked about a question, for the owner and about guesses; only faults of ours count."""
    db, place = world.first, draw.choice(ATTACKED)
    attacker = place.format(draw.choice(["0", "1e-9", "2", "1e6", "5%"]))
    options: dict[str, Any] = {"protection": world.kind.choice}
    wanted = draw.choice(["5%", "3", "1e-300", "1e300", "5% of 2000"])

    def verified() -> Any:
        found = db.sql(text, epsilon=epsilon, **options)
        return db.verify(found.release_id) if found.release_id else None

    calls: tuple[Callable[[], Any], ...] = (
        lambda: db.explain(text, epsilon=epsilon, attacker=attacker, ranges=True, **options),
        lambda: db.sql(text, attacker=f"{attacker} at most {draw.choice(['30%', '1e-9%', '99.9%'])}", **options),
        lambda: db.explain(text, error=wanted, **options),
        lambda: db.sql(text, epsilon=epsilon, max_error=wanted, **options),
        lambda: db.inspect(text, epsilon=epsilon, components=True, **options),
        lambda: db.simulate(text, attacker, **options),
        verified,
    )  # fmt: skip
    call = draw.choice(calls)
    seen = said(call)
    if seen.code in ("BUG-001", "untyped"):
        yield "bug", f"beside, {calls.index(call)} {attacker} {wanted}: {seen.words}"


def _prices(told: Said, first: Said, before: Any, after: Any) -> Iterator[tuple[str, Any]]:
    if first.result.guarantee and [
        (g["protection"], g["epsilon"], g["delta"]) for g in told.result.record["guarantee"]
    ] != [(g["protection"], g["epsilon"], g["delta"]) for g in first.result.guarantee]:
        yield "price", "the guarantee is another one than was explained"
    for g in told.result.record["guarantee"]:
        name = g["protection"]
        for what, now, then in zip(("epsilon", "delta"), after[name], before[name], strict=True):
            price, paid = Fraction(g[what]), now - then
            if abs(price - paid) > price / 10**7 + Fraction(1, UNITS[what]):
                yield "price", f"{what} of {name}: {float(price)} explained, {float(paid)} paid"


def fuzz(
    seed: int,
    questions: int,
    directory: Path,
    address: str | None = None,
    told: Callable[[str], None] = lambda line: None,
) -> Summary:
    """Ask so many drawn questions; the seed decides all worlds and texts."""
    with read_once():
        return _fuzz(seed, questions, directory, address, told)


@contextmanager
def read_once() -> Iterator[None]:
    """Read a text once for all who are asked: plans never change, and both neighbors have the same tables."""
    plain = engine.bind
    last: dict[str, Any] = {}

    def remembered(text: str, catalog: Any, parameters: Any = None) -> Any:
        if text not in last:
            found = plain(text, catalog, parameters)
            last.clear()
            last[text] = found
        return last[text]

    engine.bind = remembered
    try:
        yield
    finally:
        engine.bind = plain


def fuzz_policies(
    seed: int,
    questions: int,
    directory: Path,
    address: str | None = None,
    told: Callable[[str], None] = lambda line: None,
) -> Summary:
    """Ask so many drawn questions of drawn policies, a few of each."""
    with read_once():
        return _fuzz(seed, questions, directory, address, told, drawn_policies=True)


def _fuzz(
    seed: int,
    questions: int,
    directory: Path,
    address: str | None,
    told: Callable[[str], None],
    *,
    drawn_policies: bool = False,
) -> Summary:
    summary, number = Summary(), 0
    slowest = 0.0
    while summary.asked < questions:
        world_seed = seed * 1_000_003 + number
        number += 1
        texts, draw = Texts(world_seed), random.Random(world_seed)
        leaning, epsilons, lasts = None, EPSILONS, WORLD_LASTS
        if drawn_policies:
            leaning, epsilons, lasts = Policies(world_seed), ODD_EPSILONS, POLICY_LASTS
            drawn = leaning.draw()
            world = open_under(drawn.text, drawn.kind, world_seed, directory, address)
        else:
            world = open_world(world_seed, directory, address)
        try:
            for _ in range(min(lasts, questions - summary.asked)):
                text = leaning.text() if leaning and draw.random() < 0.8 else texts.draw()
                epsilon = draw.choice(epsilons)
                started = time.perf_counter()
                for kind, what in faults(world, text, epsilon):
                    if kind != "told":
                        finding = {"kind": kind, "world": world_seed, "policy": world.kind.name, "text": text,
                                   "epsilon": epsilon, "what": what}  # fmt: skip
                        summary.findings.append(finding)
                        told("FINDING " + json.dumps(finding))
                        continue
                    summary.asked += 1
                    summary.answered += what.yes
                    if not what.yes:
                        summary.refused[what.code] += 1
                if drawn_policies:
                    for kind, what in beside(world, text, epsilon, draw):
                        finding = {"kind": kind, "world": world_seed, "policy": world.kind.name, "text": text,
                                   "epsilon": epsilon, "what": what}  # fmt: skip
                        summary.findings.append(finding)
                        told("FINDING " + json.dumps(finding))
                seconds = time.perf_counter() - started
                if seconds > max(slowest, 5.0):
                    slowest = seconds
                    told(
                        "SLOW "
                        + json.dumps(
                            {"seconds": round(seconds, 1), "world": world_seed, "text": text}
                        )
                    )
        finally:
            world.close()
            engine.bind("SELECT 1", world.first.catalog)  # forget the last text of this world
            for file in directory.glob(f"world{world_seed}*"):
                file.unlink()
        if number % 20 == 0:
            told(summary.report())
    return summary
