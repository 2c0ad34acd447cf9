"""Release a stream and die before one chosen call into C; then let somebody else go on. Run as a program.

Every file that is written, every lock and every statement of the books is a call into C, so dying before each of them
in turn meets every half-written state that a kill can leave. Children are forked from one process that has loaded all
code: a tree that is edited meanwhile cannot mix two versions of it, and each death costs little.
"""

import os
import shutil
import signal
import sys
import tempfile
import traceback
from functools import partial
from pathlib import Path

import secant.engine  # all code before the first fork
from secant.ledger import Budget, Ledger
from secant.streams import drawing

drawing.TOGETHER = 3
ANALYSES = ("/secant/ledger/", "/secant/streams/", "/secant/engine.py")


def release(folder: Path) -> int:
    with secant.connect(policy=folder / "policy.toml") as database:
        return len(database.stream("s").rows)


def counted(limit: int | None, folder: Path) -> int:
    """Release with a count of calls into C from our analyses; die before call number `limit`."""
    calls = 0

    def watch(frame, event, argument):
        nonlocal calls
        if event == "c_call" and any(analysis in frame.f_code.co_filename for analysis in ANALYSES):
            calls += 1
            if calls == limit:
                os.kill(os.getpid(), signal.SIGKILL)

    sys.setprofile(watch)
    try:
        release(folder)
    finally:
        sys.setprofile(None)
    return calls


def in_child(work) -> int:
    """Run something in a forked child; give its exit code, or minus the signal that ended it."""
    child = os.fork()
    if not child:
        code = 1
        try:
            code = int(work())
        except Exception:  # noqa: BLE001 - whatever it was, it is told, and the child ends here
            traceback.print_exc()
        finally:
            sys.stderr.flush()
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def values(folder: Path, budget: str) -> dict[str, int]:
    with Ledger.open(folder / "policy.ledger", {budget: Budget.of(10**6)}) as ledger:
        ledger.verify()
        found = ledger.stream("s")
        return {} if found is None else dict(found.values)


def check(folder: Path, steps: int, budget: str, charged: int) -> int:
    """Go on after a death: what was there stays, all steps are there once, one charge."""
    before = values(folder, budget) if (folder / "policy.ledger").exists() else {}
    assert release(folder) == steps
    after = values(folder, budget)
    assert before.items() <= after.items(), "a number was drawn again"
    with Ledger.open(folder / "policy.ledger", {budget: Budget.of(10**6)}) as ledger:
        drawn = [r.fields for r in ledger.records() if r.fields["kind"] == "drawn"]
        assert [fields["step"] for fields in drawn] == list(range(1, steps + 1))
        assert ledger.balances()[budget].spent.epsilon == charged
        assert len(ledger.history()) == 1
    return 0


def main(folder: str, steps: str, budget: str, charged: str, every: str) -> None:
    """Die before every `every`th call in turn, and print how many deaths there were."""
    with tempfile.TemporaryDirectory() as place:
        copy, told, deaths = Path(place) / "copy", Path(place) / "calls", 0
        shutil.copytree(folder, copy)
        assert in_child(lambda: bool(told.write_text(str(counted(None, copy)))) - 1) == 0
        total = int(told.read_text())
        for limit in range(1, total + 1, int(every)):
            shutil.rmtree(copy)
            shutil.copytree(folder, copy)
            ended = in_child(partial(counted, limit, copy))
            assert ended == -signal.SIGKILL, (limit, ended)
            ended = in_child(partial(check, copy, int(steps), budget, int(charged)))
            assert ended == 0, limit
            deaths += 1
    print(total, deaths)


if __name__ == "__main__":
    main(*sys.argv[1:])
