"""A real Spark Connect server for tests: started once a session, on loopback, stopped whatever happens.

In: Java and the `pyspark` package. Out: the address. Workers of one test run share one server: it takes some twenty
seconds to start, and more memory than all the rest.
"""

from __future__ import annotations

import ctypes
import importlib.util
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from postgres_server import free_port, stop

MEMORY = "2g"
_SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.connect.grpc.binding.address": "127.0.0.1",
    "spark.sql.shuffle.partitions": "2",
    "spark.default.parallelism": "2",
    "spark.sql.adaptive.enabled": "false",  # tiny tables: planning again takes longer than running
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",  # compiling, too
}


@dataclass(frozen=True, slots=True)
class SparkServer:
    """A running server."""

    port: int
    home: Path

    @property
    def address(self) -> str:
        """Give the source without its tables."""
        return f"spark:sc://127.0.0.1:{self.port}"

    @property
    def log(self) -> Path:
        """Give the file that the server writes its messages to."""
        return self.home / "log"


def missing() -> str | None:
    """Say what a Spark server lacks here; None if nothing."""
    if shutil.which("java") is None:
        return "this machine has no Java (make setup-spark)"
    if importlib.util.find_spec("pyspark") is None:
        return "pyspark is not installed (make setup-spark)"
    return None


@pytest.fixture(scope="session")
def spark_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkServer]:
    """A server that lives as long as the test session; skips where there can be none."""
    lacking = missing()
    if lacking is not None:
        pytest.skip(lacking)
    # A server that already runs, while one writes tests: SECANT_TEST_SPARK is its port.
    chosen = os.environ.get("SECANT_TEST_SPARK")
    if chosen:
        yield SparkServer(int(chosen), Path(os.environ["SECANT_TEST_SPARK_HOME"]))
    else:
        yield from running_server()


def running_server(**settings: str) -> Iterator[SparkServer]:
    """Start a server in a folder of its own, and stop it whatever happens."""
    home = Path(tempfile.mkdtemp(prefix="secant-spark-"))
    spec = importlib.util.find_spec("pyspark")
    assert spec is not None
    assert spec.origin is not None
    spark = Path(spec.origin).parent
    port = free_port()
    told = {
        **_SETTINGS,
        "spark.connect.grpc.binding.port": str(port),
        "spark.sql.warehouse.dir": str(home / "warehouse"),
        "spark.local.dir": str(home / "local"),
        **settings,
    }
    command = [str(spark / "bin" / "spark-submit"), "--master", "local[2]"]
    command += ["--driver-memory", MEMORY]
    command += ["--class", "org.apache.spark.sql.connect.service.SparkConnectServer"]
    for name, value in told.items():
        command += ["--conf", f"{name}={value}"]
    with (home / "log").open("wb") as log:
        server = subprocess.Popen(
            [*command, "spark-internal"],
            stdout=log,
            stderr=log,
            stdin=subprocess.DEVNULL,
            cwd=home,
            env={**os.environ, "SPARK_HOME": str(spark), "SPARK_LOCAL_IP": "127.0.0.1"},
            preexec_fn=_die_with_parent,
        )
    try:
        _wait_until_ready(port, server, home / "log")
        yield SparkServer(port, home)
    finally:
        stop(server, signal.SIGTERM)
        shutil.rmtree(home, ignore_errors=True)


def _die_with_parent() -> None:
    """Let the system end the server with whoever started it (Linux); other signals Java only reports."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(1, int(signal.SIGKILL), 0, 0, 0)


def _wait_until_ready(port: int, server: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + 180
    while True:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        if server.poll() is not None or time.monotonic() > deadline:
            raise RuntimeError(f"Spark did not start:\n{log.read_text()[-4000:]}")
        time.sleep(0.2)
