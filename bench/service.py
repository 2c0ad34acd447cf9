"""The service under load, over real sockets: reused and new answers a minute, how long they take, memory.

`python -m bench service`; SECANT_BENCH_QUESTIONS sets how many questions the memory is watched for.
"""

from __future__ import annotations

import http.client
import json
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

from secant.cli.demo_data import make_clinic
from secant.ledger.opening import ledger_place
from secant.policy.file import load_policy
from secant.service.store import open_store
from secant.service.users import Users

ANALYSTS = 4
REUSED, NEW = 1000, 200
"""Questions of each kind: what the service promises for one minute on two cores."""
WATCHED = int(os.environ.get("SECANT_BENCH_QUESTIONS", "50000"))
FORMS = (
    "SELECT count(*) AS n FROM patients WHERE age >= {0}",
    "SELECT ward, avg(cost) AS cost FROM visits WHERE cost <= {1} GROUP BY ward",
    """SELECT p.district, count(*) AS n FROM visits v JOIN patients p ON v.patient_id = p.patient_id
       WHERE v.cost > {1} GROUP BY p.district""",
    "SELECT sum(cost) AS cost FROM visits WHERE cost > {0}",
)


def question(number: int) -> str:
    """Give the question of a number; each number has another one."""
    return FORMS[number % len(FORMS)].format(number % 100 + number / 1e6, 500 + number / 1000)


class Client:
    """One analyst with one connection."""

    def __init__(self, port: int, token: str) -> None:
        self._port, self._token = port, token
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)

    def fresh(self) -> None:
        """Connect again with the next question: the service ends connections that say nothing for a while."""
        self._connection.close()

    def ask(self, sql: str) -> tuple[bool, float]:
        """Ask; give whether the answer was reused, and the seconds."""
        started = time.perf_counter()
        self._connection.request(
            "POST",
            "/v1/query",
            json.dumps({"sql": sql, "epsilon": "0.0001"}),
            {"Authorization": f"Bearer {self._token}", "Content-Type": "application/json"},
        )
        response = self._connection.getresponse()
        told = json.loads(response.read())
        if response.status != 200:
            raise AssertionError(told)
        return told["reused"], time.perf_counter() - started


def asked(clients: list[Client], numbers: list[int], rate: float = 0) -> dict[str, float]:
    """Let all clients ask at once, each its part of the questions, so many a minute or as fast as they can."""
    times: list[tuple[bool, float]] = []
    started = time.perf_counter()

    def talk(client: Client, place: int) -> None:
        client.fresh()
        for turn in range(place, len(numbers), len(clients)):
            if rate:
                time.sleep(max(0.0, started + 60 * turn / rate - time.perf_counter()))
            times.append(client.ask(question(numbers[turn])))

    threads = [
        threading.Thread(target=talk, args=(client, place)) for place, client in enumerate(clients)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    seconds = time.perf_counter() - started
    if len(times) != len(numbers):
        raise AssertionError("a client failed")
    taken = sorted(t for _, t in times)
    return {
        "questions": len(times),
        "reused": sum(reused for reused, _ in times),
        "per_minute": round(60 * len(times) / seconds),
        "median_ms": round(1000 * statistics.median(taken), 1),
        "p99_ms": round(1000 * taken[int(0.99 * (len(taken) - 1))], 1),
    }


def resident(process: int) -> float:
    """Give the memory that a process holds, in megabytes."""
    lines = Path(f"/proc/{process}/status").read_text().splitlines()
    (line,) = [line for line in lines if line.startswith("VmRSS")]
    return int(line.split()[1]) / 1024


def spent(process: int) -> float:
    """Give the processor seconds that a process has used."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def demo_start() -> dict[str, float]:
    """Start `secant demo --serve` and open the console: seconds, and processor seconds."""
    secant = Path(sys.executable).with_name("secant")
    started = time.perf_counter()
    with subprocess.Popen(
        [secant, "demo", "--serve", "--http", "0"],
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
    ) as server:  # fmt: skip
        try:
            assert server.stdout is not None
            port = int(server.stdout.readline().rpartition(":")[2])
            page = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
            page.request("GET", "/")
            if page.getresponse().status != 200:
                raise AssertionError("the console does not open")
            taken = time.perf_counter() - started
            return {"seconds": round(taken, 2), "processor_seconds": round(spent(server.pid), 2)}
        finally:
            server.terminate()


def run() -> dict[str, object]:
    """Start a service on the clinic, and ask."""
    with tempfile.TemporaryDirectory() as folder:
        _, policy = make_clinic(Path(folder))
        policy.write_text(policy.read_text().replace("epsilon = 4.0", "epsilon = 1000000"))
        store = open_store(ledger_place(load_policy(policy)))
        users = Users(store)
        tokens = [
            users.make_token(
                users.add(f"user{n}", "analyst", "a long enough password"), seconds=86400
            )[0]
            for n in range(ANALYSTS)
        ]
        store.close()
        secant = Path(sys.executable).with_name("secant")
        with subprocess.Popen(
            [secant, "serve", "-p", str(policy), "--http", "0"],
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
        ) as server:  # fmt: skip
            try:
                assert server.stdout is not None
                port = int(server.stdout.readline().rpartition(":")[2])
                return measured([Client(port, token) for token in tokens], server.pid)
            finally:
                server.terminate()


def measured(clients: list[Client], process: int) -> dict[str, object]:
    """Measure new answers, reused ones, and memory over many of both."""
    asked(clients, list(range(ANALYSTS)))  # imports, first plans
    some = list(range(1000, 1000 + NEW))
    before = spent(process)
    fastest = asked(clients, some)
    found = {
        "demo_serve_until_the_console_is_open": demo_start(),
        "processor_ms_of_a_new_question": round(1000 * (spent(process) - before) / NEW, 1),
        "new_as_fast_as_it_goes": fastest,
        "reused_as_fast_as_it_goes": asked(clients, some * (REUSED // NEW)),
        "new_at_200_a_minute": asked(clients, [n + NEW for n in some], NEW),
        "reused_at_1000_a_minute": asked(clients, some * (REUSED // NEW), REUSED),
    }
    memory = [round(resident(process), 1)]
    part = max(1, WATCHED // 10)
    for turn in range(10):
        first = 100_000 + turn * part
        # one new question in fifty, the others repeat those of the turn
        numbers = [
            first + place % max(1, part // 50 // ANALYSTS * ANALYSTS) for place in range(part)
        ]
        asked(clients, numbers)
        memory.append(round(resident(process), 1))
    return {
        "load_of_machine": round(os.getloadavg()[0], 1),
        **found,
        "memory_questions": part * 10,
        "memory_mb": memory,
    }
