"""`secant demo --serve` lets its two users in, and ends when it is asked to."""

import subprocess
import sys
from pathlib import Path

import httpx


def test_the_clinic_is_served_until_somebody_ends_it():
    program = Path(sys.executable).with_name("secant")
    with subprocess.Popen(
        [program, "demo", "--serve", "--http", "0"], stdout=subprocess.PIPE, text=True
    ) as server:
        try:
            lines = [server.stdout.readline() for _ in range(3)]
            address = lines[0].split()[-1]
            for line, role in zip(lines[1:], ("analyst", "owner"), strict=True):
                name, password = line.split()[1].rstrip(","), line.split()[-1]
                told = httpx.post(
                    f"{address}/v1/login", json={"user": name, "password": password}, timeout=60
                )
                assert told.json()["role"] == role
            headers = {"Authorization": f"Bearer {told.json()['token']}"}
            asked = {"sql": "SELECT count(*) AS n FROM patients", "epsilon": 1}
            answer = httpx.post(f"{address}/v1/query", json=asked, headers=headers, timeout=60)
            assert answer.json()["columns"] == ["n"]
        finally:
            server.terminate()
        assert server.wait() == 0
