"""Standard output that may be full, closed or gone: none of that is a bug of ours.

In: a stretch of code that writes. Out: the same, with a failed write told as wrong use of the
output, and a reader that went away passed on as BrokenPipeError.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from secant.errors import UsageError


@contextmanager
def writing() -> Iterator[None]:
    """Tell a write that fails for what it is."""
    try:
        yield
    except BrokenPipeError:
        forget_output()
        raise
    except OSError as error:
        forget_output()
        raise UsageError(
            "USE-001",
            f"the output cannot be written: {error.strerror}",
            hint="a release that was sent stays charged; `secant ledger --history` lists it",
        ) from None


def forget_output() -> None:
    """Let what is still in the buffer go nowhere: Python would complain about it again at exit."""
    with suppress(OSError, ValueError):  # a captured output has no descriptor
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
