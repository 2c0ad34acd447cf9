"""`secant explain`: why an answer would be private. It spends nothing and reads no data."""

from __future__ import annotations

from typing import Annotated

from cyclopts import Parameter

from secant.cli.options import (
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

WithSql = Annotated[
    bool, Parameter(name="--sql", negative="", help="Also print the statements that would run.")
]

AttackerText = Annotated[
    str | None,
    Parameter(
        name="--attacker",
        help="Also bound what is guessed: `table.column within R [of C] [prior ...] [member P]`.",
        metavar="TEXT",
    ),
]


def explain(
    sql: Question,
    /,
    *,
    epsilon: Epsilon | None = None,
    delta: Delta = None,
    level: Level = "0.95",
    protection: ProtectionName = None,
    statements: WithSql = False,
    attacker: AttackerText = None,
    policy: PolicyPath = "policy.toml",
    source: Source = None,
    json: Json = False,
) -> int:
    """Show the derivation of the bound, rule by rule, and every analysis that was tried."""
    import secant
    from secant.attack import attack_lines, attack_report, parse_attacker
    from secant.cli import show

    text = question_of(sql)
    aim = None if attacker is None else parse_attacker(attacker)
    with (
        show.working("deriving", quiet=json),
        secant.connect(source, policy=policy) as database,
    ):
        explanation = database.explain(
            text, epsilon=epsilon, delta=delta, level=level, protection=protection
        )
        report = explanation.to_dict()
        if aim is not None:
            charged = report["guarantee"]
            report["attacker"] = attack_report(aim, database.policy, charged, database.catalog)
    if json:
        if statements:
            report["statements"] = list(explanation.statements)
        show.print_json(report)
        return 0
    show.say(str(explanation))
    if aim is not None:
        for line in attack_lines(aim, report["attacker"]):
            show.say(line)
    if statements:
        show.say()
        for number, statement in enumerate(explanation.statements, start=1):
            show.say(f"-- statement {number}")
            show.say(f"{statement};")
    return 0
