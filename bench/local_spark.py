"""A Spark Connect server of this machine, for tests and measurements: on loopback, stopped whatever happens.

In: Java and the `pyspark` package. Out: the address, and what Spark itself counts of each stage (with `ui=True`).
"""

from __future__ import annotations

import ctypes
import importlib.util
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

CORES = 2
_LOOPBACK = {
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.connect.grpc.binding.address": "127.0.0.1",
}


@dataclass(frozen=True, slots=True)
class SparkServer:
    """A running server."""

    port: int
    home: Path
    pages: int | None = None
    """The port of Spark's own pages, where they are asked for."""

    @property
    def address(self) -> str:
        """Give the source without its tables."""
        return f"spark:sc://127.0.0.1:{self.port}"

    @property
    def log(self) -> Path:
        """Give the file that the server writes its messages to."""
        return self.home / "log"

    def told(self, path: str) -> Any:
        """Read what Spark says of its application under a path of its pages, such as `stages`."""
        root = f"http://127.0.0.1:{self.pages}/api/v1/applications"
        with urllib.request.urlopen(root) as answer:
            (application,) = json.load(answer)
        with urllib.request.urlopen(f"{root}/{application['id']}/{path}") as answer:
            return json.load(answer)


def missing() -> str | None:
    """Say what a Spark server lacks here; None if nothing."""
    if shutil.which("java") is None:
        return "this machine has no Java (make setup-spark)"
    if importlib.util.find_spec("pyspark") is None:
        return "pyspark is not installed (make setup-spark)"
    return None


@contextmanager
def running_spark(
    memory: str, settings: dict[str, str], *, pages: bool = False
) -> Iterator[SparkServer]:
    """Start a server in a folder of its own, and stop it whatever happens."""
    spec = importlib.util.find_spec("pyspark")
    if spec is None or spec.origin is None:
        raise RuntimeError(missing())
    spark = Path(spec.origin).parent
    home = Path(tempfile.mkdtemp(prefix="secant-spark-"))
    running = SparkServer(free_port(), home, free_port() if pages else None)
    told = {
        **_LOOPBACK,
        "spark.connect.grpc.binding.port": str(running.port),
        "spark.sql.warehouse.dir": str(home / "warehouse"),
        "spark.local.dir": str(home / "local"),
        "spark.ui.enabled": str(pages).lower(),
        **({"spark.ui.port": str(running.pages)} if pages else {}),
        **settings,
    }
    command = [str(spark / "bin" / "spark-submit"), "--master", f"local[{CORES}]"]
    command += ["--driver-memory", memory]
    command += ["--class", "org.apache.spark.sql.connect.service.SparkConnectServer"]
    for name, value in told.items():
        command += ["--conf", f"{name}={value}"]
    with running.log.open("wb") as log:
        server = subprocess.Popen(
            [*command, "spark-internal"],
            stdout=log,
            stderr=log,
            stdin=subprocess.DEVNULL,
            cwd=home,
            # Its pages listen where SPARK_LOCAL_IP says.
            env={**os.environ, "SPARK_HOME": str(spark), "SPARK_LOCAL_IP": "127.0.0.1"},
            preexec_fn=_die_with_parent,
        )
    try:
        _wait_until_ready(running, server)
        yield running
    finally:
        stop(server, signal.SIGTERM)
        shutil.rmtree(home, ignore_errors=True)


def _die_with_parent() -> None:
    """Let the system end the server with whoever started it (Linux); other signals Java only reports."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(1, int(signal.SIGKILL), 0, 0, 0)


def _wait_until_ready(running: SparkServer, server: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + 180
    while True:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", running.port)) == 0:
                return
        if server.poll() is not None or time.monotonic() > deadline:
            raise RuntimeError(f"Spark did not start:\n{running.log.read_text()[-4000:]}")
        time.sleep(0.2)


def free_port() -> int:
    """Give a port of this machine that nobody listens at."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def stop(server: subprocess.Popen[bytes], asking: signal.Signals) -> None:
    """Ask a server to end, and end it if it does not."""
    for stop_signal, seconds in ((asking, 20), (signal.SIGKILL, 10)):
        server.send_signal(stop_signal)
        try:
            server.wait(seconds)
            return
        except subprocess.TimeoutExpired:
            continue
