"""What `secant bench` does: published benchmark queries, beside the published numbers.

In: the name of a benchmark and its options. Out: a table, and the measurements as JSON in a file.
The data are generated, so true answers are shown; nothing of an owner's is ever read here, and no
ledger is touched.
"""

from __future__ import annotations

import json as notation
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from secant.cli import show
from secant.cli.commands.bench import ADDRESS, SPARK
from secant.errors import UsageError

Row = Mapping[str, Any]

_BELONGS = {
    "--profile": ("laud",),
    "--engine": ("laud",),
    "--policy": ("tpch",),
    "--epsilon": ("tpch", "joins", "everyday", "useful"),
    "--delta": ("tpch",),
    "--scale": ("laud", "tpch", "joins", "honesty"),
    "--repeat": ("laud", "tpch", "joins", "honesty", "everyday", "useful"),
}


@dataclass(frozen=True, slots=True)
class _Asked:
    """What all benchmarks need to know, checked."""

    scale: str
    place: Path
    queries: str
    repeat: int | None
    target: Path | None


def run(
    suite: str,
    profile: str | None,
    policy: str | None,
    scale: str | None,
    epsilon: str | None,
    delta: str | None,
    engine: str | None,
    queries: str,
    repeat: int | None,
    data: str | None,
    json: str | None,
) -> int:
    """Run published benchmark queries on generated data and compare with what was published."""
    from bench.suites.laud import database

    given = {
        "--profile": profile is not None,
        "--engine": engine is not None,
        "--policy": policy is not None,
        "--epsilon": epsilon is not None,
        "--delta": delta is not None,
        "--scale": scale is not None,
        "--repeat": repeat is not None,
    }
    for option, suites in _BELONGS.items():
        if given[option] and suite not in suites:
            raise UsageError(
                "USE-001",
                f"{option} is not an option of the benchmark {suite}",
                hint=f"it belongs to: {', '.join(suites)}",
            )
    if repeat is not None and repeat < 1:
        raise UsageError("USE-001", "--repeat must be at least 1")
    place = Path(data) if data else database.default_directory()
    asked = _Asked(database.scale_of(scale or "0.1"), place, queries, repeat, _writable(json))
    if suite == "laud":
        return _laud(asked, profile or "native", engine or "duckdb")
    if suite == "tpch":
        return _tpch(asked, policy, epsilon or "1", delta or "1e-8")
    if suite == "joins":
        return _joins(asked, epsilon or "1")
    if suite == "sampler":
        return _sampler(asked)
    if suite == "everyday":
        return _everyday(asked, epsilon or "1")
    if suite == "useful":
        return _useful(asked, epsilon or "1")
    return _honesty(asked)


def _laud(asked: _Asked, profile_name: str, engine: str) -> int:
    from bench.suites.laud import forms, measure, table

    profile, names = forms.profile_of(profile_name), forms.chosen_queries(asked.queries)
    with _making(asked.scale):
        source = _source(engine, asked.scale, asked.place)
    with _progress(len(names), f"laud {profile.name}") as advance:
        found = measure.measure(source, profile, names, repeat=asked.repeat or 3)
        rows = list(advance(found))
    _write(asked.target, rows)
    table.print_table(rows, profile.name, asked.scale)
    table.print_verdicts(rows, profile.name, asked.scale)
    return next((int(r["refused"]["status"]) for r in rows if "refused" in r), 0)


def _tpch(asked: _Asked, policy_file: str | None, epsilon: str, delta: str) -> int:
    """A refused query is a result here, not a failure."""
    from bench.suites.laud import database
    from bench.suites.tpch import measure, table, texts
    from secant.numeric.parameters import delta_of, epsilon_of

    names, policy = texts.chosen_queries(asked.queries), texts.policy_of(policy_file)
    spent, slack = epsilon_of(epsilon), delta_of(delta)
    with _making(asked.scale):
        source = f"parquet:{database.parquet_of(asked.scale, asked.place)}"
    with _progress(len(names), "tpch") as advance:
        found = measure.measure(
            source, policy, names, epsilon=spent, delta=slack, repeat=asked.repeat or 200
        )
        rows = list(advance(found))
    _write(asked.target, rows)
    table.print_table(rows)
    return 0


