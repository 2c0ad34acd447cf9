"""`secant inspect`: the owner looks behind the noise. What it prints is not private.

In: a question. Out: the true answer, its sensitivity and its noise, for the owner's eyes. Nothing
is released and no budget is spent, so nothing that is printed here may be passed on.
"""

from __future__ import annotations

import sys

from secant.cli.options import (
    Delta,
    Epsilon,
    Json,
    Level,
    PolicyPath,
    Question,
    Source,
    question_of,
)

WARNING = "OWNER ONLY: true answers follow. They are not private, and nothing is charged."


def inspect(
    sql: Question,
    /,
    *,
    epsilon: Epsilon = "1",
    delta: Delta = None,
    level: Level = "0.95",
    policy: PolicyPath = "policy.toml",
    source: Source = None,
    json: Json = False,
) -> int:
    """OWNER ONLY: true answer, sensitivity, noise scale, error and times; releases nothing."""
    import secant
    from secant.cli import show

    text = question_of(sql)
    sys.stderr.write(WARNING + "\n")
    with (
        show.working("inspecting", quiet=json),
        secant.connect(source, policy=policy) as database,
    ):
        columns = database.inspect(text, epsilon=epsilon, delta=delta, level=level)
    if json:
        # One object per output column, one to a line.
        for column in columns:
            show.print_json(column)
        return 0
    for column in columns:
        show.print_facts(column)
    return 0
