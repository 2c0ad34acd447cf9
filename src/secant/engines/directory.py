"""A directory of Parquet or CSV files: which tables it holds, and which files are the rows of each.

In: a directory, one file, or a pattern such as `logs/events-*.csv`, all files of which are one table. Out: tables by
name, each with a list of files that no other table has. A policy protects rows by the name of their table, so a second
name for the same rows would show them unprotected: two names for one file, links that leave the directory, and names
that an engine folds into one are refused. Names go to the engine as names, never as patterns. Only regular files are
read: a pipe never ends.
"""

from __future__ import annotations

import fnmatch
import os
import re
import stat
from collections.abc import Iterator, Mapping
from operator import attrgetter
from pathlib import Path

from secant.engines.dialect import text
from secant.errors import BackendError

_PATTERN = frozenset("*?[")
"""What an engine reads as a pattern; put into brackets, each stands for itself only."""


def tables_of(directory: Path, kind: str) -> dict[str, tuple[Path, ...]]:
    """Give the files of each table: `NAME.kind`, or all of a folder NAME; all that a pattern means are one table."""
    if not directory.is_dir():
        return _one_table(directory, kind)
    root = directory.resolve()
    tables: dict[str, tuple[Path, ...]] = {}
    seen: dict[str, Path] = {}
    for entry in _listed(root):
        if _is_folder(entry):
            name, files = entry.name, tuple(f for f in _listed(entry) if _holds(f, kind))
        elif _holds(entry, kind):
            name, files = entry.name.removesuffix(f".{kind}"), (entry,)
        else:
            continue
        if not files:
            continue
        for one in (entry, *files):
            _check_name(one)
        other = seen.setdefault(name.lower(), entry)
        if other is not entry:
            raise _refused(f"{other.name!r} and {entry.name!r} would be one table", "rename one")
        tables[name] = files
    _check_files(root, tables)
    return tables


def files_of(directory: Path, kind: str) -> list[Path]:
    """Give all files that are rows of tables, as they are now: also those that were not there before."""
    if not directory.is_dir():
        return _meant(directory, kind)
    entries = _scanned(directory.resolve())
    scanned: list[os.DirEntry[str]] = []
    for entry in entries:
        scanned += _scanned(Path(entry.path)) if _leads_to_folder(entry) else [entry]
    ending = f".{kind}"
    return [Path(entry.path) for entry in scanned if entry.name.endswith(ending)]


def _one_table(path: Path, kind: str) -> dict[str, tuple[Path, ...]]:
    """Give the table of a file, called like it, or of a pattern, called by what stands before its first wildcard."""
    files = tuple(_meant(path, kind))
    before = re.split(r"[*?\[]", path.name.removesuffix(f".{kind}"), maxsplit=1)[0]
    name = before.rstrip("-_. ") or path.parent.resolve().name
    for file in files:
        _check_name(file)
    tables = {name: files} if files else {}
    _check_files(path.parent.resolve(), tables)
    return tables


def _meant(path: Path, kind: str) -> list[Path]:
    """Give the files that a path names as they are now; wildcards stand in its last part only."""
    folder = path.parent.resolve()
    if not folder.is_dir():
        return []
    entries = [entry for entry in _listed(folder) if _holds(entry, kind)]
    exact = [entry for entry in entries if entry.name == path.name]
    return exact or [entry for entry in entries if fnmatch.fnmatchcase(entry.name, path.name)]


def _listed(folder: Path) -> list[Path]:
    """Give what is in a folder, in order."""
    return [Path(entry.path) for entry in _scanned(folder)]


def _scanned(folder: Path) -> list[os.DirEntry[str]]:
    """Give what is in a folder, in order. Hidden files are remains of other programs, not data."""
    try:
        with os.scandir(folder) as entries:
            shown = [entry for entry in entries if not entry.name.startswith(".")]
        return sorted(shown, key=attrgetter("name"))
    except OSError:
        raise _refused(
            f"the folder {folder.name!r} cannot be read", "check who may read it"
        ) from None


def _is_folder(entry: Path) -> bool:
    try:
        return stat.S_ISDIR(entry.stat().st_mode)
    except OSError:
        return False  # a link that leads nowhere or in a circle; if it is named like data, it is refused below


def _leads_to_folder(entry: os.DirEntry[str]) -> bool:
    """As `_is_folder`, without asking of each file again what the list of its folder tells."""
    try:
        return entry.is_dir()
    except OSError:
        return False


def _holds(entry: Path, kind: str) -> bool:
    return entry.name.endswith(f".{kind}")


def _check_name(entry: Path) -> None:
    # The first is also what is not UTF-8; a backslash is a name's own only where the engine sees no pattern.
    if not entry.name.isprintable() or "\\" in str(entry):
        raise _refused(
            f"{entry.name!a} has characters that cannot be in the name of a table", "rename it"
        )


def _check_files(root: Path, tables: Mapping[str, tuple[Path, ...]]) -> None:
    """Refuse files that are not plain data of their own."""
    seen: dict[tuple[int, int], Path] = {}
    for file in (file for files in tables.values() for file in files):
        shown = ascii(str(file.relative_to(root)))
        try:
            facts = file.stat()
            real = Path(os.path.realpath(file, strict=True))
        except OSError:
            raise _refused(f"{shown} leads nowhere, or in a circle", "remove the link") from None
        if not stat.S_ISREG(facts.st_mode):
            raise _refused(f"{shown} is not a regular file", "move it elsewhere")
        if not real.is_relative_to(root):
            raise _refused(f"{shown} is a link out of the directory", "put the file itself there")
        other = seen.setdefault((facts.st_dev, facts.st_ino), file)
        if other is not file:
            hint = "keep one: a table is protected by its name, and these rows would have two"
            raise _refused(f"{str(other.relative_to(root))!a} and {shown} are one file", hint)


def without_lines(tables: Mapping[str, tuple[Path, ...]]) -> Iterator[str]:
    """Name the tables all of whose files are empty, without even a line that names columns."""
    for name, files in tables.items():
        if not any(file.stat().st_size for file in files):
            yield name


def as_list(files: tuple[Path, ...]) -> str:
    """Write files as an SQL list of names that stand for themselves."""
    return "[" + ", ".join(text(_literal(str(file))) for file in files) + "]"


def names_of(tables: Mapping[str, tuple[Path, ...]]) -> list[str]:
    """Give every file as it is called and as it is written: an engine asks for leave to read both."""
    files = [str(file) for each in tables.values() for file in each]
    return list(dict.fromkeys([*files, *map(_literal, files)]))


def _literal(name: str) -> str:
    return "".join(f"[{c}]" if c in _PATTERN else c for c in name)


def _refused(what: str, now: str) -> BackendError:
    return BackendError("BAK-001", f"the data source cannot be used: {what}", hint=now)
