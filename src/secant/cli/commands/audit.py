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
        outcome = search(
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
        for claim, worst in outcome.worst.items()
    ]
    status = REFUTED if outcome.refuted else 0
    if json:
        seen = {"databases": outcome.databases, "neighbors": outcome.pairs}
        refuted = [
            {"protection": c.protection, "measure": c.measure, "claim": c.what,
             "before": _rows(outcome.worst[c].before), "after": _rows(outcome.worst[c].after)}
            for c in outcome.refuted
        ]  # fmt: skip
        show.print_json(
            {**seen, "claims": lines, "refuted": refuted, "not_searched": outcome.not_searched}
        )
        return status
    show.print_records(
        [{k: _word(v) for k, v in line.items()} for line in lines], empty="Nothing was compared."
    )
    show.say(
        f"{several(outcome.databases, 'database')} drawn, {several(outcome.pairs, 'neighbor')} compared."
    )
    for reason in outcome.not_searched:
        show.say(f"Not searched: {reason}", style="yellow")
    for claim in outcome.refuted:
        worst = outcome.worst[claim]
        show.say(f"REFUTED: {claim.what} of {claim.measure} ({claim.protection})", style="bold red")
        show.say(f"  before: {_rows(worst.before)}")
        show.say(f"  after:  {_rows(worst.after)}")
        show.say("  Stop releasing such questions, and report this: the rows above are made up.")
    if lines and not outcome.refuted:
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
