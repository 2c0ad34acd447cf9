"""Data and texts of TPC-DS, made by the extension of DuckDB that carries generator and queries.

In: where generated things are kept. Out: a directory of Parquet files and one of texts. The extension is made for a
version of DuckDB of its own, so an environment beside the data runs it; it is made once, and needs a package index.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from secant.errors import UsageError

PACKAGES = ("duckdb==1.5.5", "duckdb-extension-tpcds==1.5.5")
MAKE = """
import pathlib, sys
import duckdb, duckdb_extension_tpcds
place, scale = pathlib.Path(sys.argv[1]), sys.argv[2]
(extension,) = pathlib.Path(duckdb_extension_tpcds.__file__).parent.rglob("tpcds.duckdb_extension")
db = duckdb.connect(config={"allow_unsigned_extensions": True})
db.execute(f"LOAD '{extension}'")
db.execute(f"CALL dsdgen(sf={scale})")
for folder in ("data", "queries"):
    (place / folder).mkdir(parents=True, exist_ok=True)
for (table,) in db.execute("SELECT table_name FROM information_schema.tables").fetchall():
    db.execute(f"COPY {table} TO '{place / 'data' / table}.parquet' (FORMAT parquet)")
for number, text in db.execute("SELECT query_nr, query FROM tpcds_queries()").fetchall():
    (place / "queries" / f"q{number:02}.sql").write_text(text)
(place / "made").touch()
"""
QUERIES = tuple(f"q{number:02}" for number in range(1, 100))


def made(scale: str, place: Path) -> Path:
    """Give the directory that holds `data` and `queries` of a scale; makes it if it is not there."""
    folder = place / f"tpcds-{scale}"
    if not (folder / "made").is_file():
        python = _environment(place / "tpcds-environment")
        folder.mkdir(parents=True, exist_ok=True)
        _run([str(python), "-c", MAKE, str(folder), scale])
    return folder


def _environment(folder: Path) -> Path:
    python = folder / "bin" / "python"
    if not (folder / "ready").is_file():
        _run([sys.executable, "-m", "venv", str(folder)])
        _run([str(python), "-m", "pip", "install", "--quiet", *PACKAGES])
        (folder / "ready").touch()
    return python


def _run(command: list[str]) -> None:
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    if done.returncode:
        raise UsageError(
            "USE-001",
            f"the generator of TPC-DS failed: {done.stderr.strip().splitlines()[-1:]}",
            hint=f"it needs a package index with {' and '.join(PACKAGES)}",
        )
