"""`secant check`: what is wrong with a policy, what is missing, and what nobody protects."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from secant.cli.options import Json, PolicyPath, Source

if TYPE_CHECKING:
    from secant.terms.policy import Policy
    from secant.terms.policy_check import Problem

MISTAKEN = 2
STYLES = {"error": "bold red", "warning": "yellow", "note": "bold"}


def check(
    file: Annotated[str | None, Parameter(help="The policy file, if not --policy.")] = None,
    /,
    *,
    policy: PolicyPath = "policy.toml",
    source: Source = None,
    json: Json = False,
) -> int:
    """Say what is wrong with a policy, what is missing, and which tables it leaves public."""
    from secant.cli import show
    from secant.terms.policy_file import load_policy

    loaded = load_policy(file or policy)
    problems = _against_database(loaded, source)
    wrong = any(problem.severity == "error" for problem in problems or ())
    if json:
        show.print_json(_report(loaded, problems, ok=not wrong))
        return MISTAKEN if wrong else 0
    for problem in problems or ():
        show.say(f"{problem.severity:8}{problem}", style=STYLES[problem.severity])
    _summary(loaded, problems)
    return MISTAKEN if wrong else 0


def _against_database(policy: Policy, source: str | None) -> tuple[Problem, ...] | None:
    """Hold the policy against the catalog; None if it names no database."""
    if not (source or policy.source):
        return None
    from secant.release.sources import open_source
    from secant.terms.policy_file import check_policy

    # The policy names paths from its own directory, the command line from where we are.
    beside = None if source or policy.path is None else policy.path.parent
    opened = open_source(source or policy.source, beside=beside)
    try:
        return check_policy(policy, opened.catalog())
    finally:
        opened.close()


def _summary(policy: Policy, problems: tuple[Problem, ...] | None) -> None:
    from secant.cli import show

    name = policy.path or "the policy"
    if problems is None:
        show.say(f"{name} is well formed. It names no database, so nothing else was checked.")
        return
    counts = {kind: sum(p.severity == kind for p in problems) for kind in STYLES}
    told = ", ".join(f"{count} {kind}{'' if count == 1 else 's'}" for kind, count in counts.items())
    show.say(f"{name}: {told}")
    if not counts["error"]:
        names = ", ".join(p.name for p in policy.protections)
        show.say(f"The policy fits the database. Protections in force: {names}")


def _report(policy: Policy, problems: tuple[Problem, ...] | None, *, ok: bool) -> dict[str, object]:
    return {
        "policy": str(policy.path or ""),
        "ok": ok,
        "checked_against_database": problems is not None,
        "problems": [
            {"severity": p.severity, "line": p.line, "place": p.place, "message": p.message}
            for p in problems or ()
        ],
    }
