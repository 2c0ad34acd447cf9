"""`secant stream`: the steps of a declared stream that are complete, each released once."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from secant.cli.options import Analyst, Isotonic, Json, PolicyPath, Source, flag, named, policy_file

if TYPE_CHECKING:
    from secant.streams.drawing import Buffer
    from secant.streams.series import Series

Until = Annotated[
    str | None,
    named(
        "--until",
        "The last step to release, such as 2025-03-01; by default all that are complete.",
        "STEP",
        hyphen=True,
    ),
]
Plot = Annotated[
    str | None,
    named("--plot", "Also draw the series with its band, as an SVG file.", "FILE"),
]
Revised = Annotated[
    bool,
    flag(
        "--revised",
        "Weigh all numbers so far together: earlier steps get more accurate, and change as time goes by.",
    ),
]
Filter = Annotated[
    float | None,
    named(
        "--filter",
        "Follow the steps as a walk that moves by about so much from step to step: a belief, no ends of its own.",
        "SPREAD",
    ),
]
Follow = Annotated[
    bool,
    flag("--follow", "Wait for each next step, and release it when it is over."),
]


def stream(
    name: Annotated[str, Parameter(help="A [streams.NAME] of the policy.")],
    /,
    *,
    until: Until = None,
    plot: Plot = None,
    revised: Revised = False,
    isotonic: Isotonic = False,
    filter: Filter = None,
    follow: Follow = False,
    analyst: Analyst = "",
    policy: PolicyPath = None,
    source: Source = None,
    json: Json = False,
) -> int:
    """Release all steps of a stream that are complete, once; print the series with its errors.

    The first call pays for the whole stream. With --json there is one object per line, one for each step and group.
    """
    from secant.cli import show
    from secant.display.progress import silent
    from secant.errors import UsageError
    from secant.streams.drawing import Buffer

    if follow and until is not None:
        raise UsageError("USE-001", "--follow goes on, and --until ends", hint="use one of them")
    if filter is not None and not 0 < filter < float("inf"):
        raise UsageError("USE-001", "--filter takes a number above 0", hint="nothing was released")
    if plot is not None:
        _check_writable(plot)
    shown, cache, path = 0, Buffer(), policy_file(policy)
    while True:
        with silent() if json else nullcontext():  # otherwise the release shows a bar by itself
            series, accounts, pause = _released(name, until, analyst, path, source, cache)
        if revised or isotonic or filter is not None:
            with show.working("weighing", quiet=json):
                series = series.afterwards(revised=revised, isotonic=isotonic, spread=filter)
        if plot is not None and series.rows:
            _draw(series, plot)
        if json:
            for step in series.steps[shown:]:
                show.print_json({"stream": series.name, **step.to_dict()})
        elif len(series.rows) > shown or not shown:
            _print(series, accounts, since=shown)
        shown = len(series.rows)
        if not follow or pause is None:
            return 0
        _wait(pause)


def _released(
    name: str, until: str | None, analyst: str, policy: str, source: str | None, cache: Buffer
) -> tuple[Series, Any, float | None]:
    """Release what is complete; say also how many seconds it takes until the next step is."""
    import secant

    # A source that is written to has to be opened again to see what is new.
    with secant.connect(source, policy=policy) as database:
        series = database.stream(name, until=until, analyst=analyst, kept=cache)
        return series, database.budget, series.seconds_to_next


def _print(series: Series, accounts: Any, since: int) -> None:
    from secant.cli import show
    from secant.display.parts import MOST_ROWS, table_parts

    rows = series.rows[since:]
    if not series.rows:
        show.say(f"No step of {series.name} is complete yet; nothing was spent.")
        return
    hidden = max(0, len(rows) - MOST_ROWS)
    if hidden:
        show.say(f"... {hidden:,} earlier rows; --json prints all")
    error = {
        side: values[since + hidden :] if isinstance(values, list) else values
        for side, values in series.error.items()
    }
    show.print_parts(table_parts(series.columns, rows[hidden:], error))
    show.say()
    show.print_guarantees(series.guarantee)
    show.print_budget(accounts)


def _draw(series: Series, file: str) -> None:
    from secant.errors import UsageError
    from secant.streams.picture import picture

    try:
        Path(file).write_text(picture(series), encoding="utf-8")
    except OSError as error:
        raise UsageError(
            "USE-001",
            f"cannot write {file}: {error.strerror}",
            hint="what was released is kept: ask again with another file",
        ) from None


def _check_writable(file: str) -> None:
    """Say before anything is spent that a picture could not be written."""
    from secant.errors import UsageError

    if not Path(file).parent.is_dir() or Path(file).is_dir():
        raise UsageError(
            "USE-001", f"cannot write {file}", hint="name a file in a folder that there is"
        )


def _wait(seconds: float) -> None:
    import sys
    import time

    sys.stdout.flush()
    time.sleep(max(1.0, min(seconds, 3600.0)))
