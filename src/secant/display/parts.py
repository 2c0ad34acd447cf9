"""An answer as a person reads it: a table with errors, what limits cut, the guarantee in words, budgets as bars.

In: public results. Out: parts that rich prints, or one text. The command line, `print(answer)` and the service show the
same parts. Values are printed as text, never as markup. Never here: data, files, a terminal.
"""

from __future__ import annotations

import io
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Protocol

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

from secant.display.numbers import ends_text, remaining_text, spent_text, value_text
from secant.plural import several

MOST_ROWS = 200
"""More rows than this scroll out of sight; --json and `rows` give them all."""
PIPE_WIDTH = 10_000  # where nobody wraps lines but us, nothing is wrapped
BAR_WIDTH = 20
HIDDEN = "WRN-002"

Part = Table | Text


class Released(Protocol):
    """What is shown of an answer."""

    @property
    def columns(self) -> Sequence[str]: ...  # noqa: D102
    @property
    def rows(self) -> Sequence[Sequence[object]]: ...  # noqa: D102
    @property
    def error(self) -> Mapping[str, Any]: ...  # noqa: D102
    @property
    def guarantee(self) -> Sequence[Mapping[str, object]]: ...  # noqa: D102
    @property
    def budget(self) -> Mapping[str, Any]: ...  # noqa: D102
    @property
    def release_id(self) -> str | None: ...  # noqa: D102
    @property
    def warnings(self) -> Sequence[Any]: ...  # noqa: D102


def as_text(parts: Iterable[Part]) -> str:
    """Give parts as plain text, without color and without wrapping."""
    file = io.StringIO()
    console = Console(file=file, markup=False, highlight=False, emoji=False, width=PIPE_WIDTH)
    for part in parts:
        console.print(part, soft_wrap=isinstance(part, Text))
    return "\n".join(line.rstrip() for line in file.getvalue().splitlines())


def answer_parts(answer: Released, *, bars: tuple[str, str] = ("#", ".")) -> Iterator[Part]:
    """Give all parts of an answer in the order in which they are read."""
    yield from table_parts(answer.columns, answer.rows, answer.error)
    yield from map(Text, undefined_lines(answer.error))
    yield from map(Text, left_out_lines(answer.error))
    yield from map(Text, hidden_lines(answer.warnings))
    yield Text()
    yield from guarantee_parts(answer.guarantee)
    yield from map(Text, budget_lines(answer.budget, bars=bars))
    yield Text(f"Release   {answer.release_id}")


def table_parts(
    columns: Sequence[str],
    rows: Sequence[Sequence[object]],
    error: Mapping[str, Any],
    *,
    beside: tuple[str, Sequence[Sequence[object]]] | None = None,
) -> Iterator[Part]:
    """Give an answer as a table, each noisy number with its error beside it.

    Args:
        columns: Names of the columns.
        rows: The released values.
        error: The error of an `Answer`: ends and noise in the shape of `rows`, None where a value is exact.
        beside: A title and rows of the same shape to show next to the released ones.
    """
    table = Table(box=SIMPLE_HEAD, show_edge=False, pad_edge=False)
    noisy = noisy_columns(error)
    for index, name in enumerate(columns):
        numeric = any(isinstance(row[index], (int, float)) for row in rows) or index in noisy
        side = "right" if numeric else "left"
        table.add_column(Text(value_text(name)), justify=side)  # type: ignore[arg-type]
        if index in noisy:
            title = f"± ({percent(error['level'])})"
            table.add_column(Text(title), justify="right", style="dim")
        if index in noisy and beside:
            table.add_column(Text(beside[0]), justify="right", style="dim")
    for number, row in enumerate(rows[:MOST_ROWS]):
        cells: list[Text] = []
        for index, value in enumerate(row):
            noise = error["noise"][number][index] if index in noisy and error["noise"] else None
            cells.append(Text(value_text(value, noise)))
            if index in noisy:
                cells.append(Text(cell_error(error, number, index, value)))
            if index in noisy and beside:
                cells.append(Text(_beside_text(beside[1], number, index, noise)))
        table.add_row(*cells)
    yield table
    if len(rows) > MOST_ROWS:
        yield Text(f"... and {len(rows) - MOST_ROWS:,} more rows; --json prints all")


