"""`secant inspect`: the owner looks behind the noise. What it prints is not private.

In: a question. Out: the true answer, its sensitivity and its noise, or the curve of error against ε, for
the owner's eyes. Nothing is released and no budget is spent, so nothing that is printed or drawn here may
be passed on.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any

from secant.cli.options import (
    USUAL_LEVEL,
    Delta,
    Epsilon,
    Json,
    Level,
    PolicyPath,
    ProtectionName,
    Question,
    Source,
    flag,
    named,
    policy_file,
    question_of,
    refuse_beside,
)
from secant.errors import UsageError
from secant.numeric.parameters import level_of

WARNING = "OWNER ONLY: true answers follow. They are not private, and nothing is charged."

AsCurve = Annotated[
    bool,
    flag("--curve", "Show the error at many epsilons, 0.01 to 10."),
]
WithComponents = Annotated[
    bool,
    flag(
        "--components",
        "Also show what each table, column and group of rows does by itself, at most and on these rows.",
    ),
]
PlotFile = Annotated[
    str | None,
    named("--plot", "With --curve or --attacker: draw it into this SVG file.", "FILE"),
]
Simulated = Annotated[
    str | None,
    named(
        "--attacker",
        "Simulate one who knows no row but how a column is distributed: `table.column within R`.",
        "TEXT",
    ),
]
StreamName = Annotated[
    str | None,
    named(
        "--stream",
        "Instead of a question: how far single units, or rows, move a stream, most of them and the largest.",
        "NAME",
    ),
]
Share = Annotated[
    str | None,
    named(
        "--share",
        "With --stream: the share of units or rows to look at; by default 0.999.",
        "SHARE",
    ),
]


def inspect(
    sql: Question | None = None,
    /,
    *,
    stream: StreamName = None,
    share: Share = None,
    epsilon: Epsilon | None = None,
    delta: Delta = None,
    level: Level = None,
    protection: ProtectionName = None,
    curve: AsCurve = False,
    components: WithComponents = False,
    attacker: Simulated = None,
    plot: PlotFile = None,
    policy: PolicyPath = None,
    source: Source = None,
    json: Json = False,
) -> int:
    """OWNER ONLY: true answer, sensitivity, noise scale, error and times; releases nothing."""
    import secant
    from secant.cli import curve as curves
    from secant.cli import show
    from secant.release.components import Component, component_lines

    path = policy_file(policy)
    beside = {"--epsilon": epsilon, "--delta": delta, "--level": level, "--components": components}
    if stream is not None:
        other = {"--protection": protection, "--curve": curve, "--attacker": attacker}
        refuse_beside("--stream", {"a question": sql, **beside, **other, "--plot": plot})
        return _print_spread(stream, path, source, share or "0.999", json=json)
    refuse_beside("a question: it goes with --stream", {"--share": share})
    if sql is None:
        raise UsageError(
            "USE-001", "there is no question", hint="write a SELECT statement, or --stream NAME"
        )
    text = question_of(sql)
    if plot is not None and not curve and attacker is None:
        raise UsageError("USE-001", "--plot draws a curve", hint="add --curve, or --attacker")
    if attacker is not None:
        refuse_beside("--attacker, which has its own epsilons", {"--curve": curve, **beside})
    if curve:
        own = {"--epsilon": epsilon, "--components": components}
        refuse_beside("--curve, which has its own epsilons", own)
    level = level or USUAL_LEVEL
    confidence = float(level_of(level))
    sys.stderr.write(WARNING + "\n")
    with (
        show.working("inspecting", quiet=json),
        secant.connect(source, policy=path) as database,
    ):
        if attacker is not None:
            simulation = database.simulate(text, attacker, protection=protection)
        elif curve:
            all_curves = curves.curves_of(
                lambda e: database.inspect(
                    text, epsilon=e, delta=delta, level=level, protection=protection
                )
            )
        else:
            epsilon_text = "1" if epsilon is None else epsilon
            columns = database.inspect(
                text,
                epsilon=epsilon_text,
                delta=delta,
                level=level,
                protection=protection,
                components=components,
            )
    if attacker is not None:
        _print_simulation(simulation, plot, json=json)
        return 0
    if curve:
        if plot is not None:
            _write(Path(plot), curves.svg(all_curves, confidence, "error against epsilon"))
        if json:
            for one in all_curves:
                show.print_json(one.to_dict(confidence))
        else:
            show.print_curves(all_curves, confidence)
        return 0
    if json:
        # One object per output column, one to a line.
        for column in columns:
            show.print_json(column)
        return 0
    for column in columns:
        parts = [Component(**part) for part in column.pop("components", ())]
        show.print_facts(column)
        for line in component_lines(tuple(parts)) if components else ():
            show.say(line)
        show.print_relative(curves.relative_error_of(column), confidence)
    return 0


def _print_spread(name: str, policy: str, source: str | None, share: str, *, json: bool) -> int:
    from secant.cli import show
    from secant.cli.commands.stream_look import spread_in, spread_lines, spread_record

    sys.stderr.write(WARNING + "\n")
    spreads = spread_in(name, policy, source, share)
    if json:
        show.print_json(spread_record(spreads, WARNING))
    else:
        for line in spread_lines(spreads):
            show.say(line)
    return 0


def _print_simulation(simulation: dict[str, Any], plot: str | None, *, json: bool) -> None:
    from secant.cli import guesses, show

    if plot is not None:
        _write(Path(plot), guesses.simulation_picture(simulation))
    if json:
        show.print_json(simulation)
    else:
        for line in guesses.simulation_lines(simulation):
            show.say(line)


def _write(path: Path, drawing: str) -> None:
    try:
        path.write_text(drawing, encoding="utf-8")
    except OSError as error:
        raise UsageError("USE-001", f"the plot cannot be written: {error.strerror}") from None