def _joins(asked: _Asked, epsilon: str) -> int:
    """A refusal of one analysis is a result here, not a failure."""
    from bench.suites.joins import cases, measure, table
    from bench.suites.laud import database
    from secant.numeric.parameters import epsilon_of

    names, spent = cases.chosen_cases(asked.queries), epsilon_of(epsilon)
    with _making(asked.scale):
        parquet = database.parquet_of(asked.scale, asked.place)
    with _progress(len(names), "joins") as advance:
        found = measure.measure(parquet, names, epsilon=spent, repeat=asked.repeat or 3)
        rows = list(advance(found))
    _write(asked.target, rows)
    table.print_table(rows)
    return 0


def _sampler(asked: _Asked) -> int:
    """Pictures go beside the data, the numbers into the table."""
    from bench.suites import sampler

    names = sampler.chosen_figures(asked.queries)
    folder = asked.place / "sampler"
    rows: list[Row] = []
    with _progress(len(names), "sampler") as advance:
        for some in advance(sampler.measure(names, folder)):
            rows += some
    _write(asked.target, rows)
    sampler.print_table(rows)
    show.say(f"pictures: {folder}")
    return 0


def _honesty(asked: _Asked) -> int:
    """Ends that do not hold are a failure; a refused question is not."""
    from contextlib import ExitStack

    from bench.suites.honesty import measure, sets, table

    rows: list[Row] = []
    with ExitStack() as stack:
        for name in sets.chosen_sets(asked.queries):
            with show.working(f"making data: {name}"):
                data = sets.make_set(name, asked.scale, asked.place, stack)
            with _progress(len(data.questions), f"honesty {name}") as advance:
                rows += advance(measure.measure(data, asked.repeat or 200))
    _write(asked.target, rows)
    table.print_table(rows)
    return int(any(row["status"] == "broken" for row in rows))


def _everyday(asked: _Asked, epsilon: str) -> int:
    """A refusal is a result here, not a failure."""
    from bench.suites.everyday import measure, sets, table
    from secant.numeric.parameters import epsilon_of

    names = sets.chosen_sets(asked.queries)
    with _progress(len(names) * len(sets.QUESTIONS), "everyday") as advance:
        rows = list(advance(measure.measure(names, (epsilon_of(epsilon),), asked.repeat or 20)))
    _write(asked.target, rows)
    table.print_table(rows)
    return 0


def _useful(asked: _Asked, epsilon: str) -> int:
    """What is of no use, is refused or wrong is a result here, not a failure."""
    from tempfile import TemporaryDirectory

    from bench.suites.useful import measure, sets, table
    from secant.numeric.parameters import epsilon_of

    spent, rows = epsilon_of(epsilon), list[Row]()
    for name in sets.chosen_sets(asked.queries):
        with TemporaryDirectory(prefix="secant-useful-") as folder:
            with show.working(f"making data: {name}"):
                data = sets.make(name, Path(folder), asked.place)
            with _progress(len(sets.WAYS) * len(data.questions), f"useful {name}") as advance:
                rows += advance(measure.measure(data, sets.WAYS, asked.repeat or 3, spent))
    _write(asked.target, rows)
    table.print_table(rows)
    return 0


@contextmanager
def _making(scale: str) -> Iterator[None]:
    with show.working(f"making TPC-H data of scale {scale}"):
        yield


def _source(engine: str, scale: str, place: Path) -> str:
    import os

    from bench.suites.laud import database

    if engine == "duckdb":
        return f"duckdb:{database.duckdb_file(scale, place)}"
    variable, meant = {
        "postgres": (ADDRESS, "an empty database: postgresql://..."),
        "spark": (SPARK, "a Spark Connect server: sc://HOST:PORT"),
    }[engine]
    address = os.environ.get(variable)
    if not address:
        raise UsageError(
            "USE-001", f"{variable} is not set", hint=f"give it the address of {meant}"
        )
    if engine == "spark":
        return f"spark:{address}?parquet={database.parquet_folder(scale, place).resolve()}"
    return database.postgres_address(scale, place, address)


def _writable(file: str | None) -> Path | None:
    """Refuse a place that cannot be written before minutes are spent on measuring."""
    if file is None:
        return None
    target = Path(file)
    if target.is_dir() or not target.absolute().parent.is_dir():
        raise UsageError("USE-001", f"cannot write {file}", hint="name a file in a directory")
    return target


def _write(target: Path | None, rows: Sequence[Row]) -> None:
    if target is None:
        return
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
