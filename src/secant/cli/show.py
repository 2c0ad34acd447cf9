"""What a person sees: answers with their error, guarantees in words, budgets as bars.

In: public results of the engine. Out: text on standard output. On a terminal there is color and a
spinner; in a pipe there is plain text and nothing moves. Values are printed as text, never as
markup.
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

from secant.cli.numbers import (
    ends_text,
    error_text,
    plain,
    remaining_text,
    spent_text,
    value_text,
)
from secant.cli.output import writing

if TYPE_CHECKING:
    from secant.cli.curve import Curve
    from secant.engine import Account
    from secant.release.cautions import Caution

MOST_ROWS = 200
"""More rows than this scroll out of sight; --json gives them all."""
PIPE_WIDTH = 10_000  # in a pipe nobody wraps lines but us, so nothing is wrapped
BAR_WIDTH = 20
HIDDEN = "WRN-002"


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


def print_answer(
    columns: Sequence[str],
    rows: Sequence[Sequence[object]],
    error: Mapping[str, Any],
    *,
    beside: tuple[str, Sequence[Sequence[object]]] | None = None,
) -> None:
    """Print an answer as a table, each noisy number with its error beside it.

    Args:
        columns: Names of the columns.
        rows: The released values.
        error: The error of an `Answer`: ends and noise in the shape of `rows`, None where a value is exact.
        beside: A title and rows of the same shape to show next to the released ones.
    """
    table = Table(box=SIMPLE_HEAD, show_edge=False, pad_edge=False)
    noisy = _noisy_columns(error)
    for place, name in enumerate(columns):
        numeric = any(isinstance(row[place], (int, float)) for row in rows) or place in noisy
        side = "right" if numeric else "left"
        table.add_column(Text(value_text(name)), justify=side)  # type: ignore[arg-type]
        if place in noisy:
            title = f"± ({_percent(error['level'])})"
            table.add_column(Text(title), justify="right", style="dim")
        if place in noisy and beside:
            table.add_column(Text(beside[0]), justify="right", style="dim")
    for number, row in enumerate(rows[:MOST_ROWS]):
        cells: list[Text] = []
        for place, value in enumerate(row):
            noise = error["noise"][number][place] if place in noisy and error["noise"] else None
            cells.append(Text(value_text(value, noise)))
            if place in noisy:
                cells.append(Text(_error_of(error, number, place, value)))
            if place in noisy and beside:
                cells.append(Text(_beside_text(beside[1], number, place, noise)))
        table.add_row(*cells)
    show(table)
    if len(rows) > MOST_ROWS:
        say(f"... and {len(rows) - MOST_ROWS:,} more rows; --json prints all")


def _error_of(error: Mapping[str, Any], number: int, place: int, value: object) -> str:
    """Say how far a number may be off: in ranks, for an order statistic; how far that is in value, the data decide."""
    ranks = (error.get("ranks") or {number: {place: None}})[number][place]
    if ranks is not None:
        return "exact" if ranks == 0 else f"±{math.ceil(ranks):,} ranks"
    low, high = error["low"][number][place], error["high"][number][place]
    return ends_text(value, low, high, error["noise"][number][place])


def _beside_text(rows: Sequence[Sequence[object]], number: int, place: int, error: object) -> str:
    return value_text(rows[number][place], error) if number < len(rows) else ""


def _noisy_columns(error: Mapping[str, Any]) -> frozenset[int]:
    """Give the columns in which some value has noise."""
    return frozenset(
        place for place, noisy in enumerate(error.get("noisy") or ()) if noisy
    ) | frozenset(
        place
        for table in (error["noise"], error.get("ranks"))
        for row in table or ()
        for place, noise in enumerate(row)
        if noise is not None and noise != 0
    )


def print_left_out(error: Mapping[str, Any]) -> None:
    """Say what limits may have cut off: it is in no number, and in an error only where that has an end."""
    left = error.get("leaves_out") or {}
    for part in left.get("measures", ()):
        limit, measure = value_text(part["limit"]), part["measure"]
        if part["units_cut_at_most"] is None:
            say(f"Declared limit: no unit adds more than {limit} to the {measure}.")
        else:
            say(
                f"Limit chosen privately: at most {part['units_cut_at_most']:,} units add more than {limit} to the "
                f"{measure} ({_percent(part['level'])} sure) and are cut down to it."
            )
    if left.get("groups") is not None:
        say(f"Declared limit: a unit counts in no more than {left['groups']:,} groups.")
    for part in left.get("ranges", ()):
        low, high = value_text(part["low"]), value_text(part["high"])
        say(
            f"Declared range: values outside of {low} to {high} count as its ends in the {part['measure']}."
        )
    if left.get("rows_without_unit"):
        say("Rows that belong to no unit do not count here.")


def warn(caution: Caution) -> None:
    """Say on standard error what should be known before anything is spent."""
    sys.stderr.write(f"{caution}\n")
    sys.stderr.flush()


def print_hidden(cautions: Sequence[Caution]) -> None:
    """Say beside an answer which rows it does not show, whatever it shows."""
    for caution in cautions:
        if caution.code == HIDDEN:
            say(f"{caution.message[:1].upper()}{caution.message[1:]}.")


def _percent(level: object) -> str:
    return f"{float(str(level)) * 100:g} %"


def print_guarantees(guarantees: Sequence[Mapping[str, object]]) -> None:
    """Say in words what an answer promises, and to whom."""
    paid = [g for g in guarantees if g.get("epsilon") or g.get("delta")]
    if not paid:
        say("Guarantee: this question touches nothing protected; it is answered exactly.")
        return
    for guarantee in paid:
        epsilon, delta = float(str(guarantee["epsilon"])), float(str(guarantee["delta"]))
        say(f"Guarantee: {guarantee['protects']}", style="bold")
        strength = f"  ε = {spent_text(epsilon)}, δ = {spent_text(delta)}"
        say(f"{strength} (protection {guarantee['protection']})")
        say(f"  {_in_words(epsilon, delta)}")
        uncovered = guarantee.get("not_covered")
        if isinstance(uncovered, (list, tuple)) and uncovered:
            names = ", ".join(str(name) for name in uncovered)
            say(f"  NOT covered by this release: {names}", style="yellow")


def _in_words(epsilon: float, delta: float) -> str:
    factor = math.exp(min(epsilon, 700.0))
    times = f"{math.ceil(factor * 100) / 100:,.2f}" if factor < 1e6 else f"{factor:.2e}"
    sentence = f"Either way, no outcome is more than {times} times as likely"
    if delta:
        sentence += f", plus a probability of {spent_text(delta)}"
    return sentence + "."


def print_budget(accounts: Mapping[str, Account]) -> None:
    """Show what is left of every protection's budget."""
    for name, account in accounts.items():
        share = float(account.spent_epsilon / account.epsilon) if account.epsilon else 1.0
        line = (
            f"Budget    {_bar(share)} {name}: ε {spent_text(account.spent_epsilon)} of "
            f"{remaining_text(account.epsilon)} spent, "
            f"{remaining_text(account.remaining_epsilon)} left"
        )
        if account.delta:
            line += (
                f"; δ {spent_text(account.spent_delta)} of {remaining_text(account.delta)} spent"
            )
        if account.gamma or account.spent_gamma:
            line += (
                f"; γ {spent_text(account.spent_gamma)} of {remaining_text(account.gamma)} spent "
                "(random differential privacy)"
            )
        say(line)


