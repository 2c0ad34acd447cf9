"""A source as the owner writes it ("duckdb:shop.duckdb", "postgresql://…") to an open engine."""

from __future__ import annotations

from pathlib import Path

from secant.errors import BackendError
from secant.release.backend import Backend
from secant.terms.policy import USUAL, Limits


def open_source(
    source: str,
    *,
    beside: Path | None = None,
    threads: int | None = None,
    limits: Limits = USUAL,
) -> Backend:
    """Open a source. Relative paths start at `beside`, the directory of the policy file, if it is given."""
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

    path = Path(rest).expanduser()
    if beside is not None and not path.is_absolute():
        path = beside / path
    if kind == "duckdb":
        return duckdb.open_file(path, threads=threads, limits=limits)
    return duckdb.open_directory(path, kind, threads=threads, limits=limits)
