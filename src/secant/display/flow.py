"""A workflow as people read it: the table of ε by output and source, and a picture of what flows where.

In: steps with what they read, and public numbers beside them. Out: lines of text, and the text of an SVG file.
Tables are drawn as drums, steps as rounded boxes, what leaves as thick ones.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from fractions import Fraction

from secant.display.drawing import page, readable, text_at
from secant.records import frozen

WIDE, HIGH, ACROSS, DOWN, EDGE = 150, 46, 120, 30, 30
_INK, _FILL, _OUT, _LINES = "#2563a8", "#eef4fa", "#fdf3e1", "#7b8794"


@frozen
class Box:
    """A table or a step: `table`, `view`, `release` or `question`, and the names that it reads."""

    name: str
    kind: str
    reads: tuple[str, ...] = ()


@frozen
class Flow:
    """Everything that is shown of a workflow. Public."""

    boxes: tuple[Box, ...]
    """Each after those that it reads."""
    costs: Mapping[str, Mapping[str, Fraction]]
    """Output -> source -> epsilon."""
    tables: Mapping[str, str]
    """Source -> the table that it is; empty where a source is all that a protection hides."""
    together: Mapping[str, Fraction]
    """Source -> what all outputs cost it."""
    left: Mapping[str, Fraction] = field(default_factory=dict)
    """Source -> what is left of the budget of its protection."""
    moved: Mapping[str, Mapping[str, int | None]] = field(default_factory=dict)
    """View -> table -> rows that one row of the table moves; None: no number bounds them."""


def flow_text(flow: Flow) -> list[str]:
    """Give the table of ε by output and source with sums and what remains, and the rows that views move by."""
    sources = sorted(flow.tables)
    if not sources:
        return ["Nothing protected is read: the script costs nothing."]
    lines = _aligned(
        [
            ["epsilon of", *sources],
            *([name, *(_number(row.get(s)) for s in sources)] for name, row in flow.costs.items()),
            ["together", *(_number(flow.together.get(s)) for s in sources)],
            *([["left", *(_number(flow.left.get(s)) for s in sources)]] if flow.left else []),
        ]
    )
    tables = sorted({t for row in flow.moved.values() for t in row})
    if tables:
        lines += ["", "Rows of each view that one row of a table moves (why, not the proof):"]
        lines += _aligned(
            [
                ["view", *tables],
                *([v, *(_rows(row, t) for t in tables)] for v, row in flow.moved.items()),
            ]
        )
    return lines


def _number(value: Fraction | None) -> str:
    return "-" if not value else f"{float(value):.6g}"


def _rows(row: Mapping[str, int | None], table: str) -> str:
    if table not in row:
        return "0"
    return "no bound" if row[table] is None else str(row[table])


def _aligned(rows: list[list[str]]) -> list[str]:
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    return [
        "  ".join(
            cell.ljust(w) if i == 0 else cell.rjust(w)
            for i, (cell, w) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]


def flow_picture(flow: Flow) -> str:
    """Draw the workflow from left to right: each box right of all that it reads."""
    level: dict[str, int] = {}
    for box in flow.boxes:
        level[box.name] = 1 + max((level[r] for r in box.reads), default=-1)
    places: dict[str, tuple[float, float]] = {}
    heights: dict[int, int] = {}
    for box in flow.boxes:
        column = level[box.name]
        row = heights.get(column, 0)
        heights[column] = row + 1
        places[box.name] = (EDGE + column * (WIDE + ACROSS), EDGE + row * (HIGH + DOWN))
    width = EDGE * 2 + max(heights, default=0) * (WIDE + ACROSS) + WIDE
    height = EDGE * 2 + max(heights.values(), default=1) * (HIGH + DOWN) + DOWN
    parts: list[str] = []
    for box in flow.boxes:
        for read in box.reads:
            parts += _arrow(places[read], places[box.name], _carried(flow, read, box.name))
    for box in flow.boxes:
        parts += _drawn(box, *places[box.name], _paid(flow, box.name))
    return page(width, height, "What flows where, with the epsilon that it costs", parts)


def _carried(flow: Flow, start: str, end: str) -> str:
    """Give what the outputs that an arrow leads to cost: the most that any source pays that lies behind it."""
    behind, ahead = _behind(flow, start), _ahead(flow, end)
    sums = [
        sum((flow.costs[o].get(s, Fraction(0)) for o in ahead if o in flow.costs), Fraction(0))
        for s, table in flow.tables.items()
        if not table or table in behind
    ]
    largest = max(sums, default=Fraction(0))
    return f"\u03b5 {float(largest):.4g}" if largest else ""


def _behind(flow: Flow, name: str) -> set[str]:
    reads = {box.name: box.reads for box in flow.boxes}
    released = {box.name for box in flow.boxes if box.kind == "release"}
    names: set[str] = set()
    waiting = [name]
    while waiting:
        here = waiting.pop()
        if here not in names:
            names.add(here)
            # What was released is public: nothing flows through it that was not paid.
            waiting += () if here in released else reads.get(here, ())
    return names


def _ahead(flow: Flow, name: str) -> set[str]:
    names: set[str] = set()
    for box in flow.boxes:
        passes = box.name == name or any(r in names and not _is_release(flow, r) for r in box.reads)
        if passes:
            names.add(box.name)
    return names


def _is_release(flow: Flow, name: str) -> bool:
    return any(box.name == name and box.kind == "release" for box in flow.boxes)


def _paid(flow: Flow, name: str) -> str:
    row = flow.costs.get(name, {})
    return f"\u03b5 {float(max(row.values())):.4g}" if any(row.values()) else ""


def _arrow(start: tuple[float, float], end: tuple[float, float], label: str) -> list[str]:
    x, y = start[0] + WIDE, start[1] + HIGH / 2
    u, v = end[0] - 7, end[1] + HIGH / 2
    half = (x + u) / 2
    curve = f"M {x:.0f} {y:.0f} C {half:.0f} {y:.0f}, {half:.0f} {v:.0f}, {u:.0f} {v:.0f}"
    parts = [
        f'<path d="{curve}" fill="none" stroke="{_LINES}" stroke-width="1.5"/>',
        f'<path d="M {u:.0f} {v - 4:.0f} l 8 4 l -8 4 z" fill="{_LINES}"/>',
    ]
    if label:
        parts.append(text_at(half, (y + v) / 2 - 5, label, "middle"))
    return parts


def _drawn(box: Box, x: float, y: float, paid: str) -> list[str]:
    middle = x + WIDE / 2
    if box.kind == "table":
        drum = (
            f'<path d="M {x} {y + 8} a {WIDE / 2} 8 0 0 1 {WIDE} 0 v {HIGH - 16} '
            f'a {WIDE / 2} 8 0 0 1 {-WIDE} 0 z" fill="{_FILL}" stroke="{_INK}"/>'
            f'<path d="M {x} {y + 8} a {WIDE / 2} 8 0 0 0 {WIDE} 0" fill="none" stroke="{_INK}"/>'
        )
        return [drum, text_at(middle, y + HIGH / 2 + 8, box.name[:22], "middle")]
    leaves = box.kind in ("release", "question")
    fill, stroke = (_OUT, 3) if leaves else (_FILL, 1)
    shape = (
        f'<rect x="{x}" y="{y}" width="{WIDE}" height="{HIGH}" rx="9" fill="{fill}" '
        f'stroke="{_INK}" stroke-width="{stroke}"><title>{readable(box.name)}</title></rect>'
    )
    label = f"{box.kind} {paid}".strip()
    return [
        shape,
        text_at(middle, y + 19, box.name[:22], "middle"),
        text_at(middle, y + 36, label, "middle"),
    ]
