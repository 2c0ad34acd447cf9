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
class CheckResult:
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
    from secant.cli.commands.look import lines_of, read_report, report
    from secant.policy.file import load_policy

    if file is not None and policy is not None:
        raise UsageError("USE-001", "two policy files are named", hint="leave out --policy")
    loaded = load_policy(file or policy_file(policy))
    findings = _with_streams(loaded, source, _against_database(loaded, source))
    wrong = findings is not None and findings.wrong
    if look and (findings is None or wrong):
        raise UsageError(
            "USE-001", "there is nothing to look at", hint="name a database, and mend the policy"
        )
    seen = read_report(loaded, source) if look else None
    if json:
        looked = {} if seen is None else {"look": report(seen)}
        show.print_json(_report(loaded, findings) | looked)
        return MISTAKEN if wrong else 0
    if findings is None:
        name = loaded.path or "the policy"
        show.say(f"{name} is well formed. It names no database, so nothing else was checked.")
        return 0
    for problem in findings.problems:
        show.say(f"{problem.severity:8}{problem}", style=STYLES[problem.severity])
    for line in coverage_lines(findings.tables):
        show.say(line)
    for name, reason in findings.withheld.items():
        show.say(f"not offered  {name}: {reason}")
    _summary(loaded, findings)
    for line in () if seen is None else lines_of(seen):
        show.say(line)
    return MISTAKEN if wrong else 0


def coverage_lines(tables: dict[str, Coverage]) -> Iterator[str]:
    """Say in words, table by table, who protects it and what of it everybody may see."""
    width = max((len(name) for name in tables), default=0)
    for name, coverage in tables.items():
        parts = [f"rows protected by {', '.join(coverage.rows)}"] if coverage.rows else []
        for who, columns in coverage.values.items():
            parts.append(f"values of {', '.join(columns)} protected by {who}")
        if coverage.public:
            parts.append("PUBLIC: everybody may see every row")
        elif not parts:
            parts.append("neither protected nor named public: nothing is answered")
        if coverage.public_columns:
            listed = ", ".join(coverage.public_columns)
            apart = " if only values are chosen to be protected" if coverage.rows else ""
            parts.append(f"PUBLIC{apart}: which rows there are, and {listed}")
        if coverage.refused:
            parts.append(f"not answered with --protection {' or '.join(coverage.refused)}")
        yield f"table   {name:{width}}  {'; '.join(parts)}"


def _against_database(policy: Policy, source: str | None) -> CheckResult | None:
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
        message = 'a password stands in the policy, which is shown to people; write source = "env:NAME" or "file:PATH"'
        problems += (Problem("warning", "database.source", message),)
    hint = open_hint(policy, catalog)
    offered = naming(policy, catalog)
    return CheckResult(problems, coverage(policy, offered), hint, withheld_in(offered))


def _with_streams(
    policy: Policy, source: str | None, result: CheckResult | None
) -> CheckResult | None:
    """Add which streams could not be released. Other questions do not suffer from that."""
    if result is None or result.wrong or not policy.streams:
        return result
    import secant
    from secant.errors import SecantError
    from secant.policy.problems import Problem

    problems = list(result.problems)
    with secant.connect(source, policy=policy) as database:
        for stream in policy.streams:
            try:
                database.explain_stream(stream.name)
            except SecantError as error:
                message = "; ".join([error.message, *error.details, *filter(None, [error.hint])])
                line = policy.lines.get(("streams", stream.name.lower()))
                problems.append(Problem("warning", f"streams.{stream.name}", message, line))
    return replace(result, problems=tuple(problems))


def _against_ledger(policy: Policy) -> tuple[Problem, ...]:
    """Say what is wrong with the ledger, if there is one; nothing is started here."""
    from secant.errors import BudgetError
    from secant.ledger import opening
    from secant.ledger.amounts import decimals
    from secant.policy.problems import Problem

    location = opening.ledger_place(policy)
    if not opening.ledger_was_started(location):
        return ()
    try:
        with opening.open_ledger(policy, location, create=False) as books:
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


def _summary(policy: Policy, result: CheckResult) -> None:
    from secant.cli import show

    counts = {kind: sum(p.severity == kind for p in result.problems) for kind in STYLES}
    counted = ", ".join(
        f"{count} {kind}{'' if count == 1 else 's'}" for kind, count in counts.items()
    )
    show.say(f"{policy.path or 'the policy'}: {counted}")
    if result.hint:
        show.say(f"Now: {result.hint}")
    if not result.wrong:
        names = ", ".join(p.name for p in policy.protections)
        show.say(f"The policy fits the database. Protections in force: {names}")


def _report(policy: Policy, result: CheckResult | None) -> dict[str, object]:
    return {
        "policy": str(policy.path or ""),
        "ok": result is None or not result.wrong,
        "checked_against_database": result is not None,
        "problems": [
            {"severity": p.severity, "line": p.line, "place": p.place, "message": p.message}
            for p in (result.problems if result else ())
        ],
        "tables": {
            name: {
                "rows": list(c.rows),
                "values": {who: list(columns) for who, columns in c.values.items()},
                "public": c.public,
                "public_columns": list(c.public_columns),
                "not_answered_with": list(c.refused),
            }
            for name, c in (result.tables if result else {}).items()
        },
        "not_offered": dict(result.withheld) if result else {},
        "hint": result.hint if result else "",
    }
