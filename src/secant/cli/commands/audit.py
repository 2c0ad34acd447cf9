"""`secant audit`: search drawn databases for neighbors that come close to a certified bound, or refute it."""

from __future__ import annotations

from fractions import Fraction
from typing import Annotated

from secant.cli.options import (
    Delta,
    Epsilon,
    Json,
    PolicyPath,
    ProtectionName,
    Question,
    Source,
    named,
    policy_file,
    question_of,
)
from secant.plural import several

Databases = Annotated[int, named("--databases", "How many small databases are drawn.", "NUMBER")]
Seconds = Annotated[
    float,
    named("--seconds", "When the search ends, if not before.", "NUMBER"),
]
Seed = Annotated[int | None, named("--seed", "Draw the same databases again.", "NUMBER")]
REFUTED = 4


def audit(
    sql: Question,
    /,
    *,
    epsilon: Epsilon = "1",
    delta: Delta = None,
    protection: ProtectionName = None,
    databases: Databases = 100,
    seconds: Seconds = 20.0,
    seed: Seed = None,
    policy: PolicyPath = None,
    source: Source = None,
    json: Json = False,
) -> int:
    """Search neighbors of small databases under the policy's schema, and measure. Reads no row, spends nothing."""
    import secant
    from secant.audit import audit as search
    from secant.cli import show

    text = question_of(sql)
    with secant.connect(source, policy=policy_file(policy)) as database:
        found = search(
            database, text, epsilon=epsilon, delta=delta, protection=protection,
            databases=databases, seconds=seconds, seed=seed,
        )  # fmt: skip
    lines = [
        {
            "protection": claim.protection,
            "measure": claim.measure,
            "claim": claim.what,
            "certified": _number(worst.certified),
            "found": _number(worst.found),
            "ratio": float(worst.ratio),
        }
        for claim, worst in found.worst.items()
    ]
    status = REFUTED if found.refuted else 0
    if json:
        seen = {"databases": found.databases, "neighbors": found.pairs}
        refuted = [
            {"protection": c.protection, "measure": c.measure, "claim": c.what,
             "before": _rows(found.worst[c].before), "after": _rows(found.worst[c].after)}
            for c in found.refuted
        ]  # fmt: skip
        show.print_json(
            {**seen, "claims": lines, "refuted": refuted, "not_searched": found.not_searched}
        )
        return status
    show.print_records(
        [{k: _word(v) for k, v in line.items()} for line in lines], empty="Nothing was compared."
    )
    show.say(
        f"{several(found.databases, 'database')} drawn, {several(found.pairs, 'neighbor')} compared."
    )
    for words in found.not_searched:
        show.say(f"Not searched: {words}", style="yellow")
    for claim in found.refuted:
        worst = found.worst[claim]
        show.say(f"REFUTED: {claim.what} of {claim.measure} ({claim.protection})", style="bold red")
        show.say(f"  before: {_rows(worst.before)}")
        show.say(f"  after:  {_rows(worst.after)}")
        show.say("  Stop releasing such questions, and report this: the rows above are made up.")
    if lines and not found.refuted:
        show.say("No pair moves more than is certified. A search is no proof; the derivation is.")
    return status


def _number(value: Fraction) -> float | int:
    return value.numerator if value.denominator == 1 else float(value)


def _word(value: object) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _rows(database: object) -> dict[str, list[list[str]]]:
    """Give drawn rows as text."""
    assert isinstance(database, dict)
    return {
        t: [[str(v) for v in row.values()] for row in rows] for t, rows in database.items() if rows
    }
