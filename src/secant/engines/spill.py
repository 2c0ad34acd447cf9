"""Where an engine may put what does not fit into memory: rows of protected tables, in files.

In: nothing. Out: a directory that only this user may look into, with a lock that tells that somebody uses it. It is
removed when the engine closes and when the process ends; what a killed process left is removed by the next one. The
place is that of all temporary files, which TMPDIR chooses.
"""

from __future__ import annotations

import os
import shutil
import stat
import sys
import tempfile
import weakref
from pathlib import Path

if sys.platform != "win32":
    import fcntl

_PREFIX = "secant-spill-"


class Spill:
    """A private directory, until it is removed."""

    def __init__(self) -> None:
        _remove_left()
        while True:
            path = Path(tempfile.mkdtemp(prefix=_PREFIX))
            lock = _locked(path)
            if path.is_dir():
                break
            _unlock(lock)  # another process took it for something left, and removed it
        self.path = path
        self.remove = weakref.finalize(self, _remove, path, lock, os.getpid())


def _remove(path: Path, lock: int | None, process: int) -> None:
    if process == os.getpid():  # a forked child has inherited it, and leaves it to its parent
        shutil.rmtree(path, ignore_errors=True)
        _unlock(lock)


def _remove_left() -> None:
    """Remove what processes that are gone have left: their locks went with them."""
    if sys.platform == "win32":
        return
    for path in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
        try:
            facts = path.lstat()
        except OSError:
            continue
        if stat.S_ISDIR(facts.st_mode) and facts.st_uid == os.getuid():
            lock = _locked(path)
            if lock is not None:
                shutil.rmtree(path, ignore_errors=True)
            _unlock(lock)


def _locked(path: Path) -> int | None:
    """Lock a directory; None where somebody else has, or where there are no such locks."""
    if sys.platform == "win32":
        return None
    try:
        lock = os.open(path, os.O_RDONLY | os.O_NOFOLLOW)
    except OSError:
        return None
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(lock)
        return None
    return lock


def _unlock(lock: int | None) -> None:
    if lock is not None:
        os.close(lock)
