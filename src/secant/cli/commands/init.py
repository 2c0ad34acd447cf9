"""`secant init`: write a commented policy to start from.

In: a source. Out: a policy file. Only names and types of columns are read, unless the owner asks
for a look at the data; an existing file is left alone unless the owner says otherwise.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from secant.cli.options import Json, PolicyPath, flag, policy_file
from secant.errors import UsageError
from secant.plural import several

if TYPE_CHECKING:
    from secant.engines.backend import Backend

Look = Annotated[
    bool,
    flag(
        "--look", "Read the data: write the smallest and largest value of each column as a comment."
    ),
]
Force = Annotated[bool, flag("--force", "Overwrite an existing policy file.")]
SERVED = """
# This source is a server, and cannot tell when its rows change without telling it everybody who asks twice. So
# `secant serve` counts rows as the same for 15 minutes: who asks a question again gets the stored answer, for nothing.
# How long may an answer be old? Say it in the configuration of the service (secant serve --config serve.toml):
# [reuse]
# version = "every 1 day"
"""
LOOKED = (
    "Looked at the data: the ranges in the policy are values of real people. Round them to facts "
    "that are public anyway before you uncomment them or show the file to anybody."
)


def init(
    source: str,
    /,
    *,
    policy: PolicyPath = None,
    look: Look = False,
    force: Force = False,
    json: Json = False,
) -> int:
    """Read the schema (no values, unless asked) and write a commented policy to start from."""
    from secant.cli import show
    from secant.cli.starter import starter_policy
    from secant.engines.sources import has_password, open_source, source_files

    target = Path(policy_file(policy))
    if target.exists() and not force:
        hint = "name another file with --policy, or overwrite it with --force"
        raise UsageError("USE-001", f"{target} exists; it is not overwritten", hint=hint)
    with show.working("reading the schema", quiet=json):
        opened = open_source(source)
        try:
            catalog = opened.catalog()
            looked = _look(opened) if look else None
        finally:
            opened.close()
    if not catalog.tables:
        raise UsageError(
            "USE-001",
            "there is no table that Secant can read here, so there is nothing to write a policy for",
            hint="tables of another schema are offered with `?schema=NAME` behind the address of a DuckDB file or of "
            "PostgreSQL; else see whether this user may read them",
        )
    named = _seen_from(target, source)
    if has_password(source):
        named = _put_away(target, source)
    served = SERVED if source_files(source) is None else ""
    _write(target, starter_policy(named, catalog, looked) + served)
    if look:
        sys.stderr.write(LOOKED + "\n")
    if json:
        show.print_json({"policy": str(target), "tables": list(catalog.tables), "looked": look})
        return 0
    show.say(
        f"Wrote {target} for {several(len(catalog.tables), 'table')}: {', '.join(catalog.tables)}"
    )
    if has_password(source):
        show.say(
            f"The address has a password: it is in {named.partition(':')[2]}, not in the policy"
        )
    if served:
        show.say(
            f"How long may an answer of `secant serve` be old? The end of {target} says where to write it"
        )
    show.say(f"Now read it, uncomment what is true, and run: secant check {target}")
    return 0


def _look(opened: Backend) -> dict[tuple[str, str], tuple[object, object]]:
    """Read the smallest and the largest value of every number and date."""
    from secant.engines.dialect import quote, stored_rows

    seen = {}
    with opened.session() as session:
        for name, table in opened.catalog().tables.items():
            rows = stored_rows(session.dialect, table)
            computed = {c.column for c in table.computed}  # reading one may fail
            for column, type_ in table.columns:
                if (type_.numeric or type_.temporal) and column not in computed:
                    ends = f"min({quote(column)}), max({quote(column)})"
                    ((low, high),) = session.rows(f"SELECT {ends} FROM {rows} AS t")
                    if low is not None:
                        seen[name, column] = (low, high)
    return seen


def _seen_from(target: Path, source: str) -> str:
    """Write a relative path as the policy will read it: from its own directory, not from ours."""
    from secant.engines.sources import with_paths

    def seen(path: str) -> str:
        absolute = Path(path).expanduser().is_absolute()
        return path if absolute else os.path.relpath(path, target.parent)

    return source if target.parent == Path() else with_paths(source, seen)


def _put_away(target: Path, address: str) -> str:
    """Write an address with a password into a file that nobody else may read; give the source that names it."""
    secret_file = target.with_suffix(".source")
    try:
        secret_file.unlink(missing_ok=True)
        with os.fdopen(
            os.open(secret_file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w"
        ) as file:
            file.write(address + "\n")
    except OSError as error:
        raise UsageError("USE-001", f"cannot write {secret_file}: {error.strerror}") from None
    return f"file:{secret_file.name}"


def _write(target: Path, text: str) -> None:
    try:
        target.write_text(text, encoding="utf-8")
    except OSError as error:
        raise UsageError("USE-001", f"cannot write {target}: {error.strerror}") from None
