"""Public results as HTML for a notebook: a table with small error bars, the guarantee, budgets, a derivation to open.

In: answers, explanations, accounts. Out: HTML without scripts and links: it can be kept, mailed and printed. Texts are
escaped.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from html import escape
from typing import Any

from secant.display.numbers import value_text
from secant.display.parts import (
    Released,
    account_text,
    cell_error,
    guarantee_lines,
    hidden_lines,
    left_out_lines,
    noisy_columns,
    percent,
    share_spent,
)

MOST_ROWS = 50
"""A notebook shows no more at once; `rows` and the frames have all."""
BAR = (96, 12)
"""Width and height of an error bar, in pixels."""
_STEP = re.compile(r"\s*(\d+)\. (.*?)(?:  \(from ([\d, ]+)\))?$")
"""A step as derivations print it: its number, what it says, and the steps that it rests on."""
_INK, _FAINT, _BAND = "#2563a8", "#8892a0", "#2563a833"


def answer_page(answer: Released) -> str:
    """Give an answer: the table, what limits cut, the guarantee and the budget."""
    notes = [*left_out_lines(answer.error), *hidden_lines(answer.warnings)]
    warned = [f"{w.code} {w.message}" for w in answer.warnings]
    return _framed(
        [
            *_table(answer),
            *(_small(line) for line in [*notes, *warned]),
            *_guarantees(answer.guarantee),
            budget_page(answer.budget),
        ]
    )


def explanation_page(record: Mapping[str, Any], text: str) -> str:
    """Give an explanation: what it costs on top, each release to be opened, and the whole text last."""
    parts = list(_guarantees(record.get("guarantee", ())))
    for index, release in enumerate(record.get("releases", ()), start=1):
        inside = [*release.get("noise", ()), *release.get("enforced", ())]
        for certificate in release.get("certificates", ()):
            inside.append(f"proved by {certificate['analysis']}")
        inside += release.get("refusals", ())
        trees = [derivation_tree(c["derivation"]) for c in release.get("certificates", ())]
        title = f"Release {index}: noise and proof"
        parts.append(_opened(title, "\n".join(inside), after="".join(trees)))
    for warning in record.get("warnings", ()):
        parts.append(_small(f"{warning['code']} {warning['message']}"))
    statements = record.get("statements") or ()
    if statements:
        parts.append(_opened("Statements that would run", ";\n".join(map(str, statements))))
    parts.append(_opened("The whole explanation", text))
    return _framed(parts)


def budget_page(accounts: Mapping[str, Any]) -> str:
    """Give what is left of every protection's budget, as bars."""
    bars = []
    for name, account in accounts.items():
        spent = min(1.0, max(0.0, share_spent(account)))
        bar = (
            f'<svg width="160" height="10" role="img"><rect width="160" height="10" fill="{_BAND}"/>'
            f'<rect width="{160 * spent:.1f}" height="10" fill="{_INK}"/></svg>'
        )
        bars.append(_small(f"{name}: {account_text(account)}", before=f"{bar} "))
    return "".join(bars)


def _table(answer: Released) -> Iterator[str]:
    error, noisy = answer.error, noisy_columns(answer.error)
    spans = {position: _span(answer, position) for position in noisy}
    yield '<table style="border-collapse:collapse">'
    heads = []
    for index, name in enumerate(answer.columns):
        heads.append(_cell("th", escape(value_text(name))))
        if index in noisy:
            heads.append(_cell("th", f"± ({percent(error['level'])})", faint=True))
            heads.append(_cell("th", ""))
    yield f"<tr>{''.join(heads)}</tr>"
    for number, row in enumerate(answer.rows[:MOST_ROWS]):
        cells = []
        for index, value in enumerate(row):
            noise = error["noise"][number][index] if index in noisy and error["noise"] else None
            cells.append(_cell("td", escape(value_text(value, noise))))
            if index in noisy:
                cells.append(
                    _cell("td", escape(cell_error(error, number, index, value)), faint=True)
                )
                cells.append(_cell("td", _error_bar(answer, number, index, spans[index])))
        yield f"<tr>{''.join(cells)}</tr>"
    yield "</table>"
    if len(answer.rows) > MOST_ROWS:
        yield _small(f"... and {len(answer.rows) - MOST_ROWS:,} more rows")


