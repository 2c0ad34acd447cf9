"""Run programs of the pages in processes that have imported what they need.

A page has up to twenty commands and blocks of Python. Each is a program of its own, as it is for a reader; importing
took most of their time. So one process imports what they share, opens nothing, and every program is a fork of it:
`secant …` is called as the installed command calls it, and Python is run as `python -c` runs it.

In: lines of JSON on standard input. Out: a line for each with the status. What a program prints goes to files.
"""

from __future__ import annotations

import atexit
import json
import os
import subprocess
import sys
import tempfile
import threading
import traceback
import types
from functools import cache
from pathlib import Path

SHARED = (
    "secant.engine", "secant.notebook", "secant.cli.commands.query", "secant.cli.commands.explain", "secant.cli.show",
    "secant.engines.duckdb.session", "secant.stats", "secant.blackbox", "secant.attack", "secant.streams.releasing",
    "cyclopts", "duckdb", "numpy", "scipy.stats",
)  # fmt: skip


def serve() -> None:
    """Answer requests until nobody asks any more."""
    for name in SHARED:
        __import__(name)
    for line in sys.stdin:
        child = os.fork()
        if not child:
            _become(json.loads(line))
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)


def _become(asked: dict[str, object]) -> None:
    """Be the program that is asked for, and end with its status."""
    for number, name, flags in (
        (0, os.devnull, os.O_RDONLY),
        (1, str(asked["out"]), os.O_WRONLY),
        (2, str(asked["err"]), os.O_WRONLY),
    ):
        os.dup2(os.open(name, flags), number)
    os.chdir(str(asked["folder"]))
    os.environ.clear()
    os.environ.update(asked["environment"])  # type: ignore[arg-type]
    sys.path[0] = ""
    status = 1
    try:
        status = _called(asked["words"], asked["program"])  # type: ignore[arg-type]
    except SystemExit as end:
        status = end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:  # noqa: BLE001 - what Python does with a program that raises
        traceback.print_exc()
    threading._shutdown()
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)


def _called(words: list[str] | None, program: str) -> int:
    sys.argv = ["secant", *words] if words is not None else ["-c"]
    if words is not None:
        from secant.cli.program import main

        return main(words)
    main_module = sys.modules["__main__"] = types.ModuleType("__main__")
    exec(compile(program, "<string>", "exec"), vars(main_module))
    return 0


@cache
def _server() -> subprocess.Popen[str]:
    """Start the process that the others are forks of; it ends when its input does."""
    return subprocess.Popen(
        [sys.executable, __file__], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )


def run(
    folder: Path, *, words: list[str] | None = None, program: str = "", environment: dict[str, str]
) -> subprocess.CompletedProcess[str]:
    """Run `secant` with these words, or a program of Python, in a folder."""
    server = _server()
    assert server.stdin is not None
    assert server.stdout is not None
    with tempfile.TemporaryDirectory() as place:
        out, err = Path(place, "out"), Path(place, "err")
        out.touch()
        err.touch()
        asked = {
            "words": words,
            "program": program,
            "folder": str(folder),
            "out": str(out),
            "err": str(err),
        }
        server.stdin.write(json.dumps(asked | {"environment": environment}) + "\n")
        server.stdin.flush()
        status = int(server.stdout.readline())
        texts = out.read_text("utf-8", "replace"), err.read_text("utf-8", "replace")
    return subprocess.CompletedProcess(words or ["-c", program], status, *texts)


if __name__ == "__main__":
    serve()
