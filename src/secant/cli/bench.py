"""`secant bench`: what Secant makes of published benchmark queries, beside the published numbers.

In: the name of a benchmark, a profile, a scale. Out: a table, and the measurements as JSON in a
file. The data are generated, so true answers are shown; nothing of an owner's is ever read here.
"""

from __future__ import annotations

import json as notation
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, Literal

from cyclopts import Parameter

from secant.errors import UsageError

ADDRESS = "SECANT_BENCH_POSTGRES"
Row = Mapping[str, Any]

Suite = Annotated[Literal["laud"], Parameter(help="laud: 17 queries on TPC-H with moving values.")]
ProfileName = Annotated[
    str,
    Parameter(
        name="--profile",
        help="`paper` or `paper-l1`: the authors' settings; `native`: real dates, our defaults.",
        metavar="NAME",
    ),
]
Scale = Annotated[
    str,
    Parameter(name="--scale", help="TPC-H scale factor.", metavar="S", allow_leading_hyphen=True),
]
Engine = Annotated[
    Literal["duckdb", "postgres"],
    Parameter(name="--engine", help=f"For postgres, {ADDRESS} holds an empty database's address."),
]
Queries = Annotated[
    str, Parameter(name="--queries", help="Only these, such as b1_1,b6.", metavar="LIST")
]
Repeat = Annotated[int, Parameter(name="--repeat", help="Best times of so many runs.", metavar="N")]
Data = Annotated[
    str | None,
    Parameter(name="--data", help="Where generated data are kept.", metavar="DIR"),
]
JsonFile = Annotated[
    str | None, Parameter(name="--json", help="Write the measurements here.", metavar="FILE")
]


def bench(
    suite: Suite,
    /,
    *,
    profile: ProfileName = "native",
    scale: Scale = "0.1",
    engine: Engine = "duckdb",
    queries: Queries = "",
    repeat: Repeat = 3,
    data: Data = None,
    json: JsonFile = None,
) -> int:
    """Run published benchmark queries on generated data and compare with what was published."""
    from secant.cli import show
    from secant.cli.laud import database, forms, measure

    asked, names = forms.profile_of(profile), forms.chosen_queries(queries)
    factor = database.scale_of(scale)
    if repeat < 1:
        raise UsageError("USE-001", "--repeat must be at least 1")
    target = _writable(json)
    place = Path(data) if data else database.default_directory()
    with show.working(f"making TPC-H data of scale {factor}"):
        source = _source(engine, factor, place)
    with _progress(len(names), f"{suite} {asked.name}") as advance:
        rows = list(advance(measure.measure(source, asked, names, repeat=repeat)))
    if target is not None:
        _write(target, rows)
    _table(rows, asked.name)
    _verdicts(rows, asked.name, factor)
    return next((int(r["refused"]["status"]) for r in rows if "refused" in r), 0)


def _source(engine: str, scale: str, place: Path) -> str:
    import os

    from secant.cli.laud import database

    if engine == "duckdb":
        return f"duckdb:{database.duckdb_file(scale, place)}"
    address = os.environ.get(ADDRESS)
    if not address:
        raise UsageError(
            "USE-001",
            f"{ADDRESS} is not set",
            hint="give it the address of an empty database: postgresql://...",
        )
    return database.postgres_address(scale, place, address)


def _writable(file: str | None) -> Path | None:
    """Refuse a place that cannot be written before minutes are spent on measuring."""
    if file is None:
        return None
    target = Path(file)
    if target.is_dir() or not target.absolute().parent.is_dir():
        raise UsageError("USE-001", f"cannot write {file}", hint="name a file in a directory")
    return target


def _write(target: Path, rows: Sequence[Row]) -> None:
    try:
        target.write_text(notation.dumps({"queries": rows}, indent=2) + "\n", encoding="utf-8")
    except OSError as error:
        raise UsageError("USE-001", f"cannot write {target}: {error.strerror}") from None