def cell_error(error: Mapping[str, Any], number: int, index: int, value: object) -> str:
    """Say how far a number may be off: in ranks, for an order statistic of which no ends in values were drawn."""
    ranks = (error.get("ranks") or {number: {index: None}})[number][index]
    if ranks is not None and not _drawn_ends(error, number, index):
        what = (
            "rows" if isinstance(value, bool) else "ranks"
        )  # of a truth value, rows that speak against it
        return "exact" if ranks == 0 else f"±{math.ceil(ranks):,} {what}"
    low, high = error["low"][number][index], error["high"][number][index]
    usual = error.get("kind") == "usual"
    return ends_text(value, low, high, None if usual else error["noise"][number][index])


def _drawn_ends(error: Mapping[str, Any], number: int, index: int) -> bool:
    """Whether a number has ends that hold usually, and not only those that hold for every database."""
    certain = error.get("certain") or error
    return any(
        error[side][number][index] != certain[side][number][index] for side in ("low", "high")
    )


def _beside_text(rows: Sequence[Sequence[object]], number: int, index: int, error: object) -> str:
    return value_text(rows[number][index], error) if number < len(rows) else ""


def noisy_columns(error: Mapping[str, Any]) -> frozenset[int]:
    """Give the columns in which some value has noise."""
    return frozenset(
        index for index, noisy in enumerate(error.get("noisy") or ()) if noisy
    ) | frozenset(
        index
        for table in (error.get("noise"), error.get("ranks"))
        for row in table or ()
        for index, noise in enumerate(row)
        if noise is not None and noise != 0
    )


def undefined_lines(error: Mapping[str, Any]) -> Iterator[str]:
    """Say why a number is missing."""
    for name in error.get("undefined") or ():
        yield (
            f"{value_text(name)} is NULL where its divisor came out as 0: too few rows are there for a quotient. "
            "Ask for the numbers above and below it to see them."
        )


def _add(units: int) -> str:
    return "1 unit adds" if units == 1 else f"{units:,} units add"


def _are(units: int) -> str:
    return "is" if units == 1 else "are"


def left_out_lines(error: Mapping[str, Any]) -> Iterator[str]:
    """Say what limits may have cut off: it is in no number, and in an error only where that has an end."""
    unseen = error.get("not_seen")
    if unseen:
        yield (
            f"± is the usual error: what limits cut is estimated. It does not see fewer than {unseen['people']:,} "
            f"people who each add far more than {value_text(unseen['beyond'])}."
        )
    yield from (f"{line[0].upper()}{line[1:]}." for line in error.get("stays_open", ()))
    left = error.get("leaves_out") or {}
    chosen = {(part["low"], part["high"]) for part in left.get("found", ())}
    yield from (part["told"] for part in left.get("found", ()))
    for part in left.get("measures", ()):
        limit, measure = value_text(part["limit"]), part["measure"]
        if part["units_cut_at_most"] is None and (None, part["limit"]) in chosen:
            continue
        if part.get("assigned"):
            yield f"Limit chosen privately: of the {measure}, no more than {limit} count for any one unit."
        elif part["units_cut_at_most"] is None:
            if left.get("undeclared"):
                yield f"Using the limit found above, a unit adds at most {limit} to the {measure}."
            else:
                yield f"Declared limit: a unit adds at most {limit} to the {measure}."
        else:
            yield (
                f"Limit chosen privately: at most {_add(part['units_cut_at_most'])} more than {limit} to the "
                f"{measure} ({percent(part['level'])} sure) and {_are(part['units_cut_at_most'])} cut down to it."
            )
    if left.get("groups") is not None:
        yield f"Declared limit: a unit counts in no more than {several(left['groups'], 'group')}."
    for part in left.get("ranges", ()):
        if (part["low"], part["high"]) in chosen:
            continue
        if part["low"] is None:
            yield f"Declared values: rows with any other do not count in the {part['measure']}."
            continue
        low, high = value_text(part["low"]), value_text(part["high"])
        says = "Range" if left.get("undeclared") else "Declared range"
        yield f"{says}: values outside {low} to {high} count as its ends in the {part['measure']}."
    for part in left.get("moves", ()):
        yield (
            f"Declared sensitivity: one row moves the {part['measure']} by at most {value_text(part['moves'])}; "
            "where it would move it farther, the error is counted from the number that keeps to that."
        )
    for name in left.get("personal", ()):
        yield (
            f"Personal epsilons ({name}): averages and ranks weigh people by the epsilon that they give, counts and "
            "sums do not; those who give less than the least offer do not count."
        )
    if left.get("totals") == "agree":
        yield "Totals and parts were made to agree: every row is taken to have one of the keys that are shown."
    if left.get("totals") == "apart":
        yield (
            "Totals and parts are left as they were drawn: they differ by more than noise, so that some rows have none "
            "of the declared keys."
        )
    if left.get("rows_without_unit"):
        yield "Rows that belong to no unit do not count here."


