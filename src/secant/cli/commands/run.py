"""`secant run`: a script of views, released tables and questions, asked as one."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from secant.cli.options import (
    USUAL_LEVEL,
    Analyst,
    Delta,
    Epsilon,
    Json,
    Level,
    NoCreate,
    PolicyPath,
    ProtectionName,
    Source,
    flag,
    named,
    policy_file,
    refuse_beside,
)

LARGEST_SCRIPT = 1_000_000
Plot = Annotated[
    str | None,
    named("--plot", "Also draw what flows where, as an SVG file.", "FILE"),
]
Explain = Annotated[
    bool,
    flag("--explain", "Only say what it would cost; nothing is spent."),
]


def run(
    script: Annotated[str, Parameter(help="A file of statements; each ends with a semicolon.")],
    /,
    *,
    epsilon: Epsilon,
    explain: Explain = False,
    plot: Plot = None,
    delta: Delta = None,
    level: Level = None,
    protection: ProtectionName = None,
    analyst: Analyst = "",
    policy: PolicyPath = None,
    source: Source = None,
    no_create: NoCreate = False,
    json: Json = False,
) -> int:
    """Ask a script: CREATE VIEW v AS, RELEASE t AS, and SELECTs, which share epsilon equally.

    Prints the answers and a table of what each output costs each source.
    """
    from secant.cli import show
    from secant.cli.asking import asking
    from secant.display.flow import flow_text
    from secant.errors import UsageError

    if explain:
        also = {"--analyst": analyst or None, "--no-create": no_create}
        refuse_beside("--explain, which spends nothing", also)
    try:
        text = Path(script).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        hint = "give the path of a text file"
        raise UsageError("USE-001", f"{script} cannot be read", hint=hint) from None
    with asking(policy_file(policy), source, no_create=no_create, quiet=json) as database:
        workflow = database.run(
            text,
            epsilon=epsilon,
            delta=delta,
            level=level or USUAL_LEVEL,
            protection=protection,
            analyst=analyst,
            warn=None if json else show.warn,
            explain=explain,
        )
    if plot is not None:
        workflow.plot().save(plot)
    if json:
        show.print_json(workflow.to_dict())
    else:
        for name, answer in workflow.answers.items():
            show.say(f"{name}:")
            show.print_answer(answer)
            show.say()
        for line in flow_text(workflow.flow):
            show.say(line)
    if workflow.stopped is not None:
        raise workflow.stopped
    return 0
