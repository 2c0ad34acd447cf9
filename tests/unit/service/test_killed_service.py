"""A service that is killed at any moment charges a keyed request once at most, and answers it again or says so."""

import os
import random
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import httpx
import pytest
from clinic_service import COUNT, PASSWORD, POLICY, service_at

from secant.service.users import User

ROUNDS = 12


def started(folder):
    program = Path(sys.executable).with_name("secant")
    server = subprocess.Popen(
        [program, "serve", "-p", folder / "policy.toml", "--http", "0"],
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env={**os.environ, "SECANT_DEBUG": ""},
    )  # fmt: skip
    return server, server.stdout.readline().split()[-1]


@pytest.mark.long
def test_a_service_that_is_killed_charges_once_at_most(tmp_path):
    service = service_at(tmp_path, POLICY.replace("epsilon = 10", "epsilon = 1000"))
    token, _ = service.users.make_token(
        service.users.add("ada", "analyst", PASSWORD), seconds=86_400
    )
    service.close()
    headers = {"Authorization": f"Bearer {token}"}
    outcomes = []
    for number in range(ROUNDS):
        asked = {"sql": f"{COUNT} WHERE id > {number}", "epsilon": 1, "reuse": False}
        keyed = {**headers, "Idempotency-Key": f"k{number}"}
        first = None
        server, address = started(tmp_path)
        delay = random.uniform(0.0, 1.2)
        killer = subprocess.Popen(["sh", "-c", f"sleep {delay}; kill -9 {server.pid}"])
        with suppress(httpx.HTTPError):
            first = httpx.post(f"{address}/v1/query", json=asked, headers=keyed, timeout=60)
        killer.wait()
        assert server.wait() == -signal.SIGKILL
        server, address = started(tmp_path)
        again = httpx.post(f"{address}/v1/query", json=asked, headers=keyed, timeout=60)
        server.terminate()
        assert server.wait() == 0
        if again.status_code == 200:
            outcomes.append("answered")
            if first is not None and first.status_code == 200:
                assert again.json()["release_id"] == first.json()["release_id"]
        else:
            assert again.json()["error"]["code"] == "SRV-003"
            assert first is None or first.status_code != 200
            outcomes.append("unknown")
    time.sleep(0.1)
    service = service_at(tmp_path)
    with service.opened(User("ada", "analyst")) as connection:
        connection.ledger.verify()
        spent = connection.budget["rows"].spent_epsilon
    service.close()
    # what was reserved and not sent when the process died comes back when its lease is over
    assert outcomes.count("answered") <= spent <= ROUNDS
