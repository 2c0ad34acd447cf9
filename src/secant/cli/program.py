"""The program: which commands there are, and what happens to their errors.

In: the words of the command line. Out: an exit status by who can act (0 done, 2 wrong use, 3
refused, 4 budget, 5 backend, 70 a bug). A command is imported when it is called, and the reader of options with it:
`--help` loads neither. No stack trace is printed, and the text of an unexpected exception is withheld, because it may
quote data.
"""

from __future__ import annotations

import atexit
import gc
import json
import os
import sys
import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING, NoReturn

import secant
from secant.cli.output import writing
from secant.errors import InternalError, SecantError, UsageError, debugging

if TYPE_CHECKING:
    from cyclopts import App

INTERRUPTED = 130
CLOSED_PIPE = 141
"""What a shell reports for a program that was stopped by ^C, or whose reader went away."""
SWEEP = 400_000
"""New objects between two looks for garbage, more than a question makes: what imports make stays, and looking through
it again and again took a tenth of a command."""
ABOUT = "Private answers with noise that is just enough."

# The whole list, in the order of the help (I8): name, where it lives, one line.
COMMANDS: tuple[tuple[str, str, str], ...] = (
    (
        "demo",
        "secant.cli.commands.demo:demo",
        "Answer private questions about sample data made on the spot.",
    ),
    (
        "init",
        "secant.cli.commands.init:init",
        "Write a commented policy from the schema, to start with.",
    ),
    (
        "check",
        "secant.cli.commands.check:check",
        "Say what is wrong with a policy, or missing from it.",
    ),
    (
        "query",
        "secant.cli.commands.query:query",
        "Ask a question: spends budget, prints the private answer.",
    ),
    (
        "run",
        "secant.cli.commands.run:run",
        "Ask a script of views, released tables and questions.",
    ),
    (
        "stream",
        "secant.cli.commands.stream:stream",
        "Release the steps of a declared stream that are complete, once.",
    ),
    (
        "explain",
        "secant.cli.commands.explain:explain",
        "Show why an answer is private; spends nothing.",
    ),
    (
        "inspect",
        "secant.cli.commands.inspect:inspect",
        "OWNER ONLY: show the true answer, sensitivity, noise, times.",
    ),
    (
        "serve",
        "secant.cli.commands.serve:serve",
        "Let people ask over the network, without holding the data.",
    ),
    ("mcp", "secant.cli.commands.mcp:mcp", "Let an agent ask, within a cap for the conversation."),
    (
        "user",
        "secant.cli.commands.user:user",
        "Add, list and remove users of the service; make tokens.",
    ),
    (
        "ledger",
        "secant.cli.commands.ledger:ledger",
        "Show budgets and history; export and verify them.",
    ),
    (
        "facts",
        "secant.cli.commands.facts:facts",
        "List, discard or find again what was found privately.",
    ),
    (
        "audit",
        "secant.cli.commands.audit:audit",
        "OWNER ONLY: test bounds on random databases.",
    ),
    (
        "verify",
        "secant.cli.commands.verify:verify",
        "Check a release by its records, with a second program.",
    ),
    (
        "completion",
        "secant.cli.commands.completion:completion",
        "Print a shell completion script.",
    ),
    (
        "bench",
        "secant.cli.commands.bench:bench",
        "Run published benchmark queries beside the published numbers.",
    ),
)


def program() -> App:
    """Build the program with all its commands."""
    from cyclopts import App  # 0.1 s, which the list of commands does not need

    app = App(
        name="secant",
        help=ABOUT,
        version=lambda: str(secant.__version__),
        help_format="plaintext",
        result_action="return_value",
        suppress_keyboard_interrupt=False,
    )
    for index, (name, home, line) in enumerate(COMMANDS):
        app.command(home, name=name, help=line, sort_key=index)
    return app


