"""What a person sees: answers with their error, guarantees in words, budgets as bars.

In: public results of the engine. Out: text on standard output. On a terminal there is color and a
spinner; in a pipe there is plain text and nothing moves. Values are printed as text, never as
markup.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

from secant.cli.output import writing
from secant.display.numbers import error_text, plain, value_text
from secant.display.parts import (
    PIPE_WIDTH,
    Part,
    answer_parts,
    budget_lines,
    guarantee_parts,
    percent,
)

if TYPE_CHECKING:
    from secant.accuracy.warnings import Caution
    from secant.cli.curve import Curve
    from secant.engine import Account, Answer


class _Screen(Console):
    def on_broken_pipe(self) -> None:
        raise BrokenPipeError  # the program decides what a reader that went away means


def screen() -> Console:
    """Give standard output, as it is at this moment."""
    wide = None if sys.stdout.isatty() else PIPE_WIDTH
    return _Screen(file=sys.stdout, markup=False, highlight=False, emoji=False, width=wide)


def show(thing: Table | Text) -> None:
    """Print a table or a text."""
    with writing():
        screen().print(thing, soft_wrap=isinstance(thing, Text))


def say(line: str = "", style: str = "") -> None:
    """Print one line."""
    show(Text(line, style=style))


def print_json(value: object) -> None:
    """Print one JSON object on one line."""
    with writing():
        sys.stdout.write(json.dumps(plain(value), ensure_ascii=False) + "\n")


@contextmanager
def working(what: str, *, quiet: bool = False) -> Iterator[None]:
    """Show that something is going on, on a terminal only."""
    if quiet or not sys.stderr.isatty():
        yield
        return
    with Console(stderr=True).status(Text(what)):
        yield


def print_parts(parts: Iterable[Part]) -> None:
    """Print parts of an answer below each other."""
    for part in parts:
        show(part)


def bars() -> tuple[str, str]:
    """Give the letters of a budget's bar: blocks on a terminal, plain ones in a pipe."""
    return ("█", "░") if screen().is_terminal else ("#", ".")


def print_answer(answer: Answer) -> None:
    """Print a whole answer: the table, what limits cut, the guarantee, the budget."""
    print_parts(answer_parts(answer, bars=bars()))


def print_guarantees(guarantees: Sequence[Mapping[str, object]]) -> None:
    """Say in words what an answer promises, and to whom."""
    print_parts(guarantee_parts(guarantees))


def print_budget(accounts: Mapping[str, Account]) -> None:
    """Show what is left of every protection's budget."""
    for line in budget_lines(accounts, bars=bars()):
        say(line)


def warn(caution: Caution) -> None:
    """Say on standard error what should be known before anything is spent."""
    sys.stderr.write(f"{caution}\n")
    sys.stderr.flush()


def print_facts(facts: Mapping[str, object]) -> None:
    """Print named values below each other."""
    table = Table(box=None, show_header=False, pad_edge=False)
    for name, value in facts.items():
        table.add_row(Text(name), Text(_facts_text(value)))
    show(table)


def _facts_text(value: object) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {value_text(entry)}" for key, entry in value.items())
    if isinstance(value, (list, tuple)):
        return ", ".join(value_text(entry) for entry in value)
    return value_text(value)


def print_records(records: Sequence[Mapping[str, str]], *, empty: str) -> None:
    """Print records as a table with the names of their fields on top."""
    if not records:
        say(empty)
        return
    table = Table(box=SIMPLE_HEAD, show_edge=False, pad_edge=False)
    for name in records[0]:
        table.add_column(Text(name))
    for record in records:
        table.add_row(*(Text(value_text(value)) for value in record.values()))
    show(table)


def print_relative(share: float | None, level: object) -> None:
    """Say how large the errors of a column are beside its true answers, as lengths of vectors."""
    if share is not None:
        say(f"‖errors‖₂/‖answers‖₂ at {percent(level)}: {_share_text(share)}")


def print_curves(curves: Sequence[Curve], level: object) -> None:
    """Print error against ε, with a bar on a logarithmic scale beside each relative error."""
    from secant.cli.curve import bar

    if not curves:
        say("No column is noisy: the answer is exact at every epsilon.")
        return
    for curve in curves:
        table = Table(box=SIMPLE_HEAD, show_edge=False, pad_edge=False)
        for title in ("epsilon", f"± ({percent(level)})", "relative"):
            table.add_column(Text(title), justify="right")
        table.add_column(Text("(logarithmic)"))
        beside = curve.relative if any(curve.relative) else curve.errors
        for index, epsilon in enumerate(curve.epsilons):
            share = curve.relative[index]
            table.add_row(
                Text(f"{epsilon:g}"),
                # An error of 0 is a quantile of the noise here, not an exact answer.
                Text("±0" if curve.errors[index] == 0 else error_text(curve.errors[index])),
                Text("?" if share is None else _share_text(share)),
                Text(bar(beside[index], beside) + _smaller(epsilon, curve.asked[index])),
            )
        say(value_text(curve.column), style="bold")
        show(table)


def _smaller(epsilon: float, requested: float) -> str:
    return "" if requested == epsilon else f" (asked with {requested:g})"


def _share_text(share: float) -> str:
    return f"{share * 100:.3g} %"
