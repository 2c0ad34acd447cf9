"""While one question is open: its text for carets, and seldom a search for cyclic garbage.

In: the user's text. Out: typed errors that know it. Never here: a word about data.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from secant.errors import SecantError
from secant.runtime.collecting import seldom_collecting
from secant.sql.limits import too_deep


@contextmanager
def query_context(text: str) -> Iterator[None]:
    """Give typed errors the user's text for carets, and collect garbage seldom meanwhile."""
    try:
        with seldom_collecting():
            yield
    except SecantError as error:
        if error.span is not None and not error.text:
            error.text = text
        raise
    except RecursionError:
        raise too_deep() from None
