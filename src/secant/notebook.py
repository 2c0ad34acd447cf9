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

USAGE = "%%secant [CONNECTION] --epsilon 0.5 [--error 20] [--certain] [--explain] [--into NAME], then SQL"


class _Arguments(argparse.ArgumentParser):
    def error(self, message: str) -> Any:
        raise UsageError("USE-001", f"%%secant cannot be read: {message}", hint=f"write {USAGE}")


def _parser() -> _Arguments:
    parser = _Arguments(prog="%%secant", add_help=False)
    parser.add_argument("connection", nargs="?")
    parser.add_argument("--epsilon", "-e")
    parser.add_argument("--error")
    parser.add_argument("--max-error", dest="max_error")
    parser.add_argument("--certain", action="store_true")
    parser.add_argument("--delta")
    parser.add_argument("--level", default="0.95")
    parser.add_argument("--protection")
    parser.add_argument("--analyst", default="")
    parser.add_argument("--explain", action="store_true")
    parser.add_argument("--into", default="_secant")
    return parser


def answered(line: str, cell: str, names: dict[str, Any]) -> Answer | Explanation:
    """Answer a cell; the result also becomes the variable that `--into` names."""
    try:
        options = _parser().parse_args(shlex.split(line))
    except ValueError as error:  # a quote that does not end
        raise UsageError(
            "USE-001", f"%%secant cannot be read: {error}", hint=f"write {USAGE}"
        ) from None
    db = _connection(options.connection, names)
    names_used = {p.text[1:] for p in placeholders(cell)}
    parameters = {name: names[name] for name in sorted(names_used) if name in names}
    common = {
        "parameters": parameters or None,
        "epsilon": options.epsilon,
        "error": options.error,
        "delta": options.delta,
        "level": options.level,
        "protection": options.protection,
        "certain": options.certain,
    }
    answer: Answer | Explanation
    if options.explain:
        answer = db.explain(cell, **common)
    else:
        answer = db.sql(cell, **common, max_error=options.max_error, analyst=options.analyst)
    names[options.into] = answer
    return answer


def _connection(name: str | None, names: dict[str, Any]) -> Connection:
    """Give the connection of a name, or the only one there is."""
    if name is not None:
        connection = names.get(name)
        if not isinstance(connection, Connection):
            raise UsageError(
                "USE-001",
                f"{name} is not a connection",
                hint=f'write before: {name} = secant.connect(policy="policy.toml")',
            )
        return connection
    connections = {
        key: value
        for key, value in names.items()
        if isinstance(value, Connection) and not key.startswith("_")
    }
    if len({id(value) for value in connections.values()}) != 1:
        reason = (
            f"there are {', '.join(sorted(connections))}"
            if connections
            else "there is no connection"
        )
        raise UsageError(
            "USE-001", f"%%secant asks which connection: {reason}", hint=f"write {USAGE}"
        )
    return next(iter(connections.values()))


def load_ipython_extension(shell: Any) -> None:
    """Add `%%secant` to a notebook or to IPython."""

    def secant(line: str, cell: str) -> Answer | Explanation:
        return answered(line, cell, shell.user_ns)

    shell.register_magic_function(secant, magic_kind="cell", magic_name="secant")
