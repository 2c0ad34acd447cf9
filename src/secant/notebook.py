"""`%%secant` in a notebook: a cell of SQL that is answered privately.

In: the words behind `%%secant` and the cell. Out: the answer, or the explanation, which the notebook shows. Loaded by
`%load_ext secant`. Values for `:name` in the cell are the notebook's variables of that name.
"""

from __future__ import annotations

import argparse
import shlex
from typing import Any

from secant.engine import Answer, Connection, Explanation
from secant.errors import UsageError
from secant.sql.parameters import placeholders

USAGE = "%%secant [CONNECTION] --epsilon 0.5 [--error 20] [--explain] [--into NAME], then SQL"


class _Words(argparse.ArgumentParser):
    def error(self, message: str) -> Any:
        raise UsageError("USE-001", f"%%secant cannot be read: {message}", hint=f"write {USAGE}")


def _words() -> _Words:
    words = _Words(prog="%%secant", add_help=False)
    words.add_argument("connection", nargs="?")
    words.add_argument("--epsilon", "-e")
    words.add_argument("--error")
    words.add_argument("--max-error", dest="max_error")
    words.add_argument("--delta")
    words.add_argument("--level", default="0.95")
    words.add_argument("--protection")
    words.add_argument("--analyst", default="")
    words.add_argument("--explain", action="store_true")
    words.add_argument("--into", default="_secant")
    return words


def answered(line: str, cell: str, names: dict[str, Any]) -> Answer | Explanation:
    """Answer a cell; the result also becomes the variable that `--into` names."""
    try:
        asked = _words().parse_args(shlex.split(line))
    except ValueError as error:  # a quote that does not end
        raise UsageError(
            "USE-001", f"%%secant cannot be read: {error}", hint=f"write {USAGE}"
        ) from None
    db = _connection(asked.connection, names)
    wanted = {p.text[1:] for p in placeholders(cell)}
    given = {name: names[name] for name in sorted(wanted) if name in names}
    common = {
        "parameters": given or None,
        "epsilon": asked.epsilon,
        "error": asked.error,
        "delta": asked.delta,
        "level": asked.level,
        "protection": asked.protection,
    }
    found: Answer | Explanation
    if asked.explain:
        found = db.explain(cell, **common)
    else:
        found = db.sql(cell, **common, max_error=asked.max_error, analyst=asked.analyst)
    names[asked.into] = found
    return found


def _connection(name: str | None, names: dict[str, Any]) -> Connection:
    """Give the connection of a name, or the only one there is."""
    if name is not None:
        found = names.get(name)
        if not isinstance(found, Connection):
            raise UsageError(
                "USE-001",
                f"{name} is not a connection",
                hint=f'write before: {name} = secant.connect(policy="policy.toml")',
            )
        return found
    known = {
        key: value
        for key, value in names.items()
        if isinstance(value, Connection) and not key.startswith("_")
    }
    if len({id(value) for value in known.values()}) != 1:
        said = f"there are {', '.join(sorted(known))}" if known else "there is no connection"
        raise UsageError(
            "USE-001", f"%%secant asks which connection: {said}", hint=f"write {USAGE}"
        )
    return next(iter(known.values()))


def load_ipython_extension(shell: Any) -> None:
    """Add `%%secant` to a notebook or to IPython."""

    def secant(line: str, cell: str) -> Answer | Explanation:
        return answered(line, cell, shell.user_ns)

    shell.register_magic_function(secant, magic_kind="cell", magic_name="secant")