def _bar(share: float) -> str:
    full = min(BAR_WIDTH, math.ceil(share * BAR_WIDTH))
    if screen().is_terminal:
        return "█" * full + "░" * (BAR_WIDTH - full)
    return "[" + "#" * full + "." * (BAR_WIDTH - full) + "]"


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
        say(f"‖errors‖₂/‖answers‖₂ at {_percent(level)}: {_share_text(share)}")


def print_curves(curves: Sequence[Curve], level: object) -> None:
    """Print error against ε, with a bar on a logarithmic scale beside each relative error."""
    from secant.cli.curve import bar

    if not curves:
        say("No column is noisy: the answer is exact at every epsilon.")
        return
    for curve in curves:
        table = Table(box=SIMPLE_HEAD, show_edge=False, pad_edge=False)
        for title in ("epsilon", f"± ({_percent(level)})", "relative"):
            table.add_column(Text(title), justify="right")
        table.add_column(Text("(logarithmic)"))
        beside = curve.relative if any(curve.relative) else curve.errors
        for place, epsilon in enumerate(curve.epsilons):
            share = curve.relative[place]
            table.add_row(
                Text(f"{epsilon:g}"),
                # An error of 0 is a quantile of the noise here, not an exact answer.
                Text("±0" if curve.errors[place] == 0 else error_text(curve.errors[place])),
                Text("?" if share is None else _share_text(share)),
                Text(bar(beside[place], beside)),
            )
        say(value_text(curve.column), style="bold")
        show(table)


def _share_text(share: float) -> str:
    return f"{share * 100:.3g} %"