def _ends(answer: Released, number: int, index: int) -> tuple[float, float, float] | None:
    """Give a number between its ends, where all three are known."""
    error, value = answer.error, answer.rows[number][index]
    if not error.get("low") or isinstance(value, bool):
        return None
    low, high = error["low"][number][index], error["high"][number][index]
    try:
        ends_and_value = (float(low), float(value), float(high))  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return None
    return ends_and_value if ends_and_value[0] <= ends_and_value[2] else None


def _span(answer: Released, index: int) -> tuple[float, float]:
    """Give what the bars of a column reach over, zero among it."""
    ends = [_ends(answer, i, index) for i in range(min(len(answer.rows), MOST_ROWS))]
    finite = [x for e in ends if e is not None for x in e]
    return min([0.0, *finite]), max([0.0, *finite])


def _error_bar(answer: Released, number: int, index: int, span: tuple[float, float]) -> str:
    ends = _ends(answer, number, index)
    if ends is None or span[0] == span[1]:
        return ""
    width, height = BAR
    low, value, high = ((x - span[0]) / (span[1] - span[0]) * (width - 4) + 2 for x in ends)
    middle = height / 2
    return (
        f'<svg width="{width}" height="{height}" role="img"><title>{escape(cell_title(ends))}</title>'
        f'<rect x="{low:.1f}" y="2" width="{max(1.0, high - low):.1f}" height="{height - 4}" fill="{_BAND}"/>'
        f'<circle cx="{value:.1f}" cy="{middle:g}" r="2.5" fill="{_INK}"/></svg>'
    )


def cell_title(ends: tuple[float, float, float]) -> str:
    """Say both ends of a number, for whoever cannot see the bar."""
    return f"{value_text(ends[0])} to {value_text(ends[2])}"


def _guarantees(guarantees: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    paid = [g for g in guarantees if g.get("epsilon") or g.get("delta")]
    if not paid:
        yield _small("This question touches nothing protected; it is answered exactly.")
    for guarantee in paid:
        what, strength, meaning = guarantee_lines(guarantee)
        yield _small(f"{strength}: hides {what}. {meaning}", before="<b>Guarantee</b> ")
        if guarantee.get("not_covered"):
            yield _small(f"NOT covered by this release: {', '.join(guarantee['not_covered'])}")


def _cell(kind: str, inside: str, *, faint: bool = False) -> str:
    color = f";color:{_FAINT}" if faint else ""
    return f'<{kind} style="text-align:right;padding:2px 8px{color}">{inside}</{kind}>'


def _small(line: str, before: str = "") -> str:
    return f'<div style="font-size:90%;margin:2px 0">{before}{escape(line)}</div>'


def _opened(title: str, inside: str, after: str = "") -> str:
    text = f"<pre>{escape(inside)}</pre>" if inside else ""
    return f"<details><summary>{escape(title)}</summary>{text}{after}</details>"


def derivation_tree(lines: Sequence[str]) -> str:
    """Give numbered steps as a tree to open: each below what rests on it, the same step once."""
    steps = {
        m[1]: (m[2], (m[3] or "").replace(",", "").split()) for m in map(_STEP.match, lines) if m
    }
    below = {premise for _, premises in steps.values() for premise in premises}
    drawn: set[str] = set()

    def branch(number: str) -> str:
        description, premises = steps[number]
        if number in drawn and premises:
            return (
                f'<div style="margin-left:1.2em">{escape(description)} (step {number}, above)</div>'
            )
        drawn.add(number)
        if not premises:
            return f'<div style="margin-left:1.2em">{escape(description)}</div>'
        inside = "".join(branch(premise) for premise in premises if premise in steps)
        return f'<details style="margin-left:1.2em"><summary>{escape(description)}</summary>{inside}</details>'

    return "".join(branch(number) for number in steps if number not in below)


def _framed(parts: list[str]) -> str:
    return f'<div class="secant" style="font-family:sans-serif">{"".join(parts)}</div>'