@contextmanager
def _progress(total: int, what: str) -> Iterator[Any]:
    """Give a function that passes an iterable on and, on a terminal, shows how far it is."""
    import sys

    from rich.console import Console
    from rich.progress import Progress

    def pass_on(items: Iterable[Row]) -> Iterable[Row]:
        return items

    if not sys.stderr.isatty():
        yield pass_on
        return
    with Progress(console=Console(stderr=True), transient=True) as bar:
        yield lambda items: bar.track(items, total=total, description=what)


def _table(rows: Sequence[Row], profile: str) -> None:
    from rich.box import SIMPLE_HEAD
    from rich.table import Table
    from rich.text import Text

    from secant.cli import show
    from secant.cli.laud.compare import expected

    known = expected()
    table = Table(box=SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 1, 0, 0))
    table.add_column("query")
    for title in _TITLES["native" if profile == "native" else "paper"]:
        style = "dim" if title in ("print", "authors") else ""
        table.add_column(title, justify="right", style=style, no_wrap=True)
    for row in rows:
        cells = _cells(row, known[row["query"]], profile)
        table.add_row(*(Text(cell) for cell in (row["query"], *cells)))
    show.show(table)
    for row in rows:
        if "refused" in row:
            show.say(f"{row['query']}: {row['refused']['code']} {row['refused']['message']}")


_TIMES = ("compile\nms", "plain\nms", "release\nms", "ratio")
_TITLES = {
    "native": ("exact", "softened", "sens.", "error95", "authors", *_TIMES),
    "paper": ("exact", "softened", "print", "sens.", "print", "error95", *_TIMES),
}


def _cells(row: Row, known: Mapping[str, Any], profile: str) -> tuple[str, ...]:
    if "refused" in row:
        return ("refused",)
    seconds = row["seconds"]
    times = (
        *(f"{1000 * seconds[name]:.1f}" for name in ("compile", "plain", "release")),
        f"{seconds['release'] / seconds['plain']:.2f}",
    )
    exact, softened, sensitivity = (
        _short(row[name]) for name in ("exact", "softened", "sensitivity")
    )
    error = _share(row["relative_error95"])
    if profile == "native":
        return (exact, softened, sensitivity, error, _share(known["error"] / 100), *times)
    printed_softened, printed_sensitivity = known[profile]
    return (exact, softened, printed_softened, sensitivity, printed_sensitivity, error, *times)


def _short(value: float | None) -> str:
    """Print a number as the paper does: 3.55M, 0.0006."""
    if value is None:
        return "?"
    for unit, letter in ((1e9, "G"), (1e6, "M"), (1e3, "K")):
        if abs(value) >= unit:
            return f"{value / unit:.2f}{letter}"
    return f"{value:.2f}" if abs(value) >= 1 else f"{value:.2g}"


def _share(value: float | None) -> str:
    return "?" if value is None else f"{100 * value:.3g}%"


def _verdicts(rows: Sequence[Row], profile: str, scale: str) -> None:
    from secant.cli.laud.compare import PRINTED_SCALE, accuracy, missed, speed
    from secant.cli.show import say

    say()
    pace = speed(rows)
    if pace is not None:
        say(
            f"release / plain: geometric mean {pace.mean:.2f}, worst {pace.worst:.2f}; "
            f"slowest to compile: {1000 * pace.slowest_compile:.1f} ms"
        )
    if scale != PRINTED_SCALE:
        say(f"The numbers beside ours are of scale {PRINTED_SCALE}, not of {scale}.")
        return
    if profile == "native":
        found = accuracy(rows)
        if found is not None:
            say(f"error at 95 % / authors' at 78 %: geometric mean {found.mean:.3f}")
            say(f"not below the authors': {', '.join(found.worse) or 'none'}")
        return
    say(f"not as printed: {', '.join(missed(rows, profile)) or 'none'}")
