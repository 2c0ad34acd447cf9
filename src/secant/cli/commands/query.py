"""`secant query`: an analyst asks, budget is spent, a private answer is printed."""

from __future__ import annotations

import sys

from secant.cli.options import (
    USUAL_LEVEL,
    Analyst,
    Certain,
    Delta,
    Epsilon,
    Guessing,
    Isotonic,
    Json,
    Level,
    MaxError,
    NoCreate,
    ParameterValues,
    PolicyPath,
    ProtectionName,
    Question,
    Source,
    WantedError,
    policy_file,
    question_of,
)


def query(
    sql: Question,
    /,
    *,
    parameter: ParameterValues = None,
    epsilon: Epsilon | None = None,
    error: WantedError = None,
    max_error: MaxError = None,
    certain: Certain = False,
    attacker: Guessing = None,
    delta: Delta = None,
    level: Level = None,
    protection: ProtectionName = None,
    analyst: Analyst = "",
    policy: PolicyPath = None,
    source: Source = None,
    no_create: NoCreate = False,
    isotonic: Isotonic = False,
    json: Json = False,
) -> int:
    """Ask a question: spends budget, prints the private answer, its guarantee and its error."""
    from secant.cli import show
    from secant.cli.asking import asking
    from secant.errors import UsageError
    from secant.sql.parameters import named_values

    text = question_of(sql)
    values = named_values(text, parameter or ())
    if attacker is not None:
        from secant.attack import parse_attacker

        parse_attacker(attacker)  # a slip of the pen is told before anything is opened
    with asking(policy_file(policy), source, no_create=no_create, quiet=json) as database:
        answer = database.sql(
            text,
            parameters=values,
            epsilon=epsilon,
            error=error,
            max_error=max_error,
            certain=certain,
            attacker=attacker,
            delta=delta,
            level=level or USUAL_LEVEL,
            protection=protection,
            analyst=analyst,
            warn=None if json else show.warn,
        )
    if isotonic:
        try:
            answer = answer.afterwards(isotonic=True)
        except UsageError as nothing:  # the answer is paid for: it is shown as it was released
            sys.stderr.write(f"{nothing}\n")
    if json:
        show.print_json(answer.to_dict())
        return 0
    show.print_answer(answer)
    return 0
