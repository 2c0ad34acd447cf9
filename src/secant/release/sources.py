"""A source as the owner writes it ("duckdb:shop.duckdb", "postgresql://…"), or frames, to an engine or its files."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from secant.errors import BackendError, UsageError
from secant.release.backend import Backend
from secant.release.directory import files_of
from secant.release.files import state_of, version_name
from secant.terms.policy import USUAL, Limits


def open_source(
    source: str | Mapping[str, object],
    *,
    beside: Path | None = None,
    threads: int | None = None,
    limits: Limits = USUAL,
) -> Backend:
    """Open a source. Relative paths start at `beside`, the directory of the policy file, if it is given."""
    if isinstance(source, Mapping):
        from secant.release.frames import open_frames

        return open_frames(source, limits=limits)
    if not isinstance(source, str):
        raise UsageError(
            "USE-001",
            f"the source is a {type(source).__name__}",
            hint="pass tables by name: {'visits': frame}",
        )
    kind, _, rest = source.partition(":")
    if kind in ("postgresql", "postgres") and rest.startswith("//"):
        from secant.release import postgres

        return postgres.open_server(source, limits)
    if not rest or kind not in ("duckdb", "parquet", "csv"):
        raise BackendError(
            "BAK-001",
            f"the source {source[:200]!r} is not understood",
            hint="write duckdb:FILE, parquet:DIRECTORY, csv:DIRECTORY or postgresql://ADDRESS",
        )
    from secant.release import duckdb

    path = _placed(rest, beside)
    if kind == "duckdb":
        return duckdb.open_file(path, threads=threads, limits=limits)
    return duckdb.open_directory(path, kind, threads=threads, limits=limits)


def source_files(source: str, *, beside: Path | None = None) -> list[Path] | None:
    """Give the files that hold the rows of a source, as they are now; None for a server, which has none here."""
    kind, _, rest = source.partition(":")
    if kind == "duckdb":
        place = _placed(rest, beside).resolve()
        return [place, place.with_name(place.name + ".wal")]
    if kind in ("parquet", "csv"):
        return files_of(_placed(rest, beside), kind)
    return None


def data_version(source: object, *, beside: Path | None = None) -> str:
    """Name the content of a source by what the file system says of its files; empty where it says nothing."""
    files = source_files(source, beside=beside) if isinstance(source, str) else None
    if files is None:
        return ""
    return version_name(state_of(files))


def _placed(path: str, beside: Path | None) -> Path:
    placed = Path(path).expanduser()
    return placed if beside is None or placed.is_absolute() else beside / placed
