"""`secant check`: what is wrong with a policy, what is missing, and who protects each table."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from secant.cli.options import Json, PolicyPath, Source, flag, policy_file
from secant.errors import UsageError
from secant.records import frozen

if TYPE_CHECKING:
    from collections.abc import Iterator

    from secant.policy.coverage import Coverage
    from secant.policy.policy import Policy
    from secant.policy.problems import Problem

AtData = Annotated[
    bool,
    flag("--look", "OWNER ONLY: read the data, and say what limits, ranges and values cut off."),
]
MISTAKEN = 2
STYLES = {"error": "bold red", "warning": "yellow", "note": "bold"}


@frozen
class Found:
    """What was found when the policy was held against the database."""

    problems: tuple[Problem, ...]
    tables: dict[str, Coverage]
    hint: str
    """What to write about tables that are neither protected nor public."""
    withheld: dict[str, str]
    """Tables and columns of the source that are not offered, or only in parts, each with the reason."""

    @property
    def wrong(self) -> bool:
        """Whether nothing can be asked under this policy."""
        return any(problem.severity == "error" for problem in self.problems)


def check(
    file: Annotated[str | None, Parameter(help="The policy file, if not --policy.")] = None,
    /,
    *,
    policy: PolicyPath = None,
    source: Source = None,
    look: AtData = False,
    json: Json = False,
) -> int:
    """Say what is wrong with a policy, what is missing, and for each table who protects it or that it is public."""
    from secant.cli import show
    from secant.cli.commands.look import found_in, lines_of, report
    from secant.policy.file import load_policy

    if file is not None and policy is not None:
        raise UsageError("USE-001", "two policy files are named", hint="leave out --policy")
    loaded = load_policy(file or policy_file(policy))
    found = _with_streams(loaded, source, _against_database(loaded, source))
    wrong = found is not None and found.wrong
    if look and (found is None or wrong):
        raise UsageError(
            "USE-001", "there is nothing to look at", hint="name a database, and mend the policy"
        )
    seen = found_in(loaded, source) if look else None
    if json:
        looked = {} if seen is None else {"look": report(seen)}
        show.print_json(_report(loaded, found) | looked)
        return MISTAKEN if wrong else 0
    if found is None:
        name = loaded.path or "the policy"
        show.say(f"{name} is well formed. It names no database, so nothing else was checked.")
        return 0
    for problem in found.problems:
        show.say(f"{problem.severity:8}{problem}", style=STYLES[problem.severity])
    for line in coverage_lines(found.tables):
        show.say(line)
    for name, reason in found.withheld.items():
        show.say(f"not offered  {name}: {reason}")
    _summary(loaded, found)
    for line in () if seen is None else lines_of(seen):
        show.say(line)
    return MISTAKEN if wrong else 0


def coverage_lines(tables: dict[str, Coverage]) -> Iterator[str]:
    """Say in words, table by table, who protects it and what of it everybody may see."""
    width = max((len(name) for name in tables), default=0)
    for name, found in tables.items():
        told = [f"rows protected by {', '.join(found.rows)}"] if found.rows else []
        for who, columns in found.values.items():
            told.append(f"values of {', '.join(columns)} protected by {who}")
        if found.public:
            told.append("PUBLIC: everybody may see every row")
        elif not told:
            told.append("neither protected nor named public: nothing is answered")
        if found.public_columns:
            listed = ", ".join(found.public_columns)
            apart = " if only values are chosen to be protected" if found.rows else ""
            told.append(f"PUBLIC{apart}: which rows there are, and {listed}")
        if found.refused:
            told.append(f"not answered with --protection {' or '.join(found.refused)}")
        yield f"table   {name:{width}}  {'; '.join(told)}"


def _against_database(policy: Policy, source: str | None) -> Found | None:
    """Hold the policy against the catalog; None if it names no database."""
    if not (source or policy.source):
        return None
    from secant.engines.sources import has_password, open_source
    from secant.policy.check import check_policy, open_hint
    from secant.policy.coverage import coverage
    from secant.policy.fit import withheld_in
    from secant.policy.following import naming
    from secant.policy.problems import Problem

    # The policy names paths from its own directory, the command line from where we are.
    beside = None if source or policy.path is None else policy.path.parent
    opened = open_source(source or policy.source, beside=beside, limits=policy.limits)
    try:
        catalog = opened.catalog()
    finally:
        opened.close()
    problems = _against_ledger(policy) + check_policy(policy, catalog)
    if has_password(policy.source):
        told = 'a password stands in the policy, which is shown to people; write source = "env:NAME" or "file:PATH"'
        problems += (Problem("warning", "database.source", told),)
    hint = open_hint(policy, catalog)
    offered = naming(policy, catalog)
    return Found(problems, coverage(policy, offered), hint, withheld_in(offered))


def _with_streams(policy: Policy, source: str | None, found: Found | None) -> Found | None:
    """Add which streams could not be released. Other questions do not suffer from that."""
    if found is None or found.wrong or not policy.streams:
        return found
    import secant
    from secant.errors import SecantError
    from secant.policy.problems import Problem

    problems = list(found.problems)
    with secant.connect(source, policy=policy) as database:
        for stream in policy.streams:
            try:
                database.explain_stream(stream.name)
            except SecantError as error:
                told = "; ".join([error.message, *error.details, *filter(None, [error.hint])])
                line = policy.lines.get(("streams", stream.name.lower()))
                problems.append(Problem("warning", f"streams.{stream.name}", told, line))
    return replace(found, problems=tuple(problems))


def _against_ledger(policy: Policy) -> tuple[Problem, ...]:
    """Say what is wrong with the ledger, if there is one; nothing is started here."""
    from secant.errors import BudgetError
    from secant.ledger import opening
    from secant.ledger.amounts import decimals
    from secant.policy.problems import Problem

    place = opening.ledger_place(policy)
    if not opening.ledger_was_started(place):
        return ()
    try:
        with opening.open_ledger(policy, place, create=False) as books:
            unnamed = books.unnamed()
    except BudgetError as error:
        severity = "note" if error.code == "BUD-002" else "error"  # away, or not started yet
        return (Problem(severity, "ledger", error.message),)
    return tuple(
        Problem(
            "error",
            f"protections.{name}",
            f"has spent ε {decimals(spent.epsilon, spent.delta)['epsilon']} and is not in the policy; say"
            f' `continues = ["{name}"]` in the protection that took its place, or `retired = ["{name}"]`'
            " under [ledger]",
        )
        for name, spent in unnamed.items()
    )


def _summary(policy: Policy, found: Found) -> None:
    from secant.cli import show

    counts = {kind: sum(p.severity == kind for p in found.problems) for kind in STYLES}
    told = ", ".join(f"{count} {kind}{'' if count == 1 else 's'}" for kind, count in counts.items())
    show.say(f"{policy.path or 'the policy'}: {told}")
    if found.hint:
        show.say(f"Now: {found.hint}")
    if not found.wrong:
        names = ", ".join(p.name for p in policy.protections)
        show.say(f"The policy fits the database. Protections in force: {names}")


def _report(policy: Policy, found: Found | None) -> dict[str, object]:
    return {
        "policy": str(policy.path or ""),
        "ok": found is None or not found.wrong,
        "checked_against_database": found is not None,
        "problems": [
            {"severity": p.severity, "line": p.line, "place": p.place, "message": p.message}
            for p in (found.problems if found else ())
        ],
        "tables": {
            name: {
                "rows": list(c.rows),
                "values": {who: list(columns) for who, columns in c.values.items()},
                "public": c.public,
                "public_columns": list(c.public_columns),
                "not_answered_with": list(c.refused),
            }
            for name, c in (found.tables if found else {}).items()
        },
        "not_offered": dict(found.withheld) if found else {},
        "hint": found.hint if found else "",
    }
