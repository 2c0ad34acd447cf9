"""`secant verify`: check a release by its records, with a program that shares no rule with the analyses."""

from __future__ import annotations

from typing import Annotated

from cyclopts import Parameter

from secant.cli.options import Json, PolicyPath, Source, policy_file

Release = Annotated[
    str, Parameter(help="How the name of a release begins (`secant ledger --history`), or `last`.")
]
STATUS = {"verified": 0, "not verified": 1, "wrong": 4}
MARKS = {"holds": ("ok", "green"), "wrong": ("WRONG", "bold red"), "not known": ("?", "yellow")}
SENTENCES = {
    "verified": "Verified: every step follows, the noise hides the bounds, and the charge covers the noise.",
    "not verified": "Not verified: what is marked with ? is beyond the checker. It found nothing wrong.",
    "wrong": "Wrong: the release does not keep to what its records claim. Stop releasing, and report this.",
}


def verify(
    release: Release,
    /,
    *,
    policy: PolicyPath = None,
    source: Source = None,
    json: Json = False,
) -> int:
    """Check the records, the derivation, the noise and the charge of a release. Spends nothing, reads no data."""
    import secant
    from secant.cli import show

    with secant.connect(source, policy=policy_file(policy), create=False) as database:
        verdict = database.verify(release)
    if json:
        points = [
            {"about": p.about, "outcome": p.outcome, "words": p.words} for p in verdict.points
        ]
        show.print_json({"release": release, "outcome": verdict.outcome, "points": points})
        return STATUS[verdict.outcome]
    for point in verdict.points:
        mark, style = MARKS[point.outcome]
        show.say(f"{mark:6} {point.about}: {point.words}", style=style)
    show.say(SENTENCES[verdict.outcome], style="bold")
    return STATUS[verdict.outcome]
