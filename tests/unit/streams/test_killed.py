"""Two processes release one stream, and are killed again and again: no number twice, none lost, one charge."""

import os
import random
import signal
import subprocess
import sys
import time

import killed_anywhere
import pytest
from stream_clinic import ROWS, UNIT, stream

import chance
import secant.engine  # noqa: F401 - loaded now: a long run must not mix old code with new when the tree is edited
from secant.ledger import Budget, Ledger

KILLS = 200 if chance.LONG else 8
STEPS = 4000
PROGRAM = """
import sys
import secant
from secant.streams import drawing
drawing.TOGETHER = 3
while True:
    with secant.connect(policy=sys.argv[1]) as database:
        found = database.stream("s")
        print(len(found.rows), flush=True)
        if len(found.rows) == int(sys.argv[2]):
            break
"""


KINDS = {
    "rows": ("visits", ROWS, {}),
    "personal": (
        "patients",
        UNIT,
        {"append_only": True, "personal": {"visits": 1, "period": "1 month"}},
    ),
}


def books(clinic, protection) -> Ledger:
    return Ledger.open(clinic.folder / "policy.ledger", {protection: Budget.of(10**6)})


def started(clinic, steps):
    words = [sys.executable, "-c", PROGRAM, str(clinic.folder / "policy.toml"), str(steps)]
    return subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


@pytest.mark.parametrize("kind", KINDS if chance.LONG else ["personal"])
def test_killed_processes_draw_nothing_twice_and_lose_nothing(clinic, kind):
    protection, section, more = KINDS[kind]
    steps = STEPS if chance.LONG else 150
    for day in range(1, 4):
        clinic.add(f"2010-01-0{day}")
    clinic.declare(section, stream(start="2010-01-01", steps=steps, epsilon=0.25, **more))
    draw, kills = random.Random(chance.fresh_seed()), 0
    seen: dict[str, int] = {}
    running = [started(clinic, steps) for _ in range(2)]
    while kills < KILLS:
        time.sleep(draw.uniform(0.4, 1.6))
        victim = draw.randrange(2)
        if running[victim].poll() is None:
            os.kill(running[victim].pid, signal.SIGKILL)
            kills += 1
        running[victim].wait()
        if not (clinic.folder / "policy.ledger").exists():
            running[victim] = started(clinic, steps)
            continue
        with books(clinic, protection) as ledger:
            ledger.verify()
            found = ledger.stream("s")
            if found is not None:
                # What was there stays as it was: nothing is drawn again.
                assert seen.items() <= found.values.items()
                seen = dict(found.values)
        running[victim] = started(clinic, steps)
    for process in running:
        assert process.wait() == 0
    shown = clinic.stream()
    assert len(shown) == steps
    with books(clinic, protection) as ledger:
        drawn = [r.fields for r in ledger.records() if r.fields["kind"] == "drawn"]
        assert [fields["step"] for fields in drawn] == list(range(1, steps + 1))
        names = [name for fields in drawn for name in fields["values"]]
        assert len(names) == len(set(names))
        assert seen.items() <= ledger.stream("s").values.items()
        assert ledger.balances()[protection].spent.epsilon == 250_000_000
        assert len(ledger.history()) == 1


def test_dying_before_any_call_leaves_books_that_somebody_can_go_on_with(clinic):
    """Half-written ledgers, anchors and drafts, one after the other, and not only those that luck finds."""
    protection, section, more = KINDS["personal"]
    clinic.add("2010-01-01")
    clinic.declare(section, stream(start="2010-01-01", steps=7, epsilon=0.25, **more))
    every = 1 if chance.LONG else 350
    words = [clinic.folder, 7, protection, 250_000_000, every]
    found = subprocess.run(
        [sys.executable, killed_anywhere.__file__, *map(str, words)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert found.returncode == 0, found.stderr[-2000:]
    calls, deaths = map(int, found.stdout.split())
    assert deaths == -(-calls // every) >= 3
