"""Fixtures that every folder may use."""

import os
import random
import signal

import pytest
from hypothesis import HealthCheck, settings

from chance import LONG, fresh_seed
from scratch import scratch

pytest_plugins = ("postgres_server", "spark_server", "workers")

# How long a draw takes depends on what else the machine does; no test asserts a time.
settings.register_profile(
    "secant", deadline=None, derandomize=not LONG, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("secant")

# A run that was started in the background ignores the Ctrl-C that some tests send to themselves.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:  # likewise one that was started by nohup
    signal.signal(signal.SIGHUP, signal.SIG_DFL)


# Ledgers sync every record, and tests would wait for the disk. A process that is killed loses nothing.
os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(scratch()))


@pytest.fixture(autouse=True)
def _drawn_from_a_known_seed():
    """Seed what tests draw from the module `random`; noise never comes from there."""
    random.seed(fresh_seed())