def overview() -> str:
    """Give the list of commands, without loading what reads the options of one."""
    rows = [(name, line) for name, _, line in COMMANDS]
    rows += [
        ("--help (-h)", "Display this message and exit."),
        ("--version", "Display the version."),
    ]
    wide = max(len(name) for name, _ in rows)
    commands = "".join(f"  {name:{wide}}  {line}\n" for name, line in rows)
    usage = "Usage: secant COMMAND [OPTIONS]\n"
    return (
        f"{usage}\n{ABOUT}\n\nCommands:\n{commands}\n`secant COMMAND --help` says more about one.\n"
    )


def script() -> NoReturn:
    """Run the command of this process, and end it.

    Freeing one by one the objects of a process that ends took a sixth of a command. What is owed is done first: what
    was printed is written, what is registered for the end runs, such as that temporary files go. With a thread that
    still runs the interpreter ends as usual, which waits for it.
    """
    status = main()
    if threading.active_count() > 1:
        sys.exit(status)
    atexit._run_exitfuncs()
    try:
        for stream in filter(None, (sys.stdout, sys.stderr)):
            stream.flush()
    except OSError:  # the interpreter tells of a reader that went away
        sys.exit(status)
    os._exit(status)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and give its exit status."""
    arguments_list = list(sys.argv[1:] if arguments is None else arguments)
    gc.set_threshold(SWEEP, *gc.get_threshold()[1:])
    # Whatever else is installed does not read policies along with us; looking for it opens every package's papers.
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            # A terminal without UTF-8 gets a question mark for ε instead of a crash.
            stream.reconfigure(errors="replace")
    try:
        return run(arguments_list)
    except BrokenPipeError:
        return CLOSED_PIPE


def run(words: list[str]) -> int:
    """Run one command; every error becomes a message and a status."""
    try:
        status = _called(words)
        with writing():
            sys.stdout.flush()
    except SecantError as error:
        return _report(error, words)
    except KeyboardInterrupt:
        sys.stderr.write("interrupted; a release that had been sent stays charged\n")
        return INTERRUPTED
    except BrokenPipeError:
        raise
    except Exception as error:  # the last door: nothing leaves here as a trace
        if debugging():
            raise
        return _report(_unexpected(error), words)
    return status if isinstance(status, int) else 0


def _called(arguments: list[str]) -> object:
    if arguments in ([], ["--help"], ["-h"]):
        with writing():
            sys.stdout.write(overview())
        return 0
    from cyclopts import CycloptsError

    try:
        return program()(arguments, exit_on_error=False, print_error=False)
    except CycloptsError as error:
        raise UsageError("USE-001", _one_line(str(error)), hint=_help_for(arguments)) from None


def _unexpected(error: Exception) -> InternalError:
    """Name the place in our code, which is public; withhold the text, which may not be."""
    trace, location = error.__traceback__, ""
    while trace is not None:
        module = trace.tb_frame.f_globals.get("__name__", "")
        if isinstance(module, str) and module.startswith("secant"):
            location = f"{module}, line {trace.tb_lineno}"
        trace = trace.tb_next
    return InternalError(
        "BUG-001",
        f"an unexpected {type(error).__name__} stopped the command ({location})",
        hint="report it; SECANT_DEBUG=1 shows the trace, which may quote data",
    )


def _report(error: SecantError, arguments: list[str]) -> int:
    if "--json" in arguments:
        sys.stderr.write(json.dumps({"error": error.to_dict()}, ensure_ascii=False) + "\n")
    else:
        sys.stderr.write(error.render() + "\n")
    return error.exit_status


def _help_for(arguments: list[str]) -> str:
    names = {name for name, _, _ in COMMANDS}
    command = next((word for word in arguments if word in names), "")
    return f"see `secant {command} --help`" if command else "see `secant --help`"


def _one_line(text: str) -> str:
    line = " ".join(text.split())
    return line[:1].lower() + line[1:].rstrip(".")
