"""A source as the owner writes it ("duckdb:shop.duckdb", "postgresql://…"), or frames, to an engine or its files."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from urllib.parse import parse_qsl, urlsplit

from secant.engines.backend import Backend
from secant.engines.directory import files_of
from secant.engines.files import state_of, version_name
from secant.errors import BackendError, UsageError
from secant.policy.policy import USUAL, Limits


def open_source(
    source: str | Mapping[str, object],
    *,
    beside: Path | None = None,
    threads: int | None = None,
    limits: Limits = USUAL,
) -> Backend:
    """Open a source. Relative paths start at `beside`, the directory of the policy file, if it is given."""
    if isinstance(source, Mapping):
        from secant.engines.frames import open_frames

        return open_frames(source, limits=limits)
    if not isinstance(source, str):
        raise UsageError(
            "USE-001",
            f"the source is a {type(source).__name__}",
            hint="pass tables by name: {'visits': frame}",
        )
    source = resolved(source, beside=beside)
    kind, _, path_text = source.partition(":")
    if kind in ("postgresql", "postgres") and path_text.startswith("//"):
        from secant.engines.postgres import session as postgres

        return postgres.open_server(source, limits)
    if kind == "spark":
        from secant.engines.spark import session as spark

        return spark.open_server(path_text, limits)
    if not path_text or kind not in ("duckdb", "parquet", "csv"):
        raise BackendError(
            "BAK-001",
            f"the source {source[:200]!r} is not understood",
            hint=_meant(source),
        )
    from secant.engines.duckdb import session as duckdb

    if kind == "duckdb":
        named, options = _options(path_text)
        attached = [_placed(path, beside) for path in options["attach"]]
        return duckdb.open_file(
            _placed(named, beside),
            threads=threads,
            limits=limits,
            schemas=options["schema"] or ["main"],
            attached=attached,
        )
    return duckdb.open_directory(_placed(path_text, beside), kind, threads=threads, limits=limits)


ENDINGS = {
    ".duckdb": "duckdb",
    ".db": "duckdb",
    ".ddb": "duckdb",
    ".parquet": "parquet",
    ".csv": "csv",
}
"""What a file is by the end of its name."""


def _meant(source: str) -> str:
    """Say how a source is written; for the bare name of a file, the very words."""
    kind = ENDINGS.get(Path(source).suffix.lower())
    if kind is not None and ":" not in source:
        return f"write {kind}:{source[:200]}"
    servers = "postgresql://ADDRESS, spark:sc://HOST:PORT"
    return f"write duckdb:FILE, parquet:PATH, csv:PATH, {servers}, env:NAME or file:PATH"


def source_files(source: str, *, beside: Path | None = None) -> list[Path] | None:
    """Give the files that hold the rows of a source, as they are now; None for a server, which has none here."""
    source = resolved(source, beside=beside)
    kind, _, location = source.partition(":")
    if kind == "duckdb":
        named, options = _options(location)
        places = [_placed(path, beside).resolve() for path in (named, *options["attach"])]
        return [each for p in places for each in (p, p.with_name(p.name + ".wal"))]
    if kind in ("parquet", "csv"):
        return files_of(_placed(location, beside), kind)
    return None


def data_version(source: object, *, beside: Path | None = None) -> str:
    """Name the content of a source by what the file system says of its files; empty where it says nothing."""
    files = source_files(source, beside=beside) if isinstance(source, str) else None
    if files is None:
        return ""
    return version_name(state_of(files))


def resolved(source: str, *, beside: Path | None = None) -> str:
    """Give the source that `env:NAME` or `file:PATH` stands for: an address with a password is kept there."""
    kind, _, location = source.partition(":")
    if kind == "env":
        value = os.environ.get(location, "").strip()
        if not value:
            raise BackendError(
                "BAK-001",
                f"the environment has no {location[:80]}, which the source names",
                hint=f"set {location[:80]} to the address of the data",
            )
        return value
    if kind != "file":
        return source
    path = _placed(location, beside)
    try:
        others = path.stat().st_mode & 0o077
        value = path.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError):
        raise BackendError(
            "BAK-001", f"the file {path}, which holds the source, cannot be read", hint="check it"
        ) from None
    if others and os.name == "posix":
        raise BackendError(
            "BAK-001",
            f"others may read {path}, which holds the address of the data",
            hint=f"chmod 600 {path}",
        )
    return value


def has_password(source: str) -> bool:
    """Whether an address tells a password, or Spark's token."""
    if source.startswith("spark:") and ";token=" in source:
        return True
    try:
        parts = urlsplit(source)
        return bool(parts.password) or any(k == "password" for k, _ in parse_qsl(parts.query))
    except ValueError:
        return True


def with_paths(source: str, change: Callable[[str], str]) -> str:
    """Give a source with its paths changed; a server and the environment have none."""
    kind, _, location = source.partition(":")
    if kind not in ("duckdb", "parquet", "csv", "file") or not location:
        return source
    path, options = (
        _options(location) if kind == "duckdb" else (location, {"schema": [], "attach": []})
    )
    options["attach"] = [change(each) for each in options["attach"]]
    query = "&".join(f"{name}={','.join(values)}" for name, values in options.items() if values)
    return f"{kind}:{change(path)}{'?' if query else ''}{query}"


def _options(address: str) -> tuple[str, dict[str, list[str]]]:
    """Read `FILE?schema=main,hr&attach=other.duckdb`; a question mark with nothing known behind it is the name's."""
    path, mark, after = address.rpartition("?")
    values: dict[str, list[str]] = {"schema": [], "attach": []}
    pairs = [pair.partition("=") for pair in after.split("&")]
    if not mark or not all(name in values and value for name, _, value in pairs):
        return address, values
    for name, _, value in pairs:
        values[name] += [part for part in value.split(",") if part]
    return path, values


def _placed(path: str, beside: Path | None) -> Path:
    placed = Path(path).expanduser()
    return placed if beside is None or placed.is_absolute() else beside / placed