MOST_CUTS = 3
"""Declared facts that a short line names; a longer one says that there are more."""


def declared_cuts(error: Mapping[str, Any]) -> str:
    """Say in a few words which declared ranges and limits may have cut an answer: what they cut is in no error."""
    left = error.get("leaves_out") or {}
    found = {(part["low"], part["high"]) for part in left.get("found", ())}
    cuts = [
        f"values outside {value_text(r['low'])} to {value_text(r['high'])}"
        for r in left.get("ranges", ())
        if r["low"] is not None and (r["low"], r["high"]) not in found
    ]
    cuts += [
        f"more than {value_text(m['limit'])} of one unit"
        for m in left.get("measures", ())
        if m["units_cut_at_most"] is None and (None, m["limit"]) not in found
    ]
    cuts = list(dict.fromkeys(cuts))
    more = ", …" if len(cuts) > MOST_CUTS else ""
    return (
        f"not in it is what declared facts cut: {', '.join(cuts[:MOST_CUTS])}{more}" if cuts else ""
    )


def hidden_lines(warnings_of: Sequence[Any]) -> Iterator[str]:
    """Say beside an answer which rows it does not show, whatever it shows."""
    for caution in warnings_of:
        if caution.code == HIDDEN:
            yield f"{caution.message[:1].upper()}{caution.message[1:]}."


def percent(level: object) -> str:
    """Print a level as a percentage."""
    return f"{float(str(level)) * 100:g} %"


def guarantee_parts(guarantees: Sequence[Mapping[str, object]]) -> Iterator[Part]:
    """Say in words what an answer promises, and to whom."""
    paid = [g for g in guarantees if g.get("epsilon") or g.get("delta")]
    if not paid:
        yield Text("Guarantee: this question touches nothing protected; it is answered exactly.")
        return
    for guarantee in paid:
        first, *others = guarantee_lines(guarantee)
        yield Text(f"Guarantee: {first}", style="bold")
        yield from (Text(f"  {line}") for line in others)
        uncovered = guarantee.get("not_covered")
        if isinstance(uncovered, (list, tuple)) and uncovered:
            names = ", ".join(str(name) for name in uncovered)
            yield Text(f"  NOT covered by this release: {names}", style="yellow")


def guarantee_lines(guarantee: Mapping[str, object]) -> tuple[str, str, str]:
    """Say what is hidden, how strongly, and what that means."""
    epsilon, delta = float(str(guarantee["epsilon"])), float(str(guarantee["delta"]))
    strength = f"ε = {spent_text(epsilon)}, δ = {spent_text(delta)}"
    return (
        str(guarantee["protects"]),
        f"{strength} (protection {guarantee['protection']})",
        _loss_text(epsilon, delta),
    )


def _loss_text(epsilon: float, delta: float) -> str:
    factor = math.exp(min(epsilon, 700.0))
    times = f"{math.ceil(factor * 100) / 100:,.2f}" if factor < 1e6 else f"{factor:.2e}"
    sentence = f"Either way, no outcome is more than {times} times as likely"
    if delta:
        sentence += f", plus a probability of {spent_text(delta)}"
    return sentence + "."


def budget_lines(
    accounts: Mapping[str, Any], *, bars: tuple[str, str] = ("#", ".")
) -> Iterator[str]:
    """Show what is left of every protection's budget; `bars` are the letters for spent and left."""
    for name, account in accounts.items():
        yield f"Budget    {_bar(share_spent(account), bars)} {name}: {account_text(account)}"


def share_spent(account: Any) -> float:
    """Give the part of a budget that is spent."""
    return float(account.spent_epsilon / account.epsilon) if account.epsilon else 1.0


def account_text(account: Any) -> str:
    """Say what of one budget is spent and left."""
    line = (
        f"ε {spent_text(account.spent_epsilon)} of {remaining_text(account.epsilon)} spent, "
        f"{remaining_text(account.remaining_epsilon)} left"
    )
    if account.delta:
        line += f"; δ {spent_text(account.spent_delta)} of {remaining_text(account.delta)} spent"
    if account.gamma or account.spent_gamma:
        line += (
            f"; γ {spent_text(account.spent_gamma)} of {remaining_text(account.gamma)} spent "
            "(random differential privacy)"
        )
    return line


def _bar(share: float, bars: tuple[str, str]) -> str:
    full = min(BAR_WIDTH, math.ceil(share * BAR_WIDTH))
    drawn = bars[0] * full + bars[1] * (BAR_WIDTH - full)
    return f"[{drawn}]" if bars[0] == "#" else drawn
