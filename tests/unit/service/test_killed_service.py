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
from clinic_desk import COUNT, PASSWORD, POLICY, desk_at

from secant.service.users import User

ROUNDS = 12


def started(folder):
    program = Path(sys.executable).with_name("secant")
    service = subprocess.Popen(
        [program, "serve", "-p", folder / "policy.toml", "--http", "0"],
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env={**os.environ, "SECANT_DEBUG": ""},
    )  # fmt: skip
    return service, service.stdout.readline().split()[-1]


@pytest.mark.long
def test_a_service_that_is_killed_charges_once_at_most(tmp_path):
    desk = desk_at(tmp_path, POLICY.replace("epsilon = 10", "epsilon = 1000"))
    token, _ = desk.users.make_token(desk.users.add("ada", "analyst", PASSWORD), seconds=86_400)
    desk.close()
    headers = {"Authorization": f"Bearer {token}"}
    outcomes = []
    for number in range(ROUNDS):
        asked = {"sql": f"{COUNT} WHERE id > {number}", "epsilon": 1, "reuse": False}
        keyed = {**headers, "Idempotency-Key": f"k{number}"}
        first = None
        service, address = started(tmp_path)
        delay = random.uniform(0.0, 1.2)
        killer = subprocess.Popen(["sh", "-c", f"sleep {delay}; kill -9 {service.pid}"])
        with suppress(httpx.HTTPError):
            first = httpx.post(f"{address}/v1/query", json=asked, headers=keyed, timeout=60)
        killer.wait()
        assert service.wait() == -signal.SIGKILL
        service, address = started(tmp_path)
        again = httpx.post(f"{address}/v1/query", json=asked, headers=keyed, timeout=60)
        service.terminate()
        assert service.wait() == 0
        if again.status_code == 200:
            outcomes.append("answered")
            if first is not None and first.status_code == 200:
                assert again.json()["release_id"] == first.json()["release_id"]
        else:
            assert again.json()["error"]["code"] == "SRV-003"
            assert first is None or first.status_code != 200
            outcomes.append("unknown")
    time.sleep(0.1)
    desk = desk_at(tmp_path)
    with desk.opened(User("ada", "analyst")) as connection:
        connection.ledger.verify()
        spent = connection.budget["rows"].spent_epsilon
    desk.close()
    # what was reserved and not sent when the process died comes back when its lease is over
    assert outcomes.count("answered") <= spent <= ROUNDS
