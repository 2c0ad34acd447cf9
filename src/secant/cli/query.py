"""`secant query`: an analyst asks, budget is spent, a private answer is printed."""

from __future__ import annotations

from secant.cli.options import (
    Analyst,
    Delta,
    Epsilon,
    Json,
    Level,
    PolicyPath,
    ProtectionName,
    Question,
    Source,
    question_of,
)


def query(
    sql: Question,
    /,
    *,
    epsilon: Epsilon,
    delta: Delta = None,
    level: Level = "0.95",
    protection: ProtectionName = None,
    analyst: Analyst = "",
    policy: PolicyPath = "policy.toml",
    source: Source = None,
    json: Json = False,
) -> int:
    """Ask a question: spends budget, prints the private answer, its guarantee and its error."""
    import secant
    from secant.cli import show

    text = question_of(sql)
    with (
        show.working("asking", quiet=json),
        secant.connect(source, policy=policy) as database,
    ):
        answer = database.sql(
            text,
            epsilon=epsilon,
            delta=delta,
            level=level,
            protection=protection,
            analyst=analyst,
        )
        accounts = database.budget
    if json:
        show.print_json(answer.to_dict())
        return 0
    show.print_answer(answer.columns, answer.rows, answer.error)
    show.print_left_out(answer.error)
    show.say()
    show.print_guarantees(answer.guarantee)
    show.print_budget(accounts)
    show.say(f"Release   {answer.release_id}")
    return 0
