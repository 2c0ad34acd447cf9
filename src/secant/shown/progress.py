"""How far long work has come: a bar on a terminal, a bar in a notebook, nothing elsewhere.

In: what is done and how many steps it has, both public. Out: a function to call after each step. Nothing is shown for
work that is over within a second.
"""

from __future__ import annotations

import importlib
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from html import escape
from typing import Any

PATIENCE = 1.0
"""Seconds before a bar is shown in a notebook, and between two drawings of it at least a fifth of them."""


def in_notebook() -> bool:
    """Say whether a notebook is in front of this process."""
    shell = sys.modules.get("IPython")
    found = shell.get_ipython() if shell is not None else None
    return found is not None and hasattr(found, "kernel")


def wanted(asked: bool | None) -> bool:
    """Say whether a bar is shown: as asked, or where somebody looks."""
    return asked if asked is not None else sys.stderr.isatty() or in_notebook()


@contextmanager
def progress(
    what: str, total: int, *, done: int = 0, asked: bool | None = None
) -> Iterator[Callable[[], object]]:
    """Show how many of `total` steps are done; call what is given after each."""
    if not wanted(asked):
        yield lambda: None
    elif in_notebook():
        with _drawn(what, total, done) as advance:
            yield advance
    else:
        from rich.console import Console
        from rich.progress import Progress

        with Progress(console=Console(stderr=True), transient=sys.stderr.isatty()) as bar:
            row = bar.add_task(what, total=total, completed=done)
            yield lambda: bar.advance(row)


@contextmanager
def _drawn(what: str, total: int, done: int) -> Iterator[Callable[[], object]]:
    screen: Any = importlib.import_module("IPython.display")
    handle: Any = None
    steps, since, drawn = done, time.monotonic(), 0.0

    def advance() -> None:
        nonlocal handle, steps, drawn
        steps += 1
        now = time.monotonic()
        if now - since < PATIENCE or (now - drawn < PATIENCE / 5 and steps < total):
            return
        drawn = now
        page = screen.HTML(bar_page(what, steps, total))
        if handle is None:
            handle = screen.display(page, display_id=True)
        else:
            handle.update(page)

    try:
        yield advance
    finally:
        if handle is not None:
            handle.update(screen.HTML(""))  # the result says the rest


def bar_page(what: str, steps: int, total: int) -> str:
    """Give a bar as HTML."""
    return (
        f'<div style="font-family:sans-serif;font-size:90%">{escape(what)} '
        f'<progress value="{steps}" max="{total}"></progress> {steps:,} of {total:,}</div>'
    )
