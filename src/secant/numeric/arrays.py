"""numpy and scipy, imported where they are first used: the core is installed and answers without them.

In: nothing. Out: `np`, which stands for numpy and says what to install where there is none, and the kinds of arrays.
"""

from __future__ import annotations

import importlib
import importlib.util
from typing import TYPE_CHECKING, Any

from secant.errors import UsageError

__all__ = ["Floats", "Places", "Truths", "Wholes", "installed", "lacking", "np", "required"]

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Wholes = NDArray[np.int64]
    Places = NDArray[np.intp]
    Truths = NDArray[np.bool_]
else:
    Floats = Wholes = Places = Truths = Any

    class _Numpy:
        def __getattr__(self, name: str) -> Any:
            attribute = getattr(required("numpy"), name)
            setattr(self, name, attribute)  # so that this is asked once for each name
            return attribute

    np = _Numpy()


def required(module: str) -> Any:
    """Import a module of numpy or scipy, or say what to install."""
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError:
        raise lacking() from None


def lacking() -> UsageError:
    """Say what to install."""
    return UsageError(
        "USE-006",
        "this computes with numpy and scipy, which are not installed",
        hint="install secant[numeric]; questions in SQL go without them",
    )


def installed() -> bool:
    """Say whether both are there, for whoever has another way."""
    return all(importlib.util.find_spec(name) is not None for name in ("numpy", "scipy"))
