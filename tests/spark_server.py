"""A real Spark Connect server for tests: started once a session, on loopback, stopped whatever happens.

Workers of one test run share one server: it takes some ten seconds to start, and more memory than all the rest.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from bench.local_spark import SparkServer, missing, running_spark

MEMORY = "2g"
_SETTINGS = {
    "spark.sql.shuffle.partitions": "2",
    "spark.default.parallelism": "2",
    "spark.sql.adaptive.enabled": "false",  # tiny tables: planning again takes longer than running
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",  # compiling, too
}


@pytest.fixture(scope="session")
def spark_server() -> Iterator[SparkServer]:
    """A server that lives as long as the test session; skips where there can be none."""
    lacking = missing()
    if lacking is not None:
        pytest.skip(lacking)
    # A server that already runs, while one writes tests: SECANT_TEST_SPARK is its port.
    chosen = os.environ.get("SECANT_TEST_SPARK")
    if chosen:
        yield SparkServer(int(chosen), Path(os.environ["SECANT_TEST_SPARK_HOME"]))
        return
    with running_spark(MEMORY, _SETTINGS) as server:
        yield server
