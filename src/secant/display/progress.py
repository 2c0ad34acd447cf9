"""That long work goes on, and how far it has come: on a terminal and in a notebook; nothing elsewhere.

In: what is done and how many steps it has, both public. Out: a function to call with how many are done. It writes to
standard error or below a notebook's cell, never to standard output. A notebook sees nothing of work that is over within
a second.
"""

from __future__ import annotations

import importlib
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar, copy_context
from html import escape
from typing import Any

DELAY = 1.0
"""Seconds before anything is shown in a notebook; between two drawings there is at least a fifth of them."""

_silent: ContextVar[bool] = ContextVar("secant shows no progress", default=False)


@contextmanager
def silent() -> Iterator[None]:
    """Show nothing of the work in the block: somebody else's, or for a program that reads along."""
    before = _silent.set(True)
    try:
        yield
    finally:
        _silent.reset(before)


def in_notebook() -> bool:
    """Say whether a notebook is in front of this process."""
    shell = sys.modules.get("IPython")
    notebook = shell.get_ipython() if shell is not None else None
    return notebook is not None and hasattr(notebook, "kernel")


def shows_bar(requested: bool | None) -> bool:
    """Say whether a bar is shown: as asked, or where somebody looks."""
    if requested is not None:
        return requested
    return not _silent.get() and (sys.stderr.isatty() or in_notebook())


@contextmanager
def progress(
    what: str, total: int, *, done: int = 0, requested: bool | None = None
) -> Iterator[Callable[[int], object]]:
    """Show how many of `total` steps are done; call what is given with their number."""
    if not shows_bar(requested):
        yield lambda done: None
    elif in_notebook():
        with _below_the_cell(bar_page(what, done, total)) as draw:
            yield lambda done: draw(bar_page(what, done, total))
    else:
        from rich.console import Console
        from rich.markup import escape as plain
        from rich.progress import MofNCompleteColumn, Progress

        # What other threads print to a file or a pipe must arrive there, not above the bar.
        seen = sys.stdout.isatty()
        with Progress(
            *Progress.get_default_columns(),
            MofNCompleteColumn(),
            console=Console(stderr=True),
            transient=sys.stderr.isatty(),
            redirect_stdout=seen,
        ) as bar:
            row = bar.add_task(plain(what), total=total, completed=done)
            yield lambda done: bar.update(row, completed=done)


@contextmanager
def waiting(what: str) -> Iterator[None]:
    """Show in a notebook that work goes on whose length nobody knows; on a terminal, commands do."""
    if _silent.get() or not in_notebook():
        yield
        return
    with _below_the_cell(waiting_page(what)):
        yield


@contextmanager
def _below_the_cell(page: str) -> Iterator[Callable[[str], object]]:
    """Show a page after a while, and what it is changed to; nothing is left of it in the end."""
    screen: Any = importlib.import_module("IPython.display")
    handle: Any = None
    latest, drawn = page, 0.0
    turn = threading.Lock()

    def show() -> None:
        nonlocal handle
        with turn:
            handle = screen.display(screen.HTML(latest), display_id=True)

    def draw(page: str) -> None:
        nonlocal latest, drawn
        with turn:
            latest = page
            now = time.monotonic()
            if handle is not None and now - drawn >= DELAY / 5:
                drawn = now
                handle.update(screen.HTML(page))

    # The work holds this thread. The other one knows by the context which cell it writes below.
    timer = threading.Timer(DELAY, copy_context().run, (show,))
    timer.daemon = True
    timer.start()
    try:
        yield draw
    finally:
        timer.cancel()
        timer.join()
        if handle is not None:
            handle.update(screen.HTML(""))  # the result says the rest


def bar_page(what: str, steps: int, total: int) -> str:
    """Give a bar as HTML."""
    return (
        f'<div style="font-family:sans-serif;font-size:90%">{escape(what)} '
        f'<progress value="{steps}" max="{total}"></progress> {steps:,} of {total:,}</div>'
    )


def waiting_page(what: str) -> str:
    """Give as HTML that something goes on: a bar that says nothing of how far."""
    return f'<div style="font-family:sans-serif;font-size:90%">{escape(what)} <progress></progress></div>'
