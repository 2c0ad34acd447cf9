"""While one question is read and planned: its text for carets.

In: the user's text. Out: typed errors that know it. Never here: a word about data.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from secant.errors import SecantError
from secant.sql.limits import too_deep


@contextmanager
def query_context(text: str) -> Iterator[None]:
    """Give typed errors the user's text for carets."""
    try:
        yield
    except SecantError as error:
        if error.span is not None and not error.text:
            error.text = text
        raise
    except RecursionError:
        raise too_deep() from None
