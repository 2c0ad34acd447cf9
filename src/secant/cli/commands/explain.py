"""`secant explain`: why an answer would be private, or what a rule says. It spends nothing and reads no data."""

from __future__ import annotations

from typing import Annotated

from secant.cli.options import (
    USUAL_LEVEL,
    Certain,
    Delta,
    Epsilon,
    Json,
    Level,
    ParameterValues,
    PolicyPath,
    ProtectionName,
    Question,
    Source,
    WantedError,
    flag,
    named,
    policy_file,
    question_of,
    refuse_beside,
)

WithSql = Annotated[bool, flag("--sql", "Also print the statements that would run.")]

WithRanges = Annotated[
    bool,
    flag("--ranges", "Also show which ranges follow from declared facts, and from what."),
]

ObligationFile = Annotated[
    str | None,
    named(
        "--smt",
        "Also write what a solver must find impossible, as SMT-LIB (`rows` protections).",
        "FILE",
    ),
]

RuleId = Annotated[
    str | None,
    named(
        "--rule",
        "Instead of a question: what a rule claims, its proof, its code, and the tests that attack it.",
        "ID",
    ),
]

StreamName = Annotated[
    str | None,
    named(
        "--stream",
        "Instead of a question: what a stream costs, and how ways to release it compare.",
        "NAME",
    ),
]

WithComponents = Annotated[
    bool,
    flag(
        "--components", "Also show how far each table and each column moves the answer by itself."
    ),
]

AttackerText = Annotated[
    str | None,
    named(
        "--attacker",
        "Also bound what is guessed: `table.column within R [of C] [prior ...] [member P] [at most Q%]`.",
        "TEXT",
    ),
]

PlotFile = Annotated[
    str | None,
    named(
        "--plot",
        "With --attacker: draw what is guessed against epsilon into this SVG file.",
        "FILE",
    ),
]


def explain(
    sql: Question | None = None,
    /,
    *,
    rule: RuleId = None,
    stream: StreamName = None,
    parameter: ParameterValues = None,
    epsilon: Epsilon | None = None,
    error: WantedError = None,
    certain: Certain = False,
    delta: Delta = None,
    level: Level = None,
    protection: ProtectionName = None,
    statements: WithSql = False,
    attacker: AttackerText = None,
    plot: PlotFile = None,
    ranges: WithRanges = False,
    components: WithComponents = False,
    smt: ObligationFile = None,
    policy: PolicyPath = None,
    source: Source = None,
    json: Json = False,
) -> int:
    """Show the derivation of the bound, rule by rule, and every analysis that was tried; or one rule."""
    import secant
    from secant.attack import parse_attacker
    from secant.cli import show
    from secant.errors import Refused, UsageError
    from secant.plan.facts.range_report import range_lines
    from secant.sql.parameters import named_values

    of_question = {
        "a question": sql, "--parameter": parameter, "--epsilon": epsilon, "--error": error, "--delta": delta,
        "--level": level, "--protection": protection, "--attacker": attacker, "--plot": plot, "--ranges": ranges,
        "--components": components, "--smt": smt, "--certain": certain,
    }  # fmt: skip
    path = policy_file(policy)
    if rule is not None:
        of_data = {"--stream": stream, "--sql": statements, "--policy": policy, "--source": source}
        refuse_beside("--rule", {**of_question, **of_data})
        return _print_rule(rule, json=json)
    if stream is not None:
        refuse_beside("--stream", of_question)
        return _print_stream(stream, path, source, statements=statements, json=json)
    if sql is None:
        raise UsageError(
            "USE-001",
            "there is no question",
            hint="write a SELECT statement, --rule ID or --stream NAME",
        )
    text = question_of(sql)
    values = named_values(text, parameter or ())
    if attacker is not None:
        parse_attacker(attacker)  # a slip of the pen is told before anything is opened
    if plot is not None and attacker is None:
        raise UsageError(
            "USE-001",
            "--plot draws what an attacker guesses",
            hint='add --attacker "table.column within R"',
        )
    with (
        show.working("deriving", quiet=json),
        secant.connect(source, policy=path) as database,
    ):
        try:
            explanation = database.explain(
                text,
                parameters=values,
                epsilon=epsilon,
                error=error,
                certain=certain,
                delta=delta,
                level=level or USUAL_LEVEL,
                protection=protection,
                attacker=attacker,
                ranges=ranges,
            )
        except Refused:
            if ranges and not json:  # they may tell which fact is missing
                for line in range_lines(database.ranges(text, parameters=values)):
                    show.say(line)
            raise
        report = explanation.to_dict()
        parts = explanation.components() if components else ()
        if smt is not None:
            _write(smt, database.obligation(text, protection=protection))
        if plot is not None and attacker is not None:
            from secant.cli.guesses import guess_picture

            picture = guess_picture(attacker, report["attacker"], database.policy, database.catalog)
            _write(plot, picture)
    if json:
        if statements:
            report["statements"] = list(explanation.statements)
        if components:
            report["components"] = [part.to_dict() for part in parts]
        show.print_json(report)
        return 0
    show.say(str(explanation))
    from secant.proofs import ID

    if named := ID.search(str(explanation)):
        show.say(f"proof, code and tests of a rule: secant explain --rule {named[0]}")
    if components:
        from secant.release.components import component_lines

        for line in component_lines(parts):
            show.say(line)
    if statements:
        show.say()
        for number, statement in enumerate(explanation.statements, start=1):
            show.say(f"-- statement {number}")
            show.say(f"{statement};")
    return 0


def _print_rule(name: str, *, json: bool) -> int:
    from secant.cli import show
    from secant.proofs import rule

    result = rule(name)
    if json:
        show.print_json(result.to_dict())
    else:
        show.say(str(result))
    return 0


def _print_stream(
    name: str, policy: str, source: str | None, *, statements: bool, json: bool
) -> int:
    import secant
    from secant.cli import show

    with secant.connect(source, policy=policy) as database:
        explanation = database.explain_stream(name)
    if json:
        more = {"statements": list(explanation.statements)} if statements else {}
        show.print_json({**explanation.to_dict(), **more})
        return 0
    show.say(str(explanation))
    if statements:
        show.say()
        show.say("-- the statement of the first step")
        show.say(f"{explanation.statements[0]};")
    return 0


def _write(file: str, text: str) -> None:
    from pathlib import Path

    from secant.errors import UsageError

    try:
        Path(file).write_text(text, encoding="utf-8")
    except OSError as error:
        raise UsageError("USE-001", f"cannot write {file}: {error.strerror}") from None
