"""`secant check --look`: the owner holds the policy against the data. What it prints is not private.

In: a policy and its source. Out: exact figures, for the owner's eyes. Nothing is released and nothing is charged, so
nothing that is printed here may be passed on; a line that is pasted into the policy is public from then on.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from secant.plural import several

if TYPE_CHECKING:
    from collections.abc import Iterator

    from secant.policy.policy import Policy
    from secant.release.owner_report import ColumnLook, LimitLook, Look

LITTLE = 0.001
"""What share of rows or values a declared fact may cut without a warning."""
WARNING = (
    "OWNER ONLY: exact figures of the data follow. They are not private, and nothing is charged."
)
PASTING = "What you paste is public from then on: analysts see limits, ranges and values. Proposals come from the data."


def read_report(policy: Policy, source: str | None) -> Look:
    """Read the data; warn first, where it is seen whatever becomes of the output."""
    from secant.engines.sources import open_source
    from secant.policy.check import fit_policy
    from secant.release.owner_report import look

    sys.stderr.write(WARNING + "\n")
    beside = None if source or policy.path is None else policy.path.parent
    opened = open_source(source or policy.source, beside=beside, limits=policy.limits)
    try:
        return look(fit_policy(policy, opened.catalog()), opened)
    finally:
        opened.close()


def lines_of(look: Look) -> Iterator[str]:
    """Say what every limit, range and list cuts off, and which lines would cut off less."""
    yield WARNING
    for limit in look.limits:
        yield f"limit   {limit.table} ({limit.protection}): {_limit_text(limit)}"
    for column in look.columns:
        yield f"column  {column.table}.{column.column}: {_column_text(column)}"
    yield from cuts(look)
    proposed = [line for limit in look.limits for line in limit.lines]
    proposed += [line for column in look.columns for line in column.lines]
    if proposed:
        yield ""
        yield f"# Proposals for the policy. {PASTING}"
        yield from proposed


def cuts(look: Look) -> Iterator[str]:
    """Warn of declared facts that cut more than a little: answers are off by that, and no error shows it."""
    for limit in look.limits:
        share = limit.rows_lost / max(1, limit.rows)
        if limit.limit is not None and share > LITTLE:
            yield f"warning the limit {limit.limit:,} of {limit.table} cuts {_percent(share)} of its rows"
    for x in look.columns:
        share = (x.below + x.above) / max(1, x.rows - x.nulls)
        if x.declared is not None and share > LITTLE:
            low, high = x.declared
            yield (
                f"warning {_percent(share)} of the values of {x.table}.{x.column} lie outside of {low} to {high}: "
                "answers count them as its ends, and no error shows it"
            )


def _percent(share: float) -> str:
    return f"{100 * share:.2g} %"


def _limit_text(x: LimitLook) -> str:
    description = f"{several(x.units, 'unit')} with {several(x.rows, 'row')}, {x.most:,} at most"
    if x.limit is None:
        description += "; no limit is declared"
    else:
        description += f"; the limit {x.limit:,} cuts {several(x.units_over, 'unit')} and {several(x.rows_lost, 'row')}"
    if x.rows_without_unit:
        description += f"; {several(x.rows_without_unit, 'row')} of no unit"
    return description


def _column_text(x: ColumnLook) -> str:
    parts = [f"{x.nulls:,} of {x.rows:,} rows are NULL"]
    if x.declared is not None:
        parts.append(
            f"{x.below:,} lie below the range and {x.above:,} above ({x.least} to {x.most})"
        )
    if x.unlisted is not None:
        parts.append(f"{x.unlisted:,} have a value that is not listed")
    return "; ".join(parts)


def report(look: Look) -> dict[str, object]:
    """Give the figures for programs; the first key says whose they are."""
    return {
        "owner_only": WARNING,
        "limits": [
            {
                "table": x.table,
                "protection": x.protection,
                "limit": x.limit,
                "units": x.units,
                "rows": x.rows,
                "units_over": x.units_over,
                "rows_lost": x.rows_lost,
                "rows_without_unit": x.rows_without_unit,
                "most": x.most,
                "proposed": x.proposed,
                "toml": list(x.lines),
            }
            for x in look.limits
        ],
        "columns": [
            {
                "table": x.table,
                "column": x.column,
                "rows": x.rows,
                "nulls": x.nulls,
                "below": x.below,
                "above": x.above,
                "unlisted": x.unlisted,
                "least": x.least,
                "most": x.most,
                "range": x.declared,
                "proposed": x.proposed,
                "toml": list(x.lines),
            }
            for x in look.columns
        ],
    }
